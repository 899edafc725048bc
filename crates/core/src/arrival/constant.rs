//! Equal gaps.

use super::ArrivalProcess;
use crate::spec::{Rate, Share};
use crate::time::Nanos;

/// Operation k is intended at ⌊k·period/operations⌋ ns, the first at 0.
///
/// Each moment is computed from k in integers, so no error adds up. Worker i of W takes the
/// k ≡ i (mod W): interleaved phases of one schedule.
#[derive(Clone, Debug)]
pub struct Constant {
    rate: Rate,
    share: Share,
    k: u64,
}

impl Constant {
    /// One worker's share of operations at `rate`.
    pub fn new(rate: Rate, share: Share) -> Constant {
        Constant {
            rate,
            share,
            k: u64::from(share.index),
        }
    }
}

impl ArrivalProcess for Constant {
    fn next(&mut self) -> Option<Nanos> {
        let moment = self.rate.moment(self.k);
        self.k += u64::from(self.share.of);
        Some(moment)
    }

    fn skip(&mut self, n: u64) {
        self.k += n * u64::from(self.share.of);
    }

    fn rate_at(&self, _t: Nanos) -> f64 {
        self.rate.per_s() / f64::from(self.share.of)
    }
}
