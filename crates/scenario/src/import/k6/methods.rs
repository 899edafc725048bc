//! Methods of texts and lists.

use super::super::{ImportedRelation, ImportedText};
use super::builtins::fixed;
use super::calls::{Arguments, argument};
use super::interpreter::K6Interpreter;
use super::list_methods::ends;
use super::value::JsValue;

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
        if let (JsValue::Number(number), "toString", Some(radix)) =
            (&value, name, argument(&arguments, 0).number())
            && radix != 10.0
        {
            return in_radix(*number, radix).map_or_else(
                || JsValue::unknown("a number with a fraction in another system"),
                JsValue::text,
            );
        }
        if name == "toString" || name == "valueOf" {
            let text = self.text_of(&value);
            return self.text_value(text);
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
                JsValue::compared(of, ImportedRelation::Matches, pattern)
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
        match name {
            "includes" => {
                let other = argument(arguments, 0);
                JsValue::compared(value.clone(), ImportedRelation::Contains, other)
            }
            "trim" => value.clone(),
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
        if name == "concat" {
            let text = self.concatenated(value, arguments);
            return self.text_value(text);
        }
        let Some(text) = value.literal() else {
            return self.call_session_text(value, name, arguments);
        };
        self.burn(text.len() / 64);
        let most = second.number().map_or(usize::MAX, |most| most as usize);
        let other = first.literal();
        if let Some(value) = plain_method(text, name, other) {
            return value;
        }
        match (name, other) {
            ("split", Some("")) => {
                let parts = text.chars().map(|c| JsValue::text(c.to_string()));
                let parts = parts.take(most).collect();
                self.heap.list(parts)
            }
            ("split", Some(other)) => {
                let parts = text.split(other).map(JsValue::text).take(most).collect();
                self.heap.list(parts)
            }
            ("replace" | "replaceAll", Some(other)) => match self.replacement(&second, other) {
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
            _ => JsValue::unknown(format!("what '{name}' makes of a text")),
        }
    }

    /// What stands in the place of a text: `$&` is that text, `$$` a sign alone.
    fn replacement(&mut self, by: &JsValue<'a>, replaced: &str) -> Result<ImportedText, String> {
        let text = self.text_of(by)?;
        let Some(literal) = text.literal().filter(|literal| literal.contains('$')) else {
            return Ok(text);
        };
        if literal.contains("$`") || literal.contains("$'") {
            return Err("a text with what stands beside a part of it".to_owned());
        }
        let parts: Vec<String> =
            literal.split("$$").map(|part| part.replace("$&", replaced)).collect();
        Ok(parts.join("$").into())
    }

    fn concatenated(
        &mut self,
        value: &JsValue<'a>,
        more: &[JsValue<'a>],
    ) -> Result<ImportedText, String> {
        let mut text = self.text_of(value)?;
        for part in more {
            text.append(&self.text_of(part)?);
        }
        Ok(text)
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
    } else if name == "substring" {
        let place = |value: &JsValue, or: usize| {
            value.number().map_or(or, |at| at.max(0.0) as usize).min(chars.len())
        };
        let (from, to) = (place(from, 0), place(to, chars.len()));
        [from.min(to), from.max(to)]
    } else {
        ends(chars.len(), from, to)
    };
    JsValue::text(chars.get(from..to).unwrap_or_default().iter().collect::<String>())
}

/// A whole number in a system of 2 to 36 digits.
fn in_radix(number: f64, radix: f64) -> Option<String> {
    let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
    if !is_whole || !(2.0..=36.0).contains(&radix) {
        return None;
    }
    let (radix, mut rest) = (radix as u64, number.abs() as u64);
    let mut digits = Vec::new();
    while rest > 0 || digits.is_empty() {
        digits.push(char::from_digit((rest % radix) as u32, radix as u32)?);
        rest /= radix;
    }
    if number < 0.0 {
        digits.push('-');
    }
    Some(digits.into_iter().rev().collect())
}
