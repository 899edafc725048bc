//! Test plans of JMeter in short, what they become, and what is left out.

use super::{cases, read};
use crate::import::jmeter;
use std::fmt::Write as _;

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;")
}

fn property(name: &str, value: &str) -> String {
    format!("<stringProp name='{name}'>{}</stringProp>", escaped(value))
}

/// A property of a case: a text, or a list of texts with `|` between them. A list of lists has `;`
/// between them, and an element in a list is `key=value | key=value`.
fn written(line: &str) -> String {
    // A name with blanks is in quotes.
    let (name, value) = match line.strip_prefix('"').and_then(|line| line.split_once("\" ")) {
        Some(quoted) => quoted,
        None => line.split_once(' ').unwrap_or((line, "")),
    };
    let texts =
        |list: &str| -> String { list.split(" | ").map(|text| property("0", text)).collect() };
    if let Some(name) = name.strip_suffix("[[]]") {
        let lists = value.split(" ; ").map(texts);
        let lists = lists.map(|list| format!("<collectionProp name='0'>{list}</collectionProp>"));
        return format!(
            "<collectionProp name='{name}'>{}</collectionProp>",
            lists.collect::<String>()
        );
    }
    if let Some(name) = name.strip_suffix("[]") {
        return format!("<collectionProp name='{name}'>{}</collectionProp>", texts(value));
    }
    if let Some(name) = name.strip_suffix("{}") {
        let properties = value.split(" | ").map(|one| {
            let (key, value) = one.split_once('=').unwrap_or((one, ""));
            property(key, value)
        });
        let element =
            format!("<elementProp name='x'>{}</elementProp>", properties.collect::<String>());
        // `outer/list` is a list in an element.
        return match name.split_once('/') {
            None => format!("<collectionProp name='{name}'>{element}</collectionProp>"),
            Some((outer, list)) => format!(
                "<elementProp name='{outer}'><collectionProp name='{list}'>{element}\
                 </collectionProp></elementProp>"
            ),
        };
    }
    if let Some((outer, name)) = name.split_once('/') {
        return format!("<elementProp name='{outer}'>{}</elementProp>", property(name, value));
    }
    property(name, value)
}

/// The plan of a case. A line is an element, `Kind name`, or a property of it, `@name value`; what
/// is further to the right lies below it. `GET /path` is a request to the host `h`.
fn plan(case: &str) -> String {
    let mut xml = "<jmeterTestPlan><hashTree><TestPlan testname='Plan'/><hashTree>\n".to_owned();
    // The elements that are open, by their place, and whether their properties are at the end.
    let mut open: Vec<(usize, String, bool)> = Vec::new();
    let has_group = case.lines().any(|line| line.contains("ThreadGroup"));
    let lines = case.lines().map(str::to_owned);
    let lines: Vec<String> = if has_group {
        lines.collect()
    } else {
        let group = ["ThreadGroup Users", "  @ThreadGroup.num_threads 1"].map(str::to_owned);
        group.into_iter().chain(lines.map(|line| format!("  {line}"))).collect()
    };
    for line in lines {
        let text = line.trim_start();
        let place = line.len() - text.len();
        if let Some(property) = text.strip_prefix('@') {
            xml.push_str(&written(property));
            continue;
        }
        close(&mut xml, &mut open, place);
        if let Some((_, kind, ended)) = open.last_mut().filter(|(_, _, ended)| !*ended) {
            let _ = write!(xml, "</{kind}><hashTree>");
            *ended = true;
        }
        let (kind, name) = text.split_once(' ').unwrap_or((text, ""));
        let is_request = kind.bytes().all(|b| b.is_ascii_uppercase());
        let tag = if is_request { "HTTPSamplerProxy" } else { kind };
        let _ = write!(xml, "\n<{tag} testname='{}'>", escaped(name));
        if is_request {
            let of = [("domain", "h"), ("path", name), ("method", kind)];
            of.iter().for_each(|(key, value)| {
                xml.push_str(&property(&format!("HTTPSampler.{key}"), value));
            });
        }
        open.push((place, tag.to_owned(), false));
    }
    close(&mut xml, &mut open, 0);
    xml + "</hashTree></hashTree></jmeterTestPlan>"
}

/// Ends the elements that do not reach this place.
fn close(xml: &mut String, open: &mut Vec<(usize, String, bool)>, place: usize) {
    while let Some((_, kind, ended)) = open.pop_if(|(own, _, _)| *own >= place) {
        if !ended {
            let _ = write!(xml, "</{kind}><hashTree>");
        }
        xml.push_str("</hashTree>");
    }
}

/// Lines that nearly all cases have.
const COMMON: [&str; 8] = [
    "# Imported from a plan.",
    "# JMeter sends no cookies without a Cookie Manager; sessions here do.",
    "# JMeter waits without a limit; requests here have that of knee, 10s.",
    "target: http://h",
    "sessions:",
    "on_failure: continue",
    "vusers: 1",
    "load:",
];

/// What a case becomes, without what is common and without the numbers of lines.
fn result(case: &str) -> String {
    let imported = match jmeter(plan(case).as_bytes()) {
        Ok(imported) => imported,
        Err(wrong) => return format!("error: {}\n", wrong.0),
    };
    read(&imported);
    let yaml = imported.to_yaml("a plan");
    let mut text = String::new();
    for line in yaml.lines().filter(|line| !COMMON.contains(&line.trim())) {
        let line = match line.split_once("left out: line ") {
            Some((before, rest)) => {
                let rest = rest.split_once(": ").map_or(rest, |(_, rest)| rest);
                format!("{before}left out: {rest}")
            }
            None => line.to_owned(),
        };
        let _ = writeln!(text, "{line}");
    }
    text
}

/// A plan with the elements of all cases that have no thread group of their own.
pub(super) fn everything() -> String {
    let plans = cases(include_str!("plan_cases.txt")).map(|(_, plan, _)| plan);
    let plans = plans.filter(|plan| !plan.contains("ThreadGroup"));
    plan(&plans.collect::<String>())
}

#[test]
fn plans_become_sessions() {
    let (mut count, mut wrong) = (0, String::new());
    for (name, plan, expected) in cases(include_str!("plan_cases.txt")) {
        let result = result(plan);
        if result.trim_end() != expected {
            let _ = write!(wrong, "\n=== {name}\n{plan}--- becomes\n{result}");
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= 45, "{count}");
}
