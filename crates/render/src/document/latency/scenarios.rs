//! The scenarios one by one, beyond what the classic text tells of them.

use super::{Shown, name, names_controls};
use crate::axis::Axis;
use crate::document::line::{Ink, Line};
use crate::document::table::{Align, Table};
use crate::document::{Fact, fact};
use crate::number::{MISSING, count, estimate, fixed, known, number, time, time_short};
use knee_core::experiment::latency::report::{CongestionRow, LatencyConclusion, ScenarioRow};
use knee_core::measure::Direction;
use knee_core::trial::flows::DirectionReport;
use knee_core::trial::report::TimesReport;

/// The flows of one direction of a scenario, where it has any.
type Side = for<'a> fn(&Shown<'a>) -> Option<&'a DirectionReport>;

/// Both directions by their names.
const SIDES: [(&str, Side); 2] = [
    ("up", |s| s.flows.up.as_ref()),
    ("down", |s| s.flows.down.as_ref()),
];

/// A scenario without uploads has no figure of them.
const NONE: &str = "";

/// The grade, and the idle path that it compares with.
pub(super) fn grade_facts(conclusion: &LatencyConclusion) -> Vec<Fact> {
    let mut line = Line::of(grade_ink(&conclusion.grade), conclusion.grade.as_str());
    if let Some(ns) = conclusion.added_latency_ns {
        line.push(Ink::Plain, format!(", {} added under load", time_short(ns)));
    }
    let mut facts = vec![fact("bufferbloat", line)];
    if let Some(idle) = &conclusion.idle_ns {
        facts.push(fact("idle path", Line::plain(idle_text(idle))));
    }
    facts
}

fn idle_text(idle: &TimesReport) -> String {
    format!(
        "round trip p50 {}, p99 {}, max {} ({} pings)",
        known(idle.p50, time_short),
        known(idle.p99, time_short),
        known(idle.max, time_short),
        count(idle.count)
    )
}

fn grade_ink(grade: &str) -> Ink {
    match grade.as_bytes().first() {
        Some(b'A') => Ink::Good,
        Some(b'B' | b'C') => Ink::Warn,
        _ => Ink::Bad,
    }
}

/// What the scenarios' names and latencies are.
pub(super) fn latency_remark(shown: &[Shown]) -> String {
    let uncertainty = shown.iter().map(|s| s.flows.clock_uncertainty_ns).max();
    match uncertainty {
        Some(ns) if ns > 0 => format!(
            "uploads/downloads; inside the flows one way, clocks agree to ± {}",
            time_short(ns)
        ),
        _ => "uploads/downloads; beside the flows there and back, inside them one way".to_owned(),
    }
}

/// The latency of each scenario, beside the flows and inside them.
pub(super) fn latency_table(shown: &[Shown], has_idle: bool) -> Table {
    let mut table = named(shown);
    let pings =
        |of: fn(&TimesReport) -> Option<u64>| times(shown, |s| of(&s.flows.tcp.round_trip_ns));
    if has_idle {
        table.column("added", Align::Right, cells(shown, |s| added(s.row)));
    }
    table.column("ping p50", Align::Right, pings(|l| l.p50));
    table.column("p99", Align::Right, pings(|l| l.p99));
    table.column(
        "longest",
        Align::Right,
        times(shown, |s| Some(s.flows.latency_ns_max)),
    );
    let hz = |s: &Shown| Line::plain(fixed(s.flows.responsiveness_hz, decimals(s)));
    table.column("Hz", Align::Right, cells(shown, hz));
    if shown.iter().any(|s| s.flows.udp.is_some()) {
        let p50 = |s: &Shown| s.flows.udp.as_ref().and_then(|u| u.round_trip_ns.p50);
        table.column("UDP p50", Align::Right, times(shown, p50));
        table.column("lost", Align::Right, cells(shown, udp_lost));
    }
    add_inside(&mut table, shown);
    let longest = |s: &Shown| s.flows.latency_ns_max as f64;
    let axis = Axis::from_zero(shown.iter().map(longest));
    let bars = shown.iter().map(|s| Some(axis.position(longest(s))));
    table.bar("longest", Ink::Warn, bars.collect());
    table
}

fn add_inside(table: &mut Table, shown: &[Shown]) {
    for (side, of) in SIDES {
        if shown.iter().any(|s| of(s).is_some()) {
            let p50 = times(shown, |s| of(s).and_then(|d| d.inside_ns.p50));
            table.column(format!("in {side} p50"), Align::Right, p50);
        }
    }
}

/// What the columns of flows are.
pub(super) const FLOWS_REMARK: &str =
    "capacity is n × their harmonic mean; gap is the longest of any";

/// What the abbreviations of its columns mean.
pub(super) const FLOWS_NOTE: &str = "Jain: Jain's fairness index of the flows' goodputs, 1 where \
    all have \
    the same, 1/n where one of n has all; resent: TCP segments sent again; after: length of the \
    scenario";

/// What became of the flows of each scenario.
pub(super) fn flows_table(shown: &[Shown]) -> Table {
    let mut table = named(shown);
    for (side, of) in SIDES {
        if shown.iter().any(|s| of(s).is_some()) {
            let capacity = cells(shown, |s| or_none(of(s), |d| number(d.capacity_kib_per_s)));
            table.column(format!("{side} KiB/s"), Align::Right, capacity);
            let jain = cells(shown, |s| or_none(of(s), |d| fixed(d.jain_index, 2)));
            table.column("Jain", Align::Right, jain);
            let again = cells(shown, |s| or_none(of(s), |d| count(d.retransmitted)));
            table.column("resent", Align::Right, again);
        }
    }
    let gap = times(shown, |s| s.flows.smoothness_hz.map(|_| s.flows.gap_ns_max));
    table.column("gap", Align::Right, gap);
    table.column("state", Align::Left, cells(shown, state));
    table.column(
        "after",
        Align::Right,
        times(shown, |s| Some(s.trial.duration_ns)),
    );
    if shown.iter().any(|s| s.flows.cpu_s_per_gib.is_some()) {
        let cpu = cells(shown, |s| or_none(s.flows.cpu_s_per_gib, estimate));
        table.column("CPU s/GiB", Align::Right, cpu);
    }
    let both = |s: &Shown| [s.row.up_kib_per_s, s.row.down_kib_per_s];
    let axis = Axis::from_zero(shown.iter().flat_map(both).flatten());
    for (i, (side, ink)) in [("up", Ink::Data), ("down", Ink::Guide)]
        .into_iter()
        .enumerate()
    {
        let bars = shown.iter().map(|s| both(s)[i].filter(|kib| *kib > 0.0));
        let bars = bars.map(|kib| Some(axis.position(kib?)));
        table.bar(side, ink, bars.collect());
    }
    table
}

/// Why scenarios did not settle, and which flows were lost.
pub(super) fn ends(conclusion: &LatencyConclusion) -> Vec<Line> {
    let names = names_controls(conclusion.scenarios.iter());
    let mut lines = Vec::new();
    for row in &conclusion.scenarios {
        let name = name(row, names);
        if !row.reason.is_empty() {
            let text = format!("{name} {}: {}", row.state, row.reason);
            lines.push(Line::of(state_ink(&row.state), text));
        }
        for (direction, way) in [(Direction::Up, "upload"), (Direction::Down, "download")] {
            let of_way = row.flows.iter().filter(|flow| flow.direction == direction);
            for (i, flow) in of_way.enumerate().filter(|(_, flow)| !flow.lost.is_empty()) {
                let text = format!("{name} {way} {i} was lost {}", flow.lost);
                lines.push(Line::of(Ink::Bad, text));
            }
        }
    }
    lines
}

/// The overall figures of each congestion control.
pub(super) fn controls_table(rows: &[CongestionRow]) -> Table {
    let mut table = Table::default();
    let column = |of: &dyn Fn(&CongestionRow) -> Line| rows.iter().map(of).collect();
    let whole = |n: Option<u64>| Line::plain(n.map_or(MISSING.to_owned(), count));
    let control = |r: &CongestionRow| Line::plain(r.congestion_control.as_str());
    table.column("", Align::Left, column(&control));
    let up = |r: &CongestionRow| whole(r.upload_capacity_kib_per_s);
    table.column("up KiB/s", Align::Right, column(&up));
    let down = |r: &CongestionRow| whole(r.download_capacity_kib_per_s);
    table.column("down KiB/s", Align::Right, column(&down));
    let responsiveness = |r: &CongestionRow| whole(r.responsiveness_hz);
    table.column("responsiveness Hz", Align::Right, column(&responsiveness));
    let smoothness = |r: &CongestionRow| whole(r.smoothness_hz);
    table.column("smoothness Hz", Align::Right, column(&smoothness));
    let added =
        |r: &CongestionRow| Line::plain(r.added_latency_ns.map_or(MISSING.to_owned(), time));
    table.column("added", Align::Right, column(&added));
    let grade = |r: &CongestionRow| Line::of(grade_ink(&r.grade), r.grade.as_str());
    table.column("grade", Align::Left, column(&grade));
    table
}

/// A table with the scenarios' names.
fn named(shown: &[Shown]) -> Table {
    let names = names_controls(shown.iter().map(|s| s.row));
    let mut table = Table::default();
    let cells = cells(shown, |s| Line::plain(name(s.row, names)));
    table.column("", Align::Left, cells);
    table
}

fn cells(shown: &[Shown], of: impl Fn(&Shown) -> Line) -> Vec<Line> {
    shown.iter().map(of).collect()
}

fn times(shown: &[Shown], of: impl Fn(&Shown) -> Option<u64>) -> Vec<Line> {
    cells(shown, |s| or_none(of(s), time))
}

fn or_none<T>(value: Option<T>, text: impl Fn(T) -> String) -> Line {
    Line::plain(value.map_or(NONE.to_owned(), text))
}

fn added(row: &ScenarioRow) -> Line {
    match row.added_latency_ns {
        None => Line::plain(MISSING),
        Some(ns) if ns < 0 => Line::plain(format!("−{}", time(ns.unsigned_abs()))),
        Some(ns) => Line::plain(time(ns.unsigned_abs())),
    }
}

/// Two decimals below 10 Hz, as much as there is to say there.
fn decimals(s: &Shown) -> usize {
    match s.flows.responsiveness_hz {
        hz if hz < 10.0 => 2,
        hz if hz < 100.0 => 1,
        _ => 0,
    }
}

fn udp_lost(s: &Shown) -> Line {
    match &s.flows.udp {
        None => Line::new(),
        Some(udp) if udp.lost == 0 => Line::plain("0"),
        Some(udp) => Line::of(Ink::Warn, count(udp.lost)),
    }
}

fn state(s: &Shown) -> Line {
    Line::of(state_ink(&s.flows.state), s.flows.state.as_str())
}

fn state_ink(state: &str) -> Ink {
    match state {
        "settled" => Ink::Plain,
        "forced" => Ink::Warn,
        _ => Ink::Bad,
    }
}
