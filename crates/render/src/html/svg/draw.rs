//! A plot as SVG.

use super::labels::{ROW_ABOVE_PX, Words, side_labels};
use super::path::Path;
use super::room::fitting;
use super::table::Rows;
use crate::html::markup::{Element, Markup};
use crate::plot::{Dash, Mark, Plot, Point, Reference, Series, Shade, Shape, Spread, Tone};

/// Size of the inner view, which is stretched to the room there is.
pub(super) const VIEW: (f64, f64) = (10_000.0, 1_000.0);

/// Marks along x and y where there is room; where there is little, every other one is left out.
const TICKS: (usize, usize) = (9, 5);

/// The widths of figures, in CSS pixels, from which on there is room for more marks along x.
const WIDTHS_PX: [usize; 2] = [441, 901];

/// Width of a character of the labels, of the bold names beside lines, and room between them and
/// the axes, in CSS pixels.
const CHAR_PX: usize = 7;
const BOLD_CHAR_PX: usize = 8;

/// Longer names of categories stand over their rows where there is little room, and always.
const LONG_CHARS: usize = 9;
const OVER_CHARS: usize = 30;

/// Height of a row with its name over it, and the room beside its data, in CSS pixels.
const OVER_ROW_PX: usize = 50;
const OVER_LEFT_PX: usize = 14;

const GAP_PX: usize = 12;

/// The room beside the plot within its frame, in CSS pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Margins {
    /// For the words of y.
    pub left: usize,
    /// For the names of lines.
    pub right: usize,
    /// The least width of the whole figure.
    pub figure: usize,
}

impl Plot {
    /// Writes the figure, which is shown in so many CSS pixels at the least; `id` tells it from the
    /// others of its page.
    pub(crate) fn draw(&self, m: &mut Markup, id: usize, least_px: usize) {
        let rows = Rows::of(self);
        let y_ticks = self.y.ticks(TICKS.1);
        let side = side_labels(self);
        let longest = |words: &mut dyn Iterator<Item = usize>| words.max().unwrap_or(0);
        let left = longest(&mut y_ticks.iter().map(|(_, t)| t.chars().count()));
        let right = longest(&mut side.iter().map(|l| l.name.chars().count()));
        let margins = Margins {
            left: match self.names_stand_over() {
                true => OVER_LEFT_PX,
                false => left * CHAR_PX + GAP_PX,
            },
            right: (right * BOLD_CHAR_PX + GAP_PX).max(self.overhang()).max(20),
            figure: least_px,
        };
        let words = Words::of(self, &margins, side);
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

    fn frame(&self, m: &mut Markup, id: usize, rows: &Rows, margins: &Margins, words: &Words) {
        let y_ticks = self.y.ticks(TICKS.1);
        let style = format!(
            "--l:{}px;--r:{}px;--t:{}px;--h:{}px;--o:{}px",
            margins.left,
            margins.right,
            self.rows_above() * ROW_ABOVE_PX,
            self.height,
            self.y.categories.len() * OVER_ROW_PX,
        );
        let frame = m
            .el("div")
            .attr("class", self.frame_class())
            .attr("style", style);
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
                m.el("title")
                    .attr("id", format_args!("t{id}"))
                    .text(&self.title);
                m.el("desc")
                    .attr("id", format_args!("d{id}"))
                    .text(self.described_or_not());
                self.grid(m, &y_ticks, margins);
                self.area(m, rows);
                self.category_names(m, &y_ticks);
                words.write(m);
            });
        });
    }

    /// By how much the last word of x reaches beyond the plot, in CSS pixels.
    fn overhang(&self) -> usize {
        let ticks = self.x.ticks(TICKS.0);
        let last = ticks.last().filter(|(position, _)| *position > 0.9);
        last.map_or(0, |(_, word)| word.chars().count() * CHAR_PX / 2 + 4)
    }

    /// The class of the frame, which tells whether names up the side stand over their rows:
    /// `over` always, `long` where there is little room.
    fn frame_class(&self) -> &'static str {
        let names = self.y.categories.iter();
        match names.map(|name| name.chars().count()).max() {
            Some(longest) if longest > OVER_CHARS => "frame over",
            Some(longest) if longest > LONG_CHARS => "frame long",
            _ => "frame",
        }
    }

    /// Whether names up the side stand over their rows however much room there is.
    fn names_stand_over(&self) -> bool {
        self.frame_class() == "frame over"
    }

    fn described_or_not(&self) -> String {
        if !self.description.is_empty() {
            return self.description.clone();
        }
        let names: Vec<&str> = self.series.iter().map(|s| s.name.as_str()).collect();
        let (x, y) = (self.x.name(), self.y.name());
        format!("{y} against {x}: {}", names.join(", "))
    }

    /// Names up the side, over the data where they stand over their rows.
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

    /// Lines and words of both axes.
    fn grid(&self, m: &mut Markup, y_ticks: &[(f64, String)], margins: &Margins) {
        m.el("g").attr("class", "grid").with(|m| {
            for (position, label) in y_ticks {
                let at = percent(self.depth_of(*position));
                if self.y.is_of_categories() {
                    continue;
                }
                let line = m.el("line").attr("x2", "100%");
                line.attr("y1", &at).attr("y2", &at).void();
                let text = m.el("text").attr("class", "y").attr("x", "-8");
                text.attr("y", &at).attr("dy", ".32em").text(label);
            }
            let base = m.el("line").attr("class", "axis").attr("x2", "100%");
            base.attr("y1", "100%").attr("y2", "100%").void();
            m.el("text")
                .attr("class", "name")
                .attr("y", "-14")
                .text(self.y.title());
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
                    _ if self.x.is_of_categories() => "x",
                    (true, ..) => "x",
                    (_, true, _) => "x mid",
                    (.., true) => "x far",
                    _ => continue,
                };
                let at = percent(*position);
                m.el("g").attr("class", class).with(|m| {
                    let line = m.el("line").attr("x1", &at).attr("x2", &at);
                    line.attr("y1", "100%")
                        .attr("y2", "100%")
                        .attr("class", "tick")
                        .void();
                    let text = m.el("text").attr("x", &at).attr("y", "100%");
                    text.attr("dy", "18").text(label);
                });
            }
            let name = m.el("text").attr("class", "name end").attr("x", "100%");
            name.attr("y", "100%").attr("dy", "35").text(self.x.title());
        });
    }

    fn area(&self, m: &mut Markup, rows: &Rows) {
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
                let mut group = m.el("g").attr("class", classes("s", series));
                if series.listed {
                    group = self.data(group, series, rows, i, &mut last_x);
                }
                group.with(|m| self.shape(m, series));
            }
        });
    }

    /// The exact values, for the script: places, and which cells of the table tell of them.
    fn data<'m>(
        &self,
        group: Element<'m>,
        series: &Series,
        rows: &Rows,
        number: usize,
        last_x: &mut String,
    ) -> Element<'m> {
        let (xs, ys): (Vec<String>, Vec<String>) = match &series.shape {
            Shape::Spreads(spreads, _) => spreads.iter().map(|s| self.spread_place(s)).unzip(),
            Shape::Stack(points, _) | Shape::Cells(points, ..) => {
                points.iter().map(|p| self.piece_place(p)).unzip()
            }
            _ => {
                let points = series.its_points().iter();
                points.map(|p| (p.x.to_string(), p.y.to_string())).unzip()
            }
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

    fn spread_place(&self, s: &Spread) -> (String, String) {
        match self.y.is_of_categories() {
            true => (s.middle.to_string(), s.at.to_string()),
            false => (s.at.to_string(), s.middle.to_string()),
        }
    }

    /// The middle of a piece of a stacked bar.
    fn piece_place(&self, p: &Point) -> (String, String) {
        let middle = p.range.map_or(0.0, |[from, to]| f64::midpoint(from, to));
        match self.y.is_of_categories() {
            true => (middle.to_string(), p.y.to_string()),
            false => (p.x.to_string(), middle.to_string()),
        }
    }

    fn shape(&self, m: &mut Markup, series: &Series) {
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
            Shape::Spreads(spreads, _) => {
                self.path(m, "thin", |p| p.spread_lines(spreads));
                self.path(m, "box", |p| p.spread_boxes(spreads));
                self.path(m, "mid", |p| p.spread_middles(spreads));
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

    fn path(&self, m: &mut Markup, class: &str, draw: impl FnOnce(&mut Path)) {
        let mut path = Path::new(self);
        draw(&mut path);
        let d = path.into_data();
        if !d.is_empty() {
            m.el("path").attr("class", class).attr("d", d).void();
        }
    }

    fn reference(&self, m: &mut Markup, reference: &Reference) {
        let (tone, range) = match reference {
            Reference::Horizontal { tone, .. } => (*tone, None),
            Reference::Vertical { tone, range, .. } => (*tone, *range),
        };
        m.el("g")
            .attr("class", format_args!("ref {}", tone_class(tone)))
            .with(|m| {
                if let Some([lo, hi]) = range {
                    self.path(m, "band", |p| p.column(lo, hi));
                }
                self.path(m, "l", |p| match reference {
                    Reference::Horizontal { y, .. } => p.across(*y),
                    Reference::Vertical { x, .. } => p.upright(*x),
                });
            });
    }

    /// The share from the top at which a position on y lies.
    pub(super) fn depth_of(&self, position: f64) -> f64 {
        match self.y.is_of_categories() {
            true => position,
            false => 1.0 - position,
        }
    }
}

/// A share as CSS and SVG take it.
pub(super) fn percent(share: f64) -> String {
    let rounded = (share * 10_000.0).round() / 100.0;
    format!("{}%", if rounded == 0.0 { 0.0 } else { rounded })
}

/// The class of a cell.
pub(super) fn cell_class(shade: Shade) -> String {
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
pub(super) fn classes(kind: &str, series: &Series) -> String {
    let dash = match series.dash {
        Dash::Solid => "",
        Dash::Dashed => " d1",
        Dash::Dotted => " d2",
        Dash::DashDot => " d3",
    };
    format!("{kind} {}{dash}", tone_class(series.tone))
}
