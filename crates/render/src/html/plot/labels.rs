//! Words within a plot: names of lines at their ends, of references, of points; the legend.

use super::draw::{classes, percent, tone_class};
use super::room::Room;
use super::{Mark, Plot, Point, Reference, Series, Shape, Tone};
use crate::html::markup::Markup;

/// Least distance of two names at the side, in CSS pixels.
const SIDE_GAP_PX: f64 = 14.0;

/// A line that ends before this share of the width has its name at its end within the plot.
const EARLY: f64 = 0.93;

/// A place for words: shares from the left and from the top, and by how many pixels they are moved
/// right and down; leftwards they end there.
type Corner = (f64, f64, i32, i32);

/// The name of a line, beside its end.
#[derive(Debug)]
pub struct SideLabel {
    /// The name.
    pub name: String,
    /// Where, as a share from the top.
    pub from_top: f64,
    /// Its colour.
    pub tone: Tone,
}

/// The names of the lines of a plot, where there are several, moved apart where they would overlap.
pub fn side_labels(plot: &Plot) -> Vec<SideLabel> {
    if plot.series.len() < 2 {
        return Vec::new();
    }
    let mut labels: Vec<SideLabel> = Vec::new();
    for series in plot.series.iter().filter(|s| !s.name.is_empty()) {
        if plot.early_end(series).is_some() {
            continue;
        }
        let points = match &series.shape {
            Shape::Line(points) => points.as_slice(),
            Shape::Step(points) => &points[..points.len().saturating_sub(1)],
            _ => continue,
        };
        let places = points.iter().rev().filter_map(|p| plot.y.position(p.y));
        let Some(position) = places.into_iter().find(|p| (0.0..=1.0).contains(p)) else {
            continue;
        };
        labels.push(SideLabel {
            name: series.name.clone(),
            from_top: plot.depth_of(position),
            tone: series.tone,
        });
    }
    // To a millionth of the height, as floating-point numbers have no order of their own.
    labels.sort_by_key(|label| (label.from_top * 1e6) as i64);
    move_apart(&mut labels, SIDE_GAP_PX / f64::from(plot.height.max(1)));
    labels
}

/// Downwards so far that each has its room, then upwards from the bottom.
fn move_apart(labels: &mut [SideLabel], gap: f64) {
    for i in 1..labels.len() {
        let least = labels[i - 1].from_top + gap;
        labels[i].from_top = labels[i].from_top.max(least);
    }
    let mut most = 1.0;
    for label in labels.iter_mut().rev() {
        label.from_top = label.from_top.min(most);
        most = label.from_top - gap;
    }
}

impl Plot {
    /// What each area, bar and mark without a line is, where there are several things drawn.
    pub(super) fn legend(&self, m: &mut Markup) {
        let beside = |shape: &Shape| matches!(shape, Shape::Line(_) | Shape::Step(_));
        let named = self.series.iter().filter(|s| !s.name.is_empty());
        let named: Vec<_> = named.filter(|s| !beside(&s.shape)).collect();
        if named.is_empty() || self.series.len() < 2 {
            return;
        }
        m.el("span").attr("class", "legend").with(|m| {
            for series in named {
                m.el("span").attr("class", "key").with(|m| {
                    let svg = m.el("svg").attr("class", classes("s", series));
                    svg.attr("viewBox", "0 0 20 10")
                        .attr("aria-hidden", "true")
                        .with(|m| {
                            let (class, d) = match (&series.shape, series.mark) {
                                (Shape::Points(_), Mark::Square | Mark::Frame) => {
                                    ("dot sq", "M10 5h0")
                                }
                                (Shape::Points(_), _) => ("dot", "M10 5h0"),
                                (Shape::Band(_), _) => ("band", "M0 0h20v10h-20z"),
                                _ => ("bar", "M4 0h12v10h-12z"),
                            };
                            m.el("path").attr("class", class).attr("d", d).void();
                            if matches!(series.mark, Mark::Ring | Mark::Frame) {
                                let class = format!("{class} in");
                                m.el("path").attr("class", class).attr("d", d).void();
                            }
                        });
                    m.text(&series.name);
                });
            }
        });
    }

    /// Names of levels and places, of lines that end within the plot, and words beside points:
    /// each where it writes over as little as may be.
    pub(super) fn inner_labels(&self, m: &mut Markup) {
        let mut taken: Vec<Room> = Vec::new();
        for reference in &self.references {
            let (tone, label) = match reference {
                Reference::Horizontal { label, tone, .. } => (*tone, label),
                Reference::Vertical { label, tone, .. } => (*tone, label),
            };
            self.write_in_room(m, &mut taken, &self.corners_at(reference), tone, label);
        }
        for series in &self.series {
            if let Some((x, y)) = self.early_end(series) {
                let corners = [(x, y, -6, 10), (x, y, -6, -4), (x, y, 6, 14)];
                self.write_in_room(m, &mut taken, &corners, series.tone, &series.name);
            }
            let lying = matches!(series.shape, Shape::Bars(..)) && self.y.is_of_categories();
            for (point, label) in series.its_points().iter().zip(&series.labels) {
                if lying {
                    self.write_at_end(m, point, series.tone, label);
                    continue;
                }
                let place = (self.x.position(point.x), self.y.position(point.y));
                if let (Some(x), Some(y)) = place {
                    let y = self.depth_of(y);
                    let corners = [(x, y, 8, -5), (x, y, -8, -5), (x, y, 8, 16), (x, y, -8, 16)];
                    self.write_in_room(m, &mut taken, &corners, series.tone, label);
                }
            }
        }
    }

    /// Where the name of a reference may stand; none where it lies outside of the plot.
    fn corners_at(&self, reference: &Reference) -> Vec<Corner> {
        let inside = |p: &f64| (0.0..=1.0).contains(p);
        match reference {
            Reference::Horizontal { y, .. } => {
                let at = self.y.position(*y).filter(inside).map(|p| self.depth_of(p));
                let of = |y| {
                    [
                        (0.0, y, 4, -7),
                        (1.0, y, -4, -7),
                        (0.0, y, 4, 17),
                        (1.0, y, -4, 17),
                    ]
                };
                at.into_iter().flat_map(of).collect()
            }
            Reference::Vertical { x, .. } => {
                let at = self.x.position(*x).filter(inside);
                let rows = [(0.0, 11), (0.0, 26), (1.0, -6)];
                let of = |x| rows.map(|(y, dy)| [(x, y, 6, dy), (x, y, -6, dy)]);
                at.into_iter().flat_map(of).flatten().collect()
            }
        }
    }

    /// A word beside the end of a lying bar.
    fn write_at_end(&self, m: &mut Markup, point: &Point, tone: Tone, label: &str) {
        let place = (self.x.position(point.x), self.y.position(point.y));
        if let (Some(x), Some(y)) = place {
            let class = format!("on {}", tone_class(tone));
            let text = m.el("text").attr("class", class).attr("x", percent(x));
            let text = text.attr("dx", 5).attr("y", percent(y)).attr("dy", ".32em");
            text.text(label);
        }
    }

    fn write_in_room(
        &self,
        m: &mut Markup,
        taken: &mut Vec<Room>,
        corners: &[Corner],
        tone: Tone,
        label: &str,
    ) {
        let height = f64::from(self.height.max(1));
        let letters = label.chars().count();
        let room = |(x, y, dx, dy): &Corner| {
            let below = y + f64::from(*dy) / height;
            Room::at(self, *x, below, letters, *dx < 0)
        };
        let cost = |corner: &Corner| {
            let room = room(corner);
            let met = taken.iter().filter(|other| other.meets(&room)).count();
            met * 50 + room.clutter(self)
        };
        let best = corners.iter().min_by_key(|corner| cost(corner));
        let Some(corner) = best.filter(|_| !label.is_empty()) else {
            return;
        };
        taken.push(room(corner));
        let (x, y, dx, dy) = corner;
        let anchor = if *dx < 0 { " end" } else { "" };
        let text = m
            .el("text")
            .attr("class", format_args!("on {}{anchor}", tone_class(tone)));
        let text = text.attr("x", percent(*x)).attr("dx", dx);
        // What stands in brackets is left out where there is little room.
        let (name, more) = label.split_at(label.find(" (").unwrap_or(label.len()));
        text.attr("y", percent(*y)).attr("dy", dy).with(|m| {
            m.text(name);
            if !more.is_empty() {
                m.el("tspan").attr("class", "more").text(more);
            }
        });
    }

    /// Where a line with a name ends that leaves the plot before its right edge.
    fn early_end(&self, series: &Series) -> Option<(f64, f64)> {
        let Shape::Line(points) = &series.shape else {
            return None;
        };
        let places = points.iter().rev().filter_map(|p| {
            let y = self.y.position(p.y).filter(|y| (0.0..=1.0).contains(y))?;
            Some((self.x.position(p.x)?, self.depth_of(y)))
        });
        let named = self.series.len() > 1 && !series.name.is_empty();
        places
            .into_iter()
            .next()
            .filter(|(x, _)| named && *x < EARLY)
    }
}
