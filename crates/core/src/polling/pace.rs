//! What a worker's operations say of its delays: how much of the slow ones, of the median and of a
//! user's cycle is the generator's own, as the verdict counts it.

use crate::time::Nanos;

/// The generator's share of the slowest operations from which a trial warns of it, 0 to 1, …
const SLOWEST_SHARE: f64 = 0.10;
/// … of the median, from which a trial is INVALID, …
const MEDIAN_SHARE: f64 = 0.10;
/// … and of a user's cycle in a closed loop, from which it warns.
const CYCLE_SHARE: f64 = 0.10;

/// The slowest are this share of the operations, …
const SLOWEST: f64 = 0.01;
/// … and so many at the least: of few operations the slowest 1 % says nothing.
const SLOWEST_MIN: f64 = 10.0;
/// The median are the operations between these shares of all.
const MEDIAN: [f64; 2] = [0.45, 0.55];

/// Fewer operations say nothing.
const OPERATIONS_MIN: u64 = 100;
/// The delays have to come in so many places: a single pause delays many operations.
const EPISODES_MIN: u64 = 3;
/// An operation is in such a place where this share of it, 1/so many, is the generator's own.
const DELAYED_PART: u64 = 10;

/// What was seen so long ago or longer counts half.
const MEMORY: Nanos = Nanos::from_secs(2);

/// Rows per doubling of the response time: each is up to a quarter long.
const ROWS_PER_OCTAVE: u64 = 4;
/// Longer ones count as this.
const LONGEST_NS: u64 = 1 << 36;

/// The sums of operations of about the same response time.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: u64,
    /// Of the response times, or of the cycles.
    whole_ns: u64,
    /// Of it, the generator's own delay.
    own_ns: u64,
    /// Separate places in which the generator was late.
    episodes: u64,
}

impl Sums {
    fn halve(&mut self) {
        self.count /= 2;
        self.whole_ns /= 2;
        self.own_ns /= 2;
        self.episodes /= 2;
    }
}

/// Sums of a part of the operations. Of a row that is in it in part, the times count in proportion,
/// and all places: more delays of the same length are no single pause.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    whole_ns: f64,
    own_ns: f64,
    episodes: u64,
}

impl Part {
    #[inline]
    fn add(&mut self, row: &Sums, share: f64) {
        self.whole_ns += row.whole_ns as f64 * share;
        self.own_ns += row.own_ns as f64 * share;
        self.episodes += row.episodes;
    }

    /// The generator's delay for each nanosecond of others', as a multiple of what that is where
    /// the generator's share of the whole is `limit`.
    fn over(&self, limit: f64) -> f64 {
        // As many as in one place or two have another cause than a late wake-up.
        if self.episodes < EPISODES_MIN {
            return 0.0;
        }
        let others_ns = (self.whole_ns - self.own_ns).max(1.0);
        self.own_ns / others_ns * (1.0 - limit) / limit
    }
}

/// Tells one delay of the generator, which may meet many operations, from the next.
#[derive(Clone, Copy, Debug, Default)]
struct Episodes {
    /// When the last one was over.
    over: Nanos,
}

impl Episodes {
    /// An operation was due at a time, and delayed by `own` of its `whole` time; whether that is
    /// another delay than the last: the generator had been on time in between.
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

/// How late a worker is, compared with what it measures: kept from operation to operation, at the
/// price of some additions.
#[derive(Clone, Debug)]
pub struct Pace {
    /// By response time; empty where nobody asks.
    rows: Vec<Sums>,
    late: Episodes,
    /// Users' cycles.
    cycles: Sums,
    late_cycles: Episodes,
    /// The sum of the delays, each once, however many operations it met.
    late_by: Nanos,
    /// Of the same time: how long others had the worker's processor.
    pub(super) kept_waiting: Nanos,
    /// How long all this was watched.
    pub(super) watched: Nanos,
    /// Of it, what is not yet due to count half.
    fresh: Nanos,
}

impl Pace {
    /// `is_watched`: somebody decides by it; otherwise it notes nothing.
    pub fn new(is_watched: bool) -> Pace {
        Pace {
            rows: vec![
                Sums::default();
                if is_watched {
                    row_of(LONGEST_NS) + 1
                } else {
                    0
                }
            ],
            late: Episodes::default(),
            cycles: Sums::default(),
            late_cycles: Episodes::default(),
            late_by: Nanos::ZERO,
            kept_waiting: Nanos::ZERO,
            watched: Nanos::ZERO,
            fresh: Nanos::ZERO,
        }
    }

    /// Whether anything is noted.
    #[inline]
    pub fn is_watched(&self) -> bool {
        !self.rows.is_empty()
    }

    /// An operation that was due at a time had its response after `response`, of which `own` is the
    /// generator's own delay.
    #[inline]
    pub fn responded(&mut self, due: Nanos, own: Nanos, response: Nanos) {
        if let Some(row) = self.rows.get_mut(row_of(response.0)) {
            let begins = self.late.begins(due, own, response);
            add(row, own, response, begins);
            self.late_by += if begins { own } else { Nanos::ZERO };
        }
    }

    /// In a closed loop whose users do not pause: the response that came at a time was read `own`
    /// later. Only then the user's next operation can begin, `cycle` after the one before.
    #[inline]
    pub fn read(&mut self, came: Nanos, own: Nanos, cycle: Nanos) {
        let begins = self.late_cycles.begins(came, own, cycle);
        add(&mut self.cycles, own, cycle, begins);
        self.late_by += if begins { own } else { Nanos::ZERO };
    }

    /// How much the generator's delays distort what is measured: from 1 on as much as a trial warns
    /// of. 0 where too few operations tell.
    pub fn distortion(&self) -> f64 {
        let count = self.rows.iter().map(|row| row.count).sum::<u64>();
        if count < OPERATIONS_MIN {
            return 0.0;
        }
        let all = count as f64;
        let slowest = (all * SLOWEST).max(SLOWEST_MIN);
        let [from, to] = MEDIAN;
        let mut cycles = Part::default();
        cycles.add(&self.cycles, 1.0);
        [
            self.part(all - slowest, all).over(SLOWEST_SHARE),
            self.part(all * from, all * to).over(MEDIAN_SHARE),
            cycles.over(CYCLE_SHARE),
        ]
        .into_iter()
        .fold(0.0, f64::max)
    }

    /// The share of the delays in which others had the worker's processor: at 1 all of them.
    pub(super) fn contention(&self) -> f64 {
        self.kept_waiting.0 as f64 / self.late_by.0.max(1) as f64
    }

    /// The share of the time watched in which others had the worker's processor.
    pub(super) fn waiting(&self) -> f64 {
        self.kept_waiting.0 as f64 / self.watched.0.max(1) as f64
    }

    /// So much more time was watched, in which others had the processor for `kept_waiting`.
    #[inline]
    pub(super) fn pass(&mut self, time: Nanos, kept_waiting: Nanos) {
        self.watched += time;
        self.fresh += time;
        self.kept_waiting += kept_waiting;
    }

    /// Lets what is old count less.
    pub(super) fn fade(&mut self) {
        let count = self.rows.iter().map(|row| row.count).sum::<u64>();
        if self.fresh < MEMORY || count < 2 * OPERATIONS_MIN {
            return;
        }
        self.rows.iter_mut().for_each(Sums::halve);
        self.cycles.halve();
        let times = [&mut self.late_by, &mut self.kept_waiting, &mut self.watched];
        times.into_iter().for_each(|time| time.0 /= 2);
        self.fresh = Nanos::ZERO;
    }

    /// Forgets all: the worker goes another way from now on.
    pub(super) fn forget(&mut self) {
        self.rows.fill(Sums::default());
        self.cycles = Sums::default();
        [self.late_by, self.kept_waiting, self.watched, self.fresh] = [Nanos::ZERO; 4];
    }

    /// The operations from one place to another, in ascending order of response time. Where a place
    /// falls within a row, its operations count in proportion.
    fn part(&self, from: f64, to: f64) -> Part {
        let (mut part, mut before) = (Part::default(), 0.0);
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
fn add(sums: &mut Sums, own: Nanos, whole: Nanos, begins: bool) {
    sums.count += 1;
    sums.whole_ns = sums.whole_ns.saturating_add(whole.0);
    sums.own_ns = sums.own_ns.saturating_add(own.min(whole).0);
    sums.episodes += u64::from(begins);
}

/// The row of a response time.
#[inline]
fn row_of(ns: u64) -> usize {
    let ns = ns.min(LONGEST_NS);
    let shift = (ns / ROWS_PER_OCTAVE).checked_ilog2().unwrap_or(0);
    (u64::from(shift) * ROWS_PER_OCTAVE + (ns >> shift)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Nanos = Nanos::from_micros(50);

    /// Of 1,000 operations, 1 ms apart, each 20th is late, and takes as long in all.
    fn with_late(own: Nanos, response: Nanos, rest: Nanos) -> Pace {
        let mut pace = Pace::new(true);
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
        assert!(
            at(500) > 8.99,
            "half of it is nine times as much beside the rest"
        );
        assert_eq!(at(99), 0.0, "it is late nowhere");
        // The same delay beside a slow target is none of the slowest operations' time.
        let slow = with_late(micros(100), micros(1_000), micros(20_000));
        assert!(slow.distortion() < 0.01);
    }

    #[test]
    fn the_median_counts_too() {
        let mut pace = Pace::new(true);
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
        let mut pace = Pace::new(true);
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
        let mut pace = Pace::new(true);
        for k in 1..=1_000 {
            let came = Nanos(k * 100_000);
            pace.responded(came, Nanos(0), Nanos(80_000));
            pace.read(came, Nanos(20_000), Nanos(100_000));
        }
        assert!((pace.distortion() - 2.25).abs() < 0.01);
    }

    #[test]
    fn what_is_not_watched_costs_no_memory_and_says_nothing() {
        let mut pace = Pace::new(false);
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
