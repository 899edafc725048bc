//! A plot: axes with ticks, lines, marked points and a legend.

use super::canvas::{Canvas, Stroke};
use super::line::{Ink, Line, cleaned};
use super::page::Page;
use crate::axis::Axis;

/// What is drawn, later layers over earlier ones.
#[derive(Debug)]
pub enum Layer {
    /// A line through points in the units of the axes.
    Curve(Vec<(f64, f64)>, Stroke),
    /// Marked points.
    Marks(Vec<(f64, f64)>, char, Ink),
    /// A vertical line at a value of x.
    Vertical(f64, char, Ink),
}

/// A plot before it is laid out.
#[derive(Debug)]
pub struct Plot {
    /// What is shown, above the plot.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub layers: Vec<Layer>,
    /// Signs and what they stand for, below the plot.
    pub legend: Vec<(char, Ink, String)>,
}

impl Plot {
    /// Adds marked points, a line through them and what they are, where there are any.
    pub fn add_curve(&mut self, curve: Vec<(f64, f64)>, (mark, ink): (char, Ink), what: &str) {
        if curve.is_empty() {
            return;
        }
        let stroke = Stroke {
            ink,
            dashed: false,
            ascii: '.',
        };
        self.layers.push(Layer::Curve(curve.clone(), stroke));
        self.layers.push(Layer::Marks(curve, mark, ink));
        self.legend.push((mark, ink, what.to_owned()));
    }

    /// Its lines within `width` columns, `rows` of them within the axes. All lines of the plot
    /// are equally wide, so that another may stand beside it.
    pub fn laid_out(&self, width: usize, rows: usize, unicode: bool) -> Vec<Line> {
        let ticks: Vec<(f64, String)> = labelled(&self.y, (rows / 3).max(2), unicode);
        let margin = ticks
            .iter()
            .map(|(_, l)| l.chars().count())
            .max()
            .unwrap_or(0);
        let columns = width.saturating_sub(margin + 2).max(10);
        let mut canvas = Canvas::new(columns, rows, unicode);
        for layer in &self.layers {
            self.draw(layer, &mut canvas);
        }
        let title = Line::of(Ink::Plain, cleaned(&self.title, unicode));
        let mut lines = title.wrapped(width, 0);
        let axis = AxisGlyphs::new(unicode);
        for (row, drawn) in canvas.lines().into_iter().enumerate() {
            let tick = ticks
                .iter()
                .find(|(v, _)| canvas.row(self.y.position(*v)) == row);
            let label = tick.map_or("", |(_, l)| l);
            let bar = if tick.is_some() { axis.y_tick } else { axis.y };
            let mut line = Line::of(Ink::Dim, format!("{label:>margin$} {bar}"));
            line.append(drawn);
            lines.push(line);
        }
        lines.extend(x_axis(&self.x, margin, columns, unicode));
        lines.extend(self.legend_lines(width, unicode));
        for line in &mut lines {
            line.pad_to(width);
        }
        lines
    }

    fn draw(&self, layer: &Layer, canvas: &mut Canvas) {
        let place = |&(x, y): &(f64, f64)| (self.x.position(x), self.y.position(y));
        match layer {
            Layer::Curve(points, stroke) => {
                let points: Vec<_> = points.iter().map(place).collect();
                canvas.polyline(&points, *stroke);
            }
            Layer::Marks(points, glyph, ink) => {
                for point in points {
                    canvas.glyph(place(point), *glyph, *ink);
                }
            }
            Layer::Vertical(x, glyph, ink) => canvas.vertical(self.x.position(*x), *glyph, *ink),
        }
    }

    fn legend_lines(&self, width: usize, unicode: bool) -> Vec<Line> {
        let mut lines = vec![Line::new()];
        for (sign, ink, text) in &self.legend {
            let text = cleaned(text, unicode);
            let entry = Line::of(*ink, *sign).with(Ink::Dim, format!(" {text}"));
            let used = lines.last().map_or(0, Line::width);
            if used > 0 && used + 3 + entry.width() > width {
                lines.push(Line::new());
            }
            if let Some(line) = lines.last_mut() {
                let gap = if line.width() > 0 { 3 } else { 0 };
                line.push(Ink::Plain, " ".repeat(gap));
                line.append(entry);
            }
        }
        lines
    }
}

/// A horizontal axis of so many columns from column `margin` + 2 on, and its labels, those left out
/// that would touch another.
pub fn x_axis(x: &Axis, margin: usize, columns: usize, unicode: bool) -> [Line; 2] {
    let axis = AxisGlyphs::new(unicode);
    let canvas = Canvas::new(columns, 1, unicode);
    let mut rule = vec![axis.x; columns];
    let start = margin + 2;
    let mut labels = Line::new();
    for (value, label) in labelled(x, columns / 8, unicode) {
        let column = canvas.column(x.position(value));
        let length = label.chars().count();
        let at = (start + column).saturating_sub(length / 2);
        let at = at.min((start + columns).saturating_sub(length));
        if at < labels.width() + usize::from(labels.width() > 0) {
            continue;
        }
        rule[column] = axis.x_tick;
        labels.pad_to(at);
        labels.push(Ink::Dim, label);
    }
    let rule: String = rule.into_iter().collect();
    let corner = axis.corner;
    [
        Line::of(Ink::Dim, format!("{:margin$} {corner}{rule}", "")),
        labels,
    ]
}

fn labelled(axis: &Axis, wanted: usize, unicode: bool) -> Vec<(f64, String)> {
    let ticks = axis.ticks(wanted).into_iter();
    ticks
        .map(|v| (v, cleaned(&(axis.label)(v), unicode)))
        .collect()
}

/// Space between two plots that stand beside each other.
const GAP: usize = 4;

/// How wide each of two plots is: half of the page where that is at least `columns_min`, so that
/// they can stand beside each other, else all of it.
pub fn width_of_two(page: &Page, columns_min: usize) -> usize {
    let inner = page.inner_width();
    let half = inner.saturating_sub(GAP) / 2;
    if half >= columns_min { half } else { inner }
}

/// Writes plots, each `width` wide with `rows` rows within its axes: two beside each other where
/// there is room, else one below the other.
pub fn show(page: &mut Page, plots: &[Plot], rows: usize, width: usize) {
    let unicode = page.unicode;
    match plots {
        [left, right] if 2 * width + GAP <= page.inner_width() => {
            let [left, right] = [left, right].map(|p| p.laid_out(width, rows, unicode));
            page.block(beside(left, right, GAP));
        }
        plots => {
            for (i, plot) in plots.iter().enumerate() {
                if i > 0 {
                    page.gap();
                }
                page.block(plot.laid_out(width, rows, unicode));
            }
        }
    }
}

/// Two blocks beside each other, the left one of equally wide lines.
fn beside(left: Vec<Line>, right: Vec<Line>, gap: usize) -> Vec<Line> {
    let width = left.iter().map(Line::width).max().unwrap_or(0);
    let rows = left.len().max(right.len());
    let mut left = left.into_iter();
    let mut right = right.into_iter();
    (0..rows)
        .map(|_| {
            let mut line = left.next().unwrap_or_default();
            line.pad_to(width + gap);
            line.append(right.next().unwrap_or_default());
            line
        })
        .collect()
}

struct AxisGlyphs {
    y: char,
    y_tick: char,
    x: char,
    x_tick: char,
    corner: char,
}

impl AxisGlyphs {
    fn new(unicode: bool) -> AxisGlyphs {
        let [y, y_tick, x, x_tick, corner] = if unicode {
            ['│', '┤', '─', '┬', '└']
        } else {
            ['|', '+', '-', '+', '+']
        };
        AxisGlyphs {
            y,
            y_tick,
            x,
            x_tick,
            corner,
        }
    }
}
