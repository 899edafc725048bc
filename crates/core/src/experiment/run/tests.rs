//! Repeats of a run in virtual time.

use super::SingleRun;
use crate::experiment::run::RunConclusion;
use crate::experiment::sweep::tests::fake::{Fake, base};
use crate::experiment::{Conducted, conduct};
use crate::trial::report::{TrialReport, Verdict};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Repeats of a run of one user at a target whose repeats have these throughputs.
fn repeated(per_s: &'static [f64], invalid: &[usize]) -> Conducted<TrialReport, RunConclusion> {
    let mut experiment = SingleRun::new(base(1)).repeated(per_s.len() as u32);
    let mut number = 0;
    let run = |spec: &_| {
        let mut report = Fake::new(move |_| per_s[number]).run(spec);
        if invalid.contains(&number) {
            report.verdict = Verdict::Invalid;
        }
        number += 1;
        Ok::<_, Infallible>(ControlFlow::Continue(report))
    };
    let Ok(conducted) = conduct(&mut experiment, run);
    conducted
}

#[test]
fn repeats_have_one_answer_with_intervals() {
    let conducted = repeated(&[100.0, 104.0, 98.0, 102.0, 101.0], &[]);
    assert_eq!(conducted.trials.len(), 5);
    let throughput = &conducted.conclusion.repeats[0];
    assert_eq!((throughput.metric.as_str(), throughput.repeats), ("throughput_per_s", 5));
    assert_eq!(conducted.conclusion.throughput_per_s, Some(throughput.value));
    let [lo, hi] = throughput.ci95;
    assert!(lo > 95.0 && lo < 100.0 && hi > 101.5 && hi < 107.0, "{throughput:?}");
    assert!((0.5..5.0).contains(&throughput.spread_percent));
}

#[test]
fn an_invalid_repeat_is_reported_and_not_counted() {
    let conducted = repeated(&[100.0, 40.0, 101.0, 99.0], &[1]);
    assert_eq!(conducted.trials.len(), 4);
    let throughput = &conducted.conclusion.repeats[0];
    assert_eq!(throughput.repeats, 3);
    assert!(throughput.ci95[0] > 90.0, "{throughput:?}");
}

#[test]
fn one_run_has_no_interval_between_repeats() {
    let conducted = repeated(&[100.0], &[]);
    assert_eq!(conducted.trials.len(), 1);
    assert_eq!(conducted.conclusion.repeats, []);
    assert_eq!(conducted.conclusion.throughput_per_s, Some(100.0));
}
