//! Methods of lists.

use super::calls::argument;
use super::heap::{HeapObject, Slot, SlotValue};
use super::interpreter::{K6Flow, K6Interpreter};
use super::loops::{LoopElements, always};
use super::value::{FunctionCode, JsValue, K6Test};
use oxc_ast::ast::BinaryOperator;

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
                self.repeat(&mut always, elements, &mut body, false);
                JsValue::Undefined
            }
            "join" | "toString" => {
                let text = self.joined_items(&items, first.literal().unwrap_or(","));
                self.text_value(text)
            }
            "includes" => {
                let equal = BinaryOperator::StrictEquality;
                let tests = items.into_iter();
                let tests = tests.map(|item| self.compare(first.clone(), equal, item)).collect();
                JsValue::test(K6Test::joined(tests, false))
            }
            "indexOf" => {
                let at = items.iter().position(|item| item.same(&first));
                JsValue::Number(at.map_or(-1.0, |at| at as f64))
            }
            "keys" => self.keys(list),
            "values" => list.clone(),
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
                all.extend(self.flat(arguments));
                all.truncate(LIST_MAX);
                self.heap.list(all)
            }
            "flat" => {
                let all = self.flat(&items);
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
            "map" | "flatMap" => self.mapped(items.to_vec(), function),
            "filter" | "find" | "some" | "every" | "findIndex" => {
                self.searched(items, function, name)
            }
            "reduce" => {
                let list = self.heap.list(items.to_vec());
                let mut items = items.iter().cloned().enumerate();
                let begin = arguments.get(1).cloned().or_else(|| Some(items.next()?.1));
                items.fold(begin.unwrap_or(JsValue::Undefined), |sum, (at, item)| {
                    let at = JsValue::Number(at as f64);
                    self.call(function, vec![sum, item, at, list.clone()])
                })
            }
            _ => return None,
        })
    }

    /// A list of what a function makes of each item.
    pub(super) fn mapped(
        &mut self,
        items: Vec<JsValue<'a>>,
        function: &JsValue<'a>,
    ) -> JsValue<'a> {
        let items = items.into_iter().enumerate();
        let mapped =
            items.map(|(at, item)| self.call(function, vec![item, JsValue::Number(at as f64)]));
        let mapped = mapped.collect();
        self.heap.list(mapped)
    }

    /// The items with those of lists in their place.
    fn flat(&self, items: &[JsValue<'a>]) -> Vec<JsValue<'a>> {
        let item = |item| self.heap.items(item).unwrap_or(std::slice::from_ref(item));
        items.iter().flat_map(item).cloned().collect()
    }

    fn searched(
        &mut self,
        items: &[JsValue<'a>],
        predicate: &JsValue<'a>,
        name: &str,
    ) -> JsValue<'a> {
        let list = self.heap.list(items.to_vec());
        let tests = items.iter().enumerate().map(|(at, item)| {
            let at = JsValue::Number(at as f64);
            self.asked_with(predicate, vec![item.clone(), at, list.clone()])
        });
        let tests: Vec<K6Test<'a>> = tests.collect();
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
            "shift" if items.is_empty() => JsValue::Undefined,
            "shift" => items.remove(0),
            "reverse" => {
                items.reverse();
                list.clone()
            }
            "fill" => {
                items.fill(argument(arguments, 0));
                list.clone()
            }
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
