//! Holding a rate of operations: an object that knows no clock and nothing of what it throttles.
//!
//! A loop of "operate, sleep for 1/rate" is too slow twice over. The operation takes time, and a
//! sleep takes longer than it was asked for. A [`Throttle`] works off an absolute schedule instead.
//! The time of an operation or a sleep is taken off the next wait, and no error adds up. Its user
//! passes the time; it answers with what to do, a [`Turn`]. How to wait, and what an operation is,
//! remain the user's: a thread that sleeps, an event loop, a simulation.
//!
//! 1,000 operations per second of 0.9 ms each, by a clock that makes each wait 60 µs too long:
//!
//! ```
//! use knee_load::spec::{ParseError, parse_rate};
//! use knee_load::throttle::{Throttle, Turn};
//! use knee_load::time::Nanos;
//!
//! # fn main() -> Result<(), ParseError> {
//! let mut throttle = Throttle::constant(parse_rate("1000/s")?);
//! let (mut now, mut operations) = (Nanos::ZERO, 0);
//! while now < Nanos::from_secs(10) {
//!     match throttle.poll(now) {
//!         Turn::Operate { .. } => {
//!             operations += 1;
//!             now += Nanos::from_micros(900);
//!         }
//!         Turn::WaitUntil(moment) => now = moment + Nanos::from_micros(60),
//!         Turn::Done => break,
//!     }
//! }
//! assert_eq!(operations, 10_000);
//! # Ok(())
//! # }
//! ```
//!
//! # Schedules
//!
//! A constant rate is a ratio of integers, from one operation per hour to millions per second.
//! Operation k has the intended time ⌊k·period/operations⌋ exactly. Any other [arrival
//! process](crate::arrival) may take its place. Intended times count from the same zero as the
//! times given to the throttle.
//!
//! # After a stall
//!
//! An operation is *missed* once the intended time of its successor has come as well. The policy, a
//! [`CatchUp`], decides what happens then. As an example, at 1,000/s the operation of 100 ms takes
//! 50 ms and the others no time. The throttle is polled again at 150 ms:
//!
//! | policy | at 150 ms | then | skipped | shifted |
//! | --- | --- | --- | --- | --- |
//! | `Burst(u64::MAX)` | 101 to 150, back to back | 151 at 151 ms and so on, on time | 0 | 0 |
//! | `Burst(20)` | 131 to 150, back to back | 151 at 151 ms and so on, on time | 30 | 0 |
//! | `Skip` | 150, which is on time | 151 at 151 ms and so on, on time | 49 | 0 |
//! | `Spread(2.0)` | 101 | one each 0.5 ms: 102 at 150.5 ms, …, 199 at 199 ms is on time | 0 | 0 |
//! | `Delay` | 101 | 102 at 151 ms and so on, each 49 ms after its first time | 0 | 49 ms |
//!
//! `Spread(x)` always keeps two operations apart by at least 1/x of their distance on the schedule.
//! That has an effect only where the first of them is late.
//!
//! # Grouping
//!
//! A wait costs processor time and precision, and short ones the most. With a least wait, an
//! operation whose intended time is nearer than that is made at once, early. So operations gather
//! in groups, and the rate is kept. Example: 2,000 operations per second of 0.1 ms each, with a
//! least wait of 10 ms. Each operation gains 0.4 ms on the schedule and 25 of them gain 10 ms, so
//! 25 are made every 12.5 ms. 10 operations per minute of 2 s each are 4 s apart: each wait is
//! made. The first operation is never early.
//!
//! # Concurrency
//!
//! [`Lanes`] stand beside a throttle where operations overlap. They bound the operations at once,
//! make an exact number in all, and report an error in any of them at once.
//!
//! A **skipped** operation is never made, and the **shift** is by how much the schedule moved. An
//! operation that is late by less than a gap is only late.

mod lanes;
#[cfg(test)]
mod tests;

use crate::arrival::{ArrivalProcess, Arrivals, Constant};
use crate::spec::{ParseError, Rate, Share};
use crate::time::Nanos;
pub use lanes::{LaneCall, Lanes};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Make an operation now, and ask again when it is made, or at once if operations overlap.
    Operate {
        /// When the schedule wants it. Later than now if it is made early, in a group; earlier if
        /// it is made late. [`CatchUp::Delay`]: the time as it was moved back, so that an
        /// operation that the schedule was moved for counts as on time.
        intended: Nanos,
    },
    /// There is nothing to do before this time, which is later than now: ask again then.
    WaitUntil(Nanos),
    /// The schedule has ended: there is nothing to do ever again.
    Done,
}

/// Says when to make an operation, so that they keep to a schedule.
#[derive(Clone, Debug)]
pub struct Throttle {
    schedule: ArrivalSchedule,
    /// The next operation's intended time on the original schedule; [`Nanos::MAX`]: none is left.
    next: Nanos,
    /// When the next operation is to be made; the same for the end of the schedule.
    release: Nanos,
    /// How much earlier it is made if the wait would be for less: nothing before the first one.
    lead: Nanos,
    /// The lead after the first operation.
    lead_later: Nanos,
    catch_up: CatchUp,
    /// Counts what is due, where a burst has a limit.
    due: Option<Box<DueCounter>>,
    /// Each operation is made at its time or as soon as it can be: most throttles by far.
    is_plain: bool,
    skipped: u64,
    shifted: Nanos,
}

/// Runs ahead of the operations on the same schedule, so that the due ones can be counted while
/// they are made.
#[derive(Clone, Debug)]
struct DueCounter {
    schedule: ArrivalSchedule,
    /// The intended time it has reached: at least that of the next operation.
    next: Nanos,
    /// How many intended times lie from the next operation's to before its own.
    ahead: u64,
}

impl Throttle {
    /// Operations at a constant rate, the first at 0, each of them made, none early.
    pub fn constant(rate: Rate) -> Throttle {
        let arrivals = Arrivals::Constant(Constant::new(rate, Share::WHOLE));
        Throttle::new(arrivals, CatchUp::ALL, Nanos::ZERO)
    }

    /// Operations at the times of `arrivals`. After a stall, `catch_up` is done; waits shorter
    /// than `wait_min` are not made. A burst of 0 is taken for one of 1. A spread below the rate is
    /// taken for one at the rate, which never catches up.
    pub fn new(arrivals: Arrivals, catch_up: CatchUp, wait_min: Nanos) -> Throttle {
        let mut schedule = ArrivalSchedule::new(arrivals);
        let next = schedule.next();
        let catch_up = match catch_up {
            CatchUp::Burst(max) => CatchUp::Burst(max.max(1)),
            CatchUp::Skip => CatchUp::Burst(1),
            CatchUp::Spread(times) => CatchUp::Spread(times.max(1.0)),
            CatchUp::Delay => CatchUp::Delay,
        };
        let is_limited = matches!(catch_up, CatchUp::Burst(max) if max < u64::MAX);
        let lead_later = wait_min - Nanos(1);
        Throttle {
            due: is_limited.then(|| Box::new(DueCounter::new(&schedule, next))),
            schedule,
            next,
            release: next,
            lead: Nanos::ZERO,
            lead_later,
            catch_up,
            is_plain: catch_up == CatchUp::ALL && lead_later == Nanos::ZERO,
            skipped: 0,
            shifted: Nanos::ZERO,
        }
    }

    /// The schedule ends after `n` operations, those that are left out included; to be set before
    /// the first poll.
    pub fn with_operations_max(mut self, n: u64) -> Throttle {
        // One is drawn already.
        self.schedule.limit(n.saturating_sub(1));
        if n == 0 {
            (self.next, self.release) = (Nanos::MAX, Nanos::MAX);
        }
        if let Some(due) = &mut self.due {
            **due = DueCounter::new(&self.schedule, self.next);
        }
        self
    }

    /// What to do at `now`, which never decreases from call to call.
    #[inline]
    pub fn poll(&mut self, now: Nanos) -> Turn {
        let release = self.release;
        if release == Nanos::MAX {
            return Turn::Done;
        }
        if release - now > self.lead {
            return Turn::WaitUntil(release);
        }
        if self.is_plain {
            self.next = self.schedule.next();
            self.release = self.next;
            return Turn::Operate { intended: release };
        }
        self.operate(now)
    }

    /// Makes an operation, as the policy wants it. Out of line, to keep the plain way short.
    #[inline(never)]
    fn operate(&mut self, now: Nanos) -> Turn {
        self.lead = self.lead_later;
        if let (CatchUp::Burst(max), Some(due)) = (self.catch_up, &mut self.due) {
            let surplus = due.count(now).saturating_sub(max);
            if surplus > 0 {
                due.ahead -= surplus;
                self.skipped += surplus;
                self.schedule.skip(surplus - 1);
                self.next = self.schedule.next();
            }
        }
        let moment = self.next;
        self.next = self.schedule.next();
        if let Some(due) = &mut self.due {
            due.follow(self.next);
        }
        self.release = match self.catch_up {
            CatchUp::Burst(_) | CatchUp::Skip => self.next,
            CatchUp::Spread(times) => {
                let gap = ((self.next - moment).0 as f64 / times).ceil() as u64;
                self.next.max(self.release.max(now) + Nanos(gap))
            }
            CatchUp::Delay => {
                if self.next + self.shifted <= now {
                    self.shifted += now - self.release;
                }
                self.next + self.shifted
            }
        };
        let intended = moment + self.shifted;
        Turn::Operate { intended }
    }

    /// Operations that the schedule had and [`CatchUp::Burst`] or [`CatchUp::Skip`] left out.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// By how much [`CatchUp::Delay`] has moved the schedule back, in all.
    pub fn shifted(&self) -> Nanos {
        self.shifted
    }
}

impl DueCounter {
    /// One that is level with the next operation, whose time was the last drawn of `schedule`.
    fn new(schedule: &ArrivalSchedule, next: Nanos) -> DueCounter {
        DueCounter { schedule: schedule.clone(), next, ahead: 0 }
    }

    /// How many operations are due at `now`.
    fn count(&mut self, now: Nanos) -> u64 {
        if self.next <= now && self.next < Nanos::MAX {
            let (passed, next) = self.schedule.pass(now);
            self.ahead += 1 + passed;
            self.next = next;
        }
        self.ahead
    }

    /// The next operation's intended time is now this one.
    fn follow(&mut self, next: Nanos) {
        if self.ahead > 0 {
            self.ahead -= 1;
        } else {
            // An operation made early has overtaken it.
            self.next = self.schedule.next();
            debug_assert_eq!(self.next, next);
        }
    }
}

/// What becomes of operations whose intended time has passed, after a stall.
///
/// An operation is *missed* once the time of its successor has come as well. Lateness below a gap
/// is no stall, and no policy acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// The newest of those due, up to this number, are made back to back; older ones are skipped
    /// and counted. `u64::MAX`: none is ever skipped.
    Burst(u64),
    /// All are made, but no faster than this multiple of the rate (above 1), until the schedule is
    /// caught up with. (It keeps operations apart, so it is felt for a lateness below a gap too.)
    Spread(f64),
    /// Missed ones are counted, not made: the same as a burst of one.
    Skip,
    /// All later times move back by as much as the first missed one is late; counted.
    Delay,
}

impl CatchUp {
    /// Every operation is made, as soon as it can be.
    pub const ALL: CatchUp = CatchUp::Burst(u64::MAX);

    /// `burst`, `burst(20)`, `spread`, `spread(1.5)` (twice the rate unless given), `skip`,
    /// `delay`.
    ///
    /// # Errors
    /// Another word, a burst of 0, or a spread that does not catch up (1 or less).
    pub fn parse(text: &str) -> Result<CatchUp, ParseError> {
        let (name, argument) = match text.trim().split_once('(') {
            None => (text.trim(), None),
            Some((name, rest)) => (name, Some(rest.strip_suffix(')').unwrap_or(""))),
        };
        let error = |what: &str| {
            ParseError(format!(
                "'{text}' {what}: give burst, burst(N) with N from 1, spread(X) with X above 1, \
                 skip or delay"
            ))
        };
        match (name, argument) {
            ("burst", None) => Ok(CatchUp::ALL),
            ("burst", Some(n)) => match n.trim().parse() {
                Ok(n) if n > 0 => Ok(CatchUp::Burst(n)),
                _ => Err(error("is no burst")),
            },
            ("spread", None) => Ok(CatchUp::Spread(2.0)),
            ("spread", Some(x)) => match x.trim().parse::<f64>() {
                Ok(x) if x.is_finite() && x > 1.0 => Ok(CatchUp::Spread(x)),
                _ => Err(error("never catches up")),
            },
            ("skip", None) => Ok(CatchUp::Skip),
            ("delay", None) => Ok(CatchUp::Delay),
            _ => Err(error("is no policy")),
        }
    }
}

impl fmt::Display for CatchUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CatchUp::Burst(u64::MAX) => f.write_str("burst"),
            CatchUp::Burst(n) => write!(f, "burst({n})"),
            CatchUp::Spread(x) => write!(f, "spread({x})"),
            CatchUp::Skip => f.write_str("skip"),
            CatchUp::Delay => f.write_str("delay"),
        }
    }
}

/// The times of an arrival process, up to a number of them.
#[derive(Clone, Debug)]
struct ArrivalSchedule {
    arrivals: Arrivals,
    remaining: u64,
}

impl ArrivalSchedule {
    fn new(arrivals: Arrivals) -> ArrivalSchedule {
        ArrivalSchedule { arrivals, remaining: u64::MAX }
    }

    /// Ends it after `n` more times.
    fn limit(&mut self, n: u64) {
        self.remaining = n;
    }

    /// The next time; [`Nanos::MAX`], which never comes: there are no more.
    #[inline]
    fn next(&mut self) -> Nanos {
        if self.remaining == 0 {
            return Nanos::MAX;
        }
        self.remaining -= 1;
        self.arrivals.next().unwrap_or(Nanos::MAX)
    }

    /// Leaves out `n` times.
    fn skip(&mut self, n: u64) {
        self.remaining = self.remaining.saturating_sub(n);
        self.arrivals.skip(n);
    }

    /// Draws until a time is later than `now`: how many were not, and that time.
    ///
    /// Leaps ahead in steps that double and halve again. So the millions of a long stall cost some
    /// dozens of draws, except where a leap costs as much as its single steps.
    fn pass(&mut self, now: Nanos) -> (u64, Nanos) {
        let step_max = if self.arrivals.is_random() { 1 } else { 1 << 40 };
        let (mut passed, mut step, mut rises) = (0, 1, true);
        loop {
            let mut ahead = self.clone();
            ahead.skip(step - 1);
            let moment = ahead.next();
            if moment <= now && moment < Nanos::MAX {
                *self = ahead;
                passed += step;
                step = if rises { step * 2 } else { step / 2 }.clamp(1, step_max);
            } else if step == 1 {
                *self = ahead;
                return (passed, moment);
            } else {
                rises = false;
                step /= 2;
            }
        }
    }
}
