//! Each scenario over time: what its flows carried, and the latency inside and beside them. Small
//! figures on common scales, so that scenarios compare.

use super::glance::{DOWN, UP};
use crate::html::page::Page;
use crate::html::plot::{Dash, Plot, Point, Scale, Series, Tone, Unit};
use crate::text::latency::{Shown, name, names_controls};
use knee_core::measure::Interval;
use knee_core::trial::flows::LatencySeries;

/// More intervals than this over all scenarios are gathered in groups, so that the page stays
/// small: bytes add up, and the longest latency of a group is the longest of its intervals.
const STEPS_MAX: usize = 2_400;

/// Latencies over more than this ratio are drawn on a logarithmic scale.
const LOG_RATIO: f64 = 20.0;

/// Height of a figure, in CSS pixels.
const HEIGHT_PX: u32 = 130;

/// Kinds of latency: the name of the series, what it is called, how it looks.
const KINDS: [(&str, &str, Tone, Dash); 4] = [
    ("inside_up", "in uploads", Tone::First, Dash::Dashed),
    ("inside_down", "in downloads", Tone::Third, Dash::DashDot),
    ("udp", "UDP", Tone::Fourth, Dash::Dotted),
    ("tcp", "TCP", Tone::Second, Dash::Solid),
];

/// Writes both figures of each scenario.
pub fn show(page: &mut Page, shown: &[Shown]) {
    let measured = shown.iter().filter(|s| s.trial.intervals.len() > 1);
    let measured: Vec<&Shown> = measured.collect();
    if measured.is_empty() {
        return;
    }
    let steps = (STEPS_MAX / measured.len()).clamp(20, 120);
    let carried = measured
        .iter()
        .flat_map(|s| groups(&s.trial.intervals, steps));
    let carried = carried.flat_map(|g| [g.per_s(Some(g.up)), g.per_s(Some(g.down))]);
    let most = carried.fold(0.0, f64::max);
    let all = measured.iter().flat_map(|s| &s.flows.series);
    let all = all.flat_map(|s| s.max_ns.iter().flatten());
    let longest: Vec<f64> = all.map(|ns| *ns as f64).collect();
    let with_control = names_controls(shown.iter().map(|s| s.row));
    let mut plots = Vec::new();
    for s in measured {
        let name = name(s.row, with_control);
        let groups = groups(&s.trial.intervals, steps);
        plots.push(goodput(&name, s, &groups, most));
        let y = longest.iter().copied();
        let y = Scale::fitting(y, LOG_RATIO, Unit::Time, "longest latency");
        plots.extend(latency(&name, &groups, &s.flows.series, y));
    }
    let remark = "goodput, and the longest latency in each interval: beside the flows there and \
                  back, inside them one way; the same scales for all";
    page.section("Over time", remark, |page| page.plots(&plots));
}

/// A few intervals one after the other.
struct Group<'a> {
    first: usize,
    intervals: &'a [Interval],
    begin_ns: u64,
    end_ns: u64,
    up: u64,
    down: u64,
}

impl Group<'_> {
    /// KiB per second.
    fn per_s(&self, bytes: Option<u64>) -> f64 {
        let length_ns = self.end_ns.saturating_sub(self.begin_ns).max(1);
        bytes.map_or(f64::NAN, |n| n as f64 / 1024.0 * 1e9 / length_ns as f64)
    }

    /// The longest of these latencies within it.
    fn longest(&self, ns: &[Option<u64>]) -> f64 {
        let within = ns.iter().skip(self.first).take(self.intervals.len());
        within.flatten().max().map_or(f64::NAN, |ns| *ns as f64)
    }
}

fn groups(intervals: &[Interval], steps: usize) -> Vec<Group<'_>> {
    let size = intervals.len().div_ceil(steps).max(1);
    let groups = intervals.chunks(size).enumerate();
    groups
        .map(|(i, intervals)| Group {
            first: i * size,
            intervals,
            begin_ns: intervals.first().map_or(0, |i| i.start_ns),
            end_ns: intervals.last().map_or(0, |i| i.end_ns),
            up: intervals.iter().filter_map(|i| i.up_bytes).sum(),
            down: intervals.iter().filter_map(|i| i.down_bytes).sum(),
        })
        .collect()
}

fn time_scale(groups: &[Group]) -> Scale {
    let end = groups.last().map_or(1, |g| g.end_ns);
    Scale::linear(0.0, end as f64, Unit::Time, "time")
}

fn stair(groups: &[Group], value: impl Fn(&Group) -> f64) -> Vec<Point> {
    let level = |g: &Group| Point::new(g.begin_ns as f64, value(g));
    let mut points: Vec<Point> = groups.iter().map(level).collect();
    if let (Some(last), Some(point)) = (groups.last(), points.last().copied()) {
        points.push(Point::new(last.end_ns as f64, point.y));
    }
    points
}

fn goodput(name: &str, s: &Shown, groups: &[Group], most: f64) -> Plot {
    let y = Scale::from_zero([most], Unit::KibPerS, "goodput");
    let mut plot = Plot::new(format!("{name}: goodput"), time_scale(groups), y);
    plot.height = HEIGHT_PX;
    plot.zooms = true;
    if s.row.up > 0 {
        let up = stair(groups, |g| g.per_s(Some(g.up)));
        plot = plot.with(Series::step("up", up).toned(UP.0).dashed(Dash::Dashed));
    }
    if s.row.down > 0 {
        let down = stair(groups, |g| g.per_s(Some(g.down)));
        plot = plot.with(Series::step("down", down).toned(DOWN.0));
    }
    plot
}

fn latency(name: &str, groups: &[Group], series: &[LatencySeries], y: Scale) -> Option<Plot> {
    let mut plot = Plot::new(format!("{name}: latency"), time_scale(groups), y);
    plot.height = HEIGHT_PX;
    plot.zooms = true;
    for (kind, called, tone, dash) in KINDS {
        let of_kind = series.iter().filter(|s| s.kind == kind);
        for s in of_kind.filter(|s| s.max_ns.iter().any(Option::is_some)) {
            let steps = stair(groups, |g| g.longest(&s.max_ns));
            plot = plot.with(Series::step(called, steps).toned(tone).dashed(dash));
        }
    }
    (!plot.series.is_empty()).then_some(plot)
}
