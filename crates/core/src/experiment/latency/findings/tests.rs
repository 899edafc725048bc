use super::{MeasuredScenario, latency_findings};
use crate::experiment::latency::analysis::tests::path;
use crate::experiment::latency::analysis::{assess, row};
use crate::finding::{Finding, Severity};
use crate::trial::report::TrialReport;
use knee_load::experiment::latency::{FlowLost, LatencyTrial, ScenarioEnd, ScenarioEnded, Settle};
use knee_load::time::Nanos;
use knee_sim::fixture;
use knee_sim::simulate_flows;

/// A scenario of 1 s with this ping throughout and these goodputs of the flows, uploads first.
fn trial(up: u32, down: u32, ping_ms: f64, kib_per_s: &[f64]) -> LatencyTrial {
    let spec = fixture::flows(up, down, Nanos::from_secs(1));
    let mut trial = simulate_flows(&spec, &path(Nanos::from_millis(20)));
    let ping = Nanos((ping_ms * 1e6) as u64);
    trial.tcp.longest = ping;
    for probe in &mut trial.tcp.probes {
        probe.waited = ping;
        if let Some(back) = &mut probe.back {
            back.round_trip = ping;
        }
    }
    for (flow, kib) in trial.flows.iter_mut().zip(kib_per_s) {
        flow.received_bytes = (kib * 1_024.0) as u64;
    }
    trial.udp = Some(trial.tcp.clone());
    trial.ended = ScenarioEnded::Settled;
    trial
}

/// What is found of these, with the congestion controls asked for, beside an idle path of 10 ms.
fn findings_with(scenarios: &[(LatencyTrial, Option<&str>)]) -> Vec<Finding> {
    let idle = assess(&trial(0, 0, 10.0, &[]));
    let reports: Vec<TrialReport> = scenarios.iter().map(|(trial, _)| assess(trial)).collect();
    let names = scenarios.iter().map(|(_, name)| *name);
    let scenarios: Vec<MeasuredScenario<'_>> = reports
        .iter()
        .zip(names)
        .map(|(trial, name)| {
            let row = row(trial, Some(&idle), name).expect("a scenario");
            MeasuredScenario { row, trial }
        })
        .collect();
    let past: Vec<&TrialReport> = std::iter::once(&idle).chain(&reports).collect();
    latency_findings(&past, Some(&idle), &scenarios)
}

fn findings(trials: &[LatencyTrial]) -> Vec<Finding> {
    let plain: Vec<_> = trials.iter().map(|t| (t.clone(), None)).collect();
    findings_with(&plain)
}

fn only(code: &str, findings: &[Finding]) -> Finding {
    let codes: Vec<&str> = findings.iter().map(|f| f.code.as_str()).collect();
    assert_eq!(codes, [code]);
    findings[0].clone()
}

fn check(code: &str, triggers: &[LatencyTrial], nearest: &[LatencyTrial]) -> Finding {
    assert_eq!(findings(nearest), [], "the nearest data without {code}");
    only(code, &findings(triggers))
}

#[test]
fn bloated_from_60_ms_on() {
    let with = |ms| [trial(1, 0, 5.0, &[900.0]), trial(1, 1, ms, &[900.0, 900.0])];
    let finding = check("bloated", &with(70.1), &with(69.9));
    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding.text.starts_with(
            "the path is bloated: with 1 upload and 1 download the median ping takes 70.1 ms \
             instead of 10 ms (grade C); the longest ping takes 70.1 ms (14.3 Hz); inside the \
             flows the median byte takes "
        ),
        "{}",
        finding.text
    );
    assert!(finding.text.ends_with("1 of 2 scenarios are bloated"));
    assert!(finding.next_step.contains("--cc cubic,bbr"), "{}", finding.next_step);
    let added = finding.evidence["added_latency_ns"];
    assert!((added / 60.1e6 - 1.0).abs() < 0.002, "{added}");
    let mut bbr = with(70.1);
    bbr[1].flows[0].congestion_control = "bbr".to_owned();
    let finding = only("bloated", &findings(&bbr));
    assert!(!finding.next_step.contains("--cc"), "{}", finding.next_step);
}

#[test]
fn starved_below_a_tenth_of_the_mean() {
    // 30 of a mean of 307.5 is 9.8 %; Jain's index is below its limit too.
    let starves = trial(0, 4, 10.0, &[400.0, 400.0, 400.0, 30.0]);
    let lives = trial(0, 4, 10.0, &[400.0, 400.0, 400.0, 32.0]);
    assert_eq!(starved(&[lives]), None);
    let text = starved(&[starves]).expect("found");
    assert_eq!(
        text,
        "download 3 of 4 downloads starves: it gets 30 KiB/s, 9.76 % of its direction's mean of \
         307.5 KiB/s"
    );
    let nothing = starved(&[trial(1, 0, 10.0, &[0.0])]).expect("found");
    assert!(nothing.starts_with("upload 0 of 1 upload carried no data (0 KiB/s)"), "{nothing}");
}

fn starved(trials: &[LatencyTrial]) -> Option<String> {
    let all = findings(trials);
    all.iter().find(|f| f.code == "starved_flow").map(|f| f.text.clone())
}

#[test]
fn unfair_below_an_index_of_four_fifths() {
    let with = |a: f64| [trial(2, 0, 10.0, &[a, 300.0])];
    let finding = check("unfair", &with(99.0), &with(101.0));
    assert_eq!(
        finding.text,
        "with 2 uploads the uploads share the path unfairly: each gets 99 to 300 KiB/s; Jain's \
         index is 0.7976 (1 is fair, 0.5 is one flow alone)"
    );
    assert!(finding.next_step.contains("--scenarios 2/0 -d 60s"), "{}", finding.next_step);
}

#[test]
fn a_killed_flow_is_named_with_time_and_reason() {
    let whole = trial(2, 0, 10.0, &[300.0, 300.0]);
    let mut killed = whole.clone();
    killed.flows[1].lost =
        Some(FlowLost { at: Nanos::from_millis(600), why: "connection reset by peer".to_owned() });
    let finding = check("flow_killed", &[killed.clone()], &[whole]);
    assert_eq!(
        finding.text,
        "upload 1 of 2 uploads was lost after 600 ms: connection reset by peer; a lost flow \
         counts as 0, so that upload capacity and flow smoothness are 0 over all scenarios"
    );
    killed.flows[0].lost =
        Some(FlowLost { at: Nanos::from_millis(500), why: "broken pipe".to_owned() });
    let finding = only("flow_killed", &findings(&[killed]));
    assert!(
        finding.text.contains("500 ms: broken pipe; 1 more flow was lost later"),
        "{}",
        finding.text
    );
    assert_eq!(finding.evidence["flows_lost"], 2.0);
}

#[test]
fn asymmetric_from_a_factor_of_two_on() {
    let with = |up: f64| [trial(1, 0, 10.0, &[up]), trial(0, 1, 10.0, &[1_000.0])];
    let finding = check("asymmetric", &with(499.0), &with(501.0));
    assert_eq!(finding.severity, Severity::Info);
    assert!(
        finding.text.contains("downloads carry 2 times as much as uploads"),
        "{}",
        finding.text
    );
    // What was forced or has the other direction beside it does not decide where others are clean.
    let mut forced = trial(2, 0, 10.0, &[1.0, 1.0]);
    forced.ended = ScenarioEnded::Aborted("gone".to_owned());
    let mixed = trial(1, 1, 10.0, &[10.0, 1_000.0]);
    let even = [
        trial(1, 0, 10.0, &[1_000.0]),
        trial(0, 1, 10.0, &[1_000.0]),
        trial(0, 2, 10.0, &[900.0, 900.0]),
    ];
    let all = findings(&[&even[..], &[forced, mixed]].concat());
    assert!(all.iter().all(|f| f.code != "asymmetric"), "{all:?}");
    // One upload against three downloads has no mirror image here.
    let unlike = trial(1, 3, 10.0, &[100.0, 300.0, 300.0, 300.0]);
    assert_eq!(findings(&[unlike]), []);
}

#[test]
fn bbr_hides_what_cubic_shows() {
    let scenario = |name: &'static str, ms: f64| (trial(1, 0, ms, &[900.0]), Some(name));
    let hides = |cubic_ms, bbr_ms| {
        let all = findings_with(&[scenario("cubic", cubic_ms), scenario("bbr", bbr_ms)]);
        all.into_iter().find(|f| f.code == "congestion_control_hides_bloat")
    };
    assert_eq!(hides(69.0, 12.0), None, "cubic does not bloat it either");
    assert_eq!(hides(120.0, 71.0), None, "bbr shows it too");
    assert_eq!(hides(72.0, 45.0), None, "nearly the same");
    let finding = hides(110.0, 45.0).expect("found");
    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding.text.starts_with(
            "bbr hides how bloated the path is: load adds at most 35 ms to the median ping with \
             bbr, and 100 ms with cubic"
        ),
        "{}",
        finding.text
    );
}

#[test]
fn a_default_of_bbr_may_hide_bloat_unless_it_was_asked_for() {
    let mut bbr = trial(1, 1, 12.0, &[900.0, 900.0]);
    bbr.flows.iter_mut().for_each(|f| f.congestion_control = "bbr".to_owned());
    let mut mixed = bbr.clone();
    mixed.flows[1].congestion_control = "cubic".to_owned();
    let finding = check("congestion_control_hides_bloat", &[bbr.clone()], &[mixed]);
    assert_eq!(finding.severity, Severity::Info);
    assert_eq!(finding.next_step, "compare: --cc cubic,bbr");
    assert_eq!(findings_with(&[(bbr, Some("bbr"))]), []);
}

#[test]
fn a_forced_scenario_has_not_settled() {
    let mut forced = trial(16, 16, 10.0, &[30.0; 32]);
    forced.spec.end = ScenarioEnd::Settled {
        settle: Settle { tolerance: 0.05, window: Nanos::from_millis(100), windows: 5 },
        limit: Nanos::from_secs(1),
    };
    let settled = forced.clone();
    forced.ended = ScenarioEnded::Forced;
    let finding = check("not_settled", &[forced, settled.clone()], &[settled]);
    assert_eq!(
        finding.text,
        "1 of 2 scenarios had not settled when their time was over (the longest took 1 s): 16/16 \
         flows up/down; the figures of a longer run may differ"
    );
    assert_eq!(
        finding.next_step,
        "give them time to settle, without --duration: --scenarios 16/16 --scenario-limit 60s"
    );
}

#[test]
fn a_late_pinger_is_told() {
    let mut late = trial(1, 0, 10.0, &[900.0]);
    late.tcp.pacing_error.record(Nanos::from_millis(99));
    assert_eq!(findings(&[late.clone()]), []);
    late.tcp.pacing_error.record(Nanos::from_millis(101));
    let finding = only("generator_distorted", &findings(&[late]));
    assert!(finding.next_step.contains("--scenarios 1/1,4/4"), "{}", finding.next_step);
}

#[test]
fn probes_that_disagree_are_told() {
    let with = |udp_ms: f64| {
        let mut trial = trial(1, 0, 40.0, &[900.0]);
        for probe in &mut trial.udp.as_mut().expect("probes").probes {
            probe.waited = Nanos((udp_ms * 1e6) as u64);
            if let Some(back) = &mut probe.back {
                back.round_trip = probe.waited;
            }
        }
        [trial]
    };
    let finding = check("probes_disagree", &with(31.9), &with(32.1));
    assert_eq!(
        finding.text,
        "with 1 upload the median ping takes 40 ms over TCP and 31.9 ms over UDP: TCP adds waits \
         (for lost segments, or in a sending host), or the queue prefers UDP; the grade is \
         that of TCP"
    );
    let finding = check("probes_disagree", &with(50.1), &with(49.9));
    assert!(finding.text.contains("the queue prefers TCP"), "{}", finding.text);
    let mut held = with(20.0);
    held[0].tcp.held_back = 1_234;
    let finding = only("probes_disagree", &findings(&held));
    assert!(
        finding
            .text
            .ends_with("; 1,234 pings were not sent, because this host still held earlier ones")
    );
    assert_eq!(finding.evidence["held_back"], 1_234.0);
    // Most of them lost: there is no median to compare with.
    let mut lost = with(20.0);
    for probe in &mut lost[0].udp.as_mut().expect("probes").probes {
        probe.back = None;
    }
    assert_eq!(findings(&lost), []);
}

/// One that the user ended before its first data tells nothing of the path.
#[test]
fn an_end_before_the_first_data_is_no_zero() {
    let mut ended = trial(1, 1, 10.0, &[0.0, 0.0]);
    ended.interrupted = true;
    for flow in &mut ended.flows {
        flow.by_interval.iter_mut().for_each(|bytes| *bytes = 0);
    }
    let report = assess(&ended);
    let row_ended = row(&report, None, None).expect("a scenario");
    let figures = (row_ended.up_kib_per_s, row_ended.down_kib_per_s, row_ended.smoothness_hz);
    assert_eq!(figures, (None, None, None));
    assert_eq!(findings(&[ended.clone()]), []);
    ended.interrupted = false;
    let standing = row(&assess(&ended), None, None).expect("a scenario");
    assert_eq!(standing.up_kib_per_s, Some(0.0), "a standstill is one");
}
