//! For each finding the smallest data that trigger it, and the nearest that do not.

use super::{FindingContext, findings_at_levels, trial_findings};
use crate::experiment::sweep::tests::fake::{base, blank, outcomes};
use crate::trial::figure::{RateCertainty, TimeRange, TimesReport};
use crate::trial::messages::{MessagesReport, SentReport};
use crate::trial::offered::LittlesLaw;
use crate::trial::report::{TrialReport, Verdict};
use crate::trial::sessions::{ProgramsReport, ScriptReport, SessionReport, SessionsReport};
use crate::trial::times::QuantilesReport;
use crate::trial::traffic::ProtocolReport;
use crate::trial::validity::Clause;
use crate::trial::waiting::WaitReport;
use knee_load::measure::{Interval, Outcome, Stage, StatusCodes};
use knee_load::spec::{Level, WaitPolicy};

/// A sound trial of 10 users: 1,000/s at 10 ms.
fn sound() -> TrialReport {
    let mut t = blank(Level::Vusers(10), &base(1));
    t.attempted = 4_000;
    t.completed = 4_000;
    t.throughput_per_s = Some(1_000.0);
    t.outcomes = outcomes(4_000, 0.0);
    t.response_time_ns.count = 4_000;
    t.response_time_ns.mean = Some(10_000_000);
    t.response_time_ns.p50 = Some(10_000_000);
    t
}

/// An open loop of ten intervals with these operations started and completed in each.
fn open(started: u64, completed: [u64; 10]) -> TrialReport {
    let mut t = sound();
    t.level = Level::RatePerS(started as f64);
    t.duration_ns = 10_000_000_000;
    t.offered.asked_per_s = Some(started as f64);
    t.attempted = 10 * started;
    t.outcomes = outcomes(10 * started, 0.0);
    t.intervals = (0u64..)
        .zip(completed)
        .map(|(i, completed)| Interval {
            start_ns: i * 1_000_000_000,
            end_ns: (i + 1) * 1_000_000_000,
            attempted: started,
            completed,
            max_ns: 20_000_000,
            ..Interval::default()
        })
        .collect();
    t
}

fn trial_codes(t: &TrialReport) -> Vec<String> {
    trial_findings(t).into_iter().map(|f| f.code).collect()
}

#[test]
fn an_outage_shows_although_its_failures_are_few() {
    let with = |failures| {
        let mut t = open(1_000, [1_000, 1_000, 1_000, 0, 0, 1_000, 1_000, 1_000, 1_000, 1_000]);
        (t.intervals[3].errors, t.intervals[4].errors) = (failures, 2);
        t.outcomes = outcomes(10_000, 0.0);
        trial_findings(&t)
    };
    let found = with(3);
    let outage = found.iter().find(|f| f.code == "outage").expect("one");
    let times = ["from_ns", "lasted_ns"].map(|name| outage.evidence[name]);
    assert_eq!(times, [3e9, 2e9]);
    assert!(outage.text.contains("from 3 s into the measurement until 5 s"));
    assert!(with(2).iter().all(|f| f.code != "outage"), "4 failures");
}

/// `expected` is found in what `change` makes of a sound trial.
fn check(what: &str, change: impl Fn(&mut TrialReport), expected: &[&str]) {
    let mut t = sound();
    change(&mut t);
    assert_eq!(trial_codes(&t), expected, "{what}");
}

fn law(x_times_r: f64) -> Option<LittlesLaw> {
    let deviation_percent = 100.0 * (x_times_r / 10.0 - 1.0);
    Some(LittlesLaw { n: 10.0, x_times_r, deviation_percent, ok: deviation_percent.abs() <= 2.5 })
}

#[test]
fn a_sound_trial_has_no_finding() {
    check("sound", |_| (), &[]);
    assert_eq!(trial_codes(&open(1_000, [1_000; 10])), [""; 0]);
}

#[test]
fn messages_that_leave_late_are_told_of() {
    let times = |p99| TimesReport { p99: Some(p99), ..TimesReport::default() };
    let late = |t: &mut TrialReport, late, answer| {
        let sent = SentReport { count: 1_000, per_s: 100.0, late_ns: times(late) };
        let messages = MessagesReport {
            sent: Some(sent),
            answer_ns: Some(times(answer)),
            ..MessagesReport::default()
        };
        t.as_http_mut().messages = Some(messages);
    };
    check("a fifth and more", |t| late(t, 201, 1_000), &["messages_late"]);
    check("a fifth", |t| late(t, 200, 1_000), &[]);
}

#[test]
fn a_generator_that_polled_says_so() {
    let polled = |t: &mut TrialReport, polling_percent| {
        t.generator.wait = Some(WaitReport {
            policy: WaitPolicy::Auto,
            polling_percent,
            realtime_percent: 0.0,
            spun_percent: 60.0,
            changes: Vec::new(),
            lateness_ns: Default::default(),
        });
    };
    check("polled all the time", |t| polled(t, 80.0), &["generator_polled"]);
    check("slept, then polled", |t| polled(t, 0.0), &[]);
}

#[test]
fn a_generator_that_is_woken_for_each_response_is_told_of() {
    let woken = |t: &mut TrialReport, users: u32, per_s: f64, of: f64| {
        t.level = Level::Vusers(users);
        t.throughput_per_s = Some(of);
        t.generator.woken_by_target_per_s = Some(per_s);
    };
    for (users, per_s, of, found, what) in [
        (16, 5_000.0, 50_000.0, true, "once in ten responses"),
        (15, 5_000.0, 50_000.0, false, "too few users to keep it busy"),
        (16, 4_999.0, 40_000.0, false, "seldom"),
        (16, 5_000.0, 50_100.0, false, "for few of the responses"),
    ] {
        let expected: &[&str] = if found { &["generator_woken"] } else { &[] };
        check(what, |t| woken(t, users, per_s, of), expected);
    }
    let elsewhere = |t: &mut TrialReport| {
        woken(t, 16, 5_000.0, 50_000.0);
        t.generator.woken_by_target_per_s = None;
    };
    check("the target is elsewhere", elsewhere, &[]);
}

#[test]
fn trial_findings_at_their_thresholds() {
    check("not stationary", |t| t.stationary = false, &["non_stationary"]);
    let ramp = |t: &mut TrialReport| (t.stationary, t.offered.changes_by_plan) = (false, true);
    check("the load changes by plan", ramp, &[]);
    let nothing = |t: &mut TrialReport| (t.stationary, t.completed) = (false, 0);
    check("nothing completed is another matter", nothing, &[]);

    let off = &["littles_law_violation"];
    check("Little's law 2.6 % off", |t| t.as_http_mut().littles_law = law(10.26), off);
    let few = |t: &mut TrialReport| (t.as_http_mut().littles_law, t.completed) = (law(10.26), 199);
    check("2.6 % off, but fewer than 20 operations per user", few, &[]);
    check("2.6 % off, below", |t| t.as_http_mut().littles_law = law(9.74), off);
    check("2.4 % off", |t| t.as_http_mut().littles_law = law(10.24), &[]);

    let busy = |t: &mut TrialReport, all, spin| {
        t.generator.busiest_worker_percent = all;
        t.generator.busiest_worker_spin_percent = spin;
    };
    let late = |t: &mut TrialReport| {
        let range = TimeRange {
            at_least: 1,
            at_most: Some(1_000_000),
            because: "the generator was late".into(),
        };
        t.response_time_ns.ranges.insert("p99".into(), range);
    };
    check("a range of the p99", late, &["figures_undetermined"]);
    let limited = |t: &mut TrialReport| t.throughput_is = RateCertainty::AtLeast;
    check("a bound of throughput", limited, &["generator_limited"]);
    let stalled = |t: &mut TrialReport, ns| t.offered.stall_ns_max = ns;
    check("100 ms in which users did nothing", |t| stalled(t, 100_000_000), &["generator_stalled"]);
    check("99 ms", |t| stalled(t, 99_000_000), &[]);
    let invalid = |t: &mut TrialReport| {
        stalled(t, 900_000_000);
        t.verdict = Verdict::Invalid;
        t.invalid_clauses = vec![Clause::Stalled];
        t.invalid_because = vec!["the generator stalled".into()];
    };
    check("a stall that makes it INVALID", invalid, &["generator_distorted"]);
    let late_start = |t: &mut TrialReport, ns| {
        t.level = Level::RatePerS(1_000.0);
        t.offered.pacing_error_ns.max = Some(ns);
    };
    check("an operation late by 100 ms", |t| late_start(t, 100_000_000), &["generator_stalled"]);
    check(
        "a stall in which nothing was due",
        |t| {
            late_start(t, 90_000_000);
            stalled(t, 100_000_000);
        },
        &[],
    );
    check("a busy core that nobody waits for", |t| busy(t, 96.0, 0.0), &[]);

    check("invalid", |t| t.verdict = Verdict::Invalid, &["generator_distorted"]);
    check("1.1 % failed", |t| t.outcomes = outcomes(4_000, 0.011), &["errors"]);
    check("none failed", |t| t.outcomes = outcomes(4_000, 0.0), &[]);

    // 1,000/s of 20 users at 10 ms: they pause 10 ms.
    let pause = |t: &mut TrialReport, overshoot_ns| {
        t.as_http_mut().littles_law = law(10.0);
        t.as_http_mut().littles_law.as_mut().expect("a law").x_times_r = 20.0;
        t.offered.pacing_error_ns.p50 = Some(overshoot_ns);
    };
    check("pauses 6 % too long", |t| pause(t, 600_000), &["think_deviation"]);
    check("pauses 4 % too long", |t| pause(t, 400_000), &[]);
    let no_pause = |t: &mut TrialReport| {
        t.as_http_mut().littles_law = law(10.0);
        t.offered.pacing_error_ns.p50 = Some(600_000);
    };
    check("no pause at all", no_pause, &[]);
}

fn waits(p50_ns: u64) -> Option<QuantilesReport> {
    Some(QuantilesReport { p50: Some(p50_ns), ..QuantilesReport::default() })
}

#[test]
fn connections_that_are_too_few_are_told_from_a_slow_target() {
    let limit = ["connections_limit"];
    // 4 connections carry 13.3/s of what takes 300 ms.
    let with = |change: &dyn Fn(&mut TrialReport)| {
        let mut t = open(1_000, [1_000; 10]);
        let http = t.as_http_mut();
        (http.connections_max, http.traffic.connections_limit) = (4, Some(4));
        http.traffic.unsent = 9_867;
        (t.service_time_ns.count, t.service_time_ns.mean) = (133, Some(300_000_000));
        t.offered.connection_wait_ns = waits(699_000_000);
        change(&mut t);
        t
    };
    assert_eq!(trial_codes(&with(&|_| ())), limit);
    let few = |unsent, wait_ns| {
        with(&|t: &mut TrialReport| {
            t.as_http_mut().traffic.unsent = unsent;
            t.offered.connection_wait_ns = waits(wait_ns);
        })
    };
    assert_eq!(trial_codes(&few(11, 0)), limit);
    assert!(trial_codes(&few(10, 0)).is_empty());
    assert_eq!(trial_codes(&few(0, 300_000_001)), limit);
    assert!(trial_codes(&few(0, 300_000_000)).is_empty());
    let spare = with(&|t| t.as_http_mut().traffic.connections_limit = Some(5));
    assert!(trial_codes(&spare).is_empty(), "one more might be open");
    let closed = with(&|t| t.as_http_mut().traffic.connections_limit = None);
    assert!(trial_codes(&closed).is_empty());
    let finding = trial_findings(&with(&|_| ())).remove(0);
    assert!(finding.text.contains("--connections 4"), "{}", finding.text);
    assert!(finding.text.contains("13.33/s of the 1,000/s"), "{}", finding.text);
    assert!(finding.next_step.contains("--connections 360"), "{}", finding.next_step);
    assert_eq!(finding.evidence["connections_needed"], 300.0);
}

#[test]
fn ids_of_dns_that_ran_out_are_told() {
    check("once", |t| t.as_http_mut().traffic.ids_exhausted = 1, &["ids_exhausted"]);
    check("never", |t| t.as_http_mut().traffic.ids_exhausted = 0, &[]);
    // Where ids were wanting, more connections than there are ids for are no remedy by themselves.
    check(
        "queries timed out unsent",
        |t| {
            let http = t.as_http_mut();
            (http.connections_max, http.traffic.connections_limit) = (4, Some(4));
            (http.traffic.unsent, http.traffic.ids_exhausted) = (9_867, 1);
        },
        &["ids_exhausted"],
    );
}

#[test]
fn bytes_that_nobody_asked_for_are_told() {
    check("one", |t| t.as_http_mut().traffic.surplus_responses = 1, &["surplus_bytes"]);
    check("none", |t| t.as_http_mut().traffic.surplus_responses = 0, &[]);
}

#[test]
fn messages_of_no_operation_are_told_of_websocket_alone() {
    let unmatched = |application: &'static str, n: u64| {
        move |t: &mut TrialReport| {
            let http = t.as_http_mut();
            http.traffic.unmatched_answers = n;
            let application = Some(application.to_owned());
            http.protocol = Some(ProtocolReport { application, ..ProtocolReport::default() });
        }
    };
    check("some", unmatched("WebSocket", 3), &["unmatched_messages"]);
    check("none", unmatched("WebSocket", 0), &[]);
    check("late answers of DNS", unmatched("DNS", 3), &[]);
}

#[test]
fn redirections_are_a_finding_where_they_are_most_responses() {
    let statuses = |counts: &'static [(u16, u64)]| {
        move |t: &mut TrialReport| {
            let codes = &mut t.as_http_mut().traffic.status_codes;
            *codes = StatusCodes::default();
            counts.iter().for_each(|&(status, n)| (0..n).for_each(|_| codes.add(status)));
        }
    };
    check("all", statuses(&[(301, 10)]), &["redirects"]);
    check("most", statuses(&[(200, 4), (302, 3), (308, 3)]), &["redirects"]);
    check("half", statuses(&[(200, 5), (302, 5)]), &[]);
    check("not modified", statuses(&[(304, 10)]), &[]);
    let followed = |t: &mut TrialReport| {
        statuses(&[(301, 10)])(t);
        t.as_http_mut().sessions = Some(SessionsReport::default());
    };
    check("followed", followed, &[]);
}

#[test]
fn delayed_acknowledgements_differ_from_slow_responses() {
    let receiving = |p50_ms: u64, bytes: u64| {
        move |t: &mut TrialReport| {
            let times =
                QuantilesReport { p50: Some(p50_ms * 1_000_000), ..QuantilesReport::default() };
            t.as_http_mut().timing.stages_ns.insert(Stage::Receive, times);
            t.bytes_received = t.completed * bytes;
        }
    };
    let found = &["delayed_ack"];
    check("as long as Linux waits", receiving(40, 300), found);
    check("the timer was late", receiving(44, 300), found);
    check("a server that streams faster", receiving(30, 300), &[]);
    check("or more slowly", receiving(60, 300), &[]);
    check("a long response", receiving(44, 1_000_000), &[]);
    let first_byte = |t: &mut TrialReport| {
        receiving(40, 300)(t);
        let stages = &mut t.as_http_mut().timing.stages_ns;
        let times = stages.remove(&Stage::Receive).unwrap();
        stages.insert(Stage::FirstByte, times);
    };
    check("a server that takes 40 ms", first_byte, &[]);
}

#[test]
fn a_queue_that_grows_is_told_from_one_that_stands() {
    let grows = ["target_queue_grows"];
    assert_eq!(trial_codes(&open(1_000, [980; 10])), grows);
    assert_eq!(trial_codes(&open(1_000, [995; 10])), [""; 0], "half a per cent is noise");
    let mut late = [1_000; 10];
    late[9] = 800;
    assert_eq!(trial_codes(&open(1_000, late)), [""; 0], "only at the end");
    let mut soon = [1_000; 10];
    soon[0] = 800;
    assert_eq!(trial_codes(&open(1_000, soon)), [""; 0], "only at the beginning");
    let mut drifting = open(1_000, [900; 10]);
    drifting.stationary = false;
    assert_eq!(trial_codes(&drifting), grows, "the drift is the queue's");
}

#[test]
fn a_stall_of_the_server_is_told_from_one_of_the_generator() {
    let mut counts = [1_000; 10];
    (counts[4], counts[5]) = (500, 1_500);
    let mut t = open(1_000, counts);
    t.intervals[5].max_ns = 1_000_000_000;
    assert_eq!(trial_codes(&t), ["server_stalled"]);
    let finding = trial_findings(&t).remove(0);
    assert!(finding.text.contains("about 1 s near 4 s"), "{}", finding.text);
    let mut short = t.clone();
    short.intervals[5].max_ns = 150_000_000;
    assert_eq!(trial_codes(&short), [""; 0], "15 medians are no stall");
    let mut own = t.clone();
    own.offered.stall_ns_max = 900_000_000;
    assert_eq!(trial_codes(&own), [""; 0], "the generator stood still itself");
    let mut steady = t;
    (steady.intervals[4].completed, steady.intervals[5].completed) = (900, 1_100);
    assert_eq!(trial_codes(&steady), [""; 0], "no dip, no burst");
}

#[test]
fn trials_of_one_kind_make_one_finding_with_the_worst_number() {
    let mut trials: Vec<TrialReport> = [20, 1, 5].map(|n| at_level(n, 0.02)).to_vec();
    trials[1].outcomes = outcomes(4_000, 0.2);
    let all = findings_at_levels(&trials.iter().collect::<Vec<_>>(), FindingContext::default());
    assert_eq!(all.len(), 1);
    let finding = &all[0];
    assert_eq!(finding.evidence["error_percent"], 20.0);
    assert!(finding.text.starts_with("at 1, 5 and 20 users: 20 %"), "{}", finding.text);
    assert!(finding.text.contains(": http 5xx"));
}

fn at_level(n: u32, failed: f64) -> TrialReport {
    let mut t = sound();
    t.level = Level::Vusers(n);
    t.outcomes = outcomes(4_000, failed);
    t
}

/// A trial of sessions whose programs answered 10 times; `not_sent` of the operations were not
/// sent.
fn asking(late_max_ns: u64, not_sent: u64, because: Option<&str>) -> TrialReport {
    let mut t = sound();
    t.outcomes.add_many(Outcome::ProgramFailed, not_sent);
    t.as_http_mut().sessions = Some(SessionsReport {
        programs: Some(ProgramsReport {
            late_ns: TimesReport {
                count: 10,
                mean: Some(late_max_ns / 2),
                max: Some(late_max_ns),
                ..TimesReport::default()
            },
            failed_because: because.map(str::to_owned),
            ..ProgramsReport::default()
        }),
        ..SessionsReport::default()
    });
    t
}

#[test]
fn late_programs_are_found_beyond_a_millisecond() {
    let findings = trial_findings(&asking(50_000_000, 0, None));
    let late = findings.iter().find(|f| f.code == "program_late").unwrap();
    let want = "steps waited 25 ms on average (at most 50 ms) for a program";
    assert!(late.text.starts_with(want), "{}", late.text);
    for late_ns in [0, 999_999] {
        let codes = trial_codes(&asking(late_ns, 0, None));
        assert!(!codes.iter().any(|c| c.starts_with("program_")), "{codes:?}");
    }
}

#[test]
fn a_program_that_gives_no_value_is_told_with_its_reason() {
    let because = "./sign.py gave no value for 'signature'";
    let findings = trial_findings(&asking(0, 3, Some(because)));
    let failed = findings.iter().find(|f| f.code == "program_failed");
    let message = &failed.unwrap().text;
    let want = format!("3 steps were not sent for want of a value: {because}");
    assert_eq!(*message, want);
}

#[test]
fn failed_iterations_come_first_and_marks_are_said() {
    let of = |failed: u64, completed: u64, marked: Option<&str>| {
        let mut t = sound();
        t.outcomes = outcomes(4_000, 0.02);
        t.as_http_mut().sessions = Some(SessionsReport {
            kinds: vec![SessionReport { completed, failed, ..SessionReport::default() }],
            script: Some(ScriptReport {
                failed,
                failures: (failed > 0)
                    .then(|| "main.js:1:1: boom".to_owned())
                    .into_iter()
                    .collect(),
                marked_because: marked.map(str::to_owned),
                ..ScriptReport::default()
            }),
            ..SessionsReport::default()
        });
        trial_findings(&t)
    };
    let all = of(3, 0, None);
    assert_eq!(all[0].code, "script_failed", "{all:?}");
    assert!(all[0].text.contains("failed in 3 iterations, which were all"), "{}", all[0].text);
    assert!(of(3, 1, None)[0].text.contains("failed in 3 iterations; the first"));
    assert!(of(0, 9, None).iter().all(|f| !f.code.starts_with("script_")));
    assert!(of(0, 9, Some("bad")).iter().any(|f| f.code == "script_marked_failed"));
}
