//! Methods of texts and lists.

use super::super::{ImportedRelation, ImportedText};
use super::builtins::fixed;
use super::calls::{Arguments, argument};
use super::heap::{HeapObject, Slot, SlotValue};
use super::interpreter::{K6Flow, K6Interpreter};
use super::loops::LoopElements;
use super::value::{JsValue, K6Test};

/// The longest list.
const LIST_MAX: usize = 20_000;

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
        match (name, other) {
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

    fn call_list(
        &mut self,
        list: &JsValue<'a>,
        name: &str,
        arguments: &[JsValue<'a>],
    ) -> JsValue<'a> {
        let items = self.heap.items(list).unwrap_or_default().to_vec();
        self.burn(items.len());
        let first = argument(arguments, 0);
        let calls = matches!(first, JsValue::Function(_) | JsValue::Builtin(_));
        match name {
            "push" | "unshift" | "pop" | "shift" | "reverse" | "sort" | "fill" | "splice" => {
                self.change_list(list, items, name, arguments)
            }
            "forEach" => {
                let elements = LoopElements::List(items, parameter_name(&first));
                let mut index = 0.0;
                let mut body = |own: &mut Self, element: JsValue<'a>| {
                    let at = match element {
                        JsValue::Session(_) => JsValue::unknown("the place in a list"),
                        _ => JsValue::Number(index),
                    };
                    index += 1.0;
                    own.call(&first, vec![element, at]);
                    if own.has_thrown { K6Flow::Throw } else { K6Flow::Normal }
                };
                self.repeat(None, elements, &mut body, false);
                JsValue::Undefined
            }
            "map" | "flatMap" if calls => {
                let mapped = items.into_iter().enumerate();
                let mapped = mapped
                    .map(|(at, item)| self.call(&first, vec![item, JsValue::Number(at as f64)]));
                let mapped = mapped.collect();
                self.heap.list(mapped)
            }
            "filter" | "find" | "some" | "every" | "findIndex" if calls => {
                self.searched(&items, &first, name)
            }
            "reduce" if calls => {
                let mut items = items.into_iter();
                let begin = arguments.get(1).cloned().or_else(|| items.next());
                items.fold(begin.unwrap_or(JsValue::Undefined), |sum, item| {
                    self.call(&first, vec![sum, item])
                })
            }
            "join" => self.joined_items(&items, first.literal().unwrap_or(",")),
            "includes" => {
                let tests = items.into_iter().map(|item| {
                    let equal = oxc_ast::ast::BinaryOperator::StrictEquality;
                    self.compare(first.clone(), equal, item)
                });
                let tests = tests.collect();
                JsValue::test(K6Test::joined(tests, false))
            }
            "indexOf" => {
                let at = items.iter().position(|item| item.same(&first));
                JsValue::Number(at.map_or(-1.0, |at| at as f64))
            }
            "slice" => {
                let [from, to] = ends(items.len(), &first, &argument(arguments, 1));
                let part = items.get(from..to).unwrap_or_default().to_vec();
                self.heap.list(part)
            }
            "concat" => {
                let mut all = items;
                for more in arguments {
                    match self.heap.items(more) {
                        Some(more) => all.extend_from_slice(more),
                        None => all.push(more.clone()),
                    }
                }
                all.truncate(LIST_MAX);
                self.heap.list(all)
            }
            "flat" => {
                let mut all = Vec::new();
                for item in items {
                    match self.heap.items(&item) {
                        Some(inner) => all.extend_from_slice(inner),
                        None => all.push(item),
                    }
                }
                self.heap.list(all)
            }
            "at" => {
                let at = first.number().unwrap_or(0.0);
                let at = if at < 0.0 { items.len() as f64 + at } else { at };
                items.get(at as usize).cloned().unwrap_or(JsValue::Undefined)
            }
            "keys" => self.keys(list),
            "entries" => {
                let pairs = items.into_iter().enumerate();
                let pairs: Vec<_> = pairs
                    .map(|(at, item)| self.heap.list(vec![JsValue::Number(at as f64), item]))
                    .collect();
                self.heap.list(pairs)
            }
            "values" => list.clone(),
            "toString" => self.joined_items(&items, ","),
            _ => JsValue::unknown(format!("what '{name}' makes of a list")),
        }
    }

    fn joined_items(&mut self, items: &[JsValue<'a>], sign: &str) -> JsValue<'a> {
        let mut text = ImportedText::default();
        for (at, item) in items.iter().enumerate() {
            text.push(if at > 0 { sign } else { "" });
            match self.text_of(item) {
                Ok(part) => text.append(&part),
                Err(what) => return JsValue::unknown(what),
            }
        }
        self.bounded(text)
    }

    fn searched(
        &mut self,
        items: &[JsValue<'a>],
        predicate: &JsValue<'a>,
        name: &str,
    ) -> JsValue<'a> {
        let mut tests = Vec::new();
        for item in items {
            tests.push(self.asked(predicate, item.clone()));
        }
        if name == "some" || name == "every" {
            return JsValue::test(K6Test::joined(tests, name == "every"));
        }
        let mut found = Vec::new();
        for (item, test) in items.iter().zip(tests) {
            match test {
                K6Test::Known(true) => found.push(item.clone()),
                K6Test::Known(false) => {}
                _ => return JsValue::unknown("elements that are known only at run time"),
            }
        }
        match name {
            "find" => found.into_iter().next().unwrap_or(JsValue::Undefined),
            "filter" => self.heap.list(found),
            _ => JsValue::unknown("the place of an element"),
        }
    }

    fn change_list(
        &mut self,
        list: &JsValue<'a>,
        mut items: Vec<JsValue<'a>>,
        name: &str,
        arguments: &[JsValue<'a>],
    ) -> JsValue<'a> {
        let JsValue::Heap(at) = list else {
            return JsValue::Undefined;
        };
        let given = match name {
            "push" if items.len() + arguments.len() <= LIST_MAX => {
                items.extend_from_slice(arguments);
                JsValue::Number(items.len() as f64)
            }
            "unshift" => {
                items.splice(0..0, arguments.iter().cloned());
                JsValue::Number(items.len() as f64)
            }
            "pop" => items.pop().unwrap_or(JsValue::Undefined),
            "shift" if !items.is_empty() => items.remove(0),
            "reverse" => {
                items.reverse();
                list.clone()
            }
            "fill" => {
                items.fill(argument(arguments, 0));
                list.clone()
            }
            "shift" => JsValue::Undefined,
            _ => {
                self.leave_out(format!("'{name}' of a list"));
                return JsValue::unknown(format!("what '{name}' gives"));
            }
        };
        self.heap.set(Slot::Object(*at), SlotValue::Object(HeapObject::List(items)));
        given
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

/// The first parameter of a function, as a name for what it gets.
fn parameter_name(function: &JsValue) -> String {
    use super::value::FunctionCode;
    let JsValue::Function(function) = function else {
        return "item".to_owned();
    };
    let parameters = match function.code {
        FunctionCode::Arrow(arrow) => &arrow.params,
        FunctionCode::Function(function) => &function.params,
    };
    let first = parameters.items.first().and_then(|p| p.pattern.get_identifier_name());
    first.map_or("item".to_owned(), |name| name.to_string())
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

/// Where a part of something of this length begins and ends; negative ends count from its end.
fn ends(length: usize, from: &JsValue, to: &JsValue) -> [usize; 2] {
    let place = |value: &JsValue, or: usize| match value.number() {
        Some(at) if at < 0.0 => (length as f64 + at).max(0.0) as usize,
        Some(at) => (at as usize).min(length),
        None => or,
    };
    let (from, to) = (place(from, 0), place(to, length));
    [from.min(to), to]
}
