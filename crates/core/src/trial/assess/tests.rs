//! Whole trials, simulated, and what is to be said of them.

use super::*;
use crate::trial::offered::OfferedReport;
use knee_load::arrival::ArrivalProcess;
use knee_load::measure::{Completion, Op, Outcome, Recorder, RecorderConfig, Window};
use knee_load::rng;
use knee_load::spec::*;
use knee_load::time::Nanos;
use knee_sim::series::mm1;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// Any report, for tests of what is made of reports.
pub(crate) fn report() -> TrialReport {
    assess(&trial(open(ArrivalLaw::Constant), &[]))
}

pub(crate) fn open(arrival: ArrivalLaw) -> Load {
    Load::Open(OpenLoad {
        rate: Rate::per_second(500).expect("not zero"),
        arrival,
        connections_max: 10,
        in_flight_max: None,
    })
}

pub(crate) fn closed(vusers: u32) -> Load {
    let pause = Pause::NONE;
    Load::Closed { vusers, pause, stages: Vec::new() }
}

/// A trial over [1 s, 11 s) with these operations, in ascending order of their ends.
fn trial(load: Load, completions: &[Completion]) -> Trial {
    trial_until(MS(60_000), load, completions)
}

/// The same, ended at this time if that is earlier.
fn trial_until(end: Nanos, load: Load, completions: &[Completion]) -> Trial {
    let open_loop = matches!(load, Load::Open(_));
    let mut recorder = Recorder::new(RecorderConfig {
        window: Window { start: MS(1_000), end: MS(11_000) },
        interval: MS(1_000),
        open_loop,
        of_sessions: false,
        starts_max: 100_000,
        targets: 1,
    });
    let mut starts: Vec<Nanos> = completions.iter().map(|c| c.started).collect();
    starts.sort();
    let mut starts = starts.into_iter().peekable();
    for completion in completions {
        while let Some(now) = starts.next_if(|&s| s <= completion.completed) {
            let lane = Op::ANY_LANE;
            recorder.on_start(Op { intended: now, lane }, now);
        }
        recorder.on_completion(completion);
    }
    Trial {
        spec: spec(load),
        measurement: recorder.finish(end),
        generator: GeneratorUse { cpu_user_s: 0.5, cpu_system_s: 1.0, ..GeneratorUse::default() },
        kernel: Default::default(),
        observed: None,
        agents: Vec::new(),
        interrupted: false,
    }
}

/// 1 s of warm-up, 10 s of measurement, a timeout of 30 s.
pub(crate) fn spec(load: Load) -> TrialSpec {
    TrialSpec {
        label: "a trial".into(),
        level: Level::Vusers(1),
        load,
        target: Target {
            further: Vec::new(),
            endpoint: Endpoint::Tcp { host: "127.0.0.1".into(), port: 80 },
            requests: Vec::new(),
            pick: Pick::InOrder,
            keep_alive: true,
            protocol: Default::default(),
            connections_max: None,
            tls: None,
            proxy: None,
            route: Default::default(),
            sessions: None,
            recording: None,
            stream_bounds: None,
        },
        warmup: MS(1_000),
        duration: MS(10_000),
        operations_max: None,
        timeout: MS(30_000),
        retry: None,
        sentinel: None,
        connect_timeout: MS(3_000),
        interval: MS(1_000),
        seed: 1,
        engine: EngineOptions {
            workers: 1,
            backend: BackendChoice::Epoll,
            wait: WaitPolicy::Hybrid,
            ..EngineOptions::default()
        },
    }
}

fn op(intended: Nanos, started: Nanos, completed: Nanos) -> Completion {
    let op = Op { intended, lane: 0 };
    Completion {
        bytes: 100,
        ..Completion::at_once(op, completed, Outcome::Ok).exchanged(started, started)
    }
}

/// An M/M/1 queue at 500/s and so much served per second.
fn queue(seed: u64, served_per_s: f64) -> Trial {
    let served = mm1(&mut rng::stream(seed, 9), 500.0, served_per_s, 12.0);
    let ops: Vec<Completion> = served
        .iter()
        .map(|&(departure, response)| {
            let arrival = Nanos::from_secs_f64(departure - response);
            op(arrival, arrival, Nanos::from_secs_f64(departure))
        })
        .collect();
    trial(open(ArrivalLaw::Poisson), &ops)
}

/// Constant arrivals at 500/s served at once, in 1 ms. From 6 s on either the generator or the
/// server is stalled for 1 s.
fn stalled(generator: bool) -> Trial {
    let Load::Open(load) = open(ArrivalLaw::Constant) else {
        unreachable!("it is open");
    };
    let mut schedule = load.arrivals(Share::WHOLE, 1);
    let awake = |t: Nanos| {
        if (MS(6_000)..MS(7_000)).contains(&t) { MS(7_000) } else { t }
    };
    let ops: Vec<Completion> =
        std::iter::from_fn(|| schedule.next())
            .take_while(|&t| t < MS(11_000))
            .map(|t| {
                if generator {
                    op(t, awake(t), awake(t) + MS(1))
                } else {
                    op(t, t, awake(t) + MS(1))
                }
            })
            .collect();
    trial(Load::Open(load), &ops)
}

#[test]
fn a_queue_in_equilibrium_is_reported_as_theory_has_it() {
    let (mut throughput_held, mut p90_held, runs) = (0, 0, 20);
    for seed in 0..runs {
        let report = assess(&queue(seed, 1_000.0));
        assert_eq!(report.verdict, Verdict::Valid, "{:?}", report.invalid_because);
        assert!(report.stationary && report.as_http().littles_law.is_none());
        let [lo, hi] = report.throughput_ci95_per_s.expect("it is stationary");
        throughput_held += i32::from(lo <= 500.0 && 500.0 <= hi);
        let [lo, hi] = report.response_time_ns.p90_ci95.expect("it is stationary");
        let p90 = -(0.1f64.ln()) / 500.0 * 1e9;
        p90_held += i32::from(lo as f64 <= p90 && p90 <= hi as f64);
        let cv = report.offered.gap_cv.expect("an open loop");
        assert!((cv - 1.0).abs() < 0.1);
        assert!(report.offered.ks_p_value.expect("Poisson") > 1e-4);
        assert_eq!(report.offered.asked_per_s, Some(500.0));
    }
    assert!(throughput_held >= 17, "{throughput_held} of {runs}");
    assert!(p90_held >= 16, "{p90_held} of {runs}");
}

#[test]
fn a_queue_that_grows_is_not_stationary_and_valid() {
    let report = assess(&queue(1, 400.0));
    assert!(!report.stationary);
    assert_eq!(report.response_time_ns.p90_ci95, None);
    assert_eq!(report.verdict, Verdict::Valid, "{:?}", report.invalid_because);
}

/// The same second of delay in the same response times, but the one is the generator's.
#[test]
fn a_stopped_generator_is_invalid_and_a_stopped_server_is_not() {
    let (generator, server) = (assess(&stalled(true)), assess(&stalled(false)));
    for report in [&generator, &server] {
        let times = &report.response_time_ns;
        let most = || times.ranges.get("max").and_then(|range| range.at_most);
        let max = times.max.or_else(most).expect("some ended") as f64 / 1e6;
        assert!((max - 1_001.0).abs() < 2.0, "{max} ms");
        assert_eq!(report.attempted, 5_000);
    }
    assert_eq!(server.verdict, Verdict::Valid, "{:?}", server.invalid_because);
    assert!(server.response_time_ns.ranges.is_empty());
    assert!(generator.response_time_ns.ranges.contains_key("p99"));
    assert_eq!(generator.verdict, Verdict::Invalid);
    assert!(generator.invalid_because[0].contains("stalled for 1 s"));
}

#[test]
fn draining_backlog_does_not_exceed_the_offered_rate() {
    let Load::Open(load) = open(ArrivalLaw::Constant) else {
        unreachable!("it is open");
    };
    // The server answers from 3 s on, one every 1.6 ms: it has caught up with 500/s at 11 s.
    let mut free = MS(3_000);
    let mut schedule = load.arrivals(Share::WHOLE, 1);
    let ops: Vec<Completion> = std::iter::from_fn(|| schedule.next())
        .skip_while(|&t| t < MS(1_000))
        .take_while(|&t| t < MS(11_000))
        .map(|t| {
            free = free.max(t) + Nanos::from_micros(1_600);
            op(t, t, free)
        })
        .collect();
    let report = assess(&trial(Load::Open(load), &ops));
    let per_s = report.responses_per_s();
    assert!((490.0..510.0).contains(&per_s), "{per_s}");
}

#[test]
fn a_closed_loop_of_long_operations_is_exact() {
    let ops: Vec<Completion> =
        (0..4).flat_map(|k| [op(MS(k * 5_000), MS(k * 5_000), MS((k + 1) * 5_000)); 4]).collect();
    let report = assess(&trial(closed(4), &ops));
    assert!((report.responses_per_s() - 0.8).abs() < 1e-3);
    let law = report.as_http().littles_law.clone().expect("a closed loop");
    assert!(law.ok, "{law:?}");
    assert_eq!(
        report.offered,
        OfferedReport {
            achieved_per_s: 0.8,
            arrival: "closed".into(),
            connection_wait_ns: Some(Default::default()),
            ..Default::default()
        }
    );
    assert_eq!(report.response_time_ns.p90_ci95, None);
}

#[test]
fn throughput_is_that_after_the_warm_up() {
    // A server that takes 4 ms in its first 3 s of the window, then 2 ms.
    let mut ops = Vec::new();
    let mut now = Nanos::ZERO;
    while now < MS(12_000) {
        let took = if now < MS(4_000) { MS(4) } else { MS(2) };
        ops.push(op(now, now, now + took));
        now += took;
    }
    let report = assess(&trial(closed(1), &ops));
    assert!((report.responses_per_s() - 500.0).abs() < 1.0, "{}", report.responses_per_s());
    assert!(report.as_http().transient_ns.abs_diff(MS(3_000).0) <= MS(250).0);
    assert!(report.stationary && report.as_http().littles_law.as_ref().is_some_and(|law| law.ok));
    let [lo, hi] = report.throughput_ci95_per_s.expect("it is stationary");
    assert!(lo < 500.0 && 500.0 < hi && hi - lo < 5.0);
}

/// This number of operations within the first 50 ms, 2 ms each.
fn at_once(n: u64) -> impl Iterator<Item = Completion> {
    let at = |ms: u64| MS(1_000 + ms);
    (0..n).map(move |n| op(at(n / 4), at(n / 4), at(n / 4 + 2)))
}

/// 200 operations of eight users. Four of them take a second: a repeated SYN.
#[test]
fn long_operations_at_the_end_are_not_what_a_count_measured() {
    let at = |ms: u64| MS(1_000 + ms);
    let ops: Vec<Completion> = at_once(196).chain([op(at(0), at(0), at(1_025)); 4]).collect();
    let mut trial = trial_until(at(1_025), closed(8), &ops);
    trial.spec.operations_max = Some(200);
    let report = assess(&trial);
    let per_s = report.responses_per_s();
    assert!((per_s - 200.0 / 1.025).abs() < 0.1, "{per_s}");
    assert_eq!((report.as_http().transient_ns, report.throughput_ci95_per_s), (0, None));
    assert!(!report.as_http().silence.is_none(), "one operation in a second is no drift");
    // By time, what comes after the cut is what there is.
    trial.spec.operations_max = None;
    assert!(assess(&trial).responses_per_s() < per_s);
}

/// A slow start belongs to what a number of operations took, and to nothing else.
#[test]
fn a_count_cuts_no_slow_start_and_a_time_does() {
    let mut ops = Vec::new();
    let mut now = MS(1_000);
    while ops.len() < 2_500 {
        let took = if ops.len() < 500 { MS(4) } else { MS(2) };
        ops.push(op(now, now, now + took));
        now += took;
    }
    let mut trial = trial_until(now, closed(1), &ops);
    let by_time = assess(&trial).responses_per_s();
    assert!((by_time - 500.0).abs() < 1.0, "{by_time}");
    trial.spec.operations_max = Some(2_500);
    let report = assess(&trial);
    let per_s = report.responses_per_s();
    assert!((per_s - 2_500.0 / 6.0).abs() < 0.1 && !report.stationary, "{per_s}");
}

/// The number of operations has started long before the time is over.
#[test]
fn a_count_that_is_out_when_its_time_ends_counts_as_well() {
    let at = |ms: u64| MS(1_000 + ms);
    let ops: Vec<Completion> = at_once(195).chain([op(at(48), at(48), at(12_000)); 5]).collect();
    let mut trial = trial(closed(10), &ops);
    trial.spec.operations_max = Some(200);
    let per_s = assess(&trial).responses_per_s();
    assert!(per_s >= 19.5, "{per_s}");
}

#[test]
fn a_target_that_becomes_slow_keeps_its_fast_part() {
    let at = |ms: u64| MS(1_000 + ms);
    let fast = (0..1_500).map(|n| op(at(n), at(n), at(n + 1)));
    let slow =
        (0..8).map(|n| op(at(1_500 + 1_000 * n), at(1_500 + 1_000 * n), at(2_500 + 1_000 * n)));
    let ops: Vec<Completion> = fast.chain(slow).collect();
    let report = assess(&trial(closed(1), &ops));
    let per_s = report.responses_per_s();
    assert!((per_s - 150.8).abs() < 1.0 && !report.stationary, "{per_s}");
}

/// Whatever changes is the schedule's, and a target that answers at once keeps up with it.
#[test]
fn a_schedule_that_changes_is_measured_as_a_whole() {
    for text in ["steps(300 for 3s,20 for 20s)", "burst(5,0.15,10s)", "ramp(300,20)"] {
        let arrival = knee_load::arrival::parse_arrival(text, MS(11_000)).expect("a law");
        let rate = Rate::per_second(50).expect("not zero");
        let load = OpenLoad { rate, arrival, connections_max: 10, in_flight_max: None };
        let mut schedule = load.arrivals(Share::WHOLE, 1);
        let moments = std::iter::from_fn(|| schedule.next()).take_while(|&t| t < MS(11_000));
        let ops: Vec<Completion> = moments.map(|t| op(t, t, t + MS(1))).collect();
        let started = ops.iter().filter(|op| op.started >= MS(1_000)).count() as f64;
        let report = assess(&trial(Load::Open(load), &ops));
        let per_s = report.responses_per_s();
        assert!((per_s * 10.0 - started).abs() < 5.0, "{text}: {per_s}, {started} started");
        let asked = report.offered.asked_per_s.expect("a schedule");
        assert!((asked * 10.0 - started).abs() <= 1.0, "{text}: {asked}");
        assert!(report.throughput_is.is_determined(), "{text}");
    }
}

/// 30 operations, whose answers take longer than the schedule of all of them, and a generator that
/// has no time left.
#[test]
fn a_count_of_a_schedule_leaves_nothing_to_be_started() {
    let at = |ms: u64| MS(1_000 + ms);
    let ops: Vec<Completion> = (0..30).map(|n| op(at(n), at(n), at(200 + n))).collect();
    let mut trial = trial_until(at(230), open(ArrivalLaw::Constant), &ops);
    trial.generator.busiest_worker_percent = 99.0;
    let per_s = 30.0 / 0.23;
    let report = assess(&trial);
    assert!(!report.throughput_is.is_determined(), "of 115 that were due");
    assert!(report.throughput_per_s.is_some(), "what was achieved is stated");
    trial.spec.operations_max = Some(30);
    let report = assess(&trial);
    assert!((report.responses_per_s() - per_s).abs() < 1.0);
    assert!(report.throughput_is.is_determined());
    assert!(report.offered.asked_per_s.is_some_and(|asked| (asked - per_s).abs() < 1.0));
}

/// Chance has fewer arrivals in a short window than the law has on average.
#[test]
fn few_random_arrivals_are_not_missing_ones() {
    let at = |n: u64| MS(1_000 + 250 * n);
    let ops: Vec<Completion> = (0..40).map(|n| op(at(n), at(n), at(n) + MS(1))).collect();
    let is_determined = |arrival, busy| {
        let Load::Open(load) = open(arrival) else {
            unreachable!("it is open");
        };
        let rate = Rate::per_second(6).expect("not zero");
        let mut trial = trial(Load::Open(OpenLoad { rate, ..load }), &ops);
        trial.generator.busiest_worker_percent = busy;
        assess(&trial).throughput_is.is_determined()
    };
    assert!(is_determined(ArrivalLaw::Poisson, 99.0));
    assert!(!is_determined(ArrivalLaw::Constant, 99.0), "20 of 60 are missing");
    assert!(is_determined(ArrivalLaw::Constant, 90.0), "that is not the generator's doing");
}

/// A start that is slower than the rest is cut, and the whole is stated beside it. A cut that
/// changes nothing beyond chance is none.
#[test]
fn a_cut_changes_the_throughput_or_is_none() {
    let with_first_second = |slow: u64| {
        let ops = (1_000u64..11_000).filter(|k| *k >= 2_000 || !k.is_multiple_of(slow));
        let ops: Vec<Completion> = ops.map(|k| op(MS(k), MS(k), MS(k + 1))).collect();
        assess(&trial(closed(1), &ops))
    };
    let report = with_first_second(2);
    let (per_s, whole) = (report.responses_per_s(), report.as_http().throughput_whole_per_s);
    assert!((per_s - 1_000.0).abs() < 5.0 && report.transient_ns() > 0, "{per_s}");
    assert!(whole.is_some_and(|whole| (whole - 950.0).abs() < 5.0), "{whole:?}");
    let report = with_first_second(50);
    assert_eq!((report.transient_ns(), report.as_http().throughput_whole_per_s), (0, None));
    assert!((report.responses_per_s() - 998.0).abs() < 1.0);
}

#[test]
fn nothing_measured_gives_a_report_without_numbers() {
    let mut trial = trial(closed(1), &[]);
    trial.measurement = Measurement::default();
    let report = assess(&trial);
    assert_eq!((report.attempted, report.throughput_per_s), (0, None));
    assert_eq!(report.throughput_ci95_per_s, None);
    assert_eq!(report.generator.cpu_s_per_million_ops, None);
    assert!(serde_json::to_string(&report).is_ok());
}

#[test]
fn outcomes_sum_to_attempts_and_goodput_to_good_responses() {
    let mut ops: Vec<Completion> =
        (0..5_500).map(|k| op(MS(k * 2), MS(k * 2), MS(k * 2 + 1))).collect();
    for (k, outcome) in [Outcome::Ok, Outcome::HTTP_5XX, Outcome::Timeout, Outcome::Reset]
        .iter()
        .cycle()
        .take(5_500)
        .enumerate()
    {
        ops[k].outcome = *outcome;
    }
    let report = assess(&trial(open(ArrivalLaw::Constant), &ops));
    assert_eq!((report.attempted, report.completed), (5_000, 2_500));
    assert_eq!(report.outcomes.total(), report.attempted);
    assert!((report.responses_per_s() - 250.0).abs() < 1.0);
    assert!((report.goodput_per_s.expect("some were good") - 125.0).abs() < 1.0);
    assert_eq!(report.generator.cpu_s_per_million_ops.map(f64::round), Some(600.0));
    assert_eq!(report.verdict, Verdict::Valid, "{:?}", report.invalid_because);
}

/// A limiter answers 60 % at once with 429, and serves the others in 20 ms.
#[test]
fn times_of_what_was_served_are_apart() {
    let rejected = |k: u64| k % 5 < 3;
    let ops: Vec<Completion> = (0..5_500)
        .map(|k| {
            let done = op(MS(k * 2), MS(k * 2), MS(k * 2 + if rejected(k) { 1 } else { 20 }));
            let outcome = if rejected(k) { Outcome::HTTP_4XX } else { Outcome::Ok };
            Completion { outcome, ..done }
        })
        .collect();
    let report = assess(&trial(open(ArrivalLaw::Constant), &ops));
    assert!(report.response_time_ns.p50.is_some_and(|ns| ns < 2_000_000), "of all");
    let served = report.served_of_few().expect("most were rejected");
    assert_eq!(served.count, report.outcomes.count(Outcome::Ok));
    assert!(served.p50.is_some_and(|ns| ns >= 19_900_000), "{served:?}");
    assert!(served.spectrum.is_empty());
    let fine: Vec<Completion> =
        ops.iter().map(|done| Completion { outcome: Outcome::Ok, ..*done }).collect();
    let report = assess(&trial(open(ArrivalLaw::Constant), &fine));
    assert_eq!((report.served(), report.served_of_few()), (None, None));
}

/// What users wait through is no start, and a change in the middle is none either.
#[test]
fn neither_a_hang_nor_a_change_is_cut() {
    let user = |first: Nanos, took: fn(Nanos) -> Nanos| {
        let (mut now, mut ops) = (MS(1_000) + first, Vec::new());
        while now < MS(11_000) {
            let end = now + took(now);
            ops.push(op(now, now, end));
            now = end;
        }
        ops
    };
    // Three users of whom one waits for 1.2 s at first.
    let steady: fn(Nanos) -> Nanos = |_| MS(4);
    let mut ops = [user(MS(0), steady), user(MS(1), steady), user(MS(1_200), steady)].concat();
    ops.push(op(MS(1_000), MS(1_000), MS(2_200)));
    ops.sort_by_key(|op| op.completed);
    let hang = assess(&trial(closed(3), &ops));
    assert_eq!(hang.transient_ns(), 0);
    assert!((hang.responses_per_s() - 720.0).abs() < 2.0, "{}", hang.responses_per_s());
    // Twice as fast from the middle on.
    let faster: fn(Nanos) -> Nanos = |now| if now < MS(6_000) { MS(4) } else { MS(2) };
    let change = assess(&trial(closed(1), &user(MS(0), faster)));
    assert_eq!((change.transient_ns(), change.stationary), (0, false));
    assert!((change.responses_per_s() - 375.0).abs() < 2.0, "{}", change.responses_per_s());
    let findings = crate::trial::findings::trial_findings(&change);
    let drift = findings.iter().find(|f| f.code == "non_stationary").expect("it changed");
    assert!(
        drift.text.ends_with("throughput goes from 249.8/s to 500/s after 5 s"),
        "{}",
        drift.text
    );
    // In an open loop only the response times change.
    let slower = (0..5_000).map(|n| {
        let at = MS(1_000) + MS(2 * n);
        op(at, at, at + if n < 3_000 { MS(4) } else { MS(8) })
    });
    let slower: Vec<Completion> = slower.collect();
    let open = assess(&trial(open(ArrivalLaw::Constant), &slower));
    assert!(!open.stationary);
}
