//! Contenders in turn, again where the host took the processor away. Markdown tables over rounds: a
//! cell is `median (min–max)`.

use super::contender::{Contender, LineValues};
use super::lab::{Lab, Measured};
use crate::repo;

/// A measurement is repeated where the host stole more than this share of the time,
const STEAL_MAX: f64 = 0.05;
/// at most so often.
const REPEATS_MAX: usize = 2;

/// All measurements of one contender, one per round.
pub struct Rounds<T> {
    pub contender: Contender,
    pub rounds: Vec<T>,
    /// The largest share of time stolen in a measurement that was kept.
    pub steal_max: f64,
}

impl<T> Rounds<T> {
    /// A number of each round.
    pub fn each(&self, of: impl Fn(&T) -> f64) -> Vec<f64> {
        self.rounds.iter().map(of).collect()
    }
}

impl<T: AsRef<Measured>> Rounds<T> {
    /// The name, marked where the host stole time in spite of repeats, and where the contender
    /// itself calls a run invalid or had errors.
    pub fn label(&self) -> String {
        let samples = || self.rounds.iter().map(|round| &round.as_ref().sample);
        let invalid = samples().filter(|s| s.valid == Some(false)).count();
        let errors: f64 = samples().map(|s| s.errors).sum();
        let mut label = self.contender.name.to_owned();
        if self.steal_max > STEAL_MAX {
            label += " (steal)";
        }
        if invalid > 0 {
            label += &format!(" ({invalid} of {} INVALID)", self.rounds.len());
        }
        if errors > 0.0 {
            label += &format!(" ({errors} errors)");
        }
        label
    }
}

/// What a contender reports of a run, and what its server saw.
#[derive(Clone, Debug)]
pub struct ServedTurn<S> {
    pub measured: Measured,
    pub seen: S,
}

impl<S> AsRef<Measured> for ServedTurn<S> {
    fn as_ref(&self) -> &Measured {
        &self.measured
    }
}

impl AsRef<Measured> for Measured {
    fn as_ref(&self) -> &Measured {
        self
    }
}

/// Measures A B C A B C …, `factor` times the rounds asked for (small: just those).
///
/// # Errors
/// The first error of a measurement.
pub fn alternate<T>(
    lab: &Lab,
    factor: usize,
    contenders: &[Contender],
    mut measure: impl FnMut(&Contender) -> Result<T, String>,
) -> Result<Vec<Rounds<T>>, String> {
    let new = |contender: &Contender| Rounds {
        contender: *contender,
        rounds: Vec::new(),
        steal_max: 0.0,
    };
    let mut all: Vec<Rounds<T>> = contenders.iter().map(new).collect();
    let factor = if lab.small { 1 } else { factor };
    for _ in 0..factor * lab.rounds {
        for one in &mut all {
            let (result, steal) = undisturbed(lab, || measure(&one.contender))?;
            one.rounds.push(result);
            one.steal_max = one.steal_max.max(steal);
        }
    }
    Ok(all)
}

/// Lets contenders take turns under one load: their table, who is missing, and the command lines.
///
/// # Errors
/// A contender fails.
pub fn contest(
    lab: &Lab,
    factor: usize,
    contenders: &[Contender],
    values: &LineValues,
    first: &str,
    columns: &[Column<'_, Measured>],
) -> Result<String, String> {
    let rounds = alternate(lab, factor, &lab.present(contenders), |c| lab.measure(c, values))?;
    Ok(contender_table(first, columns, &[], &rounds)
        + &lab.left_out(contenders)
        + &command_lines(contenders.iter().map(|c| c.shown(values)))?)
}

/// Measures until the host stole little, at most three times; the last result and its steal.
///
/// # Errors
/// The first error of a measurement.
pub fn undisturbed<T>(
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
        let all = later.all.saturating_sub(self.all).max(1);
        later.stolen.saturating_sub(self.stolen) as f64 / all as f64
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
///
/// # Errors
/// The first of them that cannot be shown.
pub fn command_lines(
    lines: impl IntoIterator<Item = Result<String, String>>,
) -> Result<String, String> {
    // As they are typed in the repository's folder, wherever that is.
    let root = format!("{}/", repo::root().display());
    let item = |line: Result<String, String>| Ok(format!("- `{}`\n", line?.replace(&root, "")));
    let list: String = lines.into_iter().map(item).collect::<Result<_, String>>()?;
    Ok(format!("Command lines:\n\n{list}\n"))
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
    fn command_lines_hold_in_any_checkout() {
        let file = repo::root().join("bench/file").display().to_string();
        let shown = command_lines([Ok(format!("knee run {file} -d 1s"))]).unwrap();
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
