//! The best way to wait within a budget of processor time.

use super::{SAMPLES_MIN, at_reference_delay};
use crate::experiment::throttle::report::WaitAdvice;
use knee_load::experiment::throttle::{Chore, WaitMethod, WaitTrial};
use knee_load::measure::Histogram;
use knee_load::time::Nanos;

/// The budgets that advice is given for, in percent of a core.
pub const BUDGETS_PERCENT: [f64; 7] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0];

/// A short delay for which advice is given besides the usual one: that of 10,000/s.
const SHORT: Nanos = Nanos::from_micros(100);

/// A larger share of waits that end too early is no accident.
pub const EARLY: f64 = 0.01;

/// Whether these waits do not wait long enough: that they end no later than they were to is no
/// punctuality then.
pub fn ends_early(trial: &WaitTrial) -> bool {
    trial.waits.early as f64 > EARLY * trial.waits.samples as f64
}

/// For each budget and delay the way to wait with the least 99th percentile of overshoot, among
/// equals the least median, among equals the cheapest. There is no advice for a budget that no way
/// to wait keeps within, and no way is advised whose waits end early.
///
/// What is compared is what one wait per delay costs. The delays are 1 ms, a rate of 1,000/s, or
/// the measured one nearest to it, and 100 µs where that was measured.
///
/// Ways to wait stand as they were measured, except `hybrid`, whose margin may be chosen. What it
/// would do with the best margin is computed from how late its sleeps ended (see `Sleeper`). Where
/// those were not measured it stands as measured too.
pub fn recommendations(trials: &[WaitTrial]) -> Vec<WaitAdvice> {
    let plain = |t: &&WaitTrial| {
        t.spec.chore == Chore::None && t.waits.samples >= SAMPLES_MIN && !ends_early(t)
    };
    let trials: Vec<&WaitTrial> = trials.iter().filter(plain).collect();
    let Some(at_reference_delay) = at_reference_delay(trials.iter().copied()).map(|t| t.spec.delay)
    else {
        return Vec::new();
    };
    let short = trials.iter().any(|t| t.spec.delay == SHORT) && at_reference_delay != SHORT;
    let delays = short.then_some(SHORT).into_iter().chain([at_reference_delay]);
    let cases = delays.flat_map(|delay| BUDGETS_PERCENT.map(|budget| (delay, budget)));
    cases
        .filter_map(|(delay, budget)| {
            let there = trials.iter().copied().filter(|t| t.spec.delay == delay);
            best(&there.collect::<Vec<_>>(), delay, budget)
        })
        .collect()
}

/// The best way to wait for one delay within one budget.
fn best(trials: &[&WaitTrial], delay: Nanos, budget: f64) -> Option<WaitAdvice> {
    let modelled = hybrid(trials, delay, budget);
    let has_model = of(trials, SLEEP).is_some();
    let measured = trials
        .iter()
        .filter(|t| t.spec.method != WaitMethod::Hybrid || !has_model)
        .map(|t| as_measured(t, budget));
    let within = measured.chain(modelled).filter(|a| a.cpu_percent <= budget);
    within.min_by(|a, b| {
        let late = |a: &WaitAdvice| (a.overshoot_p99_ns, a.overshoot_p50_ns);
        let by_cost = a.cpu_percent.total_cmp(&b.cpu_percent);
        late(a).cmp(&late(b)).then(by_cost)
    })
}

/// The sleep that a hybrid wait begins with.
const SLEEP: WaitMethod = WaitMethod::SleepAbsoluteMinSlack;

/// Of hybrid waits at least this share were not woken too late.
const PUNCTUAL: f64 = 0.1;

fn of<'a>(trials: &[&'a WaitTrial], method: WaitMethod) -> Option<&'a WaitTrial> {
    trials.iter().copied().find(|t| t.spec.method == method)
}

/// A hybrid wait with the best margin that the budget allows.
///
/// It cannot be more punctual than the spinning that it ends in. So its overshoot is at least that
/// of `spin`. Where that was not measured, it is that of the punctual ones among the measured
/// hybrid waits.
fn hybrid(trials: &[&WaitTrial], delay: Nanos, budget: f64) -> Option<WaitAdvice> {
    let sleeper = Sleeper::of(of(trials, SLEEP)?)?;
    let margin = sleeper.margin_within(budget)?;
    let spin = of(trials, WaitMethod::Spin);
    let measured = of(trials, WaitMethod::Hybrid);
    let spun = |q| match (spin, measured) {
        (Some(spin), _) => spin.waits.overshoot.quantile(q),
        (None, Some(hybrid)) => hybrid.waits.overshoot.quantile(PUNCTUAL),
        (None, None) => Nanos::ZERO,
    };
    let late = |q| sleeper.lateness.overshoot(margin, q).max(spun(q)).0;
    Some(WaitAdvice {
        budget_percent: budget,
        delay_ns: delay.0,
        method: WaitMethod::Hybrid.name().to_owned(),
        margin_ns: Some(margin.0),
        overshoot_p50_ns: late(0.5),
        overshoot_p99_ns: late(0.99),
        cpu_percent: sleeper.cpu_percent(margin),
    })
}

/// Processor time of a wait over the delay, at most all of a core. It is what one wait per delay
/// costs, also of a method whose waits end so late that it makes fewer.
fn cpu_percent(trial: &WaitTrial) -> f64 {
    let per_wait = trial.waits.cpu.0 as f64 / trial.waits.samples.max(1) as f64;
    (100.0 * per_wait / trial.spec.delay.0.max(1) as f64).min(100.0)
}

fn as_measured(trial: &WaitTrial, budget: f64) -> WaitAdvice {
    WaitAdvice {
        budget_percent: budget,
        delay_ns: trial.spec.delay.0,
        method: trial.spec.method.name().to_owned(),
        margin_ns: trial.waits.margin.map(|m| m.0),
        overshoot_p50_ns: trial.waits.overshoot.quantile(0.5).0,
        overshoot_p99_ns: trial.waits.overshoot.quantile(0.99).0,
        cpu_percent: cpu_percent(trial),
    }
}

/// How late sleeps of one length ended: the empirical law L.
#[derive(Clone, Debug, PartialEq)]
struct Lateness {
    /// Lateness in nanoseconds with the share of the sleeps that had it, ascending.
    shares: Vec<(f64, f64)>,
    late: Histogram,
}

impl Lateness {
    /// The law of these; `None` where there are none.
    fn new(late: &Histogram) -> Option<Lateness> {
        let n = late.count() as f64;
        let share = |(t, count): (Nanos, u64)| (t.0 as f64, count as f64 / n);
        (n > 0.0).then(|| Lateness {
            shares: late.iter_recorded().map(share).collect(),
            late: late.clone(),
        })
    }

    /// The mean time spent spinning, E[max(0, m − L)], where a sleep is to end a margin of m
    /// before the deadline.
    fn spin_ns(&self, margin: Nanos) -> f64 {
        let margin = margin.0 as f64;
        self.shares.iter().map(|(l, p)| (margin - l).max(0.0) * p).sum()
    }

    /// The quantile `q` of the remaining lateness, max(0, L − m): that of L, less the margin. The
    /// quantiles of a monotone function are the function of the quantiles.
    fn overshoot(&self, margin: Nanos, q: f64) -> Nanos {
        self.late.quantile(q) - margin
    }

    /// The largest margin for which the mean spin is at most `spin_ns`, at most `most`.
    ///
    /// The mean spin is piecewise linear in the margin. Its slope is the share of sleeps that end
    /// within the margin, so the search goes from kink to kink.
    fn margin_for(&self, spin_ns: f64, most: Nanos) -> Nanos {
        let (mut spun, mut slope, mut at) = (0.0, 0.0, 0.0);
        for &(late, share) in &self.shares {
            let next = spun + slope * (late - at);
            if next > spin_ns {
                break;
            }
            (spun, at) = (next, late);
            slope += share;
        }
        let beyond = if slope > 0.0 { (spin_ns - spun).max(0.0) / slope } else { 0.0 };
        Nanos((at + beyond) as u64).min(most)
    }

    /// The time that a share `q` of the sleeps did not exceed.
    fn quantile(&self, q: f64) -> Nanos {
        self.late.quantile(q)
    }
}

/// A sleep that is part of a hybrid wait: how late it ends, and what it costs.
#[derive(Clone, Debug, PartialEq)]
struct Sleeper {
    /// The delay that it was measured at.
    delay: Nanos,
    /// How late it ends.
    lateness: Lateness,
    /// Processor time of one sleep, in nanoseconds.
    cpu_ns: f64,
}

impl Sleeper {
    /// What a row of sleeps shows; `None` of an empty one.
    fn of(trial: &WaitTrial) -> Option<Sleeper> {
        Some(Sleeper {
            delay: trial.spec.delay,
            lateness: Lateness::new(&trial.waits.overshoot)?,
            cpu_ns: trial.waits.cpu.0 as f64 / trial.waits.samples.max(1) as f64,
        })
    }

    /// What a hybrid wait for every `delay` costs with this margin, in percent of a core: the
    /// spinning and the sleep itself.
    ///
    /// The sleep is shorter by the margin than the one that was measured. A shorter sleep ends less
    /// late, so this errs on the safe side.
    fn cpu_percent(&self, margin: Nanos) -> f64 {
        100.0 * (self.lateness.spin_ns(margin) + self.cpu_ns) / self.delay.0.max(1) as f64
    }

    /// The largest margin of use within this budget; `None` where the sleep alone costs more.
    ///
    /// A margin is of no use beyond the lateness of 99 % of the sleeps, as the 99th percentile is
    /// compared. Nor is one beyond nine tenths of the delay: next to nothing is left to sleep for.
    fn margin_within(&self, budget_percent: f64) -> Option<Nanos> {
        let left_ns = budget_percent / 100.0 * self.delay.0 as f64 - self.cpu_ns;
        let most = Nanos(self.delay.0 / 10 * 9).min(self.lateness.quantile(0.99));
        (left_ns >= 0.0).then(|| self.lateness.margin_for(left_ns, most))
    }
}

#[cfg(test)]
mod advice_tests {
    use super::*;
    use crate::experiment::throttle::tests::waits;

    const MS: Nanos = Nanos::from_millis(1);

    /// Sleeps end late by 51 to 150 µs, at 3 µs each; spinning by 40 ns, at all of a core.
    fn measured(delay: Nanos) -> Vec<WaitTrial> {
        let late: Vec<u64> = (1..=100).map(|k| 50_000 + k * 1_000).collect();
        let mut spin = waits(WaitMethod::Spin, delay, &[40; 100]);
        spin.waits.cpu = spin.waits.elapsed;
        vec![waits(WaitMethod::Sleep, delay, &[110_000; 100]), waits(SLEEP, delay, &late), spin]
    }

    fn told(trials: &[WaitTrial]) -> Vec<(f64, String)> {
        recommendations(trials).into_iter().map(|a| (a.budget_percent, a.method)).collect()
    }

    #[test]
    fn larger_budget_gives_longer_margin_up_to_its_use() {
        let advice = recommendations(&measured(MS));
        let methods: Vec<&str> = advice.iter().map(|a| a.method.as_str()).collect();
        assert_eq!(methods, ["hybrid"; 7]);
        for pair in advice.windows(2) {
            assert!(pair[0].margin_ns <= pair[1].margin_ns);
            assert!(pair[0].overshoot_p99_ns >= pair[1].overshoot_p99_ns);
        }
        // 1 % of 1 ms is 10 µs, 3 of them the sleep's. That leaves a spin of 7 µs. Σ(m − L)/100
        // over the L from 51 µs on is about (m − 50.5)²/200, so m is near 50.5 + √1,400 = 88 µs.
        let least = advice[0].margin_ns.expect("a margin");
        assert!(least.abs_diff(88_000) < 500, "{least}");
        // Beyond 99 % of the lateness, 149 µs, nothing is gained: spun 49 µs, with 3 for the sleep.
        let most = advice[6].margin_ns.expect("a margin");
        assert!(most.abs_diff(149_000) < 150, "{most}");
        assert_eq!(advice[6].overshoot_p99_ns, 40, "as spinning is");
        assert!((advice[6].cpu_percent - 5.2).abs() < 0.1);
        assert!(advice.iter().all(|a| a.cpu_percent <= a.budget_percent));
    }

    #[test]
    fn each_stands_as_measured_where_a_margin_cannot_be_computed() {
        let mut trials = measured(MS);
        trials.remove(1);
        let mut hybrid = waits(WaitMethod::Hybrid, MS, &[300; 100]);
        hybrid.waits.margin = Some(Nanos(90_000));
        hybrid.waits.cpu = Nanos(4_000_000);
        trials.push(hybrid);
        let methods: Vec<(f64, String)> = told(&trials);
        let expected = [
            (1.0, "sleep"),
            (2.0, "sleep"),
            (5.0, "hybrid"),
            (10.0, "hybrid"),
            (25.0, "hybrid"),
            (50.0, "hybrid"),
            (100.0, "spin"),
        ];
        assert_eq!(methods, expected.map(|(b, m)| (b, m.to_owned())));
    }

    #[test]
    fn nothing_is_said_of_a_budget_that_nothing_keeps_within() {
        // 3 µs in every 100 µs are 3 %.
        let trials = [measured(Nanos::from_micros(100)), measured(MS)].concat();
        let budgets: Vec<(u64, f64)> = recommendations(&trials)
            .iter()
            .map(|a| (a.delay_ns / 1_000, a.budget_percent))
            .collect();
        let short = [5.0, 10.0, 25.0, 50.0, 100.0].map(|b| (100, b));
        assert_eq!(budgets[..5], short);
        assert_eq!(budgets[5..], BUDGETS_PERCENT.map(|b| (1_000, b)));
        assert!(recommendations(&[]).is_empty());
    }

    #[test]
    fn waits_with_a_chore_between_them_are_left_out() {
        let mut trials = measured(MS);
        for trial in &mut trials {
            trial.spec.chore = Chore::Busy(MS);
        }
        assert!(recommendations(&trials).is_empty());
    }
}

#[cfg(test)]
mod model_tests {
    use super::*;
    use crate::experiment::throttle::tests::waits;
    use knee_load::experiment::throttle::WaitMethod;
    use knee_load::rng;

    /// Late by 60 µs and an exponential tail of mean 20 µs.
    fn late() -> Vec<u64> {
        let mut rng = rng::stream(7, 1);
        (0..5_000).map(|_| 60_000 + (20_000.0 * rng::exp1(&mut rng)) as u64).collect()
    }

    fn sleeper(late: &[u64]) -> Sleeper {
        let trial = waits(WaitMethod::SleepAbsoluteMinSlack, Nanos::from_millis(1), late);
        Sleeper::of(&trial).expect("sleeps")
    }

    #[test]
    fn the_model_agrees_with_each_sleep_taken_by_itself() {
        let late = late();
        let model = sleeper(&late).lateness;
        for margin in [0, 30_000, 60_000, 75_000, 120_000, 400_000] {
            let spun: u64 = late.iter().map(|l| margin.max(*l) - l).sum();
            let spun = spun as f64 / late.len() as f64;
            let mut missed: Vec<u64> = late.iter().map(|l| l.saturating_sub(margin)).collect();
            missed.sort_unstable();
            let margin = Nanos(margin);
            // Within what the histogram resolves, a thousandth of the lateness.
            assert!((model.spin_ns(margin) - spun).abs() < 150.0, "{margin}");
            for q in [0.5, 0.99] {
                let exact = missed[(q * late.len() as f64).ceil() as usize - 1];
                let told = model.overshoot(margin, q).0;
                assert!(told.abs_diff(exact) < 200, "{margin}: {told} for {exact}");
            }
        }
    }

    #[test]
    fn margin_within_budget_is_the_largest_by_exhaustive_search() {
        let sleeper = sleeper(&late());
        let most = sleeper.lateness.quantile(0.99).0;
        for budget in [0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0] {
            let tried = (0..=most / 100).map(|m| Nanos(100 * m));
            let found = tried.filter(|m| sleeper.cpu_percent(*m) <= budget).max();
            let margin = sleeper.margin_within(budget);
            let apart = match (margin, found) {
                (Some(a), Some(b)) => a.0.abs_diff(b.0),
                (a, b) => u64::from(a != b),
            };
            assert!(apart <= 100, "{budget} %: {margin:?}, {found:?}");
            if let Some(margin) = margin {
                assert!(sleeper.cpu_percent(margin) <= budget + 1e-9);
            }
        }
    }

    #[test]
    fn a_margin_below_every_lateness_costs_nothing() {
        let lateness = sleeper(&[70_000, 90_000]).lateness;
        let free = lateness.margin_for(0.0, Nanos::from_millis(1));
        assert!(free.0.abs_diff(70_000) < 70, "{free}");
        // By hand: 70, and then half of what follows. E = (m − 70)/2 up to 90, so 5 µs are spun at
        // m = 80 µs.
        let more = lateness.margin_for(5_000.0, Nanos::from_millis(1));
        assert!(more.0.abs_diff(80_000) < 100, "{more}");
        // Beyond 90 µs each of the two spins: 10 µs there, then one for one.
        let all = lateness.margin_for(15_000.0, Nanos::from_millis(1));
        assert!(all.0.abs_diff(95_000) < 100, "{all}");
        assert_eq!(lateness.margin_for(1e9, Nanos(99_000)), Nanos(99_000));
    }
}
