//! Drivers decide when operations start. Pure; the engine and the simulator both run them.

mod any;
mod closed_loop;
mod limit;
mod open_loop;
mod overload;
mod retrying;
#[cfg(test)]
mod tests;

pub use any::AnyDriver;
pub use closed_loop::{BACKOFF_FIRST, BACKOFF_LONGEST, ClosedLoop, RAMP_UP_STEP};
pub use limit::{Gate, Limited, RateLimit};
pub use open_loop::OpenLoop;
pub use overload::{SClients, Scheduled};
pub use retrying::{Retries, Retrying};

use crate::measure::{Completion, Op};
use crate::throttle::{Throttle, Turn};
use crate::time::Nanos;

/// Next action of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start this operation now, then poll again.
    Start(Op),
    /// Start this further attempt of an operation that failed now, then poll again.
    Retry(Op),
    /// Count this arrival as shed (more in flight than permitted), then poll again.
    Shed(Op),
    /// Nothing before this time, unless an operation completes.
    WaitUntil(Nanos),
    /// Nothing until an operation completes.
    WaitForCompletion,
    /// Nothing more; operations in flight may still complete.
    Done,
}

/// Decides when operations start. `now` never decreases from call to call.
pub trait Driver {
    /// The next action at `now`.
    fn poll(&mut self, now: Nanos) -> Action;

    /// Notes that the connection of the operation with this lane was established, if it has one of
    /// its own and goes on. Called at most once, before its completion.
    fn on_established(&mut self, _lane: u32, _now: Nanos) {}

    /// Notes that an operation ended, with or without success. Not called for shed ones.
    fn on_completion(&mut self, completion: &Completion, now: Nanos);
}

/// The intended time of the next operation of a schedule that ends with the window, or the action
/// while there is none.
#[inline]
fn next_intended(throttle: &mut Throttle, end: Nanos, now: Nanos) -> Result<Nanos, Action> {
    match throttle.poll(now) {
        Turn::Operate { intended } if intended < end => Ok(intended),
        Turn::WaitUntil(time) if now < end => Err(Action::WaitUntil(time.min(end))),
        // The rest of the schedule lies beyond the window.
        _ => Err(Action::Done),
    }
}
