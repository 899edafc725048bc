//! Paths in the inner view of a plot: whole numbers, relative to the last point, so that a series
//! of hundreds of values takes few bytes.

use super::draw::VIEW;
use crate::plot::{Plot, Point, Spread};
use std::fmt::Write;

/// The data of a `path`.
#[derive(Debug)]
pub(super) struct Path<'a> {
    plot: &'a Plot,
    out: String,
    at: (i64, i64),
}

/// A place as shares of the plot from the left and from the top.
type Place = (f64, f64);

impl Path<'_> {
    /// An empty one for this plot.
    pub(super) fn new(plot: &Plot) -> Path<'_> {
        Path {
            plot,
            out: String::new(),
            at: (0, 0),
        }
    }

    /// What stands in the attribute `d`.
    pub(super) fn into_data(self) -> String {
        self.out
    }

    /// Lines from point to point, broken at gaps, cut where they leave the plot above or below. A
    /// point between two gaps is a line without extent, which round ends of strokes make a mark of.
    pub(super) fn line(&mut self, points: &[Point]) {
        let mut last: Option<Place> = None;
        for (i, point) in points.iter().enumerate() {
            let place = self.place(point.x, point.y);
            match (last, place) {
                (Some(from), Some(to)) => self.segment(from, to),
                (None, Some(to)) if is_inside(to) => {
                    self.move_to(to);
                    let next = points.get(i + 1);
                    if next.is_none_or(|next| self.place(next.x, next.y).is_none()) {
                        self.out.push_str("h0");
                    }
                }
                _ => {}
            }
            last = place;
        }
    }

    fn segment(&mut self, from: Place, to: Place) {
        match (is_inside(from), is_inside(to)) {
            (true, true) => self.line_to(to),
            (true, false) => self.line_to(crossing(from, to)),
            (false, true) => {
                self.move_to(crossing(to, from));
                self.line_to(to);
            }
            (false, false) => {}
        }
    }

    /// A level from each point to the next.
    pub(super) fn stair(&mut self, points: &[Point]) {
        let mut drawing = false;
        for pair in points.windows(2) {
            let level = pair[0].y;
            let ends = (self.place(pair[0].x, level), self.place(pair[1].x, level));
            let (Some(from), Some(to)) = ends else {
                drawing = false;
                continue;
            };
            match drawing {
                true => self.line_to(from),
                false => self.move_to(from),
            }
            self.line_to(to);
            drawing = true;
        }
    }

    /// Points without extent, which round or square ends of strokes make marks of.
    pub(super) fn marks(&mut self, points: &[Point]) {
        for point in points {
            if let Some(place) = self.place(point.x, point.y).filter(|p| is_inside(*p)) {
                self.move_to(place);
                self.out.push_str("h0");
            }
        }
    }

    /// The interval of each point that has one.
    pub(super) fn intervals(&mut self, points: &[Point]) {
        for point in points {
            let Some([lo, hi]) = point.range else {
                continue;
            };
            match self.plot.y.is_of_categories() {
                true => self.stroke(self.turned(point.y, lo), self.turned(point.y, hi)),
                false => self.stroke(self.place(point.x, lo), self.place(point.x, hi)),
            }
        }
    }

    /// The area between the edges of the points' ranges.
    pub(super) fn band(&mut self, points: &[Point]) {
        let edge = |path: &Self, which: usize| -> Vec<Place> {
            let edge = points
                .iter()
                .filter_map(|p| path.place(p.x, p.range?[which]));
            edge.collect()
        };
        let (mut low, high) = (edge(self, 0), edge(self, 1));
        low.reverse();
        self.polygon(high.into_iter().chain(low));
    }

    /// Bars of this width, in units of their axis, from the other one.
    pub(super) fn bars(&mut self, points: &[Point], width: f64) {
        let half = width / 2.0;
        let lying = self.plot.y.is_of_categories();
        for p in points {
            let corners = if lying {
                let foot = self.plot.x.axis.lo;
                [self.place(foot, p.y - half), self.place(p.x, p.y + half)]
            } else {
                let foot = self.plot.y.axis.lo;
                [self.place(p.x - half, foot), self.place(p.x + half, p.y)]
            };
            self.rectangle(corners);
        }
    }

    /// Pieces of bars of this width, between the edges of the points' ranges.
    pub(super) fn stack(&mut self, points: &[Point], width: f64) {
        let half = width / 2.0;
        let lying = self.plot.y.is_of_categories();
        for p in points {
            let Some([from, to]) = p.range.filter(|[from, to]| from < to) else {
                continue;
            };
            let at = if lying { p.y } else { p.x };
            self.rectangle([self.turned(at - half, from), self.turned(at + half, to)]);
        }
    }

    /// The thin lines of distributions.
    pub(super) fn spread_lines(&mut self, spreads: &[Spread]) {
        for s in spreads {
            for (from, to) in [(s.low, s.from), (s.to, s.high)] {
                self.stroke(self.turned(s.at, from), self.turned(s.at, to));
            }
        }
    }

    /// Their boxes.
    pub(super) fn spread_boxes(&mut self, spreads: &[Spread]) {
        for s in spreads {
            let corners = [
                self.turned(s.at - 0.3, s.from),
                self.turned(s.at + 0.3, s.to),
            ];
            self.rectangle(corners);
        }
    }

    /// Their middles.
    pub(super) fn spread_middles(&mut self, spreads: &[Spread]) {
        for s in spreads {
            let (from, to) = (s.at - 0.38, s.at + 0.38);
            self.stroke(self.turned(from, s.middle), self.turned(to, s.middle));
        }
    }

    /// A level through the whole plot.
    pub(super) fn across(&mut self, y: f64) {
        if let Some(position) = self.plot.y.position(y) {
            let from_top = self.plot.depth_of(position);
            if is_inside((0.0, from_top)) {
                self.stroke(Some((0.0, from_top)), Some((1.0, from_top)));
            }
        }
    }

    /// A line through it from top to bottom.
    pub(super) fn upright(&mut self, x: f64) {
        let at = self.plot.x.position(x).filter(|p| (0.0..=1.0).contains(p));
        if let Some(at) = at {
            self.stroke(Some((at, 0.0)), Some((at, 1.0)));
        }
    }

    /// Everything between two places on x.
    pub(super) fn column(&mut self, lo: f64, hi: f64) {
        let of = |x| Some(self.plot.x.position(x)?.clamp(0.0, 1.0));
        if let (Some(lo), Some(hi)) = (of(lo), of(hi)) {
            self.rectangle([Some((lo, 0.0)), Some((hi, 1.0))]);
        }
    }

    /// A place on the scale of categories and a value on the other, whichever way they lie. A value
    /// that the other scale does not reach lies at its end.
    fn turned(&self, at: f64, value: f64) -> Option<Place> {
        let within = |p: f64| p.clamp(0.0, 1.0);
        if self.plot.y.is_of_categories() {
            let x = self.plot.x.axis.position(value);
            Some((
                if x.is_nan() { 0.0 } else { within(x) },
                self.plot.y.position(at)?,
            ))
        } else {
            let y = self.plot.y.axis.position(value);
            Some((
                self.plot.x.position(at)?,
                1.0 - if y.is_nan() { 0.0 } else { within(y) },
            ))
        }
    }

    fn rectangle(&mut self, [from, to]: [Option<Place>; 2]) {
        if let (Some((x1, y1)), Some((x2, y2))) = (from, to) {
            self.polygon([(x1, y1), (x1, y2), (x2, y2), (x2, y1)].into_iter());
        }
    }

    fn stroke(&mut self, from: Option<Place>, to: Option<Place>) {
        if let (Some(from), Some(to)) = (from, to) {
            self.move_to(from);
            self.line_to(to);
        }
    }

    fn polygon(&mut self, corners: impl Iterator<Item = Place>) {
        for (i, corner) in corners.enumerate() {
            match i {
                0 => self.move_to(corner),
                _ => self.line_to(corner),
            }
        }
        if !self.out.is_empty() {
            self.out.push('z');
        }
    }

    fn place(&self, x: f64, y: f64) -> Option<Place> {
        let (x, y) = (self.plot.x.position(x)?, self.plot.y.position(y)?);
        Some((x, self.plot.depth_of(y)))
    }

    fn move_to(&mut self, place: Place) {
        self.at = units(place);
        let _ = write!(self.out, "M{} {}", self.at.0, self.at.1);
    }

    fn line_to(&mut self, place: Place) {
        let (x, y) = units(place);
        let (dx, dy) = (x - self.at.0, y - self.at.1);
        self.at = (x, y);
        let _ = match (dx, dy) {
            (0, 0) => Ok(()),
            (_, 0) => write!(self.out, "h{dx}"),
            (0, _) => write!(self.out, "v{dy}"),
            (_, 0..) => write!(self.out, "l{dx} {dy}"),
            _ => write!(self.out, "l{dx}{dy}"),
        };
    }
}

/// A place in whole units of the inner view, kept within bounds that any renderer draws.
fn units((x, y): Place) -> (i64, i64) {
    let of = |share: f64, size: f64| (share.clamp(-9.0, 9.0) * size).round() as i64;
    (of(x, VIEW.0), of(y, VIEW.1))
}

fn is_inside((_, y): Place) -> bool {
    (-1e-9..=1.0 + 1e-9).contains(&y)
}

/// Where the line from a place inside to one outside leaves the plot.
fn crossing(inside: Place, outside: Place) -> Place {
    let edge = if outside.1 < 0.0 { 0.0 } else { 1.0 };
    let share = (edge - inside.1) / (outside.1 - inside.1);
    (inside.0 + share * (outside.0 - inside.0), edge)
}
