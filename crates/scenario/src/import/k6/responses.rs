//! Parts of responses, the variables that have them, and methods of responses and of their parts.

use super::super::grammar::{is_token, pointer_part};
use super::super::{ImportedExtract, ImportedRelation, ImportedSource};
use super::calls::argument;
use super::interpreter::{K6Flow, K6Interpreter, K6Phase, K6Request, K6Step, texts_in};
use super::loops::always;
use super::of_setup;
use super::value::{JsValue, PartPlace, ResponsePart};
use std::collections::HashSet;
use std::rc::Rc;

impl<'a> K6Interpreter<'a, '_> {
    /// A property of a part of a response.
    pub(super) fn response_member(&mut self, part: &ResponsePart, name: &str) -> JsValue<'a> {
        let place = match (&part.place, name) {
            (PartPlace::Whole, "status") => PartPlace::Status,
            (PartPlace::Whole, "body") => PartPlace::Body,
            (PartPlace::Whole, "headers") => PartPlace::Headers,
            (PartPlace::Whole, "cookies") => PartPlace::Cookies,
            (PartPlace::Whole, "timings") => PartPlace::Timings,
            (PartPlace::Whole, "error" | "error_code") => PartPlace::Error,
            (PartPlace::Whole, other) => PartPlace::Other(format!("'{other}' of a response")),
            (PartPlace::Headers, name) => PartPlace::Header(name.to_owned()),
            (PartPlace::Cookies, name) => PartPlace::Cookie(name.to_owned()),
            (PartPlace::Cookie(_), "0" | "value") => part.place.clone(),
            (PartPlace::Timings, "duration") => PartPlace::Duration,
            (PartPlace::Timings, other) => {
                PartPlace::Other(format!("'timings.{other}' of a response"))
            }
            (place @ (PartPlace::Json(_) | PartPlace::Body | PartPlace::Html(_)), "length") => {
                PartPlace::Length(Box::new(place.clone()))
            }
            (PartPlace::Json(pointer), name) => PartPlace::Json(deeper(pointer, name)),
            (PartPlace::Match(pattern), group) => match group.parse() {
                Ok(group) => PartPlace::Regex(pattern.clone(), group),
                Err(_) => PartPlace::Other("a match of an expression".to_owned()),
            },
            (_, other) => PartPlace::Other(format!("'{other}' of a part of a response")),
        };
        self.part(part.request, place)
    }

    /// A response that is any of several.
    pub(super) fn response_of(&mut self, stands_for: Vec<usize>) -> usize {
        let draft = Default::default();
        let (phase, under) = (self.phase, self.under.clone());
        self.requests.push(Rc::new(K6Request { draft, phase, under, stands_for }));
        self.requests.len() - 1
    }

    /// Adds a response to those that one stands for, with the variables that it has so far.
    pub(super) fn also_stands_for(&mut self, response: usize, other: usize) {
        if response == other {
            return;
        }
        if let Some(own) = self.requests.get_mut(response) {
            if own.stands_for.contains(&other) {
                return;
            }
            Rc::make_mut(own).stands_for.push(other);
        }
        let named = self.names.iter().filter(|(part, _)| part.request == response);
        let mut named: Vec<_> = named.map(|(part, name)| (part.clone(), name.clone())).collect();
        named.sort_by(|a, b| a.1.cmp(&b.1));
        for (part, name) in named {
            self.extract(other, &part.place, &name);
        }
    }

    /// The requests that a response is of: its own, or all that it stands for.
    pub(super) fn requests_of(&self, response: usize) -> Vec<usize> {
        let (mut seen, mut open, mut all) = (HashSet::new(), vec![response], Vec::new());
        while let Some(number) = open.pop() {
            match self.requests.get(number) {
                Some(request) if seen.insert(number) => {
                    if request.stands_for.is_empty() {
                        all.push(number);
                    }
                    open.extend(&request.stands_for);
                }
                _ => {}
            }
        }
        all
    }

    /// A part of one response or of another.
    pub(super) fn either_response(&mut self, a: &ResponsePart, b: &ResponsePart) -> JsValue<'a> {
        let response = self.response_of(vec![a.request, b.request]);
        self.part(response, a.place.clone())
    }

    /// The variable that has a part of a response, as a template.
    ///
    /// # Errors
    /// What the part is, if a scenario has no word for it.
    pub(super) fn variable_of(&mut self, part: &ResponsePart) -> Result<String, String> {
        source(&part.place)?;
        let name = match self.names.get(part) {
            Some(name) => name.clone(),
            None => {
                let hint = self.hints.get(part).cloned().unwrap_or_else(|| wanted(&part.place));
                let name = self.fresh(&hint);
                self.names.insert(part.clone(), name.clone());
                self.extract(part.request, &part.place, &name);
                name
            }
        };
        if !self.is_on_way(part.request) {
            // It is asked for only under a condition: elsewhere it may not be there.
            self.may_lack(part);
        }
        let is_of_setup = self.requests.get(part.request).map(|r| r.phase) == Some(K6Phase::Setup);
        let is_later = self.phase != K6Phase::Setup;
        Ok(if is_of_setup && is_later { of_setup(&name).to_string() } else { name })
    }

    /// Has a variable extracted from a response, or from all that it stands for.
    fn extract(&mut self, response: usize, place: &PartPlace, name: &str) {
        let Ok(source) = source(place) else {
            return;
        };
        let extract = ImportedExtract { name: name.to_owned(), source, default: None };
        for request in self.requests_of(response) {
            let extracts = &mut Rc::make_mut(&mut self.requests[request]).draft.extract;
            if !extracts.iter().any(|other| other.name == name) {
                extracts.push(extract.clone());
            }
        }
    }

    /// Whether what is followed now is done wherever a request was sent.
    pub(super) fn is_on_way(&self, request: usize) -> bool {
        let request = self.requests.get(request);
        request.is_some_and(|request| self.under.iter().all(|one| request.under.contains(one)))
    }

    /// A part may not be there: it is an empty text then, and its step does not fail.
    pub(super) fn may_lack(&mut self, part: &ResponsePart) {
        let Some(name) = self.names.get(part).cloned() else {
            return;
        };
        for request in self.requests_of(part.request) {
            let extracts = &mut Rc::make_mut(&mut self.requests[request]).draft.extract;
            for extract in extracts.iter_mut().filter(|extract| extract.name == name) {
                let always =
                    matches!(extract.source, ImportedSource::Status | ImportedSource::Body);
                if !always {
                    extract.default = Some(String::new());
                }
            }
        }
    }

    /// The same value without the doubt whether there is one: a part may not be there then.
    pub(super) fn without_doubt(&mut self, value: JsValue<'a>) -> JsValue<'a> {
        if let JsValue::Maybe(maybe) = &value
            && let JsValue::Part(part) = &maybe.1
            && self.variable_of(part).is_ok()
        {
            self.may_lack(part);
        }
        value.certain()
    }
}

/// A JSON Pointer to something in what another points to.
pub(super) fn deeper(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", pointer_part(name))
}

/// Where a variable has a part from.
fn source(place: &PartPlace) -> Result<ImportedSource, String> {
    Ok(match place {
        PartPlace::Status => ImportedSource::Status,
        PartPlace::Body => ImportedSource::Body,
        PartPlace::Json(pointer) => ImportedSource::Json(pointer.clone()),
        PartPlace::Header(name) if is_token(name) => ImportedSource::Header(name.clone()),
        PartPlace::Cookie(name) if is_token(name) => ImportedSource::Cookie(name.clone()),
        PartPlace::Css(selector, attribute) => {
            ImportedSource::Css { selector: selector.clone(), attribute: attribute.clone() }
        }
        PartPlace::Regex(pattern, group) => {
            ImportedSource::Regex { pattern: pattern.clone(), group: Some(*group), unescape: false }
        }
        PartPlace::Between(left, right) => ImportedSource::Between(left.clone(), right.clone()),
        PartPlace::Whole => return Err("a whole response".to_owned()),
        PartPlace::Duration => return Err("the time of a response".to_owned()),
        PartPlace::Length(_) => return Err("the length of a part of a response".to_owned()),
        PartPlace::Error => return Err("the error of a response".to_owned()),
        PartPlace::Other(what) => return Err(what.clone()),
        _ => return Err("a part of a response".to_owned()),
    })
}

/// A name for the variable of a part.
fn wanted(place: &PartPlace) -> String {
    match place {
        PartPlace::Status => "status".to_owned(),
        PartPlace::Body => "body".to_owned(),
        PartPlace::Json(pointer) => {
            let is_name = |part: &&str| part.starts_with(|c: char| c.is_alphabetic());
            pointer.rsplit('/').find(is_name).unwrap_or("json").to_owned()
        }
        PartPlace::Header(name) | PartPlace::Cookie(name) => name.clone(),
        PartPlace::Css(selector, attribute) => {
            let attribute = attribute.as_deref();
            attribute.filter(|name| *name != "value").unwrap_or(selector).to_owned()
        }
        _ => "value".to_owned(),
    }
}

/// Whether a variable is used in steps.
pub(super) fn uses(steps: &[K6Step], requests: &[Rc<K6Request>], name: &str) -> bool {
    let texts = texts_in(steps.iter(), requests);
    texts.into_iter().any(|text| text.names().contains(&name))
}

impl<'a> K6Interpreter<'a, '_> {
    /// A method of a response or of a part of it.
    pub(super) fn call_response(
        &mut self,
        part: &ResponsePart,
        name: &str,
        arguments: Vec<JsValue<'a>>,
    ) -> JsValue<'a> {
        let first = argument(&arguments, 0).certain();
        let text = first.literal();
        let own = |place: PartPlace| self.part(part.request, place);
        let unknown = || JsValue::unknown(format!("what '{name}' of a response gives"));
        match (&part.place, name, text) {
            (PartPlace::Html(selector), ..) => match html_place(selector, name, &first) {
                Some(place) => own(place),
                None => unknown(),
            },
            (PartPlace::Whole, "json", None) if arguments.is_empty() => {
                own(PartPlace::Json(String::new()))
            }
            (PartPlace::Whole, "json", Some(path)) => match pointer(path) {
                Some(pointer) => own(PartPlace::Json(pointer)),
                None => JsValue::unknown(format!("'{path}' in JSON")),
            },
            (PartPlace::Whole, "html", selector) => {
                own(PartPlace::Html(selector.unwrap_or_default().to_owned()))
            }
            (PartPlace::Whole, "submitForm" | "clickLink", _) => {
                self.leave_out(format!("a call of '{name}' of a response: what it sends"));
                JsValue::unknown("a response of a request that is left out")
            }
            (
                PartPlace::Headers | PartPlace::Cookies | PartPlace::Json(_),
                "hasOwnProperty",
                Some(name),
            ) => {
                let value = self.response_member(part, name);
                JsValue::compared(value, ImportedRelation::NotEqual, JsValue::Undefined)
            }
            (PartPlace::Whole | PartPlace::Headers | PartPlace::Cookies, ..) => unknown(),
            (_, "forEach", _) => {
                let elements = self.elements(JsValue::Part(part.clone()), "item");
                let mut body = |own: &mut Self, element: JsValue<'a>| {
                    let at = JsValue::unknown("the place in a list");
                    own.call(&first, vec![element, at]);
                    K6Flow::Normal
                };
                self.repeat(&mut always, elements, &mut body, false);
                JsValue::Undefined
            }
            _ => self.call_text_of(part, name, &first),
        }
    }

    /// A method of a text of a response.
    fn call_text_of(&self, part: &ResponsePart, name: &str, first: &JsValue<'a>) -> JsValue<'a> {
        use ImportedRelation::{Contains, Matches};
        let whole = JsValue::Part(part.clone());
        let own = |place: PartPlace| self.part(part.request, place);
        let test = |relation, other| JsValue::compared(whole.clone(), relation, other);
        match (&part.place, name, first, first.literal()) {
            (_, "toString" | "trim" | "valueOf", ..) => whole,
            (PartPlace::Json(_), "includes", ..) => {
                JsValue::unknown("whether a list or a text of JSON has something")
            }
            (_, "includes", other, _) => test(Contains, other.clone()),
            (place, "indexOf" | "search", _, Some(text)) => {
                own(PartPlace::Index(Box::new(place.clone()), text.to_owned()))
            }
            (_, "startsWith", _, Some(text)) => {
                test(Matches, JsValue::text(format!("^{}", regex_syntax::escape(text))))
            }
            (_, "endsWith", _, Some(text)) => {
                test(Matches, JsValue::text(format!("{}$", regex_syntax::escape(text))))
            }
            (PartPlace::Body, "match", JsValue::Regex(pattern), _) => {
                own(PartPlace::Match(pattern.to_string()))
            }
            (_, "match", JsValue::Regex(pattern), _) => test(Matches, JsValue::text(&**pattern)),
            _ => JsValue::unknown(format!("what '{name}' makes of a part of a response")),
        }
    }
}

/// What a method of elements of HTML gives.
fn html_place(selector: &str, name: &str, first: &JsValue) -> Option<PartPlace> {
    let own = || PartPlace::Html(selector.to_owned());
    Some(match (name, first.literal()) {
        ("find", Some(inner)) => PartPlace::Html(format!("{selector} {inner}").trim().to_owned()),
        ("first", _) => own(),
        ("eq" | "get", _) if first.number() == Some(0.0) => own(),
        ("attr", Some(attribute)) => {
            PartPlace::Css(selector.to_owned(), Some(attribute.to_owned()))
        }
        ("val", _) => PartPlace::Css(selector.to_owned(), Some("value".to_owned())),
        ("text", _) => PartPlace::Css(selector.to_owned(), None),
        ("size", _) => PartPlace::Length(Box::new(own())),
        _ => return None,
    })
}

/// A path of k6 in JSON, such as `items.0.id`, as a JSON Pointer.
pub(super) fn pointer(path: &str) -> Option<String> {
    if path.is_empty() || path.contains(['#', '*', '?', '|', '@', '{', '}', '[', ']', '\\']) {
        return None;
    }
    Some(path.split('.').fold(String::new(), |pointer, part| deeper(&pointer, part)))
}
