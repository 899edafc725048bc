//! Sweeps that fail, are interrupted or are given nonsense.

use super::super::{Bound, Sweep};
use super::fake::{Fake, automatic, base, bounded, outcomes, rates, sweep};
use super::{codes, levels};
use crate::experiment::{EndReason, SingleRun, conduct};
use crate::trial::report::Verdict;
use knee_load::spec::{Level, TrialSpec};
use proptest::prelude::*;
use std::convert::Infallible;
use std::ops::ControlFlow;

#[test]
fn failures_are_named_from_the_level_on() {
    let mut fake = Fake::station(64, 0.01, 0.0);
    fake.failures = Box::new(|n| if n > 20 { 0.3 } else { 0.0 });
    let (conducted, conclusion) = sweep(&mut fake, automatic(1));
    let found = codes(&conducted.findings);
    assert!(found.contains(&"errors_rise"), "{found:?}");
    assert!(conclusion.answer.contains("operations fail (30 %"), "{}", conclusion.answer);
}

#[test]
fn where_everything_fails_the_sweep_ends_at_once() {
    let mut fake = Fake::station(6, 0.01, 0.0);
    fake.failures = Box::new(|_| 1.0);
    let (conducted, conclusion) = sweep(&mut fake, automatic(1));
    assert_eq!(levels(&conducted), [1.0]);
    assert!(matches!(conducted.ended, EndReason::Doomed(_)));
    assert_eq!(conducted.findings[0].code, "stopped_early");
    assert!(conclusion.answer.contains("failed"), "{}", conclusion.answer);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nonsense_ends_too(
        rows in prop::collection::vec((0.0f64..1e6, 0.0f64..1.0, any::<[bool; 4]>()), 1..15),
        seed in any::<u64>(),
        on_rates in any::<bool>(),
        bound_ms in 1u64..100,
    ) {
        let bound = format!("p99={bound_ms}ms").parse::<Bound>().expect("a bound");
        let spec = if on_rates { rates(seed) } else { automatic(seed) };
        let mut experiment = Sweep::new(bounded(spec, &[bound]));
        let mut fake = Fake::station(6, 0.01, 0.001);
        let mut trial = 0;
        let run = |spec: &TrialSpec| {
            let (throughput, failures, [valid, stationary, sure, dead]) = rows[trial % rows.len()];
            trial += 1;
            let mut report = fake.run(spec);
            report.throughput_per_s = (!dead).then_some(throughput);
            report.goodput_per_s = report.throughput_per_s.map(|x| (1.0 - failures) * x);
            report.outcomes = outcomes(100, failures);
            report.stationary = stationary;
            if !valid {
                report.verdict = Verdict::Invalid;
            }
            if !sure {
                report.throughput_ci95_per_s = None;
            }
            Ok::<_, Infallible>(ControlFlow::Continue(report))
        };
        let Ok(conducted) = conduct(&mut experiment, run);
        let most = if on_rates { 56 } else { 30 };
        prop_assert!((1..=most).contains(&conducted.trials.len()));
        for finding in &conducted.findings {
            prop_assert!(!finding.text.is_empty(), "{}", finding.code);
            prop_assert!(finding.evidence.values().all(|v| v.is_finite()));
        }
    }
}

#[test]
fn an_interrupted_sweep_concludes_from_what_it_has() {
    let mut fake = Fake::station(6, 0.01, 0.0);
    let run = |spec: &TrialSpec| {
        let report = fake.run(spec);
        Ok::<_, Infallible>(if spec.level == Level::Vusers(4) {
            ControlFlow::Break(Some(report))
        } else {
            ControlFlow::Continue(report)
        })
    };
    let mut experiment = Sweep::new(automatic(1));
    let Ok(conducted) = conduct(&mut experiment, run);
    assert_eq!(conducted.ended, EndReason::Interrupted);
    let levels = [Level::Vusers(1), Level::Vusers(2), Level::Vusers(4)];
    let seen: Vec<Level> = conducted.trials.iter().map(|t| t.level).collect();
    assert_eq!(seen, levels);
    let found = codes(&conducted.findings);
    assert!(found.contains(&"interrupted") && found.contains(&"not_saturated"), "{found:?}");
}

#[test]
fn an_error_of_the_engine_ends_everything() {
    let mut experiment = SingleRun::new(base(1));
    let failed = conduct(&mut experiment, |_| Err("no such host"));
    assert_eq!(failed, Err("no such host"));
}

#[test]
fn a_single_run_runs_once() {
    let mut fake = Fake::station(1, 0.01, 0.0);
    fake.failures = Box::new(|_| 0.25);
    let mut experiment = SingleRun::new(base(1));
    let run = |spec: &TrialSpec| Ok::<_, Infallible>(ControlFlow::Continue(fake.run(spec)));
    let Ok(conducted) = conduct(&mut experiment, run);
    assert_eq!(conducted.trials.len(), 1);
    assert_eq!(codes(&conducted.findings), ["errors"]);
    let conclusion = conducted.conclusion;
    assert_eq!((conclusion.throughput_per_s, conclusion.error_percent), (Some(100.0), 25.0));
}
