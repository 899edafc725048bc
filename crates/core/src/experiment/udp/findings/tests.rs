//! For each finding the smallest data that trigger it, and the nearest that do not.

use super::{codes, datagram_findings, kind_findings, losses};
use crate::experiment::udp::analysis::assess;
use crate::experiment::udp::analysis::tests::{blank, schedule, spec};
use crate::finding::{Finding, Severity};
use crate::trial::detail::{DatagramReport, LedgerReport, LossEvidence};
use crate::trial::report::TrialReport;
use crate::trial::validity::Clause;
use knee_load::experiment::udp::{ClientWait, DropPlace, UdpReceived};
use knee_load::spec::ArrivalLaw;
use knee_load::time::Nanos;

/// 10,000 datagrams in a second, all received.
fn sound() -> TrialReport {
    let wait = schedule(10_000, ArrivalLaw::Constant);
    let mut trial = blank(spec(1, wait, Nanos::from_secs(1)));
    (trial.sent.intended, trial.sent.sent) = (10_000, 10_000);
    trial.received = Some(UdpReceived { received: 10_000, ..UdpReceived::default() });
    trial.service.rcvbuf_bytes = 212_992;
    assess(&trial)
}

fn parts(t: &mut TrialReport) -> (&mut LedgerReport, &mut DatagramReport) {
    let udp = t.as_udp_mut();
    (&mut udp.ledger, &mut udp.datagrams)
}

fn of(change: impl Fn(&mut LedgerReport, &mut DatagramReport)) -> Vec<Finding> {
    let mut t = sound();
    let (ledger, datagrams) = parts(&mut t);
    change(ledger, datagrams);
    datagram_findings(&[&t], false)
}

/// The codes found in what `change` makes of a sound trial.
fn check(
    what: &str,
    change: impl Fn(&mut LedgerReport, &mut DatagramReport),
    expected: &[&str],
) -> Vec<Finding> {
    let found = of(change);
    let codes: Vec<&str> = found.iter().map(|f| f.code.as_str()).collect();
    assert_eq!(codes, expected, "{what}");
    found
}

fn lose(l: &mut LedgerReport, place: &str, count: u64, host_wide: bool) {
    l.lost.insert(place.to_owned(), count);
    l.received -= count;
    l.evidence.push(LossEvidence {
        place: place.to_owned(),
        counted: count,
        attributed: count,
        source: "test".to_owned(),
        host_wide,
        inferred: false,
    });
}

#[test]
fn a_sound_trial_has_no_finding() {
    check("sound", |_, _| (), &[]);
}

#[test]
fn a_full_buffer_is_a_place() {
    let found = check(
        "one lost there",
        |l, d| {
            lose(l, "receive_buffer", 1, false);
            d.buffer_datagrams = Some(277);
        },
        &["receive_buffer_overflow"],
    );
    assert_eq!(
        found[0].text,
        "1 datagram (0.01 %) was lost because the service's receive buffer was full; it holds \
         212,992 bytes, 277 datagrams, and the mean rate fills it in 27.7 ms; this is the place of \
         the loss, not its cause"
    );
    assert!(found[0].next_step.contains("--rcvbuf 425984"));
    assert_eq!(found[0].evidence["buffer_covers_ns"], 27.7e6);
    let elsewhere = check("elsewhere", |l, _| lose(l, "qdisc", 1, false), &["lost_in_qdisc"]);
    assert_eq!(
        elsewhere[0].text,
        "1 datagram (0.01 %) was lost in a queueing discipline: test counted 1"
    );
}

#[test]
fn a_pause_counts_where_it_fills_the_buffer() {
    let paused = |pause_ns| {
        move |l: &mut LedgerReport, d: &mut DatagramReport| {
            lose(l, "receive_buffer", 5, false);
            d.buffer_datagrams = Some(100);
            d.service_pause_ns_max = pause_ns;
        }
    };
    let both = &["receive_buffer_overflow", "service_paused"];
    check("11 ms", paused(10_000_001), both);
    check("10 ms", paused(10_000_000), &both[..1]);
    let harmless = |_: &mut LedgerReport, d: &mut DatagramReport| {
        d.buffer_datagrams = Some(100);
        d.service_pause_ns_max = 1_000_000_000;
    };
    check("nothing was lost", harmless, &[]);
}

#[test]
fn a_service_is_saturated_by_more_than_it_can_do() {
    let works = |ns| {
        move |_: &mut LedgerReport, d: &mut DatagramReport| {
            d.service_work_ns = Some(ns);
        }
    };
    let found = check("99 %", works(100_001), &["service_saturated"]);
    assert!(found[0].next_step.contains("--rate 7999"), "{:?}", found[0]);
    check("exactly", works(100_000), &[]);
}

#[test]
fn send_errors_have_names_and_remedies() {
    for (name, remedy) in [
        ("ECONNREFUSED", "nobody listens"),
        ("EMSGSIZE", "--size"),
        ("ENETUNREACH", "routes"),
        ("EPERM", "firewall"),
        ("ENOBUFS", "queues are full"),
        ("E999", "udp(7)"),
    ] {
        let refused = |l: &mut LedgerReport, d: &mut DatagramReport| {
            (l.send_errors, l.received) = (30, 9_970);
            d.send_errors = [("EAGAIN".to_owned(), 9), (name.to_owned(), 21)].into();
        };
        let found = check(name, refused, &["send_errors"]);
        assert!(found[0].text.contains(&format!("{name} 21 and EAGAIN 9")));
        assert!(found[0].next_step.contains(remedy), "{name}");
    }
    let none = |_: &mut LedgerReport, d: &mut DatagramReport| {
        d.send_errors = [("ENOBUFS".to_owned(), 0)].into();
    };
    check("none", none, &[]);
}

#[test]
fn senders_are_limited_by_what_they_never_came_to() {
    let behind = |n| {
        move |l: &mut LedgerReport, _: &mut DatagramReport| {
            (l.not_attempted, l.received) = (n, 10_000 - n);
        }
    };
    check("11 of 10,000", behind(11), &["sender_limited"]);
    check("10 of 10,000", behind(10), &[]);
    let late = |ns| {
        let mut t = sound();
        t.offered.pacing_error_ns.p50 = Some(ns);
        kind_findings(&[&t], false).len()
    };
    assert_eq!((late(1_000_001), late(1_000_000)), (1, 0));
    let mut t = sound();
    parts(&mut t).0.not_attempted = 5_000;
    t.offered.asked_per_s = None;
    assert!(kind_findings(&[&t], false).is_empty(), "without a schedule");
    // A reason that comes twice is printed once.
    t.offered.asked_per_s = Some(10_000.0);
    t.invalid_because = vec!["the generator fell behind: …".into()];
    t.invalid_clauses = vec![Clause::FellBehind];
    assert_eq!(datagram_findings(&[&t], false).len(), 1);
    t.invalid_because.push("gaps between starts vary".into());
    t.invalid_clauses.push(Clause::GapsVary);
    let found = datagram_findings(&[&t], false);
    assert_eq!(found[0].code, "generator_distorted");
    assert!(found[0].text.ends_with("the load: gaps between starts vary"));
}

#[test]
fn what_is_not_explained_is_said() {
    let rest = |n| move |l: &mut LedgerReport, _: &mut DatagramReport| l.unexplained = n;
    let code = &["datagrams_unexplained"];
    assert_eq!(check("1 missing", rest(1), code)[0].severity, Severity::Warning);
    let more = check("1 too many", rest(-1), code);
    assert_eq!(more[0].severity, Severity::Error);
    assert!(more[0].text.starts_with("1 datagram more was received"));
    check("none", rest(0), &[]);
}

#[test]
fn order_and_number() {
    check("one late", |_, d| d.reordered = 1, &["reordering"]);
    check("one again", |_, d| d.duplicates = 1, &["duplicates"]);
}

#[test]
fn counters_of_the_host_are_told_as_such() {
    let lost = |host_wide| {
        move |l: &mut LedgerReport, _: &mut DatagramReport| {
            lose(l, "no_socket", 7, host_wide);
        }
    };
    let found = check("of the host", lost(true), &["no_socket", "host_wide_evidence"]);
    assert!(
        found[1].text.starts_with(
            "counters of the whole host show 7 datagrams lost where no socket listens;"
        )
    );
    check("of the socket", lost(false), &["no_socket"]);
}

#[test]
fn a_vanished_service_is_an_error() {
    let mut trial = blank(spec(1, ClientWait::Yield, Nanos::from_secs(1)));
    (trial.sent.intended, trial.sent.sent, trial.received) = (50, 50, None);
    trial.service_lost = Some("it closed the connection".into());
    let found = datagram_findings(&[&assess(&trial)], false);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].severity, Severity::Error);
    assert!(found[0].text.contains("(it closed the connection); what became of 50 datagrams"));
}

/// 10,000 datagrams of clients of this kind, `count` of them out of order.
fn reordered(label: &str, count: u64) -> TrialReport {
    let mut t = sound();
    t.label = label.to_owned();
    parts(&mut t).1.reordered = count;
    t
}

#[test]
fn each_kind_of_clients_has_findings_with_its_own_figures() {
    let trials = [("a", 1), ("b", 9), ("a", 2), ("c", 0)].map(|(label, n)| reordered(label, n));
    let found = datagram_findings(&trials.each_ref(), false);
    let said: Vec<(&str, f64, f64)> =
        found.iter().map(|f| (&f.text[..18], f.evidence["count"], f.evidence["percent"])).collect();
    // Of the two trials of a together.
    let expected = [("with a: 3 datagram", 3.0, 0.015), ("with b: 9 datagram", 9.0, 0.09)];
    assert_eq!(said, expected);
    // Trials of one kind alone need no name.
    let alone = [("a", 1), ("a", 2)].map(|(label, n)| reordered(label, n));
    let found = datagram_findings(&alone.each_ref(), false);
    assert!(found[0].text.starts_with("3 datagrams ("));
}

#[test]
fn a_wrong_count_is_not_hidden_by_other_trials() {
    let trials = [-3, 5].map(|unexplained| {
        let mut t = sound();
        parts(&mut t).0.unexplained = unexplained;
        t
    });
    let found = datagram_findings(&trials.each_ref(), false);
    assert_eq!(found[0].evidence["unexplained"], -3.0);
    assert_eq!(found[0].severity, Severity::Error);
}

#[test]
fn a_place_that_nobody_counted_is_told_as_inferred() {
    let mut trial = blank(spec(1, ClientWait::Yield, Nanos::from_secs(1)));
    (trial.sent.intended, trial.sent.sent) = (100, 100);
    trial.received = Some(UdpReceived { received: 90, ..UdpReceived::default() });
    trial.service.kernel = "6".into();
    trial.not_read = vec!["rules of nft".into()];
    (trial.service.same_host, trial.service.same_namespace) = (false, false);
    let said = |trial: &knee_load::experiment::udp::UdpTrial| {
        let found = datagram_findings(&[&assess(trial)], false);
        assert_eq!(found.len(), 1, "{found:?}");
        (found[0].code.clone(), found[0].text.clone())
    };
    let (code, text) = said(&trial);
    assert_eq!(code, "lost_between_hosts");
    assert_eq!(
        text,
        "10 datagrams (10 %) were lost between the hosts: this is inferred, because no counter of \
         either host moved for them; not read on the service's host: rules of nft"
    );
    // Another namespace of the same machine is another host, in all but its kernel.
    trial.service.same_host = true;
    let (code, text) = said(&trial);
    assert_eq!(code, "lost_between_hosts");
    assert!(text.contains("either network namespace"), "{text}");
    // Within one there is nothing between them.
    trial.service.same_namespace = true;
    assert_eq!(said(&trial).0, "datagrams_unexplained");
    // What a counter tells is no inference.
    trial.drops = vec![knee_load::experiment::udp::DropCounter {
        whole_kernel: false,
        place: DropPlace::Firewall,
        count: 10,
        source: "nft ip filter INPUT".into(),
        host_wide: false,
        at_service: true,
    }];
    let (code, text) = said(&trial);
    assert_eq!(code, "dropped_by_firewall");
    assert_eq!(text, "10 datagrams (10 %) were lost in a firewall: nft ip filter INPUT counted 10");
}

#[test]
fn every_finding_says_what_to_do() {
    let troubled = {
        let mut t = sound();
        let (l, d) = parts(&mut t);
        lose(l, "receive_buffer", 5, true);
        lose(l, "firewall", 5, false);
        (l.unexplained, l.send_errors, l.not_attempted) = (4, 3, 2_000);
        l.discarded = 2;
        (d.reordered, d.duplicates, d.service_pause_ns_max) = (1, 1, u64::MAX);
        d.buffer_datagrams = Some(1);
        d.service_work_ns = Some(1_000_000);
        d.send_errors = [("EPERM".to_owned(), 3)].into();
        d.service_lost = Some("gone".into());
        t
    };
    let found = kind_findings(&[&troubled], false);
    assert_eq!(found.len(), 12);
    for finding in found {
        assert!(codes().iter().any(|code| finding.is(*code)), "{finding:?}");
        assert!(!finding.text.is_empty() && !finding.next_step.is_empty());
        assert!(!finding.evidence.is_empty(), "{}", finding.code);
    }
}

#[test]
fn each_code_is_listed_once() {
    let names: Vec<&str> = codes().iter().map(|code| code.name).collect();
    let of_places = DropPlace::ALL.into_iter().filter_map(losses::code_and_next_step);
    assert!(of_places.clone().all(|(code, _)| names.contains(&code.name)));
    assert_eq!(of_places.count(), 13);
    let distinct: std::collections::BTreeSet<&&str> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
}
