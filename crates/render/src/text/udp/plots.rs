//! Arrivals per millisecond, and their dispersion against the time scale, a curve for each law.

use crate::axis::Axis;
use crate::number::{number, time_short};
use crate::text::canvas::Stroke;
use crate::text::line::Ink;
use crate::text::page::Page;
use crate::text::plot::{self, Label, Layer, Place, Plot};
use knee_core::experiment::udp::report::LawRow;

/// Rows within the axes.
const ROWS: usize = 10;

/// Two plots stand beside each other where each has so many columns.
const COLUMNS_MIN: usize = 44;

/// Counts are drawn in so many groups at most, so that the marks of the laws can be told apart.
const GROUPS_MAX: usize = 20;

/// The lowest index of dispersion that is drawn: what is more even lies there too.
const INDEX_MIN: f64 = 0.01;

/// Laws are told apart by these, in their order: the mark, the mark in ASCII, the ink.
const SIGNS: [(char, char, Ink); 4] = [
    ('●', 'o', Ink::Data),
    ('◆', 'x', Ink::Warn),
    ('▲', '+', Ink::Good),
    ('■', '#', Ink::Bad),
];

/// Writes both, where enough arrived to draw anything.
pub fn show(page: &mut Page, laws: &[LawRow]) {
    let plots: Vec<Plot> = [per_ms(laws, page.unicode), dispersion(laws, page.unicode)]
        .into_iter()
        .flatten()
        .collect();
    if plots.is_empty() {
        return;
    }
    page.heading("How they arrive", "those that were received");
    let width = plot::width_of_two(page, COLUMNS_MIN);
    plot::show(page, &plots, ROWS, width);
}

fn sign(law: usize, unicode: bool) -> (char, Ink) {
    let (mark, ascii, ink) = SIGNS[law % SIGNS.len()];
    (if unicode { mark } else { ascii }, ink)
}

/// How many milliseconds had so many arrivals.
fn per_ms(laws: &[LawRow], unicode: bool) -> Option<Plot> {
    let longest = laws.iter().map(|law| law.arrivals_per_ms.len()).max()?;
    if longest < 2 {
        return None;
    }
    let group = longest.div_ceil(GROUPS_MAX);
    let curves: Vec<Vec<(f64, f64)>> = laws
        .iter()
        .map(|law| grouped(&law.arrivals_per_ms, group))
        .collect();
    let top = curves.iter().flatten().map(|p| p.1).fold(1.0, f64::max);
    let title = match group {
        1 => "milliseconds that had so many arrivals".to_owned(),
        n => format!("milliseconds that had so many arrivals, in groups of {n}"),
    };
    let x = Axis::linear(0.0, (longest - 1).max(1) as f64, number);
    let mut plot = Plot::new(title, x, Axis::logarithmic(0.7, top * 1.5, number));
    add_curves(&mut plot, laws, curves, unicode);
    Some(plot)
}

/// The sums of groups of counts, each at the middle of its group; those of nothing left out.
fn grouped(counts: &[u64], group: usize) -> Vec<(f64, f64)> {
    let groups = counts.chunks(group).enumerate();
    groups
        .map(|(i, counts)| {
            let middle = (i * group) as f64 + (counts.len() - 1) as f64 / 2.0;
            (middle, counts.iter().sum::<u64>() as f64)
        })
        .filter(|(_, n)| *n > 0.0)
        .collect()
}

/// The index of dispersion against the length of the bins, both logarithmic.
fn dispersion(laws: &[LawRow], unicode: bool) -> Option<Plot> {
    let curves: Vec<Vec<(f64, f64)>> = laws
        .iter()
        .map(|law| {
            let points = law.dispersion_by_scale.iter();
            let point = |at: &knee_core::trial::datagrams::DispersionAt| {
                (at.scale_ns as f64, at.index.max(INDEX_MIN))
            };
            points.map(point).collect()
        })
        .collect();
    if curves.iter().all(|curve| curve.len() < 2) {
        return None;
    }
    let all = || curves.iter().flatten();
    let (x_lo, x_hi) = all().fold((f64::MAX, 0.0_f64), |(lo, hi), p| {
        (lo.min(p.0), hi.max(p.0))
    });
    let (y_lo, y_hi) = all().fold((1.0_f64, 1.0_f64), |(lo, hi), p| (lo.min(p.1), hi.max(p.1)));
    let guide = Stroke {
        ink: Ink::Guide,
        dashed: true,
        ascii: '-',
    };
    let x = Axis::logarithmic(x_lo / 1.2, x_hi * 1.2, |ns| time_short(ns.round() as u64));
    let one = Layer::Curve(vec![(x.value(0.0), 1.0), (x.value(1.0), 1.0)], guide);
    let y = Axis::logarithmic(y_lo / 1.5, y_hi * 1.5, number);
    let mut plot = Plot::new("index of dispersion against the time scale", x, y);
    plot.layers.push(one);
    add_curves(&mut plot, laws, curves, unicode);
    plot.labels.push(Label {
        text: "Poisson = 1".to_owned(),
        ink: Ink::Guide,
        sign: if unicode { '╌' } else { '-' },
        at: Place::Level(1.0),
    });
    Some(plot)
}

fn add_curves(plot: &mut Plot, laws: &[LawRow], curves: Vec<Vec<(f64, f64)>>, unicode: bool) {
    for (i, (law, curve)) in laws.iter().zip(curves).enumerate() {
        plot.add_curve(curve, sign(i, unicode), &law.label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_around_their_middle() {
        assert_eq!(
            grouped(&[5, 0, 2, 2, 0, 0, 1], 2),
            [(0.5, 5.0), (2.5, 4.0), (6.0, 1.0)]
        );
    }

    #[test]
    fn nothing_is_drawn_where_nothing_arrived() {
        let law = LawRow {
            arrivals_per_ms: vec![10],
            ..LawRow::default()
        };
        assert!(per_ms(std::slice::from_ref(&law), true).is_none());
        assert!(dispersion(&[law], true).is_none());
        assert!(per_ms(&[], true).is_none());
    }
}
