//! Arrival processes: pure, seeded objects that say when the next operation is intended.
//!
//! One file per process. Each is built for one worker's [`Share`](crate::spec::Share) of a
//! schedule: superposed over all workers, the parts are the whole schedule (in law for Poisson,
//! moment by moment for all others).

mod arrivals;
mod burst;
mod constant;
mod poisson;
mod ramp;
#[cfg(test)]
mod tests;
mod trace;
mod uniform;

pub use arrivals::Arrivals;
pub use burst::Burst;
pub use constant::Constant;
pub use poisson::Poisson;
pub use ramp::Ramp;
pub use trace::Trace;
pub use uniform::Uniform;

use crate::time::Nanos;

/// A schedule: intended moments, ascending, drawn one at a time. It knows no clock.
pub trait ArrivalProcess {
    /// The next intended moment, or `None` when the schedule has ended.
    fn next(&mut self) -> Option<Nanos>;

    /// The intended rate of this share around `t`, in operations per second.
    fn rate_at(&self, t: Nanos) -> f64;
}
