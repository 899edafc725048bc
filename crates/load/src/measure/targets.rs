//! Measurements of each target, where there are several. Of steps of sessions, more is measured.

use super::series::SeriesRecorder;
use super::sums::{add_each, merge_some};
use super::{Completion, Histogram, Outcome, Outcomes, Series, Stage, Stages, Window};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most targets that are measured each on its own: each has a histogram in each worker. Where
/// there are more, the last of these is the sum of all further ones.
pub const TARGETS_MAX: usize = 100;

/// How many responses had which status, ascending: nearly always one status or two, so that looking
/// through them is quicker than a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusCodes(Vec<(u16, u64)>);

impl StatusCodes {
    /// Counts one; 0 is none.
    #[inline]
    pub fn add(&mut self, status: u16) {
        match self.0.first_mut() {
            // The one that there is, as a rule.
            Some((first, count)) if *first == status => *count += 1,
            _ if status == 0 => {}
            _ => self.add_many(status, 1),
        }
    }

    fn add_many(&mut self, status: u16, more: u64) {
        match self.0.binary_search_by_key(&status, |entry| entry.0) {
            Ok(at) => self.0[at].1 += more,
            Err(at) => self.0.insert(at, (status, more)),
        }
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &StatusCodes) {
        for &(status, count) in &other.0 {
            self.add_many(status, count);
        }
    }

    /// Whether there was no response.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each status with its count, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.0.iter().copied()
    }
}

/// A map from status to count.
impl Serialize for StatusCodes {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.iter().map(|(status, n)| (status.to_string(), n)))
    }
}

impl<'de> Deserialize<'de> for StatusCodes {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<StatusCodes, D::Error> {
        let mut codes = StatusCodes::default();
        for (status, count) in BTreeMap::<String, u64>::deserialize(d)? {
            let status = status.parse().map_err(serde::de::Error::custom)?;
            codes.add_many(status, count);
        }
        Ok(codes)
    }
}

/// Measurements of one target, for the operations intended within the window.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TargetMeasured {
    /// Outcomes of its operations.
    pub outcomes: Outcomes,
    /// Statuses of their responses.
    pub status_codes: StatusCodes,
    /// Response times.
    pub response: Histogram,
    /// Further measurements if it is a step of sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepMeasured>,
}

impl TargetMeasured {
    /// One for each target, with its memory. A single target has none, as all is of it; a single
    /// step of sessions has one, as there are sessions beside it.
    pub fn each(targets: usize, are_steps: bool) -> Vec<TargetMeasured> {
        if targets <= 1 && !are_steps {
            return Vec::new();
        }
        let none = TargetMeasured { response: Histogram::ready(), ..TargetMeasured::default() };
        vec![none; targets.clamp(1, TARGETS_MAX)]
    }

    /// Which of `count` a target's number falls to.
    #[inline]
    pub fn index(target: u32, count: usize) -> usize {
        (target as usize).min(count - 1)
    }

    /// Notes an operation that ended.
    #[inline]
    pub fn count(&mut self, completion: &Completion) {
        self.outcomes.add(completion.outcome);
        self.status_codes.add(completion.status);
        if completion.outcome != super::Outcome::Shed {
            self.response.record(completion.response_time());
        }
    }

    /// Adds another worker's.
    pub(super) fn merge(&mut self, other: TargetMeasured) {
        self.outcomes.merge(&other.outcomes);
        self.status_codes.merge(&other.status_codes);
        self.response.merge(&other.response);
        merge_some(&mut self.step, other.step, StepMeasured::merge);
    }
}

/// The upper bounds by which [`EndedCounts`] counts times: three a decade, from 10 µs to 60 s.
pub const TIME_BOUNDS: [Nanos; 21] = [
    Nanos::from_micros(10),
    Nanos::from_micros(25),
    Nanos::from_micros(50),
    Nanos::from_micros(100),
    Nanos::from_micros(250),
    Nanos::from_micros(500),
    Nanos::from_millis(1),
    Nanos::from_micros(2_500),
    Nanos::from_millis(5),
    Nanos::from_millis(10),
    Nanos::from_millis(25),
    Nanos::from_millis(50),
    Nanos::from_millis(100),
    Nanos::from_millis(250),
    Nanos::from_millis(500),
    Nanos::from_secs(1),
    Nanos::from_millis(2_500),
    Nanos::from_secs(5),
    Nanos::from_secs(10),
    Nanos::from_secs(30),
    Nanos::from_secs(60),
];

/// What ended within an interval of one step, of one kind of session, or in one outcome. A
/// histogram of each in each interval would take megabytes; this takes 200 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndedCounts {
    /// Those that succeeded: steps with the response that was expected, sessions that came to their
    /// end.
    pub good: u64,
    /// Operations or sessions that failed.
    pub failed: u64,
    /// How many times that are counted lie between each of [`TIME_BOUNDS`] and the one below; those
    /// beyond the last are in `timed` only.
    pub between: [u64; TIME_BOUNDS.len()],
    /// How many times are counted: response times of all operations of a step, and of sessions
    /// those that came to their end.
    pub timed: u64,
    /// The sum of these times, in nanoseconds.
    pub sum_ns: f64,
}

impl EndedCounts {
    /// Counts one that ended so; `time` where its time counts.
    #[inline]
    pub(super) fn add(&mut self, is_good: bool, time: Option<Nanos>) {
        self.good += u64::from(is_good);
        self.failed += u64::from(!is_good);
        let Some(time) = time else {
            return;
        };
        let bound = TIME_BOUNDS.partition_point(|bound| *bound < time);
        if let Some(count) = self.between.get_mut(bound) {
            *count += 1;
        }
        self.timed += 1;
        self.sum_ns += time.0 as f64;
    }

    /// Adds another worker's.
    pub(super) fn merge(&mut self, other: &EndedCounts) {
        self.good += other.good;
        self.failed += other.failed;
        let pairs = self.between.iter_mut().zip(other.between);
        pairs.for_each(|(mine, theirs)| *mine += theirs);
        self.timed += other.timed;
        self.sum_ns += other.sum_ns;
    }

    /// Adds another worker's, one by one.
    pub fn merge_all(mine: &mut Vec<EndedCounts>, theirs: &[EndedCounts]) {
        mine.resize(mine.len().max(theirs.len()), EndedCounts::default());
        let pairs = mine.iter_mut().zip(theirs);
        pairs.for_each(|(mine, theirs)| mine.merge(theirs));
    }

    /// Adds another worker's, by how they ended.
    pub fn merge_by_outcome(
        mine: &mut BTreeMap<Outcome, EndedCounts>,
        theirs: &BTreeMap<Outcome, EndedCounts>,
    ) {
        for (outcome, ended) in theirs {
            mine.entry(*outcome).or_default().merge(ended);
        }
    }

    /// The counts since an earlier state.
    pub fn since(&self, earlier: &EndedCounts) -> EndedCounts {
        let mut between = self.between;
        let pairs = between.iter_mut().zip(earlier.between);
        pairs.for_each(|(now, before)| *now = now.saturating_sub(before));
        EndedCounts {
            good: self.good.saturating_sub(earlier.good),
            failed: self.failed.saturating_sub(earlier.failed),
            between,
            timed: self.timed.saturating_sub(earlier.timed),
            sum_ns: (self.sum_ns - earlier.sum_ns).max(0.0),
        }
    }

    /// Numbers of times that are not longer than each of [`TIME_BOUNDS`].
    pub fn up_to(&self) -> Vec<u64> {
        let counts = self.between.iter();
        let sums = counts.scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        sums.collect()
    }
}

/// Measurements that only a step has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepMeasured {
    /// Its operations and their response times in fine slots, as of [`Series`]; those that
    /// completed are not credited to slots there.
    pub series: Series,
    /// The sum of each stage over its operations, in nanoseconds, in the order of [`Stage::all`].
    pub stages_ns: Vec<u64>,
}

impl StepMeasured {
    /// Adds another worker's.
    fn merge(&mut self, other: StepMeasured) {
        self.series.merge(other.series);
        add_each(&mut self.stages_ns, &other.stages_ns);
    }
}

/// Records the steps of one worker; of none, where operations are no steps.
#[derive(Debug)]
pub(super) struct StepsRecorder {
    steps: Vec<(SeriesRecorder, [u64; Stage::COUNT])>,
}

impl StepsRecorder {
    /// A recorder of `steps` steps.
    pub(super) fn new(steps: usize, window: Window) -> StepsRecorder {
        let step = || (SeriesRecorder::new(window), [0; Stage::COUNT]);
        StepsRecorder { steps: (0..steps.min(TARGETS_MAX)).map(|_| step()).collect() }
    }

    /// Adds the stages of an operation.
    #[inline]
    pub(super) fn count(&mut self, target: u32, stages: &Stages) {
        if let Some((_, sums)) = self.step(target) {
            let pairs = sums.iter_mut().zip(stages);
            pairs.for_each(|(sum, stage)| *sum += stage.0);
        }
    }

    /// Counts an operation that ended within the window, also in its interval.
    #[inline]
    pub(super) fn count_in_time(&mut self, completion: &Completion, ended: &mut Vec<EndedCounts>) {
        let count = self.steps.len();
        let Some((series, _)) = self.step(completion.target) else {
            return;
        };
        let (outcome, response) = (completion.outcome, completion.response_time());
        if outcome.is_response() || outcome == Outcome::Timeout {
            series.add_response(completion.completed, response);
        }
        if ended.is_empty() {
            ended.resize(count, EndedCounts::default());
        }
        let time = (outcome != Outcome::Shed).then_some(response);
        ended[TargetMeasured::index(completion.target, count)].add(outcome.is_good(), time);
    }

    #[inline]
    fn step(&mut self, target: u32) -> Option<&mut (SeriesRecorder, [u64; Stage::COUNT])> {
        let count = self.steps.len();
        match count {
            0 => None,
            _ => self.steps.get_mut(TargetMeasured::index(target, count)),
        }
    }

    /// Hands what was recorded over to the targets.
    pub(super) fn finish(self, end: Nanos, targets: &mut [TargetMeasured]) {
        for (target, (series, stages_ns)) in targets.iter_mut().zip(self.steps) {
            target.step =
                Some(StepMeasured { series: series.finish(end), stages_ns: stages_ns.to_vec() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_codes_are_a_map_in_json() {
        let mut codes = StatusCodes::default();
        [200, 503, 200, 0].iter().for_each(|&s| codes.add(s));
        let json = serde_json::to_string(&codes).unwrap();
        assert_eq!(json, r#"{"200":2,"503":1}"#);
        assert_eq!(serde_json::from_str::<StatusCodes>(&json).unwrap(), codes);
        assert!(serde_json::from_str::<StatusCodes>(r#"{"ok":2}"#).is_err());
    }

    #[test]
    fn of_many_targets_the_last_are_summed() {
        assert!(TargetMeasured::each(1, false).is_empty());
        assert_eq!(TargetMeasured::each(1, true).len(), 1);
        assert_eq!(TargetMeasured::each(2, false).len(), 2);
        let many = TargetMeasured::each(5_000, false).len();
        assert_eq!(many, TARGETS_MAX);
        assert_eq!(TargetMeasured::index(98, many), 98);
        assert_eq!(TargetMeasured::index(99, many), 99);
        assert_eq!(TargetMeasured::index(4_999, many), 99);
    }

    #[test]
    fn times_are_counted_by_bounds_and_merge() {
        let mut a = EndedCounts::default();
        a.add(true, Some(Nanos::from_micros(10)));
        a.add(true, Some(Nanos::from_micros(11)));
        a.add(false, None);
        let mut b = EndedCounts::default();
        b.add(false, Some(Nanos::from_secs(61)));
        let mut all = vec![a];
        EndedCounts::merge_all(&mut all, &[b, a]);
        assert_eq!((all[0].good, all[0].failed, all[0].timed), (2, 2, 3));
        assert_eq!(all[0].up_to()[..2], [1, 2]);
        assert_eq!(all[0].up_to()[20], 2);
        assert_eq!(all[0].sum_ns, 61e9 + 21e3);
        assert_eq!(all[1], a);
    }
}
