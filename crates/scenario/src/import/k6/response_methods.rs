//! Methods of responses and of their parts.

use super::super::ImportedRelation;
use super::calls::argument;
use super::interpreter::{K6Flow, K6Interpreter};
use super::value::{JsValue, K6Test, PartPlace, ResponsePart};

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
                let relation = ImportedRelation::NotEqual;
                JsValue::test(K6Test::Compare(value, relation, JsValue::Undefined))
            }
            (PartPlace::Whole | PartPlace::Headers | PartPlace::Cookies, ..) => unknown(),
            (_, "forEach", _) => {
                let elements = self.elements(JsValue::Part(part.clone()), "item");
                let mut body = |own: &mut Self, element: JsValue<'a>| {
                    let at = JsValue::unknown("the place in a list");
                    own.call(&first, vec![element, at]);
                    K6Flow::Normal
                };
                self.repeat(None, elements, &mut body, false);
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
        let test = |relation, other| JsValue::test(K6Test::Compare(whole.clone(), relation, other));
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
    Some(
        path.split('.')
            .fold(String::new(), |pointer, part| super::responses::deeper(&pointer, part)),
    )
}
