//! YAML: read as JSON has it, for descriptions in either, and texts written as YAML has them, plain
//! where they can be, in quotes else.

use super::error;
use knee_load::quantity::ParseError;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};
use std::collections::HashMap;

/// The deepest nesting.
const DEPTH_MAX: usize = 100;
/// The most values, those that aliases repeat among them.
const NODES_MAX: usize = 1_000_000;
/// The largest file.
const FILE_MAX: usize = 32 << 20;

/// A list or a map that is not at its end, with the number of its anchor; 0 is none.
enum Open {
    List(Vec<Value>, usize),
    /// With the key whose value is next.
    Map(Map<String, Value>, Option<String>, usize),
}

/// The first document of a text.
///
/// # Errors
/// One line: no YAML, too much of it.
pub(super) fn parse(text: &str) -> Result<Value, ParseError> {
    if text.len() > FILE_MAX {
        return error("the file is larger than 32 MiB");
    }
    let mut open: Vec<Open> = Vec::new();
    let mut anchors: HashMap<usize, Value> = HashMap::new();
    let mut nodes = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| {
            let what: String = e.to_string().chars().filter(|c| !c.is_control()).collect();
            super::wrong(format!("the file is neither JSON nor YAML: {what}"))
        })?;
        let line = span.start.line();
        let too_large =
            || error(format!("line {line}: the file is nested too deeply or too large"));
        nodes += 1;
        if nodes > NODES_MAX || open.len() > DEPTH_MAX {
            return too_large();
        }
        let (done, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => (Some(scalar(&text, style)), anchor),
            Event::SequenceStart(anchor, _) => {
                open.push(Open::List(Vec::new(), anchor));
                (None, 0)
            }
            Event::MappingStart(anchor, _) => {
                open.push(Open::Map(Map::new(), None, anchor));
                (None, 0)
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(list, anchor)) => (Some(Value::Array(list)), anchor),
                Some(Open::Map(map, _, anchor)) => (Some(Value::Object(map)), anchor),
                None => (None, 0),
            },
            Event::Alias(anchor) => {
                let Some(value) = anchors.get(&anchor) else {
                    return error(format!("line {line}: an alias within what it names"));
                };
                nodes += size(value);
                if nodes > NODES_MAX || open.len() + depth(value) > DEPTH_MAX {
                    return too_large();
                }
                (Some(value.clone()), 0)
            }
            _ => (None, 0),
        };
        let Some(value) = done else {
            continue;
        };
        if anchor > 0 {
            nodes += size(&value);
            anchors.insert(anchor, value.clone());
        }
        match open.last_mut() {
            None => return Ok(value),
            Some(Open::List(list, _)) => list.push(value),
            Some(Open::Map(map, key, _)) => match (key.take(), value) {
                // A merge: what the map has itself wins.
                (Some(key), Value::Object(other)) if key == "<<" => {
                    for (key, value) in other {
                        map.entry(key).or_insert(value);
                    }
                }
                (Some(key), value) => drop(map.insert(key, value)),
                (None, value) => *key = Some(named(value)),
            },
        }
    }
    error("the file is empty")
}

/// How many values are in one, itself among them.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(size).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// How deep a value is nested.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// A value as a key: statuses are written as numbers.
fn named(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => {
            let whole = text.parse::<i64>().ok().map(Number::from);
            let is_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
            let real = || text.parse().ok().filter(|_| is_number);
            match whole.or_else(|| real().and_then(Number::from_f64)) {
                Some(number) => Value::Number(number),
                None => Value::String(text.to_owned()),
            }
        }
    }
}

/// A text that YAML reads as this text.
pub(super) fn quoted(text: &str) -> String {
    let is_url = ["http://", "https://"].iter().find_map(|s| text.strip_prefix(s));
    let is_path = text.starts_with('/') && text.bytes().all(is_path_byte);
    if is_plain(text) || is_path || is_url.is_some_and(is_authority) {
        text.to_owned()
    } else {
        in_quotes(text)
    }
}

/// A key or a name.
pub(super) fn key(name: &str) -> String {
    if is_plain(name) { name.to_owned() } else { in_quotes(name) }
}

fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];
    let is_word_byte = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(is_word_byte)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-_.~?=&%+;@".contains(&byte)
}

fn is_authority(text: &str) -> bool {
    let is_fine = |b: u8| b.is_ascii_alphanumeric() || b"-.:".contains(&b);
    !text.is_empty() && !text.ends_with(':') && text.bytes().all(is_fine)
}

/// A text in double quotes.
pub(super) fn in_quotes(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                quoted.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alias_that_lies_too_deep_is_refused() {
        let list = |depth: usize, inside: &str| {
            format!("{}{inside}{}", "[".repeat(depth), "]".repeat(depth))
        };
        let file = |depth: usize| {
            let (named, user) = (list(depth, "1"), list(depth, "*a"));
            parse(&format!("named: &a {named}\nuser: {user}\nlast: 1\n"))
        };
        assert_eq!(file(40).unwrap()["last"], Value::from(1));
        let wrong = file(60).unwrap_err();
        assert!(wrong.0.contains("line 2: the file is nested too deeply"), "{wrong}");
    }
}
