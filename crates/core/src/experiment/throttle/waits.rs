//! What was measured of one way to wait.

use crate::experiment::throttle::wait::WaitSpec;
use crate::measure::Histogram;
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
    /// Time from the first wait's begin until all of it was over.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn mean_and_deviations_are_those_of_the_whole_sample(
            took in prop::collection::vec(0u64..100_000_000, 1..200), asked in 0u64..100_000_000,
        ) {
            let mut waits = Waits::default();
            for &t in &took {
                waits.record(Nanos(asked), Nanos(t));
            }
            let n = took.len() as f64;
            let mean = took.iter().sum::<u64>() as f64 / n;
            let deviations: f64 = took.iter().map(|&t| (t as f64 - mean).powi(2)).sum();
            prop_assert!((waits.mean_ns - mean).abs() <= 1e-9 * mean.max(1.0));
            prop_assert!((waits.deviations_ns2 - deviations).abs() <= 1e-9 * deviations.max(1.0));
            prop_assert_eq!(waits.samples, took.len() as u64);
            prop_assert_eq!(waits.overshoot.count(), waits.samples);
            let early = took.iter().filter(|&&t| t < asked).count();
            prop_assert_eq!(waits.early, early as u64);
        }
    }

    #[test]
    fn the_deviation_of_long_waits_that_hardly_differ_is_not_lost() {
        let mut waits = Waits::default();
        for i in 0..1_000_000u64 {
            waits.record(Nanos::from_secs(3_600), Nanos(3_600_000_000_000 + i % 2));
        }
        assert!((waits.mean_ns - 3_600_000_000_000.5).abs() < 1e-3);
        assert!((waits.deviations_ns2 / 250_000.0 - 1.0).abs() < 1e-3);
    }
}
