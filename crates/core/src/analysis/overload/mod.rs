//! What trials of an overload show: what arrived, what was served, and how the one goes with the
//! other.

mod fit;
#[cfg(test)]
pub(crate) mod fixture;
mod point;
mod summary;

pub use fit::Line;
pub use point::{Point, SYN_AGAIN, Scheme, ServerSide};
pub use summary::{Summary, most_served_per_s};

use super::words::{number, ratio};
use crate::spec::CloseKind;
use crate::time::Nanos;

/// What was asked for, as far as trials do not tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// T: a connect that is not established for so long is given up and replaced.
    pub patience: Nanos,
    /// Where a schedule started the connects: how many could be in flight at once.
    pub scheduled_descriptors: u32,
    /// How connections were closed.
    pub close: CloseKind,
    /// How many times the capacity was to be offered; `None` where levels were given.
    pub wanted_factor: Option<f64>,
}

/// How many times the one goes into the other, in words: `16.3`, `2`.
pub fn times(many: f64, one: f64) -> String {
    match many / one {
        t if t >= 10.0 => number((10.0 * t).round() / 10.0),
        t => ratio(t),
    }
}
