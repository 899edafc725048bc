//! A run on the first screen, and what repeats of it have in common.

use super::line::{Ink, Line};
use super::run::{outcome_ink, throughput_facts};
use super::stated::{key_times_table, stated};
use super::table::{Align, Table};
use super::{Document, Fact, fact, timing, traffic};
use crate::number::{count, number, percent, rate, time, time_short, words};
use knee_core::compare::metric_name;
use knee_core::experiment::run::report::{RepeatedFigure, RunConclusion};
use knee_core::report::Report;
use knee_core::trial::report::TrialReport;

/// Adds what a person looks at first.
pub(super) fn show(doc: &mut Document, report: &Report, c: &RunConclusion) {
    let [t] = report.trials.as_slice() else {
        doc.table("Trials", trials_table(&report.trials));
        return doc.facts(of_repeats(c));
    };
    let times = &t.response_time_ns;
    if times.count > 0 {
        doc.table("Response and service time", key_times_table(t));
    }
    timing::show_sentence(doc, t);
    let Some(http) = t.http() else {
        return;
    };
    let mut facts: Vec<Fact> = throughput_facts(t, http)
        .into_iter()
        .filter(|(name, _)| matches!(name.as_str(), "responses" | "goodput"))
        .collect();
    facts.push(fact("outcomes", outcomes_line(t)));
    facts.extend(traffic::status_facts(&http.traffic));
    doc.facts(facts);
}

/// How the operations ended, in a line.
fn outcomes_line(t: &TrialReport) -> Line {
    let mut line = Line::new();
    for (i, (outcome, n)) in t.outcomes.iter().enumerate() {
        line.push(Ink::Plain, if i > 0 { ", " } else { "" });
        let name = words(outcome.name());
        line.push(outcome_ink(outcome), format!("{} {name}", count(n)));
    }
    line
}

/// A row for each trial.
fn trials_table(trials: &[TrialReport]) -> Table {
    let mut table = Table::default();
    let names = trials.iter().map(|t| Line::plain(t.label.as_str()));
    table.column("", Align::Left, names.collect());
    let mut column = |title: &str, cell: &dyn Fn(&TrialReport) -> String| {
        let cells = trials.iter().map(|t| Line::plain(cell(t)));
        table.column(title, Align::Right, cells.collect());
    };
    column("responses/s", &|t| stated(t.throughput(), number));
    column("p50", &|t| stated(t.response_time_ns.figure("p50"), time));
    column("p99", &|t| stated(t.response_time_ns.figure("p99"), time));
    column("errors", &|t| count(t.outcomes.errors()));
    table
}

/// The figures over repeats.
pub(super) fn of_repeats(c: &RunConclusion) -> Vec<Fact> {
    c.repeats.iter().map(repeated).collect()
}

/// A figure over repeats.
fn repeated(f: &RepeatedFigure) -> Fact {
    let is_time = f.metric.ends_with("_ns");
    let shown = |v: f64| {
        if is_time {
            time_short(v.round() as u64)
        } else {
            rate(v)
        }
    };
    let [lo, hi] = f.ci95.map(shown);
    let name = metric_name(&f.metric);
    let spread = percent(f.spread_percent);
    let text = format!("{}, {lo} to {hi}, spread {spread}", shown(f.value));
    fact(name, Line::plain(text))
}
