//! Maps by their keys, and values as what they have to be.

use super::fault::{At, Read, fault, unknown};
use super::keys::{Key, Table};
use super::tree::{Entry, Node, Scalar, Value};
use crate::quantity::parse::quoted;
use crate::quantity::parse_duration;
use crate::spec::ParseError;
use crate::time::Nanos;

/// A map whose keys are all known.
pub(super) struct Fields<'a> {
    pub(super) at: At,
    table: &'static Table,
    entries: &'a [Entry],
}

impl<'a> Fields<'a> {
    pub(super) fn read(node: &'a Node, table: &'static Table) -> Read<Fields<'a>> {
        let keys = || table.keys.iter().map(|key| key.name);
        let Value::Map(entries) = &node.value else {
            let what = node.what();
            return fault(
                node.at,
                format!(
                    "{} is a map, not {what}: expected keys such as '{}:'",
                    table.what,
                    keys().nth(1).or(keys().next()).unwrap_or_default()
                ),
            );
        };
        for Entry { key, at, value } in entries {
            let is_known = keys().any(|name| name == &**key);
            if !is_known && !is_extension(table, key) {
                return fault(*at, unknown_key(table, key, value));
            }
        }
        Ok(Fields {
            at: node.at,
            table,
            entries,
        })
    }

    /// The value of a key, where there is one.
    pub(super) fn get(&self, name: &str) -> Option<&'a Node> {
        self.entry(name).map(|entry| &entry.value)
    }

    /// A key and its value, where there is one.
    pub(super) fn entry(&self, name: &str) -> Option<&'a Entry> {
        let in_table = |key: &Key| key.name == name;
        debug_assert!(self.table.keys.iter().any(in_table), "{name}");
        self.entries.iter().find(|entry| &*entry.key == name)
    }

    pub(super) fn need(&self, name: &str) -> Read<&'a Node> {
        self.get(name).ok_or(()).or_else(|()| {
            let what = self.table.what;
            let about = self.table.keys.iter().find(|key| key.name == name);
            let about = about.map_or(String::new(), |key| decapitalised(key.about));
            fault(self.at, format!("{what} lacks the key '{name}': {about}"))
        })
    }

    /// The only one of the keys of which a map has one.
    pub(super) fn one(&self) -> Read<&'a Entry> {
        let is_one = |entry: &&Entry| self.table.one_of.contains(&&*entry.key);
        let mut found = self.entries.iter().filter(is_one);
        let all = || list(self.table.one_of);
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (Some(one), Some(other)) => {
                let (one, other) = (&one.key, &other.key);
                let what = format!(
                    "'{other}' and '{one}' in one: {} has one of them",
                    self.table.what
                );
                fault(self.second(other), what)
            }
            _ => fault(
                self.at,
                format!("{} needs one of {}", self.table.what, all()),
            ),
        }
    }

    /// All keys that are there.
    pub(super) fn entries(&self) -> impl Iterator<Item = &'a Entry> + use<'a> {
        self.entries.iter()
    }

    fn second(&self, name: &str) -> At {
        self.entry(name).map_or(self.at, |entry| entry.at)
    }
}

/// As it goes on after a colon.
fn decapitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

/// Whether it is a key that knee leaves alone, as it holds what aliases name.
fn is_extension(table: &Table, key: &str) -> bool {
    table.name == "scenario" && key.starts_with("x-")
}

fn unknown_key(table: &Table, key: &str, value: &Node) -> String {
    if key.contains(['(', ')', '{', '}']) && value.is_null() {
        let shown = quoted(key);
        return format!("{shown} is no key: a value with ',' '{{' or '}}' in it needs quotes here");
    }
    if key == "<<" {
        return "'<<' does not merge maps here: write the keys out".to_owned();
    }
    unknown("key", key, table.keys.iter().map(|key| key.name))
}

/// `'a', 'b' or 'c'`.
pub(super) fn list(words: &[&str]) -> String {
    let quoted = |words: &[&str]| {
        let words = words.iter().map(|word| format!("'{word}'"));
        words.collect::<Vec<_>>().join(", ")
    };
    match words {
        [] => String::new(),
        [one] => format!("'{one}'"),
        [first @ .., last] => format!("{} or '{last}'", quoted(first)),
    }
}

/// The text of a value that is no list, no map and not nothing. `expected` says what it is.
pub(super) fn text<'a>(node: &'a Node, expected: &str) -> Read<&'a Scalar> {
    match node.scalar() {
        Some(scalar) => Ok(scalar),
        None => fault(node.at, format!("{} where {expected} belongs", node.what())),
    }
}

/// A value that some parser of text reads.
pub(super) fn parsed<T>(
    node: &Node,
    expected: &str,
    parse: impl FnOnce(&str) -> Result<T, ParseError>,
) -> Read<T> {
    let scalar = text(node, expected)?;
    parse(&scalar.text).or_else(|wrong| fault(node.at, wrong.0))
}

/// A length of time above nothing.
pub(super) fn duration(node: &Node) -> Read<Nanos> {
    match parsed(node, "a length of time, such as 5s,", parse_duration)? {
        Nanos::ZERO => fault(
            node.at,
            "a time of 0 is too short: give one such as 500ms or 5s",
        ),
        time => Ok(time),
    }
}

/// A whole number between two, both included.
pub(super) fn whole(node: &Node, [least, most]: [u64; 2]) -> Read<u64> {
    let expected = format!("a whole number from {least} to {most}");
    let scalar = text(node, &expected)?;
    let is_digits = scalar.text.bytes().all(|b| b.is_ascii_digit());
    let number = scalar.text.parse().ok().filter(|_| is_digits);
    match number.filter(|number| (least..=most).contains(number)) {
        Some(number) => Ok(number),
        None => fault(
            node.at,
            format!(
                "{} is no number for this: expected {expected}",
                quoted(&scalar.text)
            ),
        ),
    }
}

/// One of a few words.
pub(super) fn word<T: Copy>(node: &Node, words: &[(&str, T)]) -> Read<T> {
    let names: Vec<&str> = words.iter().map(|&(name, _)| name).collect();
    let scalar = text(node, &list(&names))?;
    match words.iter().find(|(name, _)| *name == &*scalar.text) {
        Some(&(_, value)) => Ok(value),
        None => fault(
            node.at,
            unknown("word", &scalar.text, names.iter().copied()),
        ),
    }
}

/// Names and their values.
pub(super) fn named<'a>(node: &'a Node, what: &str) -> Read<&'a [Entry]> {
    match &node.value {
        Value::Map(entries) => Ok(entries),
        _ => fault(
            node.at,
            format!(
                "{} where names and values belong: write {what}",
                node.what()
            ),
        ),
    }
}

/// A list, or one value alone.
pub(super) fn one_or_more(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(nodes) => nodes,
        _ => std::slice::from_ref(node),
    }
}
