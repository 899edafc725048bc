//! How datagrams arrive: how many in each millisecond, and how unevenly at every time scale.

use super::looking;
use crate::axis::span;
use crate::document::{Document, Layout};
use crate::plot::{Dash, Mark, Plot, Point, Reference, Scale, Series, Tone, Unit};
use knee_core::experiment::udp::report::LawRow;
use knee_core::report::Report;
use knee_core::stats::gaps::Dispersion;

/// No axis of dispersion begins below this: a metronome has none at all.
const INDEX_MIN: f64 = 0.001;

/// Adds both plots, where there is anything to draw.
pub(super) fn show(doc: &mut Document, report: &Report, laws: &[LawRow]) {
    let sent = match report.trials.as_slice() {
        [only] => only.offered.dispersion.as_ref(),
        _ => None,
    };
    let plots = [dispersion(laws, sent), per_ms(laws)];
    let plots: Vec<Plot> = plots.into_iter().flatten().collect();
    if !plots.is_empty() {
        doc.section("How they arrive", "those that were received");
        doc.plots(plots, Layout::Pairs);
    }
}

/// The index of dispersion against the length of the bins, both logarithmic; of what was sent too,
/// where that is of a single trial.
fn dispersion(laws: &[LawRow], sent: Option<&Dispersion>) -> Option<Plot> {
    let arrived = |law: &LawRow| -> Vec<Point> {
        let scales = law.dispersion_by_scale.iter();
        scales
            .map(|at| Point::new(at.scale_ns as f64, at.index))
            .collect()
    };
    let sent: Vec<Point> = sent.map_or_else(Vec::new, sent_points);
    let arrived: Vec<Vec<Point>> = laws.iter().map(arrived).collect();
    let all = || arrived.iter().flatten().chain(&sent);
    if all().count() < 2 {
        return None;
    }
    let scales = all().map(|p| p.x);
    let x = Scale::fitting(scales, Unit::Time, "length of the bins");
    let indices = all().map(|p| p.y.max(INDEX_MIN)).chain([1.0]);
    let y = Scale::around(span(indices)?, Unit::Number, "variance over mean");
    let mut plot = Plot::new("Index of dispersion against the time scale", x, y);
    if !sent.is_empty() {
        let sent = Series::line("sent", sent).toned(Tone::Muted);
        plot = plot.with(sent.dashed(Dash::Dotted).marked(Mark::Ring));
    }
    for (i, points) in arrived.into_iter().enumerate() {
        if !points.is_empty() {
            plot = plot.with(looking(Series::line(name(laws, i), points), i));
        }
    }
    Some(plot.against(Reference::Horizontal {
        y: 1.0,
        label: "Poisson: 1".to_owned(),
        tone: Tone::Muted,
    }))
}

fn name(laws: &[LawRow], law: usize) -> String {
    match laws.len() {
        1 => "arrived".to_owned(),
        _ => laws[law].label.clone(),
    }
}

fn sent_points(d: &Dispersion) -> Vec<Point> {
    let scales = [(1e6, d.ms1), (1e7, d.ms10), (1e8, d.ms100), (1e9, d.s1)];
    let known = scales.into_iter();
    known
        .filter_map(|(scale, index)| Some(Point::new(scale, index?)))
        .collect()
}

/// How many milliseconds had so many arrivals.
fn per_ms(laws: &[LawRow]) -> Option<Plot> {
    let longest = laws.iter().map(|law| law.arrivals_per_ms.len()).max()?;
    if longest < 2 {
        return None;
    }
    let points = |law: &LawRow| -> Vec<Point> {
        let counts = law.arrivals_per_ms.iter().enumerate();
        let counts = counts.filter(|(_, n)| **n > 0);
        counts
            .map(|(i, n)| Point::new(i as f64, *n as f64))
            .collect()
    };
    let curves: Vec<Vec<Point>> = laws.iter().map(points).collect();
    let last = (longest - 1) as f64;
    let x = Scale::linear(0.0, last, Unit::Number, "arrivals in a millisecond");
    let counts = curves.iter().flatten().map(|p| p.y);
    let y = Scale::fitting(counts, Unit::Count, "milliseconds");
    let mut plot = Plot::new("Arrivals per millisecond", x, y);
    for (i, points) in curves.into_iter().enumerate() {
        if !points.is_empty() {
            plot = plot.with(looking(Series::line(name(laws, i), points), i));
        }
    }
    Some(plot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_where_nothing_arrived() {
        let law = LawRow {
            arrivals_per_ms: vec![10],
            ..LawRow::default()
        };
        assert!(per_ms(std::slice::from_ref(&law)).is_none());
        assert!(dispersion(&[law], None).is_none());
        assert!(per_ms(&[]).is_none());
    }
}
