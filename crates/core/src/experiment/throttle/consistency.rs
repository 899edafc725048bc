//! The answer of `knee throttle` against its own rows.

use super::report::ThrottleConclusion;
use crate::consistency::Contradictions;

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
}
