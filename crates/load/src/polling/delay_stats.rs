//! Delays of one worker: the generator's share of the slow operations, of the median and of a
//! user's cycle, by the limits of the verdict.
//!
//! Response times and the generator's part of them are summed in rows by response time, four rows
//! per doubling.

use crate::octaves;
use crate::time::Nanos;

/// The generator's share of the slowest operations from which a trial warns of it, 0 to 1, …
const SLOWEST_SHARE: f64 = 0.10;
/// … of the median, from which a trial is INVALID, …
const MEDIAN_SHARE: f64 = 0.10;
/// … and of a user's cycle in a closed loop, from which it warns.
const CYCLE_SHARE: f64 = 0.10;

/// Share of the operations that are the slowest, …
const SLOWEST: f64 = 0.01;
/// … and their least number: the slowest 1 % of few operations means nothing.
const SLOWEST_MIN: f64 = 10.0;
/// Shares between which operations are the median ones.
const MEDIAN: [f64; 2] = [0.45, 0.55];

/// Least operations for a result.
const OPERATIONS_MIN: u64 = 100;
/// Least number of separate delays: a single pause delays many operations.
const EPISODES_MIN: u64 = 3;
/// An operation is delayed if the generator's delay is at least 1/this of its time.
const DELAYED_PART: u64 = 10;

/// Age from which observations count half.
const MEMORY: Nanos = Nanos::from_secs(2);

/// Rows per doubling of the response time.
const ROWS_PER_OCTAVE: u64 = 4;
/// Longest response time with a row of its own.
const LONGEST_NS: u64 = 1 << 36;

/// Sums over operations of about the same response time.
#[derive(Clone, Copy, Debug, Default)]
struct DelaySums {
    count: u64,
    /// Sum of the response times, or of the cycles.
    whole_ns: u64,
    /// Part of it that is the generator's delay.
    own_ns: u64,
    /// Number of separate delays.
    episodes: u64,
}

impl DelaySums {
    fn halve(&mut self) {
        self.count /= 2;
        self.whole_ns /= 2;
        self.own_ns /= 2;
        self.episodes /= 2;
    }
}

/// Sums over a part of the operations. A row partly within it counts with a share of its times. It
/// counts with all of its delays, as several delays of one length are no single pause.
#[derive(Clone, Copy, Debug, Default)]
struct DelayPart {
    whole_ns: f64,
    own_ns: f64,
    episodes: u64,
}

impl DelayPart {
    #[inline]
    fn add(&mut self, row: &DelaySums, share: f64) {
        self.whole_ns += row.whole_ns as f64 * share;
        self.own_ns += row.own_ns as f64 * share;
        self.episodes += row.episodes;
    }

    /// Ratio of the generator's delay to the rest, as a multiple of that ratio where the
    /// generator's share is `limit`.
    fn over(&self, limit: f64) -> f64 {
        // One or two delays have another cause than a late wake-up.
        if self.episodes < EPISODES_MIN {
            return 0.0;
        }
        let others_ns = (self.whole_ns - self.own_ns).max(1.0);
        self.own_ns / others_ns * (1.0 - limit) / limit
    }
}

/// Separates one delay of the generator, which may affect many operations, from the next.
#[derive(Clone, Copy, Debug, Default)]
struct Episodes {
    /// End of the last delay.
    over: Nanos,
}

impl Episodes {
    /// Whether an operation due at `due`, delayed by `own` of its `whole` time, begins a new delay:
    /// the generator was on time in between.
    #[inline]
    fn begins(&mut self, due: Nanos, own: Nanos, whole: Nanos) -> bool {
        if own.0.saturating_mul(DELAYED_PART) < whole.0.max(1) {
            return false;
        }
        let is_new = due >= self.over;
        self.over = self.over.max(due + own);
        is_new
    }
}

/// Delays of one worker by response time. An operation costs a few additions.
#[derive(Clone, Debug, Default)]
pub struct DelayStats {
    /// Sums by response time; empty if not watched.
    rows: Vec<DelaySums>,
    late: Episodes,
    /// Users' cycles.
    cycles: DelaySums,
    late_cycles: Episodes,
    /// Sum of the delays, each once, however many operations it affected.
    late_by: Nanos,
    /// Time in which others had the worker's processor.
    pub(super) kept_waiting: Nanos,
    /// Length of the observation.
    pub(super) watched: Nanos,
    /// Part of it that still counts in full.
    fresh: Nanos,
}

impl DelayStats {
    /// With `is_watched` false it records nothing.
    pub fn new(is_watched: bool) -> DelayStats {
        DelayStats {
            rows: vec![DelaySums::default(); if is_watched { row_of(LONGEST_NS) + 1 } else { 0 }],
            ..DelayStats::default()
        }
    }

    /// Whether it records anything.
    #[inline]
    pub fn is_watched(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Records the response of an operation due at `due`, after the time `response` with the
    /// generator's delay `own` in it.
    #[inline]
    pub fn responded(&mut self, due: Nanos, own: Nanos, response: Nanos) {
        if let Some(row) = self.rows.get_mut(row_of(response.0)) {
            let begins = self.late.begins(due, own, response);
            add(row, own, response, begins);
            self.late_by += if begins { own } else { Nanos::ZERO };
        }
    }

    /// Records that a response was read `own` after it came, in a closed loop without pauses.
    /// `cycle` is the time between the begins of the user's operations.
    #[inline]
    pub fn read(&mut self, came: Nanos, own: Nanos, cycle: Nanos) {
        let begins = self.late_cycles.begins(came, own, cycle);
        add(&mut self.cycles, own, cycle, begins);
        self.late_by += if begins { own } else { Nanos::ZERO };
    }

    /// Distortion of the results by the generator's delays; a trial warns from 1 on. 0 with too few
    /// operations.
    pub fn distortion(&self) -> f64 {
        let count = self.rows.iter().map(|row| row.count).sum::<u64>();
        if count < OPERATIONS_MIN {
            return 0.0;
        }
        let all = count as f64;
        let slowest = (all * SLOWEST).max(SLOWEST_MIN);
        let [from, to] = MEDIAN;
        let mut cycles = DelayPart::default();
        cycles.add(&self.cycles, 1.0);
        [
            self.part(all - slowest, all).over(SLOWEST_SHARE),
            self.part(all * from, all * to).over(MEDIAN_SHARE),
            cycles.over(CYCLE_SHARE),
        ]
        .into_iter()
        .fold(0.0, f64::max)
    }

    /// Share of the delays in which others had the worker's processor.
    pub(super) fn contention(&self) -> f64 {
        self.kept_waiting.0 as f64 / self.late_by.0.max(1) as f64
    }

    /// Share of the time in which others had the worker's processor.
    pub(super) fn waiting(&self) -> f64 {
        self.kept_waiting.0 as f64 / self.watched.0.max(1) as f64
    }

    /// Adds a time of observation, in which others had the processor for `kept_waiting`.
    #[inline]
    pub(super) fn pass(&mut self, time: Nanos, kept_waiting: Nanos) {
        self.watched += time;
        self.fresh += time;
        self.kept_waiting += kept_waiting;
    }

    /// Halves all sums once they are old enough.
    pub(super) fn fade(&mut self) {
        let count = self.rows.iter().map(|row| row.count).sum::<u64>();
        if self.fresh < MEMORY || count < 2 * OPERATIONS_MIN {
            return;
        }
        self.rows.iter_mut().for_each(DelaySums::halve);
        self.cycles.halve();
        let times = [&mut self.late_by, &mut self.kept_waiting, &mut self.watched];
        times.into_iter().for_each(|time| time.0 /= 2);
        self.fresh = Nanos::ZERO;
    }

    /// Clears all sums after a change of the mode.
    pub(super) fn forget(&mut self) {
        self.rows.fill(DelaySums::default());
        self.cycles = DelaySums::default();
        [self.late_by, self.kept_waiting, self.watched, self.fresh] = [Nanos::ZERO; 4];
    }

    /// Sums over the operations from one rank to another, in ascending order of response time.
    fn part(&self, from: f64, to: f64) -> DelayPart {
        let (mut part, mut before) = (DelayPart::default(), 0.0);
        for row in self.rows.iter().filter(|row| row.count > 0) {
            let count = row.count as f64;
            let taken = (before + count).min(to) - from.max(before);
            before += count;
            if taken > 0.0 {
                part.add(row, taken / count);
            }
        }
        part
    }
}

#[inline]
fn add(sums: &mut DelaySums, own: Nanos, whole: Nanos, begins: bool) {
    sums.count += 1;
    sums.whole_ns = sums.whole_ns.saturating_add(whole.0);
    sums.own_ns = sums.own_ns.saturating_add(own.min(whole).0);
    sums.episodes += u64::from(begins);
}

/// The row of a response time.
#[inline]
fn row_of(ns: u64) -> usize {
    octaves::band_of::<ROWS_PER_OCTAVE>(ns.min(LONGEST_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Nanos = Nanos::from_micros(50);

    /// Of 1,000 operations, 1 ms apart, each 20th is late, and takes as long in all.
    fn with_late(own: Nanos, response: Nanos, rest: Nanos) -> DelayStats {
        let mut pace = DelayStats::new(true);
        for k in 1..=1_000 {
            let due = Nanos::from_millis(k);
            match k % 20 {
                0 => pace.responded(due, own, response),
                _ => pace.responded(due, Nanos(1_000), rest),
            }
        }
        pace
    }

    #[test]
    fn the_limits_are_those_of_the_report() {
        let micros = Nanos::from_micros;
        let at = |own| with_late(micros(own), micros(1_000), FAST).distortion();
        assert!((at(100) - 1.0).abs() < 1e-6, "10 % of the slowest");
        assert!(at(500) > 8.99, "half of it is nine times as much beside the rest");
        assert_eq!(at(99), 0.0, "it is late nowhere");
        // The same delay beside a slow target is none of the slowest operations' time.
        let slow = with_late(micros(100), micros(1_000), micros(20_000));
        assert!(slow.distortion() < 0.01);
    }

    #[test]
    fn the_median_counts_too() {
        let mut pace = DelayStats::new(true);
        for k in 1..=1_000 {
            let due = Nanos::from_millis(k);
            // A slow target's tail hides it there.
            match k % 20 {
                0 => pace.responded(due, Nanos(1_000), Nanos::from_millis(30)),
                _ => pace.responded(due, Nanos(10_000), FAST),
            }
        }
        assert!((pace.distortion() - 2.25).abs() < 0.01);
    }

    #[test]
    fn operations_that_one_delay_met_are_one_place() {
        let mut pace = DelayStats::new(true);
        for k in 1..=1_000 {
            let due = Nanos::from_millis(k);
            // Three pauses of 100 ms, a hundred operations each.
            let back = match k {
                100..200 => Some(200),
                400..500 => Some(500),
                700..800 => Some(800),
                _ => None,
            };
            let own = back.map_or(Nanos(1_000), |ms| Nanos::from_millis(ms) - due);
            pace.responded(due, own, own + FAST);
            let is_third = k >= 700;
            assert_eq!(pace.distortion() > 1.0, is_third, "{k}");
        }
        assert_eq!(pace.late_by, Nanos::from_millis(300));
    }

    #[test]
    fn a_user_is_delayed_until_its_response_is_read() {
        let mut pace = DelayStats::new(true);
        for k in 1..=1_000 {
            let came = Nanos(k * 100_000);
            pace.responded(came, Nanos(0), Nanos(80_000));
            pace.read(came, Nanos(20_000), Nanos(100_000));
        }
        assert!((pace.distortion() - 2.25).abs() < 0.01);
    }

    #[test]
    fn what_is_not_watched_costs_no_memory_and_says_nothing() {
        let mut pace = DelayStats::new(false);
        (0..1_000).for_each(|k| pace.responded(Nanos(k * 1_000_000), FAST, FAST));
        assert_eq!((pace.distortion(), pace.rows.capacity()), (0.0, 0));
    }

    #[test]
    fn what_is_old_counts_less_and_what_is_forgotten_nothing() {
        let mut pace = with_late(FAST, FAST, FAST);
        let before = pace.distortion();
        pace.pass(MEMORY, Nanos(100));
        pace.fade();
        assert_eq!(pace.rows.iter().map(|row| row.count).sum::<u64>(), 500);
        assert_eq!(pace.kept_waiting, Nanos(50));
        assert!((pace.distortion() / before - 1.0).abs() < 0.2);
        pace.fade();
        assert_eq!(pace.watched.0, MEMORY.0 / 2, "not before it is due");
        pace.forget();
        assert_eq!(pace.distortion(), 0.0);
    }

    #[test]
    fn rows_ascend() {
        let rows: Vec<usize> = (0..40).map(|bit| row_of(3 << bit)).collect();
        assert!(rows.is_sorted());
        assert_eq!(row_of(u64::MAX), row_of(LONGEST_NS));
    }
}
