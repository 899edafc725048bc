//! `knee throttle`: how this machine waits, and how well each way holds a rate.
//!
//! # Words
//!
//! - **Overshoot**: by how much a wait ended after its time.
//! - **Timer slack**: what the kernel may add to a sleep so that several wake-ups become one, 50
//!   µs unless a thread asks for less. (prctl(2), PR_SET_TIMERSLACK)
//! - **Margin**: how long before its time the sleep of a hybrid wait is to end; the rest is spun.
//! - **Drift**: lateness that grows as long as a rate is held, in parts per million of the time.
//!   A schedule that is kept has none, however late each operation is.

pub mod analysis;
mod conclusion;
pub mod findings;
pub mod report;
#[cfg(test)]
mod tests;

use crate::experiment::NextTrial;
use crate::experiment::throttle::analysis::{
    hybrid_margin, margin_rows, rate_row, recommendations, wait_row,
};
use crate::experiment::throttle::findings::{
    THROTTLE_NOT_HELD, hold_findings, not_permitted, wait_findings,
};
use crate::experiment::throttle::report::ThrottleConclusion;
use crate::experiment::{Concluded, Experiment};
use crate::trial::report::Verdict;
pub use analysis::margins_of;
use knee_load::experiment::throttle::{HoldSpec, HoldTrial, WaitMethod, WaitSpec, WaitTrial};

/// The next row of a table that is run in the order given.
fn next_row<S: Clone>(rows: &[S], done: usize) -> NextTrial<S> {
    rows.get(done).map_or(NextTrial::Converged, |row| NextTrial::Run(Box::new(row.clone())))
}

/// One row for each way to hold a rate, run in the order given.
///
/// It is valid however badly the naive ways do: that is what they show. It is invalid where the
/// throttle missed the rate although the operations leave it time. Then something else had the
/// processor, and the other rows had the same disturbance. Where the operations alone take longer
/// than the schedule gives them, nothing could hold the rate. The numbers are right then, and a
/// finding says so.
#[derive(Clone, Debug)]
pub struct RateTable {
    rows: Vec<HoldSpec>,
}

impl RateTable {
    /// The table of these rows.
    pub fn new(rows: Vec<HoldSpec>) -> RateTable {
        RateTable { rows }
    }
}

impl Experiment for RateTable {
    type Spec = HoldSpec;
    type Trial = HoldTrial;
    type Conclusion = ThrottleConclusion;

    fn next(&mut self, past: &[HoldTrial]) -> NextTrial<HoldSpec> {
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
                answer: conclusion::rates_in_words(past),
                ..ThrottleConclusion::default()
            },
        }
    }
}

/// One row for each method and delay, run in the order given.
///
/// It is always valid: what it measures is this machine, with whatever disturbs it; what was
/// disturbed is marked, and a finding says so.
#[derive(Clone, Debug)]
pub struct WaitTable {
    rows: Vec<WaitSpec>,
    left_out: Vec<(WaitMethod, String)>,
}

impl WaitTable {
    /// The table of these rows. `left_out`: methods that cannot be used here, with the reason, such
    /// as `io_uring_setup: not permitted (EPERM)`; a finding says why.
    pub fn new(rows: Vec<WaitSpec>, left_out: Vec<(WaitMethod, String)>) -> WaitTable {
        WaitTable { rows, left_out }
    }
}

impl Experiment for WaitTable {
    type Spec = WaitSpec;
    type Trial = WaitTrial;
    type Conclusion = ThrottleConclusion;

    fn next(&mut self, past: &[WaitTrial]) -> NextTrial<WaitSpec> {
        next_row(&self.rows, past.len())
    }

    fn conclude(&self, past: &[WaitTrial]) -> Concluded<ThrottleConclusion> {
        let left_out = self.left_out.iter().map(|(method, why)| not_permitted(*method, why));
        Concluded {
            verdict: Verdict::Valid,
            findings: wait_findings(past).into_iter().chain(left_out).collect(),
            conclusion: ThrottleConclusion {
                table: past.iter().filter_map(wait_row).collect(),
                hybrid_margin_ns: hybrid_margin(past).map(|m| m.0),
                margins: margin_rows(past),
                recommendations: recommendations(past),
                rates: Vec::new(),
                answer: conclusion::waits_in_words(past),
            },
        }
    }
}

#[cfg(test)]
mod rate_table_tests {
    use super::*;
    use crate::experiment::throttle::tests::holds;
    use knee_load::experiment::throttle::HoldMethod::{NaiveSleep, Throttle};
    use knee_load::time::Nanos;

    const OPERATION: Nanos = Nanos::from_micros(100);

    /// The conclusion from a naive loop at half the rate and a throttle whose lateness grows by
    /// `drift_ns` with each operation.
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

#[cfg(test)]
mod wait_table_tests {
    use super::*;
    use crate::experiment::throttle::tests::waits;
    use crate::experiment::{EndReason, conduct};
    use knee_load::experiment::throttle::WaitMethod::{Hybrid, IoUring, Sleep};
    use knee_load::time::Nanos;
    use std::convert::Infallible;
    use std::ops::ControlFlow;

    /// A machine whose sleeps end 60 µs late and whose hybrid waits 100 ns.
    fn machine(spec: &WaitSpec) -> WaitTrial {
        let late = if spec.method == Hybrid { 100 } else { 60_000 };
        let mut trial = waits(spec.method, spec.delay, &[late; 200]);
        trial.spec = spec.clone();
        if spec.method == Hybrid {
            trial.waits.margin = Some(Nanos(80_000));
            trial.waits.cpu = Nanos(200 * 20_000);
        }
        trial
    }

    fn rows() -> Vec<WaitSpec> {
        let methods = [Sleep, IoUring, Hybrid].into_iter();
        methods
            .flat_map(|m| [1_000, 100].map(|us| waits(m, Nanos::from_micros(us), &[]).spec))
            .collect()
    }

    #[test]
    fn every_row_is_run_in_order_and_concluded_from() {
        let run = |spec: &WaitSpec| Ok::<_, Infallible>(ControlFlow::Continue(machine(spec)));
        let done = conduct(&mut WaitTable::new(rows(), Vec::new()), run).expect("no error");
        assert_eq!(done.ended, EndReason::Converged);
        assert_eq!(done.verdict, Verdict::Valid);
        let specs: Vec<WaitSpec> = done.trials.iter().map(|t| t.spec.clone()).collect();
        assert_eq!(specs, rows());
        let conclusion = done.conclusion;
        assert_eq!(conclusion.table.len(), 6);
        assert_eq!(conclusion.hybrid_margin_ns, Some(80_000));
        assert_eq!(conclusion.margins.len(), 2);
        assert!(!conclusion.recommendations.is_empty());
        assert_eq!(
            conclusion.answer,
            "A sleep of 1 ms takes 1.06 ms here; hybrid hits 1 ms with a median error of 100 ns \
             for 2 % of a core."
        );
    }

    #[test]
    fn a_method_that_is_not_permitted_is_left_out_and_told() {
        let reason = "io_uring_setup(2): EPERM".to_owned();
        let mut table = WaitTable::new(Vec::new(), vec![(IoUring, reason)]);
        let run = |spec: &WaitSpec| Ok::<_, Infallible>(ControlFlow::Continue(machine(spec)));
        let done = conduct(&mut table, run).expect("no error");
        let finding = done.findings.iter().find(|f| f.code == "wait_not_permitted");
        let text = &finding.expect("a finding").text;
        assert_eq!(text, "`io_uring` was left out: io_uring_setup(2): EPERM");
    }

    #[test]
    fn nothing_measured_is_valid_and_says_so() {
        let conclusion = WaitTable::new(rows(), Vec::new()).conclude(&[]).conclusion;
        assert_eq!(conclusion.answer, "Nothing was measured.");
        assert_eq!(conclusion.hybrid_margin_ns, None);
    }
}
