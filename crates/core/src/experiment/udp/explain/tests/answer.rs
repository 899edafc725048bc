//! The conclusion of an explanation.

use super::super::UdpExplain;
use super::processor::WAITS;
use super::{CROWD, Who, asked, explain, kept, losers, names, standing, who};
use crate::experiment::udp::findings::datagram_findings;
use crate::experiment::udp::tests::fake::{TrialBehaviour, run};
use crate::finding::Finding;
use crate::trial::report::TrialReport;
use knee_load::experiment::udp::UdpTrialSpec;
use knee_load::time::Nanos;

#[test]
fn no_loss_is_an_answer() {
    let conclusion = explain(losers(&[]));
    assert!(
        conclusion.answer.contains("no loss to explain on this machine. No change that was tried"),
        "{}",
        conclusion.answer
    );
    assert_eq!(names(&conclusion.supported), ["per_send_overhead"]);
    assert_eq!(names(&conclusion.ruled_out), ["sender_drops_or_blocks"]);
    let with_work = |spec: &UdpTrialSpec| TrialBehaviour {
        lost: if spec.setup.work.is_some() { 0.1 } else { 0.0 },
        ..TrialBehaviour::default()
    };
    let (_, conclusion) = run(&mut UdpExplain::new(asked(&[])), with_work);
    assert!(
        conclusion.answer.ends_with("lost here: work per datagram: as it is → 20 µs (10 % lost)."),
        "{}",
        conclusion.answer
    );
}

#[test]
fn findings_beside_an_explanation_lead_to_no_other() {
    let world = losers(CROWD);
    let mut experiment = UdpExplain::new(asked(&[0, 1]));
    let (conducted, _) = run(&mut experiment, |spec| world(who(spec)));
    let full = |findings: &[Finding]| {
        let found = findings.iter().find(|f| f.code == "receive_buffer_overflow");
        found.map(|f| f.next_step.contains("--explain"))
    };
    assert_eq!(full(&conducted.findings), Some(false));
    let reports: Vec<&TrialReport> = conducted.trials.iter().map(|t| &t.report).collect();
    assert_eq!(full(&datagram_findings(&reports, false)), Some(true));
}

#[test]
fn a_cause_is_named_once_without_cells_of_another_rate() {
    // With a processor of its own the service loses nothing, but a quarter is sent: that decides
    // nothing.
    let world = |who| TrialBehaviour {
        sent_per_s: if who == Who::Apart { 2_500.0 } else { 10_000.0 },
        pause: Nanos::from_millis(50),
        cpu: 0.03,
        ..kept(0.9, 2, &[Who::Sleeping])(who)
    };
    let conclusion = explain(world);
    assert_eq!(names(&conclusion.supported), ["per_send_overhead", "receive_buffer", WAITS]);
    let line = conclusion.supported.last().expect("the cause");
    assert_eq!(
        line.strip_prefix(WAITS),
        Some(
            ": the service waits behind clients for its processor after it woke, while datagrams \
             pile up: others had its processor for 90 % of the time as it was ready and used it \
             for 3 %; it was interrupted 2 times a second, and its longest pause was 50 ms; at \
             real-time priority: 0 % lost; with a processor of its own, the same times from a \
             single sender on another: 0 % lost; the same times from a single sender: 0 % lost"
        )
    );
    assert_eq!(standing(&conclusion, "receiver_pauses"), "ruled_out");
    let claim = "after it woke, while datagrams pile up";
    assert_eq!(conclusion.answer.matches(claim).count(), 1);
    // Where it may not have that priority, the answer says so.
    let mut without = UdpExplain::new(asked(&[0, 1]));
    let (_, conclusion) = run(&mut without, |spec| world(who(spec)));
    assert!(
        conclusion.supported.iter().any(|line| line.contains("real-time priority was not tried")),
        "{:#?}",
        conclusion.supported
    );
}
