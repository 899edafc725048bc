//! A drawing surface of character cells: Braille dots (2 by 4 in each cell), or ASCII.

use crate::document::line::{Ink, Line};

/// Dots of a Braille cell by column and row, as bits of its code point (Unicode, 28xx block).
const BRAILLE: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// Dots drawn and dots left out in turn along a dashed line.
const DASH: usize = 3;

#[derive(Clone, Copy, Debug)]
struct Cell {
    dots: u32,
    glyph: Option<char>,
    ink: Ink,
}

impl Cell {
    fn is_empty(&self) -> bool {
        self.glyph.is_none() && self.dots == 0
    }

    fn put(&mut self, glyph: char, ink: Ink) {
        self.glyph = Some(glyph);
        self.ink = ink;
    }
}

/// The style of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stroke {
    /// Its colour.
    pub ink: Ink,
    /// Whether with gaps.
    pub dashed: bool,
    /// The character of the line without Braille.
    pub ascii: char,
}

/// The surface. Positions run from 0 to 1, from left to right and from bottom to top.
#[derive(Debug)]
pub(super) struct Canvas {
    columns: usize,
    rows: usize,
    unicode: bool,
    cells: Vec<Cell>,
}

impl Canvas {
    /// An empty canvas of character cells.
    pub(super) fn new(columns: usize, rows: usize, unicode: bool) -> Canvas {
        let empty = Cell { dots: 0, glyph: None, ink: Ink::Plain };
        Canvas { columns, rows, unicode, cells: vec![empty; columns * rows] }
    }

    /// A line through points; what lies outside is cut off.
    pub(super) fn polyline(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        let (width, height) = self.dots();
        let scaled = |(x, y): (f64, f64)| (x * (width - 1.0), (1.0 - y) * (height - 1.0));
        let mut drawn = 0;
        for pair in points.windows(2) {
            let (a, b) = (scaled(pair[0]), scaled(pair[1]));
            let length = (b.0 - a.0).abs().max((b.1 - a.1).abs());
            // A line far out of sight is not walked dot by dot.
            let steps = length.ceil().clamp(1.0, 10_000.0);
            for i in 0..steps as usize {
                let t = i as f64 / steps;
                if !stroke.dashed || (drawn / DASH).is_multiple_of(2) {
                    self.dot(a.0 + t * (b.0 - a.0), a.1 + t * (b.1 - a.1), stroke);
                }
                drawn += 1;
            }
        }
        if let (Some(&end), false) = (points.last(), stroke.dashed) {
            let (x, y) = scaled(end);
            self.dot(x, y, stroke);
        }
    }

    /// Puts a character at a position, over anything else.
    pub(super) fn glyph(&mut self, (x, y): (f64, f64), glyph: char, ink: Ink) {
        if let Some(i) = self.cell_index(x, y) {
            self.cells[i].put(glyph, ink);
        }
    }

    /// Puts a column of characters at a position, behind anything else.
    pub(super) fn vertical(&mut self, x: f64, glyph: char, ink: Ink) {
        for row in 0..self.rows {
            let y = 1.0 - (row as f64 + 0.5) / self.rows as f64;
            let Some(i) = self.cell_index(x, y) else {
                return;
            };
            if self.cells[i].is_empty() {
                self.cells[i].put(glyph, ink);
            }
        }
    }

    /// Puts words from this cell on, if these cells and their neighbours are empty. Returns whether
    /// they were.
    pub(super) fn words(&mut self, row: usize, column: usize, words: &str, ink: Ink) -> bool {
        let length = words.chars().count();
        if length == 0 || row >= self.rows || column + length > self.columns {
            return false;
        }
        let first = row * self.columns;
        let around = column.saturating_sub(1)..(column + length + 1).min(self.columns);
        if !around.map(|column| first + column).all(|i| self.cells[i].is_empty()) {
            return false;
        }
        for (i, c) in words.chars().enumerate() {
            self.cells[first + column + i].put(c, ink);
        }
        true
    }

    /// The number of rows and columns of cells.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// Row by row from the top.
    pub(super) fn lines(&self) -> Vec<Line> {
        let rows = self.cells.chunks(self.columns.max(1));
        rows.map(|row| {
            let mut line = Line::default();
            for cell in row {
                let drawn = char::from_u32(0x2800 + cell.dots).filter(|_| cell.dots > 0);
                line.push(cell.ink, cell.glyph.or(drawn).unwrap_or(' '));
            }
            line
        })
        .collect()
    }

    /// The row of cells, from the top, of a vertical position.
    pub(super) fn row(&self, y: f64) -> usize {
        cell(1.0 - y, self.rows, self.dots_per_cell().1)
    }

    /// The column of cells of a horizontal position.
    pub(super) fn column(&self, x: f64) -> usize {
        cell(x, self.columns, self.dots_per_cell().0)
    }

    fn cell_index(&self, x: f64, y: f64) -> Option<usize> {
        let inside = (0.0..=1.0).contains(&x) && (0.0..=1.0).contains(&y);
        inside.then(|| self.row(y) * self.columns + self.column(x))
    }

    /// Dots across and down.
    fn dots(&self) -> (f64, f64) {
        let (across, down) = self.dots_per_cell();
        ((self.columns * across) as f64, (self.rows * down) as f64)
    }

    fn dots_per_cell(&self) -> (usize, usize) {
        if self.unicode { (2, 4) } else { (1, 1) }
    }

    fn dot(&mut self, x: f64, y: f64, stroke: Stroke) {
        let (width, height) = self.dots();
        let (x, y) = (x.round(), y.round());
        if !(x >= 0.0 && x < width && y >= 0.0 && y < height) {
            return;
        }
        let (x, y) = (x as usize, y as usize);
        if self.unicode {
            let cell = &mut self.cells[y / 4 * self.columns + x / 2];
            cell.dots |= BRAILLE[x % 2][y % 4];
            cell.ink = stroke.ink;
        } else {
            self.cells[y * self.columns + x].put(stroke.ascii, stroke.ink);
        }
    }
}

/// The cell that the nearest dot falls into, as lines are drawn.
fn cell(position: f64, cells: usize, dots_per_cell: usize) -> usize {
    let last = (cells * dots_per_cell).saturating_sub(1);
    let dot = (position.clamp(0.0, 1.0) * last as f64).round() as usize;
    dot / dots_per_cell
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOLID: Stroke = Stroke { ink: Ink::Plain, dashed: false, ascii: '*' };

    fn drawn(canvas: &Canvas) -> String {
        let mut bytes = Vec::new();
        for line in canvas.lines() {
            line.write(false, &mut bytes).unwrap();
        }
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_diagonal_in_braille_and_in_ascii() {
        let mut canvas = Canvas::new(4, 2, true);
        canvas.polyline(&[(0.0, 0.0), (1.0, 1.0)], SOLID);
        assert_eq!(drawn(&canvas), "  ⡠⠊\n⡠⠊\n");
        let mut canvas = Canvas::new(4, 4, false);
        canvas.polyline(&[(0.0, 0.0), (1.0, 1.0)], SOLID);
        assert_eq!(drawn(&canvas), "   *\n  *\n *\n*\n");
    }

    #[test]
    fn what_lies_outside_is_cut_off() {
        let mut canvas = Canvas::new(3, 2, false);
        canvas.polyline(&[(-1.0, 0.0), (2.0, 0.0)], SOLID);
        canvas.polyline(&[(0.0, 5.0), (f64::NAN, f64::INFINITY)], SOLID);
        canvas.glyph((1.5, 0.5), 'o', Ink::Plain);
        assert_eq!(drawn(&canvas), "\n***\n");
    }

    #[test]
    fn words_stand_only_where_nothing_else_is() {
        let mut canvas = Canvas::new(8, 2, false);
        canvas.glyph((0.0, 1.0), 'o', Ink::Plain);
        assert!(!canvas.words(0, 1, "abc", Ink::Dim), "it would touch the mark");
        assert!(!canvas.words(0, 6, "abc", Ink::Dim), "it would be cut");
        assert!(!canvas.words(2, 0, "abc", Ink::Dim));
        assert!(canvas.words(0, 2, "abc", Ink::Dim));
        assert!(!canvas.words(0, 5, "d", Ink::Dim), "it would touch other words");
        assert!(canvas.words(1, 0, "whole", Ink::Dim));
        assert_eq!(drawn(&canvas), "o abc\nwhole\n");
    }

    #[test]
    fn a_vertical_line_passes_behind_marks() {
        let mut canvas = Canvas::new(3, 3, false);
        canvas.glyph((0.5, 0.5), 'o', Ink::Plain);
        canvas.vertical(0.5, ':', Ink::Plain);
        assert_eq!(drawn(&canvas), " :\n o\n :\n");
    }
}
