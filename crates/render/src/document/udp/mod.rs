//! Datagrams: arrivals, losses, and the reasons for them. Figures show arrivals per millisecond,
//! their dispersion at every time scale, and the datagrams of each law over time.

mod explained;
mod ledger;
mod trial;

use super::{Document, Layout, Medium, generator};
use crate::document::trial_plots::{dispersion_points, is_dense, stair, thinned, time_scale};
use crate::number::{plural, time_short};
use crate::plot::{Dash, Mark, Plot, PlotSeries, Point, Reference, Scale, Tone, Unit, span};
use knee_core::experiment::udp::report::{LawRow, UdpConclusion};
use knee_core::report::Report;
use knee_core::trial::report::TrialReport;
use knee_load::measure::Interval;
use knee_load::stats::gaps::Dispersion;

/// A figure and its confidence interval.
type Estimate = (f64, Option<[f64; 2]>);

/// The looks of the series of different laws.
const LOOKS: [(Tone, Dash, Mark); 4] = [
    (Tone::First, Dash::Solid, Mark::Dot),
    (Tone::Second, Dash::Dashed, Mark::Square),
    (Tone::Third, Dash::DashDot, Mark::Ring),
    (Tone::Fourth, Dash::Dotted, Mark::Frame),
];

/// Adds all sections on datagrams.
pub(super) fn show(doc: &mut Document, report: &Report, c: &UdpConclusion) {
    let laws = &c.laws;
    if report.trials.iter().all(TrialReport::is_cut_short) {
        return;
    }
    doc.only(Medium::Screen, |doc| {
        let columns = ["", "tried", "sent", "received", "dropped", "loss", "10 ms", "burst"];
        doc.table("Clients", trial::clients_table(laws).with_columns(&columns));
        ledger::show_key_figures(doc, laws);
        explained::show_key_figures(doc, c);
    });
    explained::show(doc, c);
    show_clients(doc, laws);
    ledger::show(doc, laws);
    show_over_time(doc, laws);
    show_arrivals(doc, report, laws);
    match report.trials.as_slice() {
        [only] => {
            trial::show(doc, only);
            generator::show(doc, only);
        }
        trials => {
            doc.section("Trials", "in the order in which they were made");
            doc.table("Trials", trial::trials_table(trials));
            doc.note(trial::TRIALS_NOTE);
        }
    }
}

fn show_clients(doc: &mut Document, laws: &[LawRow]) {
    let trials = laws.iter().map(|law| law.trials).max().unwrap_or(0);
    let remark = match trials {
        0 | 1 => "per second".to_owned(),
        n => format!("per second, means of {n} trials with their 95 % confidence"),
    };
    doc.section("Clients", remark);
    if laws.len() > 1 {
        let sent = |law: &LawRow| (law.sent_per_s, law.sent_ci95_per_s);
        let lost = |law: &LawRow| (law.loss_percent, law.loss_ci95_percent);
        let plots = [
            compared("Datagrams sent", "sent", Unit::PerS, laws, sent),
            compared("Loss", "of those sent or refused", Unit::Percent, laws, lost),
        ];
        doc.only(Medium::Page, |doc| doc.plots(plots, Layout::Pairs));
    }
    doc.table("Clients", trial::clients_table(laws));
    doc.note(trial::CLIENTS_NOTE);
}

/// A figure of all laws with confidence intervals.
fn compared(
    title: &str,
    axis: &str,
    unit: Unit,
    laws: &[LawRow],
    figure: fn(&LawRow) -> Estimate,
) -> Plot {
    let ends = laws.iter().flat_map(|law| match figure(law) {
        (value, Some([_, hi])) => [value, hi],
        (value, None) => [value, value],
    });
    let points = laws.iter().enumerate().map(|(i, law)| {
        let (value, ci95) = figure(law);
        Point::with(value, i as f64, ci95)
    });
    let names = laws.iter().map(|law| law.label.as_str());
    Plot::of_rows(title, Scale::from_zero(ends, unit, axis), names, 40)
        .with(PlotSeries::marks(axis, points.collect()))
}

/// Points of all laws; more are thinned out, so that the page of a long run stays small.
const POINTS_MAX: usize = 2_400;

/// Adds sent, received and dropped datagrams over time, law by law, on one scale.
pub(super) fn show_over_time(doc: &mut Document, laws: &[LawRow]) {
    let longest = laws.iter().map(|law| law.intervals.as_slice());
    let Some(longest @ [first, ..]) = longest.max_by_key(|intervals| intervals.len()) else {
        return;
    };
    let most = (POINTS_MAX / laws.len()).max(2);
    let sums = if laws.iter().any(|law| law.trials > 1) { ", sums over all trials" } else { "" };
    let thinned =
        if longest.len() > most { "; of neighbours the least and the most are drawn" } else { "" };
    let remark = format!(
        "{} of {}{sums}{thinned}",
        plural(longest.len() as u64, "interval"),
        time_short(first.end_ns - first.start_ns)
    );
    doc.section("Over time", remark);
    let sent = laws.iter().flat_map(|law| counts(law, most, |i| i.sent));
    let y = Scale::from_zero(span(sent.map(|p| p.y)).unwrap_or_default(), Unit::Count, "datagrams");
    let known = laws.iter().filter(|law| !law.intervals.is_empty());
    let plots: Vec<Plot> = known.map(|law| over_time(law, most, y.clone())).collect();
    let layout = if plots.len() == 1 || is_dense(longest) { Layout::Wide } else { Layout::Pairs };
    doc.plots(plots, layout);
}

fn over_time(law: &LawRow, most: usize, y: Scale) -> Plot {
    // Dashes of many short levels would only be noise.
    let received = if is_dense(&law.intervals) { Dash::Solid } else { Dash::Dashed };
    Plot::new(law.label.clone(), time_scale(&law.intervals), y)
        .zooming()
        .with(PlotSeries::step("sent", counts(law, most, |i| i.sent)).toned(Tone::Muted))
        .with(PlotSeries::step("received", counts(law, most, |i| i.received)).dashed(received))
        .with(PlotSeries::step("dropped", counts(law, most, |i| i.dropped)).toned(Tone::Bad))
}

/// A count of each interval, NaN where unknown.
fn counts(law: &LawRow, most: usize, count: fn(&Interval) -> Option<u64>) -> Vec<Point> {
    let known = stair(&law.intervals, |i| count(i).map_or(f64::NAN, |n| n as f64));
    thinned(known, most)
}

/// The least begin of an axis of dispersion; a metronome has none.
const INDEX_MIN: f64 = 0.001;

/// Adds dispersion and arrivals per millisecond, if there are any.
fn show_arrivals(doc: &mut Document, report: &Report, laws: &[LawRow]) {
    let sent = match report.trials.as_slice() {
        [only] => only.offered.dispersion.as_ref(),
        _ => None,
    };
    let plots: Vec<Plot> = [dispersion(laws, sent), per_ms(laws)].into_iter().flatten().collect();
    if !plots.is_empty() {
        doc.section("How they arrive", "those that were received");
        doc.plots(plots, Layout::Pairs);
    }
}

/// The index of dispersion of arrivals, and of the sends of a single trial, against the length of
/// the bins.
fn dispersion(laws: &[LawRow], sent: Option<&Dispersion>) -> Option<Plot> {
    let arrived = |law: &LawRow| -> Vec<Point> {
        law.dispersion_by_scale.iter().map(|at| Point::new(at.scale_ns as f64, at.index)).collect()
    };
    let sent: Vec<Point> = sent.map_or_else(Vec::new, dispersion_points);
    let arrived: Vec<Vec<Point>> = laws.iter().map(arrived).collect();
    let points = || arrived.iter().flatten().chain(&sent);
    if points().count() < 2 {
        return None;
    }
    let scales = points().map(|p| p.x);
    let x = Scale::fitting(scales, Unit::Time, "length of the bins");
    let indices = points().map(|p| p.y.max(INDEX_MIN)).chain([1.0]);
    let y = Scale::around(span(indices)?, Unit::Number, "variance over mean");
    let mut plot = Plot::new("Index of dispersion against the time scale", x, y);
    if !sent.is_empty() {
        let sent = PlotSeries::line("sent", sent).toned(Tone::Muted);
        plot = plot.with(sent.dashed(Dash::Dotted).marked(Mark::Ring));
    }
    Some(with_curves(plot, laws, arrived).against(Reference::y(1.0, "Poisson: 1")))
}

/// Adds a line for each law that has points.
fn with_curves(mut plot: Plot, laws: &[LawRow], curves: Vec<Vec<Point>>) -> Plot {
    let looks = LOOKS.into_iter().cycle();
    for ((law, points), (tone, dash, mark)) in laws.iter().zip(curves).zip(looks) {
        let name = if laws.len() == 1 { "arrived" } else { &law.label };
        let line = PlotSeries::line(name, points).toned(tone);
        plot = plot.with_any(line.dashed(dash).marked(mark));
    }
    plot
}

/// The number of milliseconds by their number of arrivals.
fn per_ms(laws: &[LawRow]) -> Option<Plot> {
    let longest = laws.iter().map(|law| law.arrivals_per_ms.len()).max()?;
    if longest < 2 {
        return None;
    }
    let points = |law: &LawRow| -> Vec<Point> {
        let counts = law.arrivals_per_ms.iter().enumerate().filter(|(_, n)| **n > 0);
        counts.map(|(i, n)| Point::new(i as f64, *n as f64)).collect()
    };
    let curves: Vec<Vec<Point>> = laws.iter().map(points).collect();
    let last = (longest - 1) as f64;
    let x = Scale::linear(0.0, last, Unit::Number, "arrivals in a millisecond");
    let counts = curves.iter().flatten().map(|p| p.y);
    let y = Scale::fitting(counts, Unit::Count, "milliseconds");
    let plot = Plot::new("Arrivals per millisecond", x, y);
    Some(with_curves(plot, laws, curves))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_where_nothing_arrived() {
        let law = LawRow { arrivals_per_ms: vec![10], ..LawRow::default() };
        assert!(per_ms(std::slice::from_ref(&law)).is_none());
        assert!(dispersion(&[law], None).is_none());
        assert!(per_ms(&[]).is_none());
    }
}
