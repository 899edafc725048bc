//! Advice that would change nothing: the command itself, or an option at the value that it has.

use super::Report;
use knee_load::quantity::{parse_duration, parse_rate};
use serde_json::Value;
use std::collections::BTreeMap;

/// Between two pieces of advice. One that begins with the second is an alternative.
const BETWEEN: &str = "; ";
const ALTERNATIVE: &str = "or ";

/// Options with a short form that advice uses.
const SHORT: [(&str, &str); 4] =
    [("-n", "requests"), ("-R", "rate"), ("-c", "vusers"), ("-d", "duration")];

impl Report {
    /// Takes out of each next step what the command did already.
    pub fn drop_present_advice(&mut self) {
        let command = self.command.to_string();
        for finding in &mut self.findings {
            finding.next_step = without_present(&finding.next_step, &command, &self.spec);
        }
    }
}

/// The advice without the pieces that equal what is, and without what depends on them.
fn without_present(step: &str, command: &str, spec: &BTreeMap<String, Value>) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut is_dropped = false;
    let mut is_changed = false;
    for piece in step.split(BETWEEN) {
        let is_alternative = piece.starts_with(ALTERNATIVE);
        is_dropped = is_present(piece, command, spec) || (is_dropped && !is_alternative);
        is_changed |= is_dropped;
        if !is_dropped {
            kept.push(piece);
        }
    }
    let rest = kept.join(BETWEEN);
    if !is_changed {
        return rest;
    }
    rest.strip_prefix(ALTERNATIVE).unwrap_or(&rest).to_owned()
}

/// Whether a piece of advice names options, each at the value that it has.
fn is_present(piece: &str, command: &str, spec: &BTreeMap<String, Value>) -> bool {
    // Words without the marks around them.
    let words: Vec<&str> = piece
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| "`'\",.;:()".contains(c)))
        .collect();
    let raw: Vec<&str> = piece.split_whitespace().collect();
    let is_command = |word: &str| word.trim_start_matches('`') == "knee";
    if raw.windows(2).any(|pair| is_command(pair[0]) && pair[1] != command) {
        return false;
    }
    let mut options = words.iter().enumerate().filter_map(|(at, word)| {
        let short = SHORT.iter().find(|(short, _)| short == word);
        let name = word.strip_prefix("--").or(short.map(|(_, name)| *name))?;
        let (name, value) = match name.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (name, words.get(at + 1).copied()),
        };
        Some((name.replace('-', "_"), value))
    });
    let Some(first) = options.next() else {
        return false;
    };
    std::iter::once(first).chain(options).all(|(name, value)| {
        let present = spec.get(&name).or_else(|| spec.get(&name.replace('_', "-")));
        present.zip(value).is_some_and(|(present, value)| is_same(present, value))
    })
}

fn is_same(present: &Value, value: &str) -> bool {
    let text = match present {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => {
            items.iter().map(|i| i.to_string().replace('"', "")).collect::<Vec<_>>().join(",")
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => return false,
    };
    let has_unit = |text: &str| text.ends_with(char::is_alphabetic);
    let durations = || parse_duration(&text).ok().zip(parse_duration(value).ok());
    let rates = || parse_rate(&text).ok().zip(parse_rate(value).ok());
    text == value
        || (has_unit(&text) && has_unit(value) && durations().is_some_and(|(a, b)| a == b))
        || rates().is_some_and(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> BTreeMap<String, Value> {
        [
            ("timeout", Value::from("2s")),
            ("rate", Value::from("1000/s")),
            ("vusers", Value::from("auto")),
            ("warmup", Value::from("1s")),
            ("duration", Value::from("2s")),
            ("connect_timeout", Value::from("500ms")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    #[test]
    fn advice_that_repeats_the_command_is_dropped() {
        for (step, left) in [
            ("allow more time: --timeout 2s", ""),
            ("allow more time: --timeout 2000ms", ""),
            ("repeat with --rate 1000", ""),
            ("repeat with -R 1000/s", ""),
            ("find the knee: knee sweep URL --vusers auto", ""),
            ("give up later: --connect-timeout 500ms.", ""),
            ("settle: --warmup 1s --duration 2s; if it still drifts, it changes", ""),
            ("wait: --timeout 2s; or read it as a lower bound", "read it as a lower bound"),
        ] {
            assert_eq!(without_present(step, "sweep", &spec()), left, "{step}");
        }
    }

    #[test]
    fn advice_that_changes_something_stays() {
        for step in [
            "",
            "nothing",
            "allow more time: --timeout 3s",
            "allow more time: --timeout",
            "offer less: a lower --rate or --vusers",
            "knee run URL --vusers auto",
            "settle: --warmup 1s --duration 4s; if it still drifts, it changes",
            "make one request work first: knee run URL --vusers 1 -n 1",
        ] {
            assert_eq!(without_present(step, "sweep", &spec()), step);
        }
    }
}
