use super::*;
use knee_load::experiment::latency::settling::still_changed;
use knee_load::experiment::latency::{FlowLost, ProbeBack};
use knee_load::spec::Level;
use knee_sim::fixture;
use knee_sim::{Path, simulate_flows};

const MS: Nanos = Nanos::from_millis(1);

/// 10 Mbit/s with a round trip of 10 ms.
pub(crate) fn path(queue: Nanos) -> Path {
    Path { bytes_per_s: 1_250_000, queue, delay: Nanos::from_millis(5) }
}

/// Two uploads and a download, measured on a path with a short queue.
fn measured() -> LatencyTrial {
    let spec = fixture::flows(2, 1, Nanos::from_secs(4));
    simulate_flows(&spec, &path(Nanos::from_millis(20)))
}

fn flows(trial: &LatencyTrial) -> FlowsReport {
    assess(trial).flows().cloned().expect("flows")
}

#[test]
fn capacity_and_fairness_follow_from_the_goodputs() {
    let mut trial = measured();
    // 4 and 12 MiB in 4 s; 2 s of life for the download's 2 MiB.
    trial.flows[0].received_bytes = 4 << 20;
    trial.flows[1].received_bytes = 12 << 20;
    trial.flows[2].received_bytes = 2 << 20;
    trial.flows[2].begun = Nanos::from_secs(2);
    let report = flows(&trial);
    let (up, down) = (report.up.expect("uploads"), report.down.expect("a download"));
    assert_eq!((up.flows, down.flows), (2, 1));
    // 2 · 2/(1/1024 + 1/3072)
    assert!((up.capacity_kib_per_s - 3_072.0).abs() < 1e-6, "{up:?}");
    assert!((up.total_kib_per_s - 4_096.0).abs() < 1e-6);
    assert!((up.jain_index - 0.8).abs() < 1e-9);
    assert!((down.capacity_kib_per_s - 1_024.0).abs() < 1e-6);
    let assessed = assess(&trial);
    assert_eq!(assessed.bytes_received, 18 << 20);
}

#[test]
fn a_gap_of_334_ms_in_one_flow_is_2_hz() {
    let mut trial = measured();
    trial.flows[1].gap_max = Nanos::from_millis(334);
    let report = flows(&trial);
    let hz = report.smoothness_hz.expect("flows");
    assert!((hz - 2.994).abs() < 0.001, "{hz}");
    assert_eq!(report.gap_ns_max, 334_000_000);
    let row = row(&assess(&trial), None, None).expect("a scenario");
    assert_eq!(overall(&[&row]).smoothness_hz, Some(2));
}

#[test]
fn a_lost_flow_carries_its_zero() {
    let mut trial = measured();
    trial.flows[1].ended = Nanos::from_secs(2);
    trial.flows[1].lost =
        Some(FlowLost { at: Nanos::from_secs(2), why: "connection reset by peer".to_owned() });
    let report = flows(&trial);
    assert_eq!(report.smoothness_hz, Some(0.0));
    let up = report.up.as_ref().expect("uploads");
    assert_eq!(up.capacity_kib_per_s, 0.0);
    assert!(report.flows[0].goodput_kib_per_s > 0.0);
    assert_eq!(report.flows[1].goodput_kib_per_s, 0.0);
    assert_eq!(report.flows[1].lost_at_ns, Some(2_000_000_000));
    let lost = row(&assess(&trial), None, None).expect("a scenario");
    assert_eq!(lost.flows[1].lost, "after 2 s: connection reset by peer");
    let whole = row(&assess(&measured()), None, None).expect("a scenario");
    let both = overall(&[&whole, &lost]);
    assert_eq!(both.upload_capacity_kib_per_s, Some(0));
    assert_eq!(both.smoothness_hz, Some(0));
    assert!(both.download_capacity_kib_per_s > Some(0));
}

#[test]
fn a_flow_that_never_moved_is_a_zero_too() {
    let mut trial = measured();
    trial.flows[2].received_bytes = 0;
    let report = flows(&trial);
    assert_eq!(report.smoothness_hz, Some(0.0));
    assert_eq!(report.down.expect("a download").capacity_kib_per_s, 0.0);
    assert!(report.up.expect("uploads").capacity_kib_per_s > 0.0);
}

#[test]
fn a_ping_that_never_came_back_is_the_longest_latency() {
    let mut trial = measured();
    let last = trial.tcp.probes.len() - 1;
    trial.tcp.probes[last].back = None;
    trial.tcp.probes[last].waited = Nanos::from_millis(400);
    trial.tcp.longest = Nanos::from_millis(400);
    trial.tcp.probes[0].sent = trial.tcp.probes[0].intended + MS;
    let report = assess(&trial);
    let flows = report.flows().expect("flows");
    assert_eq!(flows.responsiveness_hz, 2.5);
    assert!(flows.tcp.lost >= 1);
    assert_eq!(report.attempted, report.outcomes.total());
    assert_eq!(report.completed + flows.tcp.lost, report.attempted);
    assert!(report.response_time_ns.max >= Some(399_000_000));
    let [response, service] = [&report.response_time_ns, &report.service_time_ns];
    assert!(response.mean > service.mean, "{response:?} {service:?}");
}

#[test]
fn the_idle_path_has_latencies_alone() {
    let spec = fixture::flows(0, 0, Nanos::from_secs(2));
    let trial = simulate_flows(&spec, &path(Nanos::from_secs(1)));
    let report = assess(&trial);
    assert!(row(&report, None, None).is_none());
    let flows = report.flows().cloned().expect("flows");
    assert_eq!((flows.smoothness_hz, flows.up, flows.down), (None, None, None));
    assert!((flows.responsiveness_hz - 100.0).abs() < 0.5, "10 ms");
    assert_eq!(flows.tcp.up_ns.p50.map(|ns| ns / 1_000_000), Some(5));
    assert_eq!(flows.cpu_s_per_gib, None);
}

#[test]
fn a_long_scenario_is_coarsened_and_loses_nothing() {
    for (seconds, interval_ms, intervals) in [(4, 100, 40), (24, 100, 240), (50, 100, 167)] {
        let mut spec = fixture::flows(1, 1, Nanos::from_secs(seconds));
        spec.interval = Nanos::from_millis(interval_ms);
        let trial = simulate_flows(&spec, &path(Nanos::from_millis(50)));
        let report = assess(&trial);
        assert_eq!(report.intervals.len(), intervals, "{seconds} s");
        let sum = |of: fn(&knee_load::measure::Interval) -> u64| -> u64 {
            report.intervals.iter().map(of).sum()
        };
        assert_eq!(sum(|i| i.attempted), report.attempted);
        assert_eq!(sum(|i| i.completed), report.completed);
        let bytes = sum(|i| i.up_bytes.unwrap_or(0) + i.down_bytes.unwrap_or(0));
        assert_eq!(bytes, report.bytes_received);
        let last = report.intervals.last().expect("intervals");
        assert_eq!(last.end_ns, report.duration_ns);
        let flows = report.flows().cloned().expect("flows");
        let kinds: Vec<&str> = flows.series.iter().map(|s| s.kind.as_str()).collect();
        assert_eq!(kinds, ["tcp", "udp", "inside_up", "inside_down"]);
        for series in &flows.series {
            assert_eq!((series.p50_ns.len(), series.max_ns.len()), (intervals, intervals));
        }
        assert!(flows.flows.iter().all(|f| f.bytes.len() == intervals));
        let most = |kind: usize| flows.series[kind].max_ns.iter().flatten().max().copied();
        let inside = flows.up.expect("an upload").inside_ns.max.expect("some");
        let error = (most(2).expect("some") as f64 / inside as f64 - 1.0).abs();
        assert!(error < 0.001, "the histogram has three digits");
    }
}

#[test]
fn a_long_queue_bloats_and_a_short_one_does_not() {
    for (queue_ms, bloated) in [(1_000, true), (20, false)] {
        let spec = fixture::flows(1, 1, Nanos::from_secs(10));
        let report = assess(&simulate_flows(&spec, &path(Nanos::from_millis(queue_ms))));
        let flows = report.flows().expect("flows");
        let hz = flows.responsiveness_hz;
        assert_eq!(hz <= 2.0, bloated, "{queue_ms} ms: {hz} Hz");
        assert_eq!(hz >= 15.0, !bloated, "{queue_ms} ms: {hz} Hz");
        let up = flows.up.as_ref().expect("an upload");
        assert!(up.capacity_kib_per_s > 0.75 * 1_250_000.0 / 1_024.0, "{up:?}");
        assert_eq!(report.verdict, Verdict::Valid);
    }
}

#[test]
fn a_scenario_settles_in_virtual_time_and_a_forced_one_says_so() {
    let end = |tolerance| ScenarioEnd::Settled {
        settle: knee_load::experiment::latency::Settle {
            tolerance,
            window: Nanos::from_millis(500),
            windows: 4,
        },
        limit: Nanos::from_secs(20),
    };
    let run = |tolerance| {
        let mut spec = fixture::flows(1, 3, Nanos::ZERO);
        spec.end = end(tolerance);
        assess(&simulate_flows(&spec, &path(Nanos::from_millis(50))))
    };
    let settled = run(0.05);
    let flows = settled.flows().expect("flows");
    assert_eq!((flows.state.as_str(), flows.reason.as_str()), ("settled", ""));
    assert!(settled.duration_ns < 20_000_000_000, "{}", settled.duration_ns);
    let forced = run(0.0).flows().cloned().expect("flows");
    assert_eq!(forced.state, "forced");
    let reason = "not settled within 20 s: its goodput still changed";
    assert_eq!(forced.reason, reason);
}

#[test]
fn an_end_by_the_user_or_the_service_is_told() {
    let mut trial = measured();
    trial.interrupted = true;
    assert_eq!(flows(&trial).state, "aborted");
    trial.interrupted = false;
    trial.ended = ScenarioEnded::Aborted("the service is gone".to_owned());
    assert_eq!(flows(&trial).reason, "the service is gone");
}

#[test]
fn a_late_pinger_is_invalid_and_a_busy_worker_is_not() {
    let mut trial = measured();
    trial.generator.busiest_worker_percent = 100.0;
    assert_eq!(assess(&trial).verdict, Verdict::Valid);
    trial.tcp.pacing_error.record(Nanos::from_millis(150));
    let late = assess(&trial);
    assert_eq!(late.verdict, Verdict::Invalid);
    assert!(late.invalid_because[0].contains("stalled"), "{late:?}");
}

#[test]
fn a_stall_longer_than_any_pacing_error_is_invalid() {
    let mut trial = measured();
    trial.tcp.held_back = 40;
    assert_eq!(assess(&trial).verdict, Verdict::Valid, "held back by the path");
    trial.tcp.stall_max = Nanos::from_millis(400);
    let stalled = assess(&trial);
    assert_eq!(stalled.verdict, Verdict::Invalid);
    assert!(stalled.invalid_because[0].contains("stalled for 400 ms"), "{stalled:?}");
    assert_eq!(stalled.offered.stall_ns_max, 400_000_000);
}

#[test]
fn processor_time_is_of_both_ends() {
    let mut trial = measured();
    trial.flows.iter_mut().for_each(|f| f.received_bytes = 1 << 30);
    (trial.generator.cpu_user_s, trial.generator.cpu_system_s) = (1.0, 2.0);
    assert_eq!(flows(&trial).cpu_s_per_gib, None, "the service's is not known");
    trial.service_cpu = Some(Nanos::from_secs(3));
    let cost = flows(&trial).cpu_s_per_gib.expect("known");
    assert!((cost - 2.0).abs() < 1e-9, "{cost}");
}

#[test]
fn the_level_of_a_scenario_reads_back() {
    let level = Level::Flows { up: 1, down: 31 };
    let json = serde_json::to_string(&level).expect("serialises");
    assert_eq!(json, r#"{"up":1,"down":31}"#);
    assert_eq!(serde_json::from_str::<Level>(&json).expect("reads"), level);
    for other in [Level::Vusers(3), Level::RatePerS(1.5), Level::Clients(2)] {
        let json = serde_json::to_string(&other).expect("serialises");
        assert_eq!(serde_json::from_str::<Level>(&json).expect("reads"), other);
    }
    let report = assess(&measured());
    let json = serde_json::to_string(&report).expect("serialises");
    let read: TrialReport = serde_json::from_str(&json).expect("reads");
    assert_eq!(read, report);
}

/// Pings of a scenario of 10 s at 100 a second, whose queue has this delay at a time in seconds.
fn still_changed_with(delay_ms: impl Fn(f64) -> f64) -> Option<&'static str> {
    let mut trial = simulate_flows(&fixture::flows(1, 0, Nanos::from_secs(10)), &path(MS));
    for probe in &mut trial.tcp.probes {
        let delay = Nanos((delay_ms(probe.sent.as_secs_f64()) * 1e6) as u64);
        probe.back = probe.back.map(|back| ProbeBack { round_trip: delay, ..back });
    }
    still_changed(&trial)
}

#[test]
fn a_scenario_of_a_fixed_time_is_judged_at_its_end() {
    let climbs = |at: f64| 52.0 + 26.9 * at;
    let latency = Some("its latency still changed");
    assert_eq!(still_changed_with(climbs), latency, "52 to 321 ms");
    let below_maximum = |at: f64| if at < 1.0 { 400.0 } else { climbs(at) };
    assert_eq!(still_changed_with(below_maximum), latency);
    let overshoots = |at: f64| if at < 1.0 { 400.0 } else { 52.0 };
    assert_eq!(still_changed_with(overshoots), None);
}
