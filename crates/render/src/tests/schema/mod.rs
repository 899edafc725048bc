//! The JSON Schema of the report, made from the types that are written: their fields, doc comments
//! and serde attributes. Reports of all kinds are checked against it.

mod check;
mod source;

use crate::{Json, Renderer, fixtures};
use check::Checker;
use knee_core::report::{Command, Kind};
use knee_load::measure::Outcome;
use serde_json::{Map, Value, json};
use source::{Body, Field, Item, Variant};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Kinds that an analysis of others' numbers makes reports of as well.
const ANALYZED: [Kind; 2] = [Kind::Sweep, Kind::Latency];

/// The commands that make reports.
fn commands() -> impl Iterator<Item = Command> {
    let analyses = ANALYZED.map(Command::analysis_of);
    Kind::all().map(Command::of).chain(analyses)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Collects the types that the report needs, by name.
struct Writer {
    items: BTreeMap<String, Item>,
    defs: Map<String, Value>,
}

impl Writer {
    fn new() -> Writer {
        let mut items: BTreeMap<String, Item> = BTreeMap::new();
        let folders = ["crates/load/src", "crates/core/src"].map(|folder| root().join(folder));
        for item in folders.iter().flat_map(|folder| source::items(folder)) {
            let twin = items.insert(item.name.clone(), item.clone());
            assert!(twin.is_none(), "two types are written as {}", item.name);
        }
        Writer { items, defs: Map::new() }
    }

    fn schema(mut self) -> Value {
        let mut report = self.object("Report");
        // Which conclusion belongs to which command.
        report["allOf"] = commands()
            .map(|command| {
                json!({
                    "if": {"properties": {"command": {"const": command}}},
                    "then": {"properties": {
                        "conclusion": self.named(command.kind.conclusion_name()),
                    }},
                })
            })
            .collect();
        let mut whole = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Report of knee",
            "description": "What --json writes. Keys may be added; ignore those you do not know.",
        });
        for (key, value) in report.as_object().expect("an object") {
            if key != "description" {
                whole[key] = value.clone();
            }
        }
        whole["$defs"] = Value::Object(self.defs);
        whole
    }

    /// A reference to a type, which is described where it is not yet.
    fn named(&mut self, name: &str) -> Value {
        match name {
            "Conclusion" | "Value" => return json!({}),
            "Command" => {
                let names: Vec<Command> = commands().collect();
                return json!({"type": "string", "enum": names});
            }
            "Outcome" => {
                let names: Vec<&str> = Outcome::ALL.map(Outcome::name).to_vec();
                return json!({"type": "string", "enum": names});
            }
            "Outcomes" | "StatusCodes" => {
                let count = json!({"type": "integer", "minimum": 0});
                return json!({"type": "object", "additionalProperties": count});
            }
            _ => {}
        }
        if !self.defs.contains_key(name) {
            self.defs.insert(name.to_owned(), Value::Null);
            let described = self.described(name);
            self.defs.insert(name.to_owned(), described);
        }
        json!({"$ref": format!("#/$defs/{name}")})
    }

    fn item(&self, name: &str) -> Item {
        let item = self.items.get(name);
        item.unwrap_or_else(|| panic!("{name} is no type that is written")).clone()
    }

    fn described(&mut self, name: &str) -> Value {
        match self.item(name).body {
            Body::Struct(_) => self.object(name),
            Body::Newtype(inner) => self.of(&inner),
            Body::Enum(variants) => self.variants(&self.item(name).doc, &variants),
            Body::Tagged(..) => panic!("{name} is no type of its own"),
        }
    }

    fn variants(&mut self, doc: &str, variants: &[Variant]) -> Value {
        let is_unit = |v: &&Variant| v.fields.is_empty() && v.inner.is_empty();
        let names: Vec<&str> = variants.iter().filter(is_unit).map(|v| v.name.as_str()).collect();
        let mut choices = Vec::new();
        if !names.is_empty() {
            choices.push(json!({"type": "string", "enum": names}));
        }
        for variant in variants.iter().filter(|v| !is_unit(v)) {
            let inner = match variant.fields.as_slice() {
                [] => self.of(&variant.inner),
                fields => self.fields(fields),
            };
            choices.push(if variant.is_untagged {
                inner
            } else {
                json!({
                    "type": "object",
                    "properties": {&variant.name: inner},
                    "required": [&variant.name],
                })
            });
        }
        let mut schema = match choices.len() {
            1 => choices.remove(0),
            _ => json!({"anyOf": choices}),
        };
        schema["description"] = json!(doc);
        schema
    }

    fn object(&mut self, name: &str) -> Value {
        let item = self.item(name);
        let Body::Struct(fields) = &item.body else {
            panic!("{name} is no struct");
        };
        let mut schema = self.fields(fields);
        schema["description"] = json!(item.doc);
        schema
    }

    fn fields(&mut self, fields: &[Field]) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        let mut rules = Vec::new();
        for field in fields {
            if field.is_flat {
                let inner = match self.item(&field.of).body {
                    Body::Tagged(tag, variants) => self.tagged(&field.of, &tag, &variants),
                    _ => self.object(&field.of),
                };
                let parts = inner["properties"].as_object().expect("properties");
                properties.extend(parts.clone());
                required.extend(inner["required"].as_array().expect("a list").clone());
                rules.extend(inner["allOf"].as_array().into_iter().flatten().cloned());
                continue;
            }
            let mut schema = self.of(&field.of);
            schema["description"] = json!(field.doc);
            properties.insert(field.name.clone(), schema);
            if !field.may_lack {
                required.push(json!(field.name));
            }
        }
        let mut schema = json!({"type": "object", "properties": properties, "required": required});
        if !rules.is_empty() {
            schema["allOf"] = rules.into();
        }
        schema
    }

    /// The key that tells the variant, and which further keys each variant has.
    fn tagged(&mut self, name: &str, tag: &str, variants: &[Variant]) -> Value {
        let names: Vec<&str> = variants.iter().map(|v| v.name.as_str()).collect();
        let doc = self.item(name).doc;
        let holds = |v: &&Variant| !v.inner.is_empty();
        let rules: Vec<Value> = variants
            .iter()
            .filter(holds)
            .map(|v| {
                json!({
                    "if": {"properties": {tag: {"const": v.name}}},
                    "then": self.of(&v.inner),
                })
            })
            .collect();
        json!({
            "properties": {tag: {"type": "string", "enum": names, "description": doc}},
            "required": [tag],
            "allOf": rules,
        })
    }

    /// The schema of a type as it is spelt in the source.
    fn of(&mut self, spelt: &str) -> Value {
        let spelt = spelt.trim();
        if let Some(inner) = within(spelt, "Box<", ">") {
            return self.of(inner);
        }
        if let Some(inner) = within(spelt, "Option<", ">") {
            return json!({"anyOf": [self.of(inner), {"type": "null"}]});
        }
        if let Some(inner) = within(spelt, "Vec<", ">") {
            return json!({"type": "array", "items": self.of(inner)});
        }
        if let Some(inner) = within(spelt, "BTreeMap<", ">") {
            let (_, value) = inner.split_once(',').expect("a key and a value");
            return json!({"type": "object", "additionalProperties": self.of(value)});
        }
        if let Some((inner, count)) = within(spelt, "[", "]").and_then(|s| s.split_once(';')) {
            let count: u64 = count.trim().parse().expect("a number of items");
            let items = self.of(inner);
            return json!({
                "type": "array", "items": items, "minItems": count, "maxItems": count
            });
        }
        if let Some(inner) = within(spelt, "(", ")") {
            let parts: Vec<Value> = inner.split(", ").map(|part| self.of(part)).collect();
            return json!({"type": "array", "prefixItems": parts});
        }
        match spelt.rsplit("::").next().unwrap_or(spelt) {
            "u8" | "u16" | "u32" | "u64" | "usize" => json!({"type": "integer", "minimum": 0}),
            "i32" | "i64" => json!({"type": "integer"}),
            "f64" => json!({"type": "number"}),
            "bool" => json!({"type": "boolean"}),
            // The counts of a column are one string.
            "String" | "HeatColumn" => json!({"type": "string"}),
            name => self.named(name),
        }
    }
}

fn within<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

fn written() -> String {
    let schema = Writer::new().schema();
    let text = serde_json::to_string_pretty(&schema).expect("JSON");
    format!("{text}\n")
}

#[test]
fn the_schema_in_the_documentation_is_up_to_date() {
    let path = root().join("docs/src/reference/report.schema.json");
    let expected = written();
    if std::env::var_os("KNEE_WRITE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("it can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{} is stale: run `cargo xtask docs`", path.display());
}

/// The report as it is written, read back as a document.
fn documents() -> Vec<(&'static str, Value)> {
    let document = |(name, report)| {
        let mut bytes = Vec::new();
        Json.render(&report, &mut bytes).expect("memory takes it");
        (name, serde_json::from_slice(&bytes).expect("JSON"))
    };
    fixtures::all().into_iter().map(document).collect()
}

#[test]
fn reports_of_all_kinds_keep_to_the_schema() {
    let schema = Writer::new().schema();
    let documents = documents();
    for command in commands() {
        let is_of = |d: &Value| d["command"] == command.to_string();
        let has = documents.iter().any(|(_, document)| is_of(document));
        assert!(has, "no fixture of {command}");
    }
    for (name, document) in documents {
        let wrong = Checker { whole: &schema }.check(&document);
        assert!(wrong.is_empty(), "{name}: {}", wrong.join("; "));
    }
}

#[test]
fn a_document_that_breaks_the_schema_is_found() {
    let schema = Writer::new().schema();
    let (_, document) = documents().swap_remove(0);
    type Change = fn(&mut Value);
    let changes: [(Change, &str); 9] = [
        (|d| d["seed"] = json!(-1), "seed"),
        (|d| d["trials"][0]["attempted"] = json!("many"), "attempted"),
        (|d| d["verdict"] = json!("perhaps"), "verdict"),
        (|d| d["surprise"] = json!(1), "surprise"),
        (|d| d["trials"][0]["surprise"] = json!(1), "surprise"),
        (|d| d["trials"][0]["ledger"] = json!({}), "ledger"),
        (|d| d["trials"][0]["kind"] = json!("udp"), "datagrams"),
        (|d| d["conclusion"]["surprise"] = json!(1), "surprise"),
        (|d| drop(d.as_object_mut().and_then(|d| d.remove("host"))), "host"),
    ];
    for (change, place) in changes {
        let mut changed = document.clone();
        change(&mut changed);
        let wrong = Checker { whole: &schema }.check(&changed);
        assert!(wrong.iter().any(|w| w.contains(place)), "{place}: {wrong:?}");
    }
}
