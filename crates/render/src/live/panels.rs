//! Panels of lines: remarks and findings so far, ended trials, agents of a fleet.

use super::charts::below;
use super::terminal_style::TerminalStyle;
use super::{EndedTrial, LiveState, LogEntry};
use crate::document::line::{Ink, Line};
use crate::number::{count, known, rate, time_short};
use knee_core::finding::Severity;
use knee_load::measure::{AgentInterval, Interval};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::cmp::Reverse;

/// Rows of the whole log at this width.
pub(super) fn log_rows(live: &LiveState, width: usize, style: TerminalStyle) -> usize {
    let lines = live.entries.iter().map(|e| entry(e, width, style).len());
    lines.sum()
}

/// Draws the latest entries of the log under a heading.
pub(super) fn draw_log(live: &LiveState, style: TerminalStyle, buffer: &mut Buffer, area: Rect) {
    style.heading(buffer, area, "so far", "");
    let area = below(area);
    if live.entries.is_empty() {
        let line = Line::of(Ink::Dim, "nothing out of the way");
        style.write(buffer, area, 0, &line);
        return;
    }
    let room = usize::from(area.height);
    let mut lines: Vec<Line> = Vec::new();
    for e in live.entries.iter().rev() {
        let wrapped = entry(e, area.width.into(), style);
        if lines.len() + wrapped.len() > room && !lines.is_empty() {
            break;
        }
        lines.splice(0..0, wrapped);
    }
    for (row, line) in lines.iter().take(room).enumerate() {
        style.write(buffer, area, row, line);
    }
}

fn entry(entry: &LogEntry, width: usize, style: TerminalStyle) -> Vec<Line> {
    let (mark, ink) = match entry.severity {
        Severity::Error => (style.pick("✗", "x"), Ink::Bad),
        Severity::Warning => ("!", Ink::Warn),
        Severity::Info => (style.pick("·", "-"), Ink::Dim),
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

/// Draws the table of ended trials, the latest ones where not all fit.
pub(super) fn draw_ended(live: &LiveState, style: TerminalStyle, buffer: &mut Buffer, area: Rect) {
    let room = usize::from(area.height.saturating_sub(2));
    let left_out = live.ended.len().saturating_sub(room);
    let remark = match left_out {
        0 => String::new(),
        n => format!("{n} earlier"),
    };
    style.heading(buffer, area, "ended", &remark);
    let head = ["completed", "mean", "p90", "p99", "errors"].map(str::to_string);
    let head = ended_row(Ink::Dim, "trial", &head);
    let rows = live.ended.iter().skip(left_out).map(ended);
    let rows = [head].into_iter().chain(rows).enumerate();
    rows.for_each(|(row, line)| style.write(buffer, below(area), row, &line));
}

fn ended(trial: &EndedTrial) -> Line {
    let [mean, p90, p99] = trial.times_ns.map(|ns| known(ns, time_short));
    let throughput = known(trial.throughput_per_s, rate);
    let figures = [throughput, mean, p90, p99, count(trial.errors)];
    let mut line = ended_row(Ink::Plain, &trial.label, &figures);
    if !trial.is_valid {
        line.push(Ink::Bad, "  INVALID");
    }
    line
}

fn ended_row(ink: Ink, label: &str, figures: &[String; 5]) -> Line {
    let label: String = label.chars().take(15).collect();
    let [completed, mean, p90, p99, errors] = figures;
    let text = format!("{label:<15}{completed:>11}{mean:>9}{p90:>9}{p99:>9}{errors:>9}");
    Line::of(ink, text)
}

/// Draws the table of agents in the last interval: silent ones first, then those with errors, then
/// the slowest.
pub(super) fn draw_agents(live: &LiveState, style: TerminalStyle, buffer: &mut Buffer, area: Rect) {
    let Some(last) = live.intervals.back() else {
        return;
    };
    let mut ordered: Vec<&AgentInterval> = live.agents.iter().collect();
    ordered.sort_by_key(|a| (!a.is_silent, Reverse((a.errors, a.p99_ns))));
    let room = usize::from(area.height.saturating_sub(2));
    let remark = match ordered.len().saturating_sub(room) {
        0 => String::new(),
        n => format!("{n} more"),
    };
    style.heading(buffer, area, "agents, last interval", &remark);
    let head = ["completed", "p99", "errors"].map(str::to_string);
    let head = agent_row(Ink::Dim, "agent", &head);
    let rows = ordered.into_iter().take(room);
    let rows = rows.map(|a| agent(a, &last.interval));
    let rows = [head].into_iter().chain(rows).enumerate();
    rows.for_each(|(row, line)| style.write(buffer, below(area), row, &line));
}

fn agent(agent: &AgentInterval, interval: &Interval) -> Line {
    if agent.is_silent {
        let line = agent_row(Ink::Plain, &agent.agent, &Default::default());
        return line.with(Ink::Bad, "  silent");
    }
    let completed = rate(interval.per_s(agent.completed));
    let figures = [completed, known(agent.p99_ns, time_short), count(agent.errors)];
    let has_errors = agent.errors > 0;
    let ink = if has_errors { Ink::Warn } else { Ink::Plain };
    agent_row(ink, &agent.agent, &figures)
}

fn agent_row(ink: Ink, name: &str, [completed, p99, errors]: &[String; 3]) -> Line {
    let name: String = name.chars().take(23).collect();
    Line::of(ink, format!("{name:<24}{completed:>11}{p99:>9}{errors:>9}"))
}
