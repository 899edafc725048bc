//! Whether a generator's worker sleeps between operations or polls all the time: `--wait auto`.
//!
//! A sleep that ends late makes operations late, beyond what its margin covers. Where that distorts
//! the results and a processor is free, the worker polls all the time. A processor that never rests
//! is neither woken late nor given to others so soon. That costs a processor, so the worker sleeps
//! again as soon as polling does not help, and tries sleeping from time to time.
//!
//! A worker of an open loop may also have real-time priority: it runs before all others when an
//! operation is due. It loses the priority for good when it uses too much of its processor, which
//! the target may need. On two processors, a server beside a generator at 20,000/s with this
//! priority answered 50 times later.
//!
//! Pure: times and totals come in, a [`WaitMode`] goes out.
//!
//! # When it polls
//!
//! Every 100 ms it looks at the generator's share of the slowest 1 % of operations (at least ten of
//! them), of the median, and, in a closed loop without pauses, of a user's cycle. It polls if all
//! of this holds:
//!
//! - One of these shares is 10 % or more, of at least 100 operations and in at least three
//!   separate delays.
//! - The worker is busy for less than 70 % of the time.
//! - The process may use more processors than it has workers.
//! - The worker waited in the run queue for less than half of the delays, or for less than 1 % of
//!   the time.
//!
//! Observations that are 2 s old count half. After 30 s of polling it sleeps again to see whether
//! that is still needed; each failed try doubles this time, up to 120 s. It sleeps for a minute
//! where polling left more than half of the delay, or made the worker wait for its processor for
//! over 2 % of the time. Where it may not poll, operations are not summed.
//!
//! # Real-time priority
//!
//! It is the lowest of SCHED_FIFO, where the system permits that. A worker loses it when it uses
//! more than 60 % of its processor within 100 ms, polling included. A closed loop never has it:
//! there the server needs the processor while users wait.

mod delay_stats;

pub use delay_stats::DelayStats;

use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// Time between two reviews of the mode.
pub const REVIEW: Nanos = Nanos::from_millis(100);

/// Share of the time above which a busy worker is late for want of time, not because of sleeping.
const BUSY_MAX: f64 = 0.7;

/// Use of a processor, polling included, above which a worker loses real-time priority.
const REALTIME_MAX: f64 = 0.6;

/// Share of the time for which a polling worker waits for its processor that shows contention, …
const WAITING_MAX: f64 = 0.02;
/// … measured over this time at least: a slice or two of another thread are no reason.
const WAITING_WITHIN: Nanos = Nanos::from_secs(1);

/// Time to be given a free processor on a virtual machine. Only the time beyond it is waiting for
/// others.
const TO_SCHEDULE: Nanos = Nanos::from_micros(5);

/// Share of a sleeping worker's delays in which others had its processor, …
const CONTENDED: f64 = 0.5;
/// … and share of the time, from which no processor is free.
const CONTENDED_TIME: f64 = 0.01;

/// Share of the distortion that polling may leave.
const HELPED: f64 = 0.5;
/// Time before that is judged: the first slow operations prove nothing.
const HELPED_WATCHED: Nanos = Nanos::from_secs(1);

/// Time of polling before sleeping is tried again: the first and the longest. It doubles with each
/// failed try. A try must delay less than 1 % of the operations.
const HOLD: [Nanos; 2] = [Nanos::from_secs(30), Nanos::from_secs(120)];

/// Length of a try of sleeping. One that ends sooner has failed.
const TRIAL: Nanos = Nanos::from_secs(5);

/// Least time of sleeping after polling did not help.
const PENANCE: Nanos = Nanos::from_secs(60);

/// What a worker does between operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    /// Sleeps until a margin before the next deadline, then polls.
    Sleeping,
    /// Polls all the time.
    Polling,
}

/// A change of the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitModeChange {
    /// Time since the load began.
    pub at: Nanos,
    /// The number of the worker.
    pub worker: u32,
    /// The new mode.
    pub to: WaitMode,
}

/// Share of the time from `start` to `end` in which a worker polled all the time, 0 to 1. Its
/// changes are in order; it began by sleeping.
pub fn polling_share(changes: &[WaitModeChange], start: Nanos, end: Nanos) -> f64 {
    let ends = changes.iter().skip(1).map(|c| c.at).chain([Nanos::MAX]);
    let polling = changes.iter().zip(ends).filter(|(c, _)| c.to == WaitMode::Polling);
    let within = polling.map(|(c, until)| until.min(end) - c.at.max(start));
    let total: u64 = within.map(|time| time.0).sum();
    total as f64 / (end - start).0.max(1) as f64
}

/// Time used by a worker's thread so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// Processor time.
    pub used: Nanos,
    /// Part of it spent polling without result.
    pub polled: Nanos,
    /// Time in which it was ready to run while others had its processor.
    pub kept_waiting: Nanos,
    /// Times that it was given a processor.
    pub scheduled: u64,
}

/// Decides on a worker's mode.
#[derive(Clone, Debug)]
pub struct Polling {
    worker: u32,
    /// Whether the process may use more processors than it has workers.
    is_spare: bool,
    /// End of its real-time priority; [`Nanos::MAX`] while it has it.
    realtime_until: Nanos,
    mode: WaitMode,
    /// Time of the last review, and the thread's time then.
    since: Nanos,
    spent: ThreadTime,
    /// Time of the next change, unless polling does not help.
    until: Nanos,
    hold: Nanos,
    /// Time of the last change to sleeping.
    slept_from: Option<Nanos>,
    /// Distortion that caused polling.
    distortion_before: f64,
    changes: Vec<WaitModeChange>,
}

impl Polling {
    /// For the worker of this number. `spare` is the number of processors that the process may use
    /// beyond one for each worker. Without any the worker always sleeps.
    pub fn new(worker: u32, spare: u32) -> Polling {
        Polling {
            worker,
            is_spare: spare > 0,
            realtime_until: Nanos::ZERO,
            mode: WaitMode::Sleeping,
            since: Nanos::ZERO,
            spent: ThreadTime::default(),
            until: Nanos::ZERO,
            hold: HOLD[0],
            slept_from: None,
            distortion_before: 0.0,
            changes: Vec::new(),
        }
    }

    /// Gives the worker real-time priority from the begin of the load on.
    pub fn with_realtime(mut self) -> Polling {
        self.realtime_until = Nanos::MAX;
        self
    }

    /// Whether the worker has real-time priority.
    #[inline]
    pub fn is_realtime(&self) -> bool {
        self.realtime_until == Nanos::MAX
    }

    /// The share of the time from `start` to `end` in which it had that priority, 0 to 1.
    pub fn realtime_share(&self, start: Nanos, end: Nanos) -> f64 {
        (self.realtime_until.min(end) - start).0 as f64 / (end - start).0.max(1) as f64
    }

    /// The current mode.
    #[inline]
    pub fn mode(&self) -> WaitMode {
        self.mode
    }

    /// Whether it may ever poll.
    #[inline]
    pub fn decides(&self) -> bool {
        self.is_spare
    }

    /// Begins the load at `now`. Earlier time of the thread does not count.
    pub fn begin(&mut self, now: Nanos, spent: ThreadTime) {
        (self.since, self.spent) = (now, spent);
    }

    /// Whether [`Polling::review`] is due at `now`.
    #[inline]
    pub fn is_due(&self, now: Nanos) -> bool {
        now - self.since >= REVIEW && (self.is_spare || self.is_realtime())
    }

    /// Decides on the mode from the delays since its last change.
    pub fn review(&mut self, now: Nanos, delays: &mut DelayStats, spent: ThreadTime) {
        let round = now - self.since;
        let used = (spent.used - self.spent.used) - (spent.polled - self.spent.polled);
        let is_busy = used.0 as f64 > BUSY_MAX * round.0 as f64;
        if (spent.used - self.spent.used).0 as f64 > REALTIME_MAX * round.0 as f64 {
            self.realtime_until = self.realtime_until.min(now);
        }
        let scheduled = spent.scheduled.saturating_sub(self.spent.scheduled);
        let kept_waiting = spent.kept_waiting - self.spent.kept_waiting;
        delays.pass(round, kept_waiting - Nanos(TO_SCHEDULE.0 * scheduled));
        (self.since, self.spent) = (now, spent);
        let distortion = delays.distortion();
        let was = self.mode;
        match self.mode {
            WaitMode::Polling if is_in_the_way(delays) || self.is_no_help(delays, distortion) => {
                self.sleep(now, now + PENANCE);
            }
            WaitMode::Polling if now >= self.until => self.sleep(now, now),
            WaitMode::Sleeping
                if self.is_spare
                    && now >= self.until
                    && distortion >= 1.0
                    && !is_busy
                    && !is_contended(delays) =>
            {
                self.distortion_before = distortion;
                self.poll(now);
            }
            WaitMode::Polling | WaitMode::Sleeping => {}
        }
        if self.mode == was {
            delays.fade();
        } else {
            delays.forget();
        }
    }

    /// Whether polling leaves much of the distortion.
    fn is_no_help(&self, delays: &DelayStats, distortion: f64) -> bool {
        let is_much = distortion >= 1.0 && distortion > HELPED * self.distortion_before;
        is_much && delays.watched >= HELPED_WATCHED
    }

    /// All changes in order.
    pub fn changes(&self) -> &[WaitModeChange] {
        &self.changes
    }

    /// Changes to polling. A try of sleeping that failed soon doubles the time of polling.
    fn poll(&mut self, now: Nanos) {
        let [least, most] = HOLD;
        let confirmed = self.slept_from.is_some_and(|from| now - from < TRIAL);
        self.hold = if confirmed { Nanos(self.hold.0 * 2).min(most) } else { least };
        self.until = now + self.hold;
        self.change(now, WaitMode::Polling);
    }

    fn sleep(&mut self, now: Nanos, until: Nanos) {
        self.slept_from = Some(now);
        self.until = until;
        self.change(now, WaitMode::Sleeping);
    }

    fn change(&mut self, at: Nanos, to: WaitMode) {
        self.mode = to;
        let worker = self.worker;
        self.changes.push(WaitModeChange { at, worker, to });
    }
}

/// Whether others often have the processor when a sleeping worker needs it.
fn is_contended(delays: &DelayStats) -> bool {
    delays.contention() >= CONTENDED && delays.waiting() >= CONTENDED_TIME
}

/// Whether others need the processor of a polling worker.
fn is_in_the_way(delays: &DelayStats) -> bool {
    let time = delays.watched.max(WAITING_WITHIN);
    delays.kept_waiting.0 as f64 > WAITING_MAX * time.0 as f64
}

#[cfg(test)]
mod tests;
