//! The end of a report: how to repeat it, what was asked in full, where it ran.

use super::page::Page;
use super::words::untied;
use crate::number;
use crate::text::closing::{command_line, missing_secret, thresholds};
use crate::text::heading::is_of_others;
use crate::text::line::Line;
use knee_core::report::Report;
use serde_json::Value;

/// Writes it.
pub fn show(page: &mut Page, report: &Report) {
    if !report.thresholds.is_empty() {
        page.section("Thresholds", "", |page| page.facts(&thresholds(report)));
    }
    if !is_of_others(report) {
        page.section("Repeat", "", |page| {
            let command = untied(&command_line(report));
            page.m.el("pre").with(|m| {
                m.el("code").with(|m| {
                    // Lines are broken before options, not within them.
                    for (i, option) in command.split(" --").enumerate() {
                        m.text(if i > 0 { " " } else { "" });
                        let dashes = if i > 0 { "--" } else { "" };
                        let span = m.el("span").attr("class", "option");
                        span.text(format_args!("{dashes}{option}"));
                    }
                });
            });
            if let Some(missing) = missing_secret(report) {
                page.m.el("p").text(missing);
            }
        });
    }
    page.m.raw("<div class=\"pair\">");
    page.section("What was asked", "", |page| {
        let mut facts: Vec<(String, Line)> = report.spec.iter().filter_map(fact).collect();
        if !report.spec.contains_key("seed") {
            facts.push(("seed".into(), Line::plain(report.seed.to_string())));
        }
        page.facts(&facts);
    });
    if !is_of_others(report) {
        page.section("Where it ran", "", |page| page.facts(&host(report)));
    }
    page.m.raw("</div>");
}

fn fact((name, value): (&String, &Value)) -> Option<(String, Line)> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let words = items.iter().map(|v| match v {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            words.collect::<Vec<_>>().join(", ")
        }
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        other => other.to_string(),
    };
    Some((number::words(name).replace('-', " "), Line::plain(text)))
}

fn host(report: &Report) -> Vec<(String, Line)> {
    let host = &report.host;
    let mut facts: Vec<(String, String)> = vec![
        ("processors".into(), number::count(host.cpus.into())),
        ("model".into(), host.cpu_model.clone()),
        ("kernel".into(), host.kernel.clone()),
        ("backend".into(), host.backend.clone()),
        ("congestion control".into(), host.congestion_control.clone()),
    ];
    let further = host.facts.iter();
    facts.extend(further.map(|(name, fact)| (number::words(name), fact.clone())));
    facts.push(("knee".into(), report.knee_version.clone()));
    facts.push(("started".into(), report.started_at.clone()));
    facts.retain(|(_, fact)| !fact.is_empty());
    facts
        .into_iter()
        .map(|(name, fact)| (name, Line::plain(fact)))
        .collect()
}
