//! Whether a generator's worker sleeps between operations or polls all the time: `--wait auto`.
//!
//! A sleep that ends late makes operations late, beyond what its margin covers. Where that distorts
//! what is measured, and a processor is to spare, polling all the time is the remedy: a processor
//! that never rests is neither woken late nor given to others so soon. It costs that processor, so
//! the worker goes back to sleep as soon as polling does not help, and tries from time to time.
//!
//! A worker of an open loop may also have real-time priority: it runs before all others when an
//! operation is due. It gives that up for good as soon as it uses too much of its processor, which
//! the target may need: measured on two processors, a server beside a generator at 20,000/s with
//! this priority answered 50 times later.
//!
//! Pure: times and totals come in, a [`Way`] goes out.

mod pace;

pub use pace::Pace;

use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// How often the way is decided on.
pub const REVIEW: Nanos = Nanos::from_millis(100);

/// A worker that is busy for a larger share of the time is late for want of time, not of sleep.
const BUSY_MAX: f64 = 0.7;

/// A worker gives real-time priority up where it uses more of a processor than this, polling
/// included.
const REALTIME_MAX: f64 = 0.6;

/// A worker that polls is in others' way where it waits for its processor for this share of the
/// time, …
const WAITING_MAX: f64 = 0.02;
/// … or for as much within this time: a slice or two of another thread are no reason.
const WAITING_WITHIN: Nanos = Nanos::from_secs(1);

/// To be given a processor that is free takes about this on a virtual machine: only what is beyond
/// it is waiting for others.
const TO_SCHEDULE: Nanos = Nanos::from_micros(5);

/// Where a worker that sleeps was kept waiting for its processor for this share of what it was late
/// by, …
const CONTENDED: f64 = 0.5;
/// … and of the time, others have the processors: none is to spare.
const CONTENDED_TIME: f64 = 0.01;

/// Polling helps where it leaves less than this share of the distortion.
const HELPED: f64 = 0.5;
/// That is told only after so long: the first few slow operations may be any.
const HELPED_WATCHED: Nanos = Nanos::from_secs(1);

/// How long to poll before sleeping is tried again: at first, and at the most. It doubles each time
/// that the trial fails. What is late in a trial has to be less than 1 % of the operations.
const HOLD: [Nanos; 2] = [Nanos::from_secs(30), Nanos::from_secs(120)];

/// A trial of sleeping that ends so soon has failed.
const TRIAL: Nanos = Nanos::from_secs(5);

/// How long to sleep at least after polling was no help.
const PENANCE: Nanos = Nanos::from_secs(60);

/// What a worker does between operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Sleeps until a margin before the next deadline, then polls.
    Sleeping,
    /// Polls all the time.
    Polling,
}

/// A change of the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WayChange {
    /// When, since the load began.
    pub at: Nanos,
    /// The number of the worker.
    pub worker: u32,
    /// To what.
    pub to: Way,
}

/// The share of the time from `start` to `end` in which a worker polled all the time, 0 to 1: its
/// changes are in order, and it began by sleeping.
pub fn polling_share(changes: &[WayChange], start: Nanos, end: Nanos) -> f64 {
    let ends = changes.iter().skip(1).map(|c| c.at).chain([Nanos::MAX]);
    let polling = changes
        .iter()
        .zip(ends)
        .filter(|(c, _)| c.to == Way::Polling);
    let within = polling.map(|(c, until)| until.min(end) - c.at.max(start));
    let total: u64 = within.map(|time| time.0).sum();
    total as f64 / (end - start).0.max(1) as f64
}

/// What a worker's thread has spent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Processor time.
    pub used: Nanos,
    /// Of it, in polling in vain.
    pub polled: Nanos,
    /// It was ready to run and others had its processor.
    pub kept_waiting: Nanos,
    /// How often it was given a processor.
    pub scheduled: u64,
}

/// Decides on a worker's way.
#[derive(Clone, Debug)]
pub struct Polling {
    worker: u32,
    /// There are processors that this process may use beyond one for each worker.
    is_spare: bool,
    /// When its real-time priority ended: [`Nanos::MAX`] where it has it still.
    realtime_until: Nanos,
    way: Way,
    /// When the round that is under way began, and what had been spent by then.
    since: Nanos,
    spent: Spent,
    /// The next change is due then; before it, only if polling does not help.
    until: Nanos,
    hold: Nanos,
    /// When it last went back to sleep.
    slept_from: Option<Nanos>,
    /// The distortion that made it poll.
    distortion_before: f64,
    changes: Vec<WayChange>,
}

impl Polling {
    /// Of a worker, by its number. `spare`: how many processors this process may use beyond one for
    /// each worker; with none it sleeps for ever.
    pub fn new(worker: u32, spare: u32) -> Polling {
        Polling {
            worker,
            is_spare: spare > 0,
            realtime_until: Nanos::ZERO,
            way: Way::Sleeping,
            since: Nanos::ZERO,
            spent: Spent::default(),
            until: Nanos::ZERO,
            hold: HOLD[0],
            slept_from: None,
            distortion_before: 0.0,
            changes: Vec::new(),
        }
    }

    /// The worker has real-time priority from the begin of the load on.
    pub fn with_realtime(mut self) -> Polling {
        self.realtime_until = Nanos::MAX;
        self
    }

    /// Whether the worker is to have real-time priority.
    #[inline]
    pub fn is_realtime(&self) -> bool {
        self.realtime_until == Nanos::MAX
    }

    /// The share of the time from `start` to `end` in which it had that priority, 0 to 1.
    pub fn realtime_share(&self, start: Nanos, end: Nanos) -> f64 {
        (self.realtime_until.min(end) - start).0 as f64 / (end - start).0.max(1) as f64
    }

    /// What to do.
    #[inline]
    pub fn way(&self) -> Way {
        self.way
    }

    /// Whether it may ever do anything but sleep.
    #[inline]
    pub fn decides(&self) -> bool {
        self.is_spare
    }

    /// The load begins at `now`: what the thread spent before it does not count.
    pub fn begin(&mut self, now: Nanos, spent: Spent) {
        (self.since, self.spent) = (now, spent);
    }

    /// Whether it wants to [`Polling::review`] at `now`.
    #[inline]
    pub fn is_due(&self, now: Nanos) -> bool {
        now - self.since >= REVIEW && (self.is_spare || self.is_realtime())
    }

    /// Decides anew, from what was seen since the way was last changed.
    pub fn review(&mut self, now: Nanos, pace: &mut Pace, spent: Spent) {
        let round = now - self.since;
        let used = (spent.used - self.spent.used) - (spent.polled - self.spent.polled);
        let is_busy = used.0 as f64 > BUSY_MAX * round.0 as f64;
        if (spent.used - self.spent.used).0 as f64 > REALTIME_MAX * round.0 as f64 {
            self.realtime_until = self.realtime_until.min(now);
        }
        let scheduled = spent.scheduled.saturating_sub(self.spent.scheduled);
        let kept_waiting = spent.kept_waiting - self.spent.kept_waiting;
        pace.pass(round, kept_waiting - Nanos(TO_SCHEDULE.0 * scheduled));
        (self.since, self.spent) = (now, spent);
        let distortion = pace.distortion();
        let was = self.way;
        match self.way {
            Way::Polling if is_in_the_way(pace) || self.is_no_help(pace, distortion) => {
                self.sleep(now, now + PENANCE);
            }
            Way::Polling if now >= self.until => self.sleep(now, now),
            Way::Sleeping
                if self.is_spare
                    && now >= self.until
                    && distortion >= 1.0
                    && !is_busy
                    && !is_contended(pace) =>
            {
                self.distortion_before = distortion;
                self.poll(now);
            }
            Way::Polling | Way::Sleeping => {}
        }
        match self.way == was {
            true => pace.fade(),
            false => pace.forget(),
        }
    }

    /// What is left by polling matters, and is not much less than it was.
    fn is_no_help(&self, pace: &Pace, distortion: f64) -> bool {
        let is_much = distortion >= 1.0 && distortion > HELPED * self.distortion_before;
        is_much && pace.watched >= HELPED_WATCHED
    }

    /// When it changed to what.
    pub fn changes(&self) -> &[WayChange] {
        &self.changes
    }

    /// A sleep that is late at once, after a time of polling, confirms that time.
    fn poll(&mut self, now: Nanos) {
        let [least, most] = HOLD;
        let confirmed = self.slept_from.is_some_and(|from| now - from < TRIAL);
        self.hold = if confirmed {
            Nanos(self.hold.0 * 2).min(most)
        } else {
            least
        };
        self.until = now + self.hold;
        self.change(now, Way::Polling);
    }

    fn sleep(&mut self, now: Nanos, until: Nanos) {
        self.slept_from = Some(now);
        self.until = until;
        self.change(now, Way::Sleeping);
    }

    fn change(&mut self, at: Nanos, to: Way) {
        self.way = to;
        let worker = self.worker;
        self.changes.push(WayChange { at, worker, to });
    }
}

/// Others have the processor of a worker that sleeps when it wants it.
fn is_contended(pace: &Pace) -> bool {
    pace.contention() >= CONTENDED && pace.waiting() >= CONTENDED_TIME
}

/// Others want the processor of a worker that polls.
fn is_in_the_way(pace: &Pace) -> bool {
    let time = pace.watched.max(WAITING_WITHIN);
    pace.kept_waiting.0 as f64 > WAITING_MAX * time.0 as f64
}

#[cfg(test)]
mod tests;
