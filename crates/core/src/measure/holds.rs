//! What was measured of one way to hold a rate.

use super::Histogram;
use crate::spec::HoldSpec;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// One row of the table of rates as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoldTrial {
    /// What was asked for.
    pub spec: HoldSpec,
    /// What came of it.
    pub holds: Holds,
}

/// Operations of one method that was to hold a rate. Streams: no moment is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Holds {
    /// Operations made.
    pub operations: u64,
    /// Operations that the schedule had but the catch-up policy left out.
    pub skipped: u64,
    /// By how much the catch-up policy moved the schedule back.
    pub shifted: Nanos,
    /// Begin of an operation against the asked schedule, late ones; early ones count as 0.
    pub error: Histogram,
    /// How many began before their moment (grouped operations do).
    pub early: u64,
    /// Time of begin (s) against number of the operation: what the rate is read off.
    pub pace: Line,
    /// Lateness (s) against the moment asked for (s): what the drift is read off.
    pub lateness: Line,
    /// Gaps between begins, in nanoseconds.
    pub gap: Spread,
    /// The first and the last begin.
    pub first: Nanos,
    /// See `first`.
    pub last: Nanos,
    /// Processor time of the thread.
    pub cpu: Nanos,
    /// Length of the run.
    pub elapsed: Nanos,
    /// Time spent in the operations themselves.
    pub operating: Nanos,
    /// The user ended it early.
    pub interrupted: bool,
}

/// A least-squares line through points that come one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Points.
    pub count: u64,
    /// Mean abscissa.
    pub mean_x: f64,
    /// Mean ordinate.
    pub mean_y: f64,
    /// Sum of squared deviations of the abscissae.
    pub deviations_xx: f64,
    /// Sum of products of deviations.
    pub deviations_xy: f64,
}

/// Mean and variance of numbers that come one by one (Welford's method).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Numbers.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Sum of squared deviations from it.
    pub deviations: f64,
}

impl Holds {
    /// Counts an operation that the schedule wanted at `intended` and that began at `begun`.
    #[inline]
    pub fn record(&mut self, intended: Nanos, begun: Nanos) {
        if self.operations == 0 {
            self.first = begun;
        } else {
            self.gap.add((begun - self.last).0 as f64);
        }
        self.pace.add(self.operations as f64, begun.as_secs_f64());
        let late_s = begun.as_secs_f64() - intended.as_secs_f64();
        self.lateness.add(intended.as_secs_f64(), late_s);
        self.early += u64::from(begun < intended);
        self.error.record(begun - intended);
        self.operations += 1;
        self.last = begun;
    }
}

impl Line {
    /// Adds a point.
    #[inline]
    pub fn add(&mut self, x: f64, y: f64) {
        self.count += 1;
        let off_x = x - self.mean_x;
        self.mean_x += off_x / self.count as f64;
        self.mean_y += (y - self.mean_y) / self.count as f64;
        self.deviations_xx += off_x * (x - self.mean_x);
        self.deviations_xy += off_x * (y - self.mean_y);
    }

    /// Its slope; `None` where fewer than two abscissae differ.
    pub fn slope(&self) -> Option<f64> {
        (self.deviations_xx > 0.0).then(|| self.deviations_xy / self.deviations_xx)
    }
}

impl Spread {
    /// Adds a number.
    #[inline]
    pub fn add(&mut self, x: f64) {
        self.count += 1;
        let off = x - self.mean;
        self.mean += off / self.count as f64;
        self.deviations += off * (x - self.mean);
    }

    /// Standard deviation (of a sample); `None` below two numbers.
    pub fn std_dev(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.deviations / (self.count - 1) as f64).sqrt())
    }
}
