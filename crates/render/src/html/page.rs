//! A page under construction, and the parts that it is made of. Its head says whether to trust the
//! report, the answer, what was asked, and the findings.

use super::command_words::pieces;
use super::markup::{Markup, tied, untied, write_line};
use super::svg::tone_class;
use crate::document::head::{DocumentHead, evidence, findings_title, severity};
use crate::document::line::{Ink, Line};
use crate::document::{Fact, Layout, StackedBar, StackedBars};
use crate::number::time_short;
use crate::plot::Plot;
use knee_core::finding::{Finding, Severity};
use std::fmt::Display;

/// A page under construction.
#[derive(Debug, Default)]
pub(super) struct HtmlPage {
    /// The markup so far.
    pub m: Markup,
    figures: usize,
    /// The depth of the headings of a report.
    depth: usize,
}

/// The least width of a figure on a telephone, and of one of many beside each other, as in the
/// style sheet, in CSS pixels.
const FIGURE_PX: usize = 345;
const PANEL_PX: usize = 300;

/// Headings by their depth.
const HEADINGS: [&str; 6] = ["h1", "h2", "h3", "h4", "h5", "h6"];

impl HtmlPage {
    /// The tag of a heading, `below` levels under the heading of a report.
    pub(super) fn heading_tag(&self, below: usize) -> &'static str {
        HEADINGS[(self.depth + below).min(HEADINGS.len() - 1)]
    }

    /// Begins the parts of a page of several reports: headings lie two levels deeper.
    pub(super) fn deepen(&mut self) {
        self.depth = 2;
    }

    /// A part of a page of several reports, with an `id` for links.
    pub(super) fn part(&mut self, id: &str, title: &str, content: impl FnOnce(&mut HtmlPage)) {
        self.m.raw("<article>");
        self.m.el("h2").attr("class", "part").attr("id", id).text(title);
        content(self);
        self.m.raw("</article>");
    }

    /// A section with a heading; the remark beside it may be empty.
    pub(super) fn section(
        &mut self,
        title: &str,
        remark: &str,
        content: impl FnOnce(&mut HtmlPage),
    ) {
        self.m.raw("<section>");
        let tag = self.heading_tag(1);
        self.m.el(tag).attr("class", "section").with(|m| {
            m.text(title);
            if !remark.is_empty() {
                m.raw(" ");
                m.el("small").text(remark);
            }
        });
        content(self);
        self.m.raw("</section>");
    }

    /// A heading within a section.
    pub(super) fn subheading(&mut self, title: &str) {
        let tag = self.heading_tag(2);
        self.m.el(tag).attr("class", "sub").text(title);
    }

    /// A paragraph.
    pub(super) fn paragraph(&mut self, line: &Line) {
        self.m.el("p").with(|m| write_line(m, line));
    }

    /// Lines of a kind.
    pub(super) fn list(&mut self, lines: &[Line]) {
        self.m.el("ul").attr("class", "marked").with(|m| {
            for line in lines {
                m.el("li").with(|m| write_line(m, line));
            }
        });
    }

    /// A remark in small print.
    pub(super) fn note(&mut self, text: impl Display) {
        self.m.el("p").attr("class", "note").text(text);
    }

    /// A command, broken into lines before options, not within them.
    pub(super) fn command(&mut self, command: &str) {
        let command = untied(command);
        self.m.el("pre").with(|m| {
            m.el("code").with(|m| {
                for (i, option) in command.split(" --").enumerate() {
                    m.text(if i > 0 { " " } else { "" });
                    let dashes = if i > 0 { "--" } else { "" };
                    m.el("span").attr("class", "option").text(format_args!("{dashes}{option}"));
                }
            });
        });
    }

    /// Lines as they are.
    pub(super) fn verbatim(&mut self, lines: &[String]) {
        self.m.el("pre").text(lines.join("\n"));
    }

    /// Figures.
    pub(super) fn plots(&mut self, plots: &[Plot], layout: Layout) {
        let (open, least_px) = match layout {
            Layout::Wide => ("", FIGURE_PX),
            Layout::Pairs => ("<div class=\"pair\">", FIGURE_PX),
            Layout::Panels => ("<div class=\"pair many\">", PANEL_PX),
        };
        self.m.raw(open);
        for plot in plots {
            self.figures += 1;
            plot.draw(&mut self.m, self.figures, least_px);
        }
        if !open.is_empty() {
            self.m.raw("</div>");
        }
    }

    /// Names and values.
    pub(super) fn facts(&mut self, facts: &[Fact]) {
        if facts.is_empty() {
            return;
        }
        self.m.raw("<dl>");
        for (name, value) in facts {
            self.m.raw("<div>");
            self.m.el("dt").text(name);
            self.m.el("dd").with(|m| write_line(m, value));
            self.m.raw("</div>");
        }
        self.m.raw("</dl>");
    }

    /// Details, folded up.
    pub(super) fn folded(&mut self, title: &str, content: impl FnOnce(&mut HtmlPage)) {
        self.m.raw("<details class=\"more\">");
        self.m.el("summary").text(title);
        content(self);
        self.m.raw("</details>");
    }

    /// The whole document.
    pub(super) fn into_document(self, title: &str) -> String {
        let mut m = Markup::default();
        m.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
        m.raw("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
        m.raw("<meta name=\"color-scheme\" content=\"light dark\">");
        m.el("title").text(title);
        m.raw("<style>");
        m.raw(include_str!("style.css"));
        m.raw("</style></head><body><main>");
        m.append(self.m);
        m.raw("</main><script>");
        m.raw(include_str!("script.js"));
        m.raw("</script></body></html>\n");
        m.into_string()
    }
}

/// The width of a stacked bar, in units of its view.
const BAR_VIEW: f64 = 1_000.0;

/// Writes bars made of parts, as inline SVG that is stretched to the room available.
pub(super) fn write_bars(m: &mut Markup, bars: &StackedBars) {
    m.el("div").attr("class", "stacks").with(|m| {
        m.el("div").attr("class", "caption").with(|m| {
            m.el("b").text(bars.title);
            m.el("span").attr("class", "legend").with(|m| {
                for (name, tone) in &bars.parts {
                    m.el("span").attr("class", "key").with(|m| {
                        let swatch = m.el("svg").attr("viewBox", "0 0 20 10");
                        let swatch =
                            swatch.attr("class", tone_class(*tone)).attr("aria-hidden", "true");
                        swatch.with(|m| rectangle(m, 0.0, 20.0));
                        m.text(name);
                    });
                }
            });
        });
        bars.rows.iter().for_each(|row| write_bar(m, row));
        m.el("p").attr("class", "note").text(bars.note);
    });
}

fn write_bar(m: &mut Markup, row: &StackedBar) {
    let parts = row.parts.iter();
    let words: Vec<String> =
        parts.map(|(name, _, ns)| format!("{name} {}", time_short(*ns))).collect();
    let words = words.join(", ");
    let stack = m.el("div").attr("class", "stack").attr("title", &words);
    stack.with(|m| {
        m.el("span").text(&row.name);
        let view = m.el("svg").attr("viewBox", format_args!("0 0 {BAR_VIEW} 10"));
        let view = view.attr("preserveAspectRatio", "none").attr("role", "img");
        view.attr("aria-label", format_args!("{}: {words}", row.name)).with(|m| {
            let mut left = 0.0;
            for (_, tone, ns) in &row.parts {
                let width = BAR_VIEW * *ns as f64 / row.whole_ns.max(1) as f64;
                m.el("g").attr("class", tone_class(*tone)).with(|m| rectangle(m, left, width));
                left += width;
            }
        });
        m.el("span").attr("class", "value").text(&row.value);
    });
}

fn rectangle(m: &mut Markup, x: f64, width: f64) {
    let rect = m.el("rect").attr("x", format_args!("{x:.1}"));
    rect.attr("width", format_args!("{width:.1}")).attr("height", 10).void();
}

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
            show_list(m, word, reasons);
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

fn show_list(m: &mut Markup, word: &str, reasons: &[String]) {
    if reasons.is_empty() {
        return;
    }
    let (first, rest) = reasons.split_at(reasons.len().min(REASONS_MAX));
    let list = |m: &mut Markup, reasons: &[String]| {
        m.el("ul").attr("class", "bad").with(|m| {
            let line = |reason: &String| format!("{word}: {reason}");
            reasons.iter().for_each(|reason| m.el("li").text(line(reason)));
        });
    };
    list(m, first);
    if !rest.is_empty() {
        m.el("details").attr("class", "more").with(|m| {
            m.el("summary").text(format_args!("and {} more", rest.len()));
            list(m, rest);
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
