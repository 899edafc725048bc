//! The throttle experiment: how this machine waits, and how well it holds a rate.
//!
//! [`wait`] measures one way of waiting, [`hold`] one way of holding a rate. Each is a row of a
//! table, measured on a thread of its own. The throttle itself is [`knee_load::throttle`]; this
//! module gives it a clock and something to wait with.

mod chore;
mod hold;
pub mod service;
mod wait;

use crate::error::RunError;
use crate::reactor::{COVERED, margin_within_bounds};
use crate::sys::clock::MonotonicClock;
use crate::sys::thread as sys_thread;
use crate::sys::timer;
use crate::threads;
use knee_load::experiment::throttle::{HoldSpec, HoldStats, WaitMethod, WaitSpec, WaitStats};
use knee_load::spec::Margins;
use knee_load::time::{Clock, Nanos};
use std::panic::resume_unwind;
use std::sync::atomic::AtomicBool;
use std::{io, thread};

/// The timer slack that a thread has unless it asks for another (prctl(2), PR_SET_TIMERSLACK).
const SLACK_DEFAULT_NS: u32 = 50_000;

/// The least timer slack: 0 would mean the default.
const SLACK_LEAST_NS: u32 = 1;

/// Measures one row of the table of waits. Setting `stop` ends it after the wait under way.
///
/// # Errors
/// The method is not permitted here, or nobody answers where the chore is to be done.
pub fn wait(spec: &WaitSpec, stop: &AtomicBool) -> Result<WaitStats, RunError> {
    on_own_thread(wait::slack_ns(spec.method), || wait::wait(spec, stop))?
}

/// Measures one row of the table of rates. Setting `stop` ends it within 0.2 s.
///
/// # Errors
/// Nobody answers where the operation is to be done.
pub fn hold(spec: &HoldSpec, stop: &AtomicBool) -> Result<HoldStats, RunError> {
    on_own_thread(hold::slack_ns(spec.method), || hold::hold(spec, stop))?
}

/// Whether this machine permits a way of waiting.
///
/// # Errors
/// It does not: one line with the reason.
pub fn is_permitted(method: WaitMethod) -> Result<(), RunError> {
    wait::OpenWait::open(method, &Margins::UNKNOWN).map(drop)
}

/// Measures how late sleeps of every length end on this machine, in about `budget`. 150 ms are
/// enough for sleeps up to some 10 ms; margins of longer ones are extrapolated. Margins never
/// decrease with the length.
///
/// # Errors
/// The system refuses a thread.
pub fn measure_margins(budget: Nanos) -> Result<Margins, RunError> {
    on_own_thread(SLACK_LEAST_NS, || margins_within(budget))
}

/// Runs `work` on a thread with this timer slack, which is a thread's own and inherited.
fn on_own_thread<T: Send>(slack_ns: u32, work: impl FnOnce() -> T + Send) -> Result<T, RunError> {
    thread::scope(|scope| {
        let thread = threads::spawn(scope, "throttle", || {
            let _ = sys_thread::set_timer_slack_ns(slack_ns);
            work()
        })?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Error: the machine does not permit a way of waiting.
fn broken(what: &str, error: &io::Error) -> RunError {
    RunError::NotPermitted(format!("{what}: this machine does not permit it ({error})"))
}

/// Sleeps of each length, at most: the covered share of them is then known to some 5 %.
const SLEEPS_MAX: usize = 40;

/// With fewer, a length is concluded from the shorter ones.
const SLEEPS_MIN: usize = 5;

/// Sleeps of one length take at most this part of the budget.
const PARTS: u64 = 6;

/// Measures sleeps of every length, from short to long, for about `budget`.
fn margins_within(budget: Nanos) -> Margins {
    let clock = MonotonicClock::start();
    let mut measured = Vec::new();
    for bucket in 0..Margins::COUNT {
        // The middle of what the bucket is for.
        let length = Nanos(Margins::length_min(bucket).0 / 2 * 3);
        let part = clock.now() + Nanos(budget.0 / PARTS);
        let late = late_wakeups(&clock, length, part.min(budget));
        if late.len() < SLEEPS_MIN {
            break;
        }
        measured.push(covering(late));
    }
    margins_from(&measured)
}

/// By how much sleeps of this length end late; none begins that would not be over by `end`.
fn late_wakeups(clock: &MonotonicClock, length: Nanos, end: Nanos) -> Vec<Nanos> {
    let mut late = Vec::with_capacity(SLEEPS_MAX);
    while late.len() < SLEEPS_MAX {
        let until = clock.now() + length;
        if until > end {
            break;
        }
        timer::sleep_until(clock.origin + until.0);
        late.push(clock.now() - until);
    }
    late
}

/// The least lateness that the covered share of sleeps does not exceed.
fn covering(mut late: Vec<Nanos>) -> Nanos {
    late.sort_unstable();
    let rank = (late.len() as f64 * COVERED).ceil() as usize;
    late[rank.clamp(1, late.len()) - 1]
}

/// Margins from those measured of the shortest lengths. None is less than that of a shorter length,
/// as a core that slept longer does not wake sooner. Beyond them they go on to grow by the average
/// growth from length to length.
fn margins_from(measured: &[Nanos]) -> Margins {
    let (Some(&first), Some(&last)) = (measured.first(), measured.iter().max()) else {
        return Margins::UNKNOWN;
    };
    let growth = (last - first).0 / (measured.len() as u64 - 1).max(1);
    let mut margin = Nanos::ZERO;
    let mut margins = [0; Margins::COUNT];
    for (bucket, ns) in margins.iter_mut().enumerate() {
        margin = match measured.get(bucket) {
            Some(&found) => margin.max(found),
            None => margin + Nanos(growth),
        };
        *ns = margin_within_bounds(margin).0;
    }
    Margins::from_buckets(margins)
}

#[cfg(test)]
mod tests;
