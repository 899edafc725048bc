//! A service before, during and after an overload.

use super::line::{Ink, Line};
use super::table::{Table, TableOf};
use super::trial_plots::{or_gap, stair, time_scale};
use super::{Document, Fact, Layout, Medium, fact, generator, sessions, traffic};
use crate::number::{count, known, number, percent, rate, time, time_short};
use crate::plot::{Dash, Mark, Plot, PlotSeries, Point, Reference, Scale, Tone, Unit};
use knee_core::experiment::recover::report::{
    Counterfactual, HysteresisStep, RecoverConclusion, RecoverQueue, RecoveryVerdict, TriggerTried,
};
use knee_core::report::Report;
use knee_core::trial::attempts::AttemptsReport;
use knee_core::trial::report::TrialReport;
use knee_load::measure::SentinelEnd;

/// Adds all sections of a recovery.
pub(super) fn show(doc: &mut Document, report: &Report, c: &RecoverConclusion) {
    doc.only(Medium::Screen, |doc| show_key_figures(doc, c));
    let Some(trial) = report.trials.get(c.decisive_trial) else {
        return;
    };
    doc.section("Before, during and after the trigger", "");
    if let Some(requests) = trial.requests() {
        let plots = [
            phased(sessions::requests_over_time(requests), c),
            phased(response_times(trial, requests), c),
        ];
        doc.plots(plots, Layout::Wide);
    }
    doc.table("Phases", phases_table(c));
    doc.facts(facts(c));
    if !c.triggers.is_empty() {
        doc.section("Triggers tried", "each after a rest of the service");
        doc.table("Triggers", triggers_table(&c.triggers));
    }
    if !c.counterfactuals.is_empty() {
        doc.section("With one thing changed", "each measured, after a rest of the service");
        doc.table("Changes", changes_table(&c.counterfactuals));
    }
    if !c.hysteresis.is_empty() {
        doc.section("Up and down", "goodput at the same loads on the way up and on the way down");
        doc.plots([hysteresis_plot(&c.hysteresis)], Layout::Wide);
        doc.table("Up and down", hysteresis_table(&c.hysteresis));
        doc.facts(area_fact(c));
    }
    if let Some(requests) = trial.requests() {
        sessions::show_request_counts(doc, requests);
    }
    if let Some(observed) = trial.observed() {
        doc.section("At the server", traffic::observation_source(observed));
        doc.facts(traffic::observed_facts(observed));
    }
    generator::show_agents(doc, trial, "");
    generator::show(doc, trial);
}

fn show_key_figures(doc: &mut Document, c: &RecoverConclusion) {
    doc.table("Phases", phases_table(c));
    doc.facts(facts(c));
    if !c.counterfactuals.is_empty() {
        doc.table("Changes", changes_table(&c.counterfactuals));
    }
    doc.facts(area_fact(c));
}

/// The area between the ways up and down, where both were measured.
fn area_fact(c: &RecoverConclusion) -> Option<Fact> {
    let area = c.hysteresis_percent?;
    let words =
        format!("{} of the goodput on the way up is missing on the way down", percent(area));
    Some(fact("up and down", words))
}

/// A plot over time with the trigger shaded, and the time from which on the service was back.
fn phased(plot: Plot, c: &RecoverConclusion) -> Plot {
    let (begin, end) = (c.trigger_ns as f64, c.after_ns as f64);
    let trigger = if end > begin {
        Reference { range: Some([begin, end]), ..Reference::x(begin, "trigger") }
    } else {
        Reference::x(begin, "load rises")
    };
    let plot = plot.against(trigger);
    let plot = if end > begin { plot.against(Reference::x(end, "base load again")) } else { plot };
    match c.recovery_ns.map(|ns| (c.after_ns + ns) as f64).filter(|&at| at > end) {
        Some(back) => plot.against(Reference::x(back, "recovered")),
        None => plot,
    }
}

fn response_times(trial: &TrialReport, requests: &AttemptsReport) -> Plot {
    let intervals = trial.intervals.as_slice();
    let times = intervals.iter().flat_map(|i| [i.p50_ns, i.p99_ns]);
    let answered = requests.sentinels.iter().filter(|s| s.end == SentinelEnd::Answered);
    let waits: Vec<Point> =
        answered.map(|s| Point::new(s.began_ns as f64, s.wait_ns as f64)).collect();
    let values = times.map(or_gap).chain(waits.iter().map(|point| point.y));
    let y = Scale::fitting(values, Unit::Time, "response time");
    let p99 = PlotSeries::step("p99", stair(intervals, |i| or_gap(i.p99_ns))).toned(Tone::Second);
    let plot = Plot::new("Response time of attempts", time_scale(intervals), y)
        .zooming()
        .with(p99.dashed(Dash::Dashed))
        .with(PlotSeries::step("p50", stair(intervals, |i| or_gap(i.p50_ns))))
        .described("Median and 99th percentile of the response times of attempts over time.");
    if waits.is_empty() {
        return plot;
    }
    let queue = PlotSeries::line("wait in the queue", waits).toned(Tone::Third);
    plot.with(queue.dashed(Dash::Dotted).marked(Mark::Dot)).noted(
        "The wait in the queue is that of patient requests without a timeout, at the time at which \
         each began.",
    )
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
    let load = if c.trigger_stays {
        format!("{base}, then {trigger} to the end")
    } else if trigger == base {
        format!("{base} all the time; a command is the trigger")
    } else {
        let lasts = time_short(c.after_ns.saturating_sub(c.trigger_ns));
        format!("{base} before and after, {trigger} for {lasts} as trigger")
    };
    let mut facts = vec![fact("load", load), fact("service", verdict_line(c.verdict))];
    if c.verdict == Some(RecoveryVerdict::Recovered) {
        let after = known(c.recovery_ns, time_short);
        let since = if c.trigger_stays { "the load rose" } else { "the trigger" };
        facts.push(fact("recovery", format!("{after} after {since}")));
    }
    facts.extend(c.queue.map(|queue| fact("queue", queue_words(&queue))));
    facts.extend(c.by_goodput.as_ref().map(|why| fact("judged by", format!("goodput, as {why}"))));
    facts.push(fact("failed", format!("{} requests meanwhile", count(c.failed_requests))));
    let attempts = known(c.amplification, number);
    facts.push(fact("attempts", format!("{attempts} for each request at the end")));
    facts
}

fn queue_words(queue: &RecoverQueue) -> String {
    let wait = time(queue.wait_ns);
    match queue.back_in_ns {
        Some(ns) => format!(
            "a wait of {wait}, which falls by {} s per second: gone in about {}",
            number(queue.falls_s_per_s),
            time_short(ns)
        ),
        None => format!("a wait of {wait} or more"),
    }
}

fn verdict_line(verdict: Option<RecoveryVerdict>) -> Line {
    match verdict {
        Some(verdict @ RecoveryVerdict::Recovered) => Line::of(Ink::Good, verdict.word()),
        Some(verdict @ (RecoveryVerdict::Recovering | RecoveryVerdict::Degraded)) => {
            Line::of(Ink::Warn, verdict.word())
        }
        Some(verdict) => Line::of(Ink::Bad, verdict.word()),
        None => Line::of(Ink::Warn, "not known"),
    }
}

fn changes_table(rows: &[Counterfactual]) -> Table {
    let mut table = TableOf::new(rows);
    table.left("change", |row| row.change.as_str());
    table.left("service", |row| verdict_line(row.verdict));
    table.right("recovery", |row| known(row.recovery_ns, time_short));
    table.done()
}

fn triggers_table(rows: &[TriggerTried]) -> Table {
    let mut table = TableOf::new(rows);
    table.right("trigger", |row| rate(row.rate_per_s));
    table.right("for", |row| time_short(row.duration_ns));
    table.left("service", |row| verdict_line(row.verdict));
    table.right("recovery", |row| known(row.recovery_ns, time_short));
    table.done()
}

fn hysteresis_table(rows: &[HysteresisStep]) -> Table {
    let mut table = TableOf::new(rows);
    table.right("offered", |row| rate(row.offered_per_s));
    table.right("good on the way up", |row| known(row.goodput_up_per_s, rate));
    table.right("on the way down", |row| known(row.goodput_down_per_s, rate));
    table.done()
}

/// Goodput over load on both ways, with what is offered.
fn hysteresis_plot(steps: &[HysteresisStep]) -> Plot {
    let along = |way: fn(&HysteresisStep) -> Option<f64>| -> Vec<Point> {
        let points = steps.iter().map(|step| (step.offered_per_s, way(step)));
        points.map(|(x, y)| Point::new(x, y.unwrap_or(f64::NAN))).collect()
    };
    let offered = along(|step| Some(step.offered_per_s));
    let x = Scale::from_zero(offered.iter().map(|p| p.x), Unit::PerS, "offered");
    let y = Scale::from_zero(offered.iter().map(|p| p.y), Unit::PerS, "goodput");
    let up = PlotSeries::line("up", along(|step| step.goodput_up_per_s)).marked(Mark::Dot);
    let down = PlotSeries::line("down", along(|step| step.goodput_down_per_s)).marked(Mark::Ring);
    Plot::new("Goodput on the way up and down", x, y)
        .with(PlotSeries::line("offered", offered).toned(Tone::Muted).dashed(Dash::Dotted))
        .with(up)
        .with(down.toned(Tone::Second).dashed(Dash::Dashed))
        .described("Requests served per second over the load, on the way up and on the way down.")
}
