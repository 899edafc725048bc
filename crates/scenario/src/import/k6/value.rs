//! Values of a script, as far as they are known before it runs.

use super::super::{ImportedPart, ImportedRelation, ImportedText};
use oxc_ast::ast::{ArrowFunctionExpression, Class, Function};
use std::rc::Rc;

/// A value, or where a session has it from.
#[derive(Clone, Debug)]
pub(super) enum JsValue<'a> {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    /// A text, which may have values of the session in it.
    Text(Rc<ImportedText>),
    /// A number of the session, by its expression in a template, plus another.
    SessionNumber(Rc<str>, f64),
    /// A value of the session of any type, by its expression in a template.
    Session(Rc<str>),
    /// A random number from one to another, by its number among all draws.
    Uniform {
        low: f64,
        high: f64,
        draw: usize,
    },
    /// An object or a list on the heap.
    Heap(usize),
    Function(Rc<JsFunction<'a>>),
    Class(&'a Class<'a>, usize),
    /// Something that k6 or JavaScript has, by its path such as `http.get`.
    Builtin(Rc<str>),
    /// A part of a response.
    Part(ResponsePart),
    /// A truth value of the session.
    Test(Rc<K6Test<'a>>),
    /// A value that there is only if a test holds, and nothing else.
    Maybe(Rc<(K6Test<'a>, JsValue<'a>)>),
    /// The content of a file.
    File(Rc<str>),
    /// All records of a set, and the one that the session is dealt.
    Records(Rc<str>),
    Record(Rc<str>),
    /// A part of a multipart body.
    FormPart(Rc<ImportedPart>),
    /// A regular expression.
    Regex(Rc<str>),
    /// A URL with the name of its requests in reports.
    Named(Rc<ImportedText>, Rc<str>),
    /// Statuses that are expected, as a scenario has them.
    Statuses(Rc<Vec<String>>),
    /// Anything else, with what it is.
    Unknown(Rc<str>),
}

/// A function with the variables around it.
#[derive(Debug)]
pub(super) struct JsFunction<'a> {
    pub(super) code: FunctionCode<'a>,
    pub(super) scope: usize,
    pub(super) module: usize,
    pub(super) this: Option<JsValue<'a>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum FunctionCode<'a> {
    Arrow(&'a ArrowFunctionExpression<'a>),
    Function(&'a Function<'a>),
}

/// A part of a response, by the number of its request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ResponsePart {
    pub(super) request: usize,
    pub(super) place: PartPlace,
}

/// Where the part stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum PartPlace {
    Whole,
    Status,
    Body,
    /// At a JSON Pointer.
    Json(String),
    Headers,
    Header(String),
    Cookies,
    Cookie(String),
    Timings,
    Duration,
    /// The number of characters or elements of another.
    Length(Box<PartPlace>),
    /// Where a text begins in another.
    Index(Box<PartPlace>, String),
    /// Elements of HTML, by their selector.
    Html(String),
    /// An attribute of the first of them, or its text.
    Css(String, Option<String>),
    /// All groups of a regular expression.
    Match(String),
    Regex(String, u32),
    Between(String, String),
    /// An error of the connection.
    Error,
    /// What a scenario has no word for.
    Other(String),
}

/// A truth value that depends on what happens.
#[derive(Clone, Debug)]
pub(super) enum K6Test<'a> {
    Known(bool),
    Compare(JsValue<'a>, ImportedRelation, JsValue<'a>),
    Truthy(JsValue<'a>),
    All(Vec<K6Test<'a>>),
    Any(Vec<K6Test<'a>>),
    Not(Box<K6Test<'a>>),
    /// It holds with this probability.
    Chance(f64),
    Unknown(Rc<str>),
}

impl<'a> K6Test<'a> {
    /// The opposite.
    pub(super) fn not(self) -> K6Test<'a> {
        match self {
            K6Test::Known(is) => K6Test::Known(!is),
            K6Test::Not(other) => *other,
            K6Test::Chance(p) => K6Test::Chance(1.0 - p),
            K6Test::Unknown(what) => K6Test::Unknown(what),
            other => K6Test::Not(Box::new(other)),
        }
    }

    /// All of these, or any: what is known is decided.
    pub(super) fn joined(tests: Vec<K6Test<'a>>, is_all: bool) -> K6Test<'a> {
        let mut open: Vec<K6Test<'a>> = Vec::new();
        for test in tests {
            match test {
                K6Test::Known(is) if is == is_all => {}
                K6Test::Known(is) => return K6Test::Known(is),
                other => open.push(other),
            }
        }
        if let Some(unknown) = open.iter().find(|test| matches!(test, K6Test::Unknown(_))) {
            return unknown.clone();
        }
        match open.len() {
            0 => K6Test::Known(is_all),
            1 => open.remove(0),
            _ if is_all => K6Test::All(open),
            _ => K6Test::Any(open),
        }
    }
}

impl<'a> JsValue<'a> {
    pub(super) fn text(text: impl Into<ImportedText>) -> JsValue<'a> {
        JsValue::Text(Rc::new(text.into()))
    }

    /// Whether a comparison holds that is made in the session.
    pub(super) fn compared(
        left: JsValue<'a>,
        relation: ImportedRelation,
        right: JsValue<'a>,
    ) -> JsValue<'a> {
        JsValue::Test(Rc::new(K6Test::Compare(left, relation, right)))
    }

    pub(super) fn unknown(what: impl AsRef<str>) -> JsValue<'a> {
        JsValue::Unknown(Rc::from(what.as_ref()))
    }

    pub(super) fn builtin(path: impl AsRef<str>) -> JsValue<'a> {
        JsValue::Builtin(Rc::from(path.as_ref()))
    }

    pub(super) fn test(test: K6Test<'a>) -> JsValue<'a> {
        match test {
            K6Test::Known(is) => JsValue::Bool(is),
            K6Test::Unknown(what) => JsValue::Unknown(what),
            other => JsValue::Test(Rc::new(other)),
        }
    }

    /// The same value without the doubt whether there is one.
    pub(super) fn certain(self) -> JsValue<'a> {
        match self {
            JsValue::Maybe(maybe) => maybe.1.clone(),
            other => other,
        }
    }

    /// Whether it is, or has in its text, a variable of the session.
    pub(super) fn has_variable(&self, variable: &str) -> bool {
        match self {
            JsValue::SessionNumber(of, _) | JsValue::Session(of) => &**of == variable,
            JsValue::Text(text) | JsValue::Named(text, _) => text.names().contains(&variable),
            _ => false,
        }
    }

    /// The text of a literal.
    pub(super) fn literal(&self) -> Option<&str> {
        match self {
            JsValue::Text(text) | JsValue::Named(text, _) => text.literal(),
            _ => None,
        }
    }

    /// Whether it is a known number, truth value or text.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, JsValue::Number(_) | JsValue::Bool(_)) || self.literal().is_some()
    }

    pub(super) fn number(&self) -> Option<f64> {
        match self {
            JsValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Whether two are the same without doubt.
    pub(super) fn same(&self, other: &JsValue<'a>) -> bool {
        match (self, other) {
            (JsValue::Undefined, JsValue::Undefined) | (JsValue::Null, JsValue::Null) => true,
            (JsValue::Bool(a), JsValue::Bool(b)) => a == b,
            (JsValue::Number(a), JsValue::Number(b)) => a == b || (a.is_nan() && b.is_nan()),
            (JsValue::Text(a), JsValue::Text(b)) => a == b,
            (JsValue::Session(a), JsValue::Session(b))
            | (JsValue::Unknown(a), JsValue::Unknown(b))
            | (JsValue::Builtin(a), JsValue::Builtin(b))
            | (JsValue::Records(a), JsValue::Records(b))
            | (JsValue::Record(a), JsValue::Record(b))
            | (JsValue::File(a), JsValue::File(b)) => a == b,
            (JsValue::SessionNumber(a, x), JsValue::SessionNumber(b, y)) => a == b && x == y,
            (JsValue::Uniform { draw: a, .. }, JsValue::Uniform { draw: b, .. }) => a == b,
            (JsValue::Heap(a), JsValue::Heap(b)) => a == b,
            (JsValue::Part(a), JsValue::Part(b)) => a == b,
            (JsValue::Function(a), JsValue::Function(b)) => Rc::ptr_eq(a, b),
            (JsValue::Test(a), JsValue::Test(b)) => Rc::ptr_eq(a, b),
            (JsValue::Maybe(a), JsValue::Maybe(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Whether it is true, for one whose truth is known.
    pub(super) fn truth(&self) -> Option<bool> {
        match self {
            JsValue::Undefined | JsValue::Null => Some(false),
            JsValue::Bool(is) => Some(*is),
            JsValue::Number(number) => Some(*number != 0.0 && !number.is_nan()),
            JsValue::Text(text) | JsValue::Named(text, _) => match text.literal() {
                Some(text) => Some(!text.is_empty()),
                // Text of its own stands beside a value.
                None if text.parts().len() > 1 => Some(true),
                None => None,
            },
            JsValue::Heap(_)
            | JsValue::Function(_)
            | JsValue::Class(..)
            | JsValue::Builtin(_)
            | JsValue::File(_)
            | JsValue::Records(_)
            | JsValue::Record(_)
            | JsValue::FormPart(_)
            | JsValue::Regex(_)
            | JsValue::Statuses(_) => Some(true),
            JsValue::Part(part) => match part.place {
                PartPlace::Error => Some(false),
                PartPlace::Whole
                | PartPlace::Headers
                | PartPlace::Cookies
                | PartPlace::Timings
                | PartPlace::Status
                | PartPlace::Duration
                | PartPlace::Html(_) => Some(true),
                _ => None,
            },
            JsValue::SessionNumber(..)
            | JsValue::Session(_)
            | JsValue::Uniform { .. }
            | JsValue::Test(_)
            | JsValue::Maybe(_)
            | JsValue::Unknown(_) => None,
        }
    }
}

/// A number as JavaScript writes it.
pub(super) fn number_text(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else if number == 0.0 {
        "0".to_owned()
    } else {
        let digits = number.abs();
        if (1e-6..1e21).contains(&digits) { format!("{number}") } else { exponential(number) }
    }
}

/// `1e+21`, `1.5e-7`.
fn exponential(number: f64) -> String {
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, power)) if !power.starts_with('-') => format!("{digits}e+{power}"),
        _ => text,
    }
}
