//! Ways to hold a rate, each as people write it, and the measurement of one of them.

use super::wait::{Hybrid, spin_until};
use super::{OpenChore, SLACK_DEFAULT_NS, SLACK_LEAST_NS, broken};
use crate::error::RunError;
use crate::sys::clock::{self, MonotonicClock, TimerFd, thread_cpu_ns};
use knee_load::arrival::{ArrivalProcess, Arrivals};
use knee_load::experiment::throttle::{HoldMethod, HoldSpec, HoldStats};
use knee_load::measure::Histogram;
use knee_load::spec::{OpenLoad, Rate, Share};
use knee_load::throttle::{Throttle, Turn};
use knee_load::time::{Clock, Nanos};
use std::sync::atomic::{AtomicBool, Ordering};

/// The timer slack that the method is measured with: a program that sleeps as people write it has
/// the default.
pub(super) fn slack_ns(method: HoldMethod) -> u32 {
    match method {
        HoldMethod::Spin | HoldMethod::Throttle => SLACK_LEAST_NS,
        _ => SLACK_DEFAULT_NS,
    }
}

/// Measures the row on the calling thread.
pub(super) fn hold(spec: &HoldSpec, stop: &AtomicBool) -> Result<HoldStats, RunError> {
    let mut work = OpenChore::open(&spec.chore)?;
    let mut pace = pacer(spec, schedule(spec))?;
    let mut asked = schedule(spec);
    let mut holds = HoldStats { error: Histogram::ready(), ..HoldStats::default() };
    let cpu_before = thread_cpu_ns();
    let course = HoldRun { clock: MonotonicClock::start(), end: spec.duration, stop };
    'run: while course.goes_on() {
        let (count, intended) = match pace.due(&course)? {
            DueOperations::Next(count) => (count, None),
            DueOperations::At(intended) => (1, Some(intended)),
            DueOperations::Over => break,
        };
        for _ in 0..count {
            let Some(intended) = intended.or_else(|| asked.next()) else {
                break 'run;
            };
            let begun = course.now();
            if begun.max(intended) >= course.end || course.is_stopped() {
                break 'run;
            }
            holds.record(intended, begun);
            if work.is_any() {
                work.perform(&course.clock)?;
                holds.operating += course.now() - begun;
            }
        }
    }
    holds.interrupted = course.is_stopped() && course.now() < course.end;
    holds.elapsed = course.now();
    holds.cpu = Nanos(thread_cpu_ns() - cpu_before);
    pace.note(&mut holds);
    Ok(holds)
}

/// The schedule that is asked for.
fn schedule(spec: &HoldSpec) -> Arrivals {
    let load = OpenLoad {
        rate: spec.rate,
        arrival: spec.arrival.clone(),
        connections_max: 1,
        in_flight_max: None,
    };
    load.arrivals(Share::WHOLE, spec.seed)
}

/// The tick that [`HoldMethod::Tick`] wakes up with.
const TICK: Nanos = Nanos::from_millis(10);

/// A bucket holds as many tokens as come in this time, but at least one.
const BUCKET_DEPTH_S: f64 = 0.01;

/// Late wake-ups that the throttle's margins cover. More than elsewhere: holding a rate to the
/// microsecond is what it is for.
const COVERED: f64 = 0.99;

/// Operations that are due.
enum DueOperations {
    /// This number of operations, the next of the schedule.
    Next(u64),
    /// The operation that the schedule intends for this time.
    At(Nanos),
    /// No more operations.
    Over,
}

/// A way to hold a rate.
trait RatePacer {
    /// Waits, and returns the operations that are due, if any.
    fn due(&mut self, course: &HoldRun<'_>) -> Result<DueOperations, RunError>;

    /// Notes skipped and shifted operations.
    fn note(&self, _holds: &mut HoldStats) {}
}

/// The pace of the method that the spec names.
fn pacer(spec: &HoldSpec, arrivals: Arrivals) -> Result<Box<dyn RatePacer>, RunError> {
    let gap = spec.rate.moment(1);
    let throttle = || Throttle::new(arrivals, spec.catch_up, spec.wait_min);
    Ok(match spec.method {
        HoldMethod::NaiveSleep => Box::new(NaiveSleep { gap, has_begun: false }),
        HoldMethod::RelativeSleep => Box::new(RelativeSleep { gap, last: None }),
        HoldMethod::Tick => Box::new(Tick { rate: spec.rate, made: 0, next: Nanos::ZERO }),
        HoldMethod::TokenBucket => Box::new(TokenBucket::new(spec.rate)),
        HoldMethod::IntervalTimer => Box::new(IntervalTimer::new(gap)?),
        HoldMethod::Spin => Box::new(ThrottlePacer { throttle: throttle(), hybrid: None }),
        HoldMethod::Throttle => Box::new(ThrottlePacer {
            throttle: throttle(),
            hybrid: Some(Hybrid::new(COVERED, &spec.margins)),
        }),
    })
}

/// Operate, sleep 1/rate, again.
struct NaiveSleep {
    gap: Nanos,
    has_begun: bool,
}

impl RatePacer for NaiveSleep {
    fn due(&mut self, course: &HoldRun<'_>) -> Result<DueOperations, RunError> {
        if std::mem::replace(&mut self.has_begun, true) {
            course.sleep_for(self.gap);
        }
        Ok(DueOperations::Next(1))
    }
}

/// Operate, sleep for what is left of 1/rate since that began, again.
struct RelativeSleep {
    gap: Nanos,
    last: Option<Nanos>,
}

impl RatePacer for RelativeSleep {
    fn due(&mut self, course: &HoldRun<'_>) -> Result<DueOperations, RunError> {
        if let Some(last) = self.last {
            let left = self.gap - (course.now() - last);
            if left > Nanos::ZERO {
                course.sleep_for(left);
            }
        }
        self.last = Some(course.now());
        Ok(DueOperations::Next(1))
    }
}

/// Each tick, all that is due by then.
struct Tick {
    rate: Rate,
    made: u64,
    next: Nanos,
}

impl RatePacer for Tick {
    fn due(&mut self, course: &HoldRun<'_>) -> Result<DueOperations, RunError> {
        course.sleep_until(self.next);
        let now = course.now();
        self.next = Nanos((now.0 / TICK.0 + 1) * TICK.0);
        let made = self.made;
        while self.rate.moment(self.made) <= now {
            self.made += 1;
        }
        Ok(DueOperations::Next(self.made - made))
    }
}

/// A token for each operation. It begins with one: a full bucket would run ahead of the schedule.
struct TokenBucket {
    per_s: f64,
    depth: f64,
    tokens: f64,
    filled: Nanos,
}

impl TokenBucket {
    fn new(rate: Rate) -> TokenBucket {
        let per_s = rate.per_s();
        TokenBucket {
            per_s,
            depth: (per_s * BUCKET_DEPTH_S).max(1.0),
            tokens: 1.0,
            filled: Nanos::ZERO,
        }
    }
}

impl RatePacer for TokenBucket {
    fn due(&mut self, course: &HoldRun<'_>) -> Result<DueOperations, RunError> {
        let now = course.now();
        let come = (now - self.filled).as_secs_f64() * self.per_s;
        self.tokens = (self.tokens + come).min(self.depth);
        self.filled = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(DueOperations::Next(1));
        }
        let lack = (1.0 - self.tokens) / self.per_s;
        course.sleep_for(Nanos::from_secs_f64(lack).max(Nanos(1)));
        Ok(DueOperations::Next(0))
    }
}

/// An operation for each expiry of a periodic timer, those included that were missed.
struct IntervalTimer {
    timer: TimerFd,
    gap: Nanos,
    expiries: Option<u64>,
}

impl IntervalTimer {
    fn new(gap: Nanos) -> Result<IntervalTimer, RunError> {
        let timer = TimerFd::new();
        Ok(IntervalTimer {
            timer: timer.map_err(|e| broken(HoldMethod::IntervalTimer.name(), &e))?,
            gap: gap.max(Nanos(1)),
            expiries: None,
        })
    }
}

impl RatePacer for IntervalTimer {
    fn due(&mut self, course: &HoldRun<'_>) -> Result<DueOperations, RunError> {
        let failed = |e| broken(HoldMethod::IntervalTimer.name(), &e);
        let expiries = match self.expiries {
            Some(expiries) => expiries,
            None => {
                let first = course.clock.origin.max(1);
                self.timer.arm(first, self.gap.0).map_err(failed)?;
                0
            }
        };
        if !course.approach(Nanos(expiries.saturating_mul(self.gap.0))) {
            return Ok(DueOperations::Over);
        }
        let count = self.timer.read().map_err(failed)?;
        self.expiries = Some(expiries + count);
        Ok(DueOperations::Next(count))
    }
}

/// The throttle, with its best wait or with one that polls the clock.
struct ThrottlePacer {
    throttle: Throttle,
    /// `None`: the clock is polled.
    hybrid: Option<Hybrid>,
}

impl RatePacer for ThrottlePacer {
    fn due(&mut self, course: &HoldRun<'_>) -> Result<DueOperations, RunError> {
        let now = course.now();
        // What is left out after the end is not counted as skipped.
        if now >= course.end {
            return Ok(DueOperations::Over);
        }
        Ok(match self.throttle.poll(now) {
            Turn::Operate { intended } => DueOperations::At(intended),
            Turn::WaitUntil(moment) => {
                let until = moment.min(course.end);
                match &mut self.hybrid {
                    Some(hybrid) => hybrid.wait_until(&course.clock, until, course.stop),
                    None => {
                        // In pieces, so that a stop is heeded.
                        let piece = course.now() + Nanos::from_millis(1);
                        spin_until(&course.clock, until.min(piece));
                    }
                }
                DueOperations::Next(0)
            }
            Turn::Done => DueOperations::Over,
        })
    }

    fn note(&self, holds: &mut HoldStats) {
        holds.skipped = self.throttle.skipped();
        holds.shifted = self.throttle.shifted();
    }
}

/// Last piece of a long sleep, slept as it would be in one go. The time before it is slept in
/// pieces, so that a stop is noticed.
const LAST_PIECE: Nanos = Nanos::from_millis(100);

/// Length of the pieces before it.
const PIECE: Nanos = Nanos::from_millis(50);

/// One run that holds a rate.
struct HoldRun<'a> {
    clock: MonotonicClock,
    /// End of the run.
    end: Nanos,
    stop: &'a AtomicBool,
}

impl HoldRun<'_> {
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the run is neither over nor stopped.
    fn goes_on(&self) -> bool {
        self.now() < self.end && !self.is_stopped()
    }

    /// Sleeps for `length`, by a relative sleep; less where the run ends before.
    fn sleep_for(&self, length: Nanos) {
        let until = self.now() + length;
        if length <= LAST_PIECE && until <= self.end {
            clock::sleep_for(length.0);
        } else if self.approach(until) {
            clock::sleep_for((until - self.now()).0);
        }
    }

    /// Sleeps until `until`; less where the run ends before.
    fn sleep_until(&self, until: Nanos) {
        if self.approach(until) {
            clock::sleep_until(self.clock.origin + until.0);
        }
    }

    /// Sleeps until at most [`LAST_PIECE`] before `until`. Returns false where the run ends, or is
    /// stopped, before `until`.
    fn approach(&self, until: Nanos) -> bool {
        let goal = if until > self.end { self.end } else { until - LAST_PIECE };
        loop {
            let now = self.now();
            if now >= goal {
                return until <= self.end;
            }
            if self.is_stopped() {
                return false;
            }
            clock::sleep_until(self.clock.origin + goal.min(now + PIECE).0);
        }
    }
}
