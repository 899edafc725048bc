//! Load beyond capacity: arrivals and throughput.

use super::line::{Ink, Line};
use super::table::{Table, TableOf};
use super::{
    Document, Fact, Layout, Medium, agents, fact, head, heat_map, observed, overload_plots,
    sessions, timing, traffic,
};
use crate::number::{
    MISSING, count, fixed, known, number, percent, percent_cell, r_squared, rate, time_short, words,
};
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
    let arriving = [overload_plots::simple(c), overload_plots::sclients(c)];
    doc.plots(arriving.into_iter().flatten(), Layout::Pairs);
    doc.plots(overload_plots::served(c), Layout::Wide);
    let taken = taken(report, c);
    doc.facts(facts(c, taken));
    doc.facts(head::left_out(report));
    let by_schedule = report.trials.iter().any(is_scheduled);
    if !c.sclients.is_empty() {
        let (title, remark) = sclients_heading(by_schedule, c.is_of_datagrams());
        doc.section(title, remark);
        let ends = overload_plots::ends(c, by_schedule);
        doc.only(Medium::Page, |doc| doc.plots([ends], Layout::Wide));
        doc.table(title, sclients_table(c));
        doc.note(sclients_notes(c, by_schedule, taken));
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
    timing::show_levels(doc, report.trials.iter());
    observed::show_levels(doc, &report.trials);
    heat_map::show_levels(doc, &report.trials);
    agents::show_levels(doc, parted(&report.trials).0);
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

/// The word for connects that S-Clients replace before the timeout T.
fn taken(report: &Report, c: &OverloadConclusion) -> &'static str {
    if report.trials.iter().any(|t| t.sessions().is_some()) {
        "established"
    } else if c.is_of_datagrams() {
        "answered"
    } else {
        "served"
    }
}

/// The figures of the whole experiment.
fn facts(c: &OverloadConclusion, taken: &str) -> Vec<Fact> {
    let mut facts = vec![fact("capacity", rate(c.capacity_per_s))];
    if let (Some(slope), Some(r2)) = (c.slope_per_descriptor, c.r_squared) {
        let (slope, r2) = (fixed(slope, 3), r_squared(r2));
        let mut line = Line::plain(format!("{taken} + {slope}/s for each descriptor, R² {r2}"));
        if let Some(deviation) = c.deviation_percent {
            let (off, patience) = (percent(deviation), time_short(c.connect_timeout_ns));
            let text = format!(" (at most {off} off {taken} + D/T, with T = {patience})");
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
fn sclients_notes(c: &OverloadConclusion, by_schedule: bool, taken: &str) -> String {
    let rows: &[SClientRow] = &c.sclients;
    let offered = if by_schedule {
        "offered: as scheduled".to_owned()
    } else {
        format!("offered: {taken} + D/T")
    };
    let mut notes = vec![offered.as_str()];
    if taken == "established" {
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
        other => words(other.name()),
    }
}
