//! A table whose columns are as wide as they need to be.

use super::bars::bar;
use crate::document::line::{Ink, Line, cleaned};
use crate::document::table::{Align, Table};

/// Space between two columns.
const GAP: usize = 2;

/// The widest bar, and the narrowest that is worth its place.
const BAR_COLUMNS: usize = 40;
const BAR_COLUMNS_MIN: usize = 8;

type Column = (String, Align, Vec<Line>);

/// The lines of a table with its bars. Where they would be wider than `width`, the columns that do
/// not fit follow in further tables below, each beginning with the first column again.
pub(super) fn laid_out(table: &Table, width: usize, unicode: bool) -> Vec<Line> {
    let first = table
        .columns()
        .first()
        .map_or(0, |c| column_width(c, unicode));
    // Words that are too wide even beside the first column alone stand below, row by row.
    let is_wide = |c: &Column| c.1 == Align::Left && first + GAP + column_width(c, unicode) > width;
    let mut columns = Vec::new();
    let mut wide = Vec::new();
    for (i, column) in table.columns().iter().enumerate() {
        match i > 0 && is_wide(column) {
            true => wide.push(column),
            false => columns.push(column.clone()),
        }
    }
    let used: usize = columns.iter().map(|c| column_width(c, unicode) + GAP).sum();
    let room = width.saturating_sub(used) + GAP;
    let bars = table.bars();
    let each = (room / bars.len().max(1))
        .saturating_sub(GAP)
        .min(BAR_COLUMNS);
    for bars in bars.iter().filter(|bars| {
        let title = bars.title.chars().count();
        each >= BAR_COLUMNS_MIN.max(title)
    }) {
        let drawn = |share: &Option<f64>| {
            let share = share.as_ref();
            share.map_or_else(Line::new, |s| Line::of(bars.ink, bar(*s, each, unicode)))
        };
        let cells = bars.shares.iter().map(drawn).collect();
        columns.push((bars.title.clone(), Align::Left, cells));
    }
    let fits = |c: &Column| first + GAP + column_width(c, unicode) <= width;
    if !columns.iter().skip(1).all(fits) {
        return stacked(table.columns(), width, unicode);
    }
    let mut lines = parted(&columns, width, unicode);
    for (_, _, cells) in wide {
        lines.push(Line::new());
        let names = table
            .columns()
            .first()
            .map_or(&[][..], |(_, _, names)| names);
        for (name, cell) in names.iter().zip(cells).filter(|(_, cell)| cell.width() > 0) {
            let mut line = name.cleaned(unicode);
            line.pad_to(first + GAP);
            line.append(cell.cleaned(unicode));
            lines.extend(line.wrapped(width, (first + GAP).min(width / 2)));
        }
    }
    lines
}

/// Each name on lines of its own, and its cells below it, where nothing fits beside the names.
fn stacked(columns: &[Column], width: usize, unicode: bool) -> Vec<Line> {
    let Some(((_, _, names), others)) = columns.split_first() else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (row, name) in names.iter().enumerate() {
        lines.extend(name.cleaned(unicode).wrapped(width, GAP));
        let mut below = Line::plain(" ".repeat(GAP));
        let cells = others.iter().map(|(title, _, cells)| (title, &cells[row]));
        for (i, (title, cell)) in cells.filter(|(_, cell)| cell.width() > 0).enumerate() {
            below.push(Ink::Plain, if i > 0 { ", " } else { "" });
            below.push(Ink::Dim, cleaned(title, unicode));
            below.push(Ink::Plain, if title.is_empty() { "" } else { " " });
            below.append(cell.cleaned(unicode));
        }
        lines.extend(below.wrapped(width, GAP));
    }
    lines
}

fn parted(columns: &[Column], width: usize, unicode: bool) -> Vec<Line> {
    let widths: Vec<usize> = columns.iter().map(|c| column_width(c, unicode)).collect();
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
        lay_out_part(columns, part, &widths, unicode, &mut lines);
    }
    lines
}

fn lay_out_part(
    columns: &[Column],
    part: &[usize],
    widths: &[usize],
    unicode: bool,
    to: &mut Vec<Line>,
) {
    let mut header = Line::new();
    for (n, &i) in part.iter().enumerate() {
        let (title, align, _) = &columns[i];
        let title = Line::of(Ink::Dim, cleaned(title, unicode));
        place(&mut header, title, *align, widths[i], n > 0);
    }
    if part.iter().any(|&i| !columns[i].0.is_empty()) {
        to.push(header);
    }
    for row in 0..columns[0].2.len() {
        let mut line = Line::new();
        for (n, &i) in part.iter().enumerate() {
            let (_, align, cells) = &columns[i];
            let cell = cells[row].cleaned(unicode);
            place(&mut line, cell, *align, widths[i], n > 0);
        }
        to.push(line);
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
        let lines = laid_out(table, width, true);
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
    fn names_too_wide_for_any_column_stand_over_their_cells() {
        let mut table = Table::default();
        table.column("", Align::Left, cells(&["a long name", "b"]));
        table.column("n", Align::Right, cells(&["1,000", "2"]));
        table.column("m", Align::Right, cells(&["", "3"]));
        let lines = text(&table, 14);
        assert_eq!(lines, ["a long name", "  n 1,000", "b", "  n 2, m 3"]);
    }

    #[test]
    fn words_that_fit_nowhere_stand_below_and_are_wrapped() {
        let mut table = Table::default();
        table.column("", Align::Left, cells(&["a", "b"]));
        table.column("n", Align::Right, cells(&["1", "2"]));
        table.column("told by", Align::Left, cells(&["", "many words of it"]));
        let lines = text(&table, 12);
        assert_eq!(
            lines,
            [
                "   n",
                "a  1",
                "b  2",
                "",
                "b  many",
                "   words of",
                "   it"
            ]
        );
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
