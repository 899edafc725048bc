//! A report file may hold anything in its strings: nothing of it reaches a terminal or a page as
//! more than text.

use crate::{Csv, Html, Junit, Renderer, Text, fixtures, parse_report};
use knee_core::report::Report;
use knee_load::shown::is_hidden;
use serde_json::Value;

/// Escape sequences with C0 and C1, marks of the direction of writing, and what nobody sees.
const HOSTILE: &str = "x\u{1b}[31m\u{1b}]0;t\u{7}\u{9b}2J\r\u{8}\u{202e}\u{2066}\u{200b}\u{feff}y";

/// One step into a document.
#[derive(Clone)]
enum Step {
    Key(String),
    Index(usize),
}

/// Where all strings and all objects are.
fn places(value: &Value, path: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
    match value {
        Value::String(_) => found.push(path.clone()),
        Value::Object(object) => {
            found.push(path.clone());
            for (key, value) in object {
                path.push(Step::Key(key.clone()));
                places(value, path, found);
                path.pop();
            }
        }
        Value::Array(array) => {
            for (index, value) in array.iter().enumerate() {
                path.push(Step::Index(index));
                places(value, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

fn at<'a>(document: &'a mut Value, path: &[Step]) -> &'a mut Value {
    path.iter().fold(document, |value, step| match step {
        Step::Key(key) => &mut value[key],
        Step::Index(index) => &mut value[*index],
    })
}

/// A string made hostile, or an object with one more, hostile key.
fn spoil(value: &mut Value) {
    match value {
        Value::String(text) => text.push_str(HOSTILE),
        Value::Object(object) => {
            let any = object.values().next().cloned().unwrap_or(Value::Null);
            object.insert(HOSTILE.to_owned(), any);
        }
        _ => {}
    }
}

/// The report with everything hostile that can be, and in how many places that was.
fn spoilt(report: &Report) -> (Report, usize) {
    let mut document = serde_json::to_value(report).unwrap();
    // Lists of intervals and flows are all alike.
    let mut found = Vec::new();
    places(&document, &mut Vec::new(), &mut found);
    let alike = |path: &Vec<Step>| path.iter().any(|s| matches!(s, Step::Index(1..)));
    found.retain(|path| !alike(path));
    let mut count = 0;
    for path in found {
        let whole = at(&mut document, &path).clone();
        spoil(at(&mut document, &path));
        match parse_report(&document.to_string()) {
            Ok(_) => count += 1,
            // One of few words, or no text: a file with another is refused.
            Err(line) => {
                assert!(!line.contains('\n'), "{line:?}");
                *at(&mut document, &path) = whole;
            }
        }
    }
    (parse_report(&document.to_string()).unwrap(), count)
}

#[test]
fn no_string_of_a_report_file_is_more_than_text() {
    for (name, report) in fixtures::all() {
        let (report, count) = spoilt(&report);
        assert!(count > 10, "{name}: only {count} places");
        let plain = Text::default();
        let ascii = Text { unicode: false, ..Text::default() };
        let forms: [(&str, &dyn Renderer); 5] = [
            ("text", &plain),
            ("ascii", &ascii),
            ("page", &Html),
            ("JUnit", &Junit),
            ("CSV", &Csv),
        ];
        for (form, renderer) in forms {
            let mut bytes = Vec::new();
            renderer.render(&report, &mut bytes).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            let bad = text.find(|c| is_hidden(c) && !matches!(c, '\n' | '\t'));
            let around = bad.map(|at| text[at..].chars().take(40).collect::<String>());
            assert_eq!(around, None, "{name} as {form}");
        }
        // It is shown, and not left out: an answer with something strange in it looks strange.
        let mut text = Vec::new();
        plain.render(&report, &mut text).unwrap();
        assert!(String::from_utf8(text).unwrap().contains("\\u{1b}"), "{name}");
    }
}

/// In colour the only sequences are those that knee writes, which set colours.
#[test]
fn colours_are_the_only_sequences() {
    let (_, report) = fixtures::all().swap_remove(0);
    let (report, _) = spoilt(&report);
    let mut bytes = Vec::new();
    let color = Text { color: true, ..Text::default() };
    color.render(&report, &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    for sequence in text.split('\u{1b}').skip(1) {
        let end = sequence.find('m').expect("it ends");
        let inner = sequence[..end].strip_prefix('[').expect("it sets a colour");
        assert!(inner.chars().all(|c| c.is_ascii_digit() || c == ';'), "{sequence:?}");
    }
    assert!(!text.contains(|c| is_hidden(c) && !matches!(c, '\n' | '\u{1b}')));
}
