//! A table whose columns are as wide as they need to be.

use super::line::{Ink, Line, cleaned};

/// To which side the cells of a column are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Space between two columns.
const GAP: usize = 2;

/// Rows of cells under titles.
#[derive(Debug, Default)]
pub struct Table {
    columns: Vec<(String, Align, Vec<Line>)>,
}

impl Table {
    /// Title, side and cells of each column.
    pub fn columns(&self) -> &[(String, Align, Vec<Line>)] {
        &self.columns
    }

    /// Adds a column; all columns have as many cells.
    pub fn column(&mut self, title: impl Into<String>, align: Align, cells: Vec<Line>) {
        self.columns.push((title.into(), align, cells));
    }

    /// The width that it takes, undivided.
    pub fn width(&self, unicode: bool) -> usize {
        let widths = self.columns.iter().map(|c| column_width(c, unicode) + GAP);
        widths.sum::<usize>().saturating_sub(GAP)
    }

    /// Its lines. Where they would be wider than `width`, the columns that do not fit follow in
    /// further tables below, each beginning with the first column again.
    pub fn laid_out(&self, width: usize, unicode: bool) -> Vec<Line> {
        let widths: Vec<usize> = self
            .columns
            .iter()
            .map(|c| column_width(c, unicode))
            .collect();
        let Some(&first) = widths.first() else {
            return Vec::new();
        };
        let mut parts: Vec<Vec<usize>> = vec![vec![0]];
        let mut used = first;
        for (i, w) in widths.iter().enumerate().skip(1) {
            if used + GAP + w > width && parts.last().is_some_and(|p| p.len() > 1) {
                parts.push(vec![0]);
                used = first;
            }
            used += GAP + w;
            if let Some(part) = parts.last_mut() {
                part.push(i);
            }
        }
        let mut lines = Vec::new();
        for (n, part) in parts.iter().enumerate() {
            if n > 0 {
                lines.push(Line::new());
            }
            self.lay_out_part(part, &widths, unicode, &mut lines);
        }
        lines
    }

    fn lay_out_part(&self, part: &[usize], widths: &[usize], unicode: bool, to: &mut Vec<Line>) {
        let mut header = Line::new();
        for (n, &i) in part.iter().enumerate() {
            let (title, align, _) = &self.columns[i];
            let title = Line::of(Ink::Dim, cleaned(title, unicode));
            place(&mut header, title, *align, widths[i], n > 0);
        }
        if part.iter().any(|&i| !self.columns[i].0.is_empty()) {
            to.push(header);
        }
        for row in 0..self.columns[0].2.len() {
            let mut line = Line::new();
            for (n, &i) in part.iter().enumerate() {
                let (_, align, cells) = &self.columns[i];
                place(
                    &mut line,
                    cells[row].cleaned(unicode),
                    *align,
                    widths[i],
                    n > 0,
                );
            }
            to.push(line);
        }
    }
}

fn column_width((title, _, cells): &(String, Align, Vec<Line>), unicode: bool) -> usize {
    let cells = cells.iter().map(|c| c.cleaned(unicode).width());
    cells
        .max()
        .unwrap_or(0)
        .max(cleaned(title, unicode).chars().count())
}

fn place(line: &mut Line, cell: Line, align: Align, width: usize, gap: bool) {
    let start = line.width() + if gap { GAP } else { 0 };
    line.pad_to(match align {
        Align::Left => start,
        Align::Right => start + width - cell.width(),
    });
    line.append(cell);
    line.pad_to(start + width);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(table: &Table, width: usize) -> Vec<String> {
        let lines = table.laid_out(width, true);
        lines
            .iter()
            .map(|l| {
                let mut bytes = Vec::new();
                l.write(false, &mut bytes).unwrap();
                String::from_utf8(bytes).unwrap().trim_end().to_string()
            })
            .collect()
    }

    fn cells(texts: &[&str]) -> Vec<Line> {
        texts.iter().map(|t| Line::plain(*t)).collect()
    }

    #[test]
    fn numbers_stand_right_words_left_and_what_does_not_fit_follows_below() {
        let mut table = Table::default();
        table.column("users", Align::Right, cells(&["1", "100"]));
        table.column("rate", Align::Right, cells(&["1,833", "86,070"]));
        table.column("remark", Align::Left, cells(&["", "knee"]));
        assert_eq!(
            text(&table, 80),
            [
                "users    rate  remark",
                "    1   1,833",
                "  100  86,070  knee"
            ]
        );
        assert_eq!(
            text(&table, 15),
            [
                "users    rate",
                "    1   1,833",
                "  100  86,070",
                "",
                "users  remark",
                "    1",
                "  100  knee"
            ]
        );
    }
}
