//! Maps read by their keys, and values read as their types.

use super::fault::{Position, Read, bail, fault, unknown};
use super::schema::MapKind;
use super::tree::{Entry, Node, Scalar, Value};
use knee_load::quantity::{parse_duration, quoted};
use knee_load::spec::ParseError;
use knee_load::time::Nanos;

/// A map whose keys are all known.
pub(super) struct Fields<'a> {
    pub(super) at: Position,
    kind: MapKind,
    /// All keys that are there.
    pub(super) entries: &'a [Entry],
}

impl<'a> Fields<'a> {
    pub(super) fn read(node: &'a Node, kind: MapKind) -> Read<Fields<'a>> {
        let what = kind.1;
        let Value::Map(entries) = &node.value else {
            let key = kind.keys().nth(1).unwrap_or_default();
            let found = node.what();
            bail!(node.at, "{what} is a map, not {found}: expected keys such as '{key}:'");
        };
        match entries.iter().find(|entry| !kind.has(&entry.key)) {
            Some(Entry { key, at, value }) => fault(*at, unknown_key(kind, key, value)),
            None => Ok(Fields { at: node.at, kind, entries }),
        }
    }

    /// The value of a key, where there is one.
    pub(super) fn get(&self, name: &str) -> Option<&'a Node> {
        self.entry(name).map(|entry| &entry.value)
    }

    /// A key and its value, where there is one.
    pub(super) fn entry(&self, name: &str) -> Option<&'a Entry> {
        debug_assert!(self.kind.has(name), "{name}");
        self.entries.iter().find(|entry| &*entry.key == name)
    }

    /// The value of a key as `read` understands it, where there is one.
    pub(super) fn read_key<T>(
        &self,
        name: &str,
        read: impl FnOnce(&'a Node) -> Read<T>,
    ) -> Read<Option<T>> {
        self.get(name).map(read).transpose()
    }

    /// The value of a key that the map has to have.
    pub(super) fn need(&self, name: &str) -> Read<&'a Node> {
        let Some(node) = self.get(name) else {
            let (what, purpose) = (self.kind.1, decapitalised(self.kind.description(name)));
            bail!(self.at, "{what} lacks the key '{name}': {purpose}");
        };
        Ok(node)
    }

    /// The one key of a map that says what kind it is.
    pub(super) fn one(&self) -> Read<&'a Entry> {
        let (what, one_of) = (self.kind.1, self.kind.one_of());
        let is_one = |entry: &&Entry| one_of.contains(&&*entry.key);
        let mut found = self.entries.iter().filter(is_one);
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (Some(one), Some(Entry { key: other, at, .. })) => {
                let one = &one.key;
                bail!(*at, "'{other}' and '{one}' in one: {what} has one of them")
            }
            _ => bail!(self.at, "{what} needs one of {}", list(&one_of)),
        }
    }
}

/// The text as it continues a sentence after a colon.
fn decapitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_ascii_lowercase()).into_iter().chain(chars).collect()
}

fn unknown_key(kind: MapKind, key: &str, value: &Node) -> String {
    if key.contains(['(', ')', '{', '}']) && value.is_null() {
        let shown = quoted(key);
        return format!("{shown} is no key: a value with ',' '{{' or '}}' in it needs quotes here");
    }
    if key == "<<" {
        return "'<<' does not merge maps here: write the keys out".to_owned();
    }
    unknown("key", key, kind.keys())
}

/// `'a', 'b' or 'c'`.
pub(super) fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    match &quoted[..] {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// The text of a value that is no list, no map and not nothing. `expected` says what it is.
pub(super) fn text<'a>(node: &'a Node, expected: &str) -> Read<&'a Scalar> {
    match node.scalar() {
        Some(scalar) => Ok(scalar),
        None => bail!(node.at, "{} where {expected} belongs", node.what()),
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
        Nanos::ZERO => bail!(node.at, "a time of 0 is too short: give one such as 500ms or 5s"),
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
        None => {
            bail!(node.at, "{} is no number for this: expected {expected}", quoted(&scalar.text))
        }
    }
}

/// One of a few words.
pub(super) fn word<T: Copy>(node: &Node, words: &[(&str, T)]) -> Read<T> {
    let names: Vec<&str> = words.iter().map(|&(name, _)| name).collect();
    let scalar = text(node, &list(&names))?;
    match words.iter().find(|(name, _)| *name == &*scalar.text) {
        Some(&(_, value)) => Ok(value),
        None => fault(node.at, unknown("word", &scalar.text, names.iter().copied())),
    }
}

/// Names and their values.
pub(super) fn named<'a>(node: &'a Node, what: &str) -> Read<&'a [Entry]> {
    match &node.value {
        Value::Map(entries) => Ok(entries),
        _ => bail!(node.at, "{} where names and values belong: write {what}", node.what()),
    }
}

/// A list, or one value alone.
pub(super) fn one_or_more(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(nodes) => nodes,
        _ => std::slice::from_ref(node),
    }
}
