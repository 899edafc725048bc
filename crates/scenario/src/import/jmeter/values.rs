//! Texts with variables and functions of JMeter.

use super::scope::PlanScope;
use crate::import::ImportedText;

/// The longest text with variables in their places: they may be in one another.
const TEXT_MAX: usize = 1 << 20;

impl PlanScope<'_, '_> {
    /// A text with the values of the plan in their places. What has no value stays as it is, and
    /// `unknown` takes its name.
    pub(super) fn text(&self, text: &str, unknown: &mut Vec<String>) -> ImportedText {
        let (mut filled, mut rest) = (ImportedText::default(), text);
        let mut length = 0;
        while let Some((before, after)) = rest.split_once("${") {
            filled.push(before);
            let Some(end) = closing(after).filter(|_| length <= TEXT_MAX) else {
                filled.push("${");
                rest = after;
                continue;
            };
            let (expression, after) = (&after[..end], &after[end + 1..]);
            match self.value(expression.trim(), unknown) {
                Some(value) => {
                    length += value.with_letters().len();
                    filled.append(&value);
                }
                None => {
                    unknown.push(format!("${{{expression}}}"));
                    filled.push(&format!("${{{expression}}}"));
                }
            }
            rest = after;
        }
        filled.push(rest);
        filled
    }

    /// The text where all values are known before the load; else as it is written.
    pub(super) fn constant(&self, text: &str) -> String {
        let filled = self.text(text, &mut Vec::new());
        filled.literal().map_or_else(|| text.to_owned(), str::to_owned)
    }

    /// What a request before has set, or else the plan.
    fn variable(&self, name: &str) -> Option<ImportedText> {
        if self.extracted.borrow().contains(name) {
            return Some(ImportedText::value(name));
        }
        self.variables.get(name).cloned()
    }

    /// A variable, or a call such as `__Random(1,5)`.
    fn value(&self, expression: &str, unknown: &mut Vec<String>) -> Option<ImportedText> {
        let Some(call) = expression.strip_prefix("__") else {
            return self.variable(expression);
        };
        let (name, arguments) = match call.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')').unwrap_or(rest)),
            None => (call, ""),
        };
        let arguments: Vec<String> =
            arguments.split(',').map(|argument| self.constant(argument.trim())).collect();
        let argument = |at: usize| arguments.get(at).map_or("", String::as_str);
        let call = |text: String| Some(ImportedText::value(text));
        match name {
            // Properties are of the command line of JMeter; without one they have their default.
            "P" => Some(if argument(1).is_empty() { "1" } else { argument(1) }.into()),
            "property" if !argument(2).is_empty() => Some(argument(2).into()),
            "UUID" => call("uuid()".to_owned()),
            "threadNum" | "counter" => call("seq()".to_owned()),
            "time" if argument(0).is_empty() => call("now(unix_ms)".to_owned()),
            "time" if argument(0) == "/1000" => call("now(unix_s)".to_owned()),
            "Random" => {
                let [low, high] = [argument(0), argument(1)].map(str::parse::<i64>);
                let (low, high) = (low.ok()?, high.ok()?);
                (low <= high).then(|| ImportedText::value(format!("random({low},{high})")))
            }
            "V" => self.variable(argument(0)),
            "urlencode" => ImportedText::call("urlencode", &self.text(argument(0), unknown)),
            "base64Encode" => ImportedText::call("base64", &self.text(argument(0), unknown)),
            _ => None,
        }
    }
}

/// Where the `}` stands that ends an expression, which may hold others.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}
