//! Paths in the inner view of a plot: whole numbers, relative to the last point. So a series of
//! hundreds of values takes few bytes.

use super::VIEW;
use crate::plot::{BoxPlot, Plot, Point, ReferenceAt};
use std::fmt::Write;

/// The data of an SVG `path` under construction.
#[derive(Debug)]
pub(super) struct PathData<'a> {
    plot: &'a Plot,
    out: String,
    at: (i64, i64),
}

/// A position as shares of the plot from the left and from the top.
type Position = (f64, f64);

impl PathData<'_> {
    /// An empty path in this plot.
    pub(super) fn new(plot: &Plot) -> PathData<'_> {
        PathData { plot, out: String::new(), at: (0, 0) }
    }

    /// The value of the attribute `d`.
    pub(super) fn into_data(self) -> String {
        self.out
    }

    /// Lines from point to point, broken at gaps, cut where they leave the plot above or below. A
    /// point between two gaps is a line without extent, which round ends of strokes make a mark of.
    pub(super) fn line(&mut self, points: &[Point]) {
        let mut last: Option<Position> = None;
        for (i, point) in points.iter().enumerate() {
            let place = self.plot.place(point.x, point.y);
            match (last, place) {
                (Some(from), Some(to)) => self.segment(from, to),
                (None, Some(to)) if is_inside(to) => {
                    self.move_to(to);
                    let next = points.get(i + 1);
                    if next.is_none_or(|next| self.plot.place(next.x, next.y).is_none()) {
                        self.out.push_str("h0");
                    }
                }
                _ => {}
            }
            last = place;
        }
    }

    fn segment(&mut self, from: Position, to: Position) {
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
            let ends = (self.plot.place(pair[0].x, level), self.plot.place(pair[1].x, level));
            let (Some(from), Some(to)) = ends else {
                drawing = false;
                continue;
            };
            if drawing {
                self.line_to(from)
            } else {
                self.move_to(from)
            }
            self.line_to(to);
            drawing = true;
        }
    }

    /// Points without extent, which round or square ends of strokes make marks of.
    pub(super) fn marks(&mut self, points: &[Point]) {
        for point in points {
            if let Some(place) = self.plot.place(point.x, point.y).filter(|p| is_inside(*p)) {
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
            if self.plot.y.is_of_categories() {
                self.stroke(self.turned(point.y, lo), self.turned(point.y, hi));
            } else {
                self.stroke(self.plot.place(point.x, lo), self.plot.place(point.x, hi));
            }
        }
    }

    /// The area between the edges of the points' ranges.
    pub(super) fn band(&mut self, points: &[Point]) {
        let plot = self.plot;
        let edge = |which: usize| -> Vec<Position> {
            points.iter().filter_map(|p| plot.place(p.x, p.range?[which])).collect()
        };
        let (mut low, high) = (edge(0), edge(1));
        low.reverse();
        self.polygon(high.into_iter().chain(low));
    }

    /// Horizontal bars of this height from the axis to `x`.
    pub(super) fn bars(&mut self, points: &[Point], width: f64) {
        let (half, foot) = (width / 2.0, self.plot.x.axis.lo);
        for p in points {
            let corners = [self.plot.place(foot, p.y - half), self.plot.place(p.x, p.y + half)];
            self.rectangle(corners);
        }
    }

    /// Pieces of this width, between the edges of the points' ranges.
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

    /// The whiskers of distributions.
    pub(super) fn whiskers(&mut self, boxes: &[BoxPlot]) {
        for b in boxes {
            let [low, from, _, to, high] = b.percentiles;
            self.stroke(self.turned(b.at, low), self.turned(b.at, from));
            self.stroke(self.turned(b.at, to), self.turned(b.at, high));
        }
    }

    /// The boxes of distributions.
    pub(super) fn boxes(&mut self, boxes: &[BoxPlot]) {
        for b in boxes {
            let [_, from, _, to, _] = b.percentiles;
            self.rectangle([self.turned(b.at - 0.3, from), self.turned(b.at + 0.3, to)]);
        }
    }

    /// The medians of distributions.
    pub(super) fn medians(&mut self, boxes: &[BoxPlot]) {
        for b in boxes {
            let middle = b.percentiles[2];
            self.stroke(self.turned(b.at - 0.38, middle), self.turned(b.at + 0.38, middle));
        }
    }

    /// A line through the whole plot.
    pub(super) fn reference(&mut self, at: ReferenceAt) {
        match at {
            ReferenceAt::X(x) => {
                if let Some(x) = self.plot.x.position_within(x) {
                    self.stroke(Some((x, 0.0)), Some((x, 1.0)));
                }
            }
            ReferenceAt::Y(y) => {
                let y = self.plot.y.position(y).map(|y| self.plot.depth_of(y));
                if let Some(y) = y.filter(|y| is_inside((0.0, *y))) {
                    self.stroke(Some((0.0, y)), Some((1.0, y)));
                }
            }
        }
    }

    /// The area between two values of x.
    pub(super) fn column(&mut self, lo: f64, hi: f64) {
        let position = |x| Some(self.plot.x.position(x)?.clamp(0.0, 1.0));
        if let (Some(lo), Some(hi)) = (position(lo), position(hi)) {
            self.rectangle([Some((lo, 0.0)), Some((hi, 1.0))]);
        }
    }

    /// The position of a row (or a value of x) and a value on the other scale. A value beyond that
    /// scale lies at its end.
    fn turned(&self, at: f64, value: f64) -> Option<Position> {
        let clamped = |p: f64| if p.is_nan() { 0.0 } else { p.clamp(0.0, 1.0) };
        if self.plot.y.is_of_categories() {
            let x = self.plot.x.axis.position(value);
            Some((clamped(x), self.plot.y.position(at)?))
        } else {
            let y = self.plot.y.axis.position(value);
            Some((self.plot.x.position(at)?, 1.0 - clamped(y)))
        }
    }

    fn rectangle(&mut self, [from, to]: [Option<Position>; 2]) {
        if let (Some((x1, y1)), Some((x2, y2))) = (from, to) {
            self.polygon([(x1, y1), (x1, y2), (x2, y2), (x2, y1)].into_iter());
        }
    }

    fn stroke(&mut self, from: Option<Position>, to: Option<Position>) {
        if let (Some(from), Some(to)) = (from, to) {
            self.move_to(from);
            self.line_to(to);
        }
    }

    fn polygon(&mut self, corners: impl Iterator<Item = Position>) {
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

    fn move_to(&mut self, place: Position) {
        self.at = units(place);
        let _ = write!(self.out, "M{} {}", self.at.0, self.at.1);
    }

    fn line_to(&mut self, place: Position) {
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
fn units((x, y): Position) -> (i64, i64) {
    let units = |share: f64, size: f64| (share.clamp(-9.0, 9.0) * size).round() as i64;
    (units(x, VIEW.0), units(y, VIEW.1))
}

fn is_inside((_, y): Position) -> bool {
    (-1e-9..=1.0 + 1e-9).contains(&y)
}

/// The position where the line from inside to outside leaves the plot.
fn crossing(inside: Position, outside: Position) -> Position {
    let edge = if outside.1 < 0.0 { 0.0 } else { 1.0 };
    let share = (edge - inside.1) / (outside.1 - inside.1);
    (inside.0 + share * (outside.0 - inside.0), edge)
}
