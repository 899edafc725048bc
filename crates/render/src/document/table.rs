//! A table: columns of cells under titles, and bars beside them.

use super::line::{Ink, Line};

/// The side to which the cells of a column are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// One column.
#[derive(Clone, Debug)]
pub(crate) struct TableColumn {
    /// The title; may be empty.
    pub title: String,
    /// The side of its cells.
    pub align: Align,
    /// One cell for each row.
    pub cells: Vec<Line>,
}

/// Cells in rows and columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// All columns; each has the same number of cells.
    pub columns: Vec<TableColumn>,
    /// Columns of bars, for forms without figures; shown if there is room.
    pub bars: Vec<BarColumn>,
}

/// A column of bars.
#[derive(Clone, Debug)]
pub(crate) struct BarColumn {
    /// The quantity shown.
    pub title: String,
    /// The colour of the bars.
    pub ink: Ink,
    /// The length of each bar, from 0 to 1; `None` for a row without a bar.
    pub shares: Vec<Option<f64>>,
}

impl Table {
    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }

    /// The columns with these titles, without bars.
    pub(crate) fn with_columns(&self, titles: &[&str]) -> Table {
        let kept = self.columns.iter().filter(|column| titles.contains(&column.title.as_str()));
        Table { columns: kept.cloned().collect(), bars: Vec::new() }
    }

    /// The rows whose index is kept, without bars.
    pub(crate) fn with_rows(&self, is_kept: impl Fn(usize) -> bool) -> Table {
        let mut columns = self.columns.clone();
        for column in &mut columns {
            let mut index = 0..;
            column.cells.retain(|_| index.next().is_some_and(&is_kept));
        }
        Table { columns, bars: Vec::new() }
    }
}

/// A table under construction: one row for each value, one call for each column.
pub(crate) struct TableOf<'a, T> {
    rows: &'a [T],
    table: Table,
}

impl<'a, T> TableOf<'a, T> {
    /// A table of these rows, without any column.
    pub(crate) fn new(rows: &'a [T]) -> TableOf<'a, T> {
        let table = Table::default();
        TableOf { rows, table }
    }

    /// Adds a column of words.
    pub(crate) fn left<C: Into<Line>>(
        &mut self,
        title: impl Into<String>,
        cell: impl Fn(&'a T) -> C,
    ) {
        let cells = self.rows.iter().map(|row| cell(row).into());
        self.push(title, Align::Left, cells.collect());
    }

    /// Adds a column of words, unless all of its cells are empty.
    pub(crate) fn left_if_any<C: Into<Line>>(
        &mut self,
        title: impl Into<String>,
        cell: impl Fn(&'a T) -> C,
    ) {
        let cells: Vec<Line> = self.rows.iter().map(|row| cell(row).into()).collect();
        if cells.iter().any(|cell| cell.width() > 0) {
            self.push(title, Align::Left, cells);
        }
    }

    /// Adds a column of numbers.
    pub(crate) fn right<C: Into<Line>>(
        &mut self,
        title: impl Into<String>,
        cell: impl Fn(&'a T) -> C,
    ) {
        let cells = self.rows.iter().map(|row| cell(row).into());
        self.push(title, Align::Right, cells.collect());
    }

    /// Adds a column of numbers, unless no row has one. `missing` stands for an unknown number.
    pub(crate) fn right_if_any<C: Into<Line>>(
        &mut self,
        title: impl Into<String>,
        missing: &str,
        cell: impl Fn(&'a T) -> Option<C>,
    ) {
        let cells: Vec<Option<C>> = self.rows.iter().map(cell).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter();
            let cells = cells.map(|cell| cell.map_or_else(|| Line::plain(missing), Into::into));
            self.push(title, Align::Right, cells.collect());
        }
    }

    /// Adds a column of bars with this share of the full length, from 0 to 1.
    pub(crate) fn bars(
        &mut self,
        title: impl Into<String>,
        ink: Ink,
        share: impl Fn(&'a T) -> Option<f64>,
    ) {
        self.table.bars.push(BarColumn {
            title: title.into(),
            ink,
            shares: self.rows.iter().map(share).collect(),
        });
    }

    /// The finished table.
    pub(crate) fn done(self) -> Table {
        self.table
    }

    fn push(&mut self, title: impl Into<String>, align: Align, cells: Vec<Line>) {
        self.table.columns.push(TableColumn { title: title.into(), align, cells });
    }
}
