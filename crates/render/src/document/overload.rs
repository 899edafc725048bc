//! Load beyond capacity. Figures show arrivals against clients and descriptors, throughput, and how
//! attempts end.

use super::line::{Ink, Line};
use super::table::{Table, TableOf};
use super::{
    Document, Fact, Layout, Medium, fact, generator, head, sessions, timing, traffic, trial_plots,
};
use crate::number::{
    MISSING, count, fixed, known, number, percent, percent_cell, r_squared, rate, time_short,
};
use crate::plot::{Dash, Mark, Plot, PlotSeries, Point, Reference, Scale, Tone, Unit, scale};
use knee_core::experiment::overload::report::{
    CameBack, LevelRow, OverloadConclusion, SClientRow, SimpleRow, parted,
};
use knee_core::report::Report;
use knee_core::trial::report::TrialReport;
use knee_core::words::levels;
use knee_load::measure::{Outcome, SynSource};
use knee_load::spec::{CloseKind, Level};

/// Adds all sections of an overload.
pub(super) fn show(doc: &mut Document, report: &Report, c: &OverloadConclusion) {
    if c.simple.is_empty() && c.sclients.is_empty() {
        return;
    }
    doc.only(Medium::Screen, |doc| show_key_figures(doc, c));
    doc.section("What arrives, and what is served", "");
    let arriving = [simple(c), sclients(c)];
    doc.plots(arriving.into_iter().flatten(), Layout::Pairs);
    doc.plots(served(c), Layout::Wide);
    let replaced_when = replaced_when(report, c);
    doc.facts(facts(c, replaced_when));
    doc.facts(head::left_out(report));
    let by_schedule = report.trials.iter().any(is_scheduled);
    if !c.sclients.is_empty() {
        let (title, remark) = sclients_heading(by_schedule, c.is_of_datagrams());
        doc.section(title, remark);
        let ends = ends(c, by_schedule);
        doc.only(Medium::Page, |doc| doc.plots([ends], Layout::Wide));
        doc.table(title, sclients_table(c));
        doc.note(sclients_notes(c, by_schedule, replaced_when));
    }
    if !c.simple.is_empty() {
        doc.section("Simple clients", "per second; each waits for its answer");
        doc.table("Simple clients", simple_table(c));
    }
    if let Some(table) = base_table(c) {
        doc.section("The base load again", "after the last level; in no other figure");
        doc.table("Base load", table);
    }
    sessions::show_levels(doc, &report.trials);
    traffic::show_steps_of_levels(doc, &report.trials);
    timing::show_levels(doc, &report.trials);
    traffic::show_host_times_of_levels(doc, &report.trials);
    trial_plots::show_heat_maps_of_levels(doc, &report.trials);
    generator::show_agents_of_levels(doc, parted(&report.trials).0);
}

/// Adds the first screen.
fn show_key_figures(doc: &mut Document, c: &OverloadConclusion) {
    let ends = Outcome::ALL.map(end);
    let key = |table: Table, load: &str| {
        let mut columns = vec![load, "sent/s", "first/s", "served/s", "queue"];
        columns.extend(ends.iter().map(String::as_str));
        table.with_columns(&columns)
    };
    if !c.simple.is_empty() {
        doc.table("Simple clients", key(simple_table(c), "clients"));
    }
    if !c.sclients.is_empty() {
        doc.table("S-Clients", key(sclients_table(c), "descriptors"));
    }
    if let Some(table) = base_table(c) {
        doc.table("Base load", key(table, "base load"));
    }
}

/// When S-Clients replace a connect before the timeout T.
fn replaced_when(report: &Report, c: &OverloadConclusion) -> &'static str {
    if report.trials.iter().any(|t| t.sessions().is_some()) {
        "established"
    } else if c.is_of_datagrams() {
        "answered"
    } else {
        "served"
    }
}

/// The figures of the whole experiment.
fn facts(c: &OverloadConclusion, replaced_when: &str) -> Vec<Fact> {
    let mut facts = vec![fact("capacity", rate(c.capacity_per_s))];
    if let (Some(slope), Some(r2)) = (c.slope_per_descriptor, c.r_squared) {
        let (slope, r2) = (fixed(slope, 3), r_squared(r2));
        let mut line =
            Line::plain(format!("{replaced_when} + {slope}/s for each descriptor, R² {r2}"));
        if let Some(deviation) = c.deviation_percent {
            let (off, patience) = (percent(deviation), time_short(c.connect_timeout_ns));
            let text = format!(" (at most {off} off {replaced_when} + D/T, with T = {patience})");
            line.push(Ink::Dim, text);
        }
        facts.push(fact(if c.is_of_datagrams() { "request rate" } else { "SYN rate" }, line));
    }
    facts.push(counted(c));
    if let Some(limit) = c.generator_limit_per_s {
        let text = format!("none seen up to {}", rate(limit));
        facts.push(fact("generator limit", text));
    }
    if let Some(recovery) = &c.recovery {
        let back = match recovery.came_back {
            CameBack::Yes => "back after the last level".to_owned(),
            CameBack::Late => "back in the second half of the base load again".to_owned(),
            CameBack::No => "not back after the last level".to_owned(),
            CameBack::NotJudged => format!("not known whether it came back: {}", recovery.because),
        };
        facts.push(fact("service", back));
    }
    facts.extend(c.close.map(|close| {
        let close = match close {
            CloseKind::Fin => "FIN",
            CloseKind::Rst => "RST",
        };
        fact("closed with", close)
    }));
    facts
}

/// Who counted what arrives.
fn counted(c: &OverloadConclusion) -> Fact {
    if c.is_of_datagrams() {
        return fact("requests counted", "by the generator, as sent: one datagram each");
    }
    let counted = match c.syn_source {
        SynSource::Capture => "at the server, by a packet capture",
        SynSource::Counters => "at the server, by its kernel's counters",
        SynSource::Attempts => "by the generator's own attempts: nobody looked at the server",
    };
    fact("SYNs counted", counted)
}

/// A row for each number of simple clients.
fn simple_table(c: &OverloadConclusion) -> Table {
    let rows: &[SimpleRow] = &c.simple;
    let mut table = TableOf::new(rows);
    table.right("clients", |r| count(r.clients.into()));
    add_level(&mut table, c, rows, |r| &r.row, |_| Ink::Plain);
    table.done()
}

/// The base load as measured at first and after the last level, if it was offered again.
fn base_table(c: &OverloadConclusion) -> Option<Table> {
    let recovery = c.recovery.as_ref()?;
    let (before, again) = recovery.before.as_ref().zip(recovery.again.as_ref())?;
    let load = levels(&[recovery.level?]);
    let rows = [("at first", before), ("again", again)];
    let mut table = TableOf::new(&rows);
    table.left("base load", |(when, _)| format!("{load}, {when}"));
    add_level(&mut table, c, &rows, |(_, row)| row, |_| Ink::Plain);
    Some(table.done())
}

/// Title and remark of the section on S-Clients.
fn sclients_heading(by_schedule: bool, is_of_datagrams: bool) -> (&'static str, &'static str) {
    match (by_schedule, is_of_datagrams) {
        (true, false) => ("Schedule", "per second; connects start when it says"),
        (true, true) => ("Schedule", "per second; requests leave when it says"),
        (false, false) => {
            ("S-Clients", "per second; a connect is replaced when established, or after T")
        }
        (false, true) => {
            ("S-Clients", "per second; a request is replaced when answered, or after T")
        }
    }
}

/// A row for each number of descriptors.
fn sclients_table(c: &OverloadConclusion) -> Table {
    let rows: &[SClientRow] = &c.sclients;
    let ink = |r: &SClientRow| {
        if r.past_saturation { Ink::Plain } else { Ink::Dim }
    };
    let mut table = TableOf::new(rows);
    table.right("descriptors", |r| Line::of(ink(r), count(r.descriptors.into())));
    table.right("offered", |r| Line::of(ink(r), number(r.offered_per_s)));
    add_level(&mut table, c, rows, |r| &r.row, ink);
    table.done()
}

/// Adds the columns that all levels have: rates, ends of attempts, and the server's host.
fn add_level<T>(
    table: &mut TableOf<T>,
    c: &OverloadConclusion,
    rows: &[T],
    level: impl Fn(&T) -> &LevelRow,
    ink: impl Fn(&T) -> Ink,
) {
    if c.is_of_datagrams() {
        table.right("sent/s", |r| Line::of(ink(r), number(level(r).syn_per_s)));
    } else {
        table.right("SYN/s", |r| Line::of(ink(r), number(level(r).syn_per_s)));
        table.right("first/s", |r| Line::of(ink(r), number(level(r).first_syn_per_s)));
    }
    table.right("served/s", |r| {
        let row = level(r);
        let is_least = if row.served_range_per_s.is_some() { "≥ " } else { "" };
        Line::of(ink(r), format!("{is_least}{}", number(row.served_per_s)))
    });
    let interval = |[lo, hi]: [f64; 2]| format!("{}–{}", number(lo), number(hi));
    table.right("95 %", |r| Line::of(ink(r), known(level(r).served_ci95_per_s, interval)));
    for outcome in Outcome::ALL {
        if rows.iter().any(|r| level(r).outcomes.count(outcome) > 0) {
            table.right(end(outcome), |r| count(level(r).outcomes.count(outcome)));
        }
    }
    table.right_if_any("queue", MISSING, |r| {
        let max = count(level(r).accept_queue_max?.into());
        let limit = level(r).accept_queue_limit.map(|n| format!("/{}", count(n.into())));
        Some(max + &limit.unwrap_or_default())
    });
    table.right_if_any("busy", MISSING, |r| level(r).server_busy_percent.map(percent_cell));
}

/// The legend of the table of S-Clients.
fn sclients_notes(c: &OverloadConclusion, by_schedule: bool, replaced_when: &str) -> String {
    let rows: &[SClientRow] = &c.sclients;
    let offered = if by_schedule {
        "offered: as scheduled".to_owned()
    } else {
        format!("offered: {replaced_when} + D/T")
    };
    let mut notes = vec![offered.as_str()];
    if replaced_when == "established" {
        notes.push("served: sessions that came to their end");
    }
    if !c.is_of_datagrams() {
        notes.push("first: SYNs that are no repetition");
    }
    notes.push("95 %: confidence interval of served/s");
    if rows.iter().any(|r| r.row.served_range_per_s.is_some()) {
        notes.push("≥: no more is known, as the generator or its host was the limit");
    }
    let is_interval_missing =
        |r: &SClientRow| r.row.served_ci95_per_s.is_none() && r.row.served_range_per_s.is_none();
    if rows.iter().any(is_interval_missing) {
        notes.push("no interval: too few responses, or the server stopped in the level");
    }
    notes.push("then attempts begun in the level by their end, also after it");
    if rows.iter().any(|r| !r.past_saturation) {
        notes.push("dim: not past saturation");
    }
    if rows.iter().any(|r| r.row.accept_queue_max.is_some()) {
        notes.push("queue: most connections in the accept queue, and its length");
    }
    if rows.iter().any(|r| r.row.server_busy_percent.is_some()) {
        notes.push("busy: % of the server's processors");
    }
    notes.join("; ")
}

/// Whether its connects started on a schedule.
fn is_scheduled(trial: &TrialReport) -> bool {
    matches!(trial.level, Level::RatePerS(_))
}

/// An outcome as the title of a column.
pub(super) fn end(outcome: Outcome) -> String {
    match outcome {
        Outcome::ConnectTimeout => "timeouts".to_string(),
        Outcome::Ghost => "ghosts".to_string(),
        Outcome::PortExhausted => "no port".to_string(),
        Outcome::DescriptorExhausted => "no descriptor".to_string(),
        other => other.label(),
    }
}

/// Height of the bar of one level, in CSS pixels.
const ROW_PX: u32 = 24;

/// The colours of outcomes other than served, in turn.
const TONES: [Tone; 4] = [Tone::Second, Tone::Fourth, Tone::Bad, Tone::Third];

/// The top of both plots of arrivals; that of simple clients looks flat in comparison.
fn top(c: &OverloadConclusion) -> f64 {
    let simple = c.simple.iter().map(|r| r.row.syn_per_s);
    let sclients = c.sclients.iter().flat_map(|r| [r.row.syn_per_s, r.offered_per_s]);
    scale::top(simple.chain(sclients).chain([c.capacity_per_s]))
}

fn capacity(c: &OverloadConclusion) -> Reference {
    Reference::y(c.capacity_per_s, format!("capacity {}", rate(c.capacity_per_s)))
}

/// A plot of arrivals with the capacity, and with the generator's limit if one was met.
fn over_capacity(c: &OverloadConclusion, title: &str, x: Scale) -> Plot {
    let arrivals = if c.is_of_datagrams() { "requests" } else { "connections" };
    let y = Scale::from_zero([top(c)], Unit::PerS, arrivals);
    let plot = Plot::new(title, x, y).against(capacity(c));
    let most = scale::top(c.sclients.iter().map(|r| r.offered_per_s));
    match c.generator_limit_per_s {
        Some(limit) if limit < 0.99 * most => {
            let label = format!("the generator kept up to {}", rate(limit));
            plot.against(Reference::y(limit, label).toned(Tone::Fourth))
        }
        _ => plot,
    }
}

/// Arrivals from simple clients, which never exceed the throughput.
pub(super) fn simple(c: &OverloadConclusion) -> Option<Plot> {
    if c.simple.len() < 2 {
        return None;
    }
    let rows: Vec<(f64, &LevelRow)> = c.simple.iter().map(|r| (r.clients.into(), &r.row)).collect();
    let clients = rows.iter().map(|(clients, _)| *clients);
    let x = Scale::fitting(clients, Unit::Count, "simple clients");
    Some(curves(over_capacity(c, "Simple clients", x), c, &rows))
}

/// Arrivals from S-Clients, 1/T per descriptor.
pub(super) fn sclients(c: &OverloadConclusion) -> Option<Plot> {
    if c.sclients.len() < 2 {
        return None;
    }
    let rows = c.sclients.iter().map(|r| (r.descriptors.into(), &r.row));
    let rows: Vec<(f64, &LevelRow)> = rows.collect();
    let most = scale::top(rows.iter().map(|(descriptors, _)| *descriptors));
    let x = Scale::from_zero([most], Unit::Count, "descriptors of S-Clients");
    let mut plot = over_capacity(c, "S-Clients", x);
    if let Some(slope) = c.slope_per_descriptor {
        let line = [0.0, most].map(|d| Point::new(d, c.capacity_per_s + slope * d));
        let series = PlotSeries::line("fitted", line.into()).toned(Tone::Muted);
        let slope = fixed(slope, 3);
        plot = plot
            .with(series.dashed(Dash::Dotted).unlisted())
            .noted(format!("fitted: the capacity and {slope}/s for each descriptor"));
    }
    Some(curves(plot, c, &rows))
}

/// Adds what arrives and throughput of rows at these places on x.
fn curves(mut plot: Plot, c: &OverloadConclusion, rows: &[(f64, &LevelRow)]) -> Plot {
    let points = |rate: fn(&LevelRow) -> f64| -> Vec<Point> {
        rows.iter().map(|(x, row)| Point::new(*x, rate(row))).collect()
    };
    if rows.iter().any(|(_, row)| row.syn_per_s > row.first_syn_per_s) {
        let series = PlotSeries::line("all SYNs", points(|row| row.syn_per_s)).toned(Tone::Second);
        plot = plot.with(series.dashed(Dash::DashDot).marked(Mark::Ring));
    }
    let served = rows.iter().map(|(x, row)| served_at(*x, row)).collect();
    let served = PlotSeries::line("served", served).toned(Tone::Third);
    let name = if c.is_of_datagrams() { "sent" } else { "first SYNs" };
    let first = PlotSeries::line(name, points(|row| row.first_syn_per_s));
    plot.with(first.marked(Mark::Dot)).with(served.dashed(Dash::Dashed).marked(Mark::Square))
}

fn served_at(x: f64, row: &LevelRow) -> Point {
    Point::with(x, row.served_per_s, row.served_ci95_per_s)
}

/// Throughput against offered load; `None` with too few levels or no throughput.
pub(super) fn served(c: &OverloadConclusion) -> Option<Plot> {
    if c.sclients.is_empty() || c.simple.len() + c.sclients.len() < 2 || c.capacity_per_s <= 0.0 {
        return None;
    }
    let simple = c.simple.iter().map(|r| served_at(r.row.first_syn_per_s, &r.row));
    let simple: Vec<Point> = simple.collect();
    let sclients = c.sclients.iter().map(|r| served_at(r.offered_per_s, &r.row));
    let sclients: Vec<Point> = sclients.collect();
    let points = || simple.iter().chain(&sclients);
    let x = Scale::from_zero(points().map(|p| p.x), Unit::PerS, "offered");
    let most = scale::top(points().map(|p| p.y).chain([c.capacity_per_s]));
    let y = Scale::from_zero([1.1 * most], Unit::PerS, "served");
    let plot = Plot::new("Served against offered", x, y)
        .high(180)
        .against(capacity(c))
        .with(PlotSeries::line("S-Clients", sclients).marked(Mark::Dot));
    let simple = PlotSeries::marks("simple clients", simple).toned(Tone::Second);
    Some(plot.with_any(simple.marked(Mark::Ring)))
}

/// How the attempts of each level ended.
pub(super) fn ends(c: &OverloadConclusion, by_schedule: bool) -> Plot {
    let rows = &c.sclients;
    let totals = rows.iter().map(|r| r.row.outcomes.total() as f64);
    let x = Scale::from_zero(totals, Unit::Count, "attempts");
    let title = if by_schedule {
        "How attempts ended, by the most in flight"
    } else {
        "How attempts ended, by descriptors"
    };
    let names = rows.iter().map(|r| count(r.descriptors.into()));
    let mut plot = Plot::of_rows(title, x, names, ROW_PX);
    plot.height = plot.height.max(48);
    let mut begins = vec![0.0; rows.len()];
    let mut tones = TONES.into_iter().cycle();
    let failures = Outcome::ALL.into_iter().filter(|o| *o != Outcome::Served);
    for outcome in [Outcome::Served].into_iter().chain(failures) {
        if rows.iter().all(|r| r.row.outcomes.count(outcome) == 0) {
            continue;
        }
        let pieces = rows.iter().zip(&mut begins).enumerate();
        let pieces = pieces.map(|(i, (r, begin))| {
            let n = r.row.outcomes.count(outcome) as f64;
            let from = *begin;
            *begin += n;
            Point::with(n, i as f64, Some([from, *begin]))
        });
        let series = PlotSeries::stack(end(outcome), pieces.collect(), 0.7);
        plot = plot.with(match outcome {
            Outcome::Served => series,
            _ => series.toned(tones.next().unwrap_or_default()),
        });
    }
    plot
}
