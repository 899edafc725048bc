//! What a tool answers: the figures and findings of a report, without its series, as a value and as
//! a text. A large JSON document is handed out in pages.

use super::child::EndedChild;
use super::tools::ToolOutput;
use crate::command::http_runner::level_line;
use crate::history;
use crate::output::text;
use knee_core::compare::report::{Comparison, ComparisonVerdict};
use knee_core::report::Report;
use knee_core::trial::figure::Figure;
use knee_core::trial::report::{TrialReport, Verdict};
use knee_core::trial::statistics::statistic;
use knee_load::shown::shown;
use knee_render::{Renderer, answer, headline, parse_report};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Statistics of each trial, by their keys.
const FIGURES: [&str; 7] =
    ["throughput_per_s", "mean_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns", "error_percent"];

/// The JSON Schema of what a tool answers; `None` of text.
pub(super) fn output_schema(of: ToolOutput) -> Option<Map<String, Value>> {
    let (properties, optional): (Value, &[&str]) = match of {
        ToolOutput::Measurement => (measurement_properties(), &[]),
        ToolOutput::LiveComparison | ToolOutput::Comparison => (comparison_properties(), &[]),
        ToolOutput::Page => (page_properties(), &["offset", "length", "next_offset"]),
        ToolOutput::Text => return None,
    };
    let names = properties.as_object().into_iter().flat_map(Map::keys);
    let required: Vec<&String> = names.filter(|name| !optional.contains(&name.as_str())).collect();
    let schema = json!({"type": "object", "required": required, "properties": properties});
    schema.as_object().cloned()
}

fn measurement_properties() -> Value {
    json!({
        "run": {
            "type": ["integer", "null"],
            "description": "Id in the history; null if the run was not kept"
        },
        "verdict": {
            "enum": ["valid", "invalid"],
            "description": "Whether the figures are the server's"
        },
        "result": {"enum": ["passed", "failed"]},
        "interrupted": {"type": "boolean", "description": "Whether it was ended early"},
        "answer": {"type": "string"},
        "failed_because": {"type": "array", "items": {"type": "string"}},
        "invalid_because": {"type": "array", "items": {"type": "string"}},
        "trials": {
            "type": "array",
            "description": "Key figures of each load: a number, a range or null if unknown",
            "items": {"type": "object"}
        },
        "findings": {
            "type": "array",
            "description": "The gravest first; the tool explain tells more of a code",
            "items": {
                "type": "object",
                "properties": {
                    "code": {"type": "string"},
                    "severity": {"enum": ["info", "warning", "error"]},
                    "text": {"type": "string"},
                    "next_step": {"type": "string"}
                },
                "required": ["code", "severity", "text", "next_step"]
            }
        }
    })
}

fn comparison_properties() -> Value {
    json!({
        "answer": {"type": "string"},
        "verdict": {
            "enum": ["better", "worse", "different", "same", "unknown"],
            "description": "Of B against A, by what matters"
        },
        "has_invalid": {
            "type": "boolean",
            "description": "Whether a report, or a part of one, is INVALID"
        },
        "warnings": {"type": "array", "items": {"type": "string"}},
        "rows": {
            "type": "array",
            "description": "Figures that matter or differ",
            "items": {"type": "object"}
        }
    })
}

fn page_properties() -> Value {
    json!({
        "pointer": {"type": "string"},
        "value": {},
        "offset": {"type": "integer"},
        "length": {"type": "integer", "description": "Number of all members"},
        "next_offset": {"type": "integer", "description": "Absent on the last page"}
    })
}

/// The answer of a tool whose command has ended; `place`: of a page.
pub(super) fn of(output: ToolOutput, ended: &EndedChild, place: (&str, usize)) -> CallToolResult {
    // 1 and 3 tell what was measured, 128 and more that it was ended.
    let has_answered = matches!(ended.code, Some(0 | 1 | 3 | 128..));
    let answered = if has_answered {
        match output {
            ToolOutput::Measurement => measured(ended),
            ToolOutput::LiveComparison | ToolOutput::Comparison => compared(ended),
            ToolOutput::Page => paged(ended, place),
            ToolOutput::Text => Ok((None, String::from_utf8_lossy(&ended.stdout).into_owned())),
        }
    } else {
        Err(with_errors(
            ended,
            &match ended.code {
                Some(code) => format!("the command ended with exit code {code}"),
                None => "the command was killed".to_owned(),
            },
        ))
    };
    match answered {
        Ok((value, text)) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = value;
            result
        }
        Err(line) => error(&line),
    }
}

/// An answer that says what is wrong, so that the model can mend it.
pub(super) fn error(line: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(line)])
}

type Answered = Result<(Option<Value>, String), String>;

fn printed(ended: &EndedChild) -> Result<&str, String> {
    std::str::from_utf8(&ended.stdout).map_err(|_| "error: the report is not UTF-8".to_owned())
}

/// What the command said, where that has an error; otherwise why there is no answer, too.
fn with_errors(ended: &EndedChild, why: &str) -> String {
    let said = ended.errors();
    if said.lines().any(|line| line.starts_with("error: ")) {
        return said;
    }
    format!("{said}\nerror: {why}").trim_start().to_owned()
}

fn measured(ended: &EndedChild) -> Answered {
    let report = parse_report(printed(ended)?).map_err(|e| with_errors(ended, &e))?;
    let run = history::id_of(&report);
    Ok((Some(value_of(&report, run)), text_of(&report, run, ended.is_timed_out)))
}

fn value_of(report: &Report, run: Option<i64>) -> Value {
    let findings = report.findings.iter().map(|finding| {
        json!({
            "code": finding.code,
            "severity": finding.severity,
            "text": plain(&finding.text),
            "next_step": plain(&finding.next_step),
        })
    });
    json!({
        "run": run,
        "verdict": report.verdict,
        "result": report.result,
        "interrupted": report.interrupted,
        "answer": plain(&answer(report)),
        "failed_because": report.failed_because.iter().map(|r| plain(r)).collect::<Vec<_>>(),
        "invalid_because": invalid_because(report).iter().map(|r| plain(r)).collect::<Vec<_>>(),
        "trials": report.trials.iter().map(figures).collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
    })
}

/// The text with ordinary spaces, also between a number and its unit.
fn plain(text: &str) -> String {
    shown(text).replace('\u{a0}', " ")
}

fn figures(trial: &TrialReport) -> Value {
    let mut figures = Map::new();
    figures.insert("label".to_owned(), trial.label.as_str().into());
    for row in FIGURES.iter().filter_map(|key| statistic(key)) {
        let figure = match row.value(trial) {
            Figure::Exactly(value) => json!(value),
            Figure::Within(least, most) => json!({"at_least": least, "at_most": most}),
            Figure::Absent => Value::Null,
        };
        figures.insert(row.key.to_owned(), figure);
    }
    figures.into()
}

fn invalid_because(report: &Report) -> Vec<String> {
    let mut reasons: Vec<String> = match report.verdict {
        Verdict::Valid => Vec::new(),
        Verdict::Invalid => report.trials.iter().flat_map(|t| t.invalid_because.clone()).collect(),
    };
    reasons.dedup();
    reasons
}

fn text_of(report: &Report, run: Option<i64>, is_timed_out: bool) -> String {
    let mut text = headline(report, true);
    if is_timed_out {
        text.push_str("\nEnded early, by the --duration-max of this server.");
    } else if report.interrupted {
        text.push_str("\nEnded early.");
    }
    let reasons = [("INVALID", invalid_because(report)), ("FAILED", report.failed_because.clone())];
    for (word, reason) in reasons.iter().flat_map(|(word, all)| all.iter().map(move |r| (word, r)))
    {
        let _ = write!(text, "\n{word}: {}", plain(reason));
    }
    for (number, trial) in report.trials.iter().enumerate() {
        let _ = write!(text, "\n{}", plain(level_line(number, trial).trim()));
    }
    for finding in &report.findings {
        let severity = finding.severity.name();
        let _ = write!(text, "\n- {severity} {}: {}", finding.code, plain(&finding.text));
        if !finding.next_step.is_empty() {
            let _ = write!(text, "\n  Next: {}", plain(&finding.next_step));
        }
    }
    match run {
        Some(run) => {
            text.push_str(&format!("\nKept as run {run}: the tool report shows all of it."))
        }
        None => text.push_str("\nNot kept in the history."),
    }
    text
}

fn compared(ended: &EndedChild) -> Answered {
    let comparison: Comparison =
        serde_json::from_str(printed(ended)?).map_err(|e| format!("error: {e}"))?;
    let is_shown = |verdict| {
        matches!(
            verdict,
            ComparisonVerdict::Better | ComparisonVerdict::Worse | ComparisonVerdict::Different
        )
    };
    let rows = comparison.rows.iter().filter(|row| row.matters || is_shown(row.verdict));
    let value = json!({
        "answer": comparison.answer,
        "verdict": comparison.verdict,
        "has_invalid": comparison.has_invalid,
        "warnings": comparison.warnings,
        "rows": rows.collect::<Vec<_>>(),
    });
    let mut printed = Vec::new();
    text(true).render(&comparison, &mut printed).map_err(|e| format!("error: {e}"))?;
    Ok((Some(value), String::from_utf8_lossy(&printed).into_owned()))
}

fn paged(ended: &EndedChild, (pointer, offset): (&str, usize)) -> Answered {
    let document = serde_json::from_str(printed(ended)?).map_err(|e| format!("error: {e}"))?;
    let page = page(&document, pointer, offset).map_err(|line| format!("error: {line}"))?;
    let text = page.to_string();
    Ok((Some(page), text))
}

/// Most bytes of a page, about.
const PAGE_BYTES: usize = 8_000;

/// Most bytes of a value within a page; of a larger one only its size is shown.
const VALUE_BYTES: usize = 600;

/// The value at a JSON Pointer (RFC 6901): whole where it is small, otherwise its members from
/// number `offset` on, as many as fit.
///
/// # Errors
/// Nothing is there: one line that says what is.
pub(super) fn page(document: &Value, pointer: &str, offset: usize) -> Result<Value, String> {
    let value = document.pointer(pointer).ok_or_else(|| nothing_at(document, pointer))?;
    let bytes = size(value);
    let mut page = Map::new();
    page.insert("pointer".to_owned(), pointer.into());
    let members = match value {
        _ if bytes <= PAGE_BYTES && offset == 0 => {
            page.insert("value".to_owned(), value.clone());
            return Ok(page.into());
        }
        Value::Object(members) => {
            let (taken, next) = fit(members.iter(), offset, |(name, value)| {
                (name.len() + size(value).min(VALUE_BYTES), (name.clone(), shortened(value)))
            });
            page.insert("value".to_owned(), taken.into_iter().collect::<Map<_, _>>().into());
            (members.len(), next)
        }
        Value::Array(items) => {
            let (taken, next) = fit(items.iter(), offset, |item| {
                let is_whole = size(item) <= PAGE_BYTES / 2;
                let item = if is_whole { item.clone() } else { shortened(item) };
                (size(&item), item)
            });
            page.insert("value".to_owned(), taken.into());
            (items.len(), next)
        }
        Value::String(text) => {
            let (taken, next) = fit(text.chars(), offset, |c| (c.len_utf8(), c));
            page.insert("value".to_owned(), taken.into_iter().collect::<String>().into());
            (text.chars().count(), next)
        }
        other => {
            page.insert("value".to_owned(), other.clone());
            (1, None)
        }
    };
    page.insert("offset".to_owned(), offset.into());
    page.insert("length".to_owned(), members.0.into());
    if let Some(next) = members.1 {
        page.insert("next_offset".to_owned(), next.into());
    }
    Ok(page.into())
}

/// The members from `offset` on that fit into a page, at least one, and the number of the next.
fn fit<I, T>(
    members: impl Iterator<Item = I>,
    offset: usize,
    shown: impl Fn(I) -> (usize, T),
) -> (Vec<T>, Option<usize>) {
    let (mut taken, mut room) = (Vec::new(), PAGE_BYTES);
    for (number, member) in members.enumerate().skip(offset) {
        let (bytes, member) = shown(member);
        if bytes > room && !taken.is_empty() {
            return (taken, Some(number));
        }
        room = room.saturating_sub(bytes);
        taken.push(member);
    }
    (taken, None)
}

/// The value, or what it is where it is large.
fn shortened(value: &Value) -> Value {
    let bytes = size(value);
    if bytes <= VALUE_BYTES {
        return value.clone();
    }
    let what = match value {
        Value::Object(members) => format!("object of {} members", members.len()),
        Value::Array(items) => format!("array of {} items", items.len()),
        _ => "text".to_owned(),
    };
    json!({ "omitted": format!("{what}, {bytes} bytes: ask for its pointer") })
}

/// Bytes as compact JSON.
fn size(value: &Value) -> usize {
    value.to_string().len()
}

/// Names the longest part of the pointer that leads somewhere, and what is there.
fn nothing_at(document: &Value, pointer: &str) -> String {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return format!("invalid pointer '{pointer}': expected one such as /trials/0");
    }
    let ends = pointer.rmatch_indices('/').map(|(at, _)| &pointer[..at]);
    let parent = ends.into_iter().find(|part| document.pointer(part).is_some()).unwrap_or_default();
    let there = match document.pointer(parent) {
        Some(Value::Object(members)) => {
            members.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
        }
        Some(Value::Array(items)) => format!("an array of {} items", items.len()),
        _ => "a value without members".to_owned(),
    };
    format!("invalid pointer '{pointer}': '{parent}' has {there}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_are_whole() {
        let document = json!({"a": [1, {"b": 2}], "c/d": 3});
        assert_eq!(page(&document, "", 0).unwrap()["value"], document);
        assert_eq!(page(&document, "/a/1/b", 0).unwrap()["value"], 2);
        assert_eq!(page(&document, "/c~1d", 0).unwrap()["value"], 3);
    }

    /// Pages of any document are bounded, and together have all of its members once.
    #[test]
    fn pages_have_all_members_once() {
        let items: Vec<Value> = (0..2_000).map(|n| json!({"number": n})).collect();
        let text = "x".repeat(100_000);
        let document = json!({"items": items, "text": text});
        let (mut offset, mut seen) = (0, Vec::new());
        loop {
            let page = page(&document, "/items", offset).unwrap();
            assert!(size(&page) < PAGE_BYTES * 2, "{}", size(&page));
            seen.extend(page["value"].as_array().unwrap().iter().cloned());
            match page["next_offset"].as_u64() {
                Some(next) => offset = next as usize,
                None => break,
            }
        }
        assert_eq!(Value::from(seen), document["items"]);
        let outline = page(&document, "", 0).unwrap();
        assert!(size(&outline) < 1_000, "{outline}");
        let omitted = outline["value"]["items"]["omitted"].as_str().unwrap();
        assert!(omitted.starts_with("array of 2000 items, "), "{omitted}");
        let cut = page(&document, "/text", 99_990).unwrap();
        assert_eq!((&cut["value"], &cut["next_offset"]), (&json!("xxxxxxxxxx"), &Value::Null));
    }

    #[test]
    fn missing_places_are_named() {
        let document = json!({"trials": [{"label": "a"}]});
        for (pointer, expected) in [
            ("trials", "invalid pointer 'trials': expected one such as /trials/0"),
            ("/trails/0", "invalid pointer '/trails/0': '' has trials"),
            ("/trials/7", "invalid pointer '/trials/7': '/trials' has an array of 1 items"),
            ("/trials/0/x", "invalid pointer '/trials/0/x': '/trials/0' has label"),
        ] {
            assert_eq!(page(&document, pointer, 0).unwrap_err(), expected);
        }
    }
}
