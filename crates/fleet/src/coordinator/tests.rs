//! Shares and merges, without a network: in virtual time.

use super::collect::join;
use crate::outline::outline;
use crate::parcel::pack;
use crate::words::Delivered;
use knee_core::arrival::{ArrivalLaw, ArrivalProcess};
use knee_core::measure::{
    Completion, GeneratorUse, IntervalMerger, IntervalPart, Measurement, Op, Outcome, Recorder,
    RecorderConfig, Trial, Window,
};
use knee_core::spec::{
    Body, Crew, Endpoint, EngineOptions, HttpRequest, HttpTarget, Level, Load, OpenLoad, Pick,
    Rate, Share, TrialSpec, Url,
};
use knee_core::time::Nanos;

fn spec(arrival: ArrivalLaw) -> TrialSpec {
    let url = Url::parse("http://127.0.0.1:80/path?key=s3cret").unwrap();
    let headers = vec![("Authorization".to_owned(), "Bearer s3cret".to_owned())];
    let mut request = HttpRequest::new("POST", &url, headers, Vec::new(), 1).unwrap();
    request.body = Body::from(b"s3cret".to_vec());
    let endpoint = Endpoint::Tcp {
        host: "127.0.0.1".to_owned(),
        port: 80,
    };
    let rate = Rate::per_second(2_000).unwrap();
    TrialSpec {
        label: "a trial".to_owned(),
        level: Level::RatePerS(2_000.0),
        load: Load::Open(OpenLoad {
            rate,
            arrival,
            connections_max: 100,
            in_flight_max: None,
        }),
        target: HttpTarget::new(endpoint, vec![request], Pick::InOrder, true).unwrap(),
        warmup: Nanos::from_millis(200),
        duration: Nanos::from_secs(3),
        operations_max: None,
        timeout: Nanos::from_secs(1),
        connect_timeout: Nanos::from_secs(1),
        interval: Nanos::from_millis(500),
        seed: 7,
        engine: EngineOptions::default(),
    }
}

/// What one worker measures of a target that takes as long as the moment asks of it.
fn measured(spec: &TrialSpec, share: Share) -> (Measurement, Vec<IntervalPart>) {
    let Load::Open(load) = &spec.load else {
        unreachable!("an open loop");
    };
    let window = Window {
        start: spec.warmup,
        end: spec.window_end(),
    };
    let mut recorder = Recorder::new(RecorderConfig {
        window,
        interval: spec.interval,
        open_loop: true,
        counts_whole: true,
        of_sessions: false,
        starts_max: 1_000_000,
        targets: 1,
    });
    let mut arrivals = load.arrivals(share, spec.seed);
    let mut events = Vec::new();
    while let Some(intended) = arrivals.next().filter(|&t| t < window.end) {
        let op = Op {
            intended,
            lane: Op::ANY_LANE,
        };
        let takes = Nanos(50_000 + intended.0.wrapping_mul(2_654_435_761) % 3_000_000);
        events.push((intended, None, op));
        events.push((intended + takes, Some(intended), op));
    }
    events.sort_by_key(|event| event.0);
    for (now, begun, op) in events {
        match begun {
            None => recorder.on_start(op, now),
            Some(begun) => {
                let ended = Completion::at_once(op, now, Outcome::Ok);
                recorder.on_completion(&ended.exchanged(begun, begun));
            }
        }
    }
    let end = window.end + spec.timeout;
    let parts = recorder.roll_all(end);
    (recorder.finish(end), parts)
}

/// What agents with so many workers each would deliver.
fn delivered(spec: &TrialSpec, crews: &[Crew]) -> Trial {
    let fates = crews.iter().enumerate().map(|(number, &crew)| {
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
                    .map(|(_, sum)| sum),
            );
        }
        let measurement = measurements.into_iter().reduce(|mut sum, part| {
            sum.merge(part);
            sum
        });
        let delivered = Delivered {
            agent: format!("a{number}"),
            crew,
            begun_late_ns: 0,
            trial: Trial {
                spec: outline(spec),
                measurement: measurement.unwrap(),
                generator: GeneratorUse::default(),
                kernel: Default::default(),
                observed: None,
                agents: Vec::new(),
                interrupted: false,
            },
            parts: whole,
        };
        (delivered.agent.clone(), crew, Ok(pack(&delivered).unwrap()))
    });
    join(spec, fates).unwrap()
}

/// All that was measured, to be compared as a whole.
fn exact_json(measurement: &Measurement) -> serde_json::Value {
    serde_json::to_value(measurement).unwrap()
}

#[test]
fn four_agents_are_bit_by_bit_the_sum_of_their_workers() {
    for arrival in [ArrivalLaw::Constant, ArrivalLaw::Poisson] {
        let spec = spec(arrival);
        let crews = Crew::deal(&[2, 1, 1, 4], u32::MAX);
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
    let trial = delivered(&spec, &Crew::deal(&[1, 1, 1, 1], u32::MAX));
    let (one, _) = measured(&spec, Share::WHOLE);
    assert_eq!(trial.measurement.response, one.response);
    assert_eq!(trial.measurement.starts, one.starts);
    assert_eq!(trial.measurement.outcomes, one.outcomes);
}

#[test]
fn an_agent_that_is_lost_is_named_and_the_others_count() {
    let spec = spec(ArrivalLaw::Constant);
    let crews = Crew::deal(&[1, 1], u32::MAX);
    let (measurement, parts) = measured(&spec, crews[0].share(0));
    let delivered = Delivered {
        agent: "here".to_owned(),
        crew: crews[0],
        begun_late_ns: 0,
        trial: Trial {
            spec: outline(&spec),
            measurement,
            generator: GeneratorUse::default(),
            kernel: Default::default(),
            observed: None,
            agents: Vec::new(),
            interrupted: false,
        },
        parts,
    };
    let lost = || ("gone".to_owned(), crews[1], Err("no sign of it".to_owned()));
    let here = ("here".to_owned(), crews[0], Ok(pack(&delivered).unwrap()));
    let trial = join(&spec, [here, lost()].into_iter()).unwrap();
    let report = knee_core::trial::assess::assess(&trial);
    assert_eq!(report.attempted, 3_000);
    let because = &report.invalid_because[0];
    assert!(
        because.contains("agent gone is lost (no sign of it)"),
        "{because}"
    );
    // Where nobody delivered there is no trial.
    let none = join(&spec, [lost()].into_iter()).unwrap_err().to_string();
    assert!(none.contains("agent gone: no sign of it"), "{none}");
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
