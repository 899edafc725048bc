//! The figures of a latency test: a row for each scenario, and each scenario over time on common
//! scales.

use super::{ScenarioTrial, name, names_controls};
use crate::document::trial_plots::{stair, thinned, time_scale};
use crate::document::{Document, Layout, Medium};
use crate::number::time_short;
use crate::plot::{
    Dash, Mark, Plot, PlotSeries, Point, Reference, Scale, Tone, Unit, row_points, span,
};
use knee_core::experiment::latency::report::{LatencyConclusion, ScenarioRow};
use knee_load::measure::{Direction, Interval};

/// Height of one row, in CSS pixels.
const ROW_PX: u32 = 24;

/// By how much marks of uploads stand above the middle of a row, and those of downloads below it.
const ASIDE: f64 = 0.16;

/// Uploads and downloads differ by colour and by mark.
const UP: (Tone, Mark) = (Tone::First, Mark::Dot);
/// See [`UP`].
const DOWN: (Tone, Mark) = (Tone::Third, Mark::Frame);

/// Capacity, latency and frequencies.
pub(super) fn overview(c: &LatencyConclusion, shown: &[ScenarioTrial]) -> Vec<Plot> {
    let mut figures = vec![capacity(&c.scenarios)];
    figures.extend(latency_of_rows(c, shown));
    figures.extend(frequencies(&c.scenarios));
    figures
}

fn plot<'a>(title: &str, x: Scale, rows: impl Iterator<Item = &'a ScenarioRow> + Clone) -> Plot {
    let with_control = names_controls(rows.clone());
    let names = rows.map(|row| name(row, with_control));
    let plot = Plot::of_rows(title, x, names, ROW_PX);
    let height = plot.height.max(60);
    plot.high(height)
}

fn marked(name: &str, points: Vec<Point>, (tone, mark): (Tone, Mark)) -> PlotSeries {
    PlotSeries::marks(name, points).toned(tone).marked(mark)
}

fn capacity(rows: &[ScenarioRow]) -> Plot {
    let up = row_points(rows, |row| row.up_kib_per_s);
    let down = row_points(rows, |row| row.down_kib_per_s);
    let goodputs = up.iter().chain(&down).map(|p| p.x);
    let x = Scale::from_zero(goodputs, Unit::KibPerS, "goodput");
    with_both_ways(plot("Capacity", x, rows.iter()), up, down)
}

/// Adds marks of uploads above the middle of the rows, and of downloads below it.
fn with_both_ways(plot: Plot, up: Vec<Point>, down: Vec<Point>) -> Plot {
    let aside = |mut points: Vec<Point>, by: f64| {
        points.iter_mut().for_each(|p| p.y += by);
        points
    };
    plot.with(marked("up", aside(up, -ASIDE), UP)).with(marked("down", aside(down, ASIDE), DOWN))
}

/// The usual scale, but from zero where one of the values is zero, as that of a lost flow. A
/// logarithmic scale has no place for it.
fn fitting_or_from_zero(
    values: impl Iterator<Item = f64> + Clone,
    unit: Unit,
    name: &str,
) -> Scale {
    if values.clone().any(|value| value <= 0.0) {
        Scale::from_zero(values, unit, name)
    } else {
        Scale::fitting(values, unit, name)
    }
}

/// A figure of each scenario: its name, its look, and where it stands.
type Figure = (&'static str, Tone, Mark, fn(&ScenarioTrial) -> Option<u64>);

/// From the median to the longest ping of each scenario, with the idle path's median to compare.
fn latency_of_rows(c: &LatencyConclusion, shown: &[ScenarioTrial]) -> Option<Plot> {
    if shown.is_empty() {
        return None;
    }
    let figures: [Figure; 3] = [
        ("p50", Tone::First, Mark::Dot, |s| s.flows.tcp.round_trip_ns.p50),
        ("p99", Tone::Second, Mark::Square, |s| s.flows.tcp.round_trip_ns.p99),
        ("longest", Tone::Muted, Mark::Ring, |s| Some(s.flows.latency_ns_max)),
    ];
    let idle = c.idle_ns.as_ref().and_then(|idle| Some(idle.p50? as f64));
    let times = shown.iter().flat_map(|s| figures.map(|f| f.3(s))).flatten().map(|ns| ns as f64);
    let x = Scale::fitting(times.chain(idle), Unit::Time, "round trip");
    let mut plot = plot("Latency under load", x, shown.iter().map(|s| s.row));
    for (name, tone, mark, figure) in figures {
        let points = row_points(shown, |s| Some(figure(s)? as f64));
        plot = plot.with(marked(name, points, (tone, mark)));
    }
    if let Some(idle) = idle {
        let label = format!("idle {}", time_short(idle as u64));
        plot = plot.against(Reference::x(idle, label));
    }
    Some(plot)
}

fn frequencies(rows: &[ScenarioRow]) -> Option<Plot> {
    let smooth = row_points(rows, |row| row.smoothness_hz);
    let responsive = row_points(rows, |row| row.responsiveness_hz);
    let values = smooth.iter().chain(&responsive).map(|p| p.x);
    values.clone().next()?;
    let x = fitting_or_from_zero(values, Unit::Hertz, "frequency");
    let plot = plot("Smoothness and responsiveness", x, rows.iter())
        .noted(
            "smoothness: 1 / the longest gap in the data of any flow; responsiveness: 1 / the \
             longest round trip",
        )
        .with_any(marked("responsiveness", responsive, (Tone::Second, Mark::Square)))
        .with(marked("smoothness", smooth, (Tone::Fourth, Mark::Ring)));
    Some(plot)
}

/// The goodput of every flow.
pub(super) fn flows(rows: &[ScenarioRow]) -> Plot {
    let points = |direction: Direction| -> Vec<Point> {
        let rows = rows.iter().enumerate();
        rows.flat_map(|(i, row)| {
            let flows = row.flows.iter().filter(move |f| f.direction == direction);
            flows.map(move |f| Point::new(f.goodput_kib_per_s, i as f64))
        })
        .collect()
    };
    let (up, down) = (points(Direction::Up), points(Direction::Down));
    let goodputs = up.iter().chain(&down).map(|p| p.x);
    let x = fitting_or_from_zero(goodputs, Unit::KibPerS, "goodput");
    let plot = plot("Goodput of each flow", x, rows.iter())
        .noted("a mark for each flow: the closer together, the fairer");
    with_both_ways(plot, up, down)
}

/// More points than this over all scenarios are thinned out, so that the page stays small.
const POINTS_MAX: usize = 2_400;

/// Height of a figure, in CSS pixels.
const OVER_TIME_PX: u32 = 130;

/// Kinds of latency: the name of the series, what it is called, how it looks.
const KINDS: [(&str, &str, Tone, Dash); 4] = [
    ("inside_up", "in uploads", Tone::First, Dash::Dashed),
    ("inside_down", "in downloads", Tone::Third, Dash::DashDot),
    ("udp", "UDP", Tone::Fourth, Dash::Dotted),
    ("tcp", "TCP", Tone::Second, Dash::Solid),
];

/// Adds both figures of each scenario to a page, and of the worst scenario to text.
pub(super) fn show_over_time(
    doc: &mut Document,
    shown: &[ScenarioTrial],
    worst: Option<&ScenarioTrial>,
) {
    let with_control = names_controls(shown.iter().map(|s| s.row));
    let figures = |scenarios: &[&ScenarioTrial]| -> Vec<Plot> {
        let measured = scenarios.iter().filter(|s| s.trial.intervals.len() > 1);
        let measured: Vec<&ScenarioTrial> = measured.copied().collect();
        let scales = Scales::of(&measured);
        let plots = |s: &&ScenarioTrial| {
            let name = name(s.row, with_control);
            [Some(goodput(&name, s, &scales)), latency(&name, s, &scales)]
        };
        measured.iter().flat_map(plots).flatten().collect()
    };
    let plots = figures(&shown.iter().collect::<Vec<_>>());
    let remark = "goodput, and the longest latency in each interval: beside the flows there and \
                  back, inside them one way";
    if !plots.is_empty() {
        doc.section("Over time", remark);
    }
    doc.only(Medium::Page, |doc| doc.plots(plots, Layout::Pairs));
    let worst = worst.map_or_else(Vec::new, |worst| figures(&[worst]));
    doc.only(Medium::Lines, |doc| doc.plots(worst, Layout::Pairs));
}

/// The scales that all figures share.
struct Scales {
    goodput: Scale,
    latency: Scale,
    most: usize,
}

impl Scales {
    fn of(shown: &[&ScenarioTrial]) -> Scales {
        let intervals = || shown.iter().flat_map(|s| &s.trial.intervals);
        let carried =
            intervals().flat_map(|i| [kib_per_s(i, i.up_bytes), kib_per_s(i, i.down_bytes)]);
        let series = shown.iter().flat_map(|s| &s.flows.series);
        let longest = series.flat_map(|s| s.max_ns.iter().flatten()).map(|ns| *ns as f64);
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

fn goodput(name: &str, s: &ScenarioTrial, scales: &Scales) -> Plot {
    let intervals = s.trial.intervals.as_slice();
    let y = scales.goodput.clone();
    let mut plot = Plot::new(format!("{name}: goodput"), time_scale(intervals), y)
        .high(OVER_TIME_PX)
        .zooming();
    let carried = |bytes: fn(&Interval) -> Option<u64>| -> Vec<Point> {
        thinned(stair(intervals, |i| kib_per_s(i, bytes(i))), scales.most)
    };
    if s.row.up > 0 {
        let up = PlotSeries::step("up", carried(|i| i.up_bytes));
        plot = plot.with(up.toned(UP.0).dashed(Dash::Dashed));
    }
    if s.row.down > 0 {
        let down = PlotSeries::step("down", carried(|i| i.down_bytes));
        plot = plot.with(down.toned(DOWN.0));
    }
    plot
}

fn latency(name: &str, s: &ScenarioTrial, scales: &Scales) -> Option<Plot> {
    let intervals = s.trial.intervals.as_slice();
    let y = scales.latency.clone();
    let mut plot = Plot::new(format!("{name}: latency"), time_scale(intervals), y)
        .high(OVER_TIME_PX)
        .zooming();
    for (kind, called, tone, dash) in KINDS {
        let of_kind = s.flows.series.iter().filter(|s| s.kind == kind);
        for series in of_kind.filter(|s| s.max_ns.iter().any(Option::is_some)) {
            let mut longest = series.max_ns.iter();
            let mut next = |_: &Interval| longest.next().copied().flatten();
            let steps = stair(intervals, |i| next(i).map_or(f64::NAN, |ns| ns as f64));
            let steps = PlotSeries::step(called, thinned(steps, scales.most));
            plot = plot.with(steps.toned(tone).dashed(dash));
        }
    }
    (!plot.series.is_empty()).then_some(plot)
}
