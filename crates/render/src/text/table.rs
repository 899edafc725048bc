//! A table whose columns are as wide as they need to be.

use crate::document::line::{Ink, Line, cleaned};
use crate::document::table::{Align, BarColumn, Table, TableColumn};

/// Space between two columns.
const GAP: usize = 2;

/// The widest bar, and the narrowest that is worth its place.
const BAR_COLUMNS: usize = 40;
const BAR_COLUMNS_MIN: usize = 8;

/// The lines of a table with its bars, at most `width` columns wide. Columns that do not fit follow
/// in further tables below, each beginning with the first column.
pub(super) fn laid_out(table: &Table, width: usize, unicode: bool) -> Vec<Line> {
    let table = cleaned_table(table, unicode);
    let Some(names) = table.columns.first() else {
        return Vec::new();
    };
    let first = column_width(names);
    let fits = |c: &TableColumn| first + GAP + column_width(c) <= width;
    // Words that do not fit beside the first column stand below, row by row.
    let is_wide = |c: &&TableColumn| c.align == Align::Left && !fits(c);
    let (wide, others): (Vec<_>, Vec<_>) = table.columns[1..].iter().partition(is_wide);
    let mut columns = vec![names.clone()];
    columns.extend(others.into_iter().cloned());
    add_bars(&mut columns, &table.bars, width, unicode);
    if !columns.iter().skip(1).all(fits) {
        return stacked(&table.columns, width);
    }
    let mut lines = side_by_side(&columns, width);
    for column in wide {
        lines.push(Line::default());
        let rows = names.cells.iter().zip(&column.cells);
        for (name, cell) in rows.filter(|(_, cell)| cell.width() > 0) {
            let mut line = name.clone();
            line.pad_to(first + GAP);
            line.append(cell.clone());
            lines.extend(line.wrapped(width, (first + GAP).min(width / 2)));
        }
    }
    lines
}

/// The table with all titles and cells cleaned; see [`Line::cleaned`].
fn cleaned_table(table: &Table, unicode: bool) -> Table {
    let mut table = table.clone();
    for column in &mut table.columns {
        column.title = cleaned(&column.title, unicode);
        let cells = column.cells.iter();
        column.cells = cells.map(|cell| cell.cleaned(unicode)).collect();
    }
    table
}

/// Adds the bars whose title fits into the room beside these columns.
fn add_bars(columns: &mut Vec<TableColumn>, bars: &[BarColumn], width: usize, unicode: bool) {
    let used: usize = columns.iter().map(|c| column_width(c) + GAP).sum();
    let bar_columns = (width.saturating_sub(used) + GAP) / bars.len().max(1);
    let bar_columns = bar_columns.saturating_sub(GAP).min(BAR_COLUMNS);
    for bars in bars {
        if bar_columns < BAR_COLUMNS_MIN.max(bars.title.chars().count()) {
            continue;
        }
        let drawn = |share: &Option<f64>| match share {
            Some(share) => Line::of(bars.ink, bar(*share, bar_columns, unicode)),
            None => Line::default(),
        };
        columns.push(TableColumn {
            title: cleaned(&bars.title, unicode),
            align: Align::Left,
            cells: bars.shares.iter().map(drawn).collect(),
        });
    }
}

/// Each name on its own lines with its cells below, for names beside which nothing fits.
fn stacked(columns: &[TableColumn], width: usize) -> Vec<Line> {
    let Some((names, others)) = columns.split_first() else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (row, name) in names.cells.iter().enumerate() {
        lines.extend(name.wrapped(width, GAP));
        let mut below = Line::plain(" ".repeat(GAP));
        let known = others.iter().filter(|c| c.cells[row].width() > 0);
        for (i, column) in known.enumerate() {
            below.push(Ink::Plain, if i > 0 { ", " } else { "" });
            below.push(Ink::Dim, column.title.as_str());
            below.push(Ink::Plain, if column.title.is_empty() { "" } else { " " });
            below.append(column.cells[row].clone());
        }
        lines.extend(below.wrapped(width, GAP));
    }
    lines
}

/// As many columns beside each other as fit, the rest below, each time with the first column.
fn side_by_side(columns: &[TableColumn], width: usize) -> Vec<Line> {
    let Some((first, others)) = columns.split_first() else {
        return Vec::new();
    };
    let mut parts = vec![vec![first]];
    let mut used = column_width(first);
    for column in others {
        let needed = GAP + column_width(column);
        if used + needed > width && parts.last().is_some_and(|part| part.len() > 1) {
            parts.push(vec![first]);
            used = column_width(first);
        }
        used += needed;
        if let Some(part) = parts.last_mut() {
            part.push(column);
        }
    }
    let mut lines = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            lines.push(Line::default());
        }
        let title = |column: &TableColumn| Line::of(Ink::Dim, column.title.as_str());
        if part.iter().any(|column| !column.title.is_empty()) {
            lines.push(row(part, title));
        }
        lines.extend((0..first.cells.len()).map(|i| row(part, |column| column.cells[i].clone())));
    }
    lines
}

/// A cell of each column, aligned.
fn row(columns: &[&TableColumn], cell: impl Fn(&TableColumn) -> Line) -> Line {
    let mut line = Line::default();
    for (i, column) in columns.iter().enumerate() {
        let (cell, width) = (cell(column), column_width(column));
        let start = line.width() + if i > 0 { GAP } else { 0 };
        line.pad_to(match column.align {
            Align::Left => start,
            Align::Right => start + width - cell.width(),
        });
        line.append(cell);
        line.pad_to(start + width);
    }
    line
}

fn column_width(column: &TableColumn) -> usize {
    column.cells.iter().map(Line::width).fold(column.title.chars().count(), usize::max)
}

/// Eighths of a block, from the left.
const FROM_LEFT: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// A horizontal bar over `share` (0 to 1) of `width` columns; never quite empty.
fn bar(share: f64, width: usize, unicode: bool) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (width * 8) as f64).round().max(1.0) as usize;
    if !unicode {
        return "#".repeat(eighths.div_ceil(8));
    }
    let mut bar = FROM_LEFT[7].to_string().repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(FROM_LEFT[eighths % 8 - 1]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_in_eighths_and_whole_columns() {
        for (share, unicode, expected) in [
            (0.0, true, "▏"),
            (0.25, true, "█"),
            (0.28, true, "█▏"),
            (1.0, true, "████"),
            (7.0, true, "████"),
            (0.28, false, "##"),
        ] {
            assert_eq!(bar(share, 4, unicode), expected, "{share}");
        }
    }

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

    fn table(columns: &[(&str, Align, &[&str])]) -> Table {
        let column = |(title, align, cells): &(&str, Align, &[&str])| TableColumn {
            title: (*title).to_owned(),
            align: *align,
            cells: cells.iter().map(|cell| Line::plain(*cell)).collect(),
        };
        Table { columns: columns.iter().map(column).collect(), bars: Vec::new() }
    }

    #[test]
    fn names_too_wide_for_any_column_stand_over_their_cells() {
        let table = table(&[
            ("", Align::Left, &["a long name", "b"]),
            ("n", Align::Right, &["1,000", "2"]),
            ("m", Align::Right, &["", "3"]),
        ]);
        let lines = text(&table, 14);
        assert_eq!(lines, ["a long name", "  n 1,000", "b", "  n 2, m 3"]);
    }

    #[test]
    fn words_that_fit_nowhere_stand_below_and_are_wrapped() {
        let table = table(&[
            ("", Align::Left, &["a", "b"]),
            ("n", Align::Right, &["1", "2"]),
            ("told by", Align::Left, &["", "many words of it"]),
        ]);
        let lines = text(&table, 12);
        assert_eq!(lines, ["   n", "a  1", "b  2", "", "b  many", "   words of", "   it"]);
    }

    #[test]
    fn columns_that_do_not_fit_follow_below() {
        let table = table(&[
            ("users", Align::Right, &["1", "100"]),
            ("rate", Align::Right, &["1,833", "86,070"]),
            ("remark", Align::Left, &["", "knee"]),
        ]);
        assert_eq!(
            text(&table, 80),
            ["users    rate  remark", "    1   1,833", "  100  86,070  knee"]
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
