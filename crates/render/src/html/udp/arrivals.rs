//! How datagrams arrive: how many in each millisecond, and how unevenly at every time scale.

use super::looking;
use crate::html::page::Page;
use crate::html::plot::{Dash, Mark, Plot, Point, Reference, Scale, Series, Tone, Unit};
use knee_core::experiment::udp::report::LawRow;
use knee_core::report::Report;
use knee_core::stats::gaps::Dispersion;

/// More numbers of arrivals than this are shown in groups.
const GROUPS_MAX: usize = 60;

/// No axis of dispersion begins below this: a metronome has none at all.
const INDEX_MIN: f64 = 0.001;

/// Writes both plots, where there is anything to draw.
pub fn show(page: &mut Page, report: &Report, laws: &[LawRow]) {
    let sent = match report.trials.as_slice() {
        [only] => only.offered.dispersion.as_ref(),
        _ => None,
    };
    let plots = [dispersion(laws, sent), per_ms(laws)];
    let plots: Vec<Plot> = plots.into_iter().flatten().collect();
    if plots.is_empty() {
        return;
    }
    page.section("How they arrive", "those that were received", |page| {
        page.plots(&plots);
    });
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
    let x = Scale::fitting(scales, 1.5, Unit::Time, "length of the bins");
    let (lo, hi) = all().fold((1.0_f64, 1.0_f64), |(lo, hi), p| {
        (lo.min(p.y.max(INDEX_MIN)), hi.max(p.y))
    });
    let y = Scale::logarithmic(lo / 1.5, hi * 1.5, Unit::Number, "variance over mean");
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
    let group = longest.div_ceil(GROUPS_MAX);
    let grouped = |law: &LawRow| -> Vec<Point> {
        let groups = law.arrivals_per_ms.chunks(group).enumerate();
        groups
            .map(|(i, counts)| {
                let middle = (i * group) as f64 + (counts.len() - 1) as f64 / 2.0;
                Point::new(middle, counts.iter().sum::<u64>() as f64)
            })
            .collect()
    };
    let curves: Vec<Vec<Point>> = laws.iter().map(grouped).collect();
    let x = Scale::linear(
        0.0,
        (longest - 1) as f64,
        Unit::Number,
        "arrivals in a millisecond",
    );
    let counts = curves.iter().flatten().map(|p| p.y);
    let y = Scale::fitting(counts, 30.0, Unit::Count, "milliseconds");
    let title = match group {
        1 => "Milliseconds that had so many arrivals".to_owned(),
        n => format!("Milliseconds that had so many arrivals, in groups of {n}"),
    };
    let mut plot = Plot::new(title, x, y);
    for (i, points) in curves.into_iter().enumerate() {
        if !points.is_empty() {
            plot = plot.with(looking(Series::line(name(laws, i), points), i).marked(Mark::None));
        }
    }
    Some(plot)
}
