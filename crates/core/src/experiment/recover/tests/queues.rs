//! Random queues after an overload, each seen for a random time: none that drains is called stuck,
//! and none that does not is called recovering.

use super::*;
use knee_load::rng::{self, Rng};

/// Queues in an ordinary test; `KNEE_QUEUES` asks for another number.
const QUEUES: usize = 40;

/// A queue, its users, and what they load it with while each attempt fails, as a share of what it
/// serves.
struct RandomQueue {
    spec: RecoverSpec,
    world: World,
    effective_load: f64,
}

fn between(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low + (high - low) * rng::unit(rng)
}

/// M/M/1, or M/D/m with two to four workers. First come, first served, whether or not the client is
/// still there. `None`: its load is too near to what it serves.
fn random(rng: &mut Rng, seed: u64) -> Option<RandomQueue> {
    let served_per_s = between(rng, 80.0, 400.0);
    let is_random = rng::unit(rng) < 0.5;
    let workers = if is_random { 1 } else { between(rng, 2.0, 4.99) as u32 };
    let service = Nanos::from_secs_f64(f64::from(workers) / served_per_s);
    let service = if is_random { Law::Exp(service) } else { Law::Fixed(service) };
    let base_per_s = served_per_s * between(rng, 0.25, 0.9);
    let retries_max = between(rng, 0.0, 4.99) as u32;
    let budget = (rng::unit(rng) < 0.3).then(|| between(rng, 0.05, 0.4));
    let more = budget.unwrap_or(f64::INFINITY).min(f64::from(retries_max));
    let effective_load = base_per_s * (1.0 + more) / served_per_s;
    let seconds = Nanos::from_secs_f64;
    let first = between(rng, 0.05, 0.3);
    let retry = RetryPolicy {
        retries_max,
        backoff: Backoff::Exp(seconds(first), seconds(4.0 * first)),
        jitter: Jitter::Full,
        budget,
        causes: RetryCauses::DEFAULT,
    };
    let phases = RecoverPhases {
        before: MS(5_000),
        trigger: seconds(between(rng, 2.0, 8.0)),
        after: seconds(between(rng, 6.0, 30.0)),
    };
    let like = spec(100, 0, None);
    let base = TrialSpec {
        timeout: seconds(between(rng, 0.2, 1.0)),
        retry: Some(retry),
        seed,
        ..like.base
    };
    let trigger = Rate::from_f64(base_per_s * between(rng, 1.5, 5.0)).unwrap();
    let follows_fall = rng::unit(rng) < 0.5;
    let spec = RecoverSpec {
        base,
        phases,
        follows_fall,
        rate: Rate::from_f64(base_per_s).unwrap(),
        trigger: Trigger::Load(trigger),
        ..like
    };
    let world = World::station(workers, service);
    let is_clear = !(0.95..=1.05).contains(&effective_load);
    is_clear.then_some(RandomQueue { spec, world, effective_load })
}

#[test]
fn draining_queue_is_not_stuck_and_metastable_one_not_recovering() {
    let asked = std::env::var("KNEE_QUEUES").ok().and_then(|text| text.parse().ok());
    let queues = asked.unwrap_or(QUEUES);
    let mut rng = rng::stream(54, 1);
    let mut named = std::collections::BTreeMap::<(bool, &str), usize>::new();
    let mut wrong = Vec::new();
    for seed in 1.. {
        let Some(queue) = random(&mut rng, seed) else { continue };
        let found = conducted(queue.spec, &queue.world);
        assert_consistent(&found);
        let c = &found.conclusion;
        let drains = queue.effective_load < 1.0;
        let is_wrong = match c.verdict {
            Some(Stuck | Degraded | Crashed) => drains,
            Some(Recovering) => !drains,
            // Not every trigger is one.
            Some(Recovered) | None => false,
        };
        if is_wrong {
            wrong.push(format!("seed {seed}, load {}: {}", queue.effective_load, c.answer));
        }
        *named.entry((drains, c.verdict.map_or("not known", |v| v.word()))).or_default() += 1;
        if named.values().sum::<usize>() >= queues {
            break;
        }
    }
    println!("{named:?}");
    assert!(wrong.is_empty(), "{}: {wrong:#?} {named:?}", wrong.len());
    let not_known: usize =
        named.iter().filter(|((_, name), _)| *name == "not known").map(|(_, n)| n).sum();
    assert!(not_known * 10 <= queues, "{named:?}");
}
