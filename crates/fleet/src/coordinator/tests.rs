//! Shares and merges, without a network: in virtual time.

mod crowd;

use super::collect::JoinedTrial;
use crate::interval_share::IntervalShare;
use crate::parcel::{outline, pack};
use crate::protocol::DeliveredPart;
use bytes::Bytes;
use knee_load::arrival::{ArrivalLaw, ArrivalProcess, Arrivals};
use knee_load::measure::{
    Completion, GeneratorUse, IntervalMerger, IntervalPart, Measurement, Op, Outcome, Recorder,
    RecorderConfig, Trial, Window,
};
use knee_load::spec::{
    Body, Endpoint, EngineOptions, HttpRequest, Level, Load, OpenLoad, Pick, Rate, Share, Target,
    TrialSpec, Url, WorkerRange,
};
use knee_load::time::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

fn spec(arrival: ArrivalLaw) -> TrialSpec {
    let url = Url::parse("http://127.0.0.1:80/path?key=s3cret").unwrap();
    let headers = vec![("Authorization".to_owned(), "Bearer s3cret".to_owned())];
    let mut request = HttpRequest::new("POST", &url, headers, Vec::new(), 1).unwrap();
    request.body = Body::from(b"s3cret".to_vec());
    let endpoint = Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: 80 };
    let rate = Rate::per_second(2_000).unwrap();
    TrialSpec {
        label: "a trial".to_owned(),
        level: Level::RatePerS(2_000.0),
        load: Load::Open(OpenLoad { rate, arrival, connections_max: 100, in_flight_max: None }),
        target: Target::new(endpoint, vec![request], Pick::InOrder, true).unwrap(),
        warmup: Nanos::from_millis(200),
        duration: Nanos::from_secs(3),
        operations_max: None,
        timeout: Nanos::from_secs(1),
        retry: None,
        sentinel: None,
        connect_timeout: Nanos::from_secs(1),
        interval: Nanos::from_millis(500),
        seed: 7,
        engine: EngineOptions::default(),
    }
}

/// A worker in virtual time, in front of a target whose response time depends on the time.
struct Simulated {
    window: Window,
    arrivals: Arrivals,
    next: Option<Nanos>,
    /// When each operation under way ends, and when it was intended.
    under_way: BinaryHeap<Reverse<(Nanos, Nanos)>>,
    recorder: Recorder,
}

impl Simulated {
    fn new(spec: &TrialSpec, share: Share) -> Simulated {
        let Load::Open(load) = &spec.load else {
            unreachable!("an open loop");
        };
        let window = Window { start: spec.warmup, end: spec.window_end() };
        let recorder = Recorder::new(RecorderConfig {
            window,
            interval: spec.interval,
            open_loop: true,
            of_sessions: false,
            starts_max: 4_000_000 / share.of as usize,
            targets: 1,
        });
        let mut arrivals = load.arrivals(share, spec.seed);
        Simulated {
            window,
            next: arrivals.next(),
            arrivals,
            under_way: BinaryHeap::new(),
            recorder,
        }
    }

    /// Goes on until `now`; the intervals that are over then.
    fn go_on(&mut self, now: Nanos) -> Vec<IntervalPart> {
        loop {
            let begins = self.next.filter(|&at| at < self.window.end);
            let ends = self.under_way.peek().map(|Reverse((at, _))| *at);
            let first = begins.into_iter().chain(ends).min();
            let Some(at) = first.filter(|&at| at < now) else {
                break;
            };
            let lane = Op::ANY_LANE;
            if ends == Some(at) {
                let Some(Reverse((_, intended))) = self.under_way.pop() else {
                    break;
                };
                let ended = Completion::at_once(Op { intended, lane }, at, Outcome::Ok);
                let ended = ended.exchanged(intended, intended);
                self.recorder.on_completion(&ended);
            } else {
                let takes = Nanos(50_000 + at.0.wrapping_mul(2_654_435_761) % 3_000_000);
                self.recorder.on_start(Op { intended: at, lane }, at);
                self.under_way.push(Reverse((at + takes, at)));
                self.next = self.arrivals.next();
            }
        }
        std::iter::from_fn(|| self.recorder.roll(now)).collect()
    }

    /// All that it measures, with the intervals that were not handed out yet.
    fn finish(mut self, timeout: Nanos) -> (Measurement, Vec<IntervalPart>) {
        let end = self.window.end + timeout;
        let mut parts = self.go_on(end);
        parts.extend(self.recorder.roll_all(end));
        (self.recorder.finish(end), parts)
    }
}

/// What one worker measures.
fn measured(spec: &TrialSpec, share: Share) -> (Measurement, Vec<IntervalPart>) {
    Simulated::new(spec, share).finish(spec.timeout)
}

/// What an agent delivers of that.
fn delivered_by(
    (agent, crew): (String, WorkerRange),
    spec: &TrialSpec,
    measurement: Measurement,
    parts: Vec<IntervalShare>,
) -> DeliveredPart {
    DeliveredPart { agent, crew, begun_late_ns: 0, trial: trial_of(spec, measurement), parts }
}

fn trial_of(spec: &TrialSpec, measurement: Measurement) -> Trial {
    Trial {
        spec: outline(spec),
        measurement,
        generator: GeneratorUse::default(),
        kernel: Default::default(),
        observed: None,
        agents: Vec::new(),
        interrupted: false,
    }
}

/// What agents with these workers would deliver.
fn delivered(spec: &TrialSpec, crews: &[WorkerRange]) -> Trial {
    let mut joined = JoinedTrial::default();
    for (number, &crew) in crews.iter().enumerate() {
        let mut measurements = Vec::new();
        let mut merger = IntervalMerger::new(crew.workers as usize);
        let mut whole = Vec::new();
        for nth in 0..crew.workers {
            let (measurement, parts) = measured(spec, crew.share(nth));
            measurements.push(measurement);
            whole.extend(
                parts
                    .into_iter()
                    .filter_map(|p| merger.add(p))
                    .map(|(_, sum)| IntervalShare::new(&sum)),
            );
        }
        let measurement = measurements.into_iter().reduce(|mut sum, part| {
            sum.merge(part);
            sum
        });
        let agent = (format!("a{number}"), crew);
        let delivered = delivered_by(agent, spec, measurement.unwrap(), whole);
        joined.add(spec, &delivered.agent, crew, &pack(&delivered).unwrap()).unwrap();
    }
    joined.finish().unwrap()
}

/// All that was measured, to be compared as a whole.
fn exact_json(measurement: &Measurement) -> serde_json::Value {
    serde_json::to_value(measurement).unwrap()
}

#[test]
fn four_agents_are_bit_by_bit_the_sum_of_their_workers() {
    for arrival in [ArrivalLaw::Constant, ArrivalLaw::Poisson] {
        let spec = spec(arrival);
        let crews = WorkerRange::deal(&[2, 1, 1, 4], u32::MAX);
        let trial = delivered(&spec, &crews);
        let mut one = Vec::new();
        let mut merger = IntervalMerger::new(8);
        for index in 0..8 {
            let (measurement, parts) = measured(&spec, Share { index, of: 8 });
            one.push(measurement);
            for part in parts {
                merger.add(part);
            }
        }
        let mut one = one.into_iter().reduce(|mut sum, part| {
            sum.merge(part);
            sum
        });
        let one = one.as_mut().unwrap();
        one.intervals = merger.finish();
        assert_eq!(exact_json(&trial.measurement), exact_json(one));
        assert!(trial.measurement.outcomes.total() > 5_000);
        let each: u64 = trial.agents.iter().map(|a| a.attempted).sum();
        assert_eq!(each, trial.measurement.outcomes.total());
    }
}

#[test]
fn a_constant_rate_dealt_to_agents_is_the_schedule_of_one() {
    let spec = spec(ArrivalLaw::Constant);
    let trial = delivered(&spec, &WorkerRange::deal(&[1, 1, 1, 1], u32::MAX));
    let (one, _) = measured(&spec, Share::WHOLE);
    assert_eq!(trial.measurement.response, one.response);
    assert_eq!(trial.measurement.starts, one.starts);
    assert_eq!(trial.measurement.outcomes, one.outcomes);
}

#[test]
fn an_agent_that_is_lost_is_named_and_the_others_count() {
    let spec = spec(ArrivalLaw::Constant);
    let crews = WorkerRange::deal(&[1, 1], u32::MAX);
    let (measurement, parts) = measured(&spec, crews[0].share(0));
    let parts = parts.iter().map(IntervalShare::new).collect();
    let delivered = delivered_by(("here".to_owned(), crews[0]), &spec, measurement, parts);
    let mut joined = JoinedTrial::default();
    joined.add_lost("there", crews[1], "no sign of it");
    joined.add(&spec, "here", crews[0], &pack(&delivered).unwrap()).unwrap();
    let wrong = joined.add(&spec, "odd", crews[1], &[Bytes::from_static(b"odd")]).unwrap_err();
    assert!(wrong.starts_with("its result cannot be read"), "{wrong}");
    let trial = joined.finish().unwrap();
    assert_eq!(Vec::from_iter(trial.agents.iter().map(|a| a.agent.as_str())), ["here", "there"]);
    let report = knee_core::trial::assess::assess(&trial);
    assert_eq!(report.attempted, 3_000);
    let because = &report.invalid_because[0];
    assert!(because.contains("agent there is lost (no sign of it)"), "{because}");
    // Where nobody delivered there is no trial.
    let mut none = JoinedTrial::default();
    none.add_lost("there", crews[1], "no sign of it");
    let none = none.finish().unwrap_err().to_string();
    assert!(none.contains("agent there: no sign of it"), "{none}");
}

#[test]
fn what_is_stored_has_no_secrets() {
    let spec = spec(ArrivalLaw::Constant);
    let told = serde_json::to_string(&spec).unwrap();
    assert!(told.contains("s3cret"));
    let stored = serde_json::to_string(&outline(&spec)).unwrap();
    assert!(!stored.contains("s3cret"), "{stored}");
    let body = serde_json::to_string(&b"s3cret".to_vec()).unwrap();
    assert!(!stored.contains(body.trim_matches(['[', ']'])), "{stored}");
    assert_eq!(outline(&spec).target.requests[0].path, "/path");
}
