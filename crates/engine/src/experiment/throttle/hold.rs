//! Ways to hold a rate, each as people write it, and the measurement of one of them.

use super::wait::{Hybrid, spin_until};
use super::{OpenChore, SLACK_DEFAULT_NS, SLACK_LEAST_NS, broken};
use crate::error::RunError;
use crate::sys::clock::{self, MonotonicClock, TimerFd, thread_cpu_ns};
use knee_load::arrival::{ArrivalProcess, Arrivals};
use knee_load::experiment::throttle::{HoldMethod, HoldSpec, HoldStats};
use knee_load::measure::Histogram;
use knee_load::spec::{OpenLoad, Share};
use knee_load::throttle::{Throttle, Turn};
use knee_load::time::{Clock, Nanos};
use std::convert::Infallible;
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
    let work = OpenChore::open(&spec.chore)?;
    let cpu_before = thread_cpu_ns();
    let mut run = HoldRun {
        asked: schedule(spec),
        work,
        end: spec.duration,
        stop,
        holds: HoldStats { error: Histogram::ready(), ..HoldStats::default() },
        clock: MonotonicClock::start(),
    };
    let Err(end) = hold_by_method(&mut run, spec);
    if let HoldEnd::Failed(error) = end {
        return Err(error);
    }
    let mut holds = run.holds;
    holds.elapsed = run.clock.now();
    holds.interrupted = stop.load(Ordering::Relaxed) && holds.elapsed < run.end;
    holds.cpu = Nanos(thread_cpu_ns() - cpu_before);
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

/// Longest time for which the clock is polled without a look at the stop.
const POLL: Nanos = Nanos::from_millis(1);

/// The loop of the method that the spec names.
fn hold_by_method(run: &mut HoldRun<'_>, spec: &HoldSpec) -> Result<Infallible, HoldEnd> {
    let rate = spec.rate;
    let gap = rate.moment(1);
    match spec.method {
        HoldMethod::NaiveSleep => loop {
            run.operate_next()?;
            run.sleep_for(gap)?;
        },
        HoldMethod::RelativeSleep => loop {
            let begun = run.now()?;
            run.operate_next()?;
            let left = gap - (run.now()? - begun);
            if left > Nanos::ZERO {
                run.sleep_for(left)?;
            }
        },
        HoldMethod::Tick => {
            let mut made = 0;
            loop {
                let now = run.now()?;
                while rate.moment(made) <= now {
                    run.operate_next()?;
                    made += 1;
                }
                run.sleep_until(Nanos((now.0 / TICK.0 + 1) * TICK.0))?;
            }
        }
        HoldMethod::TokenBucket => {
            let depth = (rate.per_s() * BUCKET_DEPTH_S).max(1.0);
            // It begins with one token: a full bucket would run ahead of the schedule.
            let (mut tokens, mut filled) = (1.0, Nanos::ZERO);
            loop {
                let now = run.now()?;
                let come = (now - filled).as_secs_f64() * rate.per_s();
                tokens = f64::min(tokens + come, depth);
                filled = now;
                if tokens >= 1.0 {
                    tokens -= 1.0;
                    run.operate_next()?;
                } else {
                    let lack_s = (1.0 - tokens) / rate.per_s();
                    run.sleep_for(Nanos::from_secs_f64(lack_s).max(Nanos(1)))?;
                }
            }
        }
        HoldMethod::IntervalTimer => {
            let failed = |e| broken(HoldMethod::IntervalTimer.name(), &e);
            let timer = TimerFd::new().map_err(failed)?;
            let gap = gap.max(Nanos(1));
            timer.arm(run.clock.origin.max(1), gap.0).map_err(failed)?;
            let mut expiries: u64 = 0;
            loop {
                run.approach(Nanos(expiries.saturating_mul(gap.0)))?;
                // Includes those that were missed.
                let count = timer.read().map_err(failed)?;
                for _ in 0..count {
                    run.operate_next()?;
                }
                expiries += count;
            }
        }
        HoldMethod::Spin | HoldMethod::Throttle => {
            let mut throttle = Throttle::new(schedule(spec), spec.catch_up, spec.wait_min);
            let has_hybrid = spec.method == HoldMethod::Throttle;
            let mut hybrid = has_hybrid.then(|| Hybrid::new(COVERED, &spec.margins));
            // What was made ready until now delays no operation.
            run.clock = MonotonicClock::start();
            loop {
                match throttle.poll(run.now()?) {
                    Turn::Operate { intended } => {
                        run.holds.skipped = throttle.skipped();
                        run.holds.shifted = throttle.shifted();
                        run.operate(intended)?;
                    }
                    Turn::WaitUntil(moment) => {
                        let until = moment.min(run.end);
                        match &mut hybrid {
                            Some(hybrid) => hybrid.wait_until(&run.clock, until, run.stop),
                            None => spin_until(&run.clock, until.min(run.clock.now() + POLL)),
                        }
                    }
                    Turn::Done => return Err(HoldEnd::Over),
                }
            }
        }
    }
}

/// Why a rate is held no longer.
enum HoldEnd {
    /// The time is over, the schedule has ended, or the user stopped it.
    Over,
    Failed(RunError),
}

impl From<RunError> for HoldEnd {
    fn from(error: RunError) -> HoldEnd {
        HoldEnd::Failed(error)
    }
}

/// Last piece of a long sleep, slept as it would be in one go. The time before it is slept in
/// pieces, so that a stop is noticed.
const LAST_PIECE: Nanos = Nanos::from_millis(100);

/// Length of the pieces before it.
const PIECE: Nanos = Nanos::from_millis(50);

/// One run that holds a rate: its methods fail with [`HoldEnd::Over`] at its end.
struct HoldRun<'a> {
    clock: MonotonicClock,
    /// The schedule that operations are compared with.
    asked: Arrivals,
    work: OpenChore,
    /// End of the run.
    end: Nanos,
    stop: &'a AtomicBool,
    holds: HoldStats,
}

impl HoldRun<'_> {
    fn now(&self) -> Result<Nanos, HoldEnd> {
        let now = self.clock.now();
        let is_over = now >= self.end || self.stop.load(Ordering::Relaxed);
        if is_over { Err(HoldEnd::Over) } else { Ok(now) }
    }

    /// Makes the next operation of the schedule.
    fn operate_next(&mut self) -> Result<(), HoldEnd> {
        let intended = self.asked.next().ok_or(HoldEnd::Over)?;
        self.operate(intended)
    }

    /// Makes the operation that the schedule intends for this time.
    fn operate(&mut self, intended: Nanos) -> Result<(), HoldEnd> {
        let begun = self.now()?;
        if intended >= self.end {
            return Err(HoldEnd::Over);
        }
        self.holds.record(intended, begun);
        if self.work.is_any() {
            self.work.perform(&self.clock)?;
            self.holds.operating += self.clock.now() - begun;
        }
        Ok(())
    }

    /// Sleeps for `length`, by a relative sleep.
    fn sleep_for(&self, length: Nanos) -> Result<(), HoldEnd> {
        let until = self.clock.now() + length;
        if length <= LAST_PIECE && until <= self.end {
            clock::sleep_for(length.0);
        } else {
            self.approach(until)?;
            clock::sleep_for((until - self.clock.now()).0);
        }
        Ok(())
    }

    fn sleep_until(&self, until: Nanos) -> Result<(), HoldEnd> {
        self.approach(until)?;
        clock::sleep_until(self.clock.origin + until.0);
        Ok(())
    }

    /// Sleeps until at most [`LAST_PIECE`] before `until`.
    fn approach(&self, until: Nanos) -> Result<(), HoldEnd> {
        let goal = if until > self.end { self.end } else { until - LAST_PIECE };
        loop {
            let now = self.clock.now();
            if now >= goal {
                return if until <= self.end { Ok(()) } else { Err(HoldEnd::Over) };
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(HoldEnd::Over);
            }
            clock::sleep_until(self.clock.origin + goal.min(now + PIECE).0);
        }
    }
}
