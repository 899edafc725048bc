//! Comparisons of sessions whose steps are served by one queue, one of them slower in B. All seeds
//! are fixed.

use crate::compare::report::{Comparison, ComparisonRow, ComparisonVerdict};
use crate::compare::tests::report;
use crate::compare::{NamedReport, compare};
use crate::experiment::sweep::table::goodput_ci95;
use crate::trial::assess::assess;
use knee_load::measure::{
    Completion, Histogram, Measurement, Op, Outcome, Recorder, RecorderConfig, SessionMeasured,
    SessionsMeasured, Trial, Window,
};
use knee_load::rng;
use knee_load::spec::{Load, Pause};
use knee_load::time::Nanos;
use knee_scenario::{ScenarioInputs, parse_scenario};
use knee_sim::fixture;

const FILE: &str = "target: http://a\nsessions:\n  buyer:\n    steps:\n      \
    - {get: /login, name: login}\n";
const ITEM: &str = "      - {get: /items, name: item}\n";

/// What a scenario here may ask for.
struct Nothing;

impl ScenarioInputs for Nothing {
    fn file(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Err("there is none".to_owned())
    }

    fn program(&mut self, _: &str) -> Result<(String, String), String> {
        Err("cannot be started: there is none".to_owned())
    }

    fn variable(&mut self, _: &str) -> Option<String> {
        None
    }
}

/// A server of one worker that is busy for 0.6 of the time and serves one step after another.
#[derive(Clone, Copy)]
struct Case {
    /// By how much the responses of the first step take longer, beside the queue.
    login: f64,
    /// The share of the last step's operations that fail.
    failing: f64,
    /// How many steps a session has, of three.
    steps: usize,
    seed: u64,
}

const ALIKE: Case = Case { login: 1.0, failing: 0.0, steps: 3, seed: 0 };

/// The mean time of a step beside the queue, in seconds.
const STEPS: [f64; 3] = [0.010, 0.002, 0.002];
const SERVICE_S: f64 = 0.0006;
const GAP_S: f64 = 0.001;
const SECONDS: f64 = 6.0;

fn seconds(s: f64) -> Nanos {
    Nanos((s * 1e9) as u64)
}

/// The operations, in the order in which they end: when it was intended, how long it took, its
/// step.
fn operations(case: Case) -> Vec<(f64, f64, usize)> {
    let mut rng = rng::stream(case.seed, 7);
    let mut exp = |mean: f64| mean * rng::exp1(&mut rng);
    let (mut at, mut free_at, mut all) = (0.0, 0.0_f64, Vec::new());
    for number in 0.. {
        at += exp(GAP_S);
        if at >= SECONDS {
            break;
        }
        let step = number % case.steps;
        free_at = free_at.max(at) + exp(SERVICE_S);
        let slower = if step == 0 { case.login } else { 1.0 };
        let whole = free_at - at + exp(STEPS[step] * slower);
        all.push((at, whole, step));
    }
    all.sort_by(|(x, took, _), (y, longer, _)| (x + took).total_cmp(&(y + longer)));
    all
}

fn trial(case: Case) -> Trial {
    let file = FILE.to_owned() + &ITEM.repeat(case.steps - 1);
    let scenario = parse_scenario(file.as_bytes(), "f", &mut Nothing).unwrap();
    let load = Load::Closed { vusers: 10, pause: Pause::NONE, stages: Vec::new() };
    let mut spec = fixture::trial(load, seconds(SECONDS));
    spec.interval = Nanos::from_millis(500);
    spec.target.requests = scenario.requests;
    spec.target.sessions = Some(scenario.plan.into());
    let window = Window { start: Nanos::ZERO, end: seconds(SECONDS) };
    let mut recorder = Recorder::new(RecorderConfig {
        window,
        interval: spec.interval,
        open_loop: false,
        of_sessions: true,
        starts_max: 0,
        targets: case.steps,
    });
    let mut rng = rng::stream(case.seed, 8);
    let (mut time, mut session) = (Histogram::default(), [0.0; 3]);
    let mut failed = 0;
    let last = case.steps - 1;
    for (at, took, step) in operations(case) {
        let op = Op { intended: seconds(at), lane: 0 };
        let fails = step == last && rng::unit(&mut rng) < case.failing;
        let outcome = if fails { Outcome::Unexpected } else { Outcome::Ok };
        let ended = Completion {
            target: step as u32,
            ..Completion::at_once(op, seconds(at + took), outcome)
                .exchanged(op.intended, op.intended)
        };
        recorder.on_completion(&ended);
        session[step] = took;
        if step == last && fails {
            failed += 1;
        } else if step == last {
            time.record(seconds(session.iter().sum()));
            recorder.on_session(&Completion { target: 0, ..ended });
        }
    }
    let mut measurement = recorder.finish(seconds(SECONDS));
    measurement.sessions = Some(SessionsMeasured {
        kinds: vec![SessionMeasured {
            completed: time.count(),
            failed,
            unanswered: failed / 2,
            time,
            ..SessionMeasured::default()
        }],
        ..SessionsMeasured::default()
    });
    Trial {
        spec,
        measurement,
        generator: Default::default(),
        kernel: Default::default(),
        observed: None,
        agents: Vec::new(),
        interrupted: false,
    }
}

fn compared(a: Case, b: Case) -> Comparison {
    let [a, b] = [a, b].map(|case| report(assess(&trial(case))));
    let named = |report| NamedReport { name: "x", report };
    compare(&[named(&a)], &[named(&b)], "1").unwrap()
}

fn row<'a>(comparison: &'a Comparison, metric: &str, label: &str) -> &'a ComparisonRow {
    let is_it = |r: &&ComparisonRow| r.metric == metric && r.label == label;
    comparison.rows.iter().find(is_it).unwrap()
}

#[test]
fn each_step_and_each_kind_of_session_has_rows() {
    let same = compared(ALIKE, Case { seed: 1, ..ALIKE });
    let steps: Vec<_> = same.rows.iter().filter_map(|r| r.step.as_deref()).collect();
    let each = |name: &'static str| [name; 5];
    let all = [each("login"), each("item"), each("item (2)")].concat();
    assert_eq!(steps, all);
    let metrics = |of: fn(&&ComparisonRow) -> bool| -> Vec<String> {
        let rows = same.rows.iter().filter(of);
        rows.map(|r| r.metric.clone()).collect()
    };
    assert_eq!(
        metrics(|r| r.step.as_deref() == Some("item")),
        ["rate_per_s", "p50_ns", "p95_ns", "p99_ns", "error_percent"]
    );
    assert_eq!(
        metrics(|r| r.session.as_deref() == Some("buyer")),
        ["session_p50_ns", "session_p95_ns", "session_p99_ns", "failed_sessions_percent"]
    );
    let rate = row(&same, "rate_per_s", "login");
    assert!(rate.a.is_some_and(|a| (300.0..370.0).contains(&a)) && !rate.matters);
    assert!(row(&same, "p50_ns", "login").p_value.is_some());
}

#[test]
fn a_single_step_has_rows_like_any_other() {
    let alone = Case { steps: 1, ..ALIKE };
    let same = compared(alone, Case { seed: 1, ..alone });
    let steps: Vec<_> = same.rows.iter().filter_map(|r| r.step.as_deref()).collect();
    assert_eq!(steps, ["login"; 5]);
    assert!(row(&same, "p95_ns", "login").p_value.is_some());
    assert!(row(&same, "session_p50_ns", "buyer").p_value.is_some());
}

#[test]
fn sessions_that_came_to_their_end_have_a_rate_with_an_interval() {
    let measured = trial(ALIKE);
    let assessed = assess(&measured);
    let sessions = assessed.sessions().unwrap();
    let per_s = sessions.completed_per_s.unwrap();
    let [low, high] = sessions.completed_ci95_per_s.unwrap();
    assert!(low < per_s && per_s < high, "{low} {per_s} {high}");
    // Of 2,000 that come at random, a twentieth would be four standard errors.
    assert!(high - low < 0.1 * per_s, "{low} {high}");
    assert_eq!(goodput_ci95(&assessed), Some([low, high]));
    // Two workers have seen twice as many.
    let count = |of: &Measurement| of.completed_sessions.response_count.iter().sum::<u64>();
    let mut merged = measured.measurement.clone();
    merged.merge(measured.measurement.clone());
    assert_eq!(count(&merged), 2 * count(&measured.measurement));
}

#[test]
fn only_sessions_that_had_a_response_count_as_answered() {
    let failing = Case { failing: 0.2, ..ALIKE };
    let report = assess(&trial(failing));
    let sessions = report.sessions().unwrap();
    let answered = sessions.answered_per_s.unwrap();
    let unanswered = (sessions.kinds[0].failed / 2) as f64 / SECONDS;
    assert!((sessions.ended_per_s.unwrap() - answered - unanswered).abs() < 1e-9);
    assert_eq!(report.responses_per_s(), answered);
}

#[test]
fn a_slower_step_is_named() {
    let b = Case { login: 1.6, seed: 1, ..ALIKE };
    let slower = compared(ALIKE, b);
    assert_eq!(slower.verdict, ComparisonVerdict::Worse);
    let login = row(&slower, "p50_ns", "login");
    assert_eq!(login.verdict, ComparisonVerdict::Worse, "{login:#?}");
    let item = row(&slower, "p50_ns", "item");
    assert_eq!(item.verdict, ComparisonVerdict::Same, "{item:#?}");
    let session = row(&slower, "session_p50_ns", "buyer");
    assert_eq!(session.verdict, ComparisonVerdict::Worse, "{session:#?}");
    assert!(slower.answer.contains("at login"), "{}", slower.answer);
}

#[test]
fn a_step_that_fails_is_named_and_so_are_its_sessions() {
    let b = Case { failing: 0.05, seed: 1, ..ALIKE };
    let failing = compared(ALIKE, b);
    let verdict = |metric, label| row(&failing, metric, label).verdict;
    assert_eq!(verdict("error_percent", "item (2)"), ComparisonVerdict::Worse);
    assert_eq!(verdict("error_percent", "item"), ComparisonVerdict::Same);
    assert_eq!(verdict("failed_sessions_percent", "buyer"), ComparisonVerdict::Worse);
}

#[test]
fn of_equals_fewer_than_1_pair_in_20_is_called_different() {
    let pair = |i: u64| {
        let a = Case { seed: 2 * i + 10, ..ALIKE };
        compared(a, Case { seed: 2 * i + 11, ..a })
    };
    let found: Vec<u64> = (0..40).filter(|i| pair(*i).rows.iter().any(|r| r.significant)).collect();
    assert!(found.len() <= 1, "{found:?}");
}

#[test]
fn plain_operations_have_no_rows_of_steps() {
    let mut a = report(assess(&trial(ALIKE)));
    if let crate::trial::detail::Detail::Http(http) = &mut a.trials[0].detail {
        http.sessions = None;
    }
    let named = NamedReport { name: "x", report: &a };
    let same = compare(&[named], &[named], "1").unwrap();
    assert!(same.rows.iter().all(|r| r.label.is_empty()));
}
