//! What a report asks of the conclusion of `knee throttle`, and whether that agrees with all else.

use super::findings::CODES;
use super::report::ThrottleConclusion;
use crate::consistency::{Contradictions, Said};
use crate::experiment::answer::{Answer, values};
use crate::finding::Code;
use crate::trial::report::TrialReport;
use serde_json::Value;

impl Answer for ThrottleConclusion {
    fn codes() -> &'static [Code] {
        CODES
    }

    fn cut_short(&mut self, _trial: &TrialReport, words: String) {
        self.answer = words;
    }

    fn rows(&self) -> usize {
        self.table.len() + self.rates.len()
    }

    fn table(&self) -> serde_json::Result<Vec<Value>> {
        match self.rates.is_empty() {
            true => values(&self.table),
            false => values(&self.rates),
        }
    }

    fn check(&self, _said: Said<'_>, found: &mut Contradictions) {
        check(self, found);
    }
}

fn check(of: &ThrottleConclusion, found: &mut Contradictions) {
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
