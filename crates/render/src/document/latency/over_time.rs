//! Each scenario over time: what its flows carried, and the latency inside and beside them. Small
//! figures on common scales, so that scenarios compare.

use super::glance::{DOWN, UP};
use super::{Shown, name, names_controls};
use crate::axis::span;
use crate::document::series::{stair, thinned, time_scale};
use crate::document::{Document, Layout, Medium};
use crate::plot::{Dash, Plot, Point, Scale, Series, Tone, Unit};
use knee_core::measure::Interval;

/// More points than this over all scenarios are thinned out, so that the page stays small.
const POINTS_MAX: usize = 2_400;

/// Height of a figure, in CSS pixels.
const HEIGHT_PX: u32 = 130;

/// Kinds of latency: the name of the series, what it is called, how it looks.
const KINDS: [(&str, &str, Tone, Dash); 4] = [
    ("inside_up", "in uploads", Tone::First, Dash::Dashed),
    ("inside_down", "in downloads", Tone::Third, Dash::DashDot),
    ("udp", "UDP", Tone::Fourth, Dash::Dotted),
    ("tcp", "TCP", Tone::Second, Dash::Solid),
];

/// Adds both figures of each scenario; where there is little room, of the worst one alone.
pub(super) fn show(doc: &mut Document, shown: &[Shown], worst: Option<&Shown>) {
    let with_control = names_controls(shown.iter().map(|s| s.row));
    let figures = |of: &[&Shown]| -> Vec<Plot> {
        let measured = of.iter().filter(|s| s.trial.intervals.len() > 1);
        let measured: Vec<&Shown> = measured.copied().collect();
        let scales = Scales::of(&measured);
        let both = |s: &&Shown| {
            let name = name(s.row, with_control);
            [Some(goodput(&name, s, &scales)), latency(&name, s, &scales)]
        };
        measured.iter().flat_map(both).flatten().collect()
    };
    let all = figures(&shown.iter().collect::<Vec<_>>());
    let remark = "goodput, and the longest latency in each interval: beside the flows there and \
                  back, inside them one way";
    if !all.is_empty() {
        doc.section("Over time", remark);
    }
    doc.only(Medium::Page, |doc| doc.plots(all, Layout::Pairs));
    let worst = worst.map_or_else(Vec::new, |worst| figures(&[worst]));
    doc.only(Medium::Lines, |doc| doc.plots(worst, Layout::Pairs));
}

/// What all figures have in common.
struct Scales {
    goodput: Scale,
    latency: Scale,
    most: usize,
}

impl Scales {
    fn of(shown: &[&Shown]) -> Scales {
        let intervals = || shown.iter().flat_map(|s| &s.trial.intervals);
        let carried =
            intervals().flat_map(|i| [kib_per_s(i, i.up_bytes), kib_per_s(i, i.down_bytes)]);
        let series = shown.iter().flat_map(|s| &s.flows.series);
        let longest = series.flat_map(|s| s.max_ns.iter().flatten());
        let longest = longest.map(|ns| *ns as f64);
        Scales {
            goodput: Scale::from_zero(span(carried).unwrap_or_default(), Unit::KibPerS, "goodput"),
            latency: Scale::fitting(longest, Unit::Time, "longest latency"),
            most: (POINTS_MAX / shown.len().max(1)).clamp(40, 240),
        }
    }
}

fn kib_per_s(i: &Interval, bytes: Option<u64>) -> f64 {
    bytes.map_or(f64::NAN, |n| i.per_s(n) / 1024.0)
}

fn goodput(name: &str, s: &Shown, scales: &Scales) -> Plot {
    let intervals = s.trial.intervals.as_slice();
    let y = scales.goodput.clone();
    let mut plot = Plot::new(format!("{name}: goodput"), time_scale(intervals), y);
    plot.height = HEIGHT_PX;
    plot.zooms = true;
    let carried = |of: fn(&Interval) -> Option<u64>| -> Vec<Point> {
        thinned(stair(intervals, |i| kib_per_s(i, of(i))), scales.most)
    };
    if s.row.up > 0 {
        let up = Series::step("up", carried(|i| i.up_bytes));
        plot = plot.with(up.toned(UP.0).dashed(Dash::Dashed));
    }
    if s.row.down > 0 {
        let down = Series::step("down", carried(|i| i.down_bytes));
        plot = plot.with(down.toned(DOWN.0));
    }
    plot
}

fn latency(name: &str, s: &Shown, scales: &Scales) -> Option<Plot> {
    let intervals = s.trial.intervals.as_slice();
    let y = scales.latency.clone();
    let mut plot = Plot::new(format!("{name}: latency"), time_scale(intervals), y);
    plot.height = HEIGHT_PX;
    plot.zooms = true;
    for (kind, called, tone, dash) in KINDS {
        let of_kind = s.flows.series.iter().filter(|s| s.kind == kind);
        for series in of_kind.filter(|s| s.max_ns.iter().any(Option::is_some)) {
            let mut longest = series.max_ns.iter();
            let mut next = |_: &Interval| longest.next().copied().flatten();
            let steps = stair(intervals, |i| next(i).map_or(f64::NAN, |ns| ns as f64));
            let steps = Series::step(called, thinned(steps, scales.most));
            plot = plot.with(steps.toned(tone).dashed(dash));
        }
    }
    (!plot.series.is_empty()).then_some(plot)
}
