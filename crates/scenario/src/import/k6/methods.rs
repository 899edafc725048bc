//! Methods of texts and lists.

use super::super::{ImportedRelation, ImportedText};
use super::builtins::fixed;
use super::calls::{Arguments, argument};
use super::interpreter::K6Interpreter;
use super::list_methods::ends;
use super::value::{JsValue, K6Test};

impl<'a> K6Interpreter<'a, '_> {
    /// A method of a value that is no object of the script.
    pub(super) fn call_value(
        &mut self,
        value: JsValue<'a>,
        name: &str,
        arguments: Arguments<'a>,
    ) -> JsValue<'a> {
        if self.heap.items(&value).is_some() {
            return self.call_list(&value, name, &arguments);
        }
        if let JsValue::Records(set) = &value {
            return match name {
                "forEach" => {
                    self.leave_out(format!("a loop over all records of '{set}'"));
                    JsValue::Undefined
                }
                "slice" | "concat" => value,
                _ => JsValue::unknown(format!("what '{name}' makes of the records of '{set}'")),
            };
        }
        if name == "toString" || name == "valueOf" {
            return match self.text_of(&value) {
                Ok(text) => self.bounded(text),
                Err(what) => JsValue::unknown(what),
            };
        }
        match &value {
            JsValue::Text(_) | JsValue::Named(..) => self.call_text(&value, name, &arguments),
            JsValue::Number(number) if name == "toFixed" => {
                let digits = argument(&arguments, 0).number().unwrap_or(0.0);
                JsValue::text(fixed(*number, digits))
            }
            JsValue::Session(_) | JsValue::SessionNumber(..) => {
                self.call_session_text(&value, name, &arguments)
            }
            JsValue::Regex(pattern) if name == "test" => {
                let of = argument(&arguments, 0);
                let pattern = JsValue::text(&**pattern);
                JsValue::test(K6Test::Compare(of, ImportedRelation::Matches, pattern))
            }
            JsValue::Regex(pattern) if name == "exec" => match argument(&arguments, 0) {
                JsValue::Part(part) => {
                    let regex = JsValue::Regex(pattern.clone());
                    self.call_response(&part, "match", vec![regex])
                }
                _ => JsValue::unknown("the match of an expression"),
            },
            JsValue::Unknown(what) => {
                if name == "forEach" {
                    self.leave_out(format!("a loop over {what}"));
                }
                value.clone()
            }
            JsValue::Uniform { .. } => JsValue::unknown("a random number with a fraction"),
            JsValue::Undefined | JsValue::Null => JsValue::Undefined,
            _ => JsValue::unknown(format!("what '{name}' gives")),
        }
    }

    /// A method of a text with values of the session.
    fn call_session_text(
        &mut self,
        value: &JsValue<'a>,
        name: &str,
        arguments: &[JsValue<'a>],
    ) -> JsValue<'a> {
        let first = argument(arguments, 0);
        match (name, &first) {
            ("includes", _) => {
                JsValue::test(K6Test::Compare(value.clone(), ImportedRelation::Contains, first))
            }
            ("trim", _) => value.clone(),
            _ => JsValue::unknown(format!("what '{name}' makes of a value of the session")),
        }
    }

    fn call_text(
        &mut self,
        value: &JsValue<'a>,
        name: &str,
        arguments: &[JsValue<'a>],
    ) -> JsValue<'a> {
        let (first, second) = (argument(arguments, 0), argument(arguments, 1));
        let Some(text) = value.literal() else {
            if name == "concat" {
                return self.concatenated(value, arguments);
            }
            return self.call_session_text(value, name, arguments);
        };
        self.burn(text.len() / 64);
        let other = first.literal();
        if let Some(value) = plain_method(text, name, other) {
            return value;
        }
        match (name, other) {
            ("split", Some("")) => {
                let parts = text.chars().map(|c| JsValue::text(c.to_string())).collect();
                self.heap.list(parts)
            }
            ("split", Some(other)) => {
                let parts = text.split(other).map(JsValue::text).collect();
                self.heap.list(parts)
            }
            ("replace" | "replaceAll", Some(other)) => match self.text_of(&second) {
                Ok(by) => {
                    let most = if name == "replace" { 1 } else { usize::MAX };
                    let mut replaced = ImportedText::default();
                    for (at, part) in text.splitn(most.saturating_add(1), other).enumerate() {
                        if at > 0 {
                            replaced.append(&by);
                        }
                        replaced.push(part);
                    }
                    self.bounded(replaced)
                }
                Err(what) => JsValue::unknown(what),
            },
            ("slice" | "substring" | "substr", _) => part_of(text, name, &first, &second),
            ("padStart" | "padEnd", _) => {
                let length = first.number().unwrap_or(0.0).clamp(0.0, 10_000.0) as usize;
                let fill = second.literal().unwrap_or(" ").to_owned();
                let missing = length.saturating_sub(text.chars().count());
                let fill: String = fill.chars().cycle().take(missing).collect();
                let is_start = name == "padStart";
                JsValue::text(if is_start { fill + text } else { text.to_owned() + &fill })
            }
            ("repeat", _) => {
                let times = first.number().unwrap_or(0.0).clamp(0.0, 1e7) as usize;
                if text.len().saturating_mul(times) > super::interpreter::TEXT_MAX {
                    return JsValue::unknown("a text of more than 1 MiB");
                }
                self.burn(text.len() * times / 64);
                JsValue::text(text.repeat(times))
            }
            ("charAt", _) if matches!(first, JsValue::SessionNumber(..)) => self.random_character(),
            ("charAt", _) => {
                let at = first.number().unwrap_or(0.0) as usize;
                JsValue::text(text.chars().nth(at).map(String::from).unwrap_or_default())
            }
            ("concat", _) => self.concatenated(value, arguments),
            _ => JsValue::unknown(format!("what '{name}' makes of a text")),
        }
    }

    fn concatenated(&mut self, value: &JsValue<'a>, more: &[JsValue<'a>]) -> JsValue<'a> {
        let mut text = ImportedText::default();
        for part in std::iter::once(value).chain(more) {
            match self.text_of(part) {
                Ok(part) => text.append(&part),
                Err(what) => return JsValue::unknown(what),
            }
        }
        self.bounded(text)
    }

    /// A method that an object of the script does not have itself.
    pub(super) fn call_object(
        &mut self,
        object: &JsValue<'a>,
        name: &str,
        arguments: &[JsValue<'a>],
    ) -> JsValue<'a> {
        let first = argument(arguments, 0);
        match (name, first.literal()) {
            ("hasOwnProperty", Some(name)) => {
                JsValue::Bool(self.heap.entry(object, name).is_some())
            }
            ("toString", _) => JsValue::text("[object Object]"),
            _ => {
                self.leave_out(format!("a call of '{name}', which is not there"));
                JsValue::unknown(format!("what '{name}' gives"))
            }
        }
    }
}

/// A method that gives a text, a number or a truth value at once.
fn plain_method<'a>(text: &str, name: &str, other: Option<&str>) -> Option<JsValue<'a>> {
    Some(match (name, other) {
        ("trim", _) => JsValue::text(text.trim()),
        ("trimEnd", _) => JsValue::text(text.trim_end()),
        ("toUpperCase" | "toLocaleUpperCase", _) => JsValue::text(text.to_uppercase()),
        ("toLowerCase" | "toLocaleLowerCase", _) => JsValue::text(text.to_lowercase()),
        ("includes", Some(other)) => JsValue::Bool(text.contains(other)),
        ("startsWith", Some(other)) => JsValue::Bool(text.starts_with(other)),
        ("endsWith", Some(other)) => JsValue::Bool(text.ends_with(other)),
        ("indexOf", Some(other)) => {
            let at = text.find(other).map(|at| text[..at].encode_utf16().count());
            JsValue::Number(at.map_or(-1.0, |at| at as f64))
        }
        _ => return None,
    })
}

fn part_of<'a>(text: &str, name: &str, from: &JsValue<'a>, to: &JsValue<'a>) -> JsValue<'a> {
    let chars: Vec<char> = text.chars().collect();
    let [from, to] = if name == "substr" {
        let begin = ends(chars.len(), from, &JsValue::Undefined)[0];
        let length = to.number().unwrap_or(chars.len() as f64).max(0.0) as usize;
        [begin, (begin + length).min(chars.len())]
    } else {
        ends(chars.len(), from, to)
    };
    JsValue::text(chars.get(from..to).unwrap_or_default().iter().collect::<String>())
}
