//! How well a machine waits and holds a rate: statistics of what was measured, and what follows.

mod advice;
#[cfg(test)]
pub(crate) mod fixture;
mod margins;
mod model;
mod rates;
mod waits;

pub use advice::{BUDGETS_PERCENT, EARLY, ends_early, recommendations};
pub use margins::{hybrid_margin, margin_rows, margins_of};
pub use model::{Lateness, Sleeper};
pub use rates::{Hold, rate_row};
pub use waits::wait_row;

use crate::experiment::throttle::wait::Chore;
use crate::experiment::throttle::waits::WaitTrial;
use crate::time::Nanos;

/// The delay that a machine's ways to wait are compared at, and the one of a rate of 1,000/s.
pub const USUAL: Nanos = Nanos::from_millis(1);

/// Of these trials the one without a chore whose delay is nearest to [`USUAL`], by ratio.
pub(crate) fn usual<'a>(trials: impl IntoIterator<Item = &'a WaitTrial>) -> Option<&'a WaitTrial> {
    let plain = trials
        .into_iter()
        .filter(|t| t.spec.chore == Chore::None && t.waits.samples >= waits::SAMPLES_MIN);
    let away = |t: &&WaitTrial| {
        let ratio = t.spec.delay.0.max(1) as f64 / USUAL.0 as f64;
        ratio.ln().abs()
    };
    plain.min_by(|a, b| away(a).total_cmp(&away(b)))
}
