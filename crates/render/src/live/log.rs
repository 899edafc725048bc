//! What was said, and the table of the trials that are over.

use super::charts::below;
use super::look::Look;
use super::{Ended, Entry, Live};
use crate::document::line::{Ink, Line};
use crate::number::{count, known, rate, time_short};
use knee_core::finding::Severity;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// How many rows all that was said takes in so many columns.
pub(super) fn rows(live: &Live, width: usize, look: Look) -> usize {
    let lines = live.entries.iter().map(|e| entry(e, width, look).len());
    lines.sum()
}

/// The latest of what was said, under a heading.
pub(super) fn draw(live: &Live, look: Look, buffer: &mut Buffer, area: Rect) {
    look.heading(buffer, area, "so far", "");
    let area = below(area);
    if live.entries.is_empty() {
        look.write(
            buffer,
            area,
            0,
            &Line::of(Ink::Dim, "nothing out of the way"),
        );
        return;
    }
    let room = usize::from(area.height);
    let mut lines: Vec<Line> = Vec::new();
    for e in live.entries.iter().rev() {
        let wrapped = entry(e, area.width.into(), look);
        if lines.len() + wrapped.len() > room && !lines.is_empty() {
            break;
        }
        lines.splice(0..0, wrapped);
    }
    for (row, line) in lines.iter().take(room).enumerate() {
        look.write(buffer, area, row, line);
    }
}

fn entry(entry: &Entry, width: usize, look: Look) -> Vec<Line> {
    let (mark, ink) = match entry.severity {
        Severity::Error => (look.pick("✗", "x"), Ink::Bad),
        Severity::Warning => ("!", Ink::Warn),
        Severity::Info => (look.pick("·", "-"), Ink::Dim),
    };
    let mut line = Line::of(ink, format!("{mark} "));
    if let Some(at) = entry.at {
        line.push(Ink::Dim, format!("{:.1} s ", at.as_secs_f64()));
    }
    if !entry.label.is_empty() {
        line.push(Ink::Dim, format!("{}: ", entry.label));
    }
    line.push(Ink::Plain, &entry.text);
    match entry.also.as_slice() {
        [] => {}
        [one] => line.push(Ink::Dim, format!(" (also {one})")),
        [.., last] => {
            let more = entry.also.len();
            line.push(Ink::Dim, format!(" (also at {more} more, last {last})"));
        }
    }
    line.wrapped(width, 2)
}

/// The trials that are over, the latest ones where not all fit, under a heading.
pub(super) fn table(live: &Live, look: Look, buffer: &mut Buffer, area: Rect) {
    let room = usize::from(area.height.saturating_sub(2));
    let left_out = live.ended.len().saturating_sub(room);
    let remark = match left_out {
        0 => String::new(),
        n => format!("{n} earlier"),
    };
    look.heading(buffer, area, "ended", &remark);
    let area = below(area);
    let head = ["completed", "mean", "p90", "p99", "errors"].map(str::to_string);
    look.write(buffer, area, 0, &row(Ink::Dim, "trial", &head));
    for (at, trial) in live.ended.iter().skip(left_out).enumerate() {
        look.write(buffer, area, at + 1, &ended(trial));
    }
}

fn ended(trial: &Ended) -> Line {
    let [mean, p90, p99] = trial.times_ns.map(|ns| known(ns, time_short));
    let figures = [
        known(trial.throughput_per_s, rate),
        mean,
        p90,
        p99,
        count(trial.errors),
    ];
    let line = row(Ink::Plain, &trial.label, &figures);
    match trial.is_valid {
        true => line,
        false => line.with(Ink::Bad, "  INVALID"),
    }
}

fn row(ink: Ink, label: &str, figures: &[String; 5]) -> Line {
    let label: String = label.chars().take(15).collect();
    let [completed, mean, p90, p99, errors] = figures;
    Line::of(
        ink,
        format!("{label:<15}{completed:>11}{mean:>9}{p90:>9}{p99:>9}{errors:>9}"),
    )
}
