//! Contenders in turn, again where the host took the processor away. Markdown tables over rounds: a
//! cell is `median (min–max)`.

use super::contender::{Contender, LineValues};
use super::lab::{Lab, Measured};
use super::process::BenchServer;
use crate::repo;
use std::ops::Deref;

/// Share of stolen time above which a measurement is repeated.
const STEAL_MAX: f64 = 0.05;
/// Maximum number of repeats.
const REPEATS_MAX: usize = 2;

/// All turns of one contender, one per round.
pub struct Rounds<S> {
    pub contender: Contender,
    pub turns: Vec<Turn<S>>,
    /// The largest share of time stolen in a turn that was kept.
    steal_max: f64,
}

impl<S> Rounds<S> {
    /// A number of each turn.
    pub fn each(&self, figure: impl Fn(&Turn<S>) -> f64) -> Vec<f64> {
        self.turns.iter().map(figure).collect()
    }

    /// The name, with marks for stolen time, for runs that the contender calls invalid, and for
    /// errors.
    fn label(&self) -> String {
        let samples = || self.turns.iter().map(|turn| &turn.sample);
        let invalid = samples().filter(|s| s.valid == Some(false)).count();
        let errors: f64 = samples().map(|s| s.errors).sum();
        let mut label = self.contender.name.to_owned();
        if self.steal_max > STEAL_MAX {
            label += " (steal)";
        }
        if invalid > 0 {
            label += &format!(" ({invalid} of {} INVALID)", self.turns.len());
        }
        if errors > 0.0 {
            label += &format!(" ({errors} errors)");
        }
        label
    }
}

/// The measurement of one contender in one round, and the figures of its server.
#[derive(Clone, Debug)]
pub struct Turn<S> {
    measured: Measured,
    pub at_server: S,
}

impl<S> Deref for Turn<S> {
    type Target = Measured;

    fn deref(&self) -> &Measured {
        &self.measured
    }
}

/// Contenders under one load, each turn against a new server.
pub struct Contest<'a> {
    /// What the contenders are.
    pub who: &'a str,
    pub contenders: &'a [Contender],
    pub values: LineValues,
    /// Times the rounds that were asked for.
    pub factor: usize,
}

/// The server of a turn of this contender.
pub type Serve<'a> = &'a dyn Fn(&Contender) -> Result<BenchServer, String>;

impl Contest<'_> {
    /// Measures A B C A B C … and returns the table, the missing contenders, and the command lines.
    ///
    /// # Errors
    /// The first error of a contender or a server.
    pub fn run(
        &self,
        lab: &Lab,
        serve: Serve<'_>,
        columns: &[Column<'_, ()>],
    ) -> Result<String, String> {
        let rounds = self.measure(lab, serve, || Ok(()))?;
        self.show(lab, columns, &[], &rounds)
    }

    /// Measures A B C A B C …; `read` reads the figures of the server after each turn.
    ///
    /// # Errors
    /// The first error of a contender or a server.
    pub fn measure<S>(
        &self,
        lab: &Lab,
        serve: Serve<'_>,
        read: impl Fn() -> Result<S, String>,
    ) -> Result<Vec<Rounds<S>>, String> {
        let present = self.contenders.iter().filter(|c| lab.program(c.program).is_some());
        let new = |contender: &Contender| Rounds {
            contender: *contender,
            turns: Vec::new(),
            steal_max: 0.0,
        };
        let mut all: Vec<Rounds<S>> = present.map(new).collect();
        let factor = if lab.small { 1 } else { self.factor };
        for _ in 0..factor * lab.rounds {
            for one in &mut all {
                let (turn, steal) = undisturbed(lab, || {
                    let server = serve(&one.contender)?;
                    let measured = lab.measure_at(server, &one.contender, &self.values)?;
                    Ok(Turn { measured, at_server: read()? })
                })?;
                one.turns.push(turn);
                one.steal_max = one.steal_max.max(steal);
            }
        }
        Ok(all)
    }

    /// The table with a row for each contender below those of `before`, the missing contenders, and
    /// the command lines.
    ///
    /// # Errors
    /// A command line cannot be shown.
    pub fn show<S>(
        &self,
        lab: &Lab,
        columns: &[Column<'_, S>],
        before: &[Vec<String>],
        all: &[Rounds<S>],
    ) -> Result<String, String> {
        let mut header = vec![self.who];
        header.extend(columns.iter().map(|column| column.title));
        let mut table = MarkdownTable::new(&header);
        before.iter().for_each(|row| table.row(row));
        for one in all {
            let mut row = vec![one.label()];
            let cells = columns.iter().map(|column| column.cell(one, all));
            row.extend(cells.map(|cell| cell.unwrap_or("–".into())));
            table.row(&row);
        }
        let mut text = table.finish();
        for missing in self.contenders.iter().filter(|c| lab.program(c.program).is_none()) {
            text += &format!("Left out, as it is missing: {}.\n\n", missing.name);
        }
        text += "Command lines:\n\n";
        // As they are typed in the repository's folder, wherever that is.
        let root = format!("{}/", repo::root().display());
        let shown = self.values.clone().with("port", "PORT");
        for contender in self.contenders {
            text += &format!("- `{}`\n", contender.shown(&shown)?.replace(&root, ""));
        }
        Ok(text + "\n")
    }
}

/// Measures until the host stole little, at most three times; the last result and its steal.
///
/// # Errors
/// The first error of a measurement.
fn undisturbed<T>(
    lab: &Lab,
    mut measure: impl FnMut() -> Result<T, String>,
) -> Result<(T, f64), String> {
    let repeats = if lab.small { 0 } else { REPEATS_MAX };
    for last in (0..=repeats).map(|n| n == repeats) {
        let before = Jiffies::now();
        let result = measure()?;
        let steal = before.steal_until(&Jiffies::now());
        if last || steal <= STEAL_MAX {
            return Ok((result, steal));
        }
    }
    Err("no measurement was made".into())
}

/// The kernel's account of all processors' time.
struct Jiffies {
    all: u64,
    stolen: u64,
}

impl Jiffies {
    fn now() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// From `/proc/stat`, whose first line sums user, nice, system, idle, iowait, irq, softirq and
    /// steal over all processors (proc(5)).
    fn parse(stat: &str) -> Self {
        let words = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
        let fields: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
        Jiffies { all: fields.iter().sum(), stolen: fields.get(7).copied().unwrap_or(0) }
    }

    fn steal_until(&self, later: &Jiffies) -> f64 {
        let elapsed = later.all.saturating_sub(self.all).max(1);
        later.stolen.saturating_sub(self.stolen) as f64 / elapsed as f64
    }
}

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
pub struct Column<'a, S> {
    title: &'a str,
    digits: usize,
    figure: fn(&Turn<S>) -> Option<f64>,
    /// The contender that the others are divided by, round by round.
    against: Option<&'a str>,
}

/// A column of these numbers. A contender without them has a dash.
pub fn column<S>(title: &str, digits: usize, figure: fn(&Turn<S>) -> Option<f64>) -> Column<'_, S> {
    Column { title, digits, figure, against: None }
}

/// A column of these numbers divided by those of another contender.
pub fn ratio<'a, S>(
    title: &'a str,
    figure: fn(&Turn<S>) -> Option<f64>,
    to: &'a str,
) -> Column<'a, S> {
    Column { against: Some(to), ..column(title, 2, figure) }
}

/// Responses per second.
pub fn rate<S>(turn: &Turn<S>) -> Option<f64> {
    Some(turn.per_s())
}

/// Processor time per million requests, in seconds.
pub fn cost<S>(turn: &Turn<S>) -> Option<f64> {
    Some(turn.cpu_s_per_million())
}

impl<S> Column<'_, S> {
    fn cell(&self, one: &Rounds<S>, all: &[Rounds<S>]) -> Option<String> {
        let numbers =
            |one: &Rounds<S>| -> Option<Vec<f64>> { one.turns.iter().map(self.figure).collect() };
        let ours = numbers(one)?;
        let shown = match self.against {
            None => ours,
            Some(name) => {
                let other = all.iter().find(|other| other.contender.name == name)?;
                // Paired, as they were measured side by side.
                ours.iter().zip(numbers(other)?).map(|(ours, theirs)| ours / theirs).collect()
            }
        };
        Some(spread(&shown, self.digits))
    }
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

/// `median (min–max)`.
pub fn spread(values: &[f64], digits: usize) -> String {
    let (low, high) = (quantile(values, 0.0), quantile(values, 1.0));
    if values.len() < 2 {
        return format!("{:.digits$}", median(values));
    }
    format!("{:.digits$} ({low:.digits$}–{high:.digits$})", median(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_share_of_all_time() {
        let before = Jiffies::parse("cpu  100 0 50 800 0 0 0 50 0 0\ncpu0 1 2 3");
        let after = Jiffies::parse("cpu  150 0 60 830 0 0 0 60 0 0\n");
        assert_eq!((before.all, before.stolen), (1000, 50));
        assert!((before.steal_until(&after) - 0.1).abs() < 1e-9);
        assert_eq!(Jiffies::parse("").steal_until(&Jiffies::parse("")), 0.0);
    }

    #[test]
    fn a_table_is_markdown() {
        let mut table = MarkdownTable::new(&["who", "how much"]);
        table.row(&["knee".into(), "1".into()]);
        assert_eq!(table.finish(), "| who | how much |\n| --- | ---: |\n| knee | 1 |\n\n");
    }

    #[test]
    fn medians_quantiles_and_spreads() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
        let values: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!((quantile(&values, 0.5), quantile(&values, 0.99)), (50.0, 99.0));
        assert_eq!(spread(&[2.0, 1.0, 3.0], 1), "2.0 (1.0–3.0)");
        assert_eq!(spread(&[2.0], 0), "2");
    }
}
