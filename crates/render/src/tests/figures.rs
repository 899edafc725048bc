//! A figure that text and page both show has the same digits in both. No form shows a number that
//! is not in the JSON.

use crate::{Html, Json, Markdown, Renderer, Text, fixtures, number};
use knee_core::compare::report::Comparison;
use serde_json::Value;
use std::collections::BTreeSet;

/// The units that distinguish figures, the longer ones first where one begins another.
const UNITS: [&str; 9] = ["KiB/s", "/s", "%", "ns", "µs", "ms", "s", "Hz", "users"];

/// Digits, without the commas between thousands, and their unit.
type Figure = (String, &'static str);

/// All numbers with a unit in a text.
fn figures(text: &str) -> BTreeSet<Figure> {
    let is_of_number = |c: char| c.is_ascii_digit() || c == ',' || c == '.';
    let mut found = BTreeSet::new();
    let mut rest = text;
    while let Some(begin) = rest.find(|c: char| c.is_ascii_digit()) {
        let is_of_name = rest[..begin].ends_with(|c: char| c.is_alphanumeric() || c == '=');
        rest = &rest[begin..];
        let end = rest.find(|c| !is_of_number(c)).unwrap_or(rest.len());
        let (digits, behind) = rest.split_at(end);
        rest = behind;
        let behind = behind.strip_prefix(' ').unwrap_or(behind);
        let is_unit = |unit: &&str| {
            let after = behind.strip_prefix(*unit);
            after.is_some_and(|after| !after.starts_with(char::is_alphanumeric))
        };
        let unit = UNITS.iter().find(|unit| is_unit(unit));
        if let (Some(unit), false) = (unit, is_of_name || digits.ends_with([',', '.'])) {
            found.insert((digits.replace(',', ""), *unit));
        }
    }
    found
}

fn written<T>(form: &dyn Renderer<T>, whole: &T) -> String {
    let mut bytes = Vec::new();
    form.render(whole, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap().replace('\u{a0}', " ")
}

/// Characters that were written as entities.
fn unescaped(text: &str) -> String {
    text.replace("&#39;", "'").replace("&#64;", "@")
}

/// The words of a page without marks along axes, the data below the figures and what was asked.
fn words<T>(whole: &T) -> String
where
    Html: Renderer<T>,
{
    let page = written(&Html, whole);
    let (_, page) = page.split_once("<main>").unwrap();
    let page = page.split("</main>").next().unwrap();
    let page = page.split("What was asked").next().unwrap();
    let mut words = String::new();
    let mut rest = page;
    while let Some((before, tag)) = rest.split_once('<') {
        words.push_str(before);
        words.push(' ');
        let skipped = [
            ("text class=\"y\"", "</text>"),
            ("g class=\"x", "</g>"),
            ("details class=\"data\"", "</details>"),
            ("desc", "</desc>"),
        ];
        let skipped = skipped.iter().find(|(begin, _)| tag.starts_with(begin));
        let end = skipped.map_or(">", |(_, end)| end);
        rest = tag.split_once(end).unwrap().1;
    }
    unescaped(&words)
}

/// The text without what is drawn in it: no marks along axes.
fn undrawn(text: &str) -> String {
    let mut lines = Vec::new();
    let mut is_of_axis = false;
    for line in text.lines() {
        let is_drawn = line.contains(['┤', '│', '└', '█']);
        if !is_drawn && !is_of_axis {
            lines.push(line);
        }
        is_of_axis = line.contains('└');
    }
    lines.join("\n")
}

/// All numbers of a text that are not part of a name.
fn numbers(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut before = ' ';
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_of_number = |c: char| c.is_ascii_digit() || c == ',' || c == '.';
        let end = if c.is_ascii_digit() {
            rest.find(|c| !is_of_number(c)).unwrap_or(rest.len())
        } else {
            c.len_utf8()
        };
        let (token, behind) = rest.split_at(end);
        if c.is_ascii_digit() && !before.is_alphanumeric() {
            found.insert(token.trim_end_matches([',', '.']).to_owned());
        }
        before = token.chars().last().unwrap_or(' ');
        rest = behind;
    }
    found
}

/// Numbers of words that are always the same. They are confidence, percentiles, lengths of bins,
/// powers of ten at which a scale begins, and the least and the greatest status of a client error.
const OF_WORDS: [&str; 16] = [
    "400", "499", "0", "1", "10", "100", "1,000", "10,000", "2", "5", "50", "90", "95", "99",
    "99.9", "0.9",
];

/// What a number of the JSON may look like.
fn forms(n: f64) -> Vec<String> {
    let whole = n.abs() as u64;
    let mut forms = vec![
        number::count(whole),
        whole.to_string(),
        number::bytes(whole),
        number::time(whole),
        number::time_short(whole),
        number::time_to_5_digits(whole),
        number::time_uncertainty(whole),
        number::r_squared(n.abs()),
        format!("{:.1}", n / 1e6),
        format!("{:.2}", (n.abs() * 100.0 + 1e-6).floor() / 100.0),
    ];
    forms.extend(
        [1, 10_000, 10_000_000, 10_000_000_000].map(|hi| number::time_interval([whole, hi])),
    );
    for n in [n.abs(), n.abs() / 1_024.0] {
        let shown =
            [number::number, number::whole_or_rounded, number::percent, number::percent_short];
        forms.extend(shown.map(|shown| shown(n)));
        forms.push(number::estimate(n));
        forms.extend((0..=6).map(|decimals| number::fixed(n, decimals)));
    }
    forms
}

/// All numbers that the JSON has, in each of their forms.
fn known(json: &Value, to: &mut BTreeSet<String>) {
    let add = |n: f64, to: &mut BTreeSet<String>| {
        forms(n).iter().for_each(|form| to.extend(numbers(form)));
    };
    match json {
        Value::Number(n) => add(n.as_f64().unwrap_or_default(), to),
        Value::String(text) => to.extend(numbers(text)),
        Value::Array(items) => {
            add(items.len() as f64, to);
            items.iter().for_each(|item| known(item, to));
        }
        Value::Object(fields) => {
            add(fields.len() as f64, to);
            let of = |key: &str| fields.get(key).and_then(Value::as_f64);
            if let (Some(start), Some(end)) = (of("start_ns"), of("end_ns")) {
                add(end - start, to);
                let counts = fields.values().filter_map(Value::as_f64);
                counts.for_each(|n| add(n * 1e9 / (end - start), to));
            }
            for (name, value) in fields {
                to.extend(numbers(name));
                known(value, to);
            }
        }
        _ => {}
    }
}

/// What text, page and Markdown show that the JSON does not have.
fn unknown<T>(name: &str, whole: &T) -> Vec<String>
where
    Text: Renderer<T>,
    Html: Renderer<T>,
    Markdown: Renderer<T>,
    Json: Renderer<T>,
{
    let json: Value = serde_json::from_str(&written(&Json, whole)).unwrap();
    let mut told: BTreeSet<String> = OF_WORDS.map(str::to_owned).into();
    known(&json, &mut told);
    let text = undrawn(&written(&Text::default(), whole));
    let forms = [
        ("text", text),
        ("page", words(whole)),
        ("markdown", unescaped(&written(&Markdown, whole))),
    ];
    let of_form = |(form, shown): (&str, String)| {
        let new = numbers(&shown);
        let new: Vec<String> = new.difference(&told).cloned().collect();
        new.into_iter().map(|n| format!("{name}: {n} in the {form}")).collect::<Vec<_>>()
    };
    forms.into_iter().flat_map(of_form).collect()
}

#[test]
fn no_form_shows_a_number_that_the_json_does_not_have() {
    let mut troubles = Vec::new();
    for (name, report) in fixtures::all() {
        troubles.extend(unknown(name, &report));
    }
    for (name, comparison) in [("sweeps", fixtures::sweeps()), ("slower", fixtures::slower())] {
        troubles.extend(unknown::<Comparison>(name, &comparison));
    }
    assert!(troubles.is_empty(), "{troubles:#?}");
}

#[test]
fn a_number_that_is_made_up_is_found() {
    let mut told = BTreeSet::new();
    known(&serde_json::json!({"p50_ns": 1_234_567, "of": [0.25]}), &mut told);
    let shown = numbers("p50 1.23 ms, 1.235 ms, p99 3 of 0.25; 17.5 %");
    let made_up: Vec<&String> = shown.difference(&told).collect();
    assert_eq!(made_up, ["1.235", "17.5", "3"]);
}

/// Rounded to as many significant digits as another number has.
fn is_rounded(short: &str, long: &str) -> bool {
    let significant = |n: &str| n.replace('.', "").trim_start_matches('0').len();
    let (few, many) = (significant(short), significant(long));
    let [a, b]: [f64; 2] = [short, long].map(|n| n.parse().unwrap());
    let rounded: f64 = format!("{b:.*e}", few.max(1) - 1).parse().unwrap();
    few >= 2 && few < many && a != b && a == rounded
}

#[test]
fn text_and_page_show_the_same_digits() {
    let mut compared = 0;
    let mut troubles = Vec::new();
    for (name, report) in fixtures::all() {
        let mut bytes = Vec::new();
        Text::default().render(&report, &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (text, page) = (figures(&text), figures(&words(&report)));
        compared += text.intersection(&page).count();
        for (digits, unit) in text.difference(&page) {
            let same_unit = page.difference(&text).filter(|(_, other)| other == unit);
            for (others, _) in same_unit {
                if is_rounded(digits, others) || is_rounded(others, digits) {
                    troubles.push(format!("{name}: {digits} and {others} {unit}"));
                }
            }
        }
    }
    assert!(troubles.is_empty(), "{troubles:#?}");
    assert!(compared > 200, "{compared}");
}

#[test]
fn a_rounded_figure_is_found() {
    assert!(is_rounded("17", "17.1") && is_rounded("1.1", "1.06"));
    assert!(!is_rounded("17.1", "17.1") && !is_rounded("17", "18.1"));
    assert!(!is_rounded("8565", "8566") && !is_rounded("1.5", "1.50"));
    let found = figures("p90=1.5 ms, 17 % of 8,565/s at p99 2 ms; 12 trials");
    let found: Vec<(&str, &str)> = found.iter().map(|(n, u)| (n.as_str(), *u)).collect();
    assert_eq!(found, [("17", "%"), ("2", "ms"), ("8565", "/s")]);
}
