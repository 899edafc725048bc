//! Whether a generator's worker sleeps between operations or polls all the time: `--wait auto`.
//!
//! A sleep that ends late makes operations late, beyond what its margin covers. Where that distorts
//! what is measured, and a processor is to spare, polling all the time is the remedy: a processor
//! that never rests is neither woken late nor given to others so soon. It costs that processor, so
//! the worker goes back to sleep as soon as polling does not help, and tries from time to time.
//!
//! Pure: times and totals come in, a [`Way`] goes out.

use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// How often the way is decided on.
pub const REVIEW: Nanos = Nanos::from_millis(250);

/// An operation is late beyond this share of the mean gap between operations, or of the median
/// response time, whichever is less, …
pub const LATE_SHARE: f64 = 0.25;
/// … but not below this: so late is also a worker that polls, on a busy virtual machine.
pub const LATE_MIN: Nanos = Nanos::from_micros(50);

/// More than this share of late operations distorts the 99th percentile, …
const TOLERATED: f64 = 0.01;
/// … of at least so many operations, …
const OPERATIONS_MIN: u64 = 200;
/// … in as many places at least: a single pause makes many operations late in a row.
const EPISODES_MIN: u64 = 3;

/// A worker that is busy for a larger share of the time is late for want of time, not of sleep.
const BUSY_MAX: f64 = 0.7;

/// A worker that polls is in others' way where it waits for its processor for this share.
const WAITING_MAX: f64 = 0.02;

/// Where a worker was kept waiting for its processor for this share of what it was late by, others
/// have the processors: none is to spare.
const CONTENDED: f64 = 0.5;

/// Polling helps where it leaves less than this share of what was late.
const HELPED: f64 = 0.5;

/// How long to poll before sleeping is tried again: at first, and at the most. It doubles each time
/// that the trial fails.
const HOLD: [Nanos; 2] = [Nanos::from_secs(5), Nanos::from_secs(80)];

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

/// How late a worker's operations are, and what is to be compared with that: kept from operation to
/// operation.
#[derive(Clone, Debug)]
pub struct Pace {
    limit: Nanos,
    operations: u64,
    late: u64,
    /// Runs of late operations.
    episodes: u64,
    was_late: bool,
    /// By how much the first of each such run was late, in all.
    late_by: Nanos,
    /// 0: no response yet.
    median_ns: f64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            limit: Nanos::MAX,
            operations: 0,
            late: 0,
            episodes: 0,
            was_late: false,
            late_by: Nanos::ZERO,
            median_ns: 0.0,
        }
    }
}

impl Pace {
    /// The generator came to something so long after it could have.
    #[inline]
    pub fn came_late(&mut self, by: Nanos) {
        let is_late = by > self.limit;
        self.operations += 1;
        self.late += u64::from(is_late);
        if is_late && !self.was_late {
            self.episodes += 1;
            self.late_by += by;
        }
        self.was_late = is_late;
    }

    /// An operation took so long: moves the estimate of the median by a fiftieth.
    #[inline]
    pub fn responded(&mut self, after: Nanos) {
        const STEP: f64 = 1.02;
        let ns = after.0 as f64;
        self.median_ns = if self.median_ns == 0.0 {
            ns
        } else if ns > self.median_ns {
            self.median_ns * STEP
        } else {
            self.median_ns / STEP
        };
    }

    fn share(&self) -> f64 {
        self.late as f64 / self.operations.max(1) as f64
    }

    fn is_distorted(&self) -> bool {
        let tolerated = TOLERATED * self.operations.max(OPERATIONS_MIN) as f64;
        self.episodes >= EPISODES_MIN && self.late as f64 > tolerated
    }

    fn begin_round(&mut self, gap_ns: f64) {
        let least = match self.median_ns > 0.0 {
            true => gap_ns.min(self.median_ns),
            false => gap_ns,
        };
        *self = Pace {
            limit: LATE_MIN.max(Nanos((least * LATE_SHARE) as u64)),
            median_ns: self.median_ns,
            was_late: self.was_late,
            ..Pace::default()
        };
    }
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
}

/// Decides on a worker's way.
#[derive(Clone, Debug)]
pub struct Polling {
    worker: u32,
    /// There are processors that this process may use beyond one for each worker.
    is_spare: bool,
    way: Way,
    /// When the round that is under way began, and what had been spent by then.
    since: Nanos,
    spent: Spent,
    /// The next change is due then; before it, only if polling does not help.
    until: Nanos,
    hold: Nanos,
    /// When it last went back to sleep.
    slept_from: Option<Nanos>,
    /// The share of late operations that made it poll.
    share_before: f64,
    changes: Vec<WayChange>,
}

impl Polling {
    /// Of a worker, by its number. `spare`: how many processors this process may use beyond one for
    /// each worker; with none it sleeps for ever.
    pub fn new(worker: u32, spare: u32) -> Polling {
        Polling {
            worker,
            is_spare: spare > 0,
            way: Way::Sleeping,
            since: Nanos::ZERO,
            spent: Spent::default(),
            until: Nanos::ZERO,
            hold: HOLD[0],
            slept_from: None,
            share_before: 0.0,
            changes: Vec::new(),
        }
    }

    /// What to do.
    #[inline]
    pub fn way(&self) -> Way {
        self.way
    }

    /// Whether it wants to [`Polling::review`] at `now`.
    #[inline]
    pub fn is_due(&self, now: Nanos) -> bool {
        now - self.since >= REVIEW && self.is_spare
    }

    /// Decides anew. A round with too few operations to tell goes on.
    pub fn review(&mut self, now: Nanos, pace: &mut Pace, spent: Spent) {
        let length_ns = (now - self.since).0.max(1) as f64;
        let share = |time: Nanos| time.0 as f64 / length_ns;
        let kept_waiting = spent.kept_waiting - self.spent.kept_waiting;
        let in_the_way = self.way == Way::Polling && share(kept_waiting) > WAITING_MAX;
        let is_contended = kept_waiting.0 as f64 >= CONTENDED * pace.late_by.0 as f64;
        if pace.operations < OPERATIONS_MIN && !in_the_way && !pace.is_distorted() {
            return;
        }
        let used = (spent.used - self.spent.used) - (spent.polled - self.spent.polled);
        match self.way {
            Way::Polling if in_the_way || pace.share() > HELPED * self.share_before => {
                self.sleep(now, now + PENANCE);
            }
            Way::Polling if now >= self.until => self.sleep(now, now),
            Way::Sleeping
                if now >= self.until
                    && pace.is_distorted()
                    && share(used) <= BUSY_MAX
                    && !is_contended =>
            {
                self.share_before = pace.share();
                self.poll(now);
            }
            Way::Polling | Way::Sleeping => {}
        }
        let gap_ns = length_ns / pace.operations.max(1) as f64;
        pace.begin_round(gap_ns);
        (self.since, self.spent) = (now, spent);
    }

    /// When it changed to what.
    pub fn changes(&self) -> &[WayChange] {
        &self.changes
    }

    /// A sleep that is late at once, after a time of polling, confirms that time.
    fn poll(&mut self, now: Nanos) {
        let [least, most] = HOLD;
        let confirmed = self.slept_from.is_some_and(|from| now - from < least);
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

#[cfg(test)]
mod tests;
