//! The figures of a sweep.

use super::series::{stair, time_scale};
use super::sweep::level_name;
use super::trial_plots::{spectrum, spectrum_points};
use crate::axis;
use crate::number::{self, asked, estimate, plural, rate, time_short};
use crate::plot::{Dash, Mark, Plot, Point, Reference, Scale, Series, Tone, Unit};
use knee_core::experiment::sweep::report::{SweepConclusion, SweepLevel};
use knee_core::report::Report;
use knee_core::spec::Level;
use knee_core::trial::report::TrialReport;

/// Points that a straight line is drawn through, as the axes may bend it.
const LINE_POINTS: usize = 60;

/// Points of all trials over time on a page, which keeps it below a megabyte.
const POINTS_MAX: usize = 6_000;

/// Throughput with its asymptotes and the knee: the question of a sweep.
pub(super) fn throughput(c: &SweepConclusion) -> Plot {
    let x = load_scale(c);
    let edges = |l: &SweepLevel| l.throughput_ci95_per_s.map_or(0.0, |[_, hi]| hi);
    let top = c.levels.iter().flat_map(|l| [l.throughput_per_s, edges(l)]);
    let top = axis::top(top.chain([c.max_throughput_per_s]));
    let y = Scale::linear(0.0, top * 1.1, Unit::PerS, "responses per second");
    let title = format!("Throughput against {}", load_name(&c.levels));
    let mut plot = Plot::new(title, x, y).against(Reference::Horizontal {
        y: c.max_throughput_per_s,
        label: format!("maximum {}", rate(c.max_throughput_per_s)),
        tone: Tone::Muted,
    });
    plot.height = 320;
    plot.references.extend(knee(c));
    let rising = match is_rate(&c.levels) {
        true => Some((1.0, "served = asked")),
        false => c.throughput_per_user_per_s.map(|x1| (x1, "X₁·N")),
    };
    if let Some((slope, name)) = rising {
        let line = asymptote(&plot.x, slope, top * 1.1, name);
        plot = plot.with(line);
    }
    let measured = |l: &SweepLevel| {
        let range = l.throughput_ci95_per_s;
        Some(Point::with(value(l.level), l.throughput_per_s, range))
    };
    add_levels(
        plot,
        c,
        "measured",
        Tone::First,
        Mark::Dot,
        Dash::Solid,
        measured,
    )
    .described(c.answer.clone())
}

/// Response times with the bounds asked for; `None` where none are known.
pub(super) fn response(c: &SweepConclusion) -> Option<Plot> {
    type Figure = (
        &'static str,
        fn(&SweepLevel) -> Option<u64>,
        Tone,
        Mark,
        Dash,
    );
    let figures: [Figure; 3] = [
        (
            "p99",
            |l| l.p99_ns,
            Tone::Fourth,
            Mark::Square,
            Dash::Dotted,
        ),
        (
            "p90",
            |l| l.p90_ns,
            Tone::Second,
            Mark::Square,
            Dash::Dashed,
        ),
        ("mean", |l| l.mean_ns, Tone::First, Mark::Dot, Dash::Solid),
    ];
    let all = c
        .levels
        .iter()
        .flat_map(|l| figures.map(|(_, of, ..)| of(l)));
    let all: Vec<f64> = all.flatten().map(|ns| ns as f64).collect();
    if all.is_empty() {
        return None;
    }
    let bounds = c.bounds.iter().map(|b| b.limit_ns as f64);
    let y = Scale::fitting(all.into_iter().chain(bounds), Unit::Time, "response time");
    let title = format!("Response time against {}", load_name(&c.levels));
    let mut plot = Plot::new(title, load_scale(c), y);
    for bound in &c.bounds {
        plot = plot.against(Reference::Horizontal {
            y: bound.limit_ns as f64,
            label: format!("{} ≤ {}", bound.metric, time_short(bound.limit_ns)),
            tone: match bound.metric.as_str() {
                "mean" => Tone::First,
                "p90" => Tone::Second,
                "p99" => Tone::Fourth,
                _ => Tone::Muted,
            },
        });
    }
    plot.references.extend(knee(c));
    for (name, of, tone, mark, dash) in figures {
        if c.levels.iter().any(|l| of(l).is_some()) {
            let at = |l: &SweepLevel| Some(Point::new(value(l.level), of(l)? as f64));
            plot = add_levels(plot, c, name, tone, mark, dash, at);
        }
    }
    Some(plot)
}

/// What more throughput costs in response time: each level a point.
pub(super) fn trade(c: &SweepConclusion) -> Option<Plot> {
    let (name, of): (&str, fn(&SweepLevel) -> Option<u64>) =
        match c.levels.iter().any(|l| l.p90_ns.is_some()) {
            true => ("p90", |l| l.p90_ns),
            false => ("mean", |l| l.mean_ns),
        };
    let counted = c.levels.iter().filter(|l| l.excluded_because.is_none());
    let known = counted.filter_map(|l| Some((l, of(l)? as f64)));
    let known: Vec<(&SweepLevel, f64)> = known.collect();
    if known.len() < 2 {
        return None;
    }
    let x = known.iter().map(|(l, _)| l.throughput_per_s);
    let x = Scale::from_zero(x, Unit::PerS, "responses per second");
    let y = known.iter().map(|(_, ns)| *ns);
    let y = Scale::fitting(y, Unit::Time, format!("{name} response time"));
    let points = known
        .iter()
        .map(|(l, ns)| Point::new(l.throughput_per_s, *ns));
    let labels = known.iter().map(|(l, _)| level_name(l.level));
    let mut plot = Plot::new("Response time against throughput", x, y);
    plot.note = format!(
        "The figure beside each point is its level ({}). Best is low on the right; what climbs \
         there only queues.",
        load_name(&c.levels)
    );
    let series = Series::line("", points.collect()).marked(Mark::Dot);
    Some(plot.with(series.labelled(labels.collect())))
}

/// Processor time of the generator per operation; `None` where it is not known.
pub(super) fn cost(c: &SweepConclusion) -> Option<Plot> {
    let points: Vec<Point> = points(c, |l| {
        Some(Point::new(value(l.level), l.cpu_us_per_op? * 1e3))
    });
    if points.len() < 2 {
        return None;
    }
    let y = points.iter().map(|p| p.y);
    let y = Scale::from_zero(y, Unit::Time, "processor time per operation");
    let plot = Plot::new("What an operation costs the generator", load_scale(c), y);
    Some(plot.with(Series::line("", points).marked(Mark::Dot)))
}

/// Response time by percentile at the lowest level, the knee, the best and the highest.
pub(super) fn spectra(report: &Report, c: &SweepConclusion) -> Option<Plot> {
    let last = c.levels.len().checked_sub(1)?;
    let shown = c
        .levels
        .iter()
        .enumerate()
        .filter(|(i, l)| *i == 0 || *i == last || l.is_knee || l.is_best_within_bound);
    let looks = [
        (Tone::First, Dash::Solid),
        (Tone::Second, Dash::Dashed),
        (Tone::Third, Dash::DashDot),
        (Tone::Fourth, Dash::Dotted),
    ];
    let of_level = shown.filter_map(|(_, l)| {
        let mut trials = report.trials.iter();
        let trial = trials.find(|t| t.level == l.level)?;
        let known = trial.response_time_ns.spectrum.len() > 1;
        known.then_some((l, trial))
    });
    let series = of_level.zip(looks).map(|((l, trial), (tone, dash))| {
        let points = spectrum_points(&trial.response_time_ns);
        let line = Series::line(level_words(l.level), points)
            .toned(tone)
            .dashed(dash);
        (line, trial.response_time_ns.spectrum.as_slice())
    });
    let mut plot = spectrum(series.collect())?;
    plot.title = "Response time by percentile".into();
    plot.note = "The first trial of each level.".into();
    Some(plot)
}

/// Throughput of trials over time, those that do not count first, then those nearest to the knee,
/// as many as there is room for; in the order in which they were run.
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
    trials
        .into_iter()
        .map(|(_, t)| trial_over_time(t))
        .collect()
}

/// Throughput by round, one figure for each level on the same rounds.
pub(super) fn rounds(c: &SweepConclusion) -> Vec<Plot> {
    let last = c.slices.iter().map(|s| s.round).max().unwrap_or(0);
    if last < 2 {
        return Vec::new();
    }
    let of_level = |l: &SweepLevel| {
        let here = c
            .slices
            .iter()
            .filter(|s| s.round > 0 && s.level == l.level);
        let points: Vec<Point> = here
            .map(|s| Point::new(f64::from(s.round), s.throughput_per_s))
            .collect();
        (points.len() > 1).then(|| {
            let x = Scale::linear(1.0, f64::from(last), Unit::Count, "round");
            let y = Scale::from_zero(points.iter().map(|p| p.y), Unit::PerS, "answered");
            let mut plot = Plot::new(level_name(l.level), x, y);
            plot.height = 120;
            plot.with(Series::line("", points).marked(Mark::Dot))
        })
    };
    c.levels.iter().filter_map(of_level).collect()
}

fn trial_over_time(trial: &TrialReport) -> Plot {
    let intervals = trial.intervals.as_slice();
    let completed = stair(intervals, |i| i.per_s(i.completed));
    let y = completed.iter().map(|p| p.y);
    let y = Scale::from_zero(y, Unit::PerS, "answered");
    let mut plot = Plot::new(trial.label.clone(), time_scale(intervals), y);
    plot.zooms = true;
    plot.height = 120;
    if !trial.stationary {
        plot.note = "It drifts or jumps.".into();
    }
    plot.with(Series::step("", completed))
}

fn load_scale(c: &SweepConclusion) -> Scale {
    let values = c.levels.iter().map(|l| value(l.level));
    let (unit, name) = match is_rate(&c.levels) {
        true => (Unit::PerS, "rate asked"),
        false => (Unit::Count, "users"),
    };
    Scale::fitting(values.clone(), unit, name).marked_at(values)
}

/// The knee with its interval.
fn knee(c: &SweepConclusion) -> Option<Reference> {
    let (x, label) = match (is_rate(&c.levels), c.knee_rate_per_s, c.knee_vusers) {
        (true, Some(per_s), _) => (per_s, format!("knee {}/s", asked(per_s))),
        (false, _, Some(users)) => (users, format!("knee {} users", estimate(users))),
        (false, _, None) => {
            let [lo, hi] = c.knee_range?;
            let label = format!("knee {} to {} users", estimate(lo), estimate(hi));
            (lo, label)
        }
        _ => return None,
    };
    let range = c.knee_ci95.or(c.knee_range);
    Some(Reference::Vertical {
        x,
        label,
        tone: Tone::Third,
        range,
    })
}

/// The rising asymptote, up to where it leaves the plot.
fn asymptote(x: &Scale, slope: f64, top: f64, name: &str) -> Series {
    let [from, to] = x.ends();
    let to = to.min(top / slope);
    let places = (0..=LINE_POINTS).map(|i| from + (to - from) * i as f64 / LINE_POINTS as f64);
    let points = places.map(|n| Point::new(n, slope * n)).collect();
    Series::line(name, points)
        .toned(Tone::Muted)
        .dashed(Dash::Dashed)
        .unlisted()
}

/// The levels that count as a line, the others as hollow marks.
fn add_levels(
    plot: Plot,
    c: &SweepConclusion,
    name: &str,
    tone: Tone,
    mark: Mark,
    dash: Dash,
    point: impl Fn(&SweepLevel) -> Option<Point>,
) -> Plot {
    let counted = points(c, |l| point(l).filter(|_| l.excluded_because.is_none()));
    let out = points(c, |l| point(l).filter(|_| l.excluded_because.is_some()));
    let plot = plot.with(
        Series::line(name, counted)
            .toned(tone)
            .dashed(dash)
            .marked(mark),
    );
    if out.is_empty() {
        return plot;
    }
    let mark = if mark == Mark::Dot {
        Mark::Ring
    } else {
        Mark::Frame
    };
    let series = Series::points(format!("{name}, does not count"), out);
    plot.with(series.toned(tone).marked(mark))
}

fn points(c: &SweepConclusion, point: impl Fn(&SweepLevel) -> Option<Point>) -> Vec<Point> {
    c.levels.iter().filter_map(point).collect()
}

fn level_words(level: Level) -> String {
    match level {
        Level::Vusers(n) => plural(n.into(), "user"),
        Level::RatePerS(per_s) => format!("{}/s", asked(per_s)),
        Level::Clients(n) => plural(n.into(), "client"),
        Level::Descriptors(n) => plural(n.into(), "descriptor"),
        Level::Flows { up, down } => format!("{}/{}", number::count(up.into()), down),
    }
}

/// What the levels are levels of.
fn load_name(levels: &[SweepLevel]) -> &'static str {
    match is_rate(levels) {
        true => "rate asked/s",
        false => "users",
    }
}

/// Whether the levels are rates.
fn is_rate(levels: &[SweepLevel]) -> bool {
    levels.iter().any(|l| matches!(l.level, Level::RatePerS(_)))
}

/// A level as a number.
fn value(level: Level) -> f64 {
    match level {
        Level::Vusers(n) | Level::Clients(n) | Level::Descriptors(n) => f64::from(n),
        Level::RatePerS(r) => r,
        Level::Flows { up, down } => f64::from(up + down),
    }
}
