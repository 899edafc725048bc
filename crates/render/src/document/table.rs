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

    /// The same with the columns of these titles alone, and without bars.
    pub(crate) fn with_columns(&self, titles: &[&str]) -> Table {
        let is_kept = |(title, ..): &&(String, Align, Vec<Line>)| titles.contains(&title.as_str());
        Table {
            columns: self.columns.iter().filter(is_kept).cloned().collect(),
            bars: Vec::new(),
        }
    }

    /// The same with these rows alone, by their number from 0.
    pub(crate) fn with_rows(&self, is_kept: impl Fn(usize) -> bool) -> Table {
        let kept = |cells: &Vec<Line>| -> Vec<Line> {
            let cells = cells.iter().enumerate();
            cells
                .filter(|(i, _)| is_kept(*i))
                .map(|(_, c)| c.clone())
                .collect()
        };
        let columns = self.columns.iter();
        Table {
            columns: columns
                .map(|(t, side, cells)| (t.clone(), *side, kept(cells)))
                .collect(),
            bars: Vec::new(),
        }
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
