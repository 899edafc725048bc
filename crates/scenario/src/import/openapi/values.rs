//! Values that a schema permits.

use super::{ApiDescription, DEPTH_MAX};
use regex_syntax::hir::{Hir, HirKind};
use serde_json::{Map, Value, json};

/// The most values that are made for one request.
const VALUES_MAX: usize = 1_000;
/// Below this depth only what a schema requires is there: it may hold itself.
const OPTIONAL_DEPTH_MAX: usize = 5;
/// The longest text that is made.
const TEXT_MAX: usize = 1_000;

/// Makes values, always the same for the same schema.
pub(super) struct ValueMaker<'a, 'd> {
    description: &'d ApiDescription<'a>,
    left: usize,
    /// What could not be made, and what stands in its place.
    pub(super) said: Vec<String>,
}

impl<'a, 'd> ValueMaker<'a, 'd> {
    pub(super) fn new(description: &'d ApiDescription<'a>) -> ValueMaker<'a, 'd> {
        ValueMaker { description, left: VALUES_MAX, said: Vec::new() }
    }

    /// A value that a schema permits.
    pub(super) fn made(&mut self, schema: &'a Value, depth: usize) -> Value {
        let schema = self.description.resolved(schema);
        self.left = self.left.saturating_sub(1);
        if depth > DEPTH_MAX || self.left == 0 {
            self.say("a value that has to hold itself: null stands there");
            return Value::Null;
        }
        let first = |key: &str| schema.get(key).and_then(|list| list.get(0));
        let given = [schema.get("example"), schema.get("default"), schema.get("const")];
        let given = given.into_iter().flatten().next();
        if let Some(value) = given.or(first("examples")).or(first("enum")) {
            return value.clone();
        }
        if let Some(one) = first("oneOf").or(first("anyOf")) {
            return self.made(one, depth + 1);
        }
        let parts = schema.get("allOf").and_then(Value::as_array);
        let mut object = Map::new();
        for part in parts.into_iter().flatten() {
            match self.made(part, depth + 1) {
                Value::Object(part) => object.extend(part),
                other => return other,
            }
        }
        self.properties(schema, depth, &mut object);
        if !object.is_empty() {
            return Value::Object(object);
        }
        match kind(schema) {
            "integer" | "number" => number(schema),
            "boolean" => json!(true),
            "array" => self.list(schema, depth),
            "object" => json!({}),
            _ if schema.get("properties").is_some() => json!({}),
            _ => json!(self.text(schema)),
        }
    }

    fn say(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.said.contains(&what) {
            self.said.push(what);
        }
    }

    fn properties(&mut self, schema: &'a Value, depth: usize, object: &mut Map<String, Value>) {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let is_read = self.description.resolved(property).get("readOnly");
            let is_there = depth <= OPTIONAL_DEPTH_MAX || is_required(name);
            if is_read != Some(&Value::Bool(true)) && is_there {
                object.insert(name.clone(), self.made(property, depth + 1));
            }
        }
    }

    fn list(&mut self, schema: &'a Value, depth: usize) -> Value {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or_default();
        let Some(items) = schema.get("items") else {
            return json!([]);
        };
        if least == 0 && depth > OPTIONAL_DEPTH_MAX {
            return json!([]);
        }
        let values = (0..least.clamp(1, 100)).map(|_| self.made(items, depth + 1));
        Value::Array(values.collect())
    }

    fn text(&mut self, schema: &Value) -> String {
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            let hir = regex_syntax::parse(pattern).ok();
            let mut text = String::new();
            if hir.is_some_and(|hir| shortest(&hir, &mut text)) {
                return text;
            }
            self.say(format!("a text that the pattern {pattern} matches: it may not match"));
        }
        let length = |key: &str| schema.get(key).and_then(Value::as_u64).map(|n| n as usize);
        let text = match schema.get("format").and_then(Value::as_str) {
            Some("date") => "2026-01-01",
            Some("date-time") => "2026-01-01T00:00:00Z",
            Some("time") => "00:00:00Z",
            Some("duration") => "P1D",
            Some("uuid") => "00000000-0000-4000-8000-000000000001",
            Some("email") => "user@example.com",
            Some("uri" | "url") => "https://example.com/",
            Some("hostname") => "example.com",
            Some("ipv4") => "192.0.2.1",
            Some("ipv6") => "2001:db8::1",
            Some("byte") => "dGV4dA==",
            _ => {
                let least = length("minLength").unwrap_or_default().min(TEXT_MAX);
                let most = length("maxLength").unwrap_or(TEXT_MAX);
                return "text".chars().cycle().take(least.max(4).min(most)).collect();
            }
        };
        text.to_owned()
    }
}

/// The type of a schema; of several the first that is not null.
fn kind(schema: &Value) -> &str {
    let kind = schema.get("type").unwrap_or(&Value::Null);
    let kinds = kind.as_array().map_or(std::slice::from_ref(kind), Vec::as_slice);
    kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or_default()
}

/// The least number that is permitted, or 1.
fn number(schema: &Value) -> Value {
    let is_whole = kind(schema) == "integer";
    let get = |key: &str| schema.get(key).and_then(Value::as_f64);
    let excludes = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    let step = if is_whole { 1.0 } else { 0.5 };
    // Before OpenAPI 3.1 it says whether the minimum itself is excluded.
    let least = match (get("exclusiveMinimum"), get("minimum")) {
        (Some(above), _) => Some(above + step),
        (None, Some(least)) if excludes("exclusiveMinimum") => Some(least + step),
        (None, least) => least,
    };
    let most = match (get("exclusiveMaximum"), get("maximum")) {
        (Some(below), _) => Some(below - step),
        (None, Some(most)) if excludes("exclusiveMaximum") => Some(most - step),
        (None, most) => most,
    };
    let value = least.unwrap_or_else(|| most.unwrap_or(1.0).min(1.0));
    let value = match get("multipleOf").filter(|of| *of > 0.0) {
        Some(of) => (value / of).ceil() * of,
        None => value,
    };
    if is_whole || value.fract() == 0.0 && value.abs() < 1e15 {
        json!(value as i64)
    } else {
        json!(value)
    }
}

/// Appends the shortest text that an expression matches, with the first of what it permits.
/// `false` if it looks around itself, or is too long.
fn shortest(hir: &Hir, text: &mut String) -> bool {
    if text.len() > TEXT_MAX {
        return false;
    }
    match hir.kind() {
        HirKind::Empty => true,
        HirKind::Look(look) => {
            use regex_syntax::hir::Look;
            matches!(look, Look::Start | Look::End | Look::StartLF | Look::EndLF)
        }
        HirKind::Literal(literal) => {
            text.push_str(&String::from_utf8_lossy(&literal.0));
            true
        }
        HirKind::Class(class) => {
            let Some(utf8) = class_chars(class) else { return false };
            text.push(utf8);
            true
        }
        HirKind::Repetition(repetition) => {
            (0..repetition.min).all(|_| shortest(&repetition.sub, text))
        }
        HirKind::Capture(capture) => shortest(&capture.sub, text),
        HirKind::Concat(parts) => parts.iter().all(|part| shortest(part, text)),
        HirKind::Alternation(parts) => parts.first().is_some_and(|part| shortest(part, text)),
    }
}

/// A character of a class: a letter or a digit where it has one.
fn class_chars(class: &regex_syntax::hir::Class) -> Option<char> {
    use regex_syntax::hir::Class;
    let Class::Unicode(class) = class else {
        return None;
    };
    let has = |c: &char| class.iter().any(|range| (range.start()..=range.end()).contains(c));
    let usual = ('a'..='z').chain('A'..='Z').chain('0'..='9');
    usual.into_iter().find(has).or_else(|| class.iter().map(|range| range.start()).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(schema: Value) -> (Value, Vec<String>) {
        let root = json!({"components": {"schemas": {
            "Node": {"type": "object", "properties": {"name": {"type": "string"},
                "next": {"$ref": "#/components/schemas/Node"}}},
            "Endless": {"type": "object", "required": ["next"], "properties": {
                "next": {"$ref": "#/components/schemas/Endless"}}}
        }}});
        let description = ApiDescription { root: &root };
        let mut maker = ValueMaker::new(&description);
        (maker.made(&schema, 0), maker.said)
    }

    #[test]
    fn values_are_what_their_schemas_permit() {
        let text = |more: Value| {
            let mut schema = json!({"type": "string"});
            schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            schema
        };
        for (schema, want) in [
            (json!({"type": "integer", "minimum": 3}), json!(3)),
            (json!({"type": "integer", "minimum": 3, "exclusiveMinimum": true}), json!(4)),
            (json!({"type": "integer", "exclusiveMinimum": 3}), json!(4)),
            (json!({"type": "number", "exclusiveMinimum": 0}), json!(0.5)),
            (json!({"type": "integer", "maximum": -2}), json!(-2)),
            (json!({"type": "integer", "exclusiveMaximum": -2}), json!(-3)),
            (json!({"type": "integer", "minimum": 3, "multipleOf": 5}), json!(5)),
            (json!({"type": ["null", "integer"]}), json!(1)),
            (text(json!({"minLength": 6})), json!("textte")),
            (text(json!({"maxLength": 2})), json!("te")),
            (text(json!({"format": "ipv4"})), json!("192.0.2.1")),
            (text(json!({"pattern": "^[A-Z]{2}-\\d{3}$"})), json!("AA-000")),
            (text(json!({"pattern": "^(cat|dog)s?$"})), json!("cat")),
            (text(json!({"pattern": "[^/]+"})), json!("a")),
            (
                json!({"type": "array", "minItems": 2, "items": {"type": "boolean"}}),
                json!([true, true]),
            ),
        ] {
            let (value, said) = made(schema.clone());
            assert_eq!((value, said), (want, Vec::new()), "{schema}");
        }
    }

    #[test]
    fn what_holds_itself_ends_and_what_has_to_is_told() {
        let (list, said) = made(json!({"$ref": "#/components/schemas/Node"}));
        assert!(said.is_empty() && list.to_string().contains("\"next\":{\"name\""), "{list}");
        assert!(!list.to_string().contains("null"), "{list}");
        let (_, said) = made(json!({"$ref": "#/components/schemas/Endless"}));
        assert_eq!(said, ["a value that has to hold itself: null stands there"]);
        let (value, said) = made(json!({"type": "string", "pattern": "(?=a)b"}));
        assert_eq!(value, json!("text"));
        assert!(said[0].contains("the pattern (?=a)b"), "{said:?}");
    }
}
