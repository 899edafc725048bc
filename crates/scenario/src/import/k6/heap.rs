//! Variables and objects, with what they were before so that a branch can be undone.

use super::value::JsValue;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Name under which an object has its class. A script's own entry of this name holds no class.
const CLASS: &str = "class ";

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

/// A point that can be gone back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeapMark {
    changes: usize,
    scopes: usize,
    objects: usize,
}

impl HeapMark {
    /// Whether a slot was there at this point: later ones have higher numbers.
    pub(super) fn has(self, slot: &Slot) -> bool {
        match slot {
            Slot::Variable(scope, _) => *scope < self.scopes,
            Slot::Object(object) => *object < self.objects,
        }
    }
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
        self.allocate(HeapObject::Object(unique(entries)))
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
        let own = usize::from(self.class(value).is_some());
        Some(&self.all_entries(value)?[own..])
    }

    fn all_entries(&self, value: &JsValue<'a>) -> Option<&[(Rc<str>, JsValue<'a>)]> {
        match value {
            JsValue::Heap(at) => match self.get(*at)? {
                HeapObject::Object(entries) => Some(entries),
                HeapObject::List(_) => None,
            },
            _ => None,
        }
    }

    /// A new object of a class, which stands before its entries and is none of them.
    pub(super) fn object_of(&mut self, class: JsValue<'a>) -> JsValue<'a> {
        self.object(vec![(Rc::from(CLASS), class)])
    }

    /// The class of an object.
    pub(super) fn class(&self, value: &JsValue<'a>) -> Option<&JsValue<'a>> {
        let (name, class) = self.all_entries(value)?.first()?;
        (&**name == CLASS && matches!(class, JsValue::Class(..))).then_some(class)
    }

    /// Whether a variable or an object holds a value that has this variable of the session.
    pub(super) fn holds(&self, variable: &str) -> bool {
        let has = |value: &JsValue<'a>| value.has_variable(variable);
        let in_object = |object: &HeapObject<'a>| match object {
            HeapObject::List(items) => items.iter().any(has),
            HeapObject::Object(entries) => entries.iter().any(|(_, value)| has(value)),
        };
        self.scopes.iter().any(|scope| scope.variables.values().any(has))
            || self.objects.iter().any(in_object)
    }

    /// How many scopes and objects there are.
    pub(super) fn size(&self) -> usize {
        self.scopes.len() + self.objects.len()
    }

    /// An entry of an object.
    pub(super) fn entry(&self, value: &JsValue<'a>, name: &str) -> Option<&JsValue<'a>> {
        let entries = self.entries(value)?;
        entries.iter().find_map(|(key, value)| (&**key == name).then_some(value))
    }

    /// How many entries or items there are, which a change copies.
    pub(super) fn length(&self, object: usize) -> usize {
        match self.get(object) {
            Some(HeapObject::List(items)) => items.len(),
            Some(HeapObject::Object(entries)) => entries.len(),
            None => 0,
        }
    }

    /// Sets entries of an object or items of a list.
    pub(super) fn set_entries(&mut self, object: usize, more: Vec<(Rc<str>, JsValue<'a>)>) {
        let Some(mut changed) = self.get(object).cloned() else {
            return;
        };
        match &mut changed {
            HeapObject::Object(entries) => {
                entries.extend(more);
                *entries = unique(std::mem::take(entries));
            }
            HeapObject::List(items) => {
                for (name, value) in more {
                    match name.parse::<usize>() {
                        Ok(at) if at < items.len() => items[at] = value,
                        Ok(at) if at == items.len() => items.push(value),
                        _ => return,
                    }
                }
            }
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

    /// The point that is reached now.
    pub(super) fn mark(&self) -> HeapMark {
        HeapMark {
            changes: self.trail.len(),
            scopes: self.scopes.len(),
            objects: self.objects.len(),
        }
    }

    /// Whether a slot changed since a point.
    pub(super) fn has_changed(&self, mark: HeapMark) -> bool {
        self.trail.len() > mark.changes
    }

    /// The slots that changed since a point, each once, in their order.
    pub(super) fn changed(&self, mark: HeapMark) -> Vec<Slot> {
        let mut seen = HashSet::new();
        let slots = self.trail.iter().skip(mark.changes).map(|(slot, _)| slot);
        slots.filter(|slot| seen.insert(*slot)).cloned().collect()
    }

    /// Goes back to a point. Returns what the changed slots held until now.
    pub(super) fn undo(&mut self, mark: HeapMark) -> Vec<(Slot, SlotValue<'a>)> {
        let slots = self.changed(mark).into_iter();
        let held = slots.filter_map(|slot| self.value(&slot).map(|value| (slot, value)));
        let held = held.collect();
        while self.has_changed(mark) {
            if let Some((slot, old)) = self.trail.pop() {
                self.put(&slot, old);
            }
        }
        held
    }
}

/// Of entries with one name the last is kept, at the place of the first.
fn unique<'a>(entries: Vec<(Rc<str>, JsValue<'a>)>) -> Vec<(Rc<str>, JsValue<'a>)> {
    let mut places: HashMap<Rc<str>, usize> = HashMap::new();
    let mut kept: Vec<(Rc<str>, JsValue<'a>)> = Vec::new();
    for (name, value) in entries {
        let place = *places.entry(Rc::clone(&name)).or_insert(kept.len());
        match kept.get_mut(place) {
            Some((_, old)) => *old = value,
            None => kept.push((name, value)),
        }
    }
    kept
}
