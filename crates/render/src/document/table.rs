//! A table: columns of cells under titles, and bars beside them.

use super::line::{Ink, Line};

/// To which side the cells of a column are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows of cells under titles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    columns: Vec<(String, Align, Vec<Line>)>,
    bars: Vec<Bars>,
}

/// A column of bars, where there is room for it: for a form that has no figures.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    /// What they show.
    pub title: String,
    /// Their ink.
    pub ink: Ink,
    /// How long each is, from 0 to 1; none where there is none.
    pub shares: Vec<Option<f64>>,
}

impl Table {
    /// Title, side and cells of each column.
    pub(crate) fn columns(&self) -> &[(String, Align, Vec<Line>)] {
        &self.columns
    }

    /// The bars beside them.
    pub(crate) fn bars(&self) -> &[Bars] {
        &self.bars
    }

    /// How many rows it has.
    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, _, cells)| cells.len())
    }

    /// Adds a column; all columns have as many cells.
    pub(crate) fn column(&mut self, title: impl Into<String>, align: Align, cells: Vec<Line>) {
        self.columns.push((title.into(), align, cells));
    }

    /// Adds bars, one for each row.
    pub(crate) fn bar(&mut self, title: impl Into<String>, ink: Ink, shares: Vec<Option<f64>>) {
        let title = title.into();
        self.bars.push(Bars { title, ink, shares });
    }
}
