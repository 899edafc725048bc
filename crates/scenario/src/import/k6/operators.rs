//! Operators and comparisons.

use super::super::ImportedText;
use super::interpreter::K6Interpreter;
use super::value::{JsValue, PartPlace, ResponsePart, number_text};
use oxc_ast::ast::BinaryOperator;
use std::rc::Rc;

impl<'a> K6Interpreter<'a, '_> {
    pub(super) fn binary(
        &mut self,
        left: JsValue<'a>,
        operator: BinaryOperator,
        right: JsValue<'a>,
    ) -> JsValue<'a> {
        let is_sum = operator == BinaryOperator::Addition;
        let [left, right] = [left, right].map(|value| match value {
            value if is_sum => self.without_doubt(value),
            value => value.certain(),
        });
        match operator {
            BinaryOperator::Addition => self.added(&left, &right),
            BinaryOperator::Subtraction => match right.number() {
                Some(by) => self.plus(&left, -by),
                None => unknown_number(),
            },
            BinaryOperator::Multiplication if self.is_sequence(&left) => left,
            BinaryOperator::Multiplication if self.is_sequence(&right) => right,
            BinaryOperator::Multiplication => scaled(&left, &right),
            BinaryOperator::Division => match (&left, right.number()) {
                (JsValue::Uniform { .. }, Some(by)) if by != 0.0 => {
                    scaled(&left, &JsValue::Number(1.0 / by))
                }
                _ => calculated(&left, &right, |a, b| a / b),
            },
            BinaryOperator::Remainder => match (&left, &right) {
                (JsValue::SessionNumber(of, _), JsValue::Number(by)) if self.is_sequence(&left) => {
                    JsValue::SessionNumber(Rc::from(format!("{of} % {by}")), 0.0)
                }
                (JsValue::SessionNumber(..), JsValue::Records(_)) => left,
                _ => calculated(&left, &right, |a, b| a % b),
            },
            BinaryOperator::Exponential => calculated(&left, &right, f64::powf),
            BinaryOperator::ShiftRight => calculated(&left, &right, |a, b| {
                f64::from((a as i64 as i32).wrapping_shr(b as u32))
            }),
            BinaryOperator::BitwiseOR if right.number() == Some(0.0) => self.floor(&left),
            BinaryOperator::In => match (left.literal(), self.heap.entries(&right)) {
                (Some(name), Some(entries)) => {
                    JsValue::Bool(entries.iter().any(|(key, _)| &**key == name))
                }
                _ => JsValue::unknown("whether a name is in an object"),
            },
            BinaryOperator::Instanceof => JsValue::unknown("the class of a value"),
            operator if operator.is_equality() || operator.is_compare() => {
                JsValue::test(self.compare(left, operator, right))
            }
            _ => unknown_number(),
        }
    }

    fn added(&mut self, left: &JsValue<'a>, right: &JsValue<'a>) -> JsValue<'a> {
        let is_text = |value: &JsValue| matches!(value, JsValue::Text(_) | JsValue::Named(..));
        match (left, right) {
            (JsValue::Number(a), JsValue::Number(b)) => return JsValue::Number(a + b),
            _ if self.is_sequence(left) && self.is_sequence(right) => return left.clone(),
            _ if self.is_characters(right) => {
                if self.is_characters(left) || left.literal() == Some("") {
                    let joined = if left.literal().is_some() { right } else { left };
                    return joined.clone();
                }
                if !matches!(left, JsValue::Text(_)) {
                    self.leave_out("a random character beside what is known only at run time");
                }
            }
            (value, JsValue::Number(by)) | (JsValue::Number(by), value)
                if matches!(value, JsValue::SessionNumber(..) | JsValue::Uniform { .. }) =>
            {
                return self.plus(value, *by);
            }
            _ if !is_text(left) && !is_text(right) => {
                let is_object = |value: &JsValue| matches!(value, JsValue::Heap(_));
                if !is_object(left) && !is_object(right) {
                    return JsValue::unknown("a sum that is computed");
                }
            }
            _ => {}
        }
        match (self.text_of(left), self.text_of(right)) {
            (Ok(mut text), Ok(more)) => {
                text.append(&more);
                self.bounded(text)
            }
            (Err(what), _) | (_, Err(what)) => JsValue::unknown(what),
        }
    }

    /// A value as a number.
    pub(super) fn as_number(&mut self, value: JsValue<'a>) -> JsValue<'a> {
        match value.certain() {
            known @ (JsValue::Undefined | JsValue::Null | JsValue::Bool(_)) => {
                JsValue::Number(numeric(&known))
            }
            text @ JsValue::Text(_) if text.literal().is_some() => JsValue::Number(numeric(&text)),
            JsValue::Session(of) => JsValue::SessionNumber(of, 0.0),
            JsValue::Text(text) => match text.only_value() {
                Some(of) => JsValue::SessionNumber(Rc::from(of), 0.0),
                None => unknown_number(),
            },
            // A part of a response stays what it is.
            other => other,
        }
    }

    pub(super) fn type_of(&self, value: &JsValue<'a>) -> JsValue<'a> {
        JsValue::text(match value {
            JsValue::Undefined => "undefined",
            JsValue::Null | JsValue::Heap(_) | JsValue::Records(_) | JsValue::Record(_) => "object",
            JsValue::Bool(_) | JsValue::Test(_) => "boolean",
            JsValue::Number(_) | JsValue::SessionNumber(..) | JsValue::Uniform { .. } => "number",
            JsValue::Text(_) | JsValue::Named(..) | JsValue::File(_) => "string",
            JsValue::Function(_) | JsValue::Class(..) => "function",
            JsValue::Builtin(path) => match &**path {
                "__ENV" | "Math" | "JSON" | "http" | "console" => "object",
                path if path.contains('.') => "function",
                _ => "undefined",
            },
            _ => return JsValue::unknown("the type of a value"),
        })
    }

    /// `__VU` and its kin.
    pub(super) fn iteration_number(&mut self, name: &str) -> JsValue<'a> {
        if let Some((variable, under)) = self.numbers.get(name)
            && under.iter().all(|one| self.under.contains(one))
        {
            return JsValue::SessionNumber(Rc::clone(variable), 0.0);
        }
        let wanted = name.trim_start_matches('_').to_ascii_lowercase();
        let variable = self.draw_once("seq()", &wanted);
        self.replaced(
            &variable,
            format!("{name}: a number that no other session has, seq(), in its place"),
        );
        self.named.insert(variable.to_string());
        let under = self.under.clone();
        self.numbers.insert(name.to_owned(), (Rc::clone(&variable), under));
        JsValue::SessionNumber(variable, 0.0)
    }

    /// A random number from 0 to 1.
    pub(super) fn draw(&mut self) -> JsValue<'a> {
        self.draws.push(None);
        JsValue::Uniform { low: 0.0, high: 1.0, draw: self.draws.len() - 1 }
    }

    pub(super) fn floor(&mut self, value: &JsValue<'a>) -> JsValue<'a> {
        match value {
            JsValue::Number(number) => JsValue::Number(number.floor()),
            JsValue::Uniform { low, high, .. } => {
                // The end itself is never drawn.
                let (low, high) = (low.floor(), high.ceil() - 1.0);
                self.random(low, high.max(low))
            }
            other => other.clone(),
        }
    }

    /// Keeps the name that a value has in the script, for its variable.
    pub(super) fn hint(&mut self, value: &JsValue<'a>, name: &str) {
        match value {
            JsValue::Part(part) if !matches!(part.place, PartPlace::Whole) => {
                self.hints.entry(part.clone()).or_insert_with(|| name.to_owned());
            }
            JsValue::Uniform { draw, .. } => {
                if let Some(known @ None) = self.draws.get_mut(*draw) {
                    *known = Some(String::new());
                }
            }
            _ => {}
        }
    }

    /// A whole random number, both ends among them.
    pub(super) fn random(&mut self, low: f64, high: f64) -> JsValue<'a> {
        if low >= high {
            return JsValue::Number(low);
        }
        let text = format!("random({},{})", number_text(low), number_text(high));
        JsValue::SessionNumber(self.draw_once(&text, "random"), 0.0)
    }

    /// Whether a value is a number that no other session has.
    fn is_sequence(&self, value: &JsValue<'a>) -> bool {
        matches!(value, JsValue::SessionNumber(of, _) if self.draw_of(of) == "seq()")
    }

    /// Whether a value is random characters and nothing else.
    fn is_characters(&self, value: &JsValue<'a>) -> bool {
        let JsValue::Text(text) = value else {
            return false;
        };
        text.only_value().is_some_and(|of| self.characters.contains(of))
    }

    /// A part of a response as a value.
    pub(super) fn part(&self, request: usize, place: PartPlace) -> JsValue<'a> {
        JsValue::Part(ResponsePart { request, place })
    }

    pub(super) fn whole(&self, request: usize) -> JsValue<'a> {
        self.part(request, PartPlace::Whole)
    }
}

fn unknown_number<'a>() -> JsValue<'a> {
    JsValue::unknown("a number that is computed")
}

fn calculated<'a>(
    left: &JsValue<'a>,
    right: &JsValue<'a>,
    of: impl Fn(f64, f64) -> f64,
) -> JsValue<'a> {
    if left.is_plain() && right.is_plain() {
        JsValue::Number(of(numeric(left), numeric(right)))
    } else {
        unknown_number()
    }
}

fn scaled<'a>(left: &JsValue<'a>, right: &JsValue<'a>) -> JsValue<'a> {
    match (left, right) {
        (JsValue::Uniform { low, high, draw }, JsValue::Number(by))
        | (JsValue::Number(by), JsValue::Uniform { low, high, draw })
            if *by > 0.0 =>
        {
            JsValue::Uniform { low: low * by, high: high * by, draw: *draw }
        }
        // An index of any record.
        (JsValue::Uniform { .. }, JsValue::Part(part))
            if matches!(part.place, PartPlace::Length(_)) =>
        {
            JsValue::unknown("a random element of a list of a response")
        }
        // Their number is not known: any index is one of a record at random.
        (JsValue::Uniform { draw, .. }, JsValue::Records(_))
        | (JsValue::Records(_), JsValue::Uniform { draw, .. }) => {
            JsValue::Uniform { low: 0.0, high: 1e6, draw: *draw }
        }
        _ => calculated(left, right, |a, b| a * b),
    }
}

pub(super) fn numeric(value: &JsValue) -> f64 {
    match value {
        JsValue::Number(number) => *number,
        JsValue::Bool(is) => f64::from(u8::from(*is)),
        JsValue::Null => 0.0,
        other => other.literal().map_or(f64::NAN, parsed),
    }
}

/// A number in a text, as `Number` reads it.
fn parsed(text: &str) -> f64 {
    match text.trim() {
        "" => 0.0,
        text => {
            let is_plain = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
            text.parse().ok().filter(|_| is_plain).unwrap_or(f64::NAN)
        }
    }
}

/// The whole number that a text begins with in a system of 2 to 36 digits.
pub(super) fn leading_digits(text: &str, radix: u32) -> f64 {
    let text = text.trim_start();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let digits = hexadecimal.filter(|_| radix == 16).unwrap_or(digits);
    let mut digits = digits.chars().map_while(|c| c.to_digit(radix)).peekable();
    if digits.peek().is_none() {
        return f64::NAN;
    }
    sign * digits.fold(0.0, |sum, digit| sum * f64::from(radix) + f64::from(digit))
}

/// The number that a text begins with, as `parseInt` and `parseFloat` read it.
pub(super) fn leading_number(text: &str, is_whole: bool) -> f64 {
    let text = text.trim_start();
    let is_part = |at: usize, c: char| {
        c.is_ascii_digit() || (at == 0 && (c == '-' || c == '+')) || (c == '.' && !is_whole)
    };
    let end =
        text.char_indices().find(|(at, c)| !is_part(*at, *c)).map_or(text.len(), |(at, _)| at);
    text[..end].parse().unwrap_or(f64::NAN)
}

/// A text for a value that stands for a number of the session.
pub(super) fn number_template(of: &str, plus: f64) -> Result<ImportedText, String> {
    if of.contains(" % ") || plus != 0.0 {
        return Err("a number that is computed".to_owned());
    }
    Ok(ImportedText::value(of))
}
