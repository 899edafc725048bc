//! A service before, during and after an overload.

use super::line::{Ink, Line};
use super::table::{Table, TableOf};
use super::{Document, Fact, Layout, Medium, agents, attempts, fact, generator, observed};
use crate::number::{count, known, number, rate, time, time_short};
use crate::plot::{Dash, Plot, PlotSeries, Point, Reference, Scale, Tone, Unit};
use knee_core::experiment::recover::report::{Counterfactual, RecoverConclusion, RecoveryVerdict};
use knee_core::report::Report;
use knee_core::trial::report::TrialReport;
use knee_load::measure::Interval;

/// Adds all sections of a recovery.
pub(super) fn show(doc: &mut Document, report: &Report, c: &RecoverConclusion) {
    doc.only(Medium::Screen, |doc| show_key_figures(doc, c));
    let Some(trial) = report.trials.first() else {
        return;
    };
    doc.section("Before, during and after the trigger", "");
    if let Some(requests) = trial.requests() {
        let plots = [phased(attempts::over_time(requests), c), phased(response_times(trial), c)];
        doc.plots(plots, Layout::Wide);
    }
    doc.table("Phases", phases_table(c));
    doc.facts(facts(c));
    if !c.counterfactuals.is_empty() {
        doc.section("With one thing changed", "each measured, after a rest of the service");
        doc.table("Changes", changes_table(&c.counterfactuals));
    }
    attempts::show(doc, trial.requests());
    if let Some(seen) = trial.observed() {
        doc.section("At the server", observed::source(seen));
        doc.facts(observed::facts(seen));
    }
    agents::show(doc, trial, "");
    generator::show(doc, trial);
}

fn show_key_figures(doc: &mut Document, c: &RecoverConclusion) {
    doc.table("Phases", phases_table(c));
    doc.facts(facts(c));
    if !c.counterfactuals.is_empty() {
        doc.table("Changes", changes_table(&c.counterfactuals));
    }
}

/// A plot over time with the ends of the phases.
fn phased(plot: Plot, c: &RecoverConclusion) -> Plot {
    let ends = [(c.trigger_ns, "trigger"), (c.after_ns, "base load again")];
    let back = c.recovery_ns.map(|ns| (c.after_ns + ns, "recovered"));
    let mut plot = plot;
    for (ns, label) in ends.into_iter().chain(back.filter(|(at, _)| *at > c.after_ns)) {
        plot = plot.against(Reference::x(ns as f64, label));
    }
    plot
}

fn response_times(trial: &TrialReport) -> Plot {
    let intervals = trial.intervals.as_slice();
    let of = |ns: u64| if ns == 0 { f64::NAN } else { ns as f64 };
    let end = intervals.last().map_or(1, |i| i.end_ns);
    let all = intervals.iter().flat_map(|i| [of(i.p50_ns), of(i.p99_ns)]);
    let x = Scale::linear(0.0, end as f64, Unit::Time, "time into the window");
    let y = Scale::fitting(all, Unit::Time, "response time");
    let stair = |figure: fn(&Interval) -> u64| -> Vec<Point> {
        let levels = intervals.iter();
        let levels = levels.map(|i| Point::new(i.start_ns as f64, of(figure(i))));
        let mut points: Vec<Point> = levels.collect();
        points.extend(points.last().map(|last| Point::new(end as f64, last.y)));
        points
    };
    let p99 = PlotSeries::step("p99", stair(|i| i.p99_ns)).toned(Tone::Second);
    Plot::new("Response time of attempts", x, y)
        .zooming()
        .with(p99.dashed(Dash::Dashed))
        .with(PlotSeries::step("p50", stair(|i| i.p50_ns)))
        .described("Median and 99th percentile of the response times of attempts over time.")
}

/// A row for the time before the trigger, one for its end, and the bounds between.
fn phases_table(c: &RecoverConclusion) -> Table {
    let rows = [
        ("before the trigger", Some(c.base.goodput_per_s), c.base.p99_ns),
        ("counts as back", Some(c.goodput_at_least_per_s), c.p99_at_most_ns),
        ("at the end", Some(c.after.goodput_per_s), c.after.p99_ns),
    ];
    let mut table = TableOf::new(&rows);
    table.left("", |(name, ..)| *name);
    table.right("good requests", |(_, per_s, _)| known(*per_s, rate));
    table.right("p99", |(.., ns)| known(*ns, time));
    table.done()
}

fn facts(c: &RecoverConclusion) -> Vec<Fact> {
    let [base, trigger] = [rate(c.rate_per_s), rate(c.trigger_per_s)];
    let load = format!("{base} before and after, {trigger} as trigger");
    let mut facts = vec![fact("load", load), fact("service", verdict_line(c.verdict))];
    if c.verdict == Some(RecoveryVerdict::Recovered) {
        let after = known(c.recovery_ns, time_short);
        facts.push(fact("recovery", format!("{after} after the trigger")));
    }
    facts.push(fact("failed", format!("{} requests meanwhile", count(c.failed_requests))));
    let attempts = known(c.amplification, number);
    facts.push(fact("attempts", format!("{attempts} for each request at the end")));
    facts
}

fn verdict_line(verdict: Option<RecoveryVerdict>) -> Line {
    match verdict {
        Some(verdict @ RecoveryVerdict::Recovered) => Line::of(Ink::Good, verdict.word()),
        Some(verdict @ RecoveryVerdict::Degraded) => Line::of(Ink::Warn, verdict.word()),
        Some(verdict) => Line::of(Ink::Bad, verdict.word()),
        None => Line::of(Ink::Warn, "does not carry the base load"),
    }
}

fn changes_table(rows: &[Counterfactual]) -> Table {
    let mut table = TableOf::new(rows);
    table.left("change", |row| row.change.as_str());
    table.left("service", |row| verdict_line(row.verdict));
    table.right("recovery", |row| known(row.recovery_ns, time_short));
    table.done()
}
