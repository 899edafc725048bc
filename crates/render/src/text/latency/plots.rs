//! One scenario over time: its latency of every kind, and what its flows carried.

use super::Shown;
use crate::axis::Axis;
use crate::number::{number, time_short};
use crate::text::line::Ink;
use crate::text::page::Page;
use crate::text::plot::{self, Plot};
use knee_core::measure::Interval;
use knee_core::trial::flows::LatencySeries;

/// Rows within the axes.
const ROWS: usize = 10;

/// Two plots stand beside each other where each has so many columns.
const COLUMNS_MIN: usize = 44;

/// Kinds of latency: the name of the series, what it is called, the mark, the mark in ASCII, the
/// ink.
const KINDS: [(&str, &str, char, char, Ink); 4] = [
    ("tcp", "TCP ping", '●', 'o', Ink::Data),
    ("udp", "UDP probe", '◆', 'x', Ink::Good),
    ("inside_up", "in uploads", '▲', '^', Ink::Warn),
    ("inside_down", "in downloads", '▼', 'v', Ink::Guide),
];

/// What flows carried: the name, the mark, the mark in ASCII, the ink.
const WAYS: [(&str, char, char, Ink); 2] =
    [("up", '▲', '^', Ink::Warn), ("down", '▼', 'v', Ink::Guide)];

/// Writes both, where there is anything to draw of the scenario of this name.
pub fn show(page: &mut Page, worst: &Shown, title: &str) {
    let intervals = &worst.trial.intervals;
    let series = &worst.flows.series;
    let plots = [
        latency(intervals, series, page.unicode),
        goodput(intervals, page.unicode),
    ];
    let plots: Vec<Plot> = plots.into_iter().flatten().collect();
    if plots.is_empty() {
        return;
    }
    page.heading(&format!("{title} over time"), "");
    let width = plot::width_of_two(page, COLUMNS_MIN);
    plot::show(page, &plots, ROWS, width);
}

/// The longest latency of each interval, of every kind.
fn latency(intervals: &[Interval], series: &[LatencySeries], unicode: bool) -> Option<Plot> {
    let curve = |s: &LatencySeries| -> Vec<(f64, f64)> {
        let values = intervals.iter().zip(&s.max_ns);
        let points = values.map(|(i, ns)| ns.map(|ns| (middle(i), ns.max(1) as f64)));
        points.flatten().collect()
    };
    let curves: Vec<Vec<(f64, f64)>> = KINDS
        .iter()
        .map(|kind| {
            let of_kind = series.iter().find(|s| s.kind == kind.0);
            of_kind.map_or_else(Vec::new, curve)
        })
        .collect();
    let all = || curves.iter().flatten();
    if all().count() < 2 {
        return None;
    }
    let (low, high) = all().fold((f64::MAX, 0.0_f64), |(l, h), p| (l.min(p.1), h.max(p.1)));
    // As tall as it is when little changes, so that noise is not blown up to a mountain.
    let y = match high > 20.0 * low {
        true => Axis::logarithmic(low / 1.3, high * 1.3, moment),
        false => Axis::linear(0.0, high * 1.1, moment),
    };
    let mut plot = Plot::new("longest latency in each interval", time_axis(intervals), y);
    for ((_, what, mark, ascii, ink), curve) in KINDS.iter().zip(curves) {
        let mark = if unicode { *mark } else { *ascii };
        plot.add_curve(curve, (mark, *ink), what);
    }
    Some(plot)
}

/// KiB per second of each direction.
fn goodput(intervals: &[Interval], unicode: bool) -> Option<Plot> {
    let of: [fn(&Interval) -> Option<u64>; 2] = [|i| i.up_bytes, |i| i.down_bytes];
    let curves = of.map(|of| -> Vec<(f64, f64)> {
        let carried = intervals.iter().filter_map(|i| Some((i, of(i)?)));
        let kib_per_s = |i: &Interval, bytes| i.per_s(bytes) / 1024.0;
        let points: Vec<_> = carried.map(|(i, n)| (middle(i), kib_per_s(i, n))).collect();
        // A direction without flows carries nothing all the time.
        match points.iter().any(|p| p.1 > 0.0) {
            true => points,
            false => Vec::new(),
        }
    });
    let top = curves.iter().flatten().map(|p| p.1).fold(0.0, f64::max);
    if curves.iter().all(|c| c.len() < 2) {
        return None;
    }
    let y = Axis::linear(0.0, top * 1.1, number);
    let mut plot = Plot::new("goodput in KiB/s", time_axis(intervals), y);
    for ((what, mark, ascii, ink), curve) in WAYS.iter().zip(curves) {
        let mark = if unicode { *mark } else { *ascii };
        plot.add_curve(curve, (mark, *ink), what);
    }
    Some(plot)
}

fn time_axis(intervals: &[Interval]) -> Axis {
    let end = intervals.last().map_or(1, |i| i.end_ns.max(1));
    Axis::linear(0.0, end as f64, moment)
}

/// A time on an axis; none at all has no unit.
fn moment(ns: f64) -> String {
    match ns.max(0.0).round() as u64 {
        0 => "0".to_owned(),
        ns => time_short(ns),
    }
}

fn middle(interval: &Interval) -> f64 {
    (interval.start_ns + interval.end_ns) as f64 / 2.0
}
