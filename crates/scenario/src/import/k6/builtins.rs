//! Functions of JavaScript and of the libraries of k6.

use super::super::ImportedText;
use super::calls::{Arguments, argument};
use super::interpreter::{K6Interpreter, K6Step};
use super::operators::{leading_digits, leading_number};
use super::value::{JsValue, PartPlace, number_text};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use knee_load::percent;
use knee_load::time::Nanos;
use std::rc::Rc;

impl<'a> K6Interpreter<'a, '_> {
    pub(super) fn call_builtin(&mut self, path: &str, arguments: Arguments<'a>) -> JsValue<'a> {
        let (module, name) = path.rsplit_once('.').unwrap_or(("", path));
        match (module, name) {
            ("http", _) => self.http_call(name, &arguments),
            ("" | "utils", "check") => self.check(&arguments),
            ("", "sleep") => self.sleep(&arguments),
            ("", "group") | ("k6chaijs", "describe") => self.group(&arguments),
            ("", "fail") | ("execution.test", "abort" | "fail") => self.fail(),
            ("", "randomSeed") | ("console" | "metric", _) => JsValue::Undefined,
            ("", "open") => match argument(&arguments, 0).literal() {
                Some(file) => JsValue::File(Rc::from(file)),
                None => JsValue::unknown("a file whose name is not known"),
            },
            ("", "require") => match argument(&arguments, 0).literal() {
                Some(source) => self.module_value(source),
                None => JsValue::unknown("a module whose name is not known"),
            },
            ("Math", _) => self.math(name, &arguments),
            ("JSON" | "Object" | "Array" | "Promise" | "Number" | "String" | "Date", _) => {
                self.standard_call(path, &arguments)
            }
            ("", _) => self.global_call(name, &arguments),
            ("utils" | "faker", _) => self.utility(name, &arguments),
            ("papaparse", "parse") => self.parsed_csv(&arguments),
            ("html", "parseHTML") => match argument(&arguments, 0) {
                JsValue::Part(part) if part.place == PartPlace::Body => {
                    self.part(part.request, PartPlace::Html(String::new()))
                }
                _ => JsValue::unknown("a parsed text"),
            },
            ("encoding" | "crypto", _) => self.encoded(path, &arguments),
            ("date", _) => self.date(name),
            _ => self.other_call(path),
        }
    }

    fn other_call(&mut self, path: &str) -> JsValue<'a> {
        self.leave_out(format!("a call of {path}"));
        JsValue::unknown(format!("what {path} gives"))
    }

    /// `sleep(SECONDS)`.
    fn sleep(&mut self, arguments: &[JsValue<'a>]) -> JsValue<'a> {
        let seconds = |s: f64| format!("{}ms", (s * 1e3).round());
        if self.has_thrown {
            return JsValue::Undefined;
        }
        match self.as_number(argument(arguments, 0)) {
            JsValue::Number(s) if (0.000_5..=86_400.0).contains(&s) => {
                let time = Nanos::from_millis((s * 1e3).round() as u64);
                self.steps.push(K6Step::Think(time.exactly().to_string()));
            }
            JsValue::Number(s) if s < 0.000_5 => {}
            JsValue::Uniform { low, high, .. } if low >= 0.0 && high <= 86_400.0 => {
                let law = format!("uniform({},{})", seconds(low), seconds(high));
                self.steps.push(K6Step::Think(law));
            }
            JsValue::SessionNumber(of, plus) => match random_ends(self.draw_of(&of)) {
                Some((low, high)) if low + plus >= 0.0 && high + plus <= 86_400.0 => {
                    let law = format!("uniform({},{})", seconds(low + plus), seconds(high + plus));
                    self.steps.push(K6Step::Think(law));
                    self.remark("Pauses of a random whole number of seconds may be any time.");
                }
                _ => self.leave_out("sleep: its time is known only at run time"),
            },
            other => {
                let what = match &other {
                    JsValue::Unknown(what) => what.to_string(),
                    _ => "its time is known only at run time".to_owned(),
                };
                self.leave_out(format!("sleep: {what}"));
            }
        }
        JsValue::Undefined
    }

    fn math(&mut self, name: &str, arguments: &[JsValue<'a>]) -> JsValue<'a> {
        let first = argument(arguments, 0);
        let all: Option<Vec<f64>> = arguments.iter().map(JsValue::number).collect();
        let number = match (name, all.as_deref()) {
            ("random", _) => return self.draw(),
            ("floor" | "trunc", None) => return self.floor(&first),
            ("ceil", None) => {
                let below = self.floor(&first);
                return self.plus(&below, 1.0);
            }
            // Ends are drawn half as often there: whole numbers between are the same.
            ("round", None) => {
                let more = self.plus(&first, 0.5);
                return self.floor(&more);
            }
            ("max", Some(all)) => all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ("min", Some(all)) => all.iter().copied().fold(f64::INFINITY, f64::min),
            (_, Some([x])) => match name {
                "floor" => x.floor(),
                "ceil" => x.ceil(),
                "round" => (x + 0.5).floor(),
                "trunc" => x.trunc(),
                "abs" => x.abs(),
                "sqrt" => x.sqrt(),
                "log" => x.ln(),
                _ => return JsValue::unknown(format!("Math.{name}")),
            },
            ("pow", Some([x, y])) => x.powf(*y),
            _ => return JsValue::unknown(format!("Math.{name} of what is known at run time")),
        };
        JsValue::Number(number)
    }

    fn global_call(&mut self, name: &str, arguments: &[JsValue<'a>]) -> JsValue<'a> {
        let first = argument(arguments, 0).certain();
        match name {
            "String" => {
                let text = self.text_of(&first);
                self.text_value(text)
            }
            "Number" => self.as_number(first),
            "parseInt" | "parseFloat" => {
                let radix = argument(arguments, 1).number().filter(|radix| *radix != 0.0);
                self.parsed_number(first, name == "parseInt", radix)
            }
            "Boolean" => JsValue::test(self.truthy(first)),
            "isNaN" => match first {
                JsValue::Number(number) => JsValue::Bool(number.is_nan()),
                _ => JsValue::unknown("whether a value is a number"),
            },
            "encodeURIComponent" | "encodeURI" => self.url_encoded(&first, name),
            "decodeURIComponent" | "btoa" | "atob" | "escape" => self.encoded(name, arguments),
            "Array" => {
                let items = self.empty_items(first.number().unwrap_or(0.0));
                self.heap.list(items)
            }
            "structuredClone" => self.copied(&first, "", |_, value, _| value.clone()),
            "Object" => first,
            "Symbol" | "BigInt" => JsValue::unknown(format!("a value of {name}")),
            "Date" => JsValue::unknown("a date"),
            _ => self.other_call(name),
        }
    }

    /// What `parseInt` or `parseFloat` makes of a value.
    fn parsed_number(
        &mut self,
        value: JsValue<'a>,
        is_whole: bool,
        radix: Option<f64>,
    ) -> JsValue<'a> {
        if is_whole && let Some(radix) = radix.filter(|radix| *radix != 10.0) {
            return match value.is_plain().then(|| self.known_text(&value)).flatten() {
                Some(text) if (2.0..=36.0).contains(&radix) => {
                    JsValue::Number(leading_digits(&text, radix as u32))
                }
                Some(_) => JsValue::Number(f64::NAN),
                None => JsValue::unknown("a number that is computed"),
            };
        }
        match (&value, value.literal()) {
            (_, Some(text)) => JsValue::Number(leading_number(text, is_whole)),
            (JsValue::Number(number), _) if is_whole => JsValue::Number(number.trunc()),
            (JsValue::Undefined | JsValue::Null, _) => JsValue::Number(f64::NAN),
            (JsValue::Uniform { .. }, _) if is_whole => self.floor(&value),
            _ => self.as_number(value),
        }
    }

    /// A value with objects and lists of its own. `leaf` gives what stands for each other value in
    /// it, with its name in the script.
    pub(super) fn copied(
        &mut self,
        value: &JsValue<'a>,
        name: &str,
        leaf: fn(&mut Self, &JsValue<'a>, &str) -> JsValue<'a>,
    ) -> JsValue<'a> {
        self.deeper(JsValue::unknown("an object that is nested too deeply"), |own| {
            if let Some(items) = own.heap.items(value).map(<[_]>::to_vec) {
                let items = items.iter().map(|item| own.copied(item, name, leaf)).collect();
                return own.heap.list(items);
            }
            let Some(entries) = own.heap.entries(value).map(<[_]>::to_vec) else {
                return leaf(own, value, name);
            };
            let copy = |(name, value): (Rc<str>, JsValue<'a>)| {
                let value = own.copied(&value, &name, leaf);
                (name, value)
            };
            let entries = entries.into_iter().map(copy).collect();
            own.heap.object(entries)
        })
    }

    /// The items of a list that has none yet.
    pub(super) fn empty_items(&mut self, length: f64) -> Vec<JsValue<'a>> {
        let length = length.clamp(0.0, 10_000.0) as usize;
        self.burn(length);
        vec![JsValue::Undefined; length]
    }

    /// In a URL or a form a value of the session is encoded by itself.
    fn url_encoded(&mut self, value: &JsValue<'a>, name: &str) -> JsValue<'a> {
        let text = match self.text_of(value) {
            Ok(text) => text,
            Err(what) => return JsValue::unknown(what),
        };
        if let Some(text) = text.literal() {
            let encoded = match name {
                "encodeURI" => percent::url(text),
                _ => percent::component(text.as_bytes()),
            };
            return JsValue::text(encoded);
        }
        encoded_by("urlencode", &text)
    }

    /// Functions of `k6-utils` and of similar libraries.
    fn utility(&mut self, name: &str, arguments: &[JsValue<'a>]) -> JsValue<'a> {
        let (first, second) = (argument(arguments, 0), argument(arguments, 1));
        match name {
            "randomIntBetween" => match (first.number(), second.number()) {
                (Some(low), Some(high)) => self.random(low.ceil(), high.floor()),
                _ => JsValue::unknown("a random number whose ends are not known"),
            },
            "randomItem" => match self.heap.items(&first).map(<[_]>::to_vec) {
                Some(items) => self.any_of(items, "item"),
                None => match first {
                    JsValue::Records(set) => self.record(&set, true),
                    _ => JsValue::unknown("a random element of a list that is not known"),
                },
            },
            "randomString" => {
                let variable = self.draw_once("uuid()", "text");
                self.replaced(&variable, "randomString: uuid() in its place");
                JsValue::text(ImportedText::value(&*variable))
            }
            "uuidv4" => self.drawn_text("uuid()", "uuid"),
            "findBetween" => match (&first, second.literal(), argument(arguments, 2).literal()) {
                (JsValue::Part(part), Some(left), Some(right))
                    if part.place == PartPlace::Body && arguments.len() == 3 =>
                {
                    let place = PartPlace::Between(left.to_owned(), right.to_owned());
                    self.part(part.request, place)
                }
                _ => JsValue::unknown("a text between two others"),
            },
            _ => self.other_call(&format!("utils.{name}")),
        }
    }

    fn encoded(&mut self, path: &str, arguments: &[JsValue<'a>]) -> JsValue<'a> {
        let name = path.rsplit('.').next().unwrap_or(path);
        let first = argument(arguments, 0).certain();
        let text = match self.text_of(&first) {
            Ok(text) => text,
            Err(what) => return JsValue::unknown(what),
        };
        let kind = argument(arguments, 1);
        let kind = kind.literal().unwrap_or("std");
        match (name, text.literal()) {
            ("b64encode" | "btoa", Some(text)) => JsValue::text(match kind {
                "rawstd" => STANDARD_NO_PAD.encode(text),
                "url" => URL_SAFE.encode(text),
                "rawurl" => URL_SAFE_NO_PAD.encode(text),
                _ => STANDARD.encode(text),
            }),
            ("b64encode" | "btoa", None) if kind == "std" => encoded_by("base64", &text),
            ("b64decode" | "atob", Some(text)) => {
                let bytes = STANDARD.decode(text).ok();
                match bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
                    Some(text) => JsValue::text(text),
                    None => JsValue::unknown("a decoded text"),
                }
            }
            ("hmac", _) => self.hmac(&text, arguments),
            ("decodeURIComponent", Some(text)) => {
                JsValue::text(percent::form_decoded(&text.replace('+', "%2B")).unwrap_or_default())
            }
            _ => JsValue::unknown(format!("what {path} gives")),
        }
    }

    /// `crypto.hmac('sha256', KEY, DATA, 'hex')`.
    fn hmac(&mut self, algorithm: &ImportedText, arguments: &[JsValue<'a>]) -> JsValue<'a> {
        let unknown = JsValue::unknown("a signature");
        if algorithm.literal() != Some("sha256") || argument(arguments, 3).literal() != Some("hex")
        {
            return unknown;
        }
        let texts = [1, 2].map(|at| self.text_of(&argument(arguments, at)));
        let [Ok(key), Ok(message)] = texts else {
            return unknown;
        };
        ImportedText::call("hmac_sha256", &[&key, &message]).map_or(unknown, JsValue::text)
    }

    /// A text that is drawn once.
    pub(super) fn drawn_text(&mut self, expression: &str, wanted: &str) -> JsValue<'a> {
        let variable = self.draw_once(expression, wanted);
        JsValue::text(ImportedText::value(&*variable))
    }

    fn date(&mut self, name: &str) -> JsValue<'a> {
        match name {
            "toISOString" | "toJSON" => self.drawn_text("now(rfc3339)", "time"),
            "getTime" | "valueOf" | "now" => {
                JsValue::SessionNumber(self.draw_once("now(unix_ms)", "time"), 0.0)
            }
            _ => JsValue::unknown("a part of a date"),
        }
    }

    pub(super) fn new_builtin(&mut self, path: &str, arguments: Arguments<'a>) -> JsValue<'a> {
        match path {
            "SharedArray" => {
                let list = self.call(&argument(&arguments, 1), Vec::new());
                match list {
                    JsValue::File(file) => self.records_of(&file),
                    other => other,
                }
            }
            "metrics.Trend" | "metrics.Counter" | "metrics.Rate" | "metrics.Gauge" => {
                let name = self.text_of(&argument(&arguments, 0)).map(|name| name.template());
                let name = name.unwrap_or_default();
                self.leave_out(format!("metric '{name}': what is counted by it"));
                JsValue::builtin("metric")
            }
            "Date" if arguments.is_empty() => JsValue::builtin("date"),
            "Date" => JsValue::unknown("a date"),
            "Array" => self.global_call("Array", &arguments),
            "Object" => self.heap.object(Vec::new()),
            "Error" | "TypeError" => JsValue::unknown("an error"),
            "RegExp" => match argument(&arguments, 0).literal() {
                Some(pattern) => JsValue::Regex(Rc::from(pattern)),
                None => argument(&arguments, 0),
            },
            "http.CookieJar" => JsValue::builtin("http.cookieJar"),
            "Map" | "Set" | "URL" | "URLSearchParams" | "TextEncoder" | "Promise" => {
                JsValue::unknown(format!("a {path}"))
            }
            other => self.other_call(&format!("new {other}")),
        }
    }
}

/// A text of the session, encoded by a function of a scenario.
fn encoded_by<'a>(function: &str, text: &ImportedText) -> JsValue<'a> {
    let text = ImportedText::call(function, &[text]);
    text.map_or_else(|| JsValue::unknown("an encoded text"), JsValue::text)
}

/// The ends of `random(LOW,HIGH)`.
pub(super) fn random_ends(of: &str) -> Option<(f64, f64)> {
    let (low, high) = of.strip_prefix("random(")?.strip_suffix(')')?.split_once(',')?;
    Some((low.parse().ok()?, high.parse().ok()?))
}

/// A name made of a path: `users` of `../data/users.csv`.
pub(super) fn stem(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.split('.').next().unwrap_or(name).to_owned()
}

/// A number as a value of JavaScript's `toFixed`.
pub(super) fn fixed(number: f64, digits: f64) -> String {
    let digits = digits.clamp(0.0, 20.0) as usize;
    if number.is_finite() {
        // Half of the last digit is rounded away from zero.
        let exact = format!("{number:.1074}");
        let rest = exact.find('.').map_or("", |at| &exact[at + 1 + digits..]);
        let is_half = rest.strip_prefix('5').is_some_and(|r| r.bytes().all(|b| b == b'0'));
        let number = if is_half { f64::from_bits(number.to_bits() + 1) } else { number };
        format!("{number:.digits$}")
    } else {
        number_text(number)
    }
}
