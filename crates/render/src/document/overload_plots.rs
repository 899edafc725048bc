//! The figures of an overload: arrivals against clients and descriptors, throughput, and how
//! attempts end.

use super::overload::end;
use crate::axis;
use crate::number::{count, fixed, rate};
use crate::plot::{Dash, Mark, Plot, PlotSeries, Point, Reference, Scale, Tone, Unit};
use knee_core::experiment::overload::report::{LevelRow, OverloadConclusion};
use knee_load::measure::Outcome;

/// Height of the bar of one level, in CSS pixels.
const ROW_PX: u32 = 24;

/// The colours of outcomes other than served, in turn.
const TONES: [Tone; 4] = [Tone::Second, Tone::Fourth, Tone::Bad, Tone::Third];

/// The top of both plots of arrivals; that of simple clients looks flat in comparison.
fn top(c: &OverloadConclusion) -> f64 {
    let simple = c.simple.iter().map(|r| r.row.syn_per_s);
    let sclients = c.sclients.iter().flat_map(|r| [r.row.syn_per_s, r.offered_per_s]);
    axis::top(simple.chain(sclients).chain([c.capacity_per_s]))
}

fn capacity(c: &OverloadConclusion) -> Reference {
    Reference::y(c.capacity_per_s, format!("capacity {}", rate(c.capacity_per_s)))
}

/// A plot of arrivals with the capacity, and with the generator's limit if one was met.
fn over_capacity(c: &OverloadConclusion, title: &str, x: Scale) -> Plot {
    let arrivals = if c.is_of_datagrams() { "requests" } else { "connections" };
    let y = Scale::from_zero([top(c)], Unit::PerS, arrivals);
    let plot = Plot::new(title, x, y).against(capacity(c));
    let most = axis::top(c.sclients.iter().map(|r| r.offered_per_s));
    match c.generator_limit_per_s {
        Some(limit) if limit < 0.99 * most => {
            let label = format!("the generator kept up to {}", rate(limit));
            plot.against(Reference::y(limit, label).toned(Tone::Fourth))
        }
        _ => plot,
    }
}

/// Arrivals from simple clients, which never exceed the throughput.
pub(super) fn simple(c: &OverloadConclusion) -> Option<Plot> {
    if c.simple.len() < 2 {
        return None;
    }
    let rows: Vec<(f64, &LevelRow)> = c.simple.iter().map(|r| (r.clients.into(), &r.row)).collect();
    let clients = rows.iter().map(|(clients, _)| *clients);
    let x = Scale::fitting(clients, Unit::Count, "simple clients");
    Some(curves(over_capacity(c, "Simple clients", x), c, &rows))
}

/// Arrivals from S-Clients, 1/T per descriptor.
pub(super) fn sclients(c: &OverloadConclusion) -> Option<Plot> {
    if c.sclients.len() < 2 {
        return None;
    }
    let rows = c.sclients.iter().map(|r| (r.descriptors.into(), &r.row));
    let rows: Vec<(f64, &LevelRow)> = rows.collect();
    let most = axis::top(rows.iter().map(|(descriptors, _)| *descriptors));
    let x = Scale::from_zero([most], Unit::Count, "descriptors of S-Clients");
    let mut plot = over_capacity(c, "S-Clients", x);
    if let Some(slope) = c.slope_per_descriptor {
        let line = [0.0, most].map(|d| Point::new(d, c.capacity_per_s + slope * d));
        let series = PlotSeries::line("fitted", line.into()).toned(Tone::Muted);
        let slope = fixed(slope, 3);
        plot = plot
            .with(series.dashed(Dash::Dotted).unlisted())
            .noted(format!("fitted: the capacity and {slope}/s for each descriptor"));
    }
    Some(curves(plot, c, &rows))
}

/// Adds what arrives and throughput of rows at these places on x.
fn curves(mut plot: Plot, c: &OverloadConclusion, rows: &[(f64, &LevelRow)]) -> Plot {
    let points = |rate: fn(&LevelRow) -> f64| -> Vec<Point> {
        rows.iter().map(|(x, row)| Point::new(*x, rate(row))).collect()
    };
    if rows.iter().any(|(_, row)| row.syn_per_s > row.first_syn_per_s) {
        let series = PlotSeries::line("all SYNs", points(|row| row.syn_per_s)).toned(Tone::Second);
        plot = plot.with(series.dashed(Dash::DashDot).marked(Mark::Ring));
    }
    let served = rows.iter().map(|(x, row)| served_at(*x, row)).collect();
    let served = PlotSeries::line("served", served).toned(Tone::Third);
    let name = if c.is_of_datagrams() { "sent" } else { "first SYNs" };
    let first = PlotSeries::line(name, points(|row| row.first_syn_per_s));
    plot.with(first.marked(Mark::Dot)).with(served.dashed(Dash::Dashed).marked(Mark::Square))
}

fn served_at(x: f64, row: &LevelRow) -> Point {
    Point::with(x, row.served_per_s, row.served_ci95_per_s)
}

/// Throughput against offered load; `None` with too few levels or no throughput.
pub(super) fn served(c: &OverloadConclusion) -> Option<Plot> {
    if c.sclients.is_empty() || c.simple.len() + c.sclients.len() < 2 || c.capacity_per_s <= 0.0 {
        return None;
    }
    let simple = c.simple.iter().map(|r| served_at(r.row.first_syn_per_s, &r.row));
    let simple: Vec<Point> = simple.collect();
    let sclients = c.sclients.iter().map(|r| served_at(r.offered_per_s, &r.row));
    let sclients: Vec<Point> = sclients.collect();
    let all = || simple.iter().chain(&sclients);
    let x = Scale::from_zero(all().map(|p| p.x), Unit::PerS, "offered");
    let most = axis::top(all().map(|p| p.y).chain([c.capacity_per_s]));
    let y = Scale::from_zero([1.1 * most], Unit::PerS, "served");
    let plot = Plot::new("Served against offered", x, y)
        .high(180)
        .against(capacity(c))
        .with(PlotSeries::line("S-Clients", sclients).marked(Mark::Dot));
    let simple = PlotSeries::marks("simple clients", simple).toned(Tone::Second);
    Some(plot.with_any(simple.marked(Mark::Ring)))
}

/// How the attempts of each level ended.
pub(super) fn ends(c: &OverloadConclusion, by_schedule: bool) -> Plot {
    let rows = &c.sclients;
    let totals = rows.iter().map(|r| r.row.outcomes.total() as f64);
    let x = Scale::from_zero(totals, Unit::Count, "attempts");
    let title = if by_schedule {
        "How attempts ended, by the most in flight"
    } else {
        "How attempts ended, by descriptors"
    };
    let names = rows.iter().map(|r| count(r.descriptors.into()));
    let mut plot = Plot::of_rows(title, x, names, ROW_PX);
    plot.height = plot.height.max(48);
    let mut begins = vec![0.0; rows.len()];
    let mut tones = TONES.into_iter().cycle();
    let others = Outcome::ALL.into_iter().filter(|o| *o != Outcome::Served);
    for outcome in [Outcome::Served].into_iter().chain(others) {
        if rows.iter().all(|r| r.row.outcomes.count(outcome) == 0) {
            continue;
        }
        let pieces = rows.iter().zip(&mut begins).enumerate();
        let pieces = pieces.map(|(i, (r, begin))| {
            let n = r.row.outcomes.count(outcome) as f64;
            let from = *begin;
            *begin += n;
            Point::with(n, i as f64, Some([from, *begin]))
        });
        let series = PlotSeries::stack(end(outcome), pieces.collect(), 0.7);
        plot = plot.with(match outcome {
            Outcome::Served => series,
            _ => series.toned(tones.next().unwrap_or_default()),
        });
    }
    plot
}
