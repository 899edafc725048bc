//! The answer of `knee throttle` against its own rows.

use super::Contradictions;
use crate::experiment::throttle::report::ThrottleConclusion;

/// A rate is held exactly, or within some parts per million, where the drift is not above this.
const HELD_PPM: f64 = 10.0;

pub(super) fn check(of: &ThrottleConclusion, found: &mut Contradictions) {
    for row in &of.table {
        found.ascending(
            &format!("{} of {} ns", row.method, row.delay_ns),
            &[
                ("p1", Some(row.overshoot_p1_ns)),
                ("p10", Some(row.overshoot_p10_ns)),
                ("p50", Some(row.overshoot_p50_ns)),
                ("p90", Some(row.overshoot_p90_ns)),
                ("p99", Some(row.overshoot_p99_ns)),
                ("max", Some(row.overshoot_max_ns)),
            ],
        );
    }
    for row in &of.rates {
        found.ascending(
            &row.method,
            &[
                ("p50", Some(row.error_p50_ns)),
                ("p99", Some(row.error_p99_ns)),
                ("max", Some(row.error_max_ns)),
            ],
        );
    }
    let throttle = of.rates.iter().find(|row| row.method == "throttle");
    let claims = of.answer.contains("exactly") || of.answer.contains("within 1 ppm");
    if let Some(row) = throttle.filter(|_| claims) {
        let off = (row.achieved_per_s / row.asked_per_s - 1.0) * 1e6;
        found.unless(
            row.drift_ppm.abs() <= HELD_PPM && off.abs() <= HELD_PPM,
            || format!("a drift of {} ppm, and: {}", row.drift_ppm, of.answer),
        );
    }
}
