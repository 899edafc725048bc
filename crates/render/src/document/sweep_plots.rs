//! The figures of a sweep.

use super::trial_plots::{spectrum, spectrum_line, stair, time_scale};
use crate::number::{count, estimate, plural, rate, time_short, whole_or_rounded};
use crate::plot::{Dash, Mark, Plot, PlotSeries, Point, Reference, Scale, Tone, Unit, scale};
use knee_core::experiment::sweep::report::{SweepConclusion, SweepLevel};
use knee_core::report::Report;
use knee_core::trial::report::TrialReport;
use knee_load::spec::Level;

/// Points of a straight line, which a logarithmic axis bends.
const LINE_POINTS: usize = 60;

/// Points of all trials over time on a page, for a page below a megabyte.
const POINTS_MAX: usize = 6_000;

/// Throughput with its asymptotes and the knee.
pub(super) fn throughput(c: &SweepConclusion) -> Plot {
    let x = load_scale(c);
    let edges = |l: &SweepLevel| l.throughput_ci95_per_s.map_or(0.0, |[_, hi]| hi);
    let top = c.levels.iter().flat_map(|l| [l.throughput_per_s, edges(l)]);
    let top = scale::top(top.chain([c.max_throughput_per_s]));
    let y = Scale::linear(0.0, top * 1.1, Unit::PerS, "responses per second");
    let title = format!("Throughput against {}", load_name(c));
    let label = format!("maximum {}", rate(c.max_throughput_per_s));
    let mut plot = Plot::new(title, x, y)
        .high(320)
        .described(c.answer.clone())
        .against(Reference::y(c.max_throughput_per_s, label));
    plot.references.extend(knee(c));
    let rising = if is_rate(c) {
        Some((1.0, "served = asked"))
    } else {
        c.throughput_per_user_per_s.map(|x1| (x1, "X₁·N"))
    };
    if let Some((slope, name)) = rising {
        let line = asymptote(&plot.x, slope, top * 1.1, name);
        plot = plot.with(line);
    }
    let measured = |l: &SweepLevel| {
        let range = l.throughput_ci95_per_s;
        Some(Point::with(value(l.level), l.throughput_per_s, range))
    };
    let look = (Tone::First, Mark::Dot, Dash::Solid);
    with_levels(plot, c, "measured", look, measured)
}

/// The colour, mark and line of a series.
type Look = (Tone, Mark, Dash);

/// Name, value and look of a percentile.
type Percentile = (&'static str, fn(&SweepLevel) -> Option<u64>, Look);

const PERCENTILES: [Percentile; 3] = [
    ("p99", |l| l.p99_ns, (Tone::Fourth, Mark::Square, Dash::Dotted)),
    ("p90", |l| l.p90_ns, (Tone::Second, Mark::Square, Dash::Dashed)),
    ("mean", |l| l.mean_ns, (Tone::First, Mark::Dot, Dash::Solid)),
];

/// Response times with the bounds asked for; `None` if no time is known.
pub(super) fn response(c: &SweepConclusion) -> Option<Plot> {
    let known = |l: &SweepLevel| PERCENTILES.map(|(_, figure, _)| figure(l));
    let times: Vec<f64> = c.levels.iter().flat_map(known).flatten().map(|ns| ns as f64).collect();
    if times.is_empty() {
        return None;
    }
    // Bounds on other times have their own figures.
    let response_bounds = || c.bounds.iter().filter(|bound| !bound.metric.contains('_'));
    let bounds = response_bounds().map(|b| b.limit_ns as f64);
    let y = Scale::fitting(times.into_iter().chain(bounds), Unit::Time, "response time");
    let title = format!("Response time against {}", load_name(c));
    let mut plot = Plot::new(title, load_scale(c), y);
    for bound in response_bounds() {
        let label = format!("{} ≤ {}", bound.metric, time_short(bound.limit_ns));
        let mut drawn = PERCENTILES.iter();
        let drawn = drawn.find(|(name, ..)| *name == bound.metric);
        let tone = drawn.map_or(Tone::Muted, |(.., (tone, ..))| *tone);
        plot = plot.against(Reference::y(bound.limit_ns as f64, label).toned(tone));
    }
    plot.references.extend(knee(c));
    for (name, figure, look) in PERCENTILES {
        if c.levels.iter().any(|l| figure(l).is_some()) {
            let point = |l: &SweepLevel| Some(Point::new(value(l.level), figure(l)? as f64));
            plot = with_levels(plot, c, name, look, point);
        }
    }
    Some(plot)
}

/// The price of throughput in response time: a point for each level.
pub(super) fn trade(c: &SweepConclusion) -> Option<Plot> {
    let [_, p90, mean] = PERCENTILES;
    let has_p90 = c.levels.iter().any(|l| l.p90_ns.is_some());
    let (name, figure, _) = if has_p90 { p90 } else { mean };
    let counted = c.levels.iter().filter(|l| l.excluded_because.is_none());
    let known: Vec<(&SweepLevel, f64)> =
        counted.filter_map(|l| Some((l, figure(l)? as f64))).collect();
    if known.len() < 2 {
        return None;
    }
    let x = known.iter().map(|(l, _)| l.throughput_per_s);
    let x = Scale::from_zero(x, Unit::PerS, "responses per second");
    let y = known.iter().map(|(_, ns)| *ns);
    let y = Scale::fitting(y, Unit::Time, format!("{name} response time"));
    let points = known.iter().map(|(l, ns)| Point::new(l.throughput_per_s, *ns));
    let labels = known.iter().map(|(l, _)| level_name(l.level));
    let series = PlotSeries::line("", points.collect()).marked(Mark::Dot);
    let plot = Plot::new("Response time against throughput", x, y)
        .noted(format!(
            "The figure beside each point is its level ({}). Best is low on the right; what climbs \
             there only queues.",
            load_name(c)
        ))
        .with(series.labelled(labels));
    Some(plot)
}

/// Processor time of the generator per operation; `None` if it is not known.
pub(super) fn cost(c: &SweepConclusion) -> Option<Plot> {
    let cost = |l: &SweepLevel| Some(Point::new(value(l.level), l.cpu_us_per_op? * 1e3));
    let points: Vec<Point> = c.levels.iter().filter_map(cost).collect();
    if points.len() < 2 {
        return None;
    }
    let y = points.iter().map(|p| p.y);
    let y = Scale::from_zero(y, Unit::Time, "processor time per operation");
    let plot = Plot::new("What an operation costs the generator", load_scale(c), y);
    Some(plot.with(PlotSeries::line("", points).marked(Mark::Dot)))
}

/// Response time by percentile at the lowest level, the knee, the best and the highest.
pub(super) fn spectra(report: &Report, c: &SweepConclusion) -> Option<Plot> {
    let last = c.levels.len().checked_sub(1)?;
    let levels = c.levels.iter().enumerate();
    let shown =
        levels.filter(|(i, l)| *i == 0 || *i == last || l.is_knee || l.is_best_within_bound);
    let looks = [
        (Tone::First, Dash::Solid),
        (Tone::Second, Dash::Dashed),
        (Tone::Third, Dash::DashDot),
        (Tone::Fourth, Dash::Dotted),
    ];
    let of_level = shown.filter_map(|(_, l)| {
        let mut trials = report.trials.iter();
        let times = &trials.find(|t| t.level == l.level)?.response_time_ns;
        (times.spectrum.len() > 1).then(|| spectrum_line(level_words(l.level), times))
    });
    let lines = of_level.zip(looks).map(|(line, (tone, dash))| line.toned(tone).dashed(dash));
    Some(spectrum(lines.collect())?.noted("The first trial of each level."))
}

/// Throughput of trials over time, in the order of the runs. If they have too many points, trials
/// that do not count and the latest trials, nearest to the knee, have precedence.
pub(super) fn over_time(report: &Report) -> Vec<Plot> {
    let mut trials: Vec<(usize, &TrialReport)> = report.trials.iter().enumerate().collect();
    trials.retain(|(_, t)| t.intervals.len() > 1);
    let counts = |t: &TrialReport| t.stationary && t.invalid_because.is_empty();
    trials.sort_by_key(|(i, t)| (counts(t), usize::MAX - i));
    let mut points = 0;
    trials.retain(|(_, t)| {
        points += 2 * t.intervals.len();
        points <= POINTS_MAX
    });
    trials.sort_by_key(|(i, _)| *i);
    trials.into_iter().map(|(_, trial)| trial_over_time(trial)).collect()
}

/// Throughput by round, one figure for each level on the same rounds.
pub(super) fn rounds(c: &SweepConclusion) -> Vec<Plot> {
    let last = c.slices.iter().map(|s| s.round).max().unwrap_or(0);
    if last < 2 {
        return Vec::new();
    }
    let of_level = |l: &SweepLevel| {
        let slices = c.slices.iter().filter(|s| s.round > 0 && s.level == l.level);
        let points = slices.map(|s| Point::new(f64::from(s.round), s.throughput_per_s));
        let points: Vec<Point> = points.collect();
        (points.len() > 1).then(|| {
            let x = Scale::linear(1.0, f64::from(last), Unit::Count, "round");
            let y = Scale::from_zero(points.iter().map(|p| p.y), Unit::PerS, "answered");
            let series = PlotSeries::line("", points).marked(Mark::Dot);
            Plot::new(level_name(l.level), x, y).high(120).with(series)
        })
    };
    c.levels.iter().filter_map(of_level).collect()
}

fn trial_over_time(trial: &TrialReport) -> Plot {
    let intervals = trial.intervals.as_slice();
    let completed = stair(intervals, |i| i.per_s(i.completed));
    let y = completed.iter().map(|p| p.y);
    let y = Scale::from_zero(y, Unit::PerS, "answered");
    let drifts = if trial.stationary { "" } else { "It drifts or jumps." };
    Plot::new(trial.label.clone(), time_scale(intervals), y)
        .zooming()
        .high(120)
        .noted(drifts)
        .with(PlotSeries::step("", completed))
}

fn load_scale(c: &SweepConclusion) -> Scale {
    let values = c.levels.iter().map(|l| value(l.level));
    let (unit, name) = if is_rate(c) { (Unit::PerS, "rate asked") } else { (Unit::Count, "users") };
    Scale::fitting(values.clone(), unit, name).marked_at(values)
}

/// The knee with its interval.
fn knee(c: &SweepConclusion) -> Option<Reference> {
    let (x, label) = match (is_rate(c), c.knee_rate_per_s, c.knee_vusers) {
        (true, Some(per_s), _) => (per_s, format!("knee {}/s", whole_or_rounded(per_s))),
        (false, _, Some(users)) => (users, format!("knee {} users", estimate(users))),
        (false, _, None) => {
            let [lo, hi] = c.knee_range?;
            let label = format!("knee {} to {} users", estimate(lo), estimate(hi));
            (lo, label)
        }
        _ => return None,
    };
    Some(Reference {
        range: c.knee_ci95.or(c.knee_range),
        ..Reference::x(x, label).toned(Tone::Third)
    })
}

/// The rising asymptote, up to where it leaves the plot.
fn asymptote(x: &Scale, slope: f64, top: f64, name: &str) -> PlotSeries {
    let [from, to] = x.ends();
    let to = to.min(top / slope);
    let places = (0..=LINE_POINTS).map(|i| from + (to - from) * i as f64 / LINE_POINTS as f64);
    let points = places.map(|n| Point::new(n, slope * n)).collect();
    PlotSeries::line(name, points).toned(Tone::Muted).dashed(Dash::Dashed).unlisted()
}

/// Adds the levels that count as a line, the excluded ones as hollow marks.
fn with_levels(
    plot: Plot,
    c: &SweepConclusion,
    name: &str,
    (tone, mark, dash): Look,
    point: impl Fn(&SweepLevel) -> Option<Point>,
) -> Plot {
    let (counted, out): (Vec<&SweepLevel>, Vec<_>) =
        c.levels.iter().partition(|l| l.excluded_because.is_none());
    let points = |levels: Vec<&SweepLevel>| levels.into_iter().filter_map(&point).collect();
    let hollow = match mark {
        Mark::Dot => Mark::Ring,
        _ => Mark::Frame,
    };
    let counted = PlotSeries::line(name, points(counted)).toned(tone);
    let out = PlotSeries::marks(format!("{name}, does not count"), points(out)).toned(tone);
    plot.with(counted.dashed(dash).marked(mark)).with_any(out.marked(hollow))
}

fn level_words(level: Level) -> String {
    match level {
        Level::Vusers(n) => plural(n.into(), "user"),
        Level::RatePerS(per_s) => format!("{}/s", whole_or_rounded(per_s)),
        Level::Clients(n) => plural(n.into(), "client"),
        Level::Descriptors(n) => plural(n.into(), "descriptor"),
        Level::Flows { up, down } => format!("{}/{down}", count(up.into())),
    }
}

/// The quantity of the levels.
fn load_name(c: &SweepConclusion) -> &'static str {
    if is_rate(c) { "rate asked/s" } else { "users" }
}

/// Whether the levels are rates.
fn is_rate(c: &SweepConclusion) -> bool {
    let mut levels = c.levels.iter();
    levels.any(|l| matches!(l.level, Level::RatePerS(_)))
}

/// A level as a number.
fn value(level: Level) -> f64 {
    match level {
        Level::Vusers(n) | Level::Clients(n) | Level::Descriptors(n) => f64::from(n),
        Level::RatePerS(r) => r,
        Level::Flows { up, down } => f64::from(up + down),
    }
}

/// A level without its unit.
pub(super) fn level_name(level: Level) -> String {
    match level {
        Level::Vusers(n) | Level::Clients(n) | Level::Descriptors(n) => count(u64::from(n)),
        Level::RatePerS(r) => whole_or_rounded(r),
        Level::Flows { up, down } => format!("{up}/{down}"),
    }
}
