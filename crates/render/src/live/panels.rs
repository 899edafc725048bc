//! The lines of the screen. Its upper end has command, progress, and the figures of the last
//! interval. Panels below have remarks and findings so far, ended trials, and agents of a fleet.

use super::charts::below;
use super::terminal_style::TerminalStyle;
use super::{EndedTrial, LiveKind, LiveState, LiveTrial, LogEntry};
use crate::document::line::{Ink, Line};
use crate::number::{count, fixed, known, rate, stated, time_short};
use knee_core::finding::Severity;
use knee_load::measure::{AgentInterval, Interval};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::cmp::Reverse;
use std::fmt::Display;
use std::iter::repeat;

/// Command, target and trial, cut to `width` columns.
pub(super) fn title(live: &LiveState, width: usize) -> Line {
    let mut line = Line::of(Ink::Strong, format!("knee {}", live.command));
    let mut trial = Line::default();
    if let Some(t) = &live.trial {
        if live.begun > 1 {
            trial.push(Ink::Dim, format!("trial {}  ", live.begun));
        }
        trial.push(Ink::Strong, &t.label);
    }
    let room = width.saturating_sub(line.width() + trial.width() + 4);
    let is_cut = live.target.chars().count() > room;
    let mut target: String = live.target.chars().take(room).collect();
    if is_cut && target.pop().is_some() {
        target.push('…');
    }
    line.push(Ink::Plain, format!("  {target}"));
    line.pad_to(width.saturating_sub(trial.width()).max(line.width() + 1));
    line.append(trial);
    line
}

/// The figures, as many per line as fit.
pub(super) fn figures(live: &LiveState, width: usize) -> Vec<Line> {
    let mut lines = vec![Line::default()];
    for figure in all_figures(live) {
        let gap = 3;
        let last = lines.last_mut().filter(|l| l.width() > 0);
        match last {
            Some(line) if line.width() + gap + figure.width() <= width => {
                line.push(Ink::Plain, " ".repeat(gap));
                line.append(figure);
            }
            Some(_) => lines.push(figure),
            None => lines = vec![figure],
        }
    }
    lines
}

fn all_figures(live: &LiveState) -> Vec<Line> {
    let (Some(trial), last) = (&live.trial, live.last()) else {
        return Vec::new();
    };
    match (trial.kind, last) {
        (LiveKind::Row { number, of, .. }, _) => {
            vec![figure("row", format!("{number} of {of}"))]
        }
        (_, None) => vec![Line::of(Ink::Dim, "nothing measured yet")],
        (LiveKind::Operations, Some(i)) => operations(live, trial, i),
        (LiveKind::Datagrams, Some(i)) => {
            let sending = rate(i.per_s(i.sent.unwrap_or(0)));
            let mut figures = vec![figure("sending", sending)];
            figures.extend(trial.asked_per_s.map(|asked| figure("asked", rate(asked))));
            figures.push(figure("sent", count(live.sums.sent)));
            figures
        }
        (LiveKind::Flows, Some(i)) => {
            let bits = |bytes: Option<u64>| bit_rate(i.per_s(bytes.unwrap_or(0)));
            let mut figures =
                vec![figure("down", bits(i.down_bytes)), figure("up", bits(i.up_bytes))];
            figures.extend(times("ping p50", i));
            figures
        }
    }
}

fn operations(live: &LiveState, trial: &LiveTrial, i: &Interval) -> Vec<Line> {
    let mut figures = Vec::new();
    if let Some(asked) = trial.asked_per_s {
        let offered = figure("offered", rate(i.per_s(i.attempted)));
        figures.push(offered.with(Ink::Dim, " of ").with(Ink::Plain, rate(asked)));
    }
    figures.push(figure("completed", rate(i.per_s(i.completed))));
    figures.extend(i.messages.map(|n| figure("messages", rate(i.per_s(n)))));
    let ink = if live.sums.errors > 0 { Ink::Bad } else { Ink::Plain };
    figures.push(Line::of(Ink::Dim, "errors ").with(ink, count(live.sums.errors)));
    figures.extend(times("p50", i));
    figures.extend(i.in_flight.map(|n| figure("in flight", count(n))));
    figures.extend(i.oldest_ns.map(|ns| figure("oldest", time_short(ns))));
    if let (Some(mean), Some(max)) = (i.pacing_error_ns_mean, i.pacing_error_ns_max) {
        let late = figure("pacing error", time_short(mean));
        figures.push(late.with(Ink::Dim, " max ").with(Ink::Plain, time_short(max)));
    }
    figures
}

fn times(p50: &str, i: &Interval) -> Vec<Line> {
    if i.max_ns == 0 {
        return Vec::new();
    }
    let times = [(p50, i.p50_ns), ("p90", i.p90_ns), ("p99", i.p99_ns), ("max", i.max_ns)];
    times.map(|(name, ns)| figure(name, time_short(ns))).into()
}

fn figure(name: &str, value: String) -> Line {
    Line::of(Ink::Dim, format!("{name} ")).with(Ink::Strong, value)
}

/// Bits per second, from bytes: `93.4 Mbit/s`.
pub(super) fn bit_rate(bytes_per_s: f64) -> String {
    let bits = bytes_per_s * 8.0;
    let (scale, unit) = match bits {
        b if b < 1e6 => (1e3, "kbit/s"),
        b if b < 1e9 => (1e6, "Mbit/s"),
        _ => (1e9, "Gbit/s"),
    };
    let value = bits / scale;
    let decimals = usize::from(value < 100.0 && value.fract() > 0.05);
    format!("{} {unit}", fixed(value, decimals))
}

/// Rows of the whole log at this width.
pub(super) fn log_rows(live: &LiveState, width: usize, style: TerminalStyle) -> usize {
    live.entries.iter().map(|e| entry(e, width, style).len()).sum()
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
    let head = ["completed", "mean", "p90", "p99", "errors"];
    let head = table_row(Ink::Dim, format!("{:<15}", "trial"), &head);
    let rows = live.ended.iter().skip(left_out).map(ended);
    for (row, line) in [head].into_iter().chain(rows).enumerate() {
        style.write(buffer, below(area), row, &line);
    }
}

fn ended(trial: &EndedTrial) -> Line {
    let [mean, p90, p99] = trial.times_ns.map(|ns| known(ns, time_short));
    let throughput = stated(trial.throughput, rate);
    let figures = [throughput, mean, p90, p99, count(trial.errors)];
    let mut line = table_row(Ink::Plain, format!("{:<15.15}", trial.label), &figures);
    if !trial.is_valid {
        line.push(Ink::Bad, "  INVALID");
    }
    line
}

/// A name and figures in columns; the first column is the widest.
fn table_row(ink: Ink, name: String, figures: &[impl Display]) -> Line {
    let widths = [11].into_iter().chain(repeat(9));
    let figures = figures.iter().zip(widths).map(|(figure, width)| format!("{figure:>width$}"));
    Line::of(ink, name + &figures.collect::<String>())
}

/// Draws the table of agents in the last interval: silent ones first, then those with errors, then
/// the slowest.
pub(super) fn draw_agents(live: &LiveState, style: TerminalStyle, buffer: &mut Buffer, area: Rect) {
    let Some(last) = live.last() else {
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
    let head = ["completed", "p99", "errors"];
    let head = table_row(Ink::Dim, format!("{:<24}", "agent"), &head);
    let rows = ordered.into_iter().take(room).map(|a| agent(a, last));
    for (row, line) in [head].into_iter().chain(rows).enumerate() {
        style.write(buffer, below(area), row, &line);
    }
}

fn agent(agent: &AgentInterval, interval: &Interval) -> Line {
    let name = format!("{:<24.23}", agent.agent);
    if agent.is_silent {
        return table_row(Ink::Plain, name, &[""; 3]).with(Ink::Bad, "  silent");
    }
    let completed = rate(interval.per_s(agent.completed));
    let figures = [completed, known(agent.p99_ns, time_short), count(agent.errors)];
    let ink = if agent.errors > 0 { Ink::Warn } else { Ink::Plain };
    table_row(ink, name, &figures)
}
