//! One law, and several compared.

pub(super) mod fake;
mod properties;

use self::fake::{TrialBehaviour, run, sleeps, tried, yields};
use super::{AssessedUdpTrial, STARTS_MAX, UdpLaws};
use crate::experiment::udp::analysis::tests::{blank, schedule, spec};
use crate::experiment::{EndReason, Experiment};
use crate::trial::report::Verdict;
use knee_load::experiment::udp::{ClientWait, UdpTrialSpec};
use knee_load::spec::ArrivalLaw;
use knee_load::time::Nanos;

/// 20,000/s without loss, or 10,000/s with a loss of 2 %.
fn world(spec: &UdpTrialSpec) -> TrialBehaviour {
    match spec.wait {
        ClientWait::Yield => TrialBehaviour { sent_per_s: 20_000.0, ..TrialBehaviour::default() },
        _ => TrialBehaviour { lost: 0.02, ..TrialBehaviour::default() },
    }
}

#[test]
fn one_law_is_one_trial() {
    let (conducted, conclusion) = run(&mut UdpLaws::new(vec![sleeps(128, 200)], 1), world);
    assert_eq!((conducted.trials.len(), conducted.ended), (1, EndReason::Converged));
    let row = &conclusion.laws[0];
    assert_eq!((row.wait.as_str(), row.clients, row.trials), ("exp(200us)", 128, 1));
    assert_eq!((row.sent_per_s, row.dropped_per_s), (10_000.0, 200.0));
    assert_eq!((row.sent_ci95_per_s, row.loss_percent), (None, 2.0));
    assert_eq!(
        conclusion.answer,
        "exp(200us)*128 sent 10,000/s and lost 2 % of it. Of what is missing: 200 in the \
         receive buffer."
    );
    assert_eq!(conducted.findings[0].code, "receive_buffer_overflow");
    let nothing = UdpLaws::new(vec![yields(1)], 1).conclude(&[]);
    let conclusion = nothing.conclusion;
    assert_eq!(conclusion.answer, "Nothing was measured.");
}

#[test]
fn laws_alternate_and_are_pooled() {
    let mut compare = UdpLaws::new(vec![yields(64), sleeps(128, 200)], 3);
    let (conducted, conclusion) = run(&mut compare, world);
    let labels: Vec<&str> = conducted.trials.iter().map(|t| t.report.label.as_str()).collect();
    assert_eq!(labels, ["yield*64", "exp(200us)*128"].repeat(3));
    let [first, second] = conclusion.laws.as_slice() else {
        panic!("two laws");
    };
    assert_eq!((first.trials, first.sent_per_s, first.loss_percent), (3, 20_000.0, 0.0));
    assert_eq!((second.trials, second.loss_percent), (3, 2.0));
    assert_eq!(second.sent_ci95_per_s, Some([10_000.0, 10_000.0]));
    assert_eq!(
        conclusion.answer,
        "yield*64 sent 20,000/s and lost nothing. exp(200us)*128 sent 10,000/s and lost 2 % of \
         it. So exp(200us)*128 sent 0.5 times as much as yield*64. Of what is missing: 600 in the \
         receive buffer. Use --explain instead of --compare to find out why."
    );
    assert_eq!(conducted.findings.len(), 1);
    assert!(conducted.findings[0].text.starts_with("with exp(200us)*128: 600 datagrams (2 %)"));
    assert_eq!(conducted.verdict, Verdict::Valid);
    let seeds = |n| {
        let trials = &conducted.trials[..n];
        let mut compare = UdpLaws::new(vec![yields(64), sleeps(128, 200)], 3);
        match compare.next(trials) {
            crate::experiment::NextTrial::Run(spec) => spec.seed,
            _ => panic!("another trial"),
        }
    };
    assert_ne!(seeds(0), seeds(2), "each repeat draws anew");
    assert_eq!(seeds(3), seeds(3));
}

#[test]
fn a_comparison_cut_short_still_concludes() {
    let compare = UdpLaws::new(vec![yields(64), sleeps(128, 200)], 3);
    for made in 0..3 {
        let past: Vec<AssessedUdpTrial> =
            (0..made).map(|_| tried(&yields(64), TrialBehaviour::default())).collect();
        let concluded = compare.conclude(&past);
        assert_eq!(concluded.verdict, Verdict::Valid, "{made}");
    }
    let (nothing, _) = run(&mut UdpLaws::new(Vec::new(), 3), world);
    assert!(nothing.trials.is_empty());
}

#[test]
fn one_invalid_law_makes_the_comparison_invalid() {
    let promised = spec(1, schedule(10_000, ArrivalLaw::Constant), Nanos::from_secs(1));
    let behind = |spec: &UdpTrialSpec| {
        let mut tried = tried(spec, TrialBehaviour::default());
        if spec.wait != ClientWait::Yield {
            tried.report.verdict = Verdict::Invalid;
        }
        tried
    };
    let compare = UdpLaws::new(vec![yields(64), promised.clone()], 1);
    let past = [behind(&yields(64)), behind(&promised)];
    assert_eq!(compare.conclude(&past).verdict, Verdict::Invalid);
    assert_eq!(compare.conclude(&past[..1]).verdict, Verdict::Valid);
}

#[test]
fn moments_are_kept_up_to_a_limit() {
    let mut trial = blank(yields(1));
    let starts = |n: usize| (0..n as u64).map(|k| Nanos(k / 2)).collect::<Vec<_>>();
    trial.sent.starts = starts(100);
    let kept = AssessedUdpTrial::of(&trial);
    assert_eq!((kept.starts.len(), kept.starts_until), (100, Nanos::from_secs(1)));
    trial.sent.starts = starts(STARTS_MAX + 7);
    let kept = AssessedUdpTrial::of(&trial);
    let until = Nanos(STARTS_MAX as u64 / 2);
    assert_eq!((kept.starts.len(), kept.starts_until), (STARTS_MAX, until));
    assert!(kept.starts.iter().all(|&t| t < until));
}
