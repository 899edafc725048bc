//! Drivers: who starts an operation when. Pure; the engine and the simulator both run them.

mod any;
mod closed_loop;
mod limit;
mod open_loop;
mod overload;
#[cfg(test)]
mod tests;

pub use any::AnyDriver;
pub use closed_loop::{BACKOFF_FIRST, BACKOFF_LONGEST, ClosedLoop, RAMP_UP_STEP};
pub use limit::{Gate, Limited, RateLimit};
pub use open_loop::OpenLoop;
pub use overload::{SClients, Scheduled};

use crate::measure::Completion;
use crate::measure::Op;
use crate::time::Nanos;

/// What a driver wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start this now, and ask again.
    Start(Op),
    /// Count this arrival as shed (more in flight than permitted), and ask again.
    Shed(Op),
    /// Nothing before this moment, unless an operation completes.
    WaitUntil(Nanos),
    /// Nothing until an operation completes.
    WaitForCompletion,
    /// Nothing ever again; operations in flight may still complete.
    Done,
}

/// Decides when operations start. `now` never decreases from call to call.
pub trait Driver {
    /// What to do at `now`.
    fn poll(&mut self, now: Nanos) -> Action;

    /// Tells that the connection of the operation with this lane was established, where the
    /// operation has one of its own and goes on. It is told at most once, before its completion.
    fn on_established(&mut self, _lane: u32, _now: Nanos) {}

    /// Tells that an operation ended, well or not. (A shed one is not told.)
    fn on_completion(&mut self, completion: &Completion, now: Nanos);
}
