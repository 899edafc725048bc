//! Figures with a row for each scenario, all in the same order.

use super::{Shown, name, names_controls};
use crate::number::time_short;
use crate::plot::{Mark, Plot, Point, Reference, Scale, Series, Tone, Unit};
use knee_core::experiment::latency::report::{LatencyConclusion, ScenarioRow};
use knee_core::measure::Direction;

/// Height of one row, in CSS pixels.
const ROW_PX: u32 = 24;

/// By how much marks of uploads stand above the middle of a row, and those of downloads below it.
const ASIDE: f64 = 0.16;

/// Uploads and downloads are told apart by colour and by mark.
pub(super) const UP: (Tone, Mark) = (Tone::First, Mark::Dot);
/// See [`UP`].
pub(super) const DOWN: (Tone, Mark) = (Tone::Third, Mark::Frame);

/// Capacity, latency and frequencies.
pub(super) fn figures(c: &LatencyConclusion, shown: &[Shown]) -> Vec<Plot> {
    let mut figures = vec![capacity(&c.scenarios)];
    figures.extend(latency(c, shown));
    figures.extend(frequencies(&c.scenarios));
    figures
}

fn plot(title: &str, x: Scale, rows: &[&ScenarioRow]) -> Plot {
    let with_control = names_controls(rows.iter().copied());
    let names = rows.iter().map(|row| name(row, with_control)).collect();
    let mut plot = Plot::new(title, x, Scale::categories(names, ""));
    plot.height = (ROW_PX * rows.len() as u32).max(60);
    plot
}

/// A point for each row that has the figure.
fn points<T>(rows: &[T], of: impl Fn(&T) -> Option<f64>) -> Vec<Point> {
    let rows = rows.iter().enumerate();
    rows.filter_map(|(i, row)| Some(Point::new(of(row)?, i as f64)))
        .collect()
}

fn marked(name: &str, points: Vec<Point>, (tone, mark): (Tone, Mark)) -> Series {
    Series::points(name, points).toned(tone).marked(mark)
}

fn capacity(rows: &[ScenarioRow]) -> Plot {
    let up = points(rows, |row| row.up_kib_per_s);
    let down = points(rows, |row| row.down_kib_per_s);
    let all = up.iter().chain(&down).map(|p| p.x);
    let x = Scale::from_zero(all, Unit::KibPerS, "goodput");
    let rows: Vec<&ScenarioRow> = rows.iter().collect();
    plot("Capacity", x, &rows)
        .with(marked("up", aside(up, -ASIDE), UP))
        .with(marked("down", aside(down, ASIDE), DOWN))
}

fn aside(mut points: Vec<Point>, by: f64) -> Vec<Point> {
    points.iter_mut().for_each(|p| p.y += by);
    points
}

/// A figure of each scenario: its name, its look, and where it stands.
type Figure = (&'static str, Tone, Mark, fn(&Shown) -> Option<u64>);

/// From the median to the longest ping of each scenario, with the idle path's median to compare.
fn latency(c: &LatencyConclusion, shown: &[Shown]) -> Option<Plot> {
    if shown.is_empty() {
        return None;
    }
    let figures: [Figure; 3] = [
        ("p50", Tone::First, Mark::Dot, |s| {
            s.flows.tcp.round_trip_ns.p50
        }),
        ("p99", Tone::Second, Mark::Square, |s| {
            s.flows.tcp.round_trip_ns.p99
        }),
        ("longest", Tone::Muted, Mark::Ring, |s| {
            Some(s.flows.latency_ns_max)
        }),
    ];
    let idle = c.idle_ns.as_ref().and_then(|idle| Some(idle.p50? as f64));
    let all = shown.iter().flat_map(|s| figures.map(|f| f.3(s)));
    let all = all.flatten().map(|ns| ns as f64);
    let x = Scale::fitting(all.chain(idle), Unit::Time, "round trip");
    let rows: Vec<&ScenarioRow> = shown.iter().map(|s| s.row).collect();
    let mut plot = plot("Latency under load", x, &rows);
    for (name, tone, mark, of) in figures {
        let points = points(shown, |s| Some(of(s)? as f64));
        plot = plot.with(marked(name, points, (tone, mark)));
    }
    if let Some(idle) = idle {
        plot = plot.against(Reference::Vertical {
            x: idle,
            label: format!("idle {}", time_short(idle as u64)),
            tone: Tone::Muted,
            range: None,
        });
    }
    Some(plot)
}

fn frequencies(rows: &[ScenarioRow]) -> Option<Plot> {
    let smooth = points(rows, |row| row.smoothness_hz);
    let responsive = points(rows, |row| row.responsiveness_hz);
    let all = || smooth.iter().chain(&responsive).map(|p| p.x);
    all().next()?;
    // A logarithmic scale has no place for the zero of a flow that was lost.
    let has_zero = all().any(|hz| hz <= 0.0);
    let x = match has_zero {
        true => Scale::from_zero(all(), Unit::Hertz, "frequency"),
        false => Scale::fitting(all(), Unit::Hertz, "frequency"),
    };
    let rows: Vec<&ScenarioRow> = rows.iter().collect();
    let mut plot = plot("Smoothness and responsiveness", x, &rows);
    plot.note = "smoothness: 1 / the longest gap in the data of any flow; responsiveness: 1 / the \
                 longest round trip"
        .into();
    if !responsive.is_empty() {
        let look = (Tone::Second, Mark::Square);
        plot = plot.with(marked("responsiveness", responsive, look));
    }
    Some(plot.with(marked("smoothness", smooth, (Tone::Fourth, Mark::Ring))))
}

/// The goodput of every flow.
pub(super) fn flows(rows: &[ScenarioRow]) -> Plot {
    let of = |direction: Direction| -> Vec<Point> {
        let rows = rows.iter().enumerate();
        rows.flat_map(|(i, row)| {
            let flows = row.flows.iter().filter(move |f| f.direction == direction);
            flows.map(move |f| Point::new(f.goodput_kib_per_s, i as f64))
        })
        .collect()
    };
    let (up, down) = (of(Direction::Up), of(Direction::Down));
    let all = || up.iter().chain(&down).map(|p| p.x);
    let x = match all().any(|kib| kib <= 0.0) {
        true => Scale::from_zero(all(), Unit::KibPerS, "goodput"),
        false => Scale::fitting(all(), Unit::KibPerS, "goodput"),
    };
    let refs: Vec<&ScenarioRow> = rows.iter().collect();
    let mut plot = plot("Goodput of each flow", x, &refs);
    plot.note = "a mark for each flow: the closer together, the fairer".into();
    plot.with(marked("up", aside(up, -ASIDE), UP))
        .with(marked("down", aside(down, ASIDE), DOWN))
}
