//! The table of rates.

use super::{answer, next_row};
use crate::experiment::throttle::analysis::rate_row;
use crate::experiment::throttle::findings::{THROTTLE_NOT_HELD, hold_findings};
use crate::experiment::throttle::hold::HoldSpec;
use crate::experiment::throttle::holds::HoldTrial;
use crate::experiment::throttle::report::ThrottleConclusion;
use crate::experiment::{Concluded, Experiment, Next};
use crate::trial::report::Verdict;

/// One row for each way to hold a rate, run in the order given.
///
/// It is valid however badly the naive ways do: that is what they are there to show. It is invalid
/// where the throttle itself missed the rate although the operations leave it time, since then
/// something else had the processor, and the other rows stood under the same disturbance. Where the
/// operations alone take longer than the schedule gives them, nothing could hold the rate: the
/// numbers are right, and a finding says that the question was not.
#[derive(Clone, Debug)]
pub struct RateTable {
    rows: Vec<HoldSpec>,
}

impl RateTable {
    /// The table of these rows.
    pub fn new(rows: Vec<HoldSpec>) -> RateTable {
        RateTable { rows }
    }

    /// The rows, in order.
    pub fn rows(&self) -> &[HoldSpec] {
        &self.rows
    }
}

impl Experiment for RateTable {
    type Spec = HoldSpec;
    type Trial = HoldTrial;
    type Conclusion = ThrottleConclusion;

    fn next(&mut self, past: &[HoldTrial]) -> Next<HoldSpec> {
        next_row(&self.rows, past.len())
    }

    fn conclude(&self, past: &[HoldTrial]) -> Concluded<ThrottleConclusion> {
        let findings = hold_findings(past);
        Concluded {
            verdict: if findings.iter().any(|f| f.is(THROTTLE_NOT_HELD)) {
                Verdict::Invalid
            } else {
                Verdict::Valid
            },
            findings,
            conclusion: ThrottleConclusion {
                rates: past.iter().filter_map(rate_row).collect(),
                answer: answer::of_rates(past),
                ..ThrottleConclusion::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::throttle::analysis::fixture::holds;
    use crate::experiment::throttle::hold::HoldMethod::{NaiveSleep, Throttle};
    use crate::time::Nanos;

    const OPERATION: Nanos = Nanos::from_micros(100);

    /// What follows from a naive loop at half the rate and a throttle whose operations are late by
    /// so many nanoseconds more each.
    fn concluded(operation: Nanos, drift_ns: u64) -> (Verdict, Vec<String>, ThrottleConclusion) {
        let trials = [
            holds(NaiveSleep, operation, Nanos::from_millis),
            holds(Throttle, operation, |k| Nanos(k * drift_ns)),
        ];
        let specs = trials.iter().map(|t| t.spec.clone()).collect();
        let concluded = RateTable::new(specs).conclude(&trials);
        let conclusion = concluded.conclusion;
        let codes = concluded.findings.into_iter().map(|f| f.code).collect();
        (concluded.verdict, codes, conclusion)
    }

    #[test]
    fn a_naive_loop_that_fails_is_no_failure() {
        let (verdict, codes, conclusion) = concluded(OPERATION, 0);
        assert_eq!(verdict, Verdict::Valid);
        assert_eq!(codes, ["rate_not_held"]);
        assert_eq!(
            conclusion.answer,
            "The throttle held 1,000/s exactly (0.00 ppm drift); operate-and-sleep reached 500/s."
        );
        assert_eq!(conclusion.rates.len(), 2);
        assert!(conclusion.table.is_empty() && conclusion.hybrid_margin_ns.is_none());
    }

    #[test]
    fn a_throttle_that_misses_what_it_had_time_for_makes_it_invalid() {
        let (verdict, codes, conclusion) = concluded(OPERATION, 100_000);
        assert_eq!(verdict, Verdict::Invalid);
        assert_eq!(codes, ["rate_not_held", "throttle_not_held"]);
        let answer = "The throttle reached 909.1/s of the 1,000/s asked for; operate-and-sleep \
                      reached 500/s.";
        assert_eq!(conclusion.answer, answer);
        let (verdict, ..) = concluded(OPERATION, 1_000);
        assert_eq!(verdict, Verdict::Valid, "0.1 % is held");
    }

    #[test]
    fn what_cannot_be_held_is_the_questions_fault() {
        let (verdict, codes, _) = concluded(Nanos::from_micros(1_100), 100_000);
        assert_eq!(verdict, Verdict::Valid);
        assert_eq!(codes, ["operations_too_long"]);
    }
}
