//! YAML: read as JSON has it, for descriptions in either, and written as the values of a scenario
//! file, plain where they can be, in quotes else.

use super::text::ImportedText;
use super::wrong;
use crate::tree::{self, Node, TreeLimits};
use knee_load::quantity::ParseError;
use serde_json::{Map, Number, Value};

/// Limits for descriptions of APIs, which are larger than scenarios.
const LIMITS: TreeLimits = TreeLimits { bytes: 32 << 20, values: 1_000_000, advice: "" };

/// The document of a text.
///
/// # Errors
/// One line: no YAML, too much of it.
pub(super) fn parse(text: &str) -> Result<Value, ParseError> {
    let node = tree::parse_within(text.as_bytes(), LIMITS);
    let node = node.map_err(|e| wrong(format!("line {}: {}", e.at.line, e.what)))?;
    Ok(json(&node))
}

fn json(node: &Node) -> Value {
    match &node.value {
        tree::Value::Scalar(scalar) if scalar.is_quoted => Value::String(scalar.text.to_string()),
        tree::Value::Scalar(scalar) => plain(&scalar.text),
        tree::Value::List(list) => Value::Array(list.iter().map(json).collect()),
        tree::Value::Map(entries) => {
            let (merged, own): (Vec<_>, Vec<_>) = entries.iter().partition(|e| &*e.key == "<<");
            // What the map has itself wins over what it merges.
            let merged = merged.into_iter().flat_map(|merge| merge.value.entries());
            let both = merged.chain(own).map(|e| (e.key.to_string(), json(&e.value)));
            Value::Object(both.collect::<Map<_, _>>())
        }
    }
}

/// The value of a text without quotes.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => {
            let whole = text.parse::<i64>().ok().map(Number::from);
            let is_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
            let real = || text.parse().ok().filter(|_| is_number).and_then(Number::from_f64);
            whole.or_else(real).map_or_else(|| text.into(), Value::Number)
        }
    }
}

/// A map in the order in which it is written.
pub(super) type YamlMap = Vec<(String, YamlValue)>;

/// A value of a scenario file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum YamlValue {
    /// A text that stands there as it is: a number, a name, a document of JSON on one line.
    Plain(String),
    /// A text in quotes.
    Quoted(String),
    /// A template in quotes.
    Template(ImportedText),
    List(Vec<YamlValue>),
    Map(YamlMap),
    /// A list on one line.
    Row(Vec<YamlValue>),
    /// A map on one line.
    Line(YamlMap),
}

impl YamlValue {
    pub(super) fn plain(value: impl ToString) -> YamlValue {
        YamlValue::Plain(value.to_string())
    }

    /// A text, in quotes where it needs them.
    pub(super) fn word(text: &str) -> YamlValue {
        YamlValue::Plain(quoted(text))
    }

    fn on_one_line(&self) -> String {
        match self {
            YamlValue::Plain(text) => text.clone(),
            YamlValue::Quoted(text) => in_quotes(text),
            YamlValue::Template(text) => in_quotes(&text.template()),
            YamlValue::List(list) | YamlValue::Row(list) => {
                let list: Vec<String> = list.iter().map(YamlValue::on_one_line).collect();
                format!("[{}]", list.join(", "))
            }
            YamlValue::Map(map) | YamlValue::Line(map) => {
                let pair = |(name, value): &(String, YamlValue)| {
                    format!("{}: {}", quoted(name), value.on_one_line())
                };
                format!("{{{}}}", map.iter().map(pair).collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// Calls `see` for each map that is written in lines, this one first.
    pub(super) fn each_map(&mut self, see: &mut impl FnMut(&mut YamlMap)) {
        match self {
            YamlValue::Map(map) => {
                see(map);
                map.iter_mut().for_each(|(_, value)| value.each_map(see));
            }
            YamlValue::List(list) => list.iter_mut().for_each(|value| value.each_map(see)),
            _ => {}
        }
    }
}

/// Appends the lines of a map that stands so far to the right.
pub(super) fn put_map(map: &[(String, YamlValue)], indent: usize, lines: &mut Vec<String>) {
    for (name, value) in map {
        let begin = format!("{:indent$}{}:", "", quoted(name));
        match value {
            YamlValue::Map(map) => {
                lines.push(begin);
                put_map(map, indent + 2, lines);
            }
            YamlValue::List(list) => {
                lines.push(begin);
                put_list(list, indent + 2, lines);
            }
            flat => lines.push(format!("{begin} {}", flat.on_one_line())),
        }
    }
}

fn put_list(list: &[YamlValue], indent: usize, lines: &mut Vec<String>) {
    for value in list {
        match value {
            YamlValue::Map(map) => {
                let first = lines.len();
                put_map(map, indent + 2, lines);
                // The dash stands before the first key.
                if let Some(line) = lines.get_mut(first) {
                    line.replace_range(indent..=indent, "-");
                }
            }
            flat => lines.push(format!("{:indent$}- {}", "", flat.on_one_line())),
        }
    }
}

/// A text that YAML reads as this text, without quotes where it needs none.
pub(super) fn quoted(text: &str) -> String {
    const WORDS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];
    let rest = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let (begins, signs) = match rest {
        Some(authority) => (!authority.is_empty() && !authority.ends_with(':'), "-.:"),
        None if text.starts_with('/') => (true, "/-_.~?=&%+;@"),
        None => (text.starts_with(|c: char| c.is_ascii_alphabetic()), "-_"),
    };
    let is_fit = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    let is_word = WORDS.contains(&text.to_ascii_lowercase().as_str());
    if begins && rest.unwrap_or(text).chars().all(is_fit) && !is_word {
        text.to_owned()
    } else {
        in_quotes(text)
    }
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
        assert_eq!(file(30).unwrap()["last"], Value::from(1));
        let wrong = file(40).unwrap_err();
        assert!(wrong.0.contains("line 2: this is nested too deeply"), "{wrong}");
    }
}
