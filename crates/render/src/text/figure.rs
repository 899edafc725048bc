//! Figures in characters: on a canvas, as boxes beside names, or as a line of heights over time.

use super::bars::{KeptExtreme, sparkline};
use super::boxes;
use super::page::{INDENT, TextPage};
use super::plot::{Drawing, ink};
use crate::axis::span;
use crate::document::line::{Ink, Line};
use crate::number;
use crate::plot::{BoxPlot, Plot, Shape, Tone, Unit};

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
        let laid_out = |plot: &&Plot| Drawing::of(plot, unicode).laid_out(width, ROWS, unicode);
        let mut lines = pair.iter().map(laid_out);
        match (lines.next(), lines.next()) {
            (Some(left), Some(right)) => page.block(beside(left, right, GAP)),
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
    page.block(boxes::laid_out(&boxes, &plot.y, &plot.x, width, unicode));
    page.paragraph(INDENT, INDENT, Line::of(Ink::Dim, &plot.note));
}

/// Two blocks beside each other, the left one of equally wide lines.
fn beside(mut left: Vec<Line>, mut right: Vec<Line>, gap: usize) -> Vec<Line> {
    let width = left.iter().map(Line::width).max().unwrap_or(0);
    let rows = left.len().max(right.len());
    left.resize(rows, Line::new());
    right.resize(rows, Line::new());
    let both = left.into_iter().zip(right).map(|(mut line, right)| {
        line.pad_to(width + gap);
        line.append(right);
        line
    });
    both.collect()
}
