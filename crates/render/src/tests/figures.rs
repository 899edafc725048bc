//! A figure that text and page both show has the same digits in both.

use crate::{Html, Renderer, Text, fixtures};
use knee_core::report::Report;
use std::collections::BTreeSet;

/// The units that figures are told apart by, the longer ones first where one begins another.
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

/// The words of a page without marks along axes, the data below the figures and what was asked.
fn words(report: &Report) -> String {
    let mut bytes = Vec::new();
    Html.render(report, &mut bytes).unwrap();
    let page = String::from_utf8(bytes).unwrap();
    let (_, page) = page.split_once("<main>").unwrap();
    let (page, _) = page.split_once("What was asked").unwrap();
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
    words.replace('\u{a0}', " ")
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
