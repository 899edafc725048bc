//! Load beyond capacity: what arrives, and what is served.

use super::heading;
use super::line::{Ink, Line};
use super::overload_plots::{arriving_plots, served_plot};
use super::page::{INDENT, Page};
use super::plot;
use super::table::{Align, Table};
use crate::number::{self, MISSING, count, number, percent, plural, rate, time_short, words};
use knee_core::experiment::overload::report::{OverloadConclusion, SClientRow, SimpleRow};
use knee_core::measure::{Outcome, Outcomes, SynSource};
use knee_core::report::Report;
use knee_core::spec::{CloseKind, Level};
use knee_core::trial::report::TrialReport;

/// Two plots stand beside each other where each has so many columns.
const PLOT_COLUMNS_MIN: usize = 42;
/// Rows within the axes of a plot.
const PLOT_ROWS: usize = 12;

/// Writes it.
pub fn show(page: &mut Page, report: &Report, conclusion: &OverloadConclusion) {
    let remark = format!(", {}", plural(report.trials.len() as u64, "trial"));
    heading::show(page, report, &conclusion.answer, &remark);
    if conclusion.simple.is_empty() && conclusion.sclients.is_empty() {
        return;
    }
    page.gap();
    page.facts(facts(conclusion));
    show_plots(page, conclusion);
    show_simple(page, &conclusion.simple);
    show_sclients(page, report, conclusion);
    heading::show_left_out(page, report);
}

/// What is known of it as a whole.
pub fn facts(c: &OverloadConclusion) -> Vec<(String, Line)> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, line: Line| facts.push((name.to_string(), line));
    fact("capacity", Line::plain(rate(c.capacity_per_s)));
    if let (Some(slope), Some(r_squared)) = (c.slope_per_descriptor, c.r_squared) {
        let slope = number::fixed(slope, 3);
        let mut line = Line::plain(format!("served + {slope}/s for each descriptor"));
        line.push(Ink::Plain, format!(", R² {}", number::r_squared(r_squared)));
        if let Some(deviation) = c.deviation_percent {
            let patience = time_short(c.connect_timeout_ns);
            let off = percent(deviation);
            line.push(
                Ink::Dim,
                format!(" (at most {off} off served + D/T, with T = {patience})"),
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
        let text = format!("kept up to {}, as far as was seen", rate(limit));
        fact("generator", Line::plain(text));
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

fn show_plots(page: &mut Page, c: &OverloadConclusion) {
    let unicode = page.unicode;
    let arriving = arriving_plots(c, unicode);
    if !arriving.is_empty() {
        page.gap();
    }
    let width = match arriving.len() {
        2 => plot::width_of_two(page, PLOT_COLUMNS_MIN),
        _ => page.inner_width(),
    };
    plot::show(page, &arriving, PLOT_ROWS, width);
    if let Some(plot) = served_plot(c, unicode) {
        page.gap();
        plot::show(page, &[plot], PLOT_ROWS, page.inner_width());
    }
}

fn show_simple(page: &mut Page, rows: &[SimpleRow]) {
    if rows.is_empty() {
        return;
    }
    page.heading("Simple clients", "per second; each waits for its answer");
    page.table(&simple_table(rows));
}

/// A row for each number of simple clients.
pub fn simple_table(rows: &[SimpleRow]) -> Table {
    let mut table = Table::default();
    let mut column = |title: &str, cell: &dyn Fn(&SimpleRow) -> String| {
        let cells = rows.iter().map(|r| Line::plain(cell(r)));
        table.column(title, Align::Right, cells.collect());
    };
    column("clients", &|r| count(r.clients.into()));
    column("SYN/s", &|r| number(r.syn_per_s));
    column("first/s", &|r| number(r.first_syn_per_s));
    column("served/s", &|r| number(r.served_per_s));
    column("±", &|r| half_width(r.served_per_s, r.served_ci95_per_s));
    let outcomes: Vec<&Outcomes> = rows.iter().map(|r| &r.outcomes).collect();
    add_outcomes(&mut table, &outcomes);
    let server = rows.iter().map(|r| ServerSide {
        queue_max: r.accept_queue_max,
        queue_limit: r.accept_queue_limit,
        busy_percent: r.server_busy_percent,
    });
    add_server(&mut table, &server.collect::<Vec<_>>());
    table
}

fn show_sclients(page: &mut Page, report: &Report, c: &OverloadConclusion) {
    let rows = &c.sclients;
    if rows.is_empty() {
        return;
    }
    let by_schedule = report.trials.iter().any(is_scheduled);
    let (title, remark) = sclients_heading(by_schedule);
    page.heading(title, remark);
    page.table(&sclients_table(rows));
    let notes = sclients_notes(rows, by_schedule);
    page.paragraph(INDENT, INDENT, Line::of(Ink::Dim, notes));
}

/// What those are that press on the server.
pub fn sclients_heading(by_schedule: bool) -> (&'static str, &'static str) {
    match by_schedule {
        true => ("Schedule", "per second; connects start when it says"),
        false => (
            "S-Clients",
            "per second; a connect is replaced when established, or after T",
        ),
    }
}

/// A row for each number of descriptors.
pub fn sclients_table(rows: &[SClientRow]) -> Table {
    let mut table = Table::default();
    let mut column = |title: &str, cell: &dyn Fn(&SClientRow) -> String| {
        let ink = |r: &SClientRow| match r.past_saturation {
            true => Ink::Plain,
            false => Ink::Dim,
        };
        let cells = rows.iter().map(|r| Line::of(ink(r), cell(r)));
        table.column(title, Align::Right, cells.collect());
    };
    column("descriptors", &|r| count(r.descriptors.into()));
    column("offered", &|r| number(r.offered_per_s));
    column("SYN/s", &|r| number(r.syn_per_s));
    column("first/s", &|r| number(r.first_syn_per_s));
    column("served/s", &|r| number(r.served_per_s));
    column("±", &|r| half_width(r.served_per_s, r.served_ci95_per_s));
    let outcomes: Vec<&Outcomes> = rows.iter().map(|r| &r.outcomes).collect();
    add_outcomes(&mut table, &outcomes);
    let server = rows.iter().map(|r| ServerSide {
        queue_max: r.accept_queue_max,
        queue_limit: r.accept_queue_limit,
        busy_percent: r.server_busy_percent,
    });
    add_server(&mut table, &server.collect::<Vec<_>>());
    table
}

/// What its columns are.
pub fn sclients_notes(rows: &[SClientRow], by_schedule: bool) -> String {
    let mut notes = vec![match by_schedule {
        true => "offered: as scheduled",
        false => "offered: served + D/T",
    }];
    notes
        .push("first: SYNs that are no repetition; ±: 95 % confidence; then attempts by their end");
    if rows.iter().any(|r| !r.past_saturation) {
        notes.push("dim: not past saturation");
    }
    if rows.iter().any(|r| r.server_busy_percent.is_some()) {
        notes.push(
            "queue: connections in the accept queue at the most, of so many; busy: % of the \
                    server's processors",
        );
    }
    notes.join("; ")
}

/// Whether its connects started on a schedule.
pub fn is_scheduled(trial: &TrialReport) -> bool {
    matches!(trial.level, Level::RatePerS(_))
}

/// What was seen on the server's host, where somebody looked.
struct ServerSide {
    queue_max: Option<u32>,
    queue_limit: Option<u32>,
    busy_percent: Option<f64>,
}

fn add_server(table: &mut Table, rows: &[ServerSide]) {
    let mut column = |title: &str, cell: fn(&ServerSide) -> Option<String>| {
        let cells: Vec<Option<String>> = rows.iter().map(cell).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|c| c.unwrap_or(MISSING.to_string()));
            table.column(title, Align::Right, cells.map(Line::plain).collect());
        }
    };
    column("queue", |s| {
        let max = count(s.queue_max?.into());
        let limit = s.queue_limit.map(|n| count(n.into()));
        Some(limit.map_or(max.clone(), |limit| format!("{max}/{limit}")))
    });
    column("busy", |s| s.busy_percent.map(number::percent_cell));
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
pub fn end(outcome: Outcome) -> String {
    match outcome {
        Outcome::ConnectTimeout => "timeouts".to_string(),
        Outcome::Ghost => "ghosts".to_string(),
        Outcome::PortExhausted => "no port".to_string(),
        Outcome::DescriptorExhausted => "no descriptor".to_string(),
        other => words(other.name()),
    }
}

fn half_width(value: f64, ci95: Option<[f64; 2]>) -> String {
    match ci95 {
        Some([lo, hi]) => number::uncertainty((hi - value).max(value - lo)),
        None => MISSING.to_string(),
    }
}
