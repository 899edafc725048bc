//! Methods of lists.

use super::super::ImportedText;
use super::calls::argument;
use super::heap::{HeapObject, Slot, SlotValue};
use super::interpreter::{K6Flow, K6Interpreter};
use super::loops::LoopElements;
use super::value::{JsValue, K6Test};

/// The longest list.
const LIST_MAX: usize = 20_000;

impl<'a> K6Interpreter<'a, '_> {
    pub(super) fn call_list(
        &mut self,
        list: &JsValue<'a>,
        name: &str,
        arguments: &[JsValue<'a>],
    ) -> JsValue<'a> {
        let items = self.heap.items(list).unwrap_or_default().to_vec();
        self.burn(items.len());
        let first = argument(arguments, 0);
        if matches!(first, JsValue::Function(_) | JsValue::Builtin(_))
            && let Some(value) = self.call_for_items(&items, &first, name, arguments)
        {
            return value;
        }
        match name {
            "push" | "unshift" | "pop" | "shift" | "reverse" | "sort" | "fill" | "splice" => {
                self.change_list(list, items, name, arguments)
            }
            "forEach" => {
                let elements = LoopElements::List(items, parameter_name(&first));
                let mut next = 0.0;
                let mut body = |own: &mut Self, element: JsValue<'a>| {
                    let at = match element {
                        JsValue::Session(_) => {
                            next = 0.0;
                            JsValue::unknown("the place in a list")
                        }
                        _ => {
                            next += 1.0;
                            JsValue::Number(next - 1.0)
                        }
                    };
                    own.call(&first, vec![element, at]);
                    if own.has_thrown { K6Flow::Throw } else { K6Flow::Normal }
                };
                self.repeat(None, elements, &mut body, false);
                JsValue::Undefined
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
            "keys" => self.keys(list),
            "values" => list.clone(),
            "toString" => self.joined_items(&items, ","),
            _ => self.other_list(items, name, arguments),
        }
    }

    /// A method that makes another list, or gives one of the items.
    fn other_list(
        &mut self,
        items: Vec<JsValue<'a>>,
        name: &str,
        arguments: &[JsValue<'a>],
    ) -> JsValue<'a> {
        let first = argument(arguments, 0);
        match name {
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
            "entries" => {
                let pairs = items.into_iter().enumerate();
                let pairs: Vec<_> = pairs
                    .map(|(at, item)| self.heap.list(vec![JsValue::Number(at as f64), item]))
                    .collect();
                self.heap.list(pairs)
            }
            _ => JsValue::unknown(format!("what '{name}' makes of a list")),
        }
    }

    /// A method that calls a function for each item.
    fn call_for_items(
        &mut self,
        items: &[JsValue<'a>],
        function: &JsValue<'a>,
        name: &str,
        arguments: &[JsValue<'a>],
    ) -> Option<JsValue<'a>> {
        Some(match name {
            "map" | "flatMap" => {
                let mapped = items.iter().cloned().enumerate();
                let mapped = mapped
                    .map(|(at, item)| self.call(function, vec![item, JsValue::Number(at as f64)]));
                let mapped = mapped.collect();
                self.heap.list(mapped)
            }
            "filter" | "find" | "some" | "every" | "findIndex" => {
                self.searched(items, function, name)
            }
            "reduce" => {
                let mut items = items.iter().cloned();
                let begin = arguments.get(1).cloned().or_else(|| items.next());
                items.fold(begin.unwrap_or(JsValue::Undefined), |sum, item| {
                    self.call(function, vec![sum, item])
                })
            }
            _ => return None,
        })
    }

    pub(super) fn joined_items(&mut self, items: &[JsValue<'a>], sign: &str) -> JsValue<'a> {
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

    pub(super) fn searched(
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

    pub(super) fn change_list(
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
}

/// The first parameter of a function, as a name for what it gets.
pub(super) fn parameter_name(function: &JsValue) -> String {
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

/// Where a part of something of this length begins and ends; negative ends count from its end.
pub(super) fn ends(length: usize, from: &JsValue, to: &JsValue) -> [usize; 2] {
    let place = |value: &JsValue, or: usize| match value.number() {
        Some(at) if at < 0.0 => (length as f64 + at).max(0.0) as usize,
        Some(at) => (at as usize).min(length),
        None => or,
    };
    let (from, to) = (place(from, 0), place(to, length));
    [from.min(to), to]
}
