//! Latency under load: the text of the original test, the scenarios at a glance, what each of their
//! flows got, and each of them over time.

mod classic;
mod controls;
mod flows;
mod glance;
mod over_time;
mod scenarios;

use super::line::Line;
use super::run::show_generator;
use super::table::{Align, Table};
use super::{Document, Fact, Layout, Medium, fact};
use crate::number::{MISSING, TIE, count, number, time_short};
use knee_core::experiment::latency::report::{LatencyConclusion, ScenarioRow};
use knee_core::report::Report;
use knee_core::trial::flows::FlowsReport;
use knee_core::trial::report::TrialReport;

/// Adds it.
pub(super) fn show(doc: &mut Document, report: &Report, c: &LatencyConclusion) {
    if c.scenarios.is_empty() {
        return;
    }
    let shown = pairs(report, c);
    doc.only(Medium::Screen, |doc| show_key_figures(doc, c, &shown));
    classic::show(doc, c);
    show_overall(doc, c);
    controls::show(doc, &c.by_congestion_control);
    show_scenarios(doc, c, &shown);
    if shown.is_empty() {
        return;
    }
    doc.section("Latency", scenarios::latency_remark(&shown));
    let table = scenarios::latency_table(&shown, c.idle_ns.is_some());
    doc.table("Latency", table);
    doc.section("Flows", scenarios::FLOWS_REMARK);
    let each = glance::flows(&c.scenarios);
    doc.only(Medium::Page, |doc| doc.plots([each], Layout::Wide));
    doc.table("Flows", scenarios::flows_table(&shown));
    doc.note(scenarios::FLOWS_NOTE);
    let worst = worst(&shown);
    over_time::show(doc, &shown, worst.as_ref());
    if let Some(worst) = worst {
        let title = name(worst.row, names_controls(shown.iter().map(|s| s.row)));
        flows::show(doc, &worst, &title, shown.len());
    }
    if let [only] = shown.as_slice() {
        show_generator(doc, only.trial);
    }
}

/// Adds what a person looks at first.
fn show_key_figures(doc: &mut Document, c: &LatencyConclusion, shown: &[Shown]) {
    if shown.is_empty() {
        doc.table("Scenarios", scenarios_table(&c.scenarios));
    } else {
        let mut table = scenarios::flows_table(shown).with_columns(&["", "up KiB/s", "down KiB/s"]);
        let latency = scenarios::latency_table(shown, c.idle_ns.is_some());
        let latency = latency.with_columns(&["added", "ping p50", "p99", "longest"]);
        for (title, side, cells) in latency.columns() {
            table.column(title.as_str(), *side, cells.clone());
        }
        doc.table("Scenarios", table);
    }
    doc.facts(overall(c));
}

fn show_overall(doc: &mut Document, c: &LatencyConclusion) {
    let grade = match c.grade.as_str() {
        "" => Vec::new(),
        _ => scenarios::grade_facts(c),
    };
    doc.section("Overall", "the worst scenario counts");
    // The text of the original test tells the rest.
    doc.only(Medium::Lines, |doc| doc.facts(grade.clone()));
    let all = grade.into_iter().chain(overall(c));
    doc.only(Medium::Page, |doc| doc.facts(all.collect()));
}

/// The figures that stand for the path as a whole.
fn overall(c: &LatencyConclusion) -> Vec<Fact> {
    let figure = |value: Option<u64>, unit: &str| {
        let text = |n| format!("{}{TIE}{unit}", count(n));
        Line::plain(value.map_or(MISSING.to_owned(), text))
    };
    let least = c.min_rtt_ns.map_or(MISSING.to_owned(), time_short);
    vec![
        fact("least round trip", Line::plain(least)),
        fact(
            "upload capacity",
            figure(c.upload_capacity_kib_per_s, "KiB/s"),
        ),
        fact(
            "download capacity",
            figure(c.download_capacity_kib_per_s, "KiB/s"),
        ),
        fact("responsiveness", figure(c.responsiveness_hz, "Hz")),
        fact("smoothness", figure(c.smoothness_hz, "Hz")),
    ]
}

fn show_scenarios(doc: &mut Document, c: &LatencyConclusion, shown: &[Shown]) {
    doc.section("Scenarios", "uploads/downloads at a time");
    doc.only(Medium::Page, |doc| {
        doc.plots(glance::figures(c, shown), Layout::Panels);
        // The tables below tell the same where it was measured here.
        if shown.is_empty() {
            doc.table("Scenarios", scenarios_table(&c.scenarios));
        }
    });
    doc.list(scenarios::ends(c));
}

fn scenarios_table(rows: &[ScenarioRow]) -> Table {
    let names = names_controls(rows.iter());
    let mut table = Table::default();
    let cells = rows.iter().map(|row| Line::plain(name(row, names)));
    table.column("", Align::Left, cells.collect());
    let mut column = |title: &str, of: fn(&ScenarioRow) -> Option<f64>| {
        if rows.iter().any(|row| of(row).is_some()) {
            let cells = rows.iter().map(|row| of(row).map_or(String::new(), number));
            table.column(title, Align::Right, cells.map(Line::plain).collect());
        }
    };
    column("up KiB/s", |row| row.up_kib_per_s);
    column("down KiB/s", |row| row.down_kib_per_s);
    column("smoothness Hz", |row| row.smoothness_hz);
    column("responsiveness Hz", |row| row.responsiveness_hz);
    table
}

/// A scenario that was measured here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'a> {
    /// In short.
    pub row: &'a ScenarioRow,
    /// Its trial.
    pub trial: &'a TrialReport,
    /// Its flows.
    pub flows: &'a FlowsReport,
}

/// The scenarios with the trials that count. The trials without any flow, of the idle path, have no
/// row; a text of others has no trials; old reports do not say which trial is whose.
pub(super) fn pairs<'a>(report: &'a Report, conclusion: &'a LatencyConclusion) -> Vec<Shown<'a>> {
    let with_flows = |trial: &'a TrialReport| {
        let flows = trial.flows()?;
        (flows.up.is_some() || flows.down.is_some()).then_some((trial, flows))
    };
    let mut in_order = report.trials.iter().filter_map(with_flows);
    let rows = conclusion.scenarios.iter();
    let shown = rows.filter_map(|row| {
        let (trial, flows) = match row.trial {
            Some(index) => with_flows(report.trials.get(index)?)?,
            None => in_order.next()?,
        };
        Some(Shown { row, trial, flows })
    });
    shown.collect()
}

/// The scenario with the longest latency: what a plot is made of.
pub(super) fn worst<'a>(shown: &[Shown<'a>]) -> Option<Shown<'a>> {
    shown.iter().max_by_key(|s| s.flows.latency_ns_max).copied()
}

/// A scenario by its flows, uploads first: `1/31`, with its congestion control where several were
/// compared.
pub(super) fn name(row: &ScenarioRow, names_control: bool) -> String {
    match names_control && !row.congestion_control.is_empty() {
        true => format!("{}/{} {}", row.up, row.down, row.congestion_control),
        false => format!("{}/{}", row.up, row.down),
    }
}

/// Whether scenarios of several congestion controls stand beside each other.
pub(super) fn names_controls<'a>(mut rows: impl Iterator<Item = &'a ScenarioRow>) -> bool {
    let first = rows.next().map(|row| &row.congestion_control);
    rows.any(|row| Some(&row.congestion_control) != first)
}
