//! Equal gaps.

use super::process::{ArrivalProcess, GapLaw, Process, ProcessKind};
use crate::quantity::{ParseError, Rate, Share};
use crate::time::Nanos;

/// Operation k is intended at ⌊k·period/operations⌋ ns, the first at 0.
///
/// Each time is exact, in integers, so no error adds up: a step is a whole number of nanoseconds,
/// and its remainder is carried. Worker i of W takes the k ≡ i (mod W), so that the workers' parts
/// interleave.
#[derive(Clone, Debug)]
pub struct Constant {
    rate: Rate,
    share: Share,
    /// The next operation of this worker.
    k: u64,
    /// Its intended time ⌊k·period/operations⌋, and the remainder k·period mod operations.
    intended: (Nanos, u64),
    /// Quotient and remainder from one operation of this worker to its next.
    step: (Nanos, u64),
}

impl Constant {
    /// One worker's share of operations at `rate`.
    pub fn new(rate: Rate, share: Share) -> Constant {
        let k = u64::from(share.index);
        Constant {
            rate,
            share,
            k,
            intended: quotient_and_rest(rate, k),
            step: quotient_and_rest(rate, share.of.into()),
        }
    }
}

/// k·period over operations: the whole nanoseconds, and the rest in units of 1/operations ns.
fn quotient_and_rest(rate: Rate, k: u64) -> (Nanos, u64) {
    let rest = u128::from(k) * u128::from(rate.period().0) % u128::from(rate.operations());
    (rate.moment(k), rest as u64)
}

impl ArrivalProcess for Constant {
    #[inline]
    fn next(&mut self) -> Option<Nanos> {
        let (intended, rest) = self.intended;
        let (step, step_rest) = self.step;
        self.k += u64::from(self.share.of);
        // Compared without adding: the sum of the two remainders could overflow.
        let lacking = self.rate.operations() - step_rest;
        self.intended = if rest >= lacking {
            (intended + step + Nanos(1), rest - lacking)
        } else {
            (intended + step, rest + step_rest)
        };
        Some(intended)
    }

    fn skip(&mut self, n: u64) {
        self.k += n * u64::from(self.share.of);
        self.intended = quotient_and_rest(self.rate, self.k);
    }

    fn rate_at(&self, _t: Nanos) -> f64 {
        self.rate.per_s() / f64::from(self.share.of)
    }
}

impl Process for Constant {
    type Law = ();
    const KIND: ProcessKind = ProcessKind {
        gaps: Some(GapLaw::Constant),
        ..ProcessKind::plain("constant", "constant (the default): every 1/rate.")
    };

    fn parse(_text: &str, arguments: &[&str]) -> Option<Result<(), ParseError>> {
        arguments.is_empty().then_some(Ok(()))
    }

    fn begin(_law: &(), rate: Rate, share: Share, _seed: u64) -> Constant {
        Constant::new(rate, share)
    }
}
