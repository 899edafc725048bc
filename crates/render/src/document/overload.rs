//! Load beyond capacity: what arrives, and what is served.

use super::line::{Ink, Line};
use super::table::{Align, Table};
use super::{
    Document, Fact, Layout, Medium, agents, fact, heat_map, observed, opening, overload_plots,
    sessions, timing, traffic,
};
use crate::number::{self, MISSING, count, known, number, percent, rate, time_short, words};
use knee_core::experiment::overload::report::{
    CameBack, LevelRow, OverloadConclusion, SClientRow, SimpleRow, parted,
};
use knee_core::measure::{Outcome, Outcomes, SynSource};
use knee_core::report::Report;
use knee_core::spec::{CloseKind, Level};
use knee_core::trial::report::TrialReport;
use knee_core::words::levels;

/// Adds it.
pub(super) fn show(doc: &mut Document, report: &Report, c: &OverloadConclusion) {
    if c.simple.is_empty() && c.sclients.is_empty() {
        return;
    }
    doc.only(Medium::Screen, |doc| show_key_figures(doc, c));
    doc.section("What arrives, and what is served", "");
    let arriving = [overload_plots::simple(c), overload_plots::sclients(c)];
    doc.plots(arriving.into_iter().flatten(), Layout::Pairs);
    doc.plots(overload_plots::served(c), Layout::Wide);
    let taken = taken(report);
    doc.facts(facts(c, taken));
    doc.facts(opening::left_out(report));
    let by_schedule = report.trials.iter().any(is_scheduled);
    if !c.sclients.is_empty() {
        let (title, remark) = sclients_heading(by_schedule);
        doc.section(title, remark);
        let ends = overload_plots::ends(c, by_schedule);
        doc.only(Medium::Page, |doc| doc.plots([ends], Layout::Wide));
        doc.table(title, sclients_table(&c.sclients));
        doc.note(sclients_notes(&c.sclients, by_schedule, taken));
    }
    if !c.simple.is_empty() {
        doc.section("Simple clients", "per second; each waits for its answer");
        doc.table("Simple clients", simple_table(&c.simple));
    }
    if let Some(table) = base_rows(c) {
        doc.section(
            "The base load again",
            "after the last level; in no other figure",
        );
        doc.table("Base load", table);
    }
    sessions::show_levels(doc, &report.trials);
    traffic::show_steps_of_levels(doc, &report.trials);
    timing::show_levels(doc, report.trials.iter());
    observed::show_levels(doc, &report.trials);
    heat_map::show_levels(doc, &report.trials);
    agents::show_levels(doc, parted(&report.trials).0);
}

/// Adds what a person looks at first.
fn show_key_figures(doc: &mut Document, c: &OverloadConclusion) {
    let ends: Vec<String> = Outcome::ALL.iter().map(|&outcome| end(outcome)).collect();
    let key = |table: Table, load: &str| {
        let ends = ends.iter().map(String::as_str);
        let columns = [load, "first/s", "served/s"]
            .into_iter()
            .chain(ends)
            .chain(["queue"]);
        table.with_columns(&columns.collect::<Vec<_>>())
    };
    if !c.simple.is_empty() {
        doc.table("Simple clients", key(simple_table(&c.simple), "clients"));
    }
    if !c.sclients.is_empty() {
        doc.table("S-Clients", key(sclients_table(&c.sclients), "descriptors"));
    }
    if let Some(table) = base_rows(c) {
        doc.table("Base load", key(table, "base load"));
    }
}

/// What becomes of the connects that S-Clients replace before T is over.
fn taken(report: &Report) -> &'static str {
    match report.trials.iter().any(|t| t.sessions().is_some()) {
        true => "established",
        false => "served",
    }
}

/// What is known of it as a whole.
fn facts(c: &OverloadConclusion, taken: &str) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, line: Line| facts.push(fact(name, line));
    fact("capacity", Line::plain(rate(c.capacity_per_s)));
    if let (Some(slope), Some(r_squared)) = (c.slope_per_descriptor, c.r_squared) {
        let slope = number::fixed(slope, 3);
        let mut line = Line::plain(format!("{taken} + {slope}/s for each descriptor"));
        line.push(Ink::Plain, format!(", R² {}", number::r_squared(r_squared)));
        if let Some(deviation) = c.deviation_percent {
            let patience = time_short(c.connect_timeout_ns);
            let off = percent(deviation);
            line.push(
                Ink::Dim,
                format!(" (at most {off} off {taken} + D/T, with T = {patience})"),
            );
        }
        fact("SYN rate", line);
    }
    fact(
        "SYNs counted",
        Line::plain(match c.syn_source {
            SynSource::Capture => "at the server, by a packet capture",
            SynSource::Counters => "at the server, by its kernel's counters",
            SynSource::Attempts => "by the generator's own attempts: nobody looked at the server",
        }),
    );
    if let Some(limit) = c.generator_limit_per_s {
        let text = format!("none seen up to {}", rate(limit));
        fact("generator limit", Line::plain(text));
    }
    if let Some(recovery) = &c.recovery {
        let back = match recovery.came_back {
            CameBack::Yes => "back after the last level".to_owned(),
            CameBack::Late => "back in the second half of the base load again".to_owned(),
            CameBack::No => "not back after the last level".to_owned(),
            CameBack::NotJudged => format!("not known whether it came back: {}", recovery.because),
        };
        fact("service", Line::plain(back));
    }
    fact(
        "closed with",
        Line::plain(match c.close {
            CloseKind::Fin => "FIN",
            CloseKind::Rst => "RST",
        }),
    );
    facts
}

/// A row for each number of simple clients.
fn simple_table(rows: &[SimpleRow]) -> Table {
    let mut table = Table::default();
    let clients = rows.iter().map(|r| Line::plain(count(r.clients.into())));
    table.column("clients", Align::Right, clients.collect());
    let rows: Vec<&LevelRow> = rows.iter().map(|r| &r.row).collect();
    add_rows(&mut table, &rows, |_| Ink::Plain);
    table
}

/// The base load at first, and offered again after the last level.
fn base_table(rows: &[(&str, &LevelRow)], level: Level) -> Table {
    let mut table = Table::default();
    let load = levels(&[level]);
    let names = rows
        .iter()
        .map(|(when, _)| Line::plain(format!("{load}, {when}")));
    table.column("base load", Align::Left, names.collect());
    let rows: Vec<&LevelRow> = rows.iter().map(|(_, row)| *row).collect();
    add_rows(&mut table, &rows, |_| Ink::Plain);
    table
}

/// What of the base load was measured, where it was offered again.
fn base_rows(c: &OverloadConclusion) -> Option<Table> {
    let recovery = c.recovery.as_ref()?;
    let (before, again) = recovery.before.as_ref().zip(recovery.again.as_ref())?;
    Some(base_table(
        &[("at first", before), ("again", again)],
        recovery.level?,
    ))
}

/// What those are that press on the server.
fn sclients_heading(by_schedule: bool) -> (&'static str, &'static str) {
    match by_schedule {
        true => ("Schedule", "per second; connects start when it says"),
        false => (
            "S-Clients",
            "per second; a connect is replaced when established, or after T",
        ),
    }
}

/// A row for each number of descriptors.
fn sclients_table(rows: &[SClientRow]) -> Table {
    let mut table = Table::default();
    let ink = |r: &SClientRow| {
        if r.past_saturation {
            Ink::Plain
        } else {
            Ink::Dim
        }
    };
    let mut column = |title: &str, cell: &dyn Fn(&SClientRow) -> String| {
        let cells = rows.iter().map(|r| Line::of(ink(r), cell(r)));
        table.column(title, Align::Right, cells.collect());
    };
    column("descriptors", &|r| count(r.descriptors.into()));
    column("offered", &|r| number(r.offered_per_s));
    let measured: Vec<&LevelRow> = rows.iter().map(|r| &r.row).collect();
    add_rows(&mut table, &measured, |at| ink(&rows[at]));
    table
}

/// The columns that all levels have.
fn add_rows(table: &mut Table, rows: &[&LevelRow], ink: impl Fn(usize) -> Ink) {
    let mut column = |title: &str, cell: &dyn Fn(&LevelRow) -> String| {
        let cells = rows.iter().enumerate();
        let cells = cells.map(|(at, r)| Line::of(ink(at), cell(r)));
        table.column(title, Align::Right, cells.collect());
    };
    column("SYN/s", &|r| number(r.syn_per_s));
    column("first/s", &|r| number(r.first_syn_per_s));
    column("served/s", &|r| match r.served_range_per_s {
        Some(_) => format!("≥ {}", number(r.served_per_s)),
        None => number(r.served_per_s),
    });
    column("95 %", &|r| interval(r.served_ci95_per_s));
    let outcomes: Vec<&Outcomes> = rows.iter().map(|r| &r.outcomes).collect();
    add_outcomes(table, &outcomes);
    add_server(table, rows);
}

/// What its columns are.
fn sclients_notes(rows: &[SClientRow], by_schedule: bool, taken: &str) -> String {
    let offered = match by_schedule {
        true => "offered: as scheduled".to_owned(),
        false => format!("offered: {taken} + D/T"),
    };
    let mut notes = vec![offered.as_str()];
    if taken != "served" {
        notes.push("served: sessions that came to their end");
    }
    notes.push("first: SYNs that are no repetition; 95 %: confidence interval of served/s");
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
    if rows.iter().any(|r| r.row.server_busy_percent.is_some()) {
        notes.push(
            "queue: most connections in the accept queue, and its length; busy: % of the \
                    server's processors",
        );
    }
    notes.join("; ")
}

/// Whether its connects started on a schedule.
fn is_scheduled(trial: &TrialReport) -> bool {
    matches!(trial.level, Level::RatePerS(_))
}

/// What was seen on the server's host, where somebody looked.
fn add_server(table: &mut Table, rows: &[&LevelRow]) {
    let mut column = |title: &str, cell: fn(&LevelRow) -> Option<String>| {
        let cells: Vec<Option<String>> = rows.iter().map(|r| cell(r)).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|c| c.unwrap_or(MISSING.to_string()));
            table.column(title, Align::Right, cells.map(Line::plain).collect());
        }
    };
    column("queue", |r| {
        let max = count(r.accept_queue_max?.into());
        let limit = r.accept_queue_limit.map(|n| count(n.into()));
        Some(limit.map_or(max.clone(), |limit| format!("{max}/{limit}")))
    });
    column("busy", |r| r.server_busy_percent.map(number::percent_cell));
}

/// A column for each end that any attempt had.
fn add_outcomes(table: &mut Table, rows: &[&Outcomes]) {
    for outcome in Outcome::ALL {
        if rows.iter().all(|o| o.count(outcome) == 0) {
            continue;
        }
        let cells = rows.iter().map(|o| Line::plain(count(o.count(outcome))));
        table.column(end(outcome), Align::Right, cells.collect());
    }
}

/// How attempts ended, for a person.
pub(super) fn end(outcome: Outcome) -> String {
    match outcome {
        Outcome::ConnectTimeout => "timeouts".to_string(),
        Outcome::Ghost => "ghosts".to_string(),
        Outcome::PortExhausted => "no port".to_string(),
        Outcome::DescriptorExhausted => "no descriptor".to_string(),
        other => words(other.name()),
    }
}

fn interval(ci95: Option<[f64; 2]>) -> String {
    known(ci95, |[lo, hi]| format!("{}–{}", number(lo), number(hi)))
}
