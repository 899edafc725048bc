//! The JSON Schema of scenario files, made of the tables that the reader goes by.

use super::keys::{SCENARIO, Shape, Table, tables};
use serde_json::{Map, Value, json};

/// The schema, draft 2020-12.
pub fn schema() -> Value {
    let definitions = tables().map(|table| (table.name.to_owned(), map_of(table)));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scenario of knee",
        "$ref": reference(&SCENARIO),
        "$defs": Map::from_iter(definitions),
    })
}

fn reference(table: &Table) -> String {
    format!("#/$defs/{}", table.name)
}

fn map_of(table: &Table) -> Value {
    let keys = table.keys.iter().map(|key| {
        let mut value = shape(&key.shape);
        if let Some(value) = value.as_object_mut() {
            value.insert("description".to_owned(), json!(key.about));
        }
        (key.name.to_owned(), value)
    });
    let mut object = json!({
        "type": "object",
        "properties": Map::from_iter(keys),
        "required": table.required,
        "additionalProperties": false,
    });
    if !table.one_of.is_empty() {
        let one = |key: &&str| json!({"required": [key]});
        object["oneOf"] = table.one_of.iter().map(one).collect();
    }
    if table.name == SCENARIO.name {
        object["patternProperties"] = json!({"^x-": true});
    }
    object
}

fn shape(shape: &Shape) -> Value {
    match shape {
        Shape::Text => json!({"type": "string"}),
        Shape::Whole(least) => json!({"type": "integer", "minimum": least}),
        Shape::Words(words) => json!({"enum": words}),
        Shape::Any => json!({}),
        Shape::Object(table) => json!({"$ref": reference(table)}),
        Shape::Named(value) => {
            json!({"type": "object", "additionalProperties": self::shape(value)})
        }
        Shape::List(item) => json!({"type": "array", "items": self::shape(item)}),
        Shape::Scalar => json!({"type": ["string", "number", "boolean"]}),
        Shape::Either(shapes) => {
            json!({"anyOf": shapes.iter().map(self::shape).collect::<Vec<_>>()})
        }
        Shape::True => json!({"const": true}),
    }
}
