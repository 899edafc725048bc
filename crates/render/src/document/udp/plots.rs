//! The figures of datagrams: arrivals per millisecond, their dispersion at every time scale, and
//! the datagrams of each law over time.

use super::looking;
use crate::axis::span;
use crate::document::series::{is_dense, stair, thinned, time_scale};
use crate::document::trial_plots::dispersion_points;
use crate::document::{Document, Layout};
use crate::number::{plural, time_short};
use crate::plot::{Dash, Mark, Plot, PlotSeries, Point, Reference, Scale, Tone, Unit};
use knee_core::experiment::udp::report::LawRow;
use knee_core::report::Report;
use knee_load::measure::Interval;
use knee_load::stats::gaps::Dispersion;

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
fn counts(law: &LawRow, most: usize, of: fn(&Interval) -> Option<u64>) -> Vec<Point> {
    let known = stair(&law.intervals, |i| of(i).map_or(f64::NAN, |n| n as f64));
    thinned(known, most)
}

/// The least begin of an axis of dispersion; a metronome has none.
const INDEX_MIN: f64 = 0.001;

/// Adds dispersion and arrivals per millisecond, if there are any.
pub(super) fn show_arrivals(doc: &mut Document, report: &Report, laws: &[LawRow]) {
    let sent = match report.trials.as_slice() {
        [only] => only.offered.dispersion.as_ref(),
        _ => None,
    };
    let plots = [dispersion(laws, sent), per_ms(laws)];
    let plots: Vec<Plot> = plots.into_iter().flatten().collect();
    if !plots.is_empty() {
        doc.section("How they arrive", "those that were received");
        doc.plots(plots, Layout::Pairs);
    }
}

/// The index of dispersion of arrivals, and of the sends of a single trial, against the length of
/// the bins.
fn dispersion(laws: &[LawRow], sent: Option<&Dispersion>) -> Option<Plot> {
    let arrived = |law: &LawRow| -> Vec<Point> {
        let scales = law.dispersion_by_scale.iter();
        scales.map(|at| Point::new(at.scale_ns as f64, at.index)).collect()
    };
    let sent: Vec<Point> = sent.map_or_else(Vec::new, dispersion_points);
    let arrived: Vec<Vec<Point>> = laws.iter().map(arrived).collect();
    let all = || arrived.iter().flatten().chain(&sent);
    if all().count() < 2 {
        return None;
    }
    let scales = all().map(|p| p.x);
    let x = Scale::fitting(scales, Unit::Time, "length of the bins");
    let indices = all().map(|p| p.y.max(INDEX_MIN)).chain([1.0]);
    let y = Scale::around(span(indices)?, Unit::Number, "variance over mean");
    let mut plot = Plot::new("Index of dispersion against the time scale", x, y);
    if !sent.is_empty() {
        let sent = PlotSeries::line("sent", sent).toned(Tone::Muted);
        plot = plot.with(sent.dashed(Dash::Dotted).marked(Mark::Ring));
    }
    for (i, points) in arrived.into_iter().enumerate() {
        plot = plot.with_any(looking(PlotSeries::line(name(laws, i), points), i));
    }
    Some(plot.against(Reference::y(1.0, "Poisson: 1")))
}

fn name(laws: &[LawRow], law: usize) -> String {
    match laws.len() {
        1 => "arrived".to_owned(),
        _ => laws[law].label.clone(),
    }
}

/// The number of milliseconds by their number of arrivals.
fn per_ms(laws: &[LawRow]) -> Option<Plot> {
    let longest = laws.iter().map(|law| law.arrivals_per_ms.len()).max()?;
    if longest < 2 {
        return None;
    }
    let points = |law: &LawRow| -> Vec<Point> {
        let counts = law.arrivals_per_ms.iter().enumerate();
        let counts = counts.filter(|(_, n)| **n > 0);
        counts.map(|(i, n)| Point::new(i as f64, *n as f64)).collect()
    };
    let curves: Vec<Vec<Point>> = laws.iter().map(points).collect();
    let last = (longest - 1) as f64;
    let x = Scale::linear(0.0, last, Unit::Number, "arrivals in a millisecond");
    let counts = curves.iter().flatten().map(|p| p.y);
    let y = Scale::fitting(counts, Unit::Count, "milliseconds");
    let mut plot = Plot::new("Arrivals per millisecond", x, y);
    for (i, points) in curves.into_iter().enumerate() {
        plot = plot.with_any(looking(PlotSeries::line(name(laws, i), points), i));
    }
    Some(plot)
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
