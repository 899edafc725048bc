//! For each finding the smallest data that trigger it, and the nearest that do not.

use super::Diagnosis;
use crate::experiment::sweep::fake::{base, blank, outcomes};
use crate::experiment::sweep::findings::{AxisKind, retrograde, sweep_diagnoses};
use crate::experiment::sweep::knee;
use crate::experiment::sweep::table::LevelPoint;
use crate::finding::{Finding, Severity};
use crate::measure::Interval;
use crate::spec::Level;
use crate::trial::findings::{diagnose_trial, grouped};
use crate::trial::report::{LittlesLaw, TrialReport, Verdict};

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

/// An open loop of ten intervals with so many started and completed in each.
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

fn trial_codes(t: &TrialReport) -> Vec<&'static str> {
    diagnose_trial(t).iter().map(Diagnosis::code).collect()
}

#[test]
fn an_outage_shows_although_its_failures_are_few() {
    let with = |failures| {
        let mut t = open(
            1_000,
            [1_000, 1_000, 1_000, 0, 0, 1_000, 1_000, 1_000, 1_000, 1_000],
        );
        (t.intervals[3].errors, t.intervals[4].errors) = (failures, 2);
        t.outcomes = outcomes(10_000, 0.0);
        diagnose_trial(&t)
    };
    let found = with(3);
    let outage = found.iter().find(|d| d.code() == "outage").expect("one");
    let Diagnosis::Outage {
        from_ns, lasted_ns, ..
    } = outage
    else {
        unreachable!("it has that code");
    };
    assert_eq!((*from_ns, *lasted_ns), (3e9, 2e9));
    assert!(
        outage
            .finding()
            .text
            .contains("from 3 s into the measurement until 5 s")
    );
    assert!(with(2).iter().all(|d| d.code() != "outage"), "4 failures");
}

/// `expected` is found in what `change` makes of a sound trial.
fn check(what: &str, change: impl Fn(&mut TrialReport), expected: &[&str]) {
    let mut t = sound();
    change(&mut t);
    assert_eq!(trial_codes(&t), expected, "{what}");
}

fn law(x_times_r: f64) -> Option<LittlesLaw> {
    let deviation_percent = 100.0 * (x_times_r / 10.0 - 1.0);
    Some(LittlesLaw {
        n: 10.0,
        x_times_r,
        deviation_percent,
        ok: deviation_percent.abs() <= 2.5,
    })
}

#[test]
fn a_sound_trial_has_no_finding() {
    check("sound", |_| (), &[]);
    assert_eq!(trial_codes(&open(1_000, [1_000; 10])), [""; 0]);
}

#[test]
fn trial_findings_at_their_thresholds() {
    check(
        "not stationary",
        |t| t.stationary = false,
        &["non_stationary"],
    );
    let nothing = |t: &mut TrialReport| (t.stationary, t.completed) = (false, 0);
    check("nothing completed is another matter", nothing, &[]);

    let off = &["littles_law_violation"];
    check(
        "Little's law 2.6 % off",
        |t| t.littles_law = law(10.26),
        off,
    );
    let few = |t: &mut TrialReport| (t.littles_law, t.completed) = (law(10.26), 199);
    check("2.6 % off, but fewer than 20 operations per user", few, &[]);
    check("2.6 % off, below", |t| t.littles_law = law(9.74), off);
    check("2.4 % off", |t| t.littles_law = law(10.24), &[]);

    let busy = |t: &mut TrialReport, all, spin| {
        t.generator.busiest_worker_percent = all;
        t.generator.busiest_worker_spin_percent = spin;
    };
    check(
        "96 % of a core",
        |t| busy(t, 96.0, 0.0),
        &["generator_limited"],
    );
    check("95 % of a core", |t| busy(t, 95.0, 0.0), &[]);
    let shared = |t: &mut TrialReport, level| {
        busy(t, 50.0, 0.0);
        t.generator.busiest_worker_waiting_percent = 49.0;
        t.level = level;
    };
    check(
        "half a core, of which others have the rest",
        |t| shared(t, Level::Vusers(10)),
        &["generator_limited"],
    );
    check("the same on time", |t| shared(t, Level::RatePerS(9.0)), &[]);
    let brief = |t: &mut TrialReport| {
        busy(t, 100.0, 0.0);
        t.duration_ns = 99_000_000;
    };
    check("a busy core for a moment", brief, &[]);
    let limited = |t: &mut TrialReport| {
        busy(t, 99.0, 0.0);
        t.verdict = Verdict::Invalid;
        t.invalid_because = vec!["a worker used 99 % of its core (generator_limited)".into()];
    };
    check(
        "invalid for a busy core alone",
        limited,
        &["generator_limited"],
    );
    check("all of it, but polling", |t| busy(t, 100.0, 30.0), &[]);

    check(
        "invalid",
        |t| t.verdict = Verdict::Invalid,
        &["generator_distorted"],
    );
    check(
        "invalid for no other reason than a busy core",
        |t| {
            busy(t, 99.0, 0.0);
            t.verdict = Verdict::Invalid;
            t.invalid_because = vec!["it is the limit (generator_limited)".into()];
        },
        &["generator_limited"],
    );

    check(
        "1.1 % failed",
        |t| t.outcomes = outcomes(4_000, 0.011),
        &["errors"],
    );
    check("none failed", |t| t.outcomes = outcomes(4_000, 0.0), &[]);

    // 1,000/s of 20 users at 10 ms: they pause 10 ms.
    let pause = |t: &mut TrialReport, overshoot_ns| {
        t.littles_law = law(10.0);
        t.littles_law.as_mut().expect("a law").x_times_r = 20.0;
        t.offered.pacing_error_ns.p50 = Some(overshoot_ns);
    };
    check(
        "pauses 6 % too long",
        |t| pause(t, 600_000),
        &["think_deviation"],
    );
    check("pauses 4 % too long", |t| pause(t, 400_000), &[]);
    let no_pause = |t: &mut TrialReport| {
        t.littles_law = law(10.0);
        t.offered.pacing_error_ns.p50 = Some(600_000);
    };
    check("no pause at all", no_pause, &[]);
}

#[test]
fn connections_that_are_too_few_are_told_from_a_slow_target() {
    let limit = ["connections_limit"];
    // 4 connections carry 13.3/s of what takes 300 ms.
    let with = |change: &dyn Fn(&mut TrialReport)| {
        let mut t = open(1_000, [1_000; 10]);
        (t.connections_max, t.traffic.connections_limit) = (4, Some(4));
        (t.service_time_ns.count, t.service_time_ns.mean) = (133, Some(300_000_000));
        t.offered.connection_wait_ns.p50 = Some(699_000_000);
        t.traffic.unsent = 9_867;
        change(&mut t);
        t
    };
    assert_eq!(trial_codes(&with(&|_| ())), limit);
    let few = |unsent, wait_ns| {
        with(&|t: &mut TrialReport| {
            (t.traffic.unsent, t.offered.connection_wait_ns.p50) = (unsent, Some(wait_ns));
        })
    };
    assert_eq!(trial_codes(&few(11, 0)), limit);
    assert!(trial_codes(&few(10, 0)).is_empty());
    assert_eq!(trial_codes(&few(0, 300_000_001)), limit);
    assert!(trial_codes(&few(0, 300_000_000)).is_empty());
    let spare = with(&|t| t.traffic.connections_limit = Some(5));
    assert!(trial_codes(&spare).is_empty(), "one more might be open");
    let closed = with(&|t| t.traffic.connections_limit = None);
    assert!(trial_codes(&closed).is_empty());
    let finding = diagnose_trial(&with(&|_| ()))[0].finding();
    assert!(finding.text.contains("--connections 4"), "{}", finding.text);
    assert!(
        finding.text.contains("13.33/s of the 1,000/s"),
        "{}",
        finding.text
    );
    assert!(
        finding.next_step.contains("--connections 360"),
        "{}",
        finding.next_step
    );
    assert_eq!(finding.evidence["connections_needed"], 300.0);
}

#[test]
fn bytes_that_nobody_asked_for_are_told() {
    check(
        "one",
        |t| t.traffic.surplus_responses = 1,
        &["surplus_bytes"],
    );
    check("none", |t| t.traffic.surplus_responses = 0, &[]);
}

#[test]
fn a_queue_that_grows_is_told_from_one_that_stands() {
    let grows = ["target_queue_grows"];
    assert_eq!(trial_codes(&open(1_000, [980; 10])), grows);
    assert_eq!(
        trial_codes(&open(1_000, [995; 10])),
        [""; 0],
        "half a per cent is noise"
    );
    let mut late = [1_000; 10];
    late[9] = 800;
    assert_eq!(trial_codes(&open(1_000, late)), [""; 0], "only at the end");
    let mut soon = [1_000; 10];
    soon[0] = 800;
    assert_eq!(
        trial_codes(&open(1_000, soon)),
        [""; 0],
        "only at the beginning"
    );
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
    let finding = diagnose_trial(&t)[0].finding();
    assert!(
        finding.text.contains("about 1 s near 4 s"),
        "{}",
        finding.text
    );
    let mut short = t.clone();
    short.intervals[5].max_ns = 150_000_000;
    assert_eq!(trial_codes(&short), [""; 0], "15 medians are no stall");
    let mut own = t.clone();
    own.offered.stall_ns_max = 900_000_000;
    assert_eq!(
        trial_codes(&own),
        [""; 0],
        "the generator stood still itself"
    );
    let mut steady = t;
    (steady.intervals[4].completed, steady.intervals[5].completed) = (900, 1_100);
    assert_eq!(trial_codes(&steady), [""; 0], "no dip, no burst");
}

#[test]
fn trials_of_one_kind_make_one_finding_with_the_worst_number() {
    let mut trials: Vec<TrialReport> = [20, 1, 5].map(|n| at_level(n, 0.02)).to_vec();
    trials[1].outcomes = outcomes(4_000, 0.2);
    let all = grouped(&trials.iter().collect::<Vec<_>>());
    assert_eq!(all.len(), 1);
    let finding = all[0].finding();
    assert_eq!(finding.evidence["error_percent"], 20.0);
    assert!(
        finding.text.starts_with("at 1, 5 and 20 users: 20 %"),
        "{}",
        finding.text
    );
    assert!(finding.text.contains("`http_5xx`"));
}

fn at_level(n: u32, failed: f64) -> TrialReport {
    let mut t = sound();
    t.level = Level::Vusers(n);
    t.outcomes = outcomes(4_000, failed);
    t
}

/// A table of `(users, throughput)` with intervals of this half width, as a share.
fn table(rows: &[(f64, f64)], half_width: Option<f64>) -> Vec<LevelPoint> {
    rows.iter()
        .map(|&(level, x)| LevelPoint {
            level,
            throughput_per_s: x,
            throughput_ci95: half_width.map(|h| [x * (1.0 - h), x * (1.0 + h)]),
            valid: true,
            stationary: true,
            trials: 1,
            ..LevelPoint::default()
        })
        .collect()
}

fn sweep_findings(points: &[LevelPoint]) -> Vec<Finding> {
    let reading = knee::read(points).expect("some row is usable");
    let mut diagnoses = sweep_diagnoses(points, &reading, None);
    diagnoses.extend(retrograde(AxisKind::Vusers, &reading));
    diagnoses.iter().map(Diagnosis::finding).collect()
}

fn check_table(what: &str, rows: &[(f64, f64)], half_width: Option<f64>, expected: &[&str]) {
    let findings = sweep_findings(&table(rows, half_width));
    let codes: Vec<&str> = findings.iter().map(|f| f.code.as_str()).collect();
    assert_eq!(codes, expected, "{what}: {findings:?}");
}

#[test]
fn sweep_findings_at_their_thresholds() {
    let flat = &["saturated_below_range"];
    check_table("flat", &[(2.0, 100.0), (4.0, 100.0)], None, flat);
    check_table("a knee at 1", &[(1.0, 100.0), (2.0, 100.0)], None, &[]);
    let bends = &["knee_not_bracketed"];
    check_table(
        "bends",
        &[(2.0, 90.0), (4.0, 100.0), (8.0, 100.0)],
        None,
        bends,
    );

    let rises = &["not_saturated"];
    check_table("rises", &[(1.0, 100.0), (2.0, 110.0)], None, rises);
    check_table("hardly rises", &[(1.0, 100.0), (2.0, 104.0)], None, &[]);
    let noisy = Some(0.05);
    check_table(
        "hardly rises, noisily",
        &[(1.0, 100.0), (2.0, 107.0)],
        noisy,
        &[],
    );

    check_table("one level", &[(9.0, 100.0)], None, &["too_few_levels"]);

    let falls = &["retrograde"];
    let two = [(1.0, 100.0), (2.0, 94.0)];
    check_table("two levels tell no noise", &two, None, &[]);
    check_table("falls by 4 %", &[(1.0, 100.0), (2.0, 96.0)], None, &[]);
    let exact = Some(0.01);
    check_table(
        "by 4 %, exactly",
        &[(1.0, 100.0), (2.0, 96.0)],
        exact,
        falls,
    );
    check_table("by 6 %, noisily", &[(1.0, 100.0), (2.0, 94.0)], noisy, &[]);

    let past = &["past_knee"];
    check_table(
        "three times as long",
        &[(1.0, 100.0), (3.0, 100.0)],
        None,
        past,
    );
    check_table("2.9 times", &[(10.0, 100.0), (29.0, 100.0)], None, flat);
    check_table("twice as long", &[(1.0, 100.0), (2.0, 100.0)], None, &[]);
}

#[test]
fn methods_disagree_beyond_a_factor_of_two() {
    let at = |n: f64, x: f64| (n, x);
    // The asymptotes cross at 10; throughput bends long before and rises long after.
    let gradual = [
        at(1.0, 100.0),
        at(4.0, 250.0),
        at(30.0, 980.0),
        at(60.0, 1_000.0),
    ];
    let findings = sweep_findings(&table(&gradual, None));
    let found = findings.iter().find(|f| f.code == "knee_methods_disagree");
    let found = found.expect("kneedle says 30");
    assert!(found.text.contains("kneedle at 30 users"), "{}", found.text);
    assert!(
        found.text.ends_with("between 9.9 and 30 users"),
        "{}",
        found.text
    );
    assert_eq!(
        found.next_step,
        "measure between them: --vusers 1,10,13,17,23,30"
    );
    let sharp = [
        at(1.0, 100.0),
        at(5.0, 500.0),
        at(10.0, 990.0),
        at(20.0, 1_000.0),
    ];
    assert_eq!(sweep_findings(&table(&sharp, None)), []);
}

#[test]
fn failures_that_rise_are_told_from_failures_everywhere() {
    let mut points = table(&[(1.0, 100.0), (2.0, 200.0), (4.0, 200.0)], None);
    points[2].error_share = 0.011;
    let found = sweep_findings(&points);
    assert_eq!(found[0].code, "errors_rise");
    assert!(
        found[0].text.contains("up to 1.1 % at 4 users"),
        "{}",
        found[0].text
    );
    for p in &mut points {
        p.error_share = 0.03;
    }
    assert_eq!(sweep_findings(&points), []);
    points[2].error_share = 0.3;
    let codes: Vec<String> = sweep_findings(&points)
        .into_iter()
        .map(|f| f.code)
        .collect();
    assert_eq!(
        codes,
        ["errors_rise"],
        "what is served stays the same: rejections at the maximum"
    );
}

#[test]
fn a_level_that_breaks_does_not_bend_the_curve() {
    let mut points = table(&[(1.0, 100.0), (2.0, 200.0), (4.0, 20.0)], None);
    points[2].error_share = 0.9;
    let found = sweep_findings(&points);
    let codes: Vec<&str> = found.iter().map(|f| f.code.as_str()).collect();
    assert_eq!(codes, ["not_saturated", "errors_rise"]);
    assert!(
        found[0].text.contains("before operations fail at 4 users"),
        "{}",
        found[0].text
    );
}

#[test]
fn users_whom_throughput_times_response_time_does_not_account_for_are_named() {
    let mut points = table(&[(10.0, 1_000.0), (100.0, 1_000.0), (300.0, 1_000.0)], None);
    for (p, mean_ms) in points.iter_mut().zip([10.0, 100.0, 128.0]) {
        p.mean_ns = Some(1e6 * mean_ms);
    }
    let found = crate::experiment::sweep::findings::idle_users(&points)
        .expect("172 users are idle")
        .finding();
    assert!(found.text.starts_with("at 300 users:"), "{}", found.text);
    assert!(found.text.contains("128 of 300 users"), "{}", found.text);
    let past = sweep_findings(&points);
    let past = past.iter().find(|f| f.code == "past_knee");
    assert!(past.is_none_or(|f| f.evidence["response_time_ratio_max"] < 13.0));
    // Users who all pause for 50 ms are accounted for.
    for (p, x) in points.iter_mut().zip([166.7, 666.7, 857.1]) {
        (p.throughput_per_s, p.mean_ns) = (x, Some(1e9 * (p.level / x) - 5e7));
    }
    assert_eq!(
        crate::experiment::sweep::findings::idle_users(&points),
        None
    );
}

#[test]
fn every_finding_says_what_and_what_next() {
    let level = Level::Vusers(8);
    let all = [
        Diagnosis::WarmedUp {
            at: vec![level],
            first_per_s: 500.0,
            later_per_s: 1_000.0,
        },
        Diagnosis::BoundUnreachable {
            bound: "p90<=5ms".into(),
            lowest: Level::Vusers(1),
            figure_ns: 7_000_000.0,
        },
        Diagnosis::ConfidenceNotReached {
            throughput_percent: Some(4.0),
            knee_percent: None,
            trials: 14,
        },
        Diagnosis::GeneratorDistorted {
            at: vec![level],
            clauses: vec!["achieved rate 97 % of the asked one".into()],
        },
        Diagnosis::stopped_early("nothing answers"),
        Diagnosis::interrupted(1),
        Diagnosis::unreachable("cannot connect to 127.0.0.1:9: connection refused"),
    ];
    let texts: Vec<String> = all.iter().map(|d| d.finding().text).collect();
    assert!(
        texts[0].contains("500/s at 8 users, later 1,000/s"),
        "{texts:?}"
    );
    assert!(texts[1].contains("even 1 user takes 7 ms"), "{texts:?}");
    assert!(
        texts[2].contains("within 4 % and the knee without"),
        "{texts:?}"
    );
    assert!(texts[3].contains("97 %"), "{texts:?}");
    assert!(texts[5].contains("1 trial,"), "{texts:?}");
    assert!(texts[6].contains("reached: cannot connect to"), "{texts:?}");
    for diagnosis in &all {
        let finding = diagnosis.finding();
        assert!(!finding.next_step.is_empty(), "{}", finding.code);
        assert!(finding.evidence.values().all(|v| v.is_finite()));
    }
    assert_eq!(
        all[1]
            .finding()
            .next_step
            .split_once("--bound ")
            .map(|s| s.1),
        Some("p90=10.5ms")
    );
    assert_eq!(all[4].severity(), Severity::Error);
}
