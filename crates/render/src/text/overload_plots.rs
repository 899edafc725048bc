//! The plots of an overload: what arrives against clients and descriptors, and what is served
//! against what is offered.

use super::canvas::Stroke;
use super::line::Ink;
use super::plot::{Label, Layer, Place, Plot};
use crate::axis::Axis;
use crate::number::{number, rate};
use knee_core::experiment::overload::report::OverloadConclusion;

/// Space left free above and beside the data, as a share.
const MARGIN: f64 = 0.06;

const GUIDE: Stroke = Stroke {
    ink: Ink::Guide,
    dashed: true,
    ascii: '-',
};

/// First SYNs per second against simple clients and against descriptors, as far as there are
/// several of them. Both have the same vertical axis, so that the one is seen to be flat.
pub fn arriving_plots(c: &OverloadConclusion, unicode: bool) -> Vec<Plot> {
    let simple: Vec<(f64, f64)> = c
        .simple
        .iter()
        .map(|r| (f64::from(r.clients), r.first_syn_per_s))
        .collect();
    let sclients: Vec<(f64, f64)> = c
        .sclients
        .iter()
        .map(|r| (f64::from(r.descriptors), r.first_syn_per_s))
        .collect();
    let offered = c.sclients.iter();
    let offered: Vec<(f64, f64)> = offered
        .map(|r| (f64::from(r.descriptors), r.offered_per_s))
        .collect();
    let all = [&simple, &sclients, &offered].into_iter().flatten();
    let top = all.map(|p| p.1).fold(0.0, f64::max);
    let mut plots = Vec::new();
    if simple.len() > 1 {
        let title = "SYN/s at the server against simple clients";
        plots.push(plot(title, simple, top, c.capacity_per_s, unicode));
    }
    if sclients.len() > 1 {
        let title = "SYN/s at the server against descriptors";
        let mut plot = plot(title, sclients, top, c.capacity_per_s, unicode);
        plot.layers.insert(0, Layer::Curve(offered.clone(), GUIDE));
        plot.labels
            .push(guide("served + D/T", Place::Along(offered), unicode));
        plots.push(plot);
    }
    plots
}

/// Served per second against offered; `None` where there are too few levels, or nothing was
/// served.
pub fn served_plot(c: &OverloadConclusion, unicode: bool) -> Option<Plot> {
    let simple = c.simple.iter();
    let simple: Vec<(f64, f64)> = simple
        .map(|r| (r.first_syn_per_s, r.served_per_s))
        .collect();
    let sclients = c.sclients.iter();
    let sclients: Vec<(f64, f64)> = sclients
        .map(|r| (r.offered_per_s, r.served_per_s))
        .collect();
    let too_few = sclients.is_empty() || simple.len() + sclients.len() < 2;
    if too_few || c.capacity_per_s <= 0.0 {
        return None;
    }
    let all = simple.iter().chain(&sclients);
    let top = all.map(|p| p.1).fold(c.capacity_per_s, f64::max);
    let title = "served/s against offered/s";
    let mut plot = plot(title, sclients, 1.25 * top, c.capacity_per_s, unicode);
    let mark = if unicode { '○' } else { 'x' };
    if !simple.is_empty() {
        plot.layers.push(Layer::Marks(simple, mark, Ink::Data));
        let name = "simple clients".to_string();
        plot.legend.push((mark, Ink::Data, name));
    }
    Some(plot)
}

/// Points with a line through them over the level of the capacity.
fn plot(
    title: &str,
    points: Vec<(f64, f64)>,
    top: f64,
    capacity_per_s: f64,
    unicode: bool,
) -> Plot {
    let last = points.iter().map(|p| p.0).fold(0.0, f64::max);
    let x = Axis::linear(0.0, last * (1.0 + MARGIN), number);
    let y = Axis::linear(0.0, top * (1.0 + MARGIN), number);
    let flat = vec![
        (x.value(0.0), capacity_per_s),
        (x.value(1.0), capacity_per_s),
    ];
    let mark = if unicode { '●' } else { 'o' };
    let mut plot = Plot::new(title, x, y);
    plot.layers.push(Layer::Curve(flat, GUIDE));
    plot.add_curve(points, (mark, Ink::Data), "measured");
    let capacity = format!("capacity {}", rate(capacity_per_s));
    let level = Place::Level(capacity_per_s);
    plot.labels.push(guide(&capacity, level, unicode));
    plot
}

fn guide(text: &str, at: Place, unicode: bool) -> Label {
    Label {
        text: text.to_string(),
        ink: Ink::Guide,
        sign: if unicode { '╌' } else { '-' },
        at,
    }
}
