//! How this machine waits, and how well a rate can be held on it.
//!
//! [`wait`] measures one way of waiting, [`hold`] one way of holding a rate: each a row of a table,
//! measured on a thread of its own. The throttle itself is [`knee_core::throttle`]; what is here
//! gives it a clock and something to wait with.

mod chore;
mod course;
mod hold;
mod hybrid;
mod margins;
mod pace;
pub mod service;
mod table;
mod ways;

use crate::error::RunError;
use crate::sys::thread as sys_thread;
use crate::threads;
use knee_core::experiment::throttle::hold::HoldSpec;
use knee_core::experiment::throttle::hold::HoldStats;
use knee_core::experiment::throttle::wait::WaitStats;
use knee_core::experiment::throttle::wait::{WaitMethod, WaitSpec};
use knee_core::spec::Margins;
use knee_core::time::Nanos;
use std::io;
use std::panic;
use std::sync::atomic::AtomicBool;
use std::thread;

/// The timer slack that a thread has unless it asks for another (prctl(2), PR_SET_TIMERSLACK).
const SLACK_DEFAULT_NS: u32 = 50_000;

/// The least there is: 0 would mean the default.
const SLACK_LEAST_NS: u32 = 1;

/// Measures one row of the table of waits. Setting `stop` ends it after the wait under way.
///
/// # Errors
/// The method is not permitted here, or nobody answers where the chore is to be done.
pub fn wait(spec: &WaitSpec, stop: &AtomicBool) -> Result<WaitStats, RunError> {
    on_own_thread(ways::slack_ns(spec.method), || table::wait(spec, stop))?
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
    ways::Way::open(method, &Margins::UNKNOWN).map(drop)
}

/// Measures how late sleeps of every length end here, in about `budget` (150 ms are enough for
/// sleeps up to some 10 ms; longer ones are concluded from those), so that waiting can begin with
/// margins that are nearly right. They never decrease with the length.
///
/// # Errors
/// No thread can be had.
pub fn measure_margins(budget: Nanos) -> Result<Margins, RunError> {
    on_own_thread(SLACK_LEAST_NS, || margins::measure(budget))
}

/// Timer slack is a thread's own, and inherited: what is measured gets a thread with just that.
fn on_own_thread<T: Send>(slack_ns: u32, work: impl FnOnce() -> T + Send) -> Result<T, RunError> {
    thread::scope(|scope| {
        let thread = threads::spawn(scope, "throttle", || {
            let _ = sys_thread::set_timer_slack_ns(slack_ns);
            work()
        })?;
        match thread.join() {
            Ok(result) => Ok(result),
            Err(panicked) => panic::resume_unwind(panicked),
        }
    })
}

/// A way of waiting failed that had worked before.
fn broken(what: &str, error: &io::Error) -> RunError {
    RunError::NotPermitted(format!("{what}: this machine does not permit it ({error})"))
}

#[cfg(test)]
mod tests;
