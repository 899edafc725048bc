//! Comparisons of simulated runs: how often equals are called different, and whether a server that
//! is 15 % slower is called worse. All seeds are fixed.

use super::*;
use crate::compare::report::{ComparisonRow, ComparisonVerdict};
use crate::experiment::conduct;
use crate::experiment::recover::{Recover, RecoverPhases, RecoverSpec, Trigger};
use crate::experiment::run::RunConclusion;
use crate::experiment::sweep::report::SweepConclusion;
use crate::report::{Command, Kind};
use crate::report::{Host, ReportResult};
use crate::trial::assess::assess;
use crate::trial::figure::RateCertainty;
use crate::trial::report::TrialReport;
use crate::words::percent;
use knee_load::law::Law;
use knee_load::rng;
use knee_load::spec::{ArrivalLaw, Level, Load, OpenLoad, Pause, Rate, RetryPolicy, TrialSpec};
use knee_load::time::Nanos;
use knee_sim::fixture::trial;
use knee_sim::series::normal;
use knee_sim::{World, simulate};
use std::convert::Infallible;
use std::ops::ControlFlow;

const PAIRS: u64 = 40;

/// What is run: a load on a station of this number of workers.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    /// `Some`: Poisson arrivals per second; `None`: a closed loop of ten users.
    rate_per_s: Option<u64>,
    workers: u32,
    /// Mean service time; exponential or fixed.
    service_us: f64,
    is_fixed: bool,
    /// By how much the service time of a run differs from that of the next (standard deviation of
    /// its logarithm), as machines drift.
    drift: f64,
    seconds: f64,
}

fn run(case: Case, slowness: f64, seed: u64) -> TrialReport {
    let load = match case.rate_per_s {
        Some(per_s) => Load::Open(OpenLoad {
            rate: Rate::per_second(per_s).unwrap(),
            arrival: ArrivalLaw::Poisson,
            connections_max: 100_000,
            in_flight_max: None,
        }),
        None => Load::Closed { vusers: 10, pause: Pause::NONE, stages: Vec::new() },
    };
    let mut spec = trial(load, Nanos((case.seconds * 1e9) as u64));
    spec.warmup = Nanos::from_millis(500);
    spec.interval = Nanos((case.seconds * 1e8) as u64);
    spec.seed = seed;
    let drift = (case.drift * normal(&mut rng::stream(seed, 99))).exp();
    let mean = Nanos((case.service_us * 1e3 * slowness * drift) as u64);
    let service = if case.is_fixed { Law::Fixed(mean) } else { Law::Exp(mean) };
    assess(&simulate(&spec, &World::station(case.workers, service)).trial)
}

/// A run of ten users in front of a calm server.
pub(super) fn run_of_ten_users(seed: u64) -> TrialReport {
    run(CLOSED, 1.0, seed)
}

pub(super) fn report(trial: TrialReport) -> Report {
    Report {
        schema: crate::report::SCHEMA.to_owned(),
        command: Command::of(Kind::Run),
        knee_version: "1".to_owned(),
        started_at: "2026-05-04T09:30:00Z".to_owned(),
        seed: 1,
        verdict: trial.verdict,
        result: ReportResult::default(),
        failed_because: Vec::new(),
        interrupted: false,
        host: Host::default(),
        spec: [("url".to_owned(), "http://a/".into())].into(),
        findings: Vec::new(),
        conclusion: Conclusion::Run(RunConclusion::default()),
        trials: vec![trial],
        thresholds: Vec::new(),
    }
}

fn compared(a: &Report, b: &Report) -> Comparison {
    compared_all(std::slice::from_ref(a), std::slice::from_ref(b))
}

fn row<'a>(comparison: &'a Comparison, metric: &str) -> &'a ComparisonRow {
    comparison.rows.iter().find(|r| r.metric == metric).unwrap()
}

/// Of [`PAIRS`] pairs, those in which B was called worse, and those in which anything was found.
fn counts(case: Case, slowness: f64) -> (usize, usize) {
    let pair = |i: u64| {
        let a = report(run(case, 1.0, 2 * i + 1));
        let b = report(run(case, slowness, 2 * i + 2));
        compared(&a, &b)
    };
    let all: Vec<Comparison> = (0..PAIRS).map(pair).collect();
    let worse = all.iter().filter(|c| c.verdict == ComparisonVerdict::Worse);
    let found = all.iter().filter(|c| c.rows.iter().any(|r| r.significant));
    (worse.count(), found.count())
}

const CLOSED: Case = Case {
    name: "closed loop, 4 workers, exponential 1 ms",
    rate_per_s: None,
    workers: 4,
    service_us: 1_000.0,
    is_fixed: false,
    drift: 0.01,
    seconds: 4.0,
};
const FIXED: Case = Case { name: "closed loop, 4 workers, fixed 1 ms", is_fixed: true, ..CLOSED };
const OPEN: Case = Case {
    name: "1,000/s, M/M/1 at 0.5",
    rate_per_s: Some(1_000),
    workers: 1,
    service_us: 500.0,
    is_fixed: false,
    drift: 0.01,
    seconds: 4.0,
};
const FAST: Case =
    Case { name: "5,000/s, M/M/1 at 0.5", rate_per_s: Some(5_000), service_us: 100.0, ..OPEN };

#[test]
fn of_equals_fewer_than_1_pair_in_20_is_called_different() {
    let cases = [
        CLOSED,
        FIXED,
        OPEN,
        FAST,
        Case { name: "1,000/s, M/M/1 at 0.8", service_us: 800.0, ..OPEN },
        Case { name: "5,000/s on 8 workers", workers: 8, service_us: 1_000.0, ..FAST },
        Case { name: "closed loop, drifting by 2 %", drift: 0.02, ..CLOSED },
        Case { name: "closed loop of 1 s", seconds: 1.0, ..CLOSED },
    ];
    let mut all = 0;
    for case in cases {
        let (_, found) = counts(case, 1.0);
        // Fewer than 1 in 20 of 40 is 1 at the most.
        assert!(found <= 1, "{}: {found} of {PAIRS}", case.name);
        all += found;
    }
    assert!(all * 40 < cases.len() * PAIRS as usize, "{all} in all");
}

#[test]
fn a_server_that_is_15_percent_slower_is_called_worse() {
    let at_8 = Case { name: "5,000/s on 8 workers", workers: 8, service_us: 1_000.0, ..FAST };
    // 4 s of 1,000/s at M/M/1 hold some hundred busy periods: that is all the luck there is.
    for (case, least) in [(CLOSED, 39), (FIXED, 40), (FAST, 39), (at_8, 39), (OPEN, 32)] {
        let (worse, _) = counts(case, 1.15);
        assert!(worse >= least, "{}: {worse} of {PAIRS}", case.name);
    }
}

fn many(case: Case, slowness: f64, seeds: std::ops::Range<u64>) -> Vec<Report> {
    seeds.map(|seed| report(run(case, slowness, seed))).collect()
}

fn named(reports: &[Report]) -> Vec<NamedReport<'_>> {
    reports.iter().map(|report| NamedReport { name: "x", report }).collect()
}

fn compared_all(a: &[Report], b: &[Report]) -> Comparison {
    compare(&named(a), &named(b), "1").unwrap()
}

#[test]
fn several_runs_measure_what_one_run_cannot() {
    let drifting = Case { drift: 0.05, seconds: 1.0, ..CLOSED };
    let (mut found, mut worse) = (0, 0);
    for i in 0..20 {
        let from = 100 * i;
        let a = many(drifting, 1.0, from..from + 5);
        let same = many(drifting, 1.0, from + 5..from + 10);
        let slower = many(drifting, 1.15, from + 10..from + 15);
        found += usize::from(compared_all(&a, &same).verdict != ComparisonVerdict::Same);
        worse += usize::from(compared_all(&a, &slower).verdict == ComparisonVerdict::Worse);
    }
    assert!(found <= 1, "{found} of 20 equal");
    assert!(worse >= 18, "{worse} of 20 slower");
}

#[test]
fn the_answer_says_by_how_much_and_in_what() {
    let a = report(run(FIXED, 1.0, 1));
    let slower = compared(&a, &report(run(FIXED, 1.15, 2)));
    assert_eq!(slower.verdict, ComparisonVerdict::Worse);
    assert!(slower.answer.starts_with("B is 1"), "{}", slower.answer);
    assert!(slower.answer.contains(" % slower ("), "{}", slower.answer);
    let throughput = row(&slower, "throughput_per_s");
    assert!(throughput.ratio.is_some_and(|r| (0.82..0.92).contains(&r)), "{throughput:?}");
    let [low, high] = throughput.ratio_ci95.unwrap();
    assert!(low < 0.87 && 0.87 < high && high < 1.0, "{throughput:?}");
    let errors = row(&slower, "error_percent");
    assert_eq!(errors.verdict, ComparisonVerdict::Same);
    assert_eq!((errors.p_value, errors.a, errors.b), (None, Some(0.0), Some(0.0)));
    let faster = compared(&report(run(FIXED, 1.15, 2)), &a);
    assert_eq!(faster.verdict, ComparisonVerdict::Better);
    assert!(faster.answer.contains(" % faster ("), "{}", faster.answer);
    let alike = compared(&a, &report(run(FIXED, 1.0, 3)));
    assert_eq!(alike.verdict, ComparisonVerdict::Same);
    let least = row(&alike, "p50_ns").smallest_seen_percent.unwrap();
    let starts = format!("No difference beyond chance; changes below {} in p50", percent(least));
    assert!(alike.answer.starts_with(&starts), "{}", alike.answer);
    assert!(alike.answer.contains("would not show. With 95 % confidence"), "{}", alike.answer);
    assert_eq!(alike.warnings, [] as [String; 0]);
}

#[test]
fn a_sweep_is_compared_level_by_level() {
    let sweep = |slowness: f64, seed: u64, users: &[u32]| {
        let trials = users.iter().map(|&n| {
            let mut trial = run(CLOSED, slowness, seed + u64::from(n));
            trial.label = format!("vusers={n}");
            trial.level = knee_load::spec::Level::Vusers(n);
            trial
        });
        Report { trials: trials.collect(), ..report(run(CLOSED, 1.0, 1)) }
    };
    let a = sweep(1.0, 0, &[1, 2, 4, 8]);
    let slower = compared(&a, &sweep(1.15, 50, &[2, 4, 8, 16]));
    assert_eq!(slower.verdict, ComparisonVerdict::Worse);
    let labels: Vec<&str> = slower.rows.iter().map(|r| r.label.as_str()).collect();
    assert!(labels.contains(&"vusers=2") && !labels.contains(&"vusers=1"), "{labels:?}");
    assert_eq!(
        slower.warnings,
        [
            "only A has vusers=1, which cannot be compared",
            "only B has vusers=16, which cannot be compared"
        ]
    );
    let found = (0..10).filter(|i| {
        let b = sweep(1.0, 1_000 + 100 * i, &[1, 2, 4, 8]);
        compared(&a, &b).verdict != ComparisonVerdict::Same
    });
    assert!(found.count() <= 1);
}

#[test]
fn what_stands_in_the_way_is_said() {
    let a = report(run(FIXED, 1.0, 1));
    let changed = |change: &dyn Fn(&mut Report)| {
        let mut b = report(run(FIXED, 1.15, 2));
        change(&mut b);
        compared(&a, &b)
    };
    let invalid = changed(&|b| {
        b.verdict = Verdict::Invalid;
        b.trials[0].verdict = Verdict::Invalid;
        b.trials[0].invalid_because = vec!["the generator stood still".to_owned()];
    });
    assert_eq!(invalid.verdict, ComparisonVerdict::Unknown);
    assert!(invalid.has_invalid);
    assert!(
        invalid.warnings[0].starts_with("B is INVALID and not judged"),
        "{:?}",
        invalid.warnings
    );
    assert!(invalid.warnings[0].ends_with("the generator stood still"));
    assert_eq!(row(&invalid, "p50_ns").because, "B is INVALID here");
    assert!(row(&invalid, "p50_ns").b.is_some(), "shown, not judged");

    let other_path = changed(&|b| {
        b.spec.insert("url".to_owned(), "http://b:81/search".into());
        b.spec.insert("seed".to_owned(), 7.into());
    });
    let warning = "A and B were not loaded alike, which may be all that differs: url (/ and \
                   /search)";
    assert_eq!(other_path.warnings, [warning]);
    assert_eq!(other_path.verdict, ComparisonVerdict::Worse, "compared all the same");

    let moved = changed(&|b| {
        b.trials[0].stationary = false;
        b.interrupted = true;
        b.host.kernel = "Linux 7".to_owned();
    });
    assert_eq!(moved.warnings.len(), 2, "{:?}", moved.warnings);

    let contended = changed(&|b| {
        b.trials[0].generator.busiest_worker_percent = 60.0;
        b.trials[0].generator.busiest_worker_waiting_percent = 8.0;
    });
    assert_eq!(contended.verdict, ComparisonVerdict::Unknown, "one run each tells nothing then");
    let least = row(&contended, "p50_ns").smallest_seen_percent.unwrap();
    let starts = "Could not tell whether A and B differ: changes below ";
    assert!(least > 25.0 && contended.answer.starts_with(starts), "{}", contended.answer);
    assert!(contended.answer.contains(&percent(least)), "{}", contended.answer);
    assert!(contended.warnings[0].contains("wait for a processor"));
}

#[test]
fn what_has_nothing_in_common_is_refused() {
    let a = report(run(FIXED, 1.0, 1));
    let mut b = a.clone();
    b.trials = Vec::new();
    let refused = compare(&named(&[a]), &named(&[b]), "1");
    assert!(refused.unwrap_err().starts_with("nothing in common to compare"));
    assert!(compare(&[], &[], "1").is_err());
}

/// A sweep at 8 and 16 users in which an operation costs the generator this processor time in µs.
fn sweep_of_cost(us: f64, busy_percent: f64) -> Report {
    let mut sweep = report(run_of_ten_users(1));
    sweep.command = Command::of(Kind::Sweep);
    sweep.conclusion = Conclusion::Sweep(SweepConclusion::default());
    let mut trial = sweep.trials.remove(0);
    trial.generator.busiest_worker_percent = busy_percent;
    trial.generator.busiest_worker_spin_percent = 0.0;
    for (users, factor) in [(8, 1.2), (16, 1.0)] {
        trial.label = format!("vusers={users}");
        trial.level = Level::Vusers(users);
        trial.generator.cpu_s_per_million_ops = Some(us * factor);
        sweep.trials.push(trial.clone());
    }
    sweep
}

#[test]
fn a_host_slower_than_in_earlier_sweeps_is_named() {
    let speed = |report: &Report| match &report.conclusion {
        Conclusion::Sweep(sweep) => sweep.earlier_host_speed,
        _ => None,
    };
    let earlier = [10.0, 10.4, 9.8].map(|us| sweep_of_cost(us, 80.0));
    let mut slower = sweep_of_cost(13.0, 80.0);
    assert!(has_host_speed(&slower));
    state_host_speed(&mut slower, &earlier);
    let stated = speed(&slower).expect("stated");
    assert!(stated.runs == 3 && (stated.speed * 1.3 - 1.0).abs() < 1e-9, "{stated:?}");
    assert!(stated.earlier[0] < 1.0 && stated.earlier[1] > 1.0, "{stated:?}");
    let finding = &slower.findings[0];
    assert_eq!(finding.code, "host_speed_differs");
    assert!(finding.text.contains("30 % more processor time"), "{}", finding.text);
    let mut faster = sweep_of_cost(8.0, 80.0);
    state_host_speed(&mut faster, &earlier);
    assert!(faster.findings[0].text.contains("less processor time"), "{:?}", faster.findings);

    // The nearest cases: the same speed, another load, another host, and a generator that sleeps.
    let mut same = sweep_of_cost(10.3, 80.0);
    state_host_speed(&mut same, &earlier);
    assert!(speed(&same).is_some() && same.findings.is_empty());
    let mut other_load = sweep_of_cost(13.0, 80.0);
    other_load.spec.insert("header".to_owned(), "A: b".into());
    let mut other_host = sweep_of_cost(13.0, 80.0);
    other_host.host.cpus += 1;
    for mut report in [other_load, other_host, sweep_of_cost(13.0, 20.0)] {
        state_host_speed(&mut report, &earlier);
        assert!(speed(&report).is_none() && report.findings.is_empty());
    }
    assert!(!has_host_speed(&sweep_of_cost(13.0, 20.0)));
    assert!(!has_host_speed(&report(run_of_ten_users(1))));
}

/// The same run on a host on which everything takes `factor` times as long.
pub(super) fn on_slower_host(mut trial: TrialReport, factor: f64) -> TrialReport {
    trial.throughput_per_s = trial.throughput_per_s.map(|x| x / factor);
    trial.throughput_ci95_per_s = trial.throughput_ci95_per_s.map(|ci| ci.map(|x| x / factor));
    for interval in &mut trial.intervals {
        interval.completed = (interval.completed as f64 / factor) as u64;
    }
    trial
}

#[test]
fn a_difference_that_the_host_explains_is_no_regression() {
    let busy = |mut trial: TrialReport, cost: f64| {
        trial.generator.busiest_worker_percent = 80.0;
        trial.generator.busiest_worker_spin_percent = 0.0;
        trial.generator.cpu_s_per_million_ops = Some(cost);
        report(trial)
    };
    let slower = || on_slower_host(run_of_ten_users(2), 1.3);
    let a = busy(run_of_ten_users(1), 10.0);
    let explained = compared(&a, &busy(slower(), 13.5));
    let throughput = row(&explained, "throughput_per_s");
    assert_eq!(throughput.verdict, ComparisonVerdict::Unknown, "{throughput:?}");
    assert!(throughput.because.contains("speed of the host differs by 35 %"));
    let says = |c: &Comparison| c.warnings.iter().any(|w| w.contains("the host was slower"));
    assert!(says(&explained), "{:?}", explained.warnings);
    // The nearest cases: the same speed, a speed that does not reach, and no speed known. In the
    // last a target answers later, so that the generator wakes up for each response.
    let same = compared(&a, &busy(slower(), 10.2));
    assert!(!says(&same));
    let waking = |mut trial: TrialReport, per_op: f64, cost: f64| {
        let per_s = per_op * trial.responses_per_s();
        trial.generator.woken_by_target_per_s = Some(per_s);
        busy(trial, cost)
    };
    let batched = || waking(run_of_ten_users(1), 0.4, 10.0);
    let alike = compared(&batched(), &waking(slower(), 0.42, 13.5));
    assert!(says(&alike), "{:?}", alike.warnings);
    let waits = compared(&batched(), &waking(slower(), 0.9, 13.5));
    assert!(!says(&waits), "{:?}", waits.warnings);
    let short = compared(&a, &busy(on_slower_host(run_of_ten_users(2), 1.9), 11.0));
    let mut asleep = slower();
    asleep.generator.busiest_worker_percent = 10.0;
    let unknown = compared(&a, &report(asleep));
    for comparison in [same, short, unknown, waits] {
        let throughput = row(&comparison, "throughput_per_s");
        assert_eq!(throughput.verdict, ComparisonVerdict::Worse, "{throughput:?}");
    }
}

/// Recovery of a station of one worker with this capacity, from an overload with retries.
fn recovery(capacity: Option<u32>, seed: u64) -> Report {
    let second = Nanos::from_secs(1);
    let rate = |per_s| Rate::per_second(per_s).unwrap();
    let load = Load::Open(OpenLoad {
        rate: rate(200),
        arrival: ArrivalLaw::Constant,
        connections_max: 100_000,
        in_flight_max: None,
    });
    let retry = RetryPolicy { retries_max: 3, ..RetryPolicy::ONCE };
    let phases = RecoverPhases { before: second, trigger: second, after: Nanos::from_secs(8) };
    let base = TrialSpec {
        timeout: Nanos::from_millis(100),
        interval: Nanos::from_millis(250),
        retry: Some(retry),
        seed,
        ..trial(load, phases.length())
    };
    let mut experiment = Recover::new(RecoverSpec {
        base,
        follows_fall: false,
        phases,
        rate: rate(200),
        trigger: Trigger::Load(rate(800)),
        explains: false,
        hysteresis: None,
        rest: Nanos::ZERO,
    });
    let world = World { capacity, ..World::station(1, Law::Exp(Nanos::from_millis(2))) };
    let run = |spec: &TrialSpec| {
        Ok::<_, Infallible>(ControlFlow::Continue(assess(&simulate(spec, &world).trial)))
    };
    let Ok(mut conducted) = conduct(&mut experiment, run);
    Report {
        command: Command::of(Kind::Recover),
        conclusion: Conclusion::Recover(conducted.conclusion),
        ..report(conducted.trials.swap_remove(0))
    }
}

#[test]
fn recoveries_are_compared_by_their_ends() {
    let stuck = [1, 2].map(|seed| recovery(None, seed));
    let back = [3, 4].map(|seed| recovery(Some(20), seed));
    let mended = compared(&stuck[0], &back[0]);
    assert_eq!(mended.verdict, ComparisonVerdict::Better, "{mended:#?}");
    let unserved = row(&mended, "unserved_at_the_end_percent");
    assert!(unserved.a.unwrap() > 90.0 && unserved.b.unwrap() < 5.0, "{unserved:?}");
    for pair in [&stuck, &back] {
        let same = compared(&pair[0], &pair[1]);
        assert!(same.rows.iter().all(|row| !row.significant), "{same:#?}");
    }
    assert_eq!(compared(&back[0], &stuck[0]).verdict, ComparisonVerdict::Worse);
}

/// A lower bound decides only that its side has more.
#[test]
fn a_throughput_that_the_generator_limited_is_a_bound_in_comparisons() {
    let limited = |mut trial: TrialReport, is_limited: bool| {
        if is_limited {
            trial.throughput_is = RateCertainty::AtLeast;
        }
        report(trial)
    };
    for (slow_is_limited, fast_is_limited, is_decided) in
        [(false, false, true), (false, true, true), (true, false, false), (true, true, false)]
    {
        let slow = limited(on_slower_host(run_of_ten_users(1), 1.9), slow_is_limited);
        let fast = limited(run_of_ten_users(2), fast_is_limited);
        for (a, b) in [(&slow, &fast), (&fast, &slow)] {
            let comparison = compared(a, b);
            let throughput = row(&comparison, "throughput_per_s");
            let is_unknown = throughput.verdict == ComparisonVerdict::Unknown;
            assert_eq!(is_unknown, !is_decided, "{throughput:?}");
            assert!(throughput.a.is_some() && throughput.b.is_some());
            let says = throughput.because.contains("the generator was the limit");
            assert_eq!(says, !is_decided, "{throughput:?}");
        }
    }
}
