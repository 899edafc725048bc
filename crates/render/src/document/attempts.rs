//! Requests of users and the attempts that they took.

use super::line::{Ink, Line};
use super::stated::stated;
use super::table::{Table, TableOf};
use super::{Document, Fact, Layout, fact};
use crate::number::{count, known, number, percent, time_short};
use crate::plot::{Dash, Plot, PlotSeries, Point, Scale, Tone, Unit};
use knee_core::trial::attempts::{AttemptsInterval, AttemptsReport};
use knee_core::trial::report::TrialReport;

/// Adds the requests of a trial, where failed attempts are retried.
pub(super) fn show(doc: &mut Document, requests: Option<&AttemptsReport>) {
    let Some(requests) = requests else {
        return;
    };
    doc.section("Requests", SECTION);
    if requests.intervals.len() > 1 {
        doc.plots([over_time(requests)], Layout::Wide);
    }
    doc.facts(facts(requests));
}

/// The same without the plot, which stands elsewhere.
pub(super) fn show_counts(doc: &mut Document, requests: &AttemptsReport) {
    doc.section("Requests", SECTION);
    doc.facts(facts(requests));
}

const SECTION: &str = "of users; each may take several attempts";

/// Requests offered, attempted and good, and what became of the others.
pub(super) fn facts(requests: &AttemptsReport) -> Vec<Fact> {
    let attempts = known(requests.amplification, |times| format!("{} each", number(times)));
    let mut facts = vec![
        fact("offered", count(requests.offered)),
        fact("attempted", format!("{}, {attempts}", count(requests.attempted))),
        fact("good", format!("{} ({})", count(requests.good), percent(requests.good_percent))),
    ];
    if requests.failed > 0 {
        let mut words =
            format!("{} ({})", count(requests.failed), percent(requests.failed_percent));
        if requests.over_budget > 0 {
            let over = count(requests.over_budget);
            words += &format!(", {over} of them as the retry budget was spent");
        }
        facts.push(fact("failed", Line::of(Ink::Bad, words)));
    }
    if requests.unfinished > 0 {
        facts.push(fact("unfinished", count(requests.unfinished)));
    }
    if requests.served_ns.count > 0 {
        let times = ["p50", "p99"]
            .map(|key| format!("{key} {}", stated(requests.served_ns.figure(key), time_short)));
        facts.push(fact("until good", times.join(", ") + ", from the first attempt on"));
    }
    facts
}

/// Adds the requests of several trials, a row for each.
pub(super) fn show_levels(doc: &mut Document, trials: &[TrialReport]) {
    let rows = trials.iter().filter_map(|t| Some((t.label.as_str(), t.requests()?)));
    let mut rows: Vec<(&str, &AttemptsReport)> = rows.collect();
    super::keep_first_of_levels(&mut rows);
    if rows.is_empty() {
        return;
    }
    doc.section("Requests", SECTION);
    doc.table("Requests", levels_table(&rows));
}

fn levels_table(rows: &[(&str, &AttemptsReport)]) -> Table {
    let mut table = TableOf::new(rows);
    table.left("", |(label, _)| *label);
    table.right("offered", |(_, r)| count(r.offered));
    table.right("attempted", |(_, r)| count(r.attempted));
    table.right("good", |(_, r)| count(r.good));
    table.right("attempts each", |(_, r)| known(r.amplification, number));
    table.right("until good p99", |(_, r)| known(r.served_ns.p99, time_short));
    table.done()
}

/// Rates of requests offered and served, and of attempts.
pub(super) fn over_time(requests: &AttemptsReport) -> Plot {
    let intervals = requests.intervals.as_slice();
    let end = intervals.last().map_or(1, |i| i.end_ns);
    let stair = |value: fn(&AttemptsInterval) -> u64| -> Vec<Point> {
        let levels = intervals.iter();
        let levels = levels.map(|i| Point::new(i.start_ns as f64, i.per_s(value(i))));
        let mut points: Vec<Point> = levels.collect();
        points.extend(points.last().map(|last| Point::new(end as f64, last.y)));
        points
    };
    let [offered, attempted, good] =
        [stair(|i| i.offered), stair(|i| i.attempted), stair(|i| i.good)];
    let values = offered.iter().chain(&attempted).chain(&good).map(|p| p.y);
    let x = Scale::linear(0.0, end as f64, Unit::Time, "time into the window");
    let y = Scale::from_zero(values, Unit::PerS, "per second");
    let plot = Plot::new("Requests and attempts over time", x, y).zooming();
    let plot = plot
        .with(PlotSeries::step("offered", offered).toned(Tone::Muted).dashed(Dash::Dotted))
        .with(PlotSeries::step("attempted", attempted).toned(Tone::Second).dashed(Dash::Dashed))
        .with(PlotSeries::step("good", good));
    plot.described("Requests offered and served within the timeout, and attempts, over time.")
}
