//! Sleep before deadlines, with a margin learnt from late wake-ups.
//!
//! A worker sleeps until a margin before the next deadline. Then it polls its connections without
//! sleeping until the deadline. The margin is learnt from the worker's own late wake-ups,
//! separately for sleeps of different lengths, as a core that slept longer wakes later. It begins
//! with what was measured on this machine earlier. The command line keeps that (`margins` of the
//! crate `knee`) and passes it with the other options of the engine, so that the engine knows of no
//! file.
//!
//! A margin does not help where single sleeps end a millisecond late, or where a response takes no
//! longer than a wake-up. For these, see [`knee_load::polling`].

use crate::sys::thread::set_realtime;
use knee_load::measure::{Histogram, Window};
use knee_load::polling::{
    DelayStats, Polling, ThreadTime, WaitMode, WaitModeChange, polling_share,
};
use knee_load::spec::{Margins, WaitPolicy};
use knee_load::time::Nanos;

/// Longest sleep between two checks for Ctrl-C and timeouts.
const SLEEP_MAX: Nanos = Nanos::from_millis(50);

/// Shortest sleep. Sleeping and waking up cost about as much of the processor as polling for this
/// time.
const SLEEP_MIN: Nanos = Nanos::from_micros(5);

/// Share of late wake-ups that a margin covers, as a balance of punctuality and processor time.
/// Polling takes some 5 % of a core at 1,000 deadlines a second with wake-ups 60 to 200 µs late (an
/// idle virtual core).
pub(crate) const COVERED: f64 = 0.85;

/// Least share of late wake-ups that the margin of `--wait auto` covers, so that the 99th
/// percentile contains few late starts.
const COVERED_AUTO: f64 = 0.99;

/// Least estimate: the shortest time of a sleep and its system call.
const MARGIN_MIN_NS: f64 = 3_000.0;

/// Largest estimate: a machine that wakes later is stalled, not slow.
const MARGIN_MAX_NS: f64 = 1_000_000.0;

/// Change of the estimate by one observation.
const STEP_NS: f64 = 4_000.0;

/// A margin without time to sleep would never be tested again. With each deadline polled for on its
/// account it shrinks by this share.
const DOUBT: f64 = 0.001;

/// Decides between sleeping and polling, and learns margins.
#[derive(Debug)]
pub struct Waiter {
    policy: WaitPolicy,
    covered: f64,
    margin_ns: [f64; Margins::COUNT],
    /// Bucket of the last decision.
    bucket: usize,
    /// Deadline of the last decision.
    until: Nanos,
    polled_ns: u64,
    /// Lateness of sleeps that no event cut short.
    lateness: Histogram,
    /// Decides whether to sleep at all.
    polling: Polling,
}

impl Waiter {
    /// Starts with these margins. `covered` (0 to 1) is the share of late wake-ups that a margin is
    /// to cover. The rest misses its deadline, and a higher share costs more polling.
    pub fn new(policy: WaitPolicy, covered: f64, margins: &Margins) -> Waiter {
        Waiter {
            policy,
            covered: match policy {
                WaitPolicy::Auto => covered.max(COVERED_AUTO),
                WaitPolicy::Hybrid | WaitPolicy::Sleep | WaitPolicy::Spin => covered,
            },
            margin_ns: margins.by_bucket().map(|ns| ns as f64),
            bucket: 0,
            until: Nanos::ZERO,
            polled_ns: 0,
            lateness: Histogram::ready(),
            polling: Polling::new(0, 0),
        }
    }

    /// Sets the worker's number, and the processors beyond one for each worker. With some, the
    /// policy may let it poll all the time.
    pub fn of_worker(self, worker: u32, spare: u32) -> Waiter {
        let spare = match self.policy {
            WaitPolicy::Auto => spare,
            WaitPolicy::Hybrid | WaitPolicy::Sleep | WaitPolicy::Spin => 0,
        };
        Waiter { polling: Polling::new(worker, spare), ..self }
    }

    /// Gives the worker real-time priority if the policy and the system permit it. To be called on
    /// the worker's thread.
    pub fn going_first(self) -> Waiter {
        if self.policy != WaitPolicy::Auto || set_realtime(true).is_err() {
            return self;
        }
        Waiter { polling: self.polling.with_realtime(), ..self }
    }

    /// Starts at `now`; `spent` is the thread's time so far. Returns the record of operations for
    /// [`Waiter::review`].
    pub fn begin(&mut self, now: Nanos, spent: ThreadTime) -> DelayStats {
        self.polling.begin(now, spent);
        DelayStats::new(self.polling.decides())
    }

    /// Whether [`Waiter::review`] is due.
    #[inline]
    pub fn is_due(&self, now: Nanos) -> bool {
        self.polling.is_due(now)
    }

    /// Decides again whether to sleep at all, from the lateness of operations and the thread's time
    /// so far.
    pub fn review(&mut self, now: Nanos, pace: &mut DelayStats, spent: ThreadTime) {
        let had = self.polling.is_realtime();
        self.polling.review(now, pace, spent);
        if had && !self.polling.is_realtime() {
            // What was permitted to begin is permitted to end.
            let _ = set_realtime(false);
        }
    }

    /// Share of a window in which it polled all the time, 0 to 1.
    pub fn polling_share(&self, window: Window) -> f64 {
        polling_share(self.changes(), window.start, window.end)
    }

    /// Share of a window with real-time priority, 0 to 1.
    pub fn realtime_share(&self, window: Window) -> f64 {
        self.polling.realtime_share(window.start, window.end)
    }

    /// Time to sleep at `now` before the deadline `until`; zero to poll.
    pub fn sleep_for(&mut self, now: Nanos, until: Nanos) -> Nanos {
        let left = until - now;
        self.bucket = Margins::bucket(left);
        match self.policy {
            WaitPolicy::Spin => Nanos::ZERO,
            WaitPolicy::Sleep => left.min(SLEEP_MAX),
            WaitPolicy::Auto if self.polling.mode() == WaitMode::Polling => Nanos::ZERO,
            WaitPolicy::Auto | WaitPolicy::Hybrid => {
                let is_new = std::mem::replace(&mut self.until, until) != until;
                let margin = &mut self.margin_ns[self.bucket];
                let sleep = left - Nanos(*margin as u64);
                if sleep >= SLEEP_MIN {
                    return sleep.min(SLEEP_MAX);
                }
                if is_new {
                    *margin = (*margin * (1.0 - DOUBT)).max(MARGIN_MIN_NS);
                }
                Nanos::ZERO
            }
        }
    }

    /// Records the lateness of the last sleep, which no event cut short. Moves the estimate for its
    /// length towards the covered quantile (stochastic approximation: steps up and down balance
    /// where that share lies below).
    pub fn woke(&mut self, late: Nanos) {
        self.lateness.record(late);
        let margin = &mut self.margin_ns[self.bucket];
        let is_covered = late.0 as f64 <= *margin;
        *margin += STEP_NS * (self.covered - if is_covered { 1.0 } else { 0.0 });
        *margin = margin.clamp(MARGIN_MIN_NS, MARGIN_MAX_NS);
    }

    /// Records time spent polling in vain.
    pub fn polled(&mut self, time: Nanos) {
        self.polled_ns += time.0;
    }

    /// The current margins.
    pub fn margins(&self) -> Margins {
        Margins::from_buckets(self.margin_ns.map(|ns| ns as u64))
    }

    /// Lateness of sleeps that no event cut short.
    pub fn lateness(&self) -> &Histogram {
        &self.lateness
    }

    /// Times at which it began and ended to poll all the time.
    pub fn changes(&self) -> &[WaitModeChange] {
        self.polling.changes()
    }

    /// Time spent polling in vain so far.
    pub fn polled_total(&self) -> Nanos {
        Nanos(self.polled_ns)
    }
}

/// The margin nearest to `margin` that a waiter would hold.
pub(crate) fn margin_within_bounds(margin: Nanos) -> Nanos {
    Nanos(margin.0.clamp(MARGIN_MIN_NS as u64, MARGIN_MAX_NS as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_settles_where_most_wakeups_are_covered() {
        let mut waiter = Waiter::new(WaitPolicy::Hybrid, 0.85, &Margins::UNKNOWN);
        for k in 0..20_000u64 {
            waiter.sleep_for(Nanos::ZERO, Nanos::from_millis(1));
            waiter.woke(Nanos::from_micros(60 + (k * 37) % 100));
        }
        let margin = Nanos::from_millis(1) - waiter.sleep_for(Nanos::ZERO, Nanos::from_millis(1));
        let micros = margin.as_micros_f64();
        assert!((135.0..155.0).contains(&micros), "85 % of 60..160 µs is 145 µs, not {micros}");
    }

    #[test]
    fn a_margin_that_forbids_to_sleep_is_doubted_once_per_deadline() {
        let mut waiter = Waiter::new(WaitPolicy::Hybrid, 0.85, &Margins::UNKNOWN);
        let gap = Nanos::from_micros(100);
        let mut polls = |deadlines: std::ops::Range<u64>| {
            let asked = deadlines.map(|k| {
                let from = Nanos(k * gap.0);
                waiter.sleep_for(from, from + gap);
                waiter.sleep_for(from + Nanos(50_000), from + gap)
            });
            assert!(asked.last().is_some_and(|last| last == Nanos::ZERO), "50 µs left are polled");
            waiter.sleep_for(Nanos(1), Nanos(1) + gap) == Nanos::ZERO
        };
        assert!(polls(1..100), "120 µs shrink by a thousandth each time");
        assert!(!polls(100..300), "and are below 100 µs after 200 times");
    }

    /// A machine whose idle core wakes 60 to 200 µs late, in virtual time. Returns how late each of
    /// many waits for `delay` ended, and the share of the time that went into polling.
    fn on_a_sleepy_machine(delay: Nanos) -> (Vec<Nanos>, f64) {
        let mut waiter = Waiter::new(WaitPolicy::Hybrid, COVERED, &Margins::UNKNOWN);
        let (mut now, mut polled, mut wakeups) = (Nanos::ZERO, Nanos::ZERO, 0);
        let mut late = Vec::new();
        for wait in 0..4_000 {
            let until = now + delay;
            loop {
                let asked = waiter.sleep_for(now, until);
                if asked == Nanos::ZERO {
                    // The first half is for learning.
                    if wait >= 2_000 {
                        polled += until - now;
                    }
                    now = now.max(until);
                    break;
                }
                wakeups += 1;
                let late_by = Nanos::from_micros(60 + (wakeups * 61) % 140);
                now = now + asked + late_by;
                waiter.woke(late_by);
            }
            if wait >= 2_000 {
                late.push(now - until);
            }
        }
        (late, polled.as_secs_f64() / (2_000.0 * delay.as_secs_f64()))
    }

    #[test]
    fn most_deadlines_are_met_however_late_the_machine_wakes() {
        for micros in [50, 100, 200, 500, 1_000, 3_000, 10_000, 50_000] {
            let (mut late, polled) = on_a_sleepy_machine(Nanos::from_micros(micros));
            late.sort_unstable();
            let p80 = late[late.len() * 4 / 5];
            assert_eq!(p80, Nanos::ZERO, "{micros} µs");
            assert!(micros < 1_000 || polled < 0.1, "{micros} µs: {polled}");
        }
    }

    /// A worker with an operation every 500 µs on a machine that wakes late by `late`. Returns its
    /// ways to wait, and the share of the last tenth of the time that it polled.
    fn on_a_machine(late: impl Fn(u64) -> Nanos) -> (Vec<WaitMode>, f64) {
        let waiter = Waiter::new(WaitPolicy::Auto, COVERED, &Margins::UNKNOWN);
        let mut waiter = waiter.of_worker(3, 1);
        let mut pace = waiter.begin(Nanos::ZERO, ThreadTime::default());
        let gap = Nanos::from_micros(500);
        let (mut now, mut polled, mut wakeups) = (Nanos::ZERO, Nanos::ZERO, 0);
        for k in 1..=10_000_u64 {
            let until = Nanos(k * gap.0);
            while now < until {
                let asked = waiter.sleep_for(now, until);
                if asked == Nanos::ZERO {
                    waiter.polled(until - now);
                    polled += if k > 9_000 { until - now } else { Nanos::ZERO };
                    now = until;
                } else {
                    wakeups += 1;
                    now += asked + late(wakeups);
                    waiter.woke(late(wakeups));
                }
            }
            let late_by = now - until;
            pace.responded(until, late_by, late_by + Nanos::from_micros(130));
            if waiter.is_due(now) {
                let spent = ThreadTime {
                    used: waiter.polled_total(),
                    polled: waiter.polled_total(),
                    ..ThreadTime::default()
                };
                waiter.review(now, &mut pace, spent);
            }
        }
        let ways = waiter.changes().iter().map(|change| change.to).collect();
        (ways, polled.as_secs_f64() / (1_000.0 * gap.as_secs_f64()))
    }

    #[test]
    fn a_worker_that_is_woken_too_late_polls_all_the_time() {
        let (ways, polled) = on_a_machine(|k| match k % 10 {
            0 => Nanos::from_millis(2),
            _ => Nanos::from_micros(60),
        });
        assert_eq!(ways, [WaitMode::Polling]);
        assert_eq!(polled, 1.0);
    }

    #[test]
    fn late_wakeups_within_the_margin_cause_no_polling() {
        let (ways, polled) = on_a_machine(|k| Nanos::from_micros(40 + (k * 37) % 60));
        assert_eq!(ways, []);
        assert!(polled < 0.25, "{polled}: the margin alone");
    }

    #[test]
    fn a_near_deadline_is_polled_for_and_a_far_one_slept_for() {
        let mut waiter = Waiter::new(WaitPolicy::Hybrid, 0.85, &Margins::UNKNOWN);
        assert_eq!(waiter.sleep_for(Nanos::ZERO, Nanos::from_micros(20)), Nanos::ZERO);
        assert_eq!(waiter.sleep_for(Nanos::ZERO, Nanos::from_secs(9)), SLEEP_MAX);
        assert_eq!(
            waiter.sleep_for(Nanos::ZERO, Nanos::from_micros(124)),
            Nanos::ZERO,
            "4 µs beside the margin are not worth a sleep"
        );
        assert_eq!(
            Waiter::new(WaitPolicy::Sleep, 0.85, &Margins::UNKNOWN).sleep_for(Nanos(5), Nanos(25)),
            Nanos(20),
            "without a margin"
        );
        let mut spin = Waiter::new(WaitPolicy::Spin, 0.85, &Margins::UNKNOWN);
        assert_eq!(spin.sleep_for(Nanos::ZERO, Nanos::MAX), Nanos::ZERO);
    }
}
