//! Services in virtual time, before, during and after an overload.

use super::report::RecoveryVerdict::{Recovered, Stuck};
use super::*;
use crate::experiment::{Conducted, EndReason, conduct};
use crate::trial::assess::assess;
use knee_load::law::Law;
use knee_load::spec::{Backoff, Jitter, OpenLoad, RetryCauses};
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
    let trigger = Rate::per_second(3 * per_s).unwrap();
    RecoverSpec { base, phases, rate, trigger, explains: false, rest: MS(20_000) }
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
    let of = |change: Change| {
        let row = c.counterfactuals.iter().find(|row| row.change == change.words());
        row.and_then(|row| row.verdict)
    };
    assert_eq!(of(Change::NoRetries), Some(Recovered), "{c:?}");
    assert_eq!(of(Change::RetryBudget), Some(Recovered), "{c:?}");
    assert_eq!(of(Change::LowerLoad), Some(Stuck), "{c:?}");
    assert!(c.answer.contains("it recovers in"), "{}", c.answer);
}

/// The queue of the first trial is still there, so this trial shows nothing of the change.
#[test]
fn too_short_a_rest_is_no_remedy() {
    let rest = RecoverSpec { explains: true, ..spec(700, 0, None) };
    let never_carried = assess(&simulate(&Recover::new(rest.clone()).trial(1), &world(None)).trial);
    let shown = analyse(&never_carried, rest.phases).unwrap();
    assert_eq!((shown.is_carried, shown.verdict, shown.recovery), (false, None, None));
}

#[test]
fn trigger_within_capacity_changes_nothing() {
    let mut spec = spec(100, 3, None);
    spec.trigger = Rate::per_second(200).unwrap();
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
