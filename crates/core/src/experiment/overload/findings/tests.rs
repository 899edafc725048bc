//! Each finding with data that trigger it and the nearest that do not.

use super::overload_findings;
use crate::experiment::overload::analysis::{OverloadSetting, OverloadSummary};
use crate::experiment::overload::tests::trials::{
    DATAGRAMS, SETTING, clients, datagrams, heard, report, sclients,
};
use crate::finding::{Finding, Severity};
use crate::trial::report::{TrialReport, Verdict};
use crate::trial::validity::Clause;
use knee_load::measure::{Outcome, SynSource};
use knee_load::spec::{CloseKind, Level};
use knee_load::time::Nanos;

fn findings(trials: &[TrialReport], setting: &OverloadSetting) -> Vec<Finding> {
    let summary = OverloadSummary::of(trials, setting);
    let is_any_valid = trials.iter().any(|t| t.verdict == Verdict::Valid);
    let verdict = if is_any_valid { Verdict::Valid } else { Verdict::Invalid };
    overload_findings(trials, &summary, setting, verdict)
}

/// Whether the finding of this code is among those of these trials, and if so, that it is whole.
fn finds(code: &str, trials: &[TrialReport]) -> bool {
    finds_with(code, trials, &SETTING)
}

fn finds_with(code: &str, trials: &[TrialReport], setting: &OverloadSetting) -> bool {
    let found = findings(trials, setting);
    let finding = found.iter().find(|f| f.code == code);
    if let Some(finding) = finding {
        assert!(!finding.text.is_empty() && !finding.text.contains("unknown"), "{finding:?}");
        assert!(!finding.evidence.is_empty(), "{finding:?}");
        let is_info = finding.severity == Severity::Info;
        assert!(is_info || !finding.next_step.is_empty(), "{finding:?}");
    }
    finding.is_some()
}

fn with(mut trial: TrialReport, change: impl FnOnce(&mut TrialReport)) -> TrialReport {
    change(&mut trial);
    trial
}

/// One S-Client level of 10,000 attempts: `n` ended in this way, 1,300 were served and the rest
/// unanswered.
fn ending(outcome: Outcome, n: u64) -> TrialReport {
    let ends = [(Outcome::Served, 1_300), (Outcome::ConnectTimeout, 8_700 - n), (outcome, n)];
    report(Level::Descriptors(435), &ends)
}

#[test]
fn a_server_that_does_not_mind() {
    let trials = [clients(8, 1_300), sclients(64, 1_300), sclients(975, 1_290)];
    let codes: Vec<String> = findings(&trials, &SETTING).into_iter().map(|f| f.code).collect();
    assert_eq!(
        codes,
        ["accept_queue_full", "simple_clients_flatten", "throughput_flat_under_overload"]
    );
    let text = &findings(&trials, &SETTING)[1].text;
    assert!(text.contains("8 of them never asked for more than 130/s"), "{text}");
}

#[test]
fn simple_clients_flatten_where_others_offer_twice_as_much() {
    let code = "simple_clients_flatten";
    let simple = clients(8, 1_300);
    assert!(finds(code, &[simple.clone(), sclients(65, 1_300)]), "260/s");
    assert!(!finds(code, &[simple.clone(), sclients(64, 1_300)]), "258/s");
    assert!(!finds(code, &[simple]), "nobody else");
    let silent = report(Level::Clients(8), &[(Outcome::ResponseTimeout, 8)]);
    let unserved = report(Level::Descriptors(200), &[(Outcome::ConnectTimeout, 4_000)]);
    assert!(!finds(code, &[silent, unserved]), "nothing is served");
    assert!(!finds(code, &[clients(1, 1_300), sclients(500, 1_300)]), "one alone");
    let refused = [(Outcome::Served, 1_300), (Outcome::Refused, 140)];
    let storm = report(Level::Clients(8), &refused);
    assert!(!finds(code, &[storm, sclients(500, 1_300)]), "144/s of 130/s");
}

#[test]
fn throughput_falls_or_is_flat_only_with_certainty() {
    let (falls, flat) = ("throughput_falls_under_overload", "throughput_flat_under_overload");
    let at = |served| [sclients(64, 1_300), sclients(975, served)];
    assert!(finds(flat, &at(1_240)) && !finds(falls, &at(1_240)), "95.4 %");
    assert!(finds(falls, &at(1_230)) && !finds(flat, &at(1_230)), "94.6 %");
    let mut doubtful = at(1_230);
    doubtful[1].throughput_ci95_per_s = Some([110.0, 136.0]);
    assert!(!finds(falls, &doubtful) && !finds(flat, &doubtful), "intervals meet");
    doubtful[1].throughput_ci95_per_s = None;
    assert!(!finds(falls, &doubtful), "no interval");
    let invalid = [sclients(64, 1_300), with(sclients(975, 100), |t| t.verdict = Verdict::Invalid)];
    assert!(!finds(falls, &invalid), "the generator's doing");
    let ends = |closed| [(Outcome::Served, 130), (Outcome::Closed, closed)];
    let closing = |closed| report(Level::Descriptors(975), &ends(closed));
    assert!(finds(falls, &[clients(8, 1_300), closing(20_000)]), "accepted and closed");
    assert!(!finds(falls, &[clients(8, 1_300), closing(2)]), "it asked for no more");
    assert!(!finds(flat, &[sclients(64, 1_300)]), "less than twice is offered");
}

#[test]
fn syns_that_came_again() {
    let code = "syn_retransmissions";
    let again = |trial: TrialReport, n| {
        with(trial, |t| {
            t.as_http_mut().observed.as_mut().expect("captured").repeated_syns = n;
        })
    };
    assert!(finds(code, &[again(clients(256, 1_300), 14)]), "1.1 %");
    assert!(!finds(code, &[again(clients(256, 1_300), 13)]), "1.0 %");
    let severity = |trial| {
        let found = findings(&[trial], &SETTING);
        found.iter().find(|f| f.code == code).map(|f| f.severity)
    };
    assert_eq!(severity(again(clients(256, 1_300), 14)), Some(Severity::Info));
    assert_eq!(severity(again(sclients(64, 1_300), 99)), Some(Severity::Warning));
    // Counters do not tell them apart: what came beyond what was started came again.
    let counted = |trial: TrialReport, n| {
        with(trial, |t| {
            let observed = t.as_http_mut().observed.as_mut().expect("counted");
            (observed.source, observed.first_syns) = (SynSource::Counters, n);
        })
    };
    assert!(finds(code, &[counted(clients(256, 1_300), 1_314)]));
    assert!(!finds(code, &[counted(clients(256, 1_300), 1_312)]));
    assert!(!finds(code, &[counted(sclients(64, 1_300), 2_700)]), "not within T");
}

/// A server that accepts nothing, with 129 of 128 in its accept queue.
fn stuck(level: Level, ends: &[(Outcome, u64)], drops: i64) -> TrialReport {
    with(report(level, ends), |t| {
        let observed = t.as_http_mut().observed.as_mut().expect("captured");
        (observed.accept_queue_max, observed.accept_queue_limit) = (Some(129), Some(128));
        let drops = ("TcpExtListenDrops".to_owned(), drops);
        observed.kernel.extend([drops]);
    })
}

#[test]
fn accept_queue_finding_is_of_its_fullest_level() {
    let ends = [(Outcome::ResponseTimeout, 129), (Outcome::InFlight, 60)];
    let emptier = with(stuck(Level::Clients(189), &ends, 0), |t| {
        t.as_http_mut().observed.as_mut().expect("captured").accept_queue_max = Some(3);
    });
    let full = stuck(Level::Descriptors(50), &[(Outcome::ConnectTimeout, 900)], 0);
    let queue = |trials: &[TrialReport]| {
        let found = findings(trials, &SETTING);
        let silent = found.into_iter().find(|f| f.evidence.contains_key("attempts"));
        let silent = silent.expect("nothing is answered");
        (silent.code, silent.evidence["accept_queue_max"])
    };
    let never_accepts = "never_accepts".to_owned();
    assert_eq!(queue(&[emptier.clone(), full]), (never_accepts, 129.0));
    assert_eq!(queue(&[emptier]), ("never_answers".to_owned(), 3.0));
}

#[test]
fn nobody_reads_of_no_drops() {
    let text = |drops| {
        let ends = [(Outcome::ConnectTimeout, 1_000)];
        let trial = stuck(Level::Descriptors(50), &ends, drops);
        let found = findings(&[trial], &SETTING);
        let full = found.into_iter().find(|f| f.code == "accept_queue_full");
        full.expect("the queue is full").text
    };
    assert!(text(0).ends_with("was full (129 of 128)"), "{}", text(0));
    assert!(text(900).ends_with("dropped 900"), "{}", text(900));
    let nowhere = report(Level::Descriptors(50), &[(Outcome::ConnectTimeout, 1_000)]);
    let found = findings(&[nowhere], &SETTING);
    assert!(found[0].text.contains("dropped none"), "{}", found[0].text);
}

#[test]
fn that_t_is_too_long_is_foreseen_and_said_once() {
    let setting = OverloadSetting { patience: Nanos::from_secs(1), ..SETTING };
    // What is foreseen stands in the report too.
    assert!(!finds_with("patience_too_long", &[sclients(64, 1_300)], &setting));
}

#[test]
fn each_way_to_fail_by_its_share() {
    // Of 10,000 attempts, or of 1,300 established ones and those that failed.
    for (code, outcome, enough) in [
        ("ghosts", Outcome::Ghost, 11),
        ("refuses_connections", Outcome::Refused, 101),
        ("host_unreachable", Outcome::Unreachable, 101),
        ("established_late", Outcome::Late, 101),
        ("other_failures", Outcome::OtherError, 101),
        ("resets", Outcome::Reset, 14),
        ("accepted_and_closed", Outcome::Closed, 14),
        ("truncated_responses", Outcome::Truncated, 14),
        ("malformed_responses", Outcome::Malformed, 14),
        ("error_responses", Outcome::HTTP_5XX, 14),
        ("error_responses", Outcome::HTTP_4XX, 14),
        ("response_timeouts", Outcome::ResponseTimeout, 14),
    ] {
        assert!(finds(code, &[ending(outcome, enough)]), "{code}");
        assert!(!finds(code, &[ending(outcome, enough - 1)]), "{code}");
    }
}

#[test]
fn what_the_generators_host_ran_out_of() {
    for (code, outcome) in [
        ("ports_exhausted", Outcome::PortExhausted),
        ("descriptors_exhausted", Outcome::DescriptorExhausted),
    ] {
        assert!(finds(code, &[ending(outcome, 1)]), "{code}");
        assert!(!finds(code, &[ending(outcome, 0)]), "{code}");
    }
    let of = |close| {
        let setting = OverloadSetting { close: Some(close), ..SETTING };
        let found = findings(&[ending(Outcome::PortExhausted, 92)], &setting);
        let ports = found.iter().find(|f| f.code == "ports_exhausted");
        ports.expect("ports ran out").clone()
    };
    let fin = of(CloseKind::Fin);
    assert!(fin.next_step.contains("--source 127.0.0.2-127.0.0.20"), "{fin:?}");
    assert!(fin.next_step.contains("--close rst") && fin.next_step.contains("sysctl"), "{fin:?}");
    assert!(!of(CloseKind::Rst).next_step.contains("--close rst"));
}

#[test]
fn missing_starts_or_a_full_core_make_generator_the_limit() {
    let code = "generator_limits_syn_rate";
    let behind = with(sclients(975, 1_300), |t| {
        t.offered.achieved_per_s *= 0.989;
        t.verdict = Verdict::Invalid;
        t.invalid_because = vec!["the generator fell behind: of 20,800 it started 20,571".into()];
        t.invalid_clauses = vec![Clause::FellBehind];
    });
    assert!(finds(code, &[behind]));
    // Connects that are established late, as T is long, are replaced late: nobody is behind.
    let replaced_late = with(sclients(975, 1_300), |t| t.offered.achieved_per_s *= 0.8);
    assert!(!finds(code, &[replaced_late]));
    let busy = |percent| {
        with(sclients(975, 1_300), |t| {
            t.generator.busiest_worker_percent = percent;
            if percent > 95.0 {
                t.verdict = Verdict::Invalid;
            }
        })
    };
    assert!(finds(code, &[busy(95.1)]));
    assert!(!finds(code, &[busy(94.9)]));
    let trials = [sclients(64, 1_300), sclients(500, 1_300), busy(99.0)];
    let limit = OverloadSummary::of(&trials, &SETTING).generator_limit_per_s;
    assert_eq!(limit, Some(1_130.0), "500 descriptors and 130/s served");
    let text = &findings(&trials, &SETTING)[0].text;
    assert!(text.starts_with("from 975 descriptors on the generator is the limit"), "{text}");
    let left_out = "it kept up at 1,130/s; the conclusion leaves such levels out";
    assert!(text.ends_with(left_out), "{text}");
    let valid = with(busy(99.0), |t| t.verdict = Verdict::Valid);
    let text = &findings(&[sclients(64, 1_300), valid], &SETTING)[0].text;
    assert!(text.contains("it started 2,080/s, all that was due"), "{text}");
    assert!(!text.contains("leaves such levels out"), "it does not: {text}");
}

#[test]
fn what_else_the_generator_did_is_said_as_of_any_load() {
    let stolen = with(sclients(64, 1_300), |t| {
        t.verdict = Verdict::Invalid;
        t.invalid_because = vec!["the host gave 20 % to others".into()];
    });
    assert!(finds("generator_distorted", std::slice::from_ref(&stolen)));
    // The conclusion stands on the other: VALID, and nothing says that it is distorted.
    let both = [sclients(128, 1_300), stolen];
    assert!(!finds("generator_distorted", &both) && finds("levels_left_out", &both));
    let unanswered = [sclients(975, 1_300)];
    assert!(!finds("generator_distorted", &unanswered));
    assert!(!finds("errors", &unanswered), "time-outs are what S-Clients are made of");
    let drifts = with(sclients(64, 1_300), |t| t.stationary = false);
    assert!(finds("non_stationary", &[drifts]));
}

#[test]
fn a_capture_that_counts_something_else() {
    let code = "captures_disagree";
    // 20,800 are started.
    let captured = |n| {
        with(sclients(975, 1_300), |t| {
            t.as_http_mut().observed.as_mut().expect("captured").first_syns = n;
        })
    };
    assert!(finds(code, &[captured(20_779)]));
    assert!(!finds(code, &[captured(20_780)]), "a thousandth");
    assert!(finds(code, &[captured(20_821)]), "more than were started");
    let counted = with(captured(15_000), |t| {
        t.as_http_mut().observed.as_mut().expect("counted").source = SynSource::Counters;
    });
    assert!(!finds(code, &[counted]), "counters do not claim as much");
    let few = with(sclients(8, 100), |t| {
        t.as_http_mut().observed.as_mut().expect("captured").first_syns -= 10;
    });
    assert!(!finds(code, &[few]), "ends of the window");
}

#[test]
fn a_server_that_never_accepts_or_never_answers() {
    let ends = |served| {
        let ends = [
            (Outcome::ConnectTimeout, 1_000),
            (Outcome::ResponseTimeout, 129),
            (Outcome::Served, served),
        ];
        report(Level::Descriptors(50), &ends)
    };
    let queue = |most| {
        with(ends(0), |t| {
            let observed = t.as_http_mut().observed.as_mut().expect("captured");
            (observed.accept_queue_max, observed.accept_queue_limit) = (Some(most), Some(128));
        })
    };
    let codes = |trial: &TrialReport| -> Vec<String> {
        let found = findings(std::slice::from_ref(trial), &SETTING);
        found.into_iter().map(|f| f.code).collect()
    };
    assert_eq!(codes(&queue(129)), ["never_accepts", "accept_queue_full"]);
    assert_eq!(codes(&queue(2)), ["never_answers", "no_syn_ack"], "it accepts");
    // The queue was full before the window began: none was established in it.
    let full = with(queue(129), |t| {
        t.outcomes = report(t.level, &[(Outcome::ConnectTimeout, 1_000)]).outcomes;
    });
    assert_eq!(codes(&full), ["never_accepts", "accept_queue_full"]);
    let unseen = with(ends(0), |t| t.as_http_mut().observed = None);
    assert_eq!(codes(&unseen), ["never_answers", "connects_unanswered"]);
    assert!(!finds("never_answers", &[with(ends(1), |t| t.as_http_mut().observed = None)]));
    let refused = report(Level::Descriptors(50), &[(Outcome::Refused, 1_000)]);
    assert_eq!(codes(&refused), ["refuses_connections"]);
    let dropped = report(Level::Descriptors(50), &[(Outcome::ConnectTimeout, 1_000)]);
    assert_eq!(codes(&dropped), ["no_syn_ack"], "nothing else is known");
    let closed = report(Level::Descriptors(50), &[(Outcome::Closed, 1_000)]);
    assert_eq!(codes(&closed), ["accepted_and_closed"]);
}

#[test]
fn a_server_that_stops_is_told_with_its_time() {
    let mut tenths = [0; 100];
    tenths[..10].fill(13);
    let crashed = with(heard(sclients(64, 130), &tenths), |t| {
        t.outcomes.add_many(Outcome::Refused, 1_000);
        t.outcomes.add_many(Outcome::Reset, 64);
    });
    let live = || sclients(16, 1_300);
    let trials = [live(), crashed.clone()];
    let found = findings(&trials, &SETTING);
    let codes: Vec<&str> = found.iter().map(|f| f.code.as_str()).collect();
    // The refusals are its doing; that connects are not answered is what an overload is.
    assert_eq!(codes, ["server_crashed", "accept_queue_full"]);
    assert_eq!(
        found[0].text,
        "the server stopped 1 s into the level with 64 descriptors, after 130 responses, and \
         served nothing until the end; 1,000 of 2,344 unserved attempts in these levels were \
         refused"
    );
    let hung = with(crashed.clone(), |t| t.outcomes = sclients(64, 130).outcomes);
    assert!(finds("server_stopped", &[live(), hung]));
    assert!(finds("outage", &[live(), crashed, live()]));
    assert!(!finds("server_stopped", &[live(), live()]));
}

#[test]
fn cookies_are_told_by_the_servers_counters() {
    let sent = |name: &str, n| {
        with(sclients(64, 1_300), |t| {
            let observed = t.as_http_mut().observed.as_mut().expect("captured");
            observed.kernel.insert(name.to_owned(), n);
        })
    };
    assert!(finds("syncookies_active", &[sent("TcpExtSyncookiesSent", 1)]));
    assert!(finds("syncookies_active", &[sent("TcpExtTCPReqQFullDoCookies", 1)]));
    assert!(!finds("syncookies_active", &[sent("TcpExtSyncookiesSent", 0)]));
    assert!(!finds("syncookies_active", &[sent("TcpExtListenDrops", 9)]));
}

#[test]
fn an_automatic_choice_that_ended_early() {
    let wants = OverloadSetting { wanted_factor: Some(16.0), ..SETTING };
    let trials = |d| [clients(8, 1_300), sclients(64, 1_300), sclients(d, 1_300)];
    // 0.9 · 16 · 130/s are 1,872/s.
    assert!(finds_with("factor_not_reached", &trials(870), &wants), "1,870/s");
    assert!(!finds_with("factor_not_reached", &trials(872), &wants), "1,874/s");
    assert!(!finds("factor_not_reached", &trials(100)), "as it was asked");
    let interrupted = &trials(870)[..2];
    assert!(!finds_with("factor_not_reached", interrupted, &wants));
}

#[test]
fn no_level_beyond_the_capacity_is_told() {
    let light = report(Level::Descriptors(4), &[(Outcome::Served, 1_300)]);
    let simple = clients(8, 1_300);
    assert!(finds("not_overloaded", &[simple.clone(), light]), "130/s of 130/s");
    assert!(!finds("not_overloaded", &[simple.clone(), sclients(64, 1_300)]), "258/s");
    assert!(!finds("not_overloaded", &[simple]), "nobody else");
}

/// The words of what the accept queue held are those of the table.
#[test]
fn a_full_accept_queue_is_not_nearly_empty() {
    let silent = report(Level::Descriptors(64), &[(Outcome::ResponseTimeout, 3_000)]);
    let silent = with(silent, |t| {
        let observed = t.as_http_mut().observed.as_mut().expect("captured");
        observed.accept_queue_max = Some(129);
        observed.accept_queue_limit = Some(128);
    });
    let found = findings(&[silent], &SETTING);
    let finding = found.iter().find(|f| f.code == "never_answers").expect("it is silent");
    assert!(finding.text.contains("held at most 129 of 128"), "{finding:?}");
}

#[test]
fn datagrams_without_an_answer_have_a_reason() {
    // 2,000 have none.
    for (counters, code) in [
        ([1_000, 0], "receive_buffer_full"),
        ([999, 1], "answered_late"),
        ([0, 1_000], "answered_late"),
        ([999, 0], "datagrams_unanswered"),
    ] {
        let trial = datagrams(100, 1_300, counters);
        assert!(finds_with(code, std::slice::from_ref(&trial), &DATAGRAMS), "{counters:?}");
        for of_connects in ["accept_queue_full", "connects_unanswered", "response_timeouts"] {
            assert!(
                !finds_with(of_connects, std::slice::from_ref(&trial), &DATAGRAMS),
                "{of_connects}"
            );
        }
    }
    let silent = datagrams(100, 0, [0, 0]);
    assert!(finds_with("never_answers", &[silent], &DATAGRAMS));
}

/// One that answers too late serves nothing either.
#[test]
fn silence_over_datagrams_is_no_stop() {
    let served = || datagrams(16, 1_300, [0, 0]);
    let silent = datagrams(500, 0, [0, 9_000]);
    let codes = |trials: &[TrialReport]| -> Vec<String> {
        findings(trials, &DATAGRAMS).into_iter().map(|finding| finding.code).collect()
    };
    let late = codes(&[served(), silent.clone()]);
    assert!(!late.iter().any(|code| code == "server_stopped"), "{late:?}");
    assert!(late.iter().any(|code| code == "throughput_falls_under_overload"), "{late:?}");
    let refused = with(silent, |t| t.outcomes.add_many(Outcome::Refused, 9_000));
    let crashed = codes(&[served(), refused]);
    assert!(crashed.iter().any(|code| code == "server_crashed"), "{crashed:?}");
}
