//! The ways to hold a rate, each as people write it.

use super::broken;
use super::course::Course;
use super::hybrid::{Hybrid, spin_until};
use crate::error::RunError;
use crate::sys::timer::TimerFd;
use knee_core::arrival::Arrivals;
use knee_core::experiment::throttle::hold::HoldStats;
use knee_core::experiment::throttle::hold::{HoldMethod, HoldSpec};
use knee_core::spec::Rate;
use knee_core::throttle::{Throttle, Turn};
use knee_core::time::Nanos;

/// The tick that [`HoldMethod::Tick`] wakes up with.
const TICK: Nanos = Nanos::from_millis(10);

/// A bucket holds as many tokens as come in this time, but at least one.
const BUCKET_DEPTH_S: f64 = 0.01;

/// Late wake-ups that the throttle's margins cover. More than elsewhere: holding a rate to the
/// microsecond is what it is for.
const COVERED: f64 = 0.99;

/// What is to be made now.
pub(super) enum Due {
    /// So many operations, the next of the schedule.
    Next(u64),
    /// The operation that the schedule wants at this moment.
    At(Nanos),
    /// None ever again.
    Over,
}

/// A way to hold a rate.
pub(super) trait Pace {
    /// Waits in its way; then what is due. No operation may be: then it is asked again.
    fn due(&mut self, course: &Course<'_>) -> Result<Due, RunError>;

    /// Writes down what it did to the schedule.
    fn tell(&self, _holds: &mut HoldStats) {}
}

/// The pace of the method that the spec names.
pub(super) fn of(spec: &HoldSpec, arrivals: Arrivals) -> Result<Box<dyn Pace>, RunError> {
    let gap = spec.rate.moment(1);
    let throttle = || Throttle::new(arrivals, spec.catch_up, spec.wait_min);
    Ok(match spec.method {
        HoldMethod::NaiveSleep => Box::new(NaiveSleep {
            gap,
            has_begun: false,
        }),
        HoldMethod::RelativeSleep => Box::new(RelativeSleep { gap, last: None }),
        HoldMethod::Tick => Box::new(Tick {
            rate: spec.rate,
            made: 0,
            next: Nanos::ZERO,
        }),
        HoldMethod::TokenBucket => Box::new(TokenBucket::new(spec.rate)),
        HoldMethod::IntervalTimer => Box::new(IntervalTimer::new(gap)?),
        HoldMethod::Spin => Box::new(Spin(throttle())),
        HoldMethod::Throttle => Box::new(Hold {
            throttle: throttle(),
            hybrid: Hybrid::new(COVERED, &spec.margins),
        }),
    })
}

/// Operate, sleep 1/rate, again.
struct NaiveSleep {
    gap: Nanos,
    has_begun: bool,
}

impl Pace for NaiveSleep {
    fn due(&mut self, course: &Course<'_>) -> Result<Due, RunError> {
        if std::mem::replace(&mut self.has_begun, true) {
            course.sleep_for(self.gap);
        }
        Ok(Due::Next(1))
    }
}

/// Operate, sleep for what is left of 1/rate since that began, again.
struct RelativeSleep {
    gap: Nanos,
    last: Option<Nanos>,
}

impl Pace for RelativeSleep {
    fn due(&mut self, course: &Course<'_>) -> Result<Due, RunError> {
        if let Some(last) = self.last {
            let left = self.gap - (course.now() - last);
            if left > Nanos::ZERO {
                course.sleep_for(left);
            }
        }
        self.last = Some(course.now());
        Ok(Due::Next(1))
    }
}

/// Each tick, all that is due by then.
struct Tick {
    rate: Rate,
    made: u64,
    next: Nanos,
}

impl Pace for Tick {
    fn due(&mut self, course: &Course<'_>) -> Result<Due, RunError> {
        course.sleep_until(self.next);
        let now = course.now();
        self.next = Nanos((now.0 / TICK.0 + 1) * TICK.0);
        let made = self.made;
        while self.rate.moment(self.made) <= now {
            self.made += 1;
        }
        Ok(Due::Next(self.made - made))
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

impl Pace for TokenBucket {
    fn due(&mut self, course: &Course<'_>) -> Result<Due, RunError> {
        let now = course.now();
        let come = (now - self.filled).as_secs_f64() * self.per_s;
        self.tokens = (self.tokens + come).min(self.depth);
        self.filled = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(Due::Next(1));
        }
        let lack = (1.0 - self.tokens) / self.per_s;
        course.sleep_for(Nanos::from_secs_f64(lack).max(Nanos(1)));
        Ok(Due::Next(0))
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

impl Pace for IntervalTimer {
    fn due(&mut self, course: &Course<'_>) -> Result<Due, RunError> {
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
            return Ok(Due::Over);
        }
        let count = self.timer.read().map_err(failed)?;
        self.expiries = Some(expiries + count);
        Ok(Due::Next(count))
    }
}

/// The throttle, its moments waited for by reading the clock.
struct Spin(Throttle);

impl Pace for Spin {
    fn due(&mut self, course: &Course<'_>) -> Result<Due, RunError> {
        ask(&mut self.0, course, |until| {
            // In pieces, so that a stop is heeded.
            let piece = course.now() + Nanos::from_millis(1);
            spin_until(&course.clock, until.min(piece));
        })
    }

    fn tell(&self, holds: &mut HoldStats) {
        tell(&self.0, holds);
    }
}

/// The throttle with its best wait.
struct Hold {
    throttle: Throttle,
    hybrid: Hybrid,
}

impl Pace for Hold {
    fn due(&mut self, course: &Course<'_>) -> Result<Due, RunError> {
        let hybrid = &mut self.hybrid;
        ask(&mut self.throttle, course, |until| {
            hybrid.wait_until(&course.clock, until, course.stop);
        })
    }

    fn tell(&self, holds: &mut HoldStats) {
        tell(&self.throttle, holds);
    }
}

/// Asks a throttle and waits where it says so.
#[inline]
fn ask(
    throttle: &mut Throttle,
    course: &Course<'_>,
    wait_until: impl FnOnce(Nanos),
) -> Result<Due, RunError> {
    Ok(match throttle.poll(course.now()) {
        Turn::Operate { intended } => Due::At(intended),
        Turn::WaitUntil(moment) => {
            wait_until(moment.min(course.end));
            Due::Next(0)
        }
        Turn::Done => Due::Over,
    })
}

fn tell(throttle: &Throttle, holds: &mut HoldStats) {
    holds.skipped = throttle.skipped();
    holds.shifted = throttle.shifted();
}
