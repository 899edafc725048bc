//! The JSON Schema of scenario files. The reader takes the keys that the schema has.

use super::tree::{self, Node, Value};
use std::sync::LazyLock;

const SCHEMA: &str = include_str!("scenario.schema.json");

/// The schema as nodes, which keep the order of the keys.
static NODES: LazyLock<Option<Node>> = LazyLock::new(|| tree::parse(SCHEMA.as_bytes()).ok());

/// The schema, draft 2020-12.
pub fn schema() -> serde_json::Value {
    serde_json::from_str(SCHEMA).unwrap_or_default()
}

/// A kind of map: its name in the schema, and what errors call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MapKind(&'static str, pub(super) &'static str);

pub(super) const SCENARIO: MapKind = MapKind("scenario", "a scenario");
pub(super) const DEFAULTS: MapKind = MapKind("defaults", "'defaults'");
pub(super) const DATA: MapKind = MapKind("data", "a set of records");
pub(super) const SESSION: MapKind = MapKind("session", "a session");
pub(super) const STEP: MapKind = MapKind("step", "a step");
pub(super) const REPEAT: MapKind = MapKind("repeat", "'repeat'");
pub(super) const CHOICE: MapKind = MapKind("choice", "a choice");
pub(super) const PART: MapKind = MapKind("part", "a part of 'multipart'");
pub(super) const REQUEST: MapKind = MapKind("request", "'request'");
pub(super) const EXPECT: MapKind = MapKind("expect", "'expect'");
pub(super) const MATCH: MapKind = MapKind("match", "what a value has to be");
pub(super) const BODY: MapKind = MapKind("body", "what the body has to be");
pub(super) const EXTRACT: MapKind = MapKind("extract", "where a variable comes from");
pub(super) const LOAD: MapKind = MapKind("load", "'load'");
pub(super) const STAGE: MapKind = MapKind("stage", "a stage");

impl MapKind {
    fn definition(self) -> Option<&'static Node> {
        NODES.as_ref()?.get("$defs")?.get(self.0)
    }

    /// The keys in the order of the schema.
    pub(super) fn keys(self) -> impl Iterator<Item = &'static str> + Clone {
        let properties = self.definition().and_then(|map| map.get("properties"));
        properties.map_or(&[][..], Node::entries).iter().map(|key| &*key.key)
    }

    /// The purpose of a key.
    pub(super) fn description(self, key: &str) -> &'static str {
        let properties = self.definition().and_then(|map| map.get("properties"));
        let key = properties.and_then(|keys| keys.get(key));
        key.and_then(|key| key.get("description")?.scalar()).map_or("", |scalar| &*scalar.text)
    }

    /// The keys that exclude each other; a map has exactly one.
    pub(super) fn one_of(self) -> Vec<&'static str> {
        let choices = self.definition().and_then(|map| map.get("oneOf"));
        let Some(Value::List(choices)) = choices.map(|choices| &choices.value) else {
            return Vec::new();
        };
        let required = choices.iter().filter_map(|choice| choice.get("required"));
        let keys = required.filter_map(|keys| match &keys.value {
            Value::List(keys) => Some(&*keys.first()?.scalar()?.text),
            _ => None,
        });
        keys.collect()
    }

    /// Whether a map may have the key. Keys that begin with `x-` hold what aliases name.
    pub(super) fn has(self, key: &str) -> bool {
        self.keys().any(|known| known == key) || (self == SCENARIO && key.starts_with("x-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_map_is_in_the_schema() {
        let schema = schema();
        let kinds = [
            SCENARIO, DEFAULTS, DATA, SESSION, STEP, REPEAT, CHOICE, PART, REQUEST, EXPECT, MATCH,
            BODY, EXTRACT, LOAD, STAGE,
        ];
        for kind in kinds {
            assert!(kind.keys().count() > 1, "{kind:?}");
            assert!(kind.keys().all(|key| !kind.description(key).is_empty()));
        }
        let definitions = schema["$defs"].as_object().map(serde_json::Map::len);
        assert_eq!(definitions, Some(kinds.len()));
        assert_eq!(REPEAT.one_of(), ["times", "over", "while", "until"]);
        assert!(SCENARIO.has("x-a") && !STEP.has("x-a") && STEP.has("get"));
    }
}
