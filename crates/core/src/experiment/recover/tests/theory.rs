//! Against theory: an M/M/1 queue whose users retry, as a fluid with delayed feedback.

use super::*;
use knee_load::rng::{self, Rng};

/// Time of a step of the integration, in seconds.
const STEP_S: f64 = 0.005;

/// A station that serves whatever waits, and users with a timeout who retry.
#[derive(Clone, Copy, Debug)]
struct Fluid {
    capacity_per_s: f64,
    timeout_s: f64,
    retries: u32,
    budget: Option<f64>,
    /// The longest pause before the first retry, doubled with each further one up to `longest_s`.
    first_s: f64,
    longest_s: f64,
}

/// Load over time, in seconds and requests per second.
#[derive(Clone, Copy, Debug)]
struct Phases {
    base_per_s: f64,
    trigger_per_s: f64,
    before_s: f64,
    trigger_s: f64,
    after_s: f64,
}

impl Fluid {
    /// Wait at the end of the load, in seconds: what is queued, over the capacity.
    ///
    /// An attempt that comes while the wait is longer than the timeout fails after the timeout.
    /// With attempts left and a token it comes again after a pause that is uniform from zero.
    fn wait_at_end(&self, load: &Phases) -> f64 {
        let end_s = load.before_s + load.trigger_s + load.after_s;
        let steps = (end_s / STEP_S) as usize;
        let tail = ((self.timeout_s + self.longest_s) / STEP_S) as usize + 2;
        let mut attempts = vec![vec![0.0; steps + tail]; self.retries as usize + 1];
        let (mut wait_s, mut tokens) = (0.0_f64, 0.0_f64);
        for step in 0..steps {
            let at = step as f64 * STEP_S;
            let is_trigger = at >= load.before_s && at < load.before_s + load.trigger_s;
            let offered = if is_trigger { load.trigger_per_s } else { load.base_per_s };
            attempts[0][step] += offered * STEP_S;
            tokens = (tokens + self.budget.unwrap_or(0.0) * offered * STEP_S).min(10.0);
            let all: f64 = attempts.iter().map(|retry| retry[step]).sum();
            if wait_s > self.timeout_s {
                for retry in 0..self.retries as usize {
                    let mut again = attempts[retry][step];
                    if self.budget.is_some() {
                        again = again.min(tokens);
                        tokens -= again;
                    }
                    let pause = (self.first_s * f64::from(1 << retry)).min(self.longest_s);
                    let from = step + (self.timeout_s / STEP_S) as usize;
                    let slots = ((pause / STEP_S) as usize).max(1);
                    let share = again / slots as f64;
                    attempts[retry + 1][from..from + slots].iter_mut().for_each(|n| *n += share);
                }
            }
            wait_s = (wait_s + all / self.capacity_per_s - STEP_S).max(0.0);
        }
        wait_s
    }

    /// Load of the service while each attempt fails, as a share of its capacity. Above 1 the queue
    /// does not drain.
    fn load_while_down(&self, base_per_s: f64) -> f64 {
        let retries = f64::from(self.retries);
        let retries = self.budget.map_or(retries, |budget| budget.min(retries));
        base_per_s * (1.0 + retries) / self.capacity_per_s
    }

    /// Whether the service is down at the end. `None` near the border: 15 % more or less capacity,
    /// or a quarter more or less time, would make a difference.
    fn stays_down(&self, load: &Phases) -> Option<bool> {
        let with = |capacity: f64, after: f64| {
            let fluid = Fluid { capacity_per_s: self.capacity_per_s * capacity, ..*self };
            let load = Phases { after_s: load.after_s * after, ..*load };
            fluid.wait_at_end(&load) > 0.1 * self.timeout_s
        };
        let is_down = with(1.0, 1.0);
        let variants = [(0.85, 1.0), (1.15, 1.0), (1.0, 0.75), (1.0, 1.25)];
        variants.iter().all(|&(c, a)| with(c, a) == is_down).then_some(is_down)
    }
}

fn between(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low + (high - low) * rng::unit(rng)
}

/// A random system and load, and the same as an experiment in virtual time.
fn random(rng: &mut Rng) -> (Fluid, Phases) {
    let capacity_per_s = between(rng, 100.0, 300.0);
    let base_per_s = capacity_per_s * between(rng, 0.25, 0.7);
    let first_s = between(rng, 0.05, 0.2);
    let fluid = Fluid {
        capacity_per_s,
        timeout_s: between(rng, 40.0, 80.0) / capacity_per_s,
        retries: between(rng, 0.0, 4.99) as u32,
        budget: (rng::unit(rng) < 0.3).then(|| between(rng, 0.05, 0.3)),
        first_s,
        longest_s: 4.0 * first_s,
    };
    let phases = Phases {
        base_per_s,
        trigger_per_s: base_per_s * between(rng, 1.5, 5.0),
        before_s: 4.0,
        trigger_s: between(rng, 1.0, 5.0),
        after_s: 20.0,
    };
    (fluid, phases)
}

fn experiment(fluid: &Fluid, load: &Phases, seed: u64) -> (RecoverSpec, World) {
    let seconds = Nanos::from_secs_f64;
    let rate = Rate::from_f64(load.base_per_s).unwrap();
    let retry = RetryPolicy {
        retries_max: fluid.retries,
        backoff: Backoff::Exp(seconds(fluid.first_s), seconds(fluid.longest_s)),
        jitter: Jitter::Full,
        budget: fluid.budget,
        causes: RetryCauses::DEFAULT,
    };
    let phases = RecoverPhases {
        before: seconds(load.before_s),
        trigger: seconds(load.trigger_s),
        after: seconds(load.after_s),
    };
    let like = spec(100, 0, None);
    let base = TrialSpec {
        timeout: seconds(fluid.timeout_s),
        retry: Some(retry),
        duration: phases.length(),
        seed,
        ..like.base
    };
    let trigger = Trigger::Load(Rate::from_f64(load.trigger_per_s).unwrap());
    let service = Law::Exp(seconds(1.0 / fluid.capacity_per_s));
    (RecoverSpec { base, phases, rate, trigger, ..like }, World::station(1, service))
}

#[test]
fn verdicts_of_500_systems_agree_with_theory() {
    let mut rng = rng::stream(35, 1);
    let (mut down, mut back, mut wrong) = (0, 0, Vec::new());
    let mut seed = 0;
    while down + back < 500 {
        let (fluid, load) = random(&mut rng);
        let Some(expected) = fluid.stays_down(&load) else {
            continue;
        };
        seed += 1;
        let (spec, world) = experiment(&fluid, &load, seed);
        let c = conducted(spec, &world).conclusion;
        // The load may have gone on for longer.
        let is_back = c.recovery_ns.is_some_and(|ns| ns as f64 <= load.after_s * 1e9);
        if is_back == expected {
            wrong.push(format!("{expected} but {:?}: {fluid:?} {load:?}", c.answer));
        }
        if expected { down += 1 } else { back += 1 }
    }
    assert!(down > 100 && back > 100, "{down} stay down, {back} come back");
    assert!(wrong.len() <= 5, "{}: {wrong:#?}", wrong.len());
}

#[test]
fn smallest_trigger_is_within_a_fifth_of_theory() {
    let mut rng = rng::stream(35, 2);
    let mut ratios = Vec::new();
    for seed in 1.. {
        let (fluid, load) = random(&mut rng);
        let most = Phases { trigger_per_s: 5.0 * load.base_per_s, ..load };
        let least = Phases { trigger_per_s: load.base_per_s, ..load };
        if fluid.stays_down(&most) != Some(true) || fluid.stays_down(&least) != Some(false) {
            continue;
        }
        // A queue that drains after the end is no service that stays down.
        if fluid.load_while_down(load.base_per_s) < 1.05 {
            continue;
        }
        let (mut low, mut high) = (load.base_per_s, 5.0 * load.base_per_s);
        while high > low * 1.01 {
            let trigger_per_s = (low * high).sqrt();
            let is_down = fluid.wait_at_end(&Phases { trigger_per_s, ..load }) > 0.0;
            if is_down { high = trigger_per_s } else { low = trigger_per_s }
        }
        let (spec, world) = experiment(&fluid, &most, seed);
        let Trigger::Load(rate) = spec.trigger else { unreachable!() };
        let spec = RecoverSpec { trigger: Trigger::Search(rate), ..spec };
        let c = conducted(spec, &world).conclusion;
        let found = c.smallest_trigger.unwrap_or_else(|| panic!("{}", c.answer));
        ratios.push(found.rate_per_s / high);
        if ratios.len() == 20 {
            break;
        }
    }
    ratios.sort_by(f64::total_cmp);
    assert!(ratios[0] > 0.8 && ratios[19] < 1.2, "{ratios:.3?}");
}
