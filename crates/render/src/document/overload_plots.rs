//! Load beyond capacity: what arrives against clients and against descriptors, what is served of
//! it, and how attempts end.

use super::overload::end;
use crate::axis;
use crate::number::{count, fixed, rate};
use crate::plot::{Dash, Mark, Plot, Point, Reference, Scale, Series, Tone, Unit};
use knee_core::experiment::overload::report::OverloadConclusion;
use knee_core::measure::{Outcome, Outcomes};

/// Height of the bar of one level, in CSS pixels.
const ROW_PX: u32 = 24;

/// How pieces of bars look, after what was served.
const TONES: [Tone; 4] = [Tone::Second, Tone::Fourth, Tone::Bad, Tone::Third];

/// The top of both plots of what arrives, so that the one is seen to be flat.
fn top(c: &OverloadConclusion) -> f64 {
    let simple = c.simple.iter().map(|r| r.row.syn_per_s);
    let sclients = c.sclients.iter();
    let sclients = sclients.flat_map(|r| [r.row.syn_per_s, r.offered_per_s]);
    axis::top(simple.chain(sclients).chain([c.capacity_per_s]))
}

fn capacity(c: &OverloadConclusion) -> Reference {
    Reference::Horizontal {
        y: c.capacity_per_s,
        label: format!("capacity {}", rate(c.capacity_per_s)),
        tone: Tone::Muted,
    }
}

/// A plot over the capacity, and over where the generator was the limit if it was.
fn over_capacity(c: &OverloadConclusion, title: &str, x: Scale, top: f64) -> Plot {
    let y = Scale::from_zero([top], Unit::PerS, "connections");
    let mut plot = Plot::new(title, x, y).against(capacity(c));
    let offered = c.sclients.iter().map(|r| r.offered_per_s);
    let most = axis::top(offered);
    // A limit that nothing was offered beyond is none that was met.
    if let Some(limit) = c.generator_limit_per_s.filter(|limit| *limit < 0.99 * most) {
        plot = plot.against(Reference::Horizontal {
            y: limit,
            label: format!("the generator kept up to {}", rate(limit)),
            tone: Tone::Fourth,
        });
    }
    plot
}

/// What arrives from simple clients: no more than is served, however many there are.
pub(super) fn simple(c: &OverloadConclusion) -> Option<Plot> {
    if c.simple.len() < 2 {
        return None;
    }
    let clients = c.simple.iter().map(|r| f64::from(r.clients));
    let x = Scale::fitting(clients, Unit::Count, "simple clients");
    let points = |of: &dyn Fn(usize) -> (f64, Option<[f64; 2]>)| -> Vec<Point> {
        let rows = c.simple.iter().enumerate();
        rows.map(|(i, r)| Point::with(r.clients.into(), of(i).0, of(i).1))
            .collect()
    };
    let rows = &c.simple;
    let all = points(&|i| (rows[i].row.syn_per_s, None));
    let first = points(&|i| (rows[i].row.first_syn_per_s, None));
    let served = points(&|i| (rows[i].row.served_per_s, rows[i].row.served_ci95_per_s));
    let plot = over_capacity(c, "Simple clients", x, top(c));
    Some(curves(plot, all, first, served))
}

/// What arrives from S-Clients: 1/T more for each descriptor.
pub(super) fn sclients(c: &OverloadConclusion) -> Option<Plot> {
    if c.sclients.len() < 2 {
        return None;
    }
    let rows = &c.sclients;
    let most = axis::top(rows.iter().map(|r| f64::from(r.descriptors)));
    let x = Scale::from_zero([most], Unit::Count, "descriptors of S-Clients");
    let points = |of: &dyn Fn(usize) -> (f64, Option<[f64; 2]>)| -> Vec<Point> {
        let rows = rows.iter().enumerate();
        rows.map(|(i, r)| Point::with(r.descriptors.into(), of(i).0, of(i).1))
            .collect()
    };
    let all = points(&|i| (rows[i].row.syn_per_s, None));
    let first = points(&|i| (rows[i].row.first_syn_per_s, None));
    let served = points(&|i| (rows[i].row.served_per_s, rows[i].row.served_ci95_per_s));
    let mut plot = over_capacity(c, "S-Clients", x, top(c));
    if let Some(slope) = c.slope_per_descriptor {
        let line = [0.0, most].map(|d| Point::new(d, c.capacity_per_s + slope * d));
        let series = Series::line("fitted", line.into()).toned(Tone::Muted);
        plot = plot.with(series.dashed(Dash::Dotted).unlisted());
        let slope = fixed(slope, 3);
        plot.note = format!("fitted: the capacity and {slope}/s for each descriptor");
    }
    Some(curves(plot, all, first, served))
}

fn curves(plot: Plot, all: Vec<Point>, first: Vec<Point>, served: Vec<Point>) -> Plot {
    let repeats = all.iter().zip(&first).any(|(all, first)| all.y > first.y);
    let mut plot = plot;
    if repeats {
        let series = Series::line("all SYNs", all).toned(Tone::Second);
        plot = plot.with(series.dashed(Dash::DashDot).marked(Mark::Ring));
    }
    let served = Series::line("served", served).toned(Tone::Third);
    plot.with(Series::line("first SYNs", first).marked(Mark::Dot))
        .with(served.dashed(Dash::Dashed).marked(Mark::Square))
}

/// Served per second against offered; `None` where there are too few levels, or nothing was
/// served.
pub(super) fn served(c: &OverloadConclusion) -> Option<Plot> {
    if c.sclients.is_empty() || c.simple.len() + c.sclients.len() < 2 || c.capacity_per_s <= 0.0 {
        return None;
    }
    let simple = c.simple.iter();
    let simple: Vec<Point> = simple
        .map(|r| {
            Point::with(
                r.row.first_syn_per_s,
                r.row.served_per_s,
                r.row.served_ci95_per_s,
            )
        })
        .collect();
    let sclients = c.sclients.iter();
    let sclients: Vec<Point> = sclients
        .map(|r| Point::with(r.offered_per_s, r.row.served_per_s, r.row.served_ci95_per_s))
        .collect();
    let all = || simple.iter().chain(&sclients);
    let x = Scale::from_zero(all().map(|p| p.x), Unit::PerS, "offered");
    let most = axis::top(all().map(|p| p.y).chain([c.capacity_per_s]));
    let y = Scale::from_zero([1.1 * most], Unit::PerS, "served");
    let mut plot = Plot::new("Served against offered", x, y).against(capacity(c));
    plot.height = 180;
    plot = plot.with(Series::line("S-Clients", sclients).marked(Mark::Dot));
    if !simple.is_empty() {
        let series = Series::points("simple clients", simple).toned(Tone::Second);
        plot = plot.with(series.marked(Mark::Ring));
    }
    Some(plot)
}

/// How the attempts of each level ended.
pub(super) fn ends(c: &OverloadConclusion, by_schedule: bool) -> Plot {
    let rows = &c.sclients;
    let names = rows.iter().map(|r| count(r.descriptors.into())).collect();
    let total = |o: &Outcomes| o.total() as f64;
    let x = Scale::from_zero(
        rows.iter().map(|r| total(&r.row.outcomes)),
        Unit::Count,
        "attempts",
    );
    let title = match by_schedule {
        true => "How attempts ended, by the most in flight",
        false => "How attempts ended, by descriptors",
    };
    let mut plot = Plot::new(title, x, Scale::categories(names, ""));
    plot.height = (ROW_PX * rows.len() as u32).max(48);
    let mut begins = vec![0.0; rows.len()];
    let mut others = 0;
    let served_first = Outcome::ALL.iter().filter(|o| **o == Outcome::Served);
    let rest = Outcome::ALL.iter().filter(|o| **o != Outcome::Served);
    for outcome in served_first.chain(rest) {
        if rows.iter().all(|r| r.row.outcomes.count(*outcome) == 0) {
            continue;
        }
        let pieces = rows.iter().zip(&mut begins).enumerate();
        let pieces = pieces.map(|(i, (r, begin))| {
            let n = r.row.outcomes.count(*outcome) as f64;
            let from = *begin;
            *begin += n;
            Point::with(n, i as f64, Some([from, *begin]))
        });
        let tone = match outcome {
            Outcome::Served => Tone::First,
            _ => {
                others += 1;
                TONES[(others - 1) % TONES.len()]
            }
        };
        let series = Series::stack(end(*outcome), pieces.collect(), 0.7);
        plot = plot.with(series.toned(tone));
    }
    plot
}
