//! The head of a report: whether to trust it, the answer, what was asked, the findings.

use super::command_words::pieces;
use super::markup::Markup;
use super::page::HtmlPage;
use super::tables::{tied, untied};
use crate::document::head::{DocumentHead, evidence, findings_title, severity};
use crate::document::line::Ink;
use knee_core::finding::{Finding, Severity};

/// Reasons shown unfolded.
const REASONS_MAX: usize = 4;

/// A tick in a circle: shapes that tell by themselves, in a square of 16.
const TICK: &str = "M8 0a8 8 0 1 1 0 16a8 8 0 1 1 0-16zM4 8.5l2.8 2.8l5.2-5.8";
/// A cross in an octagon.
const CROSS: &str = "M5 0h6l5 5v6l-5 5h-6l-5-5v-6zM5 5l6 6M11 5l-6 6";
/// An exclamation mark in a triangle.
const WARNING: &str = "M8 .5l8 15h-16zM8 5.5v4.5M8 12.5v.7";
/// An i in a circle.
const INFORMATION: &str = "M8 0a8 8 0 1 1 0 16a8 8 0 1 1 0-16zM8 4v.7M8 7v5";

/// Writes the answer with the verdict before it, a remark on how it was got, and what makes it
/// invalid.
pub(super) fn show(page: &mut HtmlPage, head: &DocumentHead) {
    let heading = page.heading_tag(0);
    page.m.el("header").with(|m| {
        show_verdicts(m, &head.words);
        let answer = untied(&head.answer);
        let (first, rest) = first_sentence(&answer);
        m.el(heading).text(tied(first));
        if !rest.is_empty() {
            m.el("p").attr("class", "lead").text(tied(rest));
        }
        if !head.made.is_empty() {
            let line = format!("{}, {}", untied(&head.made), head.started_at);
            m.el("p").attr("class", "note").text(line);
        }
        for (word, reasons) in &head.reasons {
            show_list(m, word, reasons.clone());
        }
        if head.interrupted {
            m.el("p").attr("class", "warn").with(|m| {
                m.el("b").text("INTERRUPTED");
                m.text(" Ended before its time; this is what was measured until then.");
            });
        }
    });
    page.facts(&head.facts);
}

/// Both answers beside each other: whether to trust the numbers, and what came of it.
fn show_verdicts(m: &mut Markup, words: &[(Ink, String)]) {
    if words.is_empty() {
        return;
    }
    m.el("div").attr("class", "verdicts").with(|m| {
        for (ink, word) in words {
            let (class, shape) = match ink {
                Ink::Good => ("verdict good", TICK),
                Ink::Bad => ("verdict bad", CROSS),
                Ink::Warn => ("verdict warn", WARNING),
                _ => ("verdict", INFORMATION),
            };
            m.el("p").attr("class", class).with(|m| {
                show_shape(m, shape);
                m.text(word);
            });
        }
    });
}

/// Writes the findings, one below the other.
pub(super) fn show_findings(page: &mut HtmlPage, findings: &[Finding]) {
    page.section(findings_title(findings), "", |page| {
        if findings.is_empty() {
            return;
        }
        page.m.el("ol").attr("class", "findings").with(|m| {
            for finding in findings {
                // Folded findings leave room for the first figure; errors are shown in full.
                let is_open = findings.len() == 1 || finding.severity == Severity::Error;
                show_finding(m, finding, is_open);
            }
        });
    });
}

/// A text's first sentence, and the rest.
fn first_sentence(text: &str) -> (&str, &str) {
    let begins = |rest: &str| rest.starts_with(|c: char| c.is_uppercase());
    let ends = text.match_indices(". ").map(|(at, _)| text.split_at(at + 1));
    let mut ends = ends.map(|(first, rest)| (first, rest.trim_start()));
    ends.find(|(_, rest)| begins(rest)).unwrap_or((text, ""))
}

/// Draws one of these shapes.
fn show_shape(m: &mut Markup, shape: &str) {
    let svg = m.el("svg").attr("class", "shape").attr("viewBox", "-1 -1 18 18");
    svg.attr("aria-hidden", "true").with(|m| m.el("path").attr("d", shape).void());
}

fn show_list(m: &mut Markup, word: &str, mut reasons: Vec<String>) {
    if reasons.is_empty() {
        return;
    }
    let rest = reasons.split_off(reasons.len().min(REASONS_MAX));
    let list = |m: &mut Markup, reasons: &[String]| {
        m.el("ul").attr("class", "bad").with(|m| {
            let line = |reason: &String| format!("{word}: {reason}");
            reasons.iter().for_each(|reason| m.el("li").text(line(reason)));
        });
    };
    list(m, &reasons);
    if !rest.is_empty() {
        m.el("details").attr("class", "more").with(|m| {
            m.el("summary").text(format_args!("and {} more", rest.len()));
            list(m, &rest);
        });
    }
}

/// A finding as one line; what to do and the numbers unfold below it.
fn show_finding(m: &mut Markup, finding: &Finding, is_open: bool) {
    let (class, shape) = match finding.severity {
        Severity::Error => ("bad", CROSS),
        Severity::Warning => ("warn", WARNING),
        Severity::Info => ("info", INFORMATION),
    };
    let (_, _, word) = severity(finding.severity);
    m.el("li").attr("class", class).with(|m| {
        let details = m.el("details").attr("class", "more");
        details.maybe("open", is_open.then_some("")).with(|m| {
            m.el("summary").with(|m| {
                m.el("span").attr("class", "severity").with(|m| {
                    show_shape(m, shape);
                    m.text(word);
                });
                m.raw(" ");
                m.el("span").attr("class", "says").with(|m| show_step(m, &tied(&finding.text)));
            });
            if !finding.next_step.is_empty() {
                m.el("p").attr("class", "next").with(|m| {
                    m.el("b").text("Next");
                    m.raw(" ");
                    show_step(m, &finding.next_step);
                });
            }
            m.el("p").attr("class", "note").text(evidence(finding));
        });
    });
}

/// A sentence with what can be typed in it set as code.
fn show_step(m: &mut Markup, step: &str) {
    for (is_code, piece) in pieces(step) {
        if is_code { m.el("code").text(untied(&piece)) } else { m.text(piece) }
    }
}
