//! Whether a document keeps to a schema: the part of JSON Schema that the report's uses. Stricter
//! than the schema itself, as no key may be without a description.

use serde_json::Value;

pub(super) struct Checker<'a> {
    pub whole: &'a Value,
}

impl Checker<'_> {
    /// What is wrong with a document, and where.
    pub(super) fn check(&self, document: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        self.at("", self.whole, document, &mut wrong);
        wrong
    }

    fn keeps(&self, schema: &Value, value: &Value) -> bool {
        let mut wrong = Vec::new();
        self.at("", schema, value, &mut wrong);
        wrong.is_empty()
    }

    fn at(&self, place: &str, schema: &Value, value: &Value, wrong: &mut Vec<String>) {
        let schema = self.resolved(schema);
        if let Some(choices) = schema["anyOf"].as_array() {
            if !choices.iter().any(|choice| self.keeps(choice, value)) {
                wrong.push(format!("{place}: {value} is none of {schema}"));
            }
            return;
        }
        if !is_of(schema["type"].as_str(), value) || value.as_f64() < schema["minimum"].as_f64() {
            wrong.push(format!("{place}: {value} is no {}", schema["type"]));
            return;
        }
        if schema["enum"].as_array().is_some_and(|e| !e.contains(value)) {
            wrong.push(format!("{place}: {value} is not in {}", schema["enum"]));
        }
        self.items(place, schema, value, wrong);
        self.keys(place, schema, value, wrong);
    }

    fn items(&self, place: &str, schema: &Value, value: &Value, wrong: &mut Vec<String>) {
        let items = value.as_array().map_or(&[][..], Vec::as_slice);
        if schema["maxItems"].as_u64().is_some_and(|n| n != items.len() as u64) {
            wrong.push(format!("{place}: {} items", items.len()));
        }
        for (i, item) in items.iter().enumerate() {
            let of = match schema["prefixItems"].as_array() {
                Some(parts) => &parts[i],
                None => &schema["items"],
            };
            self.at(&format!("{place}/{i}"), of, item, wrong);
        }
    }

    fn keys(&self, place: &str, schema: &Value, value: &Value, wrong: &mut Vec<String>) {
        let (Some(keys), Some("object")) = (value.as_object(), schema["type"].as_str()) else {
            return;
        };
        let mut all = vec![schema];
        all.extend(self.applying(schema, value));
        let required = all.iter().filter_map(|of| of["required"].as_array());
        for required in required.flatten() {
            if required.as_str().is_none_or(|key| !keys.contains_key(key)) {
                wrong.push(format!("{place}: {required} is missing"));
            }
        }
        for (key, value) in keys {
            let place = format!("{place}/{key}");
            let described: Vec<&Value> =
                all.iter().filter_map(|of| of["properties"].get(key)).collect();
            for of in &described {
                self.at(&place, of, value, wrong);
            }
            match schema.get("additionalProperties") {
                _ if !described.is_empty() => {}
                Some(of) => self.at(&place, of, value, wrong),
                None => wrong.push(format!("{place}: is not described")),
            }
        }
    }

    /// What the rules of a schema demand of an object beyond it, by the value of one of its keys.
    fn applying<'s>(&'s self, schema: &'s Value, object: &Value) -> Vec<&'s Value> {
        let rules = schema["allOf"].as_array().into_iter().flatten();
        let applies = |rule: &&Value| {
            let wanted = rule["if"]["properties"].as_object();
            let mut wanted = wanted.into_iter().flatten();
            wanted.all(|(key, of)| object[key] == of["const"])
        };
        let demands = rules.filter(applies).map(|rule| &rule["then"]);
        demands.map(|of| self.resolved(of)).collect()
    }

    fn resolved<'s>(&'s self, schema: &'s Value) -> &'s Value {
        match schema["$ref"].as_str() {
            Some(name) => &self.whole["$defs"][name.trim_start_matches("#/$defs/")],
            None => schema,
        }
    }
}

fn is_of(kind: Option<&str>, value: &Value) -> bool {
    match kind {
        None => true,
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some(other) => panic!("{other}"),
    }
}
