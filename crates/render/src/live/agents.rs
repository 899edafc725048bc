//! The agents of a fleet: what each contributed to the last interval.

use super::Live;
use super::charts::below;
use super::look::Look;
use crate::document::line::{Ink, Line};
use crate::number::{count, known, rate, time_short};
use knee_core::measure::{AgentInterval, Interval};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// A table under a heading: those first that are silent, that fail, that are slow.
pub(super) fn draw(live: &Live, look: Look, buffer: &mut Buffer, area: Rect) {
    let Some(last) = live.moments.back() else {
        return;
    };
    let mut ordered: Vec<&AgentInterval> = live.agents.iter().collect();
    ordered.sort_by_key(|a| (!a.is_silent, std::cmp::Reverse((a.errors, a.p99_ns))));
    let room = usize::from(area.height.saturating_sub(2));
    let remark = match ordered.len().saturating_sub(room) {
        0 => String::new(),
        n => format!("{n} more"),
    };
    look.heading(buffer, area, "agents, last interval", &remark);
    let area = below(area);
    let head = ["completed", "p99", "errors"].map(str::to_string);
    look.write(buffer, area, 0, &row(Ink::Dim, "agent", &head));
    for (at, agent) in ordered.into_iter().take(room).enumerate() {
        look.write(buffer, area, at + 1, &line(agent, &last.interval));
    }
}

fn line(agent: &AgentInterval, interval: &Interval) -> Line {
    if agent.is_silent {
        return row(Ink::Plain, &agent.agent, &Default::default()).with(Ink::Bad, "  silent");
    }
    let figures = [
        rate(interval.per_s(agent.completed)),
        known(agent.p99_ns, time_short),
        count(agent.errors),
    ];
    let ink = if agent.errors > 0 {
        Ink::Warn
    } else {
        Ink::Plain
    };
    row(ink, &agent.agent, &figures)
}

fn row(ink: Ink, name: &str, [completed, p99, errors]: &[String; 3]) -> Line {
    let name: String = name.chars().take(23).collect();
    Line::of(ink, format!("{name:<24}{completed:>11}{p99:>9}{errors:>9}"))
}
