//! The report as Markdown (GitHub's), for pull requests and wikis: without figures.

use crate::Renderer;
use crate::document::head::{DocumentHead, evidence, findings_title, severity};
use crate::document::line::{Ink, Line, cleaned};
use crate::document::table::{Align, Table, TableColumn};
use crate::document::{Block, Document, DocumentSection, Documented, Fact, Medium};
use crate::number::TIE;
use knee_core::finding::Finding;
use std::io;

/// The report as Markdown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Markdown;

impl<T: Documented> Renderer<T> for Markdown {
    fn render(&self, result: &T, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(written(&result.document()).as_bytes())
    }
}

fn written(doc: &Document) -> String {
    let mut parts = head(&doc.head);
    if let Some(findings) = &doc.findings {
        parts.push(format!("### {}", findings_title(findings)));
        parts.push(joined(findings.iter().map(finding)));
    }
    parts.extend(doc.sections.iter().flat_map(section));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

fn head(head: &DocumentHead) -> Vec<String> {
    let words: Vec<String> = head.words.iter().map(|(_, w)| escaped(w)).collect();
    let answer = escaped(&head.answer);
    let mut parts = vec![if words.is_empty() {
        format!("## {answer}")
    } else {
        format!("## {}: {answer}", words.join(", "))
    }];
    for (word, reasons) in &head.reasons {
        let reasons = reasons.iter();
        parts.push(joined(reasons.map(|r| format!("- **{word}**: {}", escaped(r)))));
    }
    if head.interrupted {
        parts.push("**INTERRUPTED**: ended before its time".to_owned());
    }
    let when = match head.started_at.as_str() {
        "" => String::new(),
        at => format!(", {}", escaped(at)),
    };
    if !head.made.is_empty() {
        parts.push(format!("{}{when}", escaped(&head.made)));
    }
    parts.push(facts(&head.facts));
    parts
}

fn section(section: &DocumentSection) -> Vec<String> {
    let blocks: Vec<String> = section.blocks_for(Medium::Lines).map(block).collect();
    if blocks.iter().all(String::is_empty) {
        return Vec::new();
    }
    let remark = match section.remark.as_str() {
        "" => String::new(),
        remark => format!(" ({})", escaped(remark)),
    };
    let heading = match section.title.as_str() {
        "" => String::new(),
        title => format!("### {}{remark}", escaped(title)),
    };
    [heading].into_iter().chain(blocks).collect()
}

fn block(block: &Block) -> String {
    match block {
        Block::Facts(of) => facts(of),
        Block::Table(_, of) => table(of),
        Block::Plots(..) | Block::Bars(_) => String::new(),
        Block::Note(text) => format!("<sub>{}</sub>", escaped(text)),
        Block::Paragraph(text) => line(text),
        Block::List(lines) => joined(lines.iter().map(|l| format!("- {}", line(l)))),
        Block::Subheading(title) => format!("#### {}", escaped(title)),
        Block::Folded(title, blocks) => {
            let inner: Vec<String> = blocks.iter().map(self::block).collect();
            let (title, inner) = (escaped(title), inner.join("\n\n"));
            if inner.is_empty() {
                String::new()
            } else {
                format!("<details><summary>{title}</summary>\n\n{inner}\n\n</details>")
            }
        }
        Block::Command(text) => fenced("sh", std::slice::from_ref(text)),
        Block::Verbatim(lines) => fenced("", lines),
    }
}

fn finding(finding: &Finding) -> String {
    let (_, _, word) = severity(finding.severity);
    let mut text = format!("- **{word}**: {}", escaped(&finding.text));
    text += &format!("  \n  <sub>{}</sub>", escaped(&evidence(finding)));
    if !finding.next_step.is_empty() {
        text += &format!("  \n  Next: {}", escaped(&finding.next_step));
    }
    text
}

fn facts(facts: &[Fact]) -> String {
    joined(facts.iter().map(|(name, text)| {
        let name = escaped(name);
        format!("- {name}: {}", line(text))
    }))
}

fn table(table: &Table) -> String {
    if table.rows() == 0 {
        return String::new();
    }
    let row = |cell: &dyn Fn(&TableColumn) -> String| {
        let cells: Vec<String> = table.columns.iter().map(cell).collect();
        format!("| {} |", cells.join(" | "))
    };
    let rule = |column: &TableColumn| match column.align {
        Align::Left => ":--".to_owned(),
        Align::Right => "--:".to_owned(),
    };
    let mut rows = vec![row(&|column| escaped(&column.title)), row(&rule)];
    rows.extend((0..table.rows()).map(|i| row(&|column| line(&column.cells[i]))));
    rows.join("\n")
}

/// A line, with strong and bad pieces in bold.
fn line(line: &Line) -> String {
    let piece = |(ink, text): &(Ink, String)| {
        let bare = text.trim();
        let is_bold = matches!(ink, Ink::Strong | Ink::Bad) && !bare.is_empty();
        if !is_bold {
            return escaped(text);
        }
        // Asterisks beside a space do not make it bold.
        let (before, after) = text.split_once(bare).unwrap_or_default();
        format!("{before}**{}**{after}", escaped(bare))
    };
    line.pieces().iter().map(piece).collect()
}

/// Lines in a fence that is longer than any within them.
fn fenced(language: &str, lines: &[String]) -> String {
    let text: Vec<String> = lines.iter().map(|l| cleaned(&l.replace(TIE, " "), true)).collect();
    let text = text.join("\n");
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{language}\n{text}\n{fence}")
}

fn joined(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

/// A text without anything that Markdown or HTML would interpret.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in cleaned(text, true).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' => {
                out.push('\\');
                out.push(c);
            }
            '@' => out.push_str("&#64;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use knee_core::report::Report;

    fn text(report: &Report) -> String {
        let mut bytes = Vec::new();
        Markdown.render(report, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn reports_as_markdown() {
        for (name, report) in fixtures::all() {
            let text = text(&report);
            assert!(text.starts_with("## ") && text.ends_with('\n'), "{name}");
            assert!(!text.contains("\n\n\n"), "{name}");
        }
        for (name, report) in [
            ("run", fixtures::run_errors()),
            ("sweep", fixtures::sweep_good()),
            ("udp_explain", fixtures::udp_explain()),
            ("overload_sessions", fixtures::overload_sessions()),
        ] {
            insta::assert_snapshot!(format!("markdown_{name}"), text(&report));
        }
    }

    #[test]
    fn every_row_of_a_table_has_as_many_cells() {
        for (name, report) in fixtures::all() {
            let cells = |row: &str| row.replace("\\|", "").matches('|').count();
            let text = text(&report);
            for table in text.split("\n\n").filter(|part| part.starts_with("| ")) {
                let counts: Vec<usize> = table.lines().map(cells).collect();
                assert!(counts.iter().all(|n| *n == counts[0]), "{name}: {table}");
            }
        }
    }

    #[test]
    fn nothing_in_a_report_becomes_markup() {
        let mut report = fixtures::run_open();
        report.findings.clear();
        report.failed_because.clear();
        let evil = "<img src=x> **b** [a](http://e) `c` | @all\n# h";
        report.trials[0].label = evil.into();
        let text = text(&report);
        assert!(!text.contains("<img") && !text.contains("**b**"), "{text}");
        assert!(!text.contains("\n# h") && !text.contains("@all"), "{text}");
    }

    #[test]
    fn a_fence_is_longer_than_what_is_in_it() {
        let lines = ["a ``` b".to_owned()];
        assert_eq!(fenced("sh", &lines), "````sh\na ``` b\n````");
    }
}
