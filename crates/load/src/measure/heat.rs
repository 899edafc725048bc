//! How many operations took how long when: a histogram of response times for each stretch of time.

use super::sums::add_each;
use crate::time::Nanos;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most slots of a series that are kept; beyond it neighbours are joined in pairs.
pub(super) const SLOTS_MAX: usize = 400;
/// Slots of a series per column.
const SLOTS: usize = 4;
/// As many as the slots of a series make.
const COLUMNS_MAX: usize = SLOTS_MAX / SLOTS;
/// Rows per doubling of the response time: each is at most a quarter longer than the one before.
const PER_OCTAVE: u64 = 4;
/// Shorter ones share the first row.
const SHORTEST_LOG2: u32 = 10;
/// Longer ones count in the last row; a histogram holds up to 1 h, which is less.
const LONGEST_LOG2: u32 = 42;
/// Shades of a figure.
const LEVELS: i32 = 5;
const ROWS: usize = 1 + (LONGEST_LOG2 - SHORTEST_LOG2) as usize * PER_OCTAVE as usize;

/// Counts of operations by when they completed (columns) and by response time (rows).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatCounts {
    /// Column after column, [`ROWS`] each.
    counts: Vec<u64>,
}

impl HeatCounts {
    /// Adds an operation that completed in this slot of the series.
    #[inline]
    pub(super) fn add(&mut self, slot: usize, response: Nanos) {
        self.counts[slot / SLOTS * ROWS + row_of(response.0)] += 1;
    }

    /// Adds another's, whose columns are of the same length.
    pub(super) fn merge(&mut self, other: &HeatCounts) {
        add_each(&mut self.counts, &other.counts);
    }

    /// Adds the columns of another's after its own.
    pub(super) fn append(&mut self, later: &HeatCounts) {
        self.counts.extend_from_slice(&later.counts);
    }

    /// Joins neighbouring columns in pairs, as the slots of its series are joined.
    pub(super) fn coarsen(&mut self) {
        let pairs = self.counts.chunks(2 * ROWS);
        let joined = pairs.flat_map(|pair| {
            let (first, second) = pair.split_at(ROWS.min(pair.len()));
            let second = second.iter().chain(std::iter::repeat(&0));
            first.iter().zip(second).map(|(a, b)| a + b)
        });
        self.counts = joined.collect();
    }

    /// Makes room for `slots` slots.
    pub(super) fn resize(&mut self, slots: usize) {
        self.counts.resize(slots.div_ceil(SLOTS) * ROWS, 0);
    }

    /// The heat map of a report, with slots of this length; `None` where nothing completed.
    pub(super) fn report(&self, slot: Nanos) -> Option<HeatReport> {
        let used = |row: &usize| self.counts.iter().skip(*row).step_by(ROWS).any(|&n| n > 0);
        let first = (0..ROWS).find(used)?;
        let last = (0..ROWS).rev().find(used)?;
        let columns = self.counts.chunks(ROWS);
        let most = self.counts.iter().copied().max().unwrap_or(0);
        Some(HeatReport {
            column_ns: slot.0 * SLOTS as u64,
            bounds_ns: (first..=last + 1).map(row_start).collect(),
            counts: columns.map(|column| HeatColumn(column[first..=last].to_vec())).collect(),
            levels: levels(most),
        })
    }
}

/// The ranges of counts that share a shade, each with its least and most. Up to five ranges reach
/// `most`, each longer than the one before by the same factor.
fn levels(most: u64) -> Vec<[u64; 2]> {
    let step = (most as f64).powf(1.0 / f64::from(LEVELS));
    let mut from: Vec<u64> = (0..LEVELS).map(|k| step.powi(k).round() as u64).collect();
    from.dedup();
    let next = from.iter().skip(1).map(|next| next - 1).chain([most]);
    from.iter().zip(next).map(|(from, to)| [*from, to]).collect()
}

/// The row of a response time.
#[inline]
fn row_of(ns: u64) -> usize {
    let Some(octave) = ns.checked_ilog2().filter(|log2| *log2 >= SHORTEST_LOG2) else {
        return 0;
    };
    let quarter = (ns >> (octave - 2)) % PER_OCTAVE;
    let row = 1 + u64::from(octave - SHORTEST_LOG2) * PER_OCTAVE + quarter;
    (row as usize).min(ROWS - 1)
}

/// The shortest response time of a row.
fn row_start(row: usize) -> u64 {
    let Some(row) = (row as u64).checked_sub(1) else {
        return 0;
    };
    (PER_OCTAVE + row % PER_OCTAVE) << (u64::from(SHORTEST_LOG2) - 2 + row / PER_OCTAVE)
}

/// As the number of columns, and the counts that are not zero, each with its place.
impl Serialize for HeatCounts {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let cells = self.counts.iter().enumerate();
        let cells: Vec<(usize, &u64)> = cells.filter(|(_, count)| **count > 0).collect();
        (self.counts.len() / ROWS, cells).serialize(to)
    }
}

impl<'de> Deserialize<'de> for HeatCounts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<HeatCounts, D::Error> {
        let wrong = || D::Error::custom("no such place of the heat map");
        let (columns, cells) = <(usize, Vec<(usize, u64)>)>::deserialize(from)?;
        if columns > COLUMNS_MAX {
            return Err(wrong());
        }
        let mut heat = HeatCounts::default();
        heat.resize(columns * SLOTS);
        for (place, count) in cells {
            *heat.counts.get_mut(place).ok_or_else(wrong)? = count;
        }
        Ok(heat)
    }
}

/// How many operations took how long when: those that completed in the window, with a response or
/// by timeout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatReport {
    /// The length of a column; the first begins with the window.
    pub column_ns: u64,
    /// The shortest response time of each row, in ascending order, and last where the last row
    /// ends.
    pub bounds_ns: Vec<u64>,
    /// For each column how many operations are in each row, as numbers with a space between them.
    pub counts: Vec<HeatColumn>,
    /// The counts that share a shade in figures: each the least and the most, in ascending order.
    pub levels: Vec<[u64; 2]>,
}

impl HeatReport {
    /// Number of operations in it.
    pub fn count(&self) -> u64 {
        self.counts.iter().flat_map(|column| &column.0).sum()
    }
}

/// Numbers of operations in each row of a column: `0 12 3` in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeatColumn(pub Vec<u64>);

impl Serialize for HeatColumn {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let counts: Vec<String> = self.0.iter().map(u64::to_string).collect();
        to.serialize_str(&counts.join(" "))
    }
}

impl<'de> Deserialize<'de> for HeatColumn {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<HeatColumn, D::Error> {
        let text = String::deserialize(from)?;
        let counts = text.split_whitespace().map(str::parse);
        counts.collect::<Result<_, _>>().map(HeatColumn).map_err(|_| {
            D::Error::custom("a column of counts is numbers with a space between them")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_each_other_and_hold_what_they_begin_with() {
        assert_eq!((row_of(0), row_of(1_023), row_of(1_024)), (0, 0, 1));
        for row in 1..ROWS {
            let (start, next) = (row_start(row), row_start(row + 1));
            assert!(start < next && next <= start + start / 4 + 1, "{row}");
            assert_eq!((row_of(start), row_of(start - 1)), (row, row - 1));
        }
        assert_eq!(row_of(u64::MAX), ROWS - 1);
        assert!(row_start(ROWS) > 3_600_000_000_000);
    }

    #[test]
    fn levels_follow_each_other_up_to_the_most() {
        assert_eq!(levels(1), [[1, 1]]);
        assert_eq!(levels(2), [[1, 1], [2, 2]]);
        assert_eq!(levels(100_000)[4], [10_000, 100_000]);
        for most in 1..3_000 {
            let levels = levels(most);
            assert!(levels.len() <= LEVELS as usize);
            assert_eq!((levels[0][0], levels[levels.len() - 1][1]), (1, most));
            assert!(levels.windows(2).all(|w| w[0][1] + 1 == w[1][0]), "{most}");
            assert!(levels.iter().all(|[from, to]| from <= to), "{most}");
        }
    }

    #[test]
    fn a_report_has_the_rows_that_are_used_and_reads_back() {
        let mut heat = HeatCounts::default();
        heat.resize(9);
        assert_eq!(heat.report(Nanos(10)), None);
        for (slot, ns) in [(0, 2_048), (3, 2_600), (3, 2_600), (8, 3_600)] {
            heat.add(slot, Nanos(ns));
        }
        let report = heat.report(Nanos(10)).unwrap();
        assert_eq!((report.column_ns, report.count()), (40, 4));
        assert_eq!(report.bounds_ns, [2_048, 2_560, 3_072, 3_584, 4_096]);
        let text = serde_json::to_value(&report).unwrap();
        let columns = serde_json::json!(["1 2 0 0", "0 0 0 0", "0 0 0 1"]);
        assert_eq!(text["counts"], columns);
        assert_eq!(serde_json::from_value::<HeatReport>(text).unwrap(), report);
        let whole = serde_json::to_value(&heat).unwrap();
        assert_eq!(serde_json::from_value::<HeatCounts>(whole).unwrap(), heat);
        assert!(serde_json::from_str::<HeatCounts>("[1,[[1000000,1]]]").is_err());
        assert!(serde_json::from_str::<HeatCounts>("[1000000,[]]").is_err());
        assert!(serde_json::from_str::<HeatColumn>("\"1 x\"").is_err());
    }
}
