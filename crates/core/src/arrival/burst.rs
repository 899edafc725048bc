//! Two rates in turn.

use super::ArrivalProcess;
use crate::spec::{Rate, Share};
use crate::time::Nanos;

/// Bursts after Banga and Druschel (Measuring the Capacity of a Web Server, USITS 1997): `a` is the
/// peak rate over the mean rate λ, `b` the share of the time at which the rate is above the mean.
///
/// Each period P begins with b·P at the rate a·λ; the rest has λ·(1 − a·b)/(1 − b), so the mean is
/// λ. Operation k is intended when the integral of the rate reaches k. Whole periods are counted
/// off in integers (λ·P operations each, a ratio), so no error adds up. Worker i of W takes the k ≡
/// i (mod W).
#[derive(Clone, Debug)]
pub struct Burst {
    rate: Rate,
    period: Nanos,
    peak_per_ns: f64,
    base_per_ns: f64,
    /// Length of the peak within a period.
    peak_ns: f64,
    share: Share,
    k: u64,
}

impl Burst {
    /// One worker's share of bursts with peak/mean `peak_ratio` (a > 1) for a share `peak_share`
    /// (0 < b < 1, a·b ≤ 1) of each `period` (not zero).
    pub fn new(rate: Rate, peak_ratio: f64, peak_share: f64, period: Nanos, share: Share) -> Burst {
        let mean_per_ns = rate.per_s() / 1e9;
        let base_share = (1.0 - peak_ratio * peak_share).max(0.0) / (1.0 - peak_share);
        Burst {
            rate,
            period,
            peak_per_ns: mean_per_ns * peak_ratio,
            base_per_ns: mean_per_ns * base_share,
            peak_ns: peak_share * period.0 as f64,
            share,
            k: u64::from(share.index),
        }
    }

    /// The moment within a period at which so many operations of it are reached.
    fn within_period_ns(&self, operations: f64) -> f64 {
        let of_peak = self.peak_per_ns * self.peak_ns;
        if operations < of_peak || self.base_per_ns == 0.0 {
            operations / self.peak_per_ns
        } else {
            self.peak_ns + (operations - of_peak) / self.base_per_ns
        }
    }
}

impl ArrivalProcess for Burst {
    fn next(&mut self) -> Option<Nanos> {
        // k / (λ·P) = k·p / (n·P) with λ = n/p: whole periods, and the rest in units of 1/p.
        let reached = u128::from(self.k) * u128::from(self.rate.period().0);
        let per_period = u128::from(self.rate.operations()) * u128::from(self.period.0);
        let rest = (reached % per_period) as f64 / self.rate.period().0 as f64;
        let periods = u64::try_from(reached / per_period).unwrap_or(u64::MAX);
        let within = (self.within_period_ns(rest).round() as u64).min(self.period.0);
        self.k += u64::from(self.share.of);
        Some(Nanos(periods.saturating_mul(self.period.0)) + Nanos(within))
    }

    fn skip(&mut self, n: u64) {
        self.k += n * u64::from(self.share.of);
    }

    fn rate_at(&self, t: Nanos) -> f64 {
        let at_peak = ((t.0 % self.period.0) as f64) < self.peak_ns;
        let per_ns = if at_peak {
            self.peak_per_ns
        } else {
            self.base_per_ns
        };
        per_ns * 1e9 / f64::from(self.share.of)
    }
}
