//! A rate that moves linearly.

use super::ArrivalProcess;
use crate::spec::{Rate, Share};
use crate::time::Nanos;

/// The rate moves linearly from f to g over a time T, and stays at g after it.
///
/// Operation k is intended when the integral of the rate, Λ(t) = f·t + (g − f)·t²/(2T), reaches k:
/// t = 2k / (f + √(f² + 2·(g − f)·k/T)), a form without cancellation whether it rises or falls.
/// Each moment is computed from k, so no error adds up. Worker i of W takes the k ≡ i (mod W).
#[derive(Clone, Debug)]
pub struct Ramp {
    from_per_s: f64,
    to_per_s: f64,
    over_s: f64,
    share: Share,
    k: u64,
}

impl Ramp {
    /// One worker's share of a ramp between two rates over the time `over`.
    pub fn new(from: Rate, to: Rate, over: Nanos, share: Share) -> Ramp {
        Ramp {
            from_per_s: from.per_s(),
            to_per_s: to.per_s(),
            over_s: over.as_secs_f64(),
            share,
            k: u64::from(share.index),
        }
    }
}

impl ArrivalProcess for Ramp {
    fn next(&mut self) -> Option<Nanos> {
        let k = self.k as f64;
        self.k += u64::from(self.share.of);
        let (f, g) = (self.from_per_s, self.to_per_s);
        let ramped = (f + g) / 2.0 * self.over_s;
        let t = if k < ramped {
            2.0 * k / (f + (f * f + 2.0 * (g - f) * k / self.over_s).max(0.0).sqrt())
        } else {
            self.over_s + (k - ramped) / g
        };
        Some(Nanos::from_secs_f64(t))
    }

    fn skip(&mut self, n: u64) {
        self.k += n * u64::from(self.share.of);
    }

    fn rate_at(&self, t: Nanos) -> f64 {
        let passed = (t.as_secs_f64() / self.over_s).min(1.0);
        let whole = self.from_per_s + (self.to_per_s - self.from_per_s) * passed;
        whole / f64::from(self.share.of)
    }
}
