//! The end of a report: thresholds, the command that repeats the run, options, host.

use super::head::{is_of_others, target};
use super::line::{Ink, Line};
use super::{Block, Document, Fact, Medium, fact, traffic};
use crate::number;
use knee_core::report::{Report, ThresholdReport};
use knee_core::trial::report::Verdict;
use knee_load::secrets::variables_of;
use serde_json::Value;
use std::collections::BTreeSet;

/// Adds the sections at the end.
pub(super) fn show(doc: &mut Document, report: &Report) {
    let routed = traffic::routed_facts(&report.trials);
    if !routed.is_empty() {
        doc.section("Connections", "of all trials");
        doc.facts(routed);
    }
    if !report.thresholds.is_empty() {
        doc.section("Thresholds", "");
        doc.facts(thresholds(report));
    }
    if !is_of_others(report) {
        doc.section("Repeat", "");
        doc.push(Block::Command(command_line(report)));
        if let Some(missing) = missing_secrets(report) {
            doc.paragraph(Line::of(Ink::Warn, missing));
        }
        doc.only(Medium::Lines, |doc| doc.note(host_line(report)));
    }
    doc.only(Medium::Page, |doc| {
        doc.section("What was asked", "");
        doc.facts(option_facts(report));
        if !is_of_others(report) {
            doc.section("Where it ran", "");
            doc.facts(host(report));
        }
    });
}

/// The options of the run.
fn option_facts(report: &Report) -> Vec<Fact> {
    let mut facts: Vec<Fact> = report.spec.iter().filter_map(option).collect();
    if !report.spec.contains_key("seed") {
        facts.push(fact("seed", report.seed.to_string()));
    }
    facts
}

fn option((name, value): (&String, &Value)) -> Option<Fact> {
    let bare = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    };
    let text = match value {
        Value::Null => return None,
        Value::Array(items) => items.iter().map(bare).collect::<Vec<_>>().join(", "),
        other => bare(other),
    };
    Some(fact(number::words(name).replace('-', " "), text))
}

/// The result of each threshold.
fn thresholds(report: &Report) -> Vec<Fact> {
    let fact = |threshold: &ThresholdReport| {
        let (ink, word) = match (threshold.crossed.is_empty(), threshold.is_kept()) {
            (false, _) => (Ink::Bad, "crossed"),
            (true, false) => (Ink::Bad, "undecided"),
            (true, true) if report.verdict == Verdict::Invalid => (Ink::Plain, "kept"),
            (true, true) => (Ink::Good, "kept"),
        };
        let lines =
            [&threshold.crossed, &threshold.undecided, &threshold.undetermined, &threshold.kept];
        let lines: Vec<&str> = lines.into_iter().flatten().map(String::as_str).collect();
        let line = Line::of(ink, word).with(Ink::Plain, format!("  {}", lines.join("; ")));
        (threshold.expression.clone(), line)
    };
    report.thresholds.iter().map(fact).collect()
}

/// The command that repeats the run.
fn command_line(report: &Report) -> String {
    if let Some(run) = report.spec.get("collected").and_then(Value::as_str) {
        let nats = option_words("nats", &report.spec["nats"]).join(" ");
        return format!("knee fleet collect {} {nats}", quoted(run));
    }
    let mut words = vec![format!("knee {}", report.command)];
    if !target(report).is_empty() {
        words.push(quoted(target(report)));
    }
    let positional = ["target", "url", "file", "seed"];
    for (name, value) in &report.spec {
        if !positional.contains(&name.as_str()) {
            words.extend(option_words(&name.replace('_', "-"), value));
        }
    }
    words.push(format!("--seed{}{}", number::TIE, report.seed));
    words.join(" ")
}

/// The variables to be set before the command repeats the run, as a report has no secrets.
fn missing_secrets(report: &Report) -> Option<String> {
    let texts: Vec<String> = report.spec.values().map(Value::to_string).collect();
    let names = texts
        .iter()
        .flat_map(|text| variables_of(text).into_iter().map(move |at| &text[at.start + 1..at.end]));
    let names = BTreeSet::from_iter(names);
    let names = Vec::from_iter(names).join(", ");
    (!names.is_empty()).then(|| {
        format!(
            "The report has no secrets. Set these variables before you repeat the run: {names}."
        )
    })
}

/// An option as typed: a flag if true, repeated for a list of texts, with commas for a list of
/// numbers, nothing if not set.
fn option_words(name: &str, value: &Value) -> Vec<String> {
    let option = |text: &str| format!("--{name}{}{}", number::TIE, quoted(text));
    match value {
        Value::Null | Value::Bool(false) | Value::Object(_) => Vec::new(),
        Value::Bool(true) => vec![format!("--{name}")],
        Value::Number(n) => vec![option(&n.to_string())],
        Value::String(s) => vec![option(s)],
        Value::Array(items) if items.is_empty() => Vec::new(),
        Value::Array(items) if items.iter().all(Value::is_number) => {
            let numbers: Vec<String> = items.iter().map(Value::to_string).collect();
            vec![option(&numbers.join(","))]
        }
        Value::Array(items) => items.iter().flat_map(|v| option_words(name, v)).collect(),
    }
}

/// Quotes a word for a POSIX shell, which still expands the variables of secrets in it.
pub fn quoted(word: &str) -> String {
    let variables = variables_of(word);
    if variables.is_empty() {
        return literal(word);
    }
    // In double quotes these mean something else.
    let is_special = |c: char| "\"$`\\!".contains(c);
    let mut out = String::new();
    let mut is_open = false;
    let mut put = |text: &str, is_double: bool| {
        if is_double != is_open {
            out.push('"');
            is_open = is_double;
        }
        out.push_str(text);
    };
    let mut from = 0;
    let end = std::iter::once(word.len()..word.len());
    for at in variables.into_iter().chain(end) {
        let text = &word[from..at.start];
        if text.contains(is_special) {
            put(&literal(text), false);
        } else if !text.is_empty() {
            put(text, true);
        }
        if !at.is_empty() {
            put(&format!("${{{}}}", &word[at.start + 1..at.end]), true);
        }
        from = at.end;
    }
    put("", false);
    out
}

fn literal(word: &str) -> String {
    let is_harmless = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_harmless) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn host(report: &Report) -> Vec<Fact> {
    let host = &report.host;
    let mut facts = vec![
        ("processors".to_owned(), number::count(host.cpus.into())),
        ("model".to_owned(), host.cpu_model.clone()),
        ("kernel".to_owned(), host.kernel.clone()),
        ("backend".to_owned(), host.backend.clone()),
        ("congestion control".to_owned(), host.congestion_control.clone()),
    ];
    let further = host.facts.iter();
    facts.extend(further.map(|(name, fact)| (number::words(name), fact.clone())));
    facts.push(("knee".to_owned(), report.knee_version.clone()));
    facts.push(("started".to_owned(), report.started_at.clone()));
    let known = facts.into_iter().filter(|(_, fact)| !fact.is_empty());
    known.map(|(name, text)| fact(name, text)).collect()
}

/// The host in a line.
fn host_line(report: &Report) -> String {
    let host = &report.host;
    let named = [
        number::plural(u64::from(host.cpus), "CPU"),
        host.cpu_model.clone(),
        host.kernel.clone(),
        host.backend.clone(),
        host.congestion_control.clone(),
    ];
    let mut parts = Vec::from_iter(named);
    parts.retain(|part| !part.is_empty());
    let facts = host.facts.iter();
    parts.extend(facts.map(|(name, fact)| format!("{} {fact}", number::words(name))));
    parts.push(format!("knee {}", report.knee_version));
    parts.push(report.started_at.clone());
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spec_becomes_a_command_that_a_shell_can_read() {
        let mut report = crate::fixtures::run_open();
        report.seed = 7;
        report.spec = [
            ("target", Value::from("http://[::1]:80/?a=1&b=it's")),
            ("rate", Value::from(5000)),
            ("header", Value::from(vec!["A: b", "C: d"])),
            ("vusers", Value::from(vec![1, 10])),
            ("max_in_flight", Value::Null),
            ("no_keepalive", Value::from(true)),
            ("quiet", Value::from(false)),
        ]
        .map(|(k, v)| (k.to_string(), v))
        .into();
        assert_eq!(
            command_line(&report).replace(number::TIE, " "),
            "knee run 'http://[::1]:80/?a=1&b=it'\\''s' --header 'A: b' --header 'C: d' \
             --no-keepalive --rate 5000 --vusers 1,10 --seed 7"
        );
        assert_eq!(missing_secrets(&report), None);
    }

    #[test]
    fn variables_stand_for_secrets_in_any_shell() {
        for (word, expected) in [
            ("$KNEE_SECRET_A", "\"${KNEE_SECRET_A}\""),
            ("A: $KNEE_SECRET_A", "\"A: ${KNEE_SECRET_A}\""),
            (
                "{\"a\":\"$KNEE_SECRET_A\",\"b\":\"it's $1\"}",
                "'{\"a\":\"'\"${KNEE_SECRET_A}\"'\",\"b\":\"it'\\''s $1\"}'",
            ),
            ("me:$KNEE_SECRET_A`x`", "\"me:${KNEE_SECRET_A}\"'`x`'"),
            ("$HOME $KNEE_SECRET_", "'$HOME $KNEE_SECRET_'"),
        ] {
            assert_eq!(quoted(word), expected);
            let read = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {}", quoted(word))])
                .env("KNEE_SECRET_A", "a \"b' $c")
                .output()
                .expect("a shell");
            let text = String::from_utf8_lossy(&read.stdout).into_owned();
            assert_eq!(text, word.replace("$KNEE_SECRET_A", "a \"b' $c"), "{word}");
        }
    }

    #[test]
    fn variables_to_set_before_a_repetition_are_told() {
        let mut report = crate::fixtures::run_open();
        assert_eq!(missing_secrets(&report), None);
        report.spec.insert("user".into(), "me:$KNEE_SECRET_PASSWORD".into());
        let mut text = Vec::new();
        crate::Renderer::render(&crate::Text::default(), &report, &mut text).expect("memory");
        let text = String::from_utf8(text).expect("text");
        for told in [
            "--user \"me:${KNEE_SECRET_PASSWORD}\"",
            "before you repeat the run: KNEE_SECRET_PASSWORD.",
        ] {
            assert!(text.contains(told), "{text}");
        }
    }
}
