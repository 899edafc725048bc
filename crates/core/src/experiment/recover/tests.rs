//! Services in virtual time, before, during and after an overload.

mod queues;
mod theory;

use super::plan::Change;
use super::report::RecoveryVerdict::{Crashed, Degraded, Recovered, Recovering, Stuck};
use super::*;
use crate::experiment::{Conducted, EndReason, conduct};
use crate::report::contradictions::assert_consistent;
use crate::trial::assess::assess;
use crate::trial::report::Verdict;
use knee_load::law::Law;
use knee_load::spec::{ArrivalLaw, Backoff, Jitter, Load, OpenLoad, RetryCauses, RetryPolicy};
use knee_sim::fixture::trial;
use knee_sim::{World, simulate};
use std::convert::Infallible;
use std::ops::ControlFlow;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// Users with a timeout of 200 ms at this base rate, and a trigger of three times that.
fn spec(per_s: u64, retries_max: u32, budget: Option<f64>) -> RecoverSpec {
    let rate = Rate::per_second(per_s).unwrap();
    let load = Load::Open(OpenLoad {
        rate,
        arrival: ArrivalLaw::Constant,
        connections_max: 1_000_000,
        in_flight_max: None,
    });
    let retry = RetryPolicy {
        retries_max,
        backoff: Backoff::Exp(MS(50), MS(500)),
        jitter: Jitter::Full,
        budget,
        causes: RetryCauses::DEFAULT,
    };
    let phases = RecoverPhases { before: MS(5_000), trigger: MS(5_000), after: MS(20_000) };
    let base = TrialSpec {
        timeout: MS(200),
        warmup: MS(1_000),
        interval: MS(250),
        retry: Some(retry),
        ..trial(load, phases.length())
    };
    let trigger = Trigger::Load(Rate::per_second(3 * per_s).unwrap());
    RecoverSpec {
        base,
        phases,
        follows_fall: false,
        rate,
        trigger,
        explains: false,
        hysteresis: None,
        rest: MS(20_000),
    }
}

/// A station of one worker that serves 500/s, with this capacity.
fn world(capacity: Option<u32>) -> World {
    World { capacity, ..World::station(1, Law::Exp(MS(2))) }
}

fn conducted(spec: RecoverSpec, world: &World) -> Conducted<TrialReport, RecoverConclusion> {
    let run = |spec: &TrialSpec| {
        Ok::<_, Infallible>(ControlFlow::Continue(assess(&simulate(spec, world).trial)))
    };
    let Ok(conducted) = conduct(&mut Recover::new(spec), run);
    conducted
}

#[test]
fn retries_keep_a_service_down_that_carried_its_load() {
    let found = conducted(spec(200, 3, None), &world(None));
    let c = &found.conclusion;
    assert_eq!(found.verdict, Verdict::Valid, "{:?}", found.trials[0].invalid_because);
    assert_eq!(c.verdict, Some(Stuck), "{c:?}");
    assert!(c.amplification.unwrap() > 3.5, "{c:?}");
    assert!(c.after.goodput_per_s < 0.1 * c.base.goodput_per_s, "{c:?}");
    assert!(found.findings.iter().any(|f| f.is(findings::METASTABLE)));
    assert_eq!((c.recovery_ns, c.counterfactuals.len()), (None, 0));
}

#[test]
fn budget_bound_and_patience_let_it_recover() {
    for (name, spec, capacity) in [
        ("a retry budget", spec(200, 3, Some(0.1)), None),
        ("no retries", spec(200, 0, None), None),
        ("a bounded queue", spec(200, 3, None), Some(20)),
    ] {
        let found = conducted(spec, &world(capacity));
        let c = &found.conclusion;
        assert_eq!(c.verdict, Some(Recovered), "{name}: {c:?}");
        assert!(c.recovery_ns.unwrap() < 19_000_000_000, "{name}: {c:?}");
        assert!(c.failed_requests > 100, "{name}: {c:?}");
        assert!(!found.findings.iter().any(|f| f.is(findings::METASTABLE)), "{name}");
        assert_eq!(found.trials[0].requests().unwrap().recovery_ns, c.recovery_ns);
    }
}

#[test]
fn explanation_finds_that_a_budget_helps() {
    let found = conducted(RecoverSpec { explains: true, ..spec(200, 3, None) }, &world(None));
    let c = &found.conclusion;
    let verdict = |change: Change| {
        let row = c.counterfactuals.iter().find(|row| row.change == change.words());
        row.and_then(|row| row.verdict)
    };
    assert_eq!(verdict(Change::NoRetries), Some(Recovered), "{c:?}");
    assert_eq!(verdict(Change::RetryBudget), Some(Recovered), "{c:?}");
    assert_eq!(verdict(Change::LowerLoad), Some(Stuck), "{c:?}");
    assert!(c.answer.contains("it recovers in"), "{}", c.answer);
}

/// After the first trial the queue takes about 30 s to run empty.
#[test]
fn too_short_a_rest_becomes_longer() {
    let rest = MS(2_000);
    let found = conducted(RecoverSpec { explains: true, rest, ..spec(200, 3, None) }, &world(None));
    let rows = &found.conclusion.counterfactuals;
    assert_eq!(rows.len(), 4, "{rows:?}");
    // In virtual time each trial finds the station idle, whatever was before it.
    assert!(rows.iter().all(|row| row.verdict.is_some()), "{rows:?}");
    let warmup = |carried: [bool; 3]| {
        let mut past = vec![found.trials[0].clone()];
        for is_carried in carried {
            let mut trial = found.trials[1].clone();
            if !is_carried {
                let requests = trial.requests_mut().unwrap();
                requests.intervals.iter_mut().for_each(|interval| interval.good = 0);
            }
            past.push(trial);
        }
        let mut policy = Recover::new(RecoverSpec { explains: true, rest, ..spec(200, 3, None) });
        match policy.next(&past) {
            NextTrial::Run(spec) => (spec.label.clone(), spec.warmup.0 / 1_000_000_000),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(warmup([true, true, true]), ("with three quarters of the base load".into(), 3));
    assert_eq!(warmup([false, true, false]), ("with a retry budget of 10 %".into(), 9));
    // What does not come to rest is not waited for any longer.
    assert_eq!(warmup([false, false, false]), ("with a retry budget of 10 %".into(), 9));
}

#[test]
fn trigger_within_capacity_changes_nothing() {
    let mut spec = spec(100, 3, None);
    spec.trigger = Trigger::Load(Rate::per_second(200).unwrap());
    let c = conducted(spec, &world(None)).conclusion;
    assert_eq!((c.verdict, c.recovery_ns), (Some(Recovered), Some(0)), "{c:?}");
    assert_eq!(c.answer, "Recovered at once; 0 requests failed meanwhile");
}

#[test]
fn base_load_above_capacity_is_no_answer() {
    let found = conducted(spec(700, 0, None), &world(None));
    assert_eq!(found.conclusion.verdict, None);
    assert_eq!(found.trials.len(), 1);
    assert!(matches!(&found.ended, EndReason::Doomed(why) if why.contains("base load")));
    let next = found.findings.iter().map(|f| f.next_step.as_str());
    assert!(next.into_iter().any(|step| step.contains("knee sweep")));
}

#[test]
fn smallest_trigger_is_looked_for_and_found() {
    let most = Trigger::Search(Rate::per_second(1_000).unwrap());
    let found = conducted(RecoverSpec { trigger: most, ..spec(200, 3, None) }, &world(None));
    let c = &found.conclusion;
    let (smallest, shortest) = (c.smallest_trigger.unwrap(), c.shortest_trigger.unwrap());
    // Within 5 s a rate of 500/s (1 + 0.2/5) makes requests wait for 200 ms.
    assert!((500.0..640.0).contains(&smallest.rate_per_s), "{c:?}");
    // And 1,000/s does so within 200 ms.
    assert!((100_000_000..450_000_000).contains(&shortest.duration_ns), "{c:?}");
    assert_eq!((smallest.duration_ns, shortest.rate_per_s), (5_000_000_000, 1_000.0));
    assert_eq!(c.trigger_per_s, smallest.rate_per_s);
    assert_eq!(c.verdict, Some(Stuck));
    assert!(c.answer.starts_with("The smallest trigger is "), "{}", c.answer);
    assert!(c.triggers.len() < 16, "{c:?}");
}

#[test]
fn service_that_always_comes_back_has_no_smallest_trigger() {
    let most = Trigger::Search(Rate::per_second(1_000).unwrap());
    let explained = RecoverSpec { trigger: most, explains: true, ..spec(200, 3, Some(0.1)) };
    let found = conducted(explained, &world(Some(20)));
    let c = &found.conclusion;
    assert_eq!((c.smallest_trigger, c.verdict), (None, Some(Recovered)), "{c:?}");
    assert_eq!((c.triggers.len(), c.counterfactuals.len()), (1, 0));
    let expected = "No trigger up to 1,000/s (5x) for 5 s keeps the service down. Recovered ";
    assert!(c.answer.starts_with(expected), "{}", c.answer);
}

#[test]
fn load_that_rises_to_stay_is_served_or_not() {
    for (per_s, verdict) in [(400, Recovered), (700, Stuck)] {
        let trigger = Trigger::Stays(Rate::per_second(per_s).unwrap());
        let found = conducted(RecoverSpec { trigger, ..spec(200, 0, None) }, &world(Some(20)));
        let c = &found.conclusion;
        assert_eq!((c.verdict, c.trigger_ns), (Some(verdict), c.after_ns), "{c:?}");
        let is_overloaded = found.findings.iter().any(|f| f.is(findings::STILL_OVERLOADED));
        assert_eq!(is_overloaded, verdict == Stuck, "{:?}", found.findings);
        assert!(!found.findings.iter().any(|f| f.is(findings::METASTABLE)));
    }
}

#[test]
fn retries_show_as_hysteresis_and_patience_does_not() {
    for (retries, least, most) in [(3, 20.0, 100.0), (0, -5.0, 5.0)] {
        let hysteresis = Some(MS(3_000));
        let trigger = Trigger::Load(Rate::per_second(600).unwrap());
        let stepped = RecoverSpec { hysteresis, trigger, ..spec(200, retries, None) };
        // Without retries the queue has to be short, or it drains on the way down.
        let capacity = (retries == 0).then_some(20);
        let c = conducted(stepped, &world(capacity)).conclusion;
        assert_eq!(c.hysteresis.len(), 8, "{c:?}");
        let percent = c.hysteresis_percent.unwrap();
        assert!((least..=most).contains(&percent), "{percent}: {:?}", c.hysteresis);
    }
}
