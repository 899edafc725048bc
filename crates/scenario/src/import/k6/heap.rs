//! Variables and objects, with what they were before so that a branch can be undone.

use super::value::JsValue;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// An object that several variables may share.
#[derive(Clone, Debug)]
pub(super) enum HeapObject<'a> {
    List(Vec<JsValue<'a>>),
    /// Entries in their order, no name twice.
    Object(Vec<(Rc<str>, JsValue<'a>)>),
}

/// A variable or an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    Variable(usize, Rc<str>),
    Object(usize),
}

/// What a slot holds.
#[derive(Clone, Debug)]
pub(super) enum SlotValue<'a> {
    Variable(Option<JsValue<'a>>),
    Object(HeapObject<'a>),
}

#[derive(Debug, Default)]
struct JsScope<'a> {
    parent: Option<usize>,
    variables: HashMap<Rc<str>, JsValue<'a>>,
}

/// All variables and objects.
#[derive(Debug, Default)]
pub(super) struct Heap<'a> {
    scopes: Vec<JsScope<'a>>,
    objects: Vec<HeapObject<'a>>,
    /// What was before each change, oldest first.
    trail: Vec<(Slot, SlotValue<'a>)>,
}

impl<'a> Heap<'a> {
    /// A new scope inside another.
    pub(super) fn scope(&mut self, parent: Option<usize>) -> usize {
        self.scopes.push(JsScope { parent, variables: HashMap::new() });
        self.scopes.len() - 1
    }

    /// Declares a variable in this scope.
    pub(super) fn declare(&mut self, scope: usize, name: &str, value: JsValue<'a>) {
        self.set(Slot::Variable(scope, Rc::from(name)), SlotValue::Variable(Some(value)));
    }

    /// The scope that has a variable, from this one outwards.
    pub(super) fn scope_of(&self, mut scope: usize, name: &str) -> Option<usize> {
        loop {
            let own = self.scopes.get(scope)?;
            if own.variables.contains_key(name) {
                return Some(scope);
            }
            scope = own.parent?;
        }
    }

    /// The value of a variable, from this scope outwards.
    pub(super) fn variable(&self, scope: usize, name: &str) -> Option<&JsValue<'a>> {
        let scope = self.scope_of(scope, name)?;
        self.scopes.get(scope)?.variables.get(name)
    }

    /// A new list.
    pub(super) fn list(&mut self, items: Vec<JsValue<'a>>) -> JsValue<'a> {
        self.allocate(HeapObject::List(items))
    }

    /// A new object.
    pub(super) fn object(&mut self, entries: Vec<(Rc<str>, JsValue<'a>)>) -> JsValue<'a> {
        self.allocate(HeapObject::Object(entries))
    }

    fn allocate(&mut self, object: HeapObject<'a>) -> JsValue<'a> {
        self.objects.push(object);
        JsValue::Heap(self.objects.len() - 1)
    }

    pub(super) fn get(&self, object: usize) -> Option<&HeapObject<'a>> {
        self.objects.get(object)
    }

    /// The items of a list.
    pub(super) fn items(&self, value: &JsValue<'a>) -> Option<&[JsValue<'a>]> {
        match value {
            JsValue::Heap(at) => match self.get(*at)? {
                HeapObject::List(items) => Some(items),
                HeapObject::Object(_) => None,
            },
            _ => None,
        }
    }

    /// The entries of an object.
    pub(super) fn entries(&self, value: &JsValue<'a>) -> Option<&[(Rc<str>, JsValue<'a>)]> {
        match value {
            JsValue::Heap(at) => match self.get(*at)? {
                HeapObject::Object(entries) => Some(entries),
                HeapObject::List(_) => None,
            },
            _ => None,
        }
    }

    /// An entry of an object.
    pub(super) fn entry(&self, value: &JsValue<'a>, name: &str) -> Option<&JsValue<'a>> {
        let entries = self.entries(value)?;
        entries.iter().find_map(|(key, value)| (&**key == name).then_some(value))
    }

    /// Sets an entry of an object or an item of a list.
    pub(super) fn set_entry(&mut self, object: usize, name: &str, value: JsValue<'a>) {
        let Some(mut changed) = self.get(object).cloned() else {
            return;
        };
        match &mut changed {
            HeapObject::Object(entries) => {
                match entries.iter_mut().find(|(key, _)| &**key == name) {
                    Some((_, old)) => *old = value,
                    None => entries.push((Rc::from(name), value)),
                }
            }
            HeapObject::List(items) => match name.parse::<usize>() {
                Ok(at) if at < items.len() => items[at] = value,
                Ok(at) if at == items.len() => items.push(value),
                _ => return,
            },
        }
        self.set(Slot::Object(object), SlotValue::Object(changed));
    }

    /// Puts another value into a slot.
    pub(super) fn set(&mut self, slot: Slot, value: SlotValue<'a>) {
        let old = self.put(&slot, value);
        self.trail.push((slot, old));
    }

    fn put(&mut self, slot: &Slot, value: SlotValue<'a>) -> SlotValue<'a> {
        match (slot, value) {
            (Slot::Variable(scope, name), SlotValue::Variable(value)) => {
                let variables = self.scopes.get_mut(*scope).map(|scope| &mut scope.variables);
                SlotValue::Variable(variables.and_then(|variables| match value {
                    Some(value) => variables.insert(Rc::clone(name), value),
                    None => variables.remove(name),
                }))
            }
            (Slot::Object(at), SlotValue::Object(object)) => match self.objects.get_mut(*at) {
                Some(old) => SlotValue::Object(std::mem::replace(old, object)),
                None => SlotValue::Object(object),
            },
            (_, value) => value,
        }
    }

    /// What a slot holds now.
    pub(super) fn value(&self, slot: &Slot) -> Option<SlotValue<'a>> {
        match slot {
            Slot::Variable(scope, name) => {
                let variables = &self.scopes.get(*scope)?.variables;
                Some(SlotValue::Variable(variables.get(name).cloned()))
            }
            Slot::Object(at) => self.get(*at).cloned().map(SlotValue::Object),
        }
    }

    /// A point that can be gone back to.
    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    /// The number of scopes and objects so far: later ones have higher numbers.
    pub(super) fn extent(&self) -> (usize, usize) {
        (self.scopes.len(), self.objects.len())
    }

    /// The slots that changed since a point, each once, in their order.
    pub(super) fn changed(&self, mark: usize) -> Vec<Slot> {
        let mut seen = HashSet::new();
        let slots = self.trail.iter().skip(mark).map(|(slot, _)| slot);
        slots.filter(|slot| seen.insert(*slot)).cloned().collect()
    }

    /// Goes back to a point. Returns what the changed slots held until now.
    pub(super) fn undo(&mut self, mark: usize) -> Vec<(Slot, SlotValue<'a>)> {
        let slots = self.changed(mark);
        let held = slots.into_iter().filter_map(|slot| {
            let value = self.value(&slot)?;
            Some((slot, value))
        });
        let held = held.collect();
        while self.trail.len() > mark {
            if let Some((slot, old)) = self.trail.pop() {
                self.put(&slot, old);
            }
        }
        held
    }
}
