//! Markdown tables over rounds: a cell is `median (min–max)`.

use super::lab::Measured;
use super::round::Rounds;
use crate::repo;

/// Rows under a header.
pub struct MarkdownTable {
    columns: usize,
    text: String,
}

impl MarkdownTable {
    /// The first column holds names, the others numbers.
    pub fn new(header: &[&str]) -> Self {
        let rule = vec!["---:"; header.len() - 1].join(" | ");
        let text = format!("| {} |\n| --- | {rule} |\n", header.join(" | "));
        MarkdownTable { columns: header.len(), text }
    }

    /// Adds a row; a cell per column.
    pub fn row(&mut self, cells: &[String]) {
        debug_assert_eq!(cells.len(), self.columns);
        self.text += &format!("| {} |\n", cells.join(" | "));
    }

    /// The table as Markdown, with a blank line after it.
    pub fn finish(self) -> String {
        self.text + "\n"
    }
}

/// A column of numbers in a table of contenders.
pub struct Column<'a, T> {
    title: &'a str,
    pub digits: usize,
    of: fn(&T) -> Option<f64>,
    /// The contender that the others are divided by, round by round.
    against: Option<&'a str>,
}

/// A column of these numbers. A contender without them has a dash.
pub fn column<T>(title: &str, digits: usize, of: fn(&T) -> Option<f64>) -> Column<'_, T> {
    Column { title, digits, of, against: None }
}

/// A column of these numbers divided by those of another contender.
pub fn ratio<'a, T>(title: &'a str, of: fn(&T) -> Option<f64>, to: &'a str) -> Column<'a, T> {
    Column { against: Some(to), ..column(title, 2, of) }
}

impl<T> Column<'_, T> {
    fn cell(&self, one: &Rounds<T>, all: &[Rounds<T>]) -> Option<String> {
        let numbers =
            |of: &Rounds<T>| -> Option<Vec<f64>> { of.rounds.iter().map(self.of).collect() };
        let ours = numbers(one)?;
        let shown = match self.against {
            None => ours,
            Some(name) => {
                let theirs = all.iter().find(|other| other.contender.name == name)?;
                ratios(&ours, &numbers(theirs)?)
            }
        };
        Some(spread(&shown, self.digits))
    }
}

/// A table with a row for each contender, below those of `before`.
pub fn contender_table<T: AsRef<Measured>>(
    first: &str,
    columns: &[Column<'_, T>],
    before: &[Vec<String>],
    all: &[Rounds<T>],
) -> String {
    let mut header = vec![first];
    header.extend(columns.iter().map(|column| column.title));
    let mut table = MarkdownTable::new(&header);
    before.iter().for_each(|row| table.row(row));
    for one in all {
        let mut row = vec![one.label()];
        let cells = columns.iter().map(|column| column.cell(one, all));
        row.extend(cells.map(|cell| cell.unwrap_or("–".into())));
        table.row(&row);
    }
    table.finish()
}

/// The value below which the share `q` of the values lies (nearest rank); 0 of nothing.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (q * (sorted.len() as f64 - 1.0)).round() as usize;
    sorted.get(rank).copied().unwrap_or(0.0)
}

/// The middle value, or the mean of the two.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Round by round, `ours` over `theirs`: the rounds are paired, as they were measured side by side.
pub fn ratios(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(a, b)| a / b).collect()
}

/// `median (min–max)`.
pub fn spread(values: &[f64], digits: usize) -> String {
    let (low, high) = (quantile(values, 0.0), quantile(values, 1.0));
    if values.len() < 2 {
        return format!("{:.digits$}", median(values));
    }
    format!("{:.digits$} ({low:.digits$}–{high:.digits$})", median(values))
}

/// The contenders' command lines as a list.
pub fn command_lines(lines: impl IntoIterator<Item = String>) -> String {
    // As they are typed in the repository's folder, wherever that is.
    let root = format!("{}/", repo::root().display());
    let list: String =
        lines.into_iter().map(|line| format!("- `{}`\n", line.replace(&root, ""))).collect();
    format!("Command lines:\n\n{list}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown() {
        let mut table = MarkdownTable::new(&["who", "how much"]);
        table.row(&["knee".into(), "1".into()]);
        assert_eq!(table.finish(), "| who | how much |\n| --- | ---: |\n| knee | 1 |\n\n");
    }

    #[test]
    fn command_lines_hold_in_any_checkout() {
        let file = repo::root().join("bench/file").display().to_string();
        let shown = command_lines([format!("knee run {file} -d 1s")]);
        assert!(shown.contains("- `knee run bench/file -d 1s`\n"), "{shown}");
    }

    #[test]
    fn medians_quantiles_and_paired_ratios() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
        let values: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!((quantile(&values, 0.5), quantile(&values, 0.99)), (50.0, 99.0));
        assert_eq!(ratios(&[2.0, 9.0], &[1.0, 3.0]), [2.0, 3.0]);
        assert_eq!(spread(&[2.0, 1.0, 3.0], 1), "2.0 (1.0–3.0)");
        assert_eq!(spread(&[2.0], 0), "2");
    }
}
