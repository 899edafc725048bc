//! How this machine waits, and what waiting costs; or how well each way holds a rate.

mod rates;
mod waits;

use super::Document;
use crate::axis::span;
use knee_core::experiment::throttle::report::ThrottleConclusion;

/// No axis of lateness begins below this, in nanoseconds: a clock tells no less.
const LEAST_NS: f64 = 10.0;

/// Height of one row of a plot of methods, in CSS pixels.
const ROW_PX: u32 = 26;

/// Adds it.
pub(super) fn show(doc: &mut Document, c: &ThrottleConclusion) {
    if !c.rates.is_empty() {
        rates::show(doc, &c.rates);
    }
    if !c.table.is_empty() {
        waits::show(doc, c);
    }
}

fn least_and_most(values: impl Iterator<Item = u64>) -> [f64; 2] {
    let [least, most] = span(values.map(|ns| ns as f64)).unwrap_or([LEAST_NS; 2]);
    [least.max(LEAST_NS), most.max(LEAST_NS)]
}
