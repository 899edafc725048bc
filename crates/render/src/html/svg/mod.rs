//! Figures as inline SVG.
//!
//! The data lie in an inner `svg` of 10,000 by 1,000 units. It is stretched to the size of the
//! plot, with strokes of constant width. Text and grid are placed in percent and keep their size.
//! Series are groups with classes, so that the style sheet decides about width, colours (light,
//! dark, print) and patterns. Libraries such as `plotters` write them into every shape. The script
//! zooms by moving the inner view. It shows values from the table below each figure, which a screen
//! reader reads as well.

mod label_box;
mod labels;
mod path;
mod table;

use crate::html::markup::{Element, Markup};
use crate::plot::{Dash, Mark, Plot, PlotSeries, Point, Reference, Shade, Shape, Tone};
use label_box::fitting;
use labels::{PlotLabels, ROW_ABOVE_PX, side_labels};
use path::PathData;
use table::DataTable;

/// Size of the inner view, which is stretched to the size of the plot.
const VIEW: (f64, f64) = (10_000.0, 1_000.0);

/// Marks wanted along x and y.
const TICKS: (usize, usize) = (9, 5);

/// Widths of figures, in CSS pixels, from which more marks fit along x.
const WIDTHS_PX: [usize; 2] = [441, 901];

/// Width of a character of the labels, of the bold names beside lines, and room between them and
/// the axes, in CSS pixels.
const CHAR_PX: usize = 7;
const BOLD_CHAR_PX: usize = 8;

/// Lengths of category names, in characters, from which they stand over their rows: in narrow
/// figures, and always.
const LONG_CHARS: usize = 9;
const OVER_CHARS: usize = 30;

/// Height of a row with its name over it, and the room beside its data, in CSS pixels.
const OVER_ROW_PX: usize = 50;
const OVER_LEFT_PX: usize = 14;

const GAP_PX: usize = 12;

/// The margins of the plot within its frame, in CSS pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlotMargins {
    /// For the labels of y.
    pub left: usize,
    /// For the names of lines.
    pub right: usize,
    /// The least width of the whole figure.
    pub figure: usize,
}

impl Plot {
    /// Writes the figure, at least `least_px` CSS pixels wide, with an `id` that is unique in the
    /// page.
    pub(crate) fn draw(&self, m: &mut Markup, id: usize, least_px: usize) {
        let rows = DataTable::of(self);
        let y_ticks = self.y.ticks(TICKS.1);
        let side = side_labels(self);
        let left = y_ticks.iter().map(|(_, t)| t.chars().count()).max().unwrap_or(0);
        let right = side.iter().map(|l| l.name.chars().count()).max().unwrap_or(0);
        // The part of the last label of x beyond the plot.
        let x_ticks = self.x.ticks(TICKS.0);
        let last = x_ticks.last().filter(|(position, _)| *position > 0.9);
        let overhang = last.map_or(0, |(_, word)| word.chars().count() * CHAR_PX / 2 + 4);
        let margins = PlotMargins {
            left: if self.frame_class() == "frame over" {
                OVER_LEFT_PX
            } else {
                left * CHAR_PX + GAP_PX
            },
            right: (right * BOLD_CHAR_PX + GAP_PX).max(overhang).max(20),
            figure: least_px,
        };
        let words = PlotLabels::of(self, &margins, side);
        let figure = m.el("figure").attr("class", "plot");
        figure.attr("aria-label", &self.title).with(|m| {
            m.el("figcaption").with(|m| {
                m.el("b").text(&self.title);
                words.write_legend(m, self);
            });
            self.frame(m, id, &rows, &margins, &words);
            if !self.note.is_empty() {
                m.el("p").attr("class", "note").text(&self.note);
            }
            rows.write(m, &self.title);
        });
    }

    fn frame(
        &self,
        m: &mut Markup,
        id: usize,
        rows: &DataTable,
        margins: &PlotMargins,
        words: &PlotLabels,
    ) {
        let y_ticks = self.y.ticks(TICKS.1);
        let style = format!(
            "--l:{}px;--r:{}px;--t:{}px;--h:{}px;--o:{}px",
            margins.left,
            margins.right,
            self.rows_above() * ROW_ABOVE_PX,
            self.height,
            self.y.categories.len() * OVER_ROW_PX,
        );
        let frame = m.el("div").attr("class", self.frame_class()).attr("style", style);
        let frame = frame.attr("tabindex", "0").attr("role", "group");
        let frame = frame
            .attr("aria-label", &self.title)
            .attr("data-x", self.x.for_script())
            .attr("data-y", self.y.for_script())
            .maybe("data-down", self.y.is_of_categories().then_some(1))
            .maybe("data-zoom", self.zooms.then_some(self.x.unit_for_script()));
        frame.with(|m| {
            let svg = m.el("svg").attr("role", "img");
            let svg = svg.attr("aria-labelledby", format_args!("t{id} d{id}"));
            svg.with(|m| {
                m.el("title").attr("id", format_args!("t{id}")).text(&self.title);
                m.el("desc").attr("id", format_args!("d{id}")).text(self.description_or_names());
                self.grid(m, &y_ticks, margins);
                self.area(m, rows);
                self.category_names(m, &y_ticks);
                words.write(m);
            });
        });
    }

    /// The class of the frame. Category names stand over their rows always (`over`) or in narrow
    /// figures (`long`).
    fn frame_class(&self) -> &'static str {
        let names = self.y.categories.iter();
        match names.map(|name| name.chars().count()).max() {
            Some(longest) if longest > OVER_CHARS => "frame over",
            Some(longest) if longest > LONG_CHARS => "frame long",
            _ => "frame",
        }
    }

    fn description_or_names(&self) -> String {
        if !self.description.is_empty() {
            return self.description.clone();
        }
        let names: Vec<&str> = self.series.iter().map(|s| s.name.as_str()).collect();
        let (x, y) = (&self.x.name, &self.y.name);
        format!("{y} against {x}: {}", names.join(", "))
    }

    /// Writes the category names.
    fn category_names(&self, m: &mut Markup, y_ticks: &[(f64, String)]) {
        if !self.y.is_of_categories() {
            return;
        }
        for (position, label) in y_ticks {
            let text = m.el("text").attr("class", "y").attr("x", "-8");
            let at = percent(self.depth_of(*position));
            text.attr("y", at).attr("dy", ".32em").text(label);
        }
    }

    /// Writes lines and labels of both axes.
    fn grid(&self, m: &mut Markup, y_ticks: &[(f64, String)], margins: &PlotMargins) {
        m.el("g").attr("class", "grid").with(|m| {
            for (position, label) in y_ticks.iter().filter(|_| !self.y.is_of_categories()) {
                let at = percent(self.depth_of(*position));
                m.el("line").attr("x2", "100%").attr("y1", &at).attr("y2", &at).void();
                let text = m.el("text").attr("class", "y").attr("x", "-8");
                text.attr("y", &at).attr("dy", ".32em").text(label);
            }
            let base = m.el("line").attr("class", "axis").attr("x2", "100%");
            base.attr("y1", "100%").attr("y2", "100%").void();
            m.el("text").attr("class", "name").attr("y", "-14").text(self.y.title());
        });
        let ticks = self.x.ticks(TICKS.0);
        let fitting_in = |figure: usize| {
            let width = figure.saturating_sub(margins.left + margins.right);
            fitting(&ticks, self.x.is_marked_evenly(), width as f64)
        };
        let narrow = fitting_in(margins.figure);
        let [middle, wide] = WIDTHS_PX.map(fitting_in);
        m.el("g").attr("class", "grid xs").with(|m| {
            for (i, (position, label)) in ticks.iter().enumerate() {
                let class = match (narrow[i], middle[i], wide[i]) {
                    (true, ..) => "x",
                    (_, true, _) => "x mid",
                    (.., true) => "x far",
                    _ => continue,
                };
                let at = percent(*position);
                m.el("g").attr("class", class).with(|m| {
                    let line = m.el("line").attr("x1", &at).attr("x2", &at);
                    line.attr("y1", "100%").attr("y2", "100%").attr("class", "tick").void();
                    m.el("text").attr("x", &at).attr("y", "100%").attr("dy", "18").text(label);
                });
            }
            let name = m.el("text").attr("class", "name end").attr("x", "100%");
            name.attr("y", "100%").attr("dy", "35").text(self.x.title());
        });
    }

    fn area(&self, m: &mut Markup, rows: &DataTable) {
        let (width, height) = VIEW;
        let area = m.el("svg").attr("class", "area");
        let area = area
            .attr("width", "100%")
            .attr("height", "100%")
            .attr("viewBox", format_args!("0 0 {width} {height}"))
            .attr("preserveAspectRatio", "none");
        area.with(|m| {
            for reference in &self.references {
                self.reference(m, reference);
            }
            let mut last_x = String::new();
            for (i, series) in self.series.iter().enumerate() {
                let mut group = m.el("g").attr("class", classes(series));
                if series.listed {
                    group = self.data(group, series, rows, i, &mut last_x);
                }
                group.with(|m| self.shape(m, series));
            }
        });
    }

    /// Adds the exact values for the script: positions, and the cells of the table.
    fn data<'m>(
        &self,
        group: Element<'m>,
        series: &PlotSeries,
        rows: &DataTable,
        number: usize,
        last_x: &mut String,
    ) -> Element<'m> {
        let (xs, ys): (Vec<String>, Vec<String>) = match &series.shape {
            Shape::Boxes(boxes, _) => {
                let places = boxes.iter().map(|b| (b.percentiles[2], b.at));
                places.map(|(x, y)| (x.to_string(), y.to_string())).unzip()
            }
            Shape::Stack(points, _) | Shape::Cells(points, ..) => {
                points.iter().map(|p| self.piece_place(p)).unzip()
            }
            _ => series.points().iter().map(|p| (p.x.to_string(), p.y.to_string())).unzip(),
        };
        let xs = xs.join(" ");
        let same = xs == *last_x;
        *last_x = xs.clone();
        let is_step = matches!(series.shape, Shape::Step(_));
        group
            .maybe("data-step", is_step.then_some(1))
            .maybe("data-x", (!same).then_some(xs))
            .attr("data-y", ys.join(" "))
            .attr("data-r", rows.rows_of(number))
            .attr("data-c", rows.columns_of(number))
    }

    /// The middle of a piece of a stacked bar.
    fn piece_place(&self, p: &Point) -> (String, String) {
        let middle = p.range.map_or(0.0, |[from, to]| f64::midpoint(from, to));
        if self.y.is_of_categories() {
            (middle.to_string(), p.y.to_string())
        } else {
            (p.x.to_string(), middle.to_string())
        }
    }

    fn shape(&self, m: &mut Markup, series: &PlotSeries) {
        match &series.shape {
            Shape::Line(points) => {
                self.path(m, "l", |p| p.line(points));
                self.intervals(m, points);
                self.marks(m, points, series.mark);
            }
            Shape::Step(points) => self.path(m, "l", |p| p.stair(points)),
            Shape::Points(points) => {
                self.intervals(m, points);
                self.marks(m, points, series.mark);
            }
            Shape::Band(points) => self.path(m, "band", |p| p.band(points)),
            Shape::Bars(points, width) => self.path(m, "bar", |p| p.bars(points, *width)),
            Shape::Stack(points, width) => self.path(m, "bar", |p| p.stack(points, *width)),
            Shape::Cells(points, width, shade) => {
                self.path(m, &cell_class(*shade), |p| p.stack(points, *width));
            }
            Shape::Boxes(boxes, _) => {
                self.path(m, "thin", |p| p.whiskers(boxes));
                self.path(m, "box", |p| p.boxes(boxes));
                self.path(m, "mid", |p| p.medians(boxes));
            }
        }
    }

    fn intervals(&self, m: &mut Markup, points: &[Point]) {
        if points.iter().any(|p| p.range.is_some()) {
            self.path(m, "ci", |p| p.intervals(points));
        }
    }

    fn marks(&self, m: &mut Markup, points: &[Point], mark: Mark) {
        let class = match mark {
            Mark::None => return,
            Mark::Dot | Mark::Ring => "dot",
            Mark::Square | Mark::Frame => "dot sq",
        };
        self.path(m, class, |p| p.marks(points));
        match mark {
            Mark::Ring => self.path(m, "dot in", |p| p.marks(points)),
            Mark::Frame => self.path(m, "dot sq in", |p| p.marks(points)),
            _ => {}
        }
    }

    fn path(&self, m: &mut Markup, class: &str, draw: impl FnOnce(&mut PathData)) {
        let mut path = PathData::new(self);
        draw(&mut path);
        let d = path.into_data();
        if !d.is_empty() {
            m.el("path").attr("class", class).attr("d", d).void();
        }
    }

    fn reference(&self, m: &mut Markup, reference: &Reference) {
        let class = format!("ref {}", tone_class(reference.tone));
        m.el("g").attr("class", class).with(|m| {
            if let Some([lo, hi]) = reference.range {
                self.path(m, "band", |p| p.column(lo, hi));
            }
            self.path(m, "l", |p| p.reference(reference.at));
        });
    }

    /// The position of a point as shares from the left and from the top.
    pub(super) fn place(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.x.position(x)?, self.depth_of(self.y.position(y)?)))
    }

    /// The share from the top at which a position on y lies.
    pub(super) fn depth_of(&self, position: f64) -> f64 {
        if self.y.is_of_categories() { position } else { 1.0 - position }
    }
}

/// A share as CSS and SVG take it.
pub(super) fn percent(share: f64) -> String {
    let rounded = (share * 10_000.0).round() / 100.0;
    format!("{}%", if rounded == 0.0 { 0.0 } else { rounded })
}

/// The class of a cell.
fn cell_class(shade: Shade) -> String {
    format!("cell h{}", shade.0)
}

/// The class of a colour.
pub(crate) fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::First => "t1",
        Tone::Second => "t2",
        Tone::Third => "t3",
        Tone::Fourth => "t4",
        Tone::Muted => "t0",
        Tone::Bad => "t9",
    }
}

/// The classes that tell how a series looks.
fn classes(series: &PlotSeries) -> String {
    let dash = match series.dash {
        Dash::Solid => "",
        Dash::Dashed => " d1",
        Dash::Dotted => " d2",
        Dash::DashDot => " d3",
    };
    format!("s {}{dash}", tone_class(series.tone))
}
