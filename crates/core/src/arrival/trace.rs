//! Recorded moments.

use super::ArrivalProcess;
use crate::spec::Share;
use crate::time::Nanos;
use std::sync::Arc;

/// Operation k is intended at the k-th recorded moment; after the last one the schedule ends.
/// Worker i of W takes the k ≡ i (mod W).
#[derive(Clone, Debug)]
pub struct Trace {
    moments: Arc<[Nanos]>,
    share: Share,
    k: usize,
}

impl Trace {
    /// One worker's share of `moments`, which ascend.
    pub fn new(moments: Arc<[Nanos]>, share: Share) -> Trace {
        Trace {
            moments,
            share,
            k: share.index as usize,
        }
    }
}

impl ArrivalProcess for Trace {
    fn next(&mut self) -> Option<Nanos> {
        let moment = self.moments.get(self.k).copied();
        self.k = self.k.saturating_add(self.share.of as usize);
        moment
    }

    fn skip(&mut self, n: u64) {
        let n = usize::try_from(n).unwrap_or(usize::MAX);
        self.k = self
            .k
            .saturating_add(n.saturating_mul(self.share.of as usize));
    }

    /// Counted over the second around `t`.
    fn rate_at(&self, t: Nanos) -> f64 {
        let before = t - Nanos::from_millis(500);
        let after = t + Nanos::from_millis(500);
        let begin = self.moments.partition_point(|&m| m < before);
        let end = self.moments.partition_point(|&m| m < after);
        (end - begin) as f64 / (after - before).as_secs_f64() / f64::from(self.share.of)
    }
}
