//! Properties of values.

use super::super::ImportedText;
use super::interpreter::{K6Interpreter, K6Step};
use super::loops::LoopElements;
use super::value::{FunctionCode, JsValue, PartPlace, ResponsePart};
use oxc_ast::ast::{Class, ClassElement, MethodDefinitionKind};
use std::rc::Rc;

impl<'a> K6Interpreter<'a, '_> {
    /// A property of a value, by its name.
    pub(super) fn member(&mut self, object: &JsValue<'a>, name: &str) -> JsValue<'a> {
        match object {
            JsValue::Maybe(maybe) => self.member(&maybe.1.clone(), name),
            JsValue::Heap(_) => self.heap_member(object, name),
            JsValue::Text(text) => match (name, text.literal(), name.parse::<usize>()) {
                ("length", Some(text), _) => JsValue::Number(text.encode_utf16().count() as f64),
                (_, Some(text), Ok(at)) => match text.chars().nth(at) {
                    Some(c) => JsValue::text(c.to_string()),
                    None => JsValue::Undefined,
                },
                _ => JsValue::unknown("a part of a text that is known only at run time"),
            },
            JsValue::Builtin(path) => self.builtin_member(path, name),
            JsValue::Part(part) => self.response_member(part, name),
            JsValue::Record(set) => self.column(set, name),
            JsValue::Records(_) if name == "length" => object.clone(),
            JsValue::Records(set) => match name.parse::<usize>() {
                Ok(_) => {
                    self.remark(format!("A session is dealt one record of '{set}'."));
                    JsValue::Record(Rc::clone(set))
                }
                Err(_) => {
                    self.remark(format!(
                        "The records of '{set}' are those of '{name}' in its file."
                    ));
                    JsValue::Records(Rc::clone(set))
                }
            },
            JsValue::Class(class, scope) => self.static_member(class, *scope, name),
            JsValue::Session(_) => {
                JsValue::unknown(format!("'{name}' of a value that is known only at run time"))
            }
            JsValue::Unknown(what) => JsValue::Unknown(Rc::clone(what)),
            JsValue::Function(_) if name == "name" => JsValue::text(""),
            _ => JsValue::Undefined,
        }
    }

    fn heap_member(&mut self, object: &JsValue<'a>, name: &str) -> JsValue<'a> {
        if let Some(items) = self.heap.items(object) {
            return match (name, name.parse::<usize>()) {
                ("length", _) => JsValue::Number(items.len() as f64),
                (_, Ok(at)) => items.get(at).cloned().unwrap_or(JsValue::Undefined),
                _ => JsValue::Undefined,
            };
        }
        if let Some(value) = self.heap.entry(object, name) {
            return value.clone();
        }
        if let Some(JsValue::Class(class, scope)) = self.heap.class(object) {
            let (class, scope) = (*class, *scope);
            return self.method(class, scope, name, object);
        }
        if self.heap.entry(object, "...").is_some() {
            return JsValue::unknown(format!("'{name}' of what is spread into an object"));
        }
        JsValue::Undefined
    }

    /// A method of an object of a class, or what a getter gives.
    pub(super) fn method(
        &mut self,
        class: &'a Class<'a>,
        scope: usize,
        name: &str,
        this: &JsValue<'a>,
    ) -> JsValue<'a> {
        match self.defined(class, scope, name, this, false) {
            Some((MethodDefinitionKind::Get, function)) => self.call(&function, Vec::new()),
            Some((_, function)) => function,
            None => JsValue::Undefined,
        }
    }

    /// A method or a setter of an object of a class, or of the one that it extends.
    pub(super) fn defined(
        &mut self,
        class: &'a Class<'a>,
        scope: usize,
        name: &str,
        this: &JsValue<'a>,
        is_setter: bool,
    ) -> Option<(MethodDefinitionKind, JsValue<'a>)> {
        let parent = class.super_class.as_ref().map(|parent| self.evaluate(parent, scope));
        for element in &class.body.body {
            let ClassElement::MethodDefinition(method) = element else {
                continue;
            };
            let is_meant = (method.kind == MethodDefinitionKind::Set) == is_setter;
            if is_meant && method.key.is_specific_static_name(name) && !method.r#static {
                let inner = self.heap.scope(Some(scope));
                if let Some(parent) = parent {
                    self.heap.declare(inner, "super ", parent);
                }
                let code = FunctionCode::Function(&method.value);
                return Some((method.kind, self.closure(code, inner, Some(this.clone()))));
            }
        }
        let JsValue::Class(parent, scope) = parent? else {
            return None;
        };
        self.deeper(None, |own| own.defined(parent, scope, name, this, is_setter))
    }

    fn static_member(&mut self, class: &'a Class<'a>, scope: usize, name: &str) -> JsValue<'a> {
        for element in &class.body.body {
            match element {
                ClassElement::MethodDefinition(method)
                    if method.r#static && method.key.is_specific_static_name(name) =>
                {
                    let code = FunctionCode::Function(&method.value);
                    return self.closure(code, scope, Some(JsValue::Class(class, scope)));
                }
                ClassElement::PropertyDefinition(property)
                    if property.r#static && property.key.is_specific_static_name(name) =>
                {
                    let value = property.value.as_ref();
                    return value.map_or(JsValue::Undefined, |v| self.evaluate(v, scope));
                }
                _ => {}
            }
        }
        JsValue::Undefined
    }

    pub(super) fn builtin_member(&mut self, path: &str, name: &str) -> JsValue<'a> {
        match (path, name) {
            ("globalThis", name) => self.identifier(name, self.globals),
            ("__ENV", name) => JsValue::text(ImportedText::value(format!("env({name})"))),
            ("Math", "PI") => JsValue::Number(std::f64::consts::PI),
            ("Number", "MAX_SAFE_INTEGER") => JsValue::Number(9_007_199_254_740_991.0),
            (
                "execution.vu" | "execution.scenario" | "execution.instance",
                "idInTest"
                | "idInInstance"
                | "iterationInScenario"
                | "iterationInInstance"
                | "iterationInTest"
                | "iterationsCompleted",
            ) => self.iteration_number(&format!("exec.{name}")),
            (path, name) => JsValue::builtin(format!("{path}.{name}")),
        }
    }

    /// A property whose name is a value.
    pub(super) fn indexed(&mut self, object: &JsValue<'a>, key: &JsValue<'a>) -> JsValue<'a> {
        let object = object.clone().certain();
        if let JsValue::Records(set) = &object {
            let is_random = match key {
                JsValue::Uniform { .. } => true,
                JsValue::SessionNumber(of, _) => self.draw_of(of).starts_with("random("),
                _ => false,
            };
            return self.record(set, is_random);
        }
        if let (JsValue::SessionNumber(of, plus), Some(items)) = (key, self.heap.items(&object)) {
            let items = items.to_vec();
            let all = format!("random(0,{})", items.len().saturating_sub(1));
            let is_sequence = of.contains(" % ");
            if *plus == 0.0 && (self.draw_of(of) == all || is_sequence) {
                if is_sequence {
                    self.leave_out("an element by a number of the iteration: a random one");
                }
                return self.any_of(items, "item");
            }
            return JsValue::unknown("an element of a list whose place is known only at run time");
        }
        if object.literal().is_some_and(|text| text.len() > 1)
            && matches!(key, JsValue::SessionNumber(..))
        {
            return self.random_character();
        }
        match self.text_of(key) {
            Ok(text) => match (text.literal(), &object) {
                (Some(name), _) => self.member(&object, name),
                (None, JsValue::Builtin(path)) if &**path == "__ENV" => {
                    JsValue::unknown("a variable of the environment")
                }
                (None, _) => JsValue::unknown("a property whose name is known only at run time"),
            },
            Err(what) => JsValue::unknown(what),
        }
    }

    /// A character of a text at random: all of them together become one random text.
    pub(super) fn random_character(&mut self) -> JsValue<'a> {
        let variable = self.draw_once("uuid()", "text");
        self.replaced(&variable, "random characters: uuid() in their place");
        self.characters.insert(variable.to_string());
        JsValue::text(ImportedText::value(&*variable))
    }

    /// The record that a session is dealt.
    pub(super) fn record(&mut self, set: &Rc<str>, is_random: bool) -> JsValue<'a> {
        if is_random && let Some(own) = self.records.iter_mut().find(|(name, ..)| **name == **set) {
            own.2 = true;
        }
        self.remark(format!("A session is dealt one record of '{set}', and keeps it."));
        JsValue::Record(Rc::clone(set))
    }

    /// One of several values, chosen in the session.
    pub(super) fn any_of(&mut self, items: Vec<JsValue<'a>>, name: &str) -> JsValue<'a> {
        if let [only] = &items[..] {
            return only.clone();
        }
        if items.is_empty() || items.len() > 100 {
            return JsValue::unknown("one of many values");
        }
        let texts: Result<Vec<ImportedText>, String> =
            items.iter().map(|item| self.text_of(item)).collect();
        if let Ok(texts) = texts
            && items.iter().all(|item| !matches!(item, JsValue::Heap(_)))
        {
            let variable = self.fresh(name);
            let choices = texts
                .into_iter()
                .map(|text| (1, vec![K6Step::Set(vec![(variable.clone(), text)])]));
            self.put_choice(choices.collect());
            return JsValue::Session(Rc::from(variable));
        }
        self.any_object(&items, name)
    }

    /// One of several objects with the same names: each choice sets all of them.
    fn any_object(&mut self, items: &[JsValue<'a>], name: &str) -> JsValue<'a> {
        let unknown = JsValue::unknown("one of several objects");
        let Some(first) = self.heap.entries(&items[0]).map(<[_]>::to_vec) else {
            return unknown;
        };
        let mut sets: Vec<Vec<(String, ImportedText)>> = vec![Vec::new(); items.len()];
        let mut entries = Vec::new();
        for (key, _) in first {
            let values = items.iter().map(|item| self.heap.entry(item, &key).cloned());
            let values: Option<Vec<JsValue<'a>>> = values.collect();
            let texts = values.map(|values| {
                values.iter().map(|value| self.text_of(value)).collect::<Result<Vec<_>, _>>()
            });
            let Some(Ok(texts)) = texts else {
                entries.push((key, JsValue::unknown("a property of one of several objects")));
                continue;
            };
            let variable = self.fresh(&format!("{name}_{key}"));
            for (set, text) in sets.iter_mut().zip(texts) {
                set.push((variable.clone(), text));
            }
            entries.push((key, JsValue::Session(Rc::from(variable))));
        }
        let choices = sets.into_iter().filter(|set| !set.is_empty());
        self.put_choice(choices.map(|set| (1, vec![K6Step::Set(set)])).collect());
        self.heap.object(entries)
    }

    /// The names of an object.
    pub(super) fn keys(&mut self, object: &JsValue<'a>) -> JsValue<'a> {
        let object = object.clone().certain();
        if let Some(entries) = self.heap.entries(&object) {
            let keys = entries.iter().map(|(name, _)| JsValue::text(&**name)).collect();
            return self.heap.list(keys);
        }
        match self.heap.items(&object).map(<[_]>::len) {
            Some(length) => {
                let keys = (0..length).map(|at| JsValue::text(at.to_string())).collect();
                self.heap.list(keys)
            }
            None => JsValue::unknown("the names of an object that is not known"),
        }
    }

    /// What a loop over a value goes through.
    pub(super) fn elements(&mut self, list: JsValue<'a>, name: &str) -> LoopElements<'a> {
        let list = list.certain();
        if let Some(items) = self.heap.items(&list) {
            return LoopElements::List(items.to_vec(), name.to_owned());
        }
        match &list {
            JsValue::Part(ResponsePart { place: PartPlace::Json(_), .. }) => {
                match self.text_of(&list) {
                    Ok(text) => LoopElements::Session(text, name.to_owned()),
                    Err(what) => LoopElements::Unknown(what),
                }
            }
            JsValue::Records(set) => {
                LoopElements::Unknown(format!("all records of '{set}', as a session has one"))
            }
            JsValue::Undefined | JsValue::Null => LoopElements::List(Vec::new(), name.to_owned()),
            JsValue::Unknown(what) => LoopElements::Unknown(what.to_string()),
            _ => LoopElements::Unknown("a value that is no list".to_owned()),
        }
    }
}
