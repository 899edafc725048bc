//! What two branches set comes together.

use super::super::ImportedText;
use super::branches::FollowedBranch;
use super::heap::{HeapMark, HeapObject, Slot, SlotValue};
use super::interpreter::{K6Interpreter, K6Step};
use super::value::{JsValue, K6Test};
use std::rc::Rc;

impl<'a> K6Interpreter<'a, '_> {
    pub(super) fn reapply(
        &mut self,
        held: &[(Slot, SlotValue<'a>)],
        is_meant: impl Fn(&Slot) -> bool,
    ) {
        for (slot, value) in held.iter().filter(|(slot, _)| is_meant(slot)) {
            self.heap.set(slot.clone(), value.clone());
        }
    }

    /// What both branches left in their slots comes together.
    pub(super) fn merge_slots(
        &mut self,
        test: &K6Test<'a>,
        yes: &mut FollowedBranch<'a>,
        no: &mut FollowedBranch<'a>,
        mark: HeapMark,
    ) {
        let mut slots: Vec<Slot> = Vec::new();
        for (slot, _) in yes.held.iter().chain(&no.held) {
            if mark.has(slot) && !slots.contains(slot) {
                slots.push(slot.clone());
            }
        }
        for slot in slots {
            let find = |held: &[(Slot, SlotValue<'a>)]| {
                let mut held = held.iter();
                held.find_map(|(other, value)| (*other == slot).then(|| value.clone()))
            };
            let now = self.heap.value(&slot);
            let (a, b) = (find(&yes.held).or_else(|| now.clone()), find(&no.held).or(now));
            let steps = (&mut yes.steps, &mut no.steps);
            let value = match (a, b, &slot) {
                (
                    Some(SlotValue::Variable(a)),
                    Some(SlotValue::Variable(b)),
                    Slot::Variable(_, name),
                ) => {
                    let (a, b) = (a.unwrap_or(JsValue::Undefined), b.unwrap_or(JsValue::Undefined));
                    SlotValue::Variable(Some(self.merged(test, a, b, steps.0, steps.1, name)))
                }
                (Some(SlotValue::Object(a)), Some(SlotValue::Object(b)), _) => {
                    SlotValue::Object(self.merged_objects(test, a, b, steps))
                }
                _ => continue,
            };
            self.heap.set(slot, value);
        }
    }

    fn merged_objects(
        &mut self,
        test: &K6Test<'a>,
        a: HeapObject<'a>,
        b: HeapObject<'a>,
        steps: (&mut Vec<K6Step>, &mut Vec<K6Step>),
    ) -> HeapObject<'a> {
        match (a, b) {
            (HeapObject::List(a), HeapObject::List(b)) if a.len() == b.len() => {
                let pairs = a.into_iter().zip(b);
                let merged = pairs.map(|(a, b)| self.merged(test, a, b, steps.0, steps.1, "item"));
                HeapObject::List(merged.collect())
            }
            (HeapObject::Object(a), HeapObject::Object(b)) => {
                let mut merged: Vec<(Rc<str>, JsValue<'a>)> = Vec::new();
                for name in a.iter().chain(&b).map(|(name, _)| Rc::clone(name)) {
                    if merged.iter().any(|(other, _)| *other == name) {
                        continue;
                    }
                    let find = |list: &[(Rc<str>, JsValue<'a>)]| {
                        let own = list.iter().find(|(other, _)| *other == name);
                        own.map_or(JsValue::Undefined, |(_, value)| value.clone())
                    };
                    let (a, b) = (find(&a), find(&b));
                    let lacks = |value: &JsValue| matches!(value, JsValue::Undefined);
                    if lacks(&a) != lacks(&b) {
                        self.leave_out(format!(
                            "'{name}', which an object has under a condition only: it is empty else"
                        ));
                    }
                    let value = self.merged(test, a, b, steps.0, steps.1, &name);
                    merged.push((name, value));
                }
                HeapObject::Object(merged)
            }
            _ => HeapObject::List(vec![JsValue::unknown("a list that depends on a condition")]),
        }
    }

    /// The value that is one of two by a test. Texts are set in the branches.
    pub(super) fn merged(
        &mut self,
        test: &K6Test<'a>,
        a: JsValue<'a>,
        b: JsValue<'a>,
        steps_a: &mut Vec<K6Step>,
        steps_b: &mut Vec<K6Step>,
        name: &str,
    ) -> JsValue<'a> {
        if a.same(&b) {
            return a;
        }
        let unknown = JsValue::unknown(format!("'{name}', which depends on a condition"));
        if let (Some(x), Some(y)) = (truth_value(&a), truth_value(&b)) {
            let x = K6Test::joined(vec![test.clone(), x], true);
            let y = K6Test::joined(vec![test.clone().not(), y], true);
            return JsValue::test(K6Test::joined(vec![x, y], false));
        }
        if let (JsValue::Part(x), JsValue::Part(y)) = (&a, &b)
            && x.place == y.place
        {
            return self.either_response(x, y);
        }
        match (is_nothing(&a), is_nothing(&b)) {
            (true, false) if is_object(&b) => return maybe(test.clone().not(), b),
            (false, true) if is_object(&a) => return maybe(test.clone(), a),
            _ => {}
        }
        let text = |own: &mut Self, value: &JsValue<'a>| match value {
            value if is_nothing(value) => Some(ImportedText::default()),
            value => {
                let text = own.text_of(value).ok();
                if let JsValue::Part(part) = value {
                    // It is asked for in one of the branches alone.
                    own.may_lack(part);
                }
                text
            }
        };
        let (Some(x), Some(y)) = (text(self, &a), text(self, &b)) else {
            return unknown;
        };
        let variable = self.fresh(name);
        steps_a.push(K6Step::Set(vec![(variable.clone(), x)]));
        steps_b.push(K6Step::Set(vec![(variable.clone(), y)]));
        JsValue::Session(Rc::from(variable))
    }
}

fn maybe<'a>(test: K6Test<'a>, value: JsValue<'a>) -> JsValue<'a> {
    match value {
        JsValue::Maybe(inner) => {
            let test = K6Test::joined(vec![test, inner.0.clone()], true);
            JsValue::Maybe(Rc::new((test, inner.1.clone())))
        }
        value => JsValue::Maybe(Rc::new((test, value))),
    }
}

fn is_nothing(value: &JsValue) -> bool {
    matches!(value, JsValue::Undefined | JsValue::Null | JsValue::Bool(false))
}

/// Whether a value is no text and no number.
fn is_object(value: &JsValue) -> bool {
    use super::value::PartPlace;
    match value {
        JsValue::Heap(_) | JsValue::Function(_) | JsValue::Maybe(_) | JsValue::Record(_) => true,
        JsValue::Part(part) => matches!(part.place, PartPlace::Whole),
        _ => false,
    }
}

fn truth_value<'a>(value: &JsValue<'a>) -> Option<K6Test<'a>> {
    match value {
        JsValue::Bool(is) => Some(K6Test::Known(*is)),
        JsValue::Test(test) => Some((**test).clone()),
        _ => None,
    }
}
