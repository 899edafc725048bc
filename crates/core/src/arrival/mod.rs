//! Arrival processes: pure, seeded objects that say when the next operation is intended.

use crate::time::Nanos;

/// A schedule: intended moments, ascending, drawn one at a time. It knows no clock.
pub trait ArrivalProcess {
    /// The next intended moment, or `None` when the schedule has ended.
    fn next(&mut self) -> Option<Nanos>;

    /// The intended rate around `t`, in operations per second.
    fn rate_at(&self, t: Nanos) -> f64;
}
