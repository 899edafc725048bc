//! The two plots of a sweep: throughput and response time against load.

use super::canvas::Stroke;
use super::line::Ink;
use super::plot::{Label, Layer, Place, Plot};
use crate::axis::Axis;
use crate::number::{estimate, number, rate, time_short};
use knee_core::experiment::sweep::report::{SweepConclusion, SweepLevel};
use knee_core::spec::Level;

/// A horizontal axis over more than this ratio is logarithmic.
const LOG_X_RATIO: f64 = 10.0;

/// A vertical axis of response times over more than this ratio is logarithmic.
const LOG_Y_RATIO: f64 = 30.0;

/// Space left free above and beside the data, as a share.
const MARGIN: f64 = 0.08;

/// Points that a straight line is drawn through, as the axes may bend it.
const LINE_POINTS: usize = 200;

/// Throughput with its two asymptotes and the knee.
pub fn throughput_plot(c: &SweepConclusion, unicode: bool) -> Plot {
    let points = points(&c.levels, |l| Some(l.throughput_per_s));
    let top = points
        .iter()
        .map(|p| p.1)
        .fold(c.max_throughput_per_s, f64::max);
    let x = load_axis(&c.levels);
    let y = Axis::linear(0.0, top * (1.0 + MARGIN), number);
    let dashed = Stroke {
        ink: Ink::Guide,
        dashed: true,
        ascii: '-',
    };
    let title = format!("throughput/s against {}", load_name(&c.levels));
    let mut plot = Plot::new(title, x, y);
    let sign = if unicode { '╌' } else { '-' };
    let label = |text: String, at| Label {
        text,
        ink: Ink::Guide,
        sign,
        at,
    };
    let rising = match is_rate(&c.levels) {
        true => Some((1.0, "served = asked")),
        false => c.throughput_per_user_per_s.map(|x1| (x1, "X₁·N")),
    };
    let maximum = c.max_throughput_per_s;
    plot.layers.push(flat(&plot.x, maximum, dashed));
    let text = format!("maximum {}", rate(maximum));
    plot.labels.push(label(text, Place::Level(maximum)));
    add_levels(&mut plot, c, &points, unicode);
    if let Some((slope, name)) = rising {
        let places = (0..=LINE_POINTS).map(|i| plot.x.value(i as f64 / LINE_POINTS as f64));
        let line: Vec<(f64, f64)> = places.map(|n| (n, slope * n)).collect();
        plot.layers.insert(0, Layer::Curve(line.clone(), dashed));
        plot.labels
            .push(label(name.to_string(), Place::Along(line)));
    }
    plot
}

/// The 90th percentile (or the mean, where that is all there is) with the bound and the knee;
/// `None` where no response times are known.
pub fn response_plot(c: &SweepConclusion, unicode: bool) -> Option<Plot> {
    let mut metric = "p90";
    let mut points = points(&c.levels, |l| l.p90_ns.map(|t| t as f64));
    if points.len() < 2 {
        metric = "mean";
        points = self::points(&c.levels, |l| l.mean_ns.map(|t| t as f64));
    }
    if points.len() < 2 {
        return None;
    }
    let bound = c
        .bounds
        .iter()
        .find(|b| b.metric == metric)
        .map(|b| b.limit_ns as f64);
    let values = points.iter().map(|p| p.1).chain(bound);
    let (low, high) = values.fold((f64::MAX, 0.0_f64), |(lo, hi), v| (lo.min(v), hi.max(v)));
    let label = |ns: f64| {
        if ns < 1.0 {
            "0".to_string()
        } else {
            time_short(ns as u64)
        }
    };
    let y = if high > LOG_Y_RATIO * low {
        Axis::logarithmic(low / 1.5, high * 1.5, label)
    } else {
        Axis::linear(0.0, high * (1.0 + MARGIN), label)
    };
    let x = load_axis(&c.levels);
    let title = format!("{metric} response time against {}", load_name(&c.levels));
    let mut plot = Plot::new(title, x, y);
    if let Some(bound) = bound {
        let stroke = Stroke {
            ink: Ink::Warn,
            dashed: true,
            ascii: '-',
        };
        plot.layers.push(flat(&plot.x, bound, stroke));
        let sign = if unicode { '╌' } else { '-' };
        plot.labels.push(Label {
            text: format!("bound {}", label(bound)),
            ink: Ink::Warn,
            sign,
            at: Place::Level(bound),
        });
    }
    add_levels(&mut plot, c, &points, unicode);
    Some(plot)
}

/// The measured levels, joined by a line, and the knee, with their entries in the legend.
fn add_levels(plot: &mut Plot, c: &SweepConclusion, points: &[(f64, f64)], unicode: bool) {
    let [measured, out, knee] = if unicode {
        ['●', '○', '╎']
    } else {
        ['o', 'x', ':']
    };
    let load = |l: &SweepLevel| value(l.level);
    let left_out: Vec<f64> = c
        .levels
        .iter()
        .filter(|l| l.excluded_because.is_some())
        .map(load)
        .collect();
    let (aside, counted): (Vec<_>, Vec<_>) = points
        .iter()
        .copied()
        .partition(|p| left_out.contains(&p.0));
    let stroke = Stroke {
        ink: Ink::Data,
        dashed: false,
        ascii: '.',
    };
    plot.layers.push(Layer::Curve(counted.clone(), stroke));
    plot.layers.push(Layer::Marks(counted, measured, Ink::Data));
    plot.legend
        .insert(0, (measured, Ink::Data, "measured".to_string()));
    if !aside.is_empty() {
        plot.layers.push(Layer::Marks(aside, out, Ink::Dim));
        plot.legend.push((out, Ink::Dim, "out".to_string()));
    }
    let at = if is_rate(&c.levels) {
        c.knee_rate_per_s
    } else {
        c.knee_vusers
    };
    if let Some(at) = at.filter(|n| (0.0..=1.0).contains(&plot.x.position(*n))) {
        plot.layers.push(Layer::Vertical(at, knee, Ink::Good));
        let text = if is_rate(&c.levels) {
            rate(at)
        } else {
            estimate(at)
        };
        plot.labels.push(Label {
            text: format!("knee {text}"),
            ink: Ink::Good,
            sign: knee,
            at: Place::Upright(at),
        });
    }
}

fn points(levels: &[SweepLevel], y: impl Fn(&SweepLevel) -> Option<f64>) -> Vec<(f64, f64)> {
    levels
        .iter()
        .filter_map(|l| Some((value(l.level), y(l)?)))
        .collect()
}

fn flat(x: &Axis, y: f64, stroke: Stroke) -> Layer {
    Layer::Curve(vec![(x.value(0.0), y), (x.value(1.0), y)], stroke)
}

fn load_axis(levels: &[SweepLevel]) -> Axis {
    let values = levels.iter().map(|l| value(l.level));
    let (low, high) = values.fold((f64::MAX, 0.0_f64), |(lo, hi), v| (lo.min(v), hi.max(v)));
    if high > LOG_X_RATIO * low && low > 0.0 {
        let margin = (high / low).powf(MARGIN / 2.0);
        Axis::logarithmic(low / margin, high * margin, number)
    } else {
        Axis::linear(0.0, high * (1.0 + MARGIN / 2.0), number)
    }
}

/// What the levels are levels of.
pub fn load_name(levels: &[SweepLevel]) -> &'static str {
    if is_rate(levels) {
        "rate asked/s"
    } else {
        "users"
    }
}

/// Whether the levels are rates.
pub fn is_rate(levels: &[SweepLevel]) -> bool {
    levels.iter().any(|l| matches!(l.level, Level::RatePerS(_)))
}

/// A level as a number.
pub fn value(level: Level) -> f64 {
    match level {
        Level::Vusers(n) | Level::Clients(n) | Level::Descriptors(n) => f64::from(n),
        Level::RatePerS(r) => r,
        Level::Flows { up, down } => f64::from(up + down),
    }
}
