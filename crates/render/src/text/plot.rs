//! A figure on a canvas of characters: axes with ticks, lines, marked points and a legend.

use super::canvas::{Canvas, Stroke};
use crate::document::line::{Ink, Line, cleaned};
use crate::plot::{Axis, Dash, Mark, Plot, PlotSeries, Point, Reference, ReferenceAt, Shape, Tone};

/// A layer of a drawing, over the earlier ones.
#[derive(Debug)]
enum Layer {
    /// A line through points in the units of the axes.
    Curve(Vec<(f64, f64)>, Stroke),
    /// Marked points.
    Marks(Vec<(f64, f64)>, char, Ink),
    /// A vertical line at a value of x.
    Vertical(f64, char, Ink),
}

/// The name of a reference line. It stands beside the line if it covers nothing, else in the
/// legend.
#[derive(Clone, Debug)]
struct Label {
    /// The name.
    text: String,
    /// The ink of the line.
    ink: Ink,
    /// The sign of the line in the legend.
    sign: char,
    /// The position of the line.
    at: LabelPlace,
}

/// The position of a line in the units of the axes.
#[derive(Clone, Debug)]
enum LabelPlace {
    /// A level at a value of y.
    Level(f64),
    /// A vertical line at a value of x.
    Upright(f64),
    /// A line through points.
    Along(Vec<(f64, f64)>),
}

/// A figure as layers on a canvas.
#[derive(Debug)]
pub(super) struct Drawing {
    /// The title above the plot.
    title: String,
    /// The horizontal axis.
    x: Axis,
    /// The vertical axis.
    y: Axis,
    /// Layers from back to front.
    layers: Vec<Layer>,
    /// Signs with their meanings, below the plot.
    legend: Vec<(char, Ink, String)>,
    /// Names of lines, the most important first.
    labels: Vec<Label>,
    /// Whether characters beyond ASCII may be used.
    unicode: bool,
}

impl Drawing {
    /// The drawing of a figure over two axes of numbers.
    pub(super) fn of(plot: &Plot, unicode: bool) -> Drawing {
        let title = match plot.y.name.as_str() {
            "" => plot.title.clone(),
            name => format!("{} ({name})", plot.title),
        };
        let mut drawing = Drawing {
            title,
            x: plot.x.axis,
            y: plot.y.axis,
            layers: Vec::new(),
            legend: Vec::new(),
            labels: Vec::new(),
            unicode,
        };
        plot.references.iter().for_each(|reference| drawing.add_reference(reference));
        plot.series.iter().for_each(|series| drawing.add_series(series));
        drawing
    }

    fn add_reference(&mut self, reference: &Reference) {
        let ink = ink(reference.tone);
        let (at, sign) = match reference.at {
            ReferenceAt::X(x) => {
                let sign = if self.unicode { '╎' } else { ':' };
                self.layers.push(Layer::Vertical(x, sign, ink));
                (LabelPlace::Upright(x), sign)
            }
            ReferenceAt::Y(y) => {
                let ends = [0.0, 1.0].map(|position| (self.x.value(position), y));
                self.layers.push(Layer::Curve(ends.into(), dashed(ink)));
                (LabelPlace::Level(y), guide_sign(self.unicode))
            }
        };
        if !reference.label.is_empty() {
            self.labels.push(Label { text: reference.label.clone(), ink, sign, at });
        }
    }

    fn add_series(&mut self, series: &PlotSeries) {
        let known =
            |p: &&Point| self.x.position(p.x).is_finite() && self.y.position(p.y).is_finite();
        let points = series.points().iter().filter(known);
        let points: Vec<(f64, f64)> = points.map(|p| (p.x, p.y)).collect();
        let ink = ink(series.tone);
        if points.is_empty() || matches!(series.shape, Shape::Band(_)) {
            return;
        }
        let is_guide = !series.listed;
        if matches!(series.shape, Shape::Line(_) | Shape::Step(_)) {
            let stroke = Stroke { ink, dashed: false, ascii: '.' };
            let is_solid = !is_guide && series.dash == Dash::Solid;
            let stroke = if is_solid { stroke } else { dashed(ink) };
            self.layers.push(Layer::Curve(points.clone(), stroke));
        }
        let glyph = glyph(series.mark, series.tone, self.unicode);
        if let Some(glyph) = glyph {
            self.layers.push(Layer::Marks(points.clone(), glyph, ink));
        }
        let text = series.name.clone();
        if text.is_empty() {
            return;
        }
        if is_guide {
            let sign = guide_sign(self.unicode);
            return self.labels.push(Label { text, ink, sign, at: LabelPlace::Along(points) });
        }
        let line = match (series.dash, self.unicode) {
            (Dash::Solid, true) => '─',
            (Dash::Solid, false) => '.',
            _ => guide_sign(self.unicode),
        };
        self.legend.push((glyph.unwrap_or(line), ink, text));
    }

    /// The lines of the figure, all `width` columns wide, `rows` of them within the axes.
    pub(super) fn laid_out(&self, width: usize, rows: usize) -> Vec<Line> {
        let unicode = self.unicode;
        let ticks: Vec<(f64, String)> = labelled(&self.y, (rows / 3).max(2), unicode);
        let margin = ticks.iter().map(|(_, l)| l.chars().count()).max().unwrap_or(0);
        let columns = width.saturating_sub(margin + 2).max(10);
        let mut canvas = Canvas::new(columns, rows, unicode);
        for layer in &self.layers {
            self.draw(layer, &mut canvas);
        }
        let labels = self.labels.iter();
        let without_room: Vec<&Label> =
            labels.filter(|label| !self.write_name(label, &mut canvas)).collect();
        let mut lines = Line::of(Ink::Plain, cleaned(&self.title, unicode)).wrapped(width, 0);
        for line in &mut lines {
            *line = Line::plain(line.text().trim_end());
        }
        let [bar, bar_tick, ..] = axis_glyphs(unicode);
        for (row, drawn) in canvas.lines().into_iter().enumerate() {
            let tick = ticks.iter().find(|(v, _)| canvas.row(self.y.position(*v)) == row);
            let label = tick.map_or("", |(_, l)| l);
            let bar = if tick.is_some() { bar_tick } else { bar };
            let mut line = Line::of(Ink::Dim, format!("{label:>margin$} {bar}"));
            line.append(drawn);
            lines.push(line);
        }
        lines.extend(x_axis(&self.x, margin, columns, unicode));
        lines.extend(self.legend_lines(&without_room, width));
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

    /// Writes the name of a line beside it, at the first place where it covers nothing. Returns
    /// whether one was found.
    fn write_name(&self, label: &Label, canvas: &mut Canvas) -> bool {
        let text = cleaned(&label.text, self.unicode);
        let length = text.chars().count();
        let (rows, columns) = canvas.size();
        let inside = |p: f64| (0.0..=1.0).contains(&p);
        // On both sides of a cell, a cell away from it.
        let beside = |row: usize, column: usize| {
            let before = column.checked_sub(length + 1);
            [Some(column + 2), before].map(|column| Some((row, column?)))
        };
        let places: Vec<Option<(usize, usize)>> = match &label.at {
            LabelPlace::Level(y) => {
                let y = self.y.position(*y);
                if !inside(y) {
                    return true;
                }
                let row = canvas.row(y);
                let last = columns.saturating_sub(length + 1);
                let starts = [1, last, columns / 3, columns / 2];
                let of_row = |row: usize| starts.map(|column| Some((row, column)));
                [row.checked_sub(1), Some(row + 1)].into_iter().flatten().flat_map(of_row).collect()
            }
            LabelPlace::Upright(x) => {
                let x = self.x.position(*x);
                if !inside(x) {
                    return true;
                }
                let column = canvas.column(x);
                (0..rows).flat_map(|row| beside(row, column)).collect()
            }
            LabelPlace::Along(points) => {
                let places = points.iter().rev();
                let places = places.map(|(x, y)| (self.x.position(*x), self.y.position(*y)));
                let visible = places.filter(|(x, y)| inside(*x) && inside(*y));
                visible.flat_map(|(x, y)| beside(canvas.row(y), canvas.column(x))).collect()
            }
        };
        let mut places = places.into_iter().flatten();
        places.any(|(row, column)| canvas.words(row, column, &text, label.ink))
    }

    fn legend_lines(&self, more: &[&Label], width: usize) -> Vec<Line> {
        let mut lines = vec![Line::default()];
        let more = more.iter().map(|l| (l.sign, l.ink, l.text.clone()));
        for (sign, ink, text) in self.legend.iter().cloned().chain(more) {
            let text = cleaned(&text, self.unicode);
            let entry = Line::of(ink, sign).with(Ink::Dim, format!(" {text}"));
            let used = lines.last().map_or(0, Line::width);
            if used > 0 && used + 3 + entry.width() > width {
                lines.push(Line::default());
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

/// A horizontal axis of `columns` columns from column `margin` + 2 on, and those of its labels that
/// do not touch each other.
pub(super) fn x_axis(x: &Axis, margin: usize, columns: usize, unicode: bool) -> [Line; 2] {
    let [.., glyph, glyph_tick, corner] = axis_glyphs(unicode);
    let canvas = Canvas::new(columns, 1, unicode);
    let mut rule = vec![glyph; columns];
    let start = margin + 2;
    let mut labels = Line::default();
    for (value, label) in labelled(x, columns / 8, unicode) {
        let column = canvas.column(x.position(value));
        let length = label.chars().count();
        let at = (start + column).saturating_sub(length / 2);
        let at = at.min((start + columns).saturating_sub(length));
        if at < labels.width() + usize::from(labels.width() > 0) {
            continue;
        }
        rule[column] = glyph_tick;
        labels.pad_to(at);
        labels.push(Ink::Dim, label);
    }
    let rule: String = rule.into_iter().collect();
    [Line::of(Ink::Dim, format!("{:margin$} {corner}{rule}", "")), labels]
}

fn labelled(axis: &Axis, wanted: usize, unicode: bool) -> Vec<(f64, String)> {
    axis.ticks(wanted).into_iter().map(|v| (v, cleaned(&(axis.label)(v), unicode))).collect()
}

/// The sign of a dashed line.
fn guide_sign(unicode: bool) -> char {
    if unicode { '╌' } else { '-' }
}

fn dashed(ink: Ink) -> Stroke {
    Stroke { ink, dashed: true, ascii: '-' }
}

/// The ink of a colour.
pub(super) fn ink(tone: Tone) -> Ink {
    match tone {
        Tone::First => Ink::Data,
        Tone::Second => Ink::Warn,
        Tone::Third => Ink::Good,
        Tone::Fourth | Tone::Muted => Ink::Guide,
        Tone::Bad => Ink::Bad,
    }
}

/// The character of a mark. Marks that differ by colour on a page differ by shape in text.
fn glyph(mark: Mark, tone: Tone, unicode: bool) -> Option<char> {
    let (glyph, ascii) = match (mark, tone) {
        (Mark::None, _) => return None,
        (Mark::Dot, _) => ('●', 'o'),
        (Mark::Ring, _) => ('○', 'x'),
        (Mark::Square, Tone::Fourth) => ('◆', '*'),
        (Mark::Square, _) => ('■', '#'),
        (Mark::Frame, Tone::Fourth) => ('◇', '+'),
        (Mark::Frame, _) => ('□', '%'),
    };
    Some(if unicode { glyph } else { ascii })
}

/// The vertical axis, its tick, the horizontal axis, its tick, and the corner.
fn axis_glyphs(unicode: bool) -> [char; 5] {
    if unicode { ['│', '┤', '─', '┬', '└'] } else { ['|', '+', '-', '+', '+'] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Block, Documented, Medium};
    use crate::fixtures;
    use crate::number::number;

    const GUIDE: Stroke = Stroke { ink: Ink::Guide, dashed: true, ascii: '-' };

    fn drawing(x: Axis, y: Axis) -> Drawing {
        Drawing {
            title: String::new(),
            x,
            y,
            layers: Vec::new(),
            legend: Vec::new(),
            labels: Vec::new(),
            unicode: false,
        }
    }

    fn level(text: &str, y: f64) -> Label {
        Label { text: text.into(), ink: Ink::Guide, sign: '-', at: LabelPlace::Level(y) }
    }

    fn text(lines: &[Line]) -> Vec<String> {
        let line = |line: &Line| -> String {
            line.pieces().iter().map(|(_, text)| text.as_str()).collect()
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn a_name_moves_to_where_there_is_room_and_else_to_the_legend() {
        let axis = || Axis::linear(0.0, 10.0, number);
        let mut plot = drawing(axis(), axis());
        let flat = |y| Layer::Curve(vec![(0.0, y), (10.0, y)], GUIDE);
        plot.layers = vec![flat(10.0), flat(5.0)];
        plot.labels = vec![
            level("most", 10.0),
            level("half", 5.0),
            level("half of it again", 5.0),
            level("out of sight", 11.0),
        ];
        let lines = text(&plot.laid_out(20, 5));
        assert!(lines[2].contains("most  ") && lines[2].contains("half"), "{lines:#?}");
        assert!(lines.iter().any(|l| l.contains("half of it again")), "{lines:#?}");
        plot.labels[2].text = "more than has room".into();
        let lines = text(&plot.laid_out(20, 5));
        assert!(lines.iter().any(|l| l.starts_with("- more than has room")), "{lines:#?}");
        assert!(!lines.iter().any(|l| l.contains("sight")), "{lines:#?}");
    }

    fn plots(unicode: bool) -> Vec<(&'static str, Drawing)> {
        let mut drawings = Vec::new();
        for (name, report) in fixtures::all() {
            for section in &report.document().sections {
                for block in section.blocks_for(Medium::Lines) {
                    let Block::Plots(plots, _) = block else {
                        continue;
                    };
                    let drawn = plots.iter().filter(|p| !p.zooms && !p.y.is_of_categories());
                    drawings.extend(drawn.map(|plot| (name, Drawing::of(plot, unicode))));
                }
            }
        }
        drawings
    }

    /// Without its names a plot is the same except for empty cells. No name covers anything, and
    /// each stands in the plot or in the legend, whole.
    #[test]
    fn no_name_covers_anything_in_any_plot() {
        let mut named = 0;
        for (unicode, width) in [(true, 44), (true, 58), (true, 98), (false, 47), (false, 78)] {
            for (name, plot) in plots(unicode) {
                let with = text(&plot.laid_out(width, 11));
                let wanted: Vec<String> =
                    plot.labels.iter().map(|label| cleaned(&label.text, unicode)).collect();
                let bare = Drawing { labels: Vec::new(), ..plot };
                let without = text(&bare.laid_out(width, 11));
                let title = (0..).find(|i| with[*i].contains(['┤', '+', '│', '|'])).unwrap();
                for (a, b) in with.iter().zip(&without).skip(title).take(11) {
                    let same = a.chars().zip(b.chars()).all(|(a, b)| a == b || b == ' ');
                    assert!(same, "{name} at {width}:\n{a}\n{b}");
                }
                for text in wanted {
                    named += 1;
                    let times = with.iter().skip(title).filter(|l| l.contains(&text)).count();
                    assert_eq!(times, 1, "{text} in {name} at {width}: {with:#?}");
                }
            }
        }
        assert!(named > 50, "{named}");
    }
}
