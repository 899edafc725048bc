//! The figures of a trial over its intervals.

use crate::number;
use crate::plot::{Dash, Plot, PlotSeries, Point, Scale, Tone, Unit};
use knee_core::trial::report::TrialReport;
use knee_load::measure::Interval;

/// From more intervals than this a figure needs the whole width.
const DENSE: usize = 60;

/// Whether a figure of these intervals needs the whole width.
pub(super) fn is_dense(intervals: &[Interval]) -> bool {
    intervals.len() > DENSE
}

/// The scale of time of these intervals.
pub(super) fn time_scale(intervals: &[Interval]) -> Scale {
    let end = intervals.last().map_or(1, |i| i.end_ns);
    Scale::linear(0.0, end as f64, Unit::Time, "time into the window")
}

/// A figure of each interval as a stair up to the end of the last; NaN is a gap.
pub(super) fn stair(intervals: &[Interval], mut value: impl FnMut(&Interval) -> f64) -> Vec<Point> {
    let levels = intervals.iter();
    let mut points: Vec<Point> = levels.map(|i| Point::new(i.start_ns as f64, value(i))).collect();
    if let (Some(last), Some(point)) = (intervals.last(), points.last().copied()) {
        points.push(Point::new(last.end_ns as f64, point.y));
    }
    points
}

/// About `most` of the points: the lowest and the highest of each group of neighbours, so that
/// peaks and dips remain. Each is still a measured point.
pub(super) fn thinned(points: Vec<Point>, most: usize) -> Vec<Point> {
    if points.len() <= most {
        return points;
    }
    let size = 2 * points.len().div_ceil(most.max(2));
    let ends = |group: &[Point]| -> Vec<Point> {
        let by = |a: &&Point, b: &&Point| a.y.total_cmp(&b.y);
        let known = || group.iter().filter(|p| !p.y.is_nan());
        match (known().min_by(by), known().max_by(by)) {
            (Some(low), Some(high)) if low.x < high.x => vec![*low, *high],
            (Some(low), Some(high)) if low.x > high.x => vec![*high, *low],
            (Some(level), _) => vec![*level],
            // A gap stays one.
            _ => group.first().copied().into_iter().collect(),
        }
    };
    let last = points.last().copied();
    points.chunks(size).flat_map(ends).chain(last).collect()
}

/// Response times over time: median, 90th and 99th percentile, longest. An interval in which
/// nothing ended is a gap.
pub(super) fn response_times(intervals: &[Interval]) -> Plot {
    let of = |ns: u64| if ns == 0 { f64::NAN } else { ns as f64 };
    let all = intervals.iter().flat_map(|i| [i.p50_ns, i.max_ns]);
    let y = Scale::fitting(all.map(of), Unit::Time, "response time");
    let mut plot = Plot::new("Response time over time", time_scale(intervals), y).zooming();
    // The order of the lines distinguishes them; dashes of many short levels would only be noise.
    let dashed = |dash| {
        if is_dense(intervals) { Dash::Solid } else { dash }
    };
    type Figure = (&'static str, fn(&Interval) -> u64, Tone, Dash);
    let figures: [Figure; 4] = [
        ("max", |i| i.max_ns, Tone::Muted, Dash::Dotted),
        ("p99", |i| i.p99_ns, Tone::Second, Dash::Dashed),
        ("p90", |i| i.p90_ns, Tone::Third, Dash::DashDot),
        ("p50", |i| i.p50_ns, Tone::First, Dash::Solid),
    ];
    for (name, figure, tone, dash) in figures {
        let levels = stair(intervals, |i| of(figure(i)));
        plot = plot.with(PlotSeries::step(name, levels).toned(tone).dashed(dashed(dash)));
    }
    plot.described("Median, 90th and 99th percentile and longest response time of each interval.")
}

/// The rates asked for, started and answered over time, and of errors if any.
pub(super) fn rates(trial: &TrialReport) -> Plot {
    let intervals = trial.intervals.as_slice();
    let of = |value: fn(&Interval) -> u64| stair(intervals, |i| i.per_s(value(i)));
    let (started, answered) = (of(|i| i.attempted), of(|i| i.completed));
    // With sessions their rate was asked for, but these are rates of operations.
    let asked = trial.offered.asked_per_s;
    let asked = asked.filter(|_| trial.sessions().is_none());
    let values = started.iter().chain(&answered).map(|p| p.y).chain(asked);
    let y = Scale::from_zero(values, Unit::PerS, "operations per second");
    let mut plot = Plot::new("Rate over time", time_scale(intervals), y).zooming();
    if let (Some(per_s), Some(last)) = (asked, intervals.last()) {
        let ends = [0, last.end_ns].map(|ns| Point::new(ns as f64, per_s));
        let line = PlotSeries::line("asked", ends.into()).toned(Tone::Muted);
        plot = plot.with(line.dashed(Dash::Dotted).unlisted());
    }
    let started = PlotSeries::step("started", started).toned(Tone::Second);
    plot = plot.with(started.dashed(Dash::Dashed)).with(PlotSeries::step("answered", answered));
    if intervals.iter().any(|i| i.errors > 0) {
        let errors = PlotSeries::step("errors", of(|i| i.errors));
        plot = plot.with(errors.toned(Tone::Bad).dashed(Dash::DashDot));
    }
    let throughput = number::known(trial.throughput_per_s, number::rate);
    plot.described(format!("Operations started and answered over time; throughput {throughput}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_keeps_its_peaks_and_dips_and_nothing_else() {
        let points: Vec<Point> = (0..1_000_u32)
            .map(|i| Point::new(f64::from(i), if i == 717 { 9.0 } else { f64::from(i % 3) }))
            .collect();
        assert_eq!(thinned(points.clone(), 1_000), points);
        let few = thinned(points.clone(), 100);
        assert!((50..=102).contains(&few.len()), "{}", few.len());
        assert!(few.iter().all(|p| points.contains(p)));
        assert!(few.iter().any(|p| p.y == 9.0));
        assert!(few.windows(2).all(|w| w[0].x <= w[1].x));
    }
}
