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

/// The name of a line that the data are compared with. It stands beside the line where it covers
/// nothing, else in the legend.
#[derive(Clone, Debug)]
pub struct Label {
    /// What the line is.
    pub text: String,
    /// The ink of the line.
    pub ink: Ink,
    /// What stands for the line in the legend.
    pub sign: char,
    /// Where the line is.
    pub at: Place,
}

/// Where a line is, in the units of the axes.
#[derive(Clone, Debug)]
pub enum Place {
    /// A level at a value of y.
    Level(f64),
    /// A vertical line at a value of x.
    Upright(f64),
    /// A line through points.
    Along(Vec<(f64, f64)>),
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
    /// Names of lines, the most important first.
    pub labels: Vec<Label>,
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

    /// A plot of nothing yet.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Plot {
        Plot {
            title: title.into(),
            x,
            y,
            layers: Vec::new(),
            legend: Vec::new(),
            labels: Vec::new(),
        }
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
        let labels = self.labels.iter();
        let without_room: Vec<&Label> = labels
            .filter(|label| !self.name(label, &mut canvas, unicode))
            .collect();
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
        lines.extend(self.legend_lines(&without_room, width, unicode));
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

    /// Writes the name of a line beside it, at the first place where it covers nothing; whether
    /// there was one.
    fn name(&self, label: &Label, canvas: &mut Canvas, unicode: bool) -> bool {
        let text = cleaned(&label.text, unicode);
        let length = text.chars().count();
        let (rows, columns) = canvas.size();
        let inside = |p: f64| (0.0..=1.0).contains(&p);
        // On both sides of a cell, a cell away from it.
        let beside = |row: usize, column: usize| {
            let before = column.checked_sub(length + 1);
            [Some(column + 2), before].map(|column| Some((row, column?)))
        };
        let places: Vec<Option<(usize, usize)>> = match &label.at {
            Place::Level(y) => {
                let y = self.y.position(*y);
                if !inside(y) {
                    return true;
                }
                let row = canvas.row(y);
                let last = columns.saturating_sub(length + 1);
                let starts = [1, last, columns / 3, columns / 2];
                let of_row = |row: usize| starts.map(|column| Some((row, column)));
                let rows = [row.checked_sub(1), Some(row + 1)].into_iter().flatten();
                rows.flat_map(of_row).collect()
            }
            Place::Upright(x) => {
                let x = self.x.position(*x);
                if !inside(x) {
                    return true;
                }
                let column = canvas.column(x);
                (0..rows).flat_map(|row| beside(row, column)).collect()
            }
            Place::Along(points) => {
                let places = points.iter().rev();
                let places = places.map(|(x, y)| (self.x.position(*x), self.y.position(*y)));
                let seen = places.filter(|(x, y)| inside(*x) && inside(*y));
                seen.flat_map(|(x, y)| beside(canvas.row(y), canvas.column(x)))
                    .collect()
            }
        };
        let mut places = places.into_iter().flatten();
        places.any(|(row, column)| canvas.words(row, column, &text, label.ink))
    }

    fn legend_lines(&self, more: &[&Label], width: usize, unicode: bool) -> Vec<Line> {
        let mut lines = vec![Line::new()];
        let more = more.iter().map(|l| (l.sign, l.ink, l.text.clone()));
        for (sign, ink, text) in self.legend.iter().cloned().chain(more) {
            let text = cleaned(&text, unicode);
            let entry = Line::of(ink, sign).with(Ink::Dim, format!(" {text}"));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::number::number;
    use crate::text::{overload_plots, sweep_plots};
    use knee_core::report::Conclusion;

    const GUIDE: Stroke = Stroke {
        ink: Ink::Guide,
        dashed: true,
        ascii: '-',
    };

    fn level(text: &str, y: f64) -> Label {
        Label {
            text: text.into(),
            ink: Ink::Guide,
            sign: '-',
            at: Place::Level(y),
        }
    }

    fn text(lines: &[Line]) -> Vec<String> {
        let line = |line: &Line| -> String {
            let pieces = line.pieces().iter();
            pieces.map(|(_, text)| text.as_str()).collect()
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn a_name_moves_to_where_there_is_room_and_else_to_the_legend() {
        let axis = || Axis::linear(0.0, 10.0, number);
        let mut plot = Plot::new("", axis(), axis());
        let flat = |y| Layer::Curve(vec![(0.0, y), (10.0, y)], GUIDE);
        plot.layers = vec![flat(10.0), flat(5.0)];
        plot.labels = vec![
            level("most", 10.0),
            level("half", 5.0),
            level("half of it again", 5.0),
            level("out of sight", 11.0),
        ];
        let lines = text(&plot.laid_out(20, 5, false));
        assert!(
            lines[2].contains("most  ") && lines[2].contains("half"),
            "{lines:#?}"
        );
        assert!(
            lines.iter().any(|l| l.contains("half of it again")),
            "{lines:#?}"
        );
        plot.labels[2].text = "more than has room".into();
        let lines = text(&plot.laid_out(20, 5, false));
        assert!(
            lines.iter().any(|l| l.starts_with("- more than has room")),
            "{lines:#?}"
        );
        assert!(!lines.iter().any(|l| l.contains("sight")), "{lines:#?}");
    }

    fn plots(unicode: bool) -> Vec<(&'static str, Plot)> {
        let all = fixtures::all().into_iter();
        let of = |(name, report): (&'static str, knee_core::report::Report)| {
            let plots = match &report.conclusion {
                Conclusion::Sweep(c) if c.levels.len() > 1 => {
                    let response = sweep_plots::response_plot(c, unicode);
                    let all = [Some(sweep_plots::throughput_plot(c, unicode)), response];
                    all.into_iter().flatten().collect()
                }
                Conclusion::Overload(c) => {
                    let mut plots = overload_plots::arriving_plots(c, unicode);
                    plots.extend(overload_plots::served_plot(c, unicode));
                    plots
                }
                _ => Vec::new(),
            };
            plots.into_iter().map(move |plot| (name, plot))
        };
        all.flat_map(of).collect()
    }

    /// Without its names a plot is the same but for empty cells: no name covers anything, and each
    /// stands in the plot or in the legend, whole.
    #[test]
    fn no_name_covers_anything_in_any_plot() {
        let mut named = 0;
        for (unicode, width) in [(true, 44), (true, 58), (true, 98), (false, 47), (false, 78)] {
            for (name, plot) in plots(unicode) {
                let with = text(&plot.laid_out(width, 11, unicode));
                let wanted: Vec<String> = plot
                    .labels
                    .iter()
                    .map(|label| cleaned(&label.text, unicode))
                    .collect();
                let bare = Plot {
                    labels: Vec::new(),
                    ..plot
                };
                let without = text(&bare.laid_out(width, 11, unicode));
                let title = (0..)
                    .find(|i| with[*i].contains(['┤', '+', '│', '|']))
                    .unwrap();
                for (a, b) in with.iter().zip(&without).skip(title).take(11) {
                    let same = a.chars().zip(b.chars()).all(|(a, b)| a == b || b == ' ');
                    assert!(same, "{name} at {width}:\n{a}\n{b}");
                }
                for text in wanted {
                    named += 1;
                    let times = with
                        .iter()
                        .skip(title)
                        .filter(|l| l.contains(&text))
                        .count();
                    assert_eq!(times, 1, "{text} in {name} at {width}: {with:#?}");
                }
            }
        }
        assert!(named > 50, "{named}");
    }
}
