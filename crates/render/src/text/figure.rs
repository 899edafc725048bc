//! Figures in characters: on a canvas, as boxes beside names, as a line of heights over time, or as
//! bars in a line of text.

use super::page::{INDENT, TextPage};
use super::plot::{Drawing, ink, x_axis};
use crate::document::line::{Ink, Line, cleaned};
use crate::number;
use crate::plot::{BoxPlot, Plot, Scale, Shape, Tone, Unit, span};

/// Rows within the axes of a plot.
const ROWS: usize = 12;

/// The least width of each of two plots side by side, in columns.
const COLUMNS_MIN: usize = 42;

/// Room beside a line of heights for its name and its range.
const BESIDE: usize = 36;

/// Space between two plots that stand beside each other.
const GAP: usize = 4;

/// Writes figures, two side by side if they fit. Bars are left out, as tables have them beside
/// their rows.
pub(super) fn show(page: &mut TextPage, plots: &[Plot]) {
    debug_assert!(!plots.iter().any(Plot::is_heat_map), "for pages alone");
    let on_canvas = |plot: &&Plot| !plot.zooms && !plot.y.is_of_categories();
    let drawn: Vec<&Plot> = plots.iter().filter(on_canvas).collect();
    let inner = page.inner_width();
    let half = inner.saturating_sub(GAP) / 2;
    let (unicode, in_pairs) = (page.unicode, half >= COLUMNS_MIN && drawn.len() > 1);
    for pair in drawn.chunks(if in_pairs { 2 } else { 1 }) {
        page.gap();
        let width = if in_pairs { half } else { inner };
        let laid_out = |plot: &&Plot| Drawing::of(plot, unicode).laid_out(width, ROWS);
        let mut lines = pair.iter().map(laid_out);
        match (lines.next(), lines.next()) {
            (Some(left), Some(right)) => page.block(beside(left, right)),
            (Some(only), _) => page.block(only),
            _ => {}
        }
    }
    for plot in plots {
        if plot.zooms {
            show_over_time(page, plot);
        } else if plot.y.is_of_categories() {
            show_boxes(page, plot);
        }
    }
}

/// Writes each series as a line of heights, with its range.
fn show_over_time(page: &mut TextPage, plot: &Plot) {
    page.gap();
    page.paragraph(INDENT, INDENT, Line::plain(&plot.title));
    let width = page.inner_width().saturating_sub(BESIDE);
    let mut facts = Vec::new();
    for series in plot.series.iter().filter(|s| s.listed) {
        let points = series.points();
        // The last only ends the level before it.
        let levels = points.split_last().map_or(points, |(_, levels)| levels);
        let heights: Vec<f64> =
            levels.iter().map(|p| if p.y.is_nan() { 0.0 } else { p.y }).collect();
        let keep = match plot.y.unit {
            _ if series.tone == Tone::Bad => KeptExtreme::Peaks,
            Unit::Time => KeptExtreme::Peaks,
            _ => KeptExtreme::Dips,
        };
        let spark = sparkline(&heights, keep, width, page.unicode);
        let range = match span(levels.iter().map(|p| p.y)) {
            None => number::MISSING.to_owned(),
            Some([low, high]) if low == high => plot.y.value(high),
            Some([low, high]) => format!("{} to {}", plot.y.value(low), plot.y.value(high)),
        };
        let line = Line::of(ink(series.tone), spark).with(Ink::Dim, format!("  {range}"));
        facts.push((series.name.clone(), line));
    }
    page.facts(&facts);
}

/// Distributions beside their names, all on one axis.
fn show_boxes(page: &mut TextPage, plot: &Plot) {
    let boxes = plot.series.iter().flat_map(|s| match &s.shape {
        Shape::Boxes(boxes, _) => boxes.as_slice(),
        _ => &[],
    });
    let boxes: Vec<BoxPlot> = boxes.copied().collect();
    if boxes.is_empty() {
        return;
    }
    page.gap();
    page.paragraph(INDENT, INDENT, Line::of(Ink::Strong, &plot.title));
    let (width, unicode) = (page.inner_width(), page.unicode);
    page.block(laid_out(&boxes, &plot.y, &plot.x, width, unicode));
    page.paragraph(INDENT, INDENT, Line::of(Ink::Dim, &plot.note));
}

/// Two blocks beside each other, the left one of equally wide lines.
fn beside(mut left: Vec<Line>, mut right: Vec<Line>) -> Vec<Line> {
    let width = left.iter().map(Line::width).max().unwrap_or(0);
    let rows = left.len().max(right.len());
    left.resize(rows, Line::default());
    right.resize(rows, Line::default());
    let lines = left.into_iter().zip(right).map(|(mut line, right)| {
        line.pad_to(width + GAP);
        line.append(right);
        line
    });
    lines.collect()
}

/// Eighths of a block, from below.
const FROM_BELOW: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_LEVELS: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// The value shown for several neighbours if a sparkline has more values than columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeptExtreme {
    /// The largest: no peak is lost.
    Peaks,
    /// The smallest: no gap is lost.
    Dips,
}

/// Values as heights over a common base of 0, one character each, at most `width`.
fn sparkline(values: &[f64], keep: KeptExtreme, width: usize, unicode: bool) -> String {
    let top = values.iter().copied().fold(0.0, f64::max);
    let per_column = values.len().div_ceil(width.max(1)).max(1);
    let columns = values.chunks(per_column);
    let levels = if unicode { FROM_BELOW } else { ASCII_LEVELS };
    let glyph = |chunk: &[f64]| {
        let values = chunk.iter().copied();
        let value = match keep {
            KeptExtreme::Peaks => values.fold(0.0, f64::max),
            KeptExtreme::Dips => values.fold(f64::INFINITY, f64::min),
        };
        if value <= 0.0 || top <= 0.0 {
            return if unicode { ' ' } else { '_' };
        }
        levels[((value / top * 8.0).ceil() as usize).clamp(1, 8) - 1]
    };
    columns.map(glyph).collect()
}

/// A line for each distribution over a common axis, within `width` columns. What lies outside the
/// axis is drawn at its end.
pub(super) fn laid_out(
    boxes: &[BoxPlot],
    names: &Scale,
    x: &Scale,
    width: usize,
    unicode: bool,
) -> Vec<Line> {
    let names: Vec<String> = boxes.iter().map(|b| cleaned(&names.value(b.at), unicode)).collect();
    let margin = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    let columns = width.saturating_sub(margin + 2).max(10);
    let column = |value: f64| {
        let position = x.axis.position(value).clamp(0.0, 1.0);
        (position * (columns - 1) as f64).round() as usize
    };
    let bar = if unicode { '│' } else { '|' };
    let mut lines = Vec::new();
    for (name, b) in names.into_iter().zip(boxes) {
        let mut line = Line::plain(name);
        line.pad_to(margin + 1);
        line.push(Ink::Dim, bar);
        line.append(drawn(b.percentiles.map(column), unicode));
        lines.push(line);
    }
    lines.extend(x_axis(&x.axis, margin, columns, unicode));
    lines
}

/// A distribution whose percentiles lie in these columns.
fn drawn([begin, from, middle, to, end]: [usize; 5], unicode: bool) -> Line {
    let [thin, heavy, mark, left, right] =
        if unicode { ['─', '━', '●', '├', '┤'] } else { ['-', '=', 'O', '|', '|'] };
    let mut line = Line::default();
    for at in 0..=end {
        let (ink, glyph) = match at {
            at if at == middle => (Ink::Strong, mark),
            at if (from..=to).contains(&at) => (Ink::Data, heavy),
            at if at < begin => (Ink::Plain, ' '),
            at if at == begin => (Ink::Data, left),
            at if at == end => (Ink::Data, right),
            _ => (Ink::Data, thin),
        };
        line.push(ink, glyph);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Unit;

    #[test]
    fn a_sparkline_keeps_its_peaks_or_its_dips() {
        let values = [0.0, 1.0, 2.0, 4.0, 8.0, 8.0];
        assert_eq!(sparkline(&values, KeptExtreme::Peaks, 10, true), " ▁▂▄██");
        assert_eq!(sparkline(&values, KeptExtreme::Peaks, 3, true), "▁▄█");
        assert_eq!(sparkline(&values, KeptExtreme::Dips, 3, true), " ▂█");
        assert_eq!(sparkline(&values, KeptExtreme::Peaks, 10, false), "__.-##");
        assert_eq!(sparkline(&[], KeptExtreme::Dips, 10, true), "");
    }

    fn text(percentiles: [f64; 5], unicode: bool) -> Vec<String> {
        let spread = BoxPlot { at: 0.0, percentiles };
        let names = Scale::categories(vec!["é".into()]);
        let x = Scale::linear(0.0, 20.0, Unit::Number, "");
        let lines = laid_out(&[spread], &names, &x, 24, unicode);
        let write = |line: &Line| {
            let mut bytes = Vec::new();
            line.write(false, &mut bytes).unwrap();
            String::from_utf8(bytes).unwrap().trim_end().to_string()
        };
        lines.iter().map(write).collect()
    }

    #[test]
    fn a_line_from_end_to_end_with_its_median() {
        assert_eq!(
            text([2.0, 5.0, 10.0, 12.0, 18.0], true),
            ["é │  ├──━━━━━●━━─────┤", "  └┬─────────┬─────────┬", "   0        10        20"]
        );
        let ascii = text([2.0, 5.0, 10.0, 12.0, 18.0], false);
        assert_eq!(ascii[0], "? |  |--=====O==-----|");
        assert_eq!(text([7.0; 5], true)[0], "é │       ●");
        assert_eq!(text([30.0; 5], true)[0], "é │                    ●");
    }
}
