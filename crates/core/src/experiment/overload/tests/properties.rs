//! What holds of the conclusion on any server: no sentence contradicts a figure, and a server that
//! fails is named with how.

use super::super::*;
use super::fake::{Fault, Server};
use super::{conducted, spec};
use crate::experiment::Conducted;
use crate::experiment::overload::report::CameBack;
use crate::finding::Severity;
use crate::report::contradictions::contradictions_of;
use crate::words::number;
use knee_load::law::Law;
use knee_load::measure::{Outcome, Outcomes};
use proptest::prelude::*;

/// Findings that say what the generator did to the measurement.
const DISTORTED: [&str; 2] = ["generator_distorted", "generator_limited"];

fn services() -> impl Strategy<Value = Law> {
    let mean = 2_500_000u64..30_000_000;
    (mean, 0..3).prop_map(|(mean, law)| match law {
        0 => Law::Fixed(Nanos(mean)),
        1 => Law::Exp(Nanos(mean)),
        _ => Law::LogNormal(Nanos(mean), 0.5),
    })
}

/// Times within a trial are those of its run: the warm-up takes the first second.
fn faults() -> impl Strategy<Value = Fault> {
    let at = || (0..5_usize, 0..3_500_000_000_u64);
    prop_oneof![
        2 => Just(Fault::None),
        2 => at().prop_map(|(trial, at)| Fault::Crash(trial, Nanos(at))),
        1 => at().prop_map(|(trial, at)| Fault::Hang((trial, Nanos(at)), None)),
        1 => (0..5_usize, 1_000_000_000_u64..1_500_000_000).prop_map(|(trial, at)| {
            let until = (trial, Nanos(at) + Nanos::from_millis(1_500));
            Fault::Hang((trial, Nanos(at)), Some(until))
        }),
        1 => (at(), at()).prop_map(|((trial, at), (later, until))| {
            Fault::Hang((trial, Nanos(at)), Some((trial + later + 1, Nanos(until))))
        }),
        1 => (1..6_usize, 1..4_u64).prop_map(|(trial, times)| Fault::Wears(trial, times)),
        1 => (0.05..1.0).prop_map(Fault::Closes),
        1 => (0.05..1.0).prop_map(Fault::Rejects),
        1 => (0.05..1.0).prop_map(Fault::Ignores),
        1 => (0.1..1.0).prop_map(Fault::Drops),
        1 => Just(Fault::Closes(1.0)),
        1 => Just(Fault::Rejects(1.0)),
        1 => Just(Fault::Ignores(1.0)),
        1 => Just(Fault::Drops(1.0)),
    ]
}

fn servers() -> impl Strategy<Value = Server> {
    (services(), 4..64_usize, 0..150_000_u64, faults(), any::<bool>()).prop_map(
        |(service, queue, per_syn, fault, is_seen)| Server {
            service,
            queue,
            per_syn: Nanos(per_syn),
            fault,
            is_seen,
        },
    )
}

/// Two numbers of simple clients and three of descriptors, 3 s each.
fn small(seed: u64, patience_ms: u64) -> OverloadSpec {
    let spec = spec();
    OverloadSpec {
        base: TrialSpec {
            warmup: Nanos::from_secs(1),
            duration: Nanos::from_secs(3),
            timeout: Nanos::from_secs(2),
            interval: Nanos::from_millis(100),
            connect_timeout: Nanos::from_millis(patience_ms),
            seed,
            ..spec.base
        },
        simple: vec![2, 16],
        descriptors: Descriptors::List(vec![40, 120, 400]),
        ..spec
    }
}

/// What a server with this fault is to be named by: one of these findings. Nothing where the fault
/// shows in too little.
fn names(server: Server, trials: &[TrialReport]) -> Vec<&'static str> {
    let mut all = Outcomes::default();
    trials.iter().for_each(|t| all.merge(&t.outcomes));
    let count = |outcome| all.count(outcome);
    // Where nobody looked, nothing more is known of connects that are not answered.
    let unseen: &[&'static str] =
        if server.is_seen { &[] } else { &["no_syn_ack", "connects_unanswered"] };
    let wanted = match server.fault {
        Fault::Crash(..) if count(Outcome::Refused) > 0 => {
            vec!["server_crashed", "refuses_connections"]
        }
        // Of a few responses it is not known that more were to come.
        Fault::Hang(..) if trials.iter().any(has_hung) && !(1..20).contains(&all.responses()) => {
            vec!["server_stopped", "outage", "never_accepts", "never_answers", "service_not_back"]
        }
        Fault::Closes(share) if share >= 0.05 => vec!["accepted_and_closed"],
        Fault::Rejects(share) if share >= 0.05 => vec!["error_responses"],
        Fault::Ignores(1.0) => vec!["never_answers", "never_accepts"],
        Fault::Ignores(share) if share >= 0.05 => vec!["response_timeouts"],
        Fault::Drops(share) if share >= 0.99 => vec!["no_syn_ack"],
        _ => return Vec::new(),
    };
    [&wanted, unseen].concat()
}

/// Whether nothing was served of a level that lasted for 3 s.
fn has_hung(trial: &TrialReport) -> bool {
    trial.outcomes.responses() == 0 && trial.attempted > 0
}

fn check(
    server: Server,
    conducted: &Conducted<TrialReport, OverloadConclusion>,
    c: &OverloadConclusion,
) {
    let (answer, trials) = (&c.answer, &conducted.trials);
    let codes: Vec<&str> = conducted.findings.iter().map(|f| f.code.as_str()).collect();
    let context = format!("{server:?}: {answer} {codes:?}");
    assert_eq!(contradictions_of(conducted), [""; 0], "{context}");
    let wanted = names(server, trials);
    let is_named = wanted.is_empty() || codes.iter().any(|c| wanted.contains(c));
    assert!(is_named, "none of {wanted:?}: {context}");
    if conducted.verdict == Verdict::Valid {
        assert!(!codes.iter().any(|c| DISTORTED.contains(c)), "{context}");
    }
    let served = |o: &Outcomes| o.count(Outcome::Served);
    let rates = c.simple.iter().map(|r| (r.row.served_per_s, served(&r.row.outcomes)));
    let rates =
        rates.chain(c.sclients.iter().map(|r| (r.row.served_per_s, served(&r.row.outcomes))));
    let most = rates.clone().map(|(per_s, _)| per_s).fold(0.0, f64::max);
    let total: u64 = rates.map(|(_, served)| served).sum();
    let says_none = answer.starts_with("None of ") || answer.starts_with("Nothing was served");
    let is_none = total == 0 && most == 0.0;
    assert_eq!(is_none, says_none, "{total} served: {context}");
    assert!(c.capacity_per_s <= most * (1.0 + 1e-9), "{context}");
    assert!((c.capacity_per_s > 0.0) == (most > 0.0), "{context}");
    let has_failed =
        codes.iter().any(|code| matches!(*code, "server_crashed" | "server_stopped" | "outage"));
    assert_eq!(answer.contains("The server stopped "), has_failed, "{context}");
    if answer.contains("whatever is offered") {
        assert!(codes.contains(&"throughput_flat_under_overload"), "{context}");
        let pressed = c.sclients.iter().filter(|r| r.past_saturation);
        pressed.for_each(|r| assert!(r.row.served_per_s >= 0.95 * c.capacity_per_s, "{context}"));
    }
    check_sentences(answer, &codes, c, &context);
    for finding in &conducted.findings {
        let needs_step = finding.severity != Severity::Info;
        assert!(!needs_step || !finding.next_step.is_empty(), "{finding:?}");
        assert!(!finding.text.contains("NaN"), "{finding:?}");
    }
}

/// What its sentences say against the rows.
fn check_sentences(answer: &str, codes: &[&str], c: &OverloadConclusion, context: &str) {
    let falls = codes.contains(&"throughput_falls_under_overload");
    assert_eq!(answer.contains(" under overload"), falls, "{context}");
    if let Some((_, claim)) = answer.split_once("never asked for more than ") {
        let first = c.simple.iter().map(|r| r.row.first_syn_per_s).fold(0.0, f64::max);
        assert!(claim.starts_with(&number(first)), "{first}: {context}");
    }
    if let Some((_, claim)) = answer.split_once("S-Clients offered up to ") {
        let first = c.sclients.iter().map(|r| r.row.first_syn_per_s).fold(0.0, f64::max);
        assert!(claim.starts_with(&number(first)), "{first}: {context}");
    }
    if answer.contains("SYN rate = served + D/T to within") {
        assert!(c.deviation_percent.is_some_and(|d| d <= 3.0), "{context}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_the_server_is_no_sentence_contradicts_a_figure(
        server in servers(), seed in any::<u64>(),
        patience_ms in prop_oneof![Just(500), 100..1_800u64],
    ) {
        let (conducted, conclusion) = conducted(small(seed, patience_ms), server);
        check(server, &conducted, &conclusion);
        // Time is virtual: its generator is never behind.
        let limited = conducted.findings.iter().any(|f| f.code == "generator_limits_syn_rate");
        prop_assert!(!limited, "{server:?}");
    }

    #[test]
    fn a_sound_server_is_never_said_to_fail(
        service in services(), queue in 4..20usize, seed in any::<u64>(), is_seen in any::<bool>(),
    ) {
        let server = Server { service, queue, is_seen, ..Server::REFERENCE };
        let (conducted, _) = conducted(small(seed, 500), server);
        let grave = conducted.findings.iter().find(|f| f.severity != Severity::Info
            && !["non_stationary", "throughput_falls_under_overload"].contains(&f.code.as_str()));
        prop_assert!(grave.is_none(), "{server:?}: {grave:?}");
    }
}

#[test]
fn a_half_that_was_cut_off_does_not_make_service_late() {
    // By chance 84 responses in the first half of the window and 43 in the second: 127 of 140.
    let (service, queue) = (Law::Exp(Nanos(22_159_682)), 4);
    let server = Server { service, queue, is_seen: false, ..Server::REFERENCE };
    let (conducted, conclusion) = conducted(small(12_595_073_421_735_184_945, 500), server);
    let came_back = conclusion.recovery.map(|recovery| recovery.came_back);
    assert_eq!(came_back, Some(CameBack::Yes), "{:?}", conducted.findings);
}
