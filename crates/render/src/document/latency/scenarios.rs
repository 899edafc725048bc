//! The scenarios one by one, the congestion controls compared, the flows of the worst scenario.

use super::{ScenarioTrial, name, names_controls};
use crate::document::line::{Ink, Line};
use crate::document::table::{Table, TableOf};
use crate::document::{Document, Fact, Layout, Medium, fact};
use crate::number::{
    MISSING, bytes, count, estimate, fixed, known, number, plural, time, time_short,
};
use crate::plot::{Axis, Plot, PlotSeries, Scale, Tone, Unit, row_points};
use knee_core::experiment::latency::report::{CongestionRow, LatencyConclusion, ScenarioRow};
use knee_core::trial::detail::{DirectionReport, FlowReport};
use knee_core::trial::figure::TimesReport;
use knee_load::measure::Direction;

/// The flows of one direction of a scenario, if any.
type Side = for<'a> fn(&ScenarioTrial<'a>) -> Option<&'a DirectionReport>;

/// Both directions by name.
const SIDES: [(&str, Side); 2] =
    [("up", |s| s.flows.up.as_ref()), ("down", |s| s.flows.down.as_ref())];

/// The grade, and the idle path for comparison.
pub(super) fn grade_facts(conclusion: &LatencyConclusion) -> Vec<Fact> {
    let mut line = Line::of(grade_ink(&conclusion.path.grade), conclusion.path.grade.as_str());
    if let Some(ns) = conclusion.path.added_latency_ns {
        line.push(Ink::Plain, format!(", {} added under load", time_short(ns)));
    }
    let mut facts = vec![fact("bufferbloat", line)];
    if let Some(idle) = &conclusion.idle_ns {
        facts.push(fact("idle path", idle_text(idle)));
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

/// The remark on names and latencies of scenarios.
pub(super) fn latency_remark(shown: &[ScenarioTrial]) -> String {
    match shown.iter().map(|s| s.flows.clock_uncertainty_ns).max() {
        Some(ns) if ns > 0 => format!(
            "uploads/downloads; inside the flows one way, clocks agree to ± {}",
            time_short(ns)
        ),
        _ => "uploads/downloads; beside the flows there and back, inside them one way".to_owned(),
    }
}

/// The latency of each scenario, beside the flows and inside them.
pub(super) fn latency_table(shown: &[ScenarioTrial], has_idle: bool) -> Table {
    let mut table = named(shown);
    if has_idle {
        table.right("added", |s| added(s.row));
    }
    let pings = |s: &ScenarioTrial, figure: fn(&TimesReport) -> Option<u64>| {
        or_none(figure(&s.flows.tcp.round_trip_ns), time)
    };
    table.right("ping p50", |s| pings(s, |l| l.p50));
    table.right("p99", |s| pings(s, |l| l.p99));
    table.right("longest", |s| time(s.flows.latency_ns_max));
    table.right("Hz", |s| fixed(s.flows.responsiveness_hz, decimals(s)));
    if shown.iter().any(|s| s.flows.udp.is_some()) {
        let udp = |s: &ScenarioTrial| s.flows.udp.as_ref()?.round_trip_ns.p50;
        table.right("UDP p50", |s| or_none(udp(s), time));
        table.right("lost", udp_lost);
    }
    for (side, of) in SIDES {
        if shown.iter().any(|s| of(s).is_some()) {
            let p50 = |s| of(s).and_then(|d| d.inside_ns.p50);
            table.right(format!("in {side} p50"), |s| or_none(p50(s), time));
        }
    }
    let longest = |s: &ScenarioTrial| s.flows.latency_ns_max as f64;
    let axis = Axis::from_zero(shown.iter().map(longest));
    table.bars("longest", Ink::Warn, |s| Some(axis.position(longest(s))));
    table.done()
}

/// The remark on the columns of flows.
pub(super) const FLOWS_REMARK: &str =
    "capacity is n × their harmonic mean; gap is the longest of any";

/// The abbreviations of the columns of flows.
pub(super) const FLOWS_NOTE: &str = "Jain: Jain's fairness index of the flows' goodputs, 1 where \
    all have the same, 1/n where one of n has all; resent: TCP segments sent again; after: length \
    of the scenario";

/// The flows of each scenario.
pub(super) fn flows_table(shown: &[ScenarioTrial]) -> Table {
    let mut table = named(shown);
    for (side, of) in SIDES {
        if shown.iter().any(|s| of(s).is_some()) {
            let capacity = |d: &DirectionReport| number(d.capacity_kib_per_s);
            table.right(format!("{side} KiB/s"), |s| or_none(of(s), capacity));
            table.right("Jain", |s| or_none(of(s), |d| fixed(d.jain_index, 2)));
            table.right("resent", |s| or_none(of(s), |d| count(d.retransmitted)));
        }
    }
    let gap = |s: &ScenarioTrial| s.flows.smoothness_hz.map(|_| s.flows.gap_ns_max);
    table.right("gap", |s| or_none(gap(s), time));
    table.left("state", |s| Line::of(state_ink(&s.flows.state), s.flows.state.as_str()));
    table.right("after", |s| time(s.trial.duration_ns));
    table.right_if_any("CPU s/GiB", "", |s| s.flows.cpu_s_per_gib.map(estimate));
    let capacities = |s: &ScenarioTrial| [s.row.up_kib_per_s, s.row.down_kib_per_s];
    let axis = Axis::from_zero(shown.iter().flat_map(capacities).flatten());
    for (i, side, ink) in [(0, "up", Ink::Data), (1, "down", Ink::Guide)] {
        table.bars(side, ink, |s| Some(axis.position(capacities(s)[i].filter(|kib| *kib > 0.0)?)));
    }
    table.done()
}

/// The scenarios that did not settle, with the reason, and the lost flows.
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

/// Adds the overall figures of each congestion control, if there are several.
pub(super) fn show_controls(doc: &mut Document, rows: &[CongestionRow]) {
    if rows.len() < 2 {
        return;
    }
    let title = "Congestion controls";
    doc.section(title, "the same scenarios with each of them");
    type Capacity = fn(&CongestionRow) -> Option<u64>;
    let figures: [(&str, Unit, Tone, Capacity); 3] = [
        ("Latency added under load", Unit::Time, Tone::Second, |r| r.path.added_latency_ns),
        ("Upload capacity", Unit::KibPerS, Tone::First, |r| r.path.upload_capacity_kib_per_s),
        ("Download capacity", Unit::KibPerS, Tone::Third, |r| r.path.download_capacity_kib_per_s),
    ];
    let plots = figures.map(|(title, unit, tone, figure)| {
        let value = |row: &CongestionRow| figure(row).map_or(f64::NAN, |n| n as f64);
        // Room for the words beside the longest bar.
        let x = Scale::from_zero(rows.iter().map(|row| 1.45 * value(row)), unit, "");
        let bars = row_points(rows, |row| Some(value(row)));
        let labels = rows.iter().map(|row| unit.value(value(row)));
        Plot::of_rows(title, x, rows.iter().map(graded), 30)
            .with(PlotSeries::bars("", bars, 0.6).toned(tone).labelled(labels))
    });
    doc.only(Medium::Page, |doc| doc.plots(plots, Layout::Panels));
    doc.table(title, controls_table(rows));
}

fn graded(row: &CongestionRow) -> String {
    match row.path.grade.as_str() {
        "" => row.congestion_control.clone(),
        grade => format!("{} ({grade})", row.congestion_control),
    }
}

fn controls_table(rows: &[CongestionRow]) -> Table {
    let mut table = TableOf::new(rows);
    table.left("", |r| r.congestion_control.as_str());
    table.right("up KiB/s", |r| known(r.path.upload_capacity_kib_per_s, count));
    table.right("down KiB/s", |r| known(r.path.download_capacity_kib_per_s, count));
    table.right("responsiveness Hz", |r| known(r.path.responsiveness_hz, count));
    table.right("smoothness Hz", |r| known(r.path.smoothness_hz, count));
    table.right("added", |r| known(r.path.added_latency_ns, time));
    table.left("grade", |r| Line::of(grade_ink(&r.path.grade), r.path.grade.as_str()));
    table.done()
}

/// Flows listed; of more, the first of each direction and the lost ones.
const FLOWS_MAX: usize = 8;
const OF_EACH: u32 = 4;

/// Adds the flows of the scenario with the longest latency among `scenarios`, under its name.
pub(super) fn show_worst(doc: &mut Document, worst: &ScenarioTrial, name: &str, scenarios: usize) {
    let flows = &worst.flows.flows;
    let mut listed: Vec<&FlowReport> = flows.iter().collect();
    let mut remark = match scenarios {
        1 => plural(flows.len() as u64, "flow"),
        _ => "the scenario with the longest latency".to_owned(),
    };
    if listed.len() > FLOWS_MAX {
        listed.retain(|flow| flow.number < OF_EACH || flow.lost_because.is_some());
        remark = format!("{remark}; {} of {}", listed.len(), flows.len());
    }
    if listed.is_empty() {
        return;
    }
    doc.section(format!("Flows of {name}"), remark);
    doc.table("Flows", worst_table(&listed));
    doc.note(
        "gap: longest time without data; resent: TCP segments sent again; RTT: round trip as TCP \
         measured it; window: its median congestion window; control: its congestion control",
    );
}

fn worst_table(flows: &[&FlowReport]) -> Table {
    let mut table = TableOf::new(flows);
    table.left("", |f| {
        let way = if f.direction == Direction::Up { "up" } else { "down" };
        format!("{way} {}", f.number)
    });
    table.right("KiB/s", |f| number(f.goodput_kib_per_s));
    table.right("gap", |f| time(f.gap_ns_max));
    table.right("resent", |f| count(f.retransmitted));
    table.right("TCP's RTT p50", |f| known(f.rtt_ns.p50, time));
    table.right("max", |f| known(f.rtt_ns.max, time));
    table.right("window", |f| bytes(f.window_bytes));
    let ecn = |f: &FlowReport| if f.ecn { " ECN" } else { "" };
    table.left("control", |f| format!("{}{}", f.congestion_control, ecn(f)));
    if flows.iter().any(|f| f.lost_because.is_some()) {
        table.left("lost after", |f| {
            let at_ns = f.lost_because.as_ref().and(f.lost_at_ns);
            Line::of(Ink::Bad, or_none(at_ns, time))
        });
    }
    table.done()
}

/// A table with the names of the scenarios.
fn named<'a, 'b>(shown: &'a [ScenarioTrial<'b>]) -> TableOf<'a, ScenarioTrial<'b>> {
    let names = names_controls(shown.iter().map(|s| s.row));
    let mut table = TableOf::new(shown);
    table.left("", |s| name(s.row, names));
    table
}

/// The figure, or nothing in a scenario without flows of its direction.
fn or_none<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or(String::new(), text)
}

fn added(row: &ScenarioRow) -> Line {
    match row.added_latency_ns {
        None => Line::plain(MISSING),
        Some(ns) if ns < 0 => Line::plain(format!("−{}", time(ns.unsigned_abs()))),
        Some(ns) => Line::plain(time(ns.unsigned_abs())),
    }
}

/// Decimals of the frequency: two below 10 Hz, one below 100 Hz.
fn decimals(s: &ScenarioTrial) -> usize {
    match s.flows.responsiveness_hz {
        hz if hz < 10.0 => 2,
        hz if hz < 100.0 => 1,
        _ => 0,
    }
}

fn udp_lost(s: &ScenarioTrial) -> Line {
    match &s.flows.udp {
        None => Line::default(),
        Some(udp) if udp.lost == 0 => Line::plain("0"),
        Some(udp) => Line::of(Ink::Warn, count(udp.lost)),
    }
}

fn state_ink(state: &str) -> Ink {
    match state {
        "settled" => Ink::Plain,
        "forced" => Ink::Warn,
        _ => Ink::Bad,
    }
}
