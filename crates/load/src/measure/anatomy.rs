//! What response times are made of: their stages by length, the slowest operations one by one, and
//! the time inside the server's host.

use super::{Completion, Outcome, Stage, Stages, known_keys};
use crate::octaves;
use crate::time::Nanos;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Rows per doubling of the response time: each is 1.6 % long at the most.
const ROWS_PER_OCTAVE: u64 = 64;
/// Longer response times count as this: 1 h, as in a histogram.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Sums of the stages of operations, apart by response time in rows of up to 1.6 %. So they show
/// exactly what the slowest are made of, and those of several workers merge exactly.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Anatomy {
    /// Ascending; empty at the end rather than full of zeros.
    rows: Vec<AnatomyRow>,
}

/// The operations whose response times fall into one row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AnatomyRow {
    count: u64,
    sums_ns: [u64; Stage::COUNT],
}

/// A part of the operations, from one share of them, in ascending order of response time, to
/// another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnatomyPart {
    /// The response time of its fastest operation, to 1.6 %.
    pub from: Nanos,
    /// How many there are, not rounded: the operations of a row count in proportion.
    pub count: f64,
    /// The sum of each stage, in nanoseconds, by `stage as usize`.
    pub sums_ns: [f64; Stage::COUNT],
}

impl AnatomyPart {
    /// The mean of a stage, in nanoseconds; 0 where there is no operation.
    pub fn mean_ns(&self, stage: Stage) -> f64 {
        self.sums_ns[stage as usize] / self.count.max(f64::MIN_POSITIVE)
    }

    /// The sum of the response times, in nanoseconds.
    pub fn total_ns(&self) -> f64 {
        self.sums_ns.iter().sum()
    }

    /// The share of the response times, 0 to 1, that these stages are; `None` where there is no
    /// time to share.
    pub fn share(&self, of: impl Fn(Stage) -> bool) -> Option<f64> {
        let stages = Stage::all().filter(|&stage| of(stage));
        let sum_ns: f64 = stages.map(|stage| self.sums_ns[stage as usize]).sum();
        (self.total_ns() > 0.0).then(|| sum_ns / self.total_ns())
    }
}

impl Anatomy {
    /// An empty anatomy with all the memory that it will need.
    pub fn with_room() -> Anatomy {
        Anatomy {
            // Address space only: the memory is taken as it is written.
            rows: vec![AnatomyRow::default(); row_of(LONGEST_NS) + 1],
        }
    }

    /// Adds one operation, whose stages sum to its response time.
    #[inline]
    pub fn add(&mut self, response: Nanos, stages: &Stages) {
        let row = row_of(response.0);
        if self.rows.len() <= row {
            self.rows.resize(row + 1, AnatomyRow::default());
        }
        let row = &mut self.rows[row];
        row.count += 1;
        for (sum, stage) in row.sums_ns.iter_mut().zip(stages) {
            // Most stages of most operations took no time.
            if stage.0 > 0 {
                *sum = sum.saturating_add(stage.0);
            }
        }
    }

    /// Adds another's operations.
    pub fn merge(&mut self, other: &Anatomy) {
        let length = self.rows.len().max(other.rows.len());
        self.rows.resize(length, AnatomyRow::default());
        for (mine, theirs) in self.rows.iter_mut().zip(&other.rows) {
            mine.count += theirs.count;
            for (sum, more) in mine.sums_ns.iter_mut().zip(theirs.sums_ns) {
                *sum = sum.saturating_add(more);
            }
        }
    }

    /// Number of operations.
    pub fn count(&self) -> u64 {
        self.rows.iter().map(|row| row.count).sum()
    }

    /// The operations from a share `from` (0 to 1) of all on to a share `to`, in ascending order of
    /// response time. Where a share falls within a row, its operations count in proportion.
    pub fn part(&self, from: f64, to: f64) -> AnatomyPart {
        let mut part = AnatomyPart::default();
        for (index, share) in self.taken(from, to) {
            let row = &self.rows[index];
            if part.count == 0.0 {
                part.from = Nanos(row_start(index));
            }
            part.count += row.count as f64 * share;
            for (sum, of_row) in part.sums_ns.iter_mut().zip(row.sums_ns) {
                *sum += of_row as f64 * share;
            }
        }
        part
    }

    /// The rows of [`Anatomy::part`], each with the share of its operations that is taken.
    fn taken(&self, from: f64, to: f64) -> impl Iterator<Item = (usize, f64)> {
        let total = self.count() as f64;
        let (from, to) = (from * total, to * total);
        let mut before = 0.0;
        let rows = self.rows.iter().enumerate().filter(|(_, r)| r.count > 0);
        rows.filter_map(move |(index, row)| {
            let count = row.count as f64;
            let taken = (before + count).min(to) - from.max(before);
            before += count;
            // Less than a millionth of an operation is an error of rounding.
            (taken > 1e-6).then_some((index, taken / count))
        })
    }
}

/// The row of a response time. Below 64 ns each has its own; from there on each doubling has 64.
#[inline]
fn row_of(ns: u64) -> usize {
    octaves::band_of::<ROWS_PER_OCTAVE>(ns.min(LONGEST_NS))
}

/// The shortest response time of a row.
fn row_start(row: usize) -> u64 {
    octaves::band_start::<ROWS_PER_OCTAVE>(row)
}

/// As the rows that hold anything: number, count, sums.
impl Serialize for Anatomy {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let rows = self.rows.iter().enumerate();
        to.collect_seq(
            rows.filter(|(_, row)| row.count > 0)
                .map(|(index, row)| (index, row.count, row.sums_ns)),
        )
    }
}

impl<'de> Deserialize<'de> for Anatomy {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Anatomy, D::Error> {
        let read = Vec::<(usize, u64, [u64; Stage::COUNT])>::deserialize(from)?;
        let mut rows = Vec::new();
        for (index, count, sums_ns) in read {
            if index > row_of(LONGEST_NS) {
                return Err(D::Error::custom(format!("there is no row {index}")));
            }
            rows.resize(rows.len().max(index + 1), AnatomyRow::default());
            rows[index] = AnatomyRow { count, sums_ns };
        }
        Ok(Anatomy { rows })
    }
}

/// Sums of the time inside the server's host and on the network, apart by response time in the rows
/// of an [`Anatomy`]. Those of several workers merge exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Ascending: the row, how many operations, and both sums in nanoseconds.
    rows: Vec<(usize, u64, [u64; 2])>,
}

/// The time of a group's operations that were seen at both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SplitPart {
    /// How many operations, not rounded: those of a row count in proportion, as in the anatomy.
    pub count: f64,
    /// The sum of the times inside the server's host, in nanoseconds.
    pub host_ns: f64,
    /// The sum of the times on the network, both ways.
    pub network_ns: f64,
}

impl SplitPart {
    /// The server host's share of the time, 0 to 1; `None` where there is no time to share.
    pub fn host_share(&self) -> Option<f64> {
        let whole_ns = self.host_ns + self.network_ns;
        (whole_ns > 0.0).then(|| self.host_ns / whole_ns)
    }
}

impl Split {
    /// Adds an operation of this response time.
    pub fn add(&mut self, response: Nanos, host: Nanos, network: Nanos) {
        self.add_row((row_of(response.0), 1, [host.0, network.0]));
    }

    /// Adds another's operations.
    pub fn merge(&mut self, other: &Split) {
        other.rows.iter().for_each(|row| self.add_row(*row));
    }

    fn add_row(&mut self, (row, count, sums): (usize, u64, [u64; 2])) {
        match self.rows.binary_search_by_key(&row, |(row, ..)| *row) {
            Ok(at) => {
                let (_, counted, mine) = &mut self.rows[at];
                *counted += count;
                for (sum, more) in mine.iter_mut().zip(sums) {
                    *sum = sum.saturating_add(more);
                }
            }
            Err(at) => self.rows.insert(at, (row, count, sums)),
        }
    }

    /// What both ends saw of the operations of `all` from a share `from` (0 to 1) on to a share
    /// `to`: see [`Anatomy::part`].
    pub fn part(&self, all: &Anatomy, from: f64, to: f64) -> SplitPart {
        let mut part = SplitPart::default();
        for (row, share) in all.taken(from, to) {
            let Ok(at) = self.rows.binary_search_by_key(&row, |(row, ..)| *row) else {
                continue;
            };
            let (_, count, [host, network]) = self.rows[at];
            part.count += count as f64 * share;
            part.host_ns += host as f64 * share;
            part.network_ns += network as f64 * share;
        }
        part
    }
}

/// Number of operations that are kept.
const KEPT: usize = 10;

/// One operation with all its times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowOperation {
    /// When it was intended, in nanoseconds from the begin of the run, the warm-up included.
    pub intended_ns: u64,
    /// Its response time.
    pub response_time_ns: u64,
    /// Its stages that took any time, in nanoseconds, by name. They sum to the response time.
    #[serde(deserialize_with = "known_keys")]
    pub stages_ns: BTreeMap<Stage, u64>,
    /// After its end, until the generator saw it.
    pub pick_up_ns: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The status of its response; absent where none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The number of its target, from 0.
    pub target: u32,
    /// The name of its step, where operations are steps of sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The number of its connection among those of its worker; absent where it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
}

impl SlowOperation {
    fn of(completion: &Completion) -> SlowOperation {
        let stages = Stage::all().zip(completion.stages());
        let carried = completion.connection != Completion::NO_CONNECTION;
        SlowOperation {
            intended_ns: completion.intended.0,
            response_time_ns: completion.response_time().0,
            stages_ns: stages
                .filter(|(_, length)| *length > Nanos::ZERO)
                .map(|(stage, length)| (stage, length.0))
                .collect(),
            pick_up_ns: completion.pick_up().0,
            outcome: completion.outcome,
            status: (completion.status > 0).then_some(completion.status),
            target: completion.target,
            step: None,
            connection: carried.then_some(completion.connection),
        }
    }
}

/// The slowest ten of the operations that it has seen, the slowest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slowest(Vec<SlowOperation>);

impl Slowest {
    /// The operations, the slowest first.
    pub fn operations(&self) -> &[SlowOperation] {
        &self.0
    }

    /// Adds an operation if it is among the slowest.
    #[inline]
    pub(super) fn add(&mut self, completion: &Completion, threshold: &mut Nanos) {
        if completion.response_time() >= *threshold {
            *threshold = self.insert(completion);
        }
    }

    /// Returns the response time from which on an operation is among the slowest.
    #[cold]
    fn insert(&mut self, completion: &Completion) -> Nanos {
        self.0.push(SlowOperation::of(completion));
        self.keep_slowest();
        let is_full = self.0.len() == KEPT;
        let last = self.0.last().filter(|_| is_full);
        last.map_or(Nanos::ZERO, |slow| Nanos(slow.response_time_ns + 1))
    }

    /// Adds another's.
    pub fn merge(&mut self, other: Slowest) {
        self.0.extend(other.0);
        self.keep_slowest();
    }

    /// Gives each operation another number of its target.
    pub(super) fn map_targets(&mut self, number: impl Fn(u32) -> u32) {
        self.0.iter_mut().for_each(|slow| slow.target = number(slow.target));
    }

    fn keep_slowest(&mut self) {
        let order = |slow: &SlowOperation| (Reverse(slow.response_time_ns), slow.intended_ns);
        self.0.sort_by_key(order);
        self.0.truncate(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Op, Stage};
    use proptest::prelude::*;

    fn add(to: &mut Anatomy, pacing: u64, first_byte: u64) {
        let mut stages = Stages::default();
        stages[Stage::Pacing as usize] = Nanos(pacing);
        stages[Stage::FirstByte as usize] = Nanos(first_byte);
        to.add(Nanos(pacing + first_byte), &stages);
    }

    #[test]
    fn rows_are_adjacent_and_short() {
        for ns in (0..100_000).chain((0..42).map(|bit| (1 << bit) + 12_345)) {
            let row = row_of(ns);
            assert!(row_start(row) <= ns && ns < row_start(row + 1), "{ns}");
            let length = (row_start(row + 1) - row_start(row)) as f64;
            let is_short = length <= 1.0 || length / row_start(row) as f64 <= 1.0 / 64.0;
            assert!(is_short, "{ns}");
        }
        assert_eq!(row_of(u64::MAX), row_of(LONGEST_NS));
    }

    #[test]
    fn the_slowest_are_told_apart_from_the_rest() {
        let mut anatomy = Anatomy::with_room();
        (0..990).for_each(|_| add(&mut anatomy, 0, 100_000));
        (0..10).for_each(|_| add(&mut anatomy, 750_000, 250_000));
        let slowest = anatomy.part(0.99, 1.0);
        assert_eq!(slowest.count.round(), 10.0);
        assert!((985_000..=1_000_000).contains(&slowest.from.0));
        let share = slowest.share(|stage| stage == Stage::Pacing).unwrap();
        assert!((share - 0.75).abs() < 1e-6);
        let median = anatomy.part(0.45, 0.55);
        assert_eq!(median.share(|stage| stage == Stage::Pacing), Some(0.0));
        assert!((median.count - 100.0).abs() < 1e-6);
        assert_eq!(Anatomy::default().part(0.0, 1.0), AnatomyPart::default());
        assert_eq!(AnatomyPart::default().share(|_| true), None);
    }

    proptest! {
        #[test]
        fn parts_sum_to_the_whole_and_merging_is_adding(
            times in proptest::collection::vec((0_u64..1_000_000, 0_u64..100_000_000), 1..200),
            cut in 0.0_f64..1.0,
            split in 0_usize..200,
        ) {
            let mut all = Anatomy::with_room();
            let (mut some, mut rest) = (Anatomy::default(), Anatomy::default());
            for (index, &(pacing, first_byte)) in times.iter().enumerate() {
                add(&mut all, pacing, first_byte);
                let half = if index < split { &mut some } else { &mut rest };
                add(half, pacing, first_byte);
            }
            some.merge(&rest);
            let whole = all.part(0.0, 1.0);
            prop_assert_eq!(some.part(0.0, 1.0), whole);
            let sum: u64 = times.iter().map(|(a, b)| a + b).sum();
            prop_assert!((whole.total_ns() - sum as f64).abs() < 1.0);
            prop_assert!((whole.count - times.len() as f64).abs() < 1e-6);
            let (below, above) = (all.part(0.0, cut), all.part(cut, 1.0));
            prop_assert!((below.count + above.count - whole.count).abs() < 1e-3);
            let both_ns = below.total_ns() + above.total_ns();
            prop_assert!((both_ns - sum as f64).abs() < 1.0 + sum as f64 * 1e-6);
            let text = serde_json::to_string(&all).unwrap();
            let read: Anatomy = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(read.part(0.0, cut), below);
        }
    }

    proptest! {
        /// What two saw, merged, is what one would have seen; and all groups together are all.
        #[test]
        fn merging_is_exact(
            ops in prop::collection::vec((1u64..3_000_000, 0u64..2_000, any::<bool>()), 1..80),
        ) {
            let [mut mine, mut theirs, mut whole] = [(); 3].map(|()| Split::default());
            let mut all = Anatomy::default();
            for (host, network, is_mine) in ops {
                let response = Nanos(host + network);
                let mut stages = [Nanos::ZERO; Stage::COUNT];
                stages[Stage::FirstByte as usize] = response;
                all.add(response, &stages);
                let one = if is_mine { &mut mine } else { &mut theirs };
                one.add(response, Nanos(host), Nanos(network));
                whole.add(response, Nanos(host), Nanos(network));
            }
            mine.merge(&theirs);
            prop_assert_eq!(&mine, &whole);
            let sum = |from, to| whole.part(&all, from, to).host_ns;
            let parts = sum(0.0, 0.9) + sum(0.9, 0.99) + sum(0.99, 1.0);
            prop_assert!((parts - sum(0.0, 1.0)).abs() <= 1e-6 * parts, "{}", parts);
            let part = whole.part(&all, 0.0, 1.0);
            let seen = all.part(0.0, 1.0);
            prop_assert!((part.host_ns + part.network_ns - seen.total_ns()).abs() < 1.0);
        }
    }

    fn completion(index: u64, response: u64) -> Completion {
        let intended = Nanos(index);
        let op = Op { intended, lane: 0 };
        Completion::at_once(op, intended + Nanos(response), Outcome::Ok)
    }

    fn of(responses: impl IntoIterator<Item = u64>) -> Slowest {
        let (mut slowest, mut threshold) = (Slowest::default(), Nanos::ZERO);
        for (index, response) in responses.into_iter().enumerate() {
            slowest.add(&completion(index as u64, response), &mut threshold);
        }
        slowest
    }

    fn responses(slowest: &Slowest) -> Vec<u64> {
        let all = slowest.operations().iter();
        all.map(|slow| slow.response_time_ns).collect()
    }

    #[test]
    fn ten_are_kept_the_slowest_first_of_all_workers() {
        let (odd, even) = ((0..100).map(|k| 2 * k + 1), (0..100).map(|k| 200 - 2 * k));
        let (mut odd, even) = (of(odd), of(even));
        assert_eq!(responses(&even), [200, 198, 196, 194, 192, 190, 188, 186, 184, 182]);
        odd.merge(even);
        assert_eq!(responses(&odd), [200, 199, 198, 197, 196, 195, 194, 193, 192, 191]);
        assert_eq!(responses(&of([5, 7])), [7, 5]);
    }

    #[test]
    fn stages_sum_to_the_response_time() {
        let slow = &of([40]).0[0];
        assert_eq!(slow.stages_ns.values().sum::<u64>(), slow.response_time_ns);
        assert_eq!((slow.status, slow.connection), (None, None));
    }
}
