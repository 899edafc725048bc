//! What was measured of one way to wait.

use super::Histogram;
use crate::spec::WaitSpec;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// One row of the table of waits as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitTrial {
    /// What was asked for.
    pub spec: WaitSpec,
    /// What came of it.
    pub waits: Waits,
}

/// Waits of one method for one delay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// How many were made.
    pub samples: u64,
    /// Of them, those made while the host gave this machine's processors to others.
    pub stolen: u64,
    /// Of them, those that ended before their time.
    pub early: u64,
    /// Mean length of a wait, in nanoseconds.
    pub mean_ns: f64,
    /// Sum of the squared deviations from the mean, in ns² (Welford's method).
    pub deviations_ns2: f64,
    /// By how much they ended late; early ones count as 0.
    pub overshoot: Histogram,
    /// Time that the chore between two waits took, where there is one.
    pub chore: Histogram,
    /// Processor time of the thread over all of it, chore included.
    pub cpu: Nanos,
    /// Time from the first wait's begin to the last one's end.
    pub elapsed: Nanos,
    /// `hybrid`: the margin as it was at the end.
    pub margin: Option<Nanos>,
    /// The user ended it early.
    pub interrupted: bool,
}

impl Waits {
    /// Counts a wait for `asked` that took `took`.
    #[inline]
    pub fn record(&mut self, asked: Nanos, took: Nanos) {
        self.samples += 1;
        self.early += u64::from(took < asked);
        let deviation = took.0 as f64 - self.mean_ns;
        self.mean_ns += deviation / self.samples as f64;
        self.deviations_ns2 += deviation * (took.0 as f64 - self.mean_ns);
        self.overshoot.record(took - asked);
    }
}
