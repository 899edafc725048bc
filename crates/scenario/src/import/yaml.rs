//! YAML as JSON has it, for descriptions in either.

use super::error;
use knee_load::quantity::ParseError;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// The deepest nesting.
const DEPTH_MAX: usize = 100;
/// The most values.
const NODES_MAX: usize = 1_000_000;
/// The largest file.
const FILE_MAX: usize = 32 << 20;

/// A list or a map that is not at its end.
enum Open {
    List(Vec<Value>),
    /// With the key whose value is next.
    Map(Map<String, Value>, Option<String>),
}

/// The first document of a text.
///
/// # Errors
/// One line: no YAML, an alias, too much of it.
pub(super) fn parse(text: &str) -> Result<Value, ParseError> {
    if text.len() > FILE_MAX {
        return error("the file is larger than 32 MiB");
    }
    let mut open: Vec<Open> = Vec::new();
    for (nodes, event) in Parser::new_from_str(text).enumerate() {
        let (event, span) = event.map_err(|e| {
            let what: String = e.to_string().chars().filter(|c| !c.is_control()).collect();
            super::wrong(format!("the file is neither JSON nor YAML: {what}"))
        })?;
        let line = span.start.line();
        if nodes > NODES_MAX || open.len() > DEPTH_MAX {
            return error(format!("line {line}: the file is nested too deeply or too large"));
        }
        let done = match event {
            Event::Scalar(text, style, ..) => Some(scalar(&text, style)),
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                None
            }
            Event::MappingStart(..) => {
                open.push(Open::Map(Map::new(), None));
                None
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(|open| match open {
                Open::List(list) => Value::Array(list),
                Open::Map(map, _) => Value::Object(map),
            }),
            Event::Alias(_) => return error(format!("line {line}: aliases are not read")),
            _ => None,
        };
        let Some(value) = done else {
            continue;
        };
        match open.last_mut() {
            None => return Ok(value),
            Some(Open::List(list)) => list.push(value),
            Some(Open::Map(map, key)) => match key.take() {
                Some(key) => drop(map.insert(key, value)),
                None => *key = Some(named(value)),
            },
        }
    }
    error("the file is empty")
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
