//! Expressions of a script whose values stand in it.

use super::tokens::{JsTemplatePart, JsToken, JsTokenKind};
use knee_load::percent;
use std::collections::HashMap;

/// The deepest nesting of an expression.
const DEPTH_MAX: usize = 50;
/// The longest text that is put together.
const TEXT_MAX: usize = 1 << 20;

/// A value that stands in the script.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JsValue {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<JsValue>),
    Object(Vec<(String, JsValue)>),
}

impl JsValue {
    /// What it costs to have it once more.
    fn size(&self) -> usize {
        const BYTES: usize = 8;
        match self {
            JsValue::Null | JsValue::Bool(_) | JsValue::Number(_) => 1,
            JsValue::Text(text) => 1 + text.len() / BYTES,
            JsValue::List(list) => 1 + list.iter().map(JsValue::size).sum::<usize>(),
            JsValue::Object(parts) => {
                let size =
                    |(name, value): &(String, JsValue)| 1 + name.len() / BYTES + value.size();
                1 + parts.iter().map(size).sum::<usize>()
            }
        }
    }

    /// A part of an object.
    pub(super) fn get(&self, name: &str) -> Option<&JsValue> {
        match self {
            JsValue::Object(parts) => parts.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v),
            _ => None,
        }
    }

    /// As it is in the middle of a text.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            JsValue::Text(text) => Some(text.clone()),
            JsValue::Number(number) => Some(number.to_string()),
            JsValue::Bool(value) => Some(value.to_string()),
            JsValue::Null | JsValue::List(_) | JsValue::Object(_) => None,
        }
    }

    /// What `JSON.stringify` makes of it.
    pub(super) fn json(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            JsValue::Null => "null".to_owned(),
            JsValue::Bool(value) => value.to_string(),
            JsValue::Number(number) => number.to_string(),
            JsValue::Text(text) => quoted(text),
            JsValue::List(list) => {
                let parts: Vec<String> = list.iter().map(JsValue::json).collect();
                format!("[{}]", parts.join(","))
            }
            JsValue::Object(parts) => {
                let part = |(name, value): &(String, JsValue)| {
                    format!("{}:{}", quoted(name), value.json())
                };
                let parts: Vec<String> = parts.iter().map(part).collect();
                format!("{{{}}}", parts.join(","))
            }
        }
    }

    /// What k6 sends of an object as a body: a form.
    pub(super) fn form(&self) -> Option<Vec<String>> {
        let JsValue::Object(parts) = self else {
            return None;
        };
        let pair = |(name, value): &(String, JsValue)| Some(percent::pair(name, &value.text()?));
        parts.iter().map(pair).collect()
    }
}

/// Reads expressions; names are those of constants before.
pub(super) struct JsReader<'a> {
    pub(super) tokens: &'a [JsToken],
    pub(super) names: HashMap<String, JsValue>,
    /// Tokens that may still be read. Bounds the work on any script.
    pub(super) fuel: usize,
}

impl JsReader<'_> {
    pub(super) fn sign(&self, at: usize) -> Option<char> {
        match self.tokens.get(at)?.kind {
            JsTokenKind::Sign(c) => Some(c),
            _ => None,
        }
    }

    pub(super) fn name(&self, at: usize) -> Option<&str> {
        match &self.tokens.get(at)?.kind {
            JsTokenKind::Name(name) => Some(name),
            _ => None,
        }
    }

    fn burn(&mut self) -> Option<()> {
        self.fuel = self.fuel.checked_sub(1)?;
        Some(())
    }

    /// The end of what is in the brackets that open at `at`, after them.
    pub(super) fn behind_brackets(&mut self, at: usize) -> usize {
        let mut depth = 0_usize;
        for place in at..self.tokens.len() {
            if self.burn().is_none() {
                break;
            }
            match self.sign(place) {
                Some('(' | '[' | '{') => depth += 1,
                Some(')' | ']' | '}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return place + 1;
                    }
                }
                _ => {}
            }
        }
        self.tokens.len()
    }

    /// The arguments of a call whose bracket opens at `at`: `None` for what is not literal.
    pub(super) fn arguments(&mut self, at: usize) -> Vec<Option<JsValue>> {
        let (mut all, mut place) = (Vec::new(), at + 1);
        while place < self.tokens.len() && all.len() < 8 {
            if self.sign(place) == Some(')') {
                break;
            }
            let value = self.value(place, 0);
            let ends = |at: usize| matches!(self.sign(at), Some(',' | ')'));
            let value = value.filter(|(_, end)| ends(*end));
            place = match &value {
                Some((_, end)) => *end,
                None => self.behind_value(place),
            };
            all.push(value.map(|(value, _)| value));
            if self.sign(place) != Some(',') {
                break;
            }
            place += 1;
        }
        all
    }

    /// The end of an expression, whatever it is.
    fn behind_value(&mut self, mut at: usize) -> usize {
        while at < self.tokens.len() && self.burn().is_some() {
            match self.sign(at) {
                Some('(' | '[' | '{') => at = self.behind_brackets(at),
                Some(',' | ')' | ']' | '}' | ';') => return at,
                _ => at += 1,
            }
        }
        self.tokens.len()
    }

    /// The value of the expression that begins at `at`, and where it ends.
    pub(super) fn value(&mut self, at: usize, depth: usize) -> Option<(JsValue, usize)> {
        let (mut value, mut at) = match self.operand(at, depth) {
            Some(found) => found,
            None => {
                // `__ENV.HOST || 'http://…'`: the second is what it is without an environment.
                let end = self.behind_environment(at)?;
                self.operand(end, depth)?
            }
        };
        loop {
            self.burn()?;
            match (self.sign(at), self.sign(at + 1)) {
                (Some('+'), _) => {
                    let (right, end) = self.operand(at + 1, depth)?;
                    value = match (&value, &right) {
                        (JsValue::Number(a), JsValue::Number(b)) => JsValue::Number(a + b),
                        (a, b) => {
                            let text = a.text()? + &b.text()?;
                            JsValue::Text(Some(text).filter(|text| text.len() <= TEXT_MAX)?)
                        }
                    };
                    at = end;
                }
                (Some('*'), _) => {
                    let (right, end) = self.operand(at + 1, depth)?;
                    let (JsValue::Number(a), JsValue::Number(b)) = (&value, right) else {
                        return None;
                    };
                    (value, at) = (JsValue::Number(a * b), end);
                }
                _ => return Some((value, at)),
            }
        }
    }

    /// What follows `__ENV.NAME ||`.
    fn behind_environment(&self, at: usize) -> Option<usize> {
        let is_env = self.name(at) == Some("__ENV") && self.sign(at + 1) == Some('.');
        let is_or = self.sign(at + 3) == Some('|') && self.sign(at + 4) == Some('|');
        (is_env && is_or).then_some(at + 5)
    }

    fn operand(&mut self, at: usize, depth: usize) -> Option<(JsValue, usize)> {
        self.burn()?;
        if depth > DEPTH_MAX {
            return None;
        }
        let (mut value, mut end) = match self.tokens.get(at)?.kind.clone() {
            JsTokenKind::Number(number) => (JsValue::Number(number), at + 1),
            JsTokenKind::Text(text) => (JsValue::Text(text), at + 1),
            JsTokenKind::Template(parts) => (JsValue::Text(self.template(&parts?)?), at + 1),
            JsTokenKind::Sign('-') => match self.operand(at + 1, depth + 1)? {
                (JsValue::Number(number), end) => (JsValue::Number(-number), end),
                _ => return None,
            },
            JsTokenKind::Sign('(') => {
                let (value, end) = self.value(at + 1, depth + 1)?;
                (value, (self.sign(end) == Some(')')).then_some(end + 1)?)
            }
            JsTokenKind::Sign('[') => self.list(at + 1, depth)?,
            JsTokenKind::Sign('{') => self.object(at + 1, depth)?,
            JsTokenKind::Name(name) => self.named(&name, at, depth)?,
            JsTokenKind::Sign(_) => return None,
        };
        while self.sign(end) == Some('.') {
            value = value.get(self.name(end + 1)?)?.clone();
            end += 2;
        }
        // A call, an element, an arrow, a comparison, …: no value that stands there.
        let goes_on =
            matches!(self.sign(end), Some('(' | '[' | '=' | '?' | '/' | '%' | '<' | '>' | '&'));
        (!goes_on).then_some((value, end))
    }

    fn template(&mut self, parts: &[JsTemplatePart]) -> Option<String> {
        let mut text = String::new();
        for part in parts {
            self.burn()?;
            match part {
                JsTemplatePart::Text(part) => text.push_str(part),
                JsTemplatePart::Name(name) => text.push_str(&self.names.get(name)?.text()?),
            }
            if text.len() > TEXT_MAX {
                return None;
            }
        }
        Some(text)
    }

    fn named(&mut self, name: &str, at: usize, depth: usize) -> Option<(JsValue, usize)> {
        let value = match name {
            "true" => JsValue::Bool(true),
            "false" => JsValue::Bool(false),
            "null" | "undefined" => JsValue::Null,
            "JSON" => {
                let is_it =
                    self.name(at + 2) == Some("stringify") && self.sign(at + 3) == Some('(');
                let (value, end) = self.value(at + 4, depth + 1).filter(|_| is_it)?;
                let end = (self.sign(end) == Some(')')).then_some(end + 1)?;
                let json = Some(value.json()).filter(|json| json.len() <= TEXT_MAX)?;
                return Some((JsValue::Text(json), end));
            }
            name => {
                let value = self.names.get(name)?;
                self.fuel = self.fuel.checked_sub(value.size())?;
                value.clone()
            }
        };
        Some((value, at + 1))
    }

    fn list(&mut self, mut at: usize, depth: usize) -> Option<(JsValue, usize)> {
        let mut list = Vec::new();
        loop {
            if self.sign(at) == Some(']') {
                return Some((JsValue::List(list), at + 1));
            }
            let (value, end) = self.value(at, depth + 1)?;
            list.push(value);
            at = match self.sign(end)? {
                ',' => end + 1,
                ']' => end,
                _ => return None,
            };
        }
    }

    fn object(&mut self, mut at: usize, depth: usize) -> Option<(JsValue, usize)> {
        let mut parts: Vec<(String, JsValue)> = Vec::new();
        loop {
            if self.sign(at) == Some('}') {
                return Some((JsValue::Object(parts), at + 1));
            }
            let is_spread = (at..at + 3).all(|at| self.sign(at) == Some('.'));
            let end = if is_spread {
                let (value, end) = self.operand(at + 3, depth + 1)?;
                let JsValue::Object(more) = value else {
                    return None;
                };
                parts.extend(more);
                end
            } else {
                let key = match &self.tokens.get(at)?.kind {
                    JsTokenKind::Name(name) | JsTokenKind::Text(name) => name.clone(),
                    JsTokenKind::Number(number) => number.to_string(),
                    _ => return None,
                };
                let (value, end) = match self.sign(at + 1)? {
                    ':' => self.value(at + 2, depth + 1)?,
                    // `{name}` is short for `{name: name}`.
                    ',' | '}' => self.named(&key, at, depth)?,
                    _ => return None,
                };
                parts.retain(|(other, _)| *other != key);
                parts.push((key, value));
                end
            };
            at = match self.sign(end)? {
                ',' => end + 1,
                '}' => end,
                _ => return None,
            };
        }
    }
}
