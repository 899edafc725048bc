//! Arrival processes: pure, seeded objects that say when the next operation is intended.
//!
//! One file per process. Each is built for one worker's [`Share`](crate::spec::Share) of a
//! schedule: superposed over all workers, the parts are the whole schedule (in law for Poisson,
//! moment by moment for all others).
//!
//! ```
//! use knee_core::arrival::{ArrivalProcess, Constant};
//! use knee_core::spec::{ParseError, Share, parse_rate};
//! use knee_core::time::Nanos;
//!
//! # fn main() -> Result<(), ParseError> {
//! // Three a second, shared by two workers: moments are exact thirds, rounded, and never drift.
//! let rate = parse_rate("3/s")?;
//! let mut first = Constant::new(rate, Share { index: 0, of: 2 });
//! let mut second = Constant::new(rate, Share { index: 1, of: 2 });
//! assert_eq!(first.next(), Some(Nanos(0)));
//! assert_eq!(second.next(), Some(Nanos(333_333_333)));
//! assert_eq!(first.next(), Some(Nanos(666_666_666)));
//! assert_eq!(second.next(), Some(Nanos(1_000_000_000)));
//! # Ok(())
//! # }
//! ```

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

    /// Leaves out the next `n` moments. What is computed from an operation's number leaps over
    /// them; what is drawn at random has to draw each.
    fn skip(&mut self, n: u64) {
        for _ in 0..n {
            self.next();
        }
    }

    /// The intended rate of this share around `t`, in operations per second.
    fn rate_at(&self, t: Nanos) -> f64;
}
