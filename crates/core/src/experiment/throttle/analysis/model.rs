//! What a hybrid wait would do with another margin, from how late sleeps end.

use crate::experiment::throttle::waits::WaitTrial;
use crate::measure::Histogram;
use crate::time::Nanos;

/// How late sleeps of one length ended: the empirical law L.
#[derive(Clone, Debug, PartialEq)]
pub struct Lateness {
    /// Lateness in nanoseconds with the share of the sleeps that had it, ascending.
    shares: Vec<(f64, f64)>,
    late: Histogram,
}

impl Lateness {
    /// The law of these; `None` where there are none.
    pub fn new(late: &Histogram) -> Option<Lateness> {
        let n = late.count() as f64;
        let share = |(t, count): (Nanos, u64)| (t.0 as f64, count as f64 / n);
        (n > 0.0).then(|| Lateness {
            shares: late.iter_recorded().map(share).collect(),
            late: late.clone(),
        })
    }

    /// The mean time spent spinning, E[max(0, m − L)], where a sleep is to end a margin of m
    /// before the moment.
    pub fn spin_ns(&self, margin: Nanos) -> f64 {
        let margin = margin.0 as f64;
        let spun = self.shares.iter().map(|(l, p)| (margin - l).max(0.0) * p);
        spun.sum()
    }

    /// The quantile `q` of what is late all the same, max(0, L − m): that of L, less the margin,
    /// as the quantiles of a monotone function are the function of the quantiles.
    pub fn overshoot(&self, margin: Nanos, q: f64) -> Nanos {
        self.late.quantile(q) - margin
    }

    /// The largest margin for which the mean spin is at most `spin_ns`, at most `most`.
    ///
    /// The mean spin is piecewise linear in the margin, with a slope of the share of sleeps that
    /// end within it, so it is walked along from kink to kink.
    pub fn margin_for(&self, spin_ns: f64, most: Nanos) -> Nanos {
        let (mut spun, mut slope, mut at) = (0.0, 0.0, 0.0);
        for &(late, share) in &self.shares {
            let next = spun + slope * (late - at);
            if next > spin_ns {
                break;
            }
            (spun, at) = (next, late);
            slope += share;
        }
        let beyond = if slope > 0.0 {
            (spin_ns - spun).max(0.0) / slope
        } else {
            0.0
        };
        Nanos((at + beyond) as u64).min(most)
    }

    /// The time that a share `q` of the sleeps did not exceed.
    pub fn quantile(&self, q: f64) -> Nanos {
        self.late.quantile(q)
    }
}

/// A sleep that is part of a hybrid wait: how late it ends, and what it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Sleeper {
    /// The delay that it was measured at.
    pub delay: Nanos,
    /// How late it ends.
    pub lateness: Lateness,
    /// Processor time of one sleep, in nanoseconds.
    pub cpu_ns: f64,
}

impl Sleeper {
    /// What a row of sleeps shows; `None` of an empty one.
    pub fn of(trial: &WaitTrial) -> Option<Sleeper> {
        Some(Sleeper {
            delay: trial.spec.delay,
            lateness: Lateness::new(&trial.waits.overshoot)?,
            cpu_ns: trial.waits.cpu.0 as f64 / trial.waits.samples.max(1) as f64,
        })
    }

    /// What a hybrid wait for every `delay` costs with this margin, in percent of a core: the
    /// spinning and the sleep itself.
    ///
    /// The sleep is shorter by the margin than the one that was measured, and the shorter a sleep
    /// the less late it ends, so that this errs on the safe side.
    pub fn cpu_percent(&self, margin: Nanos) -> f64 {
        100.0 * (self.lateness.spin_ns(margin) + self.cpu_ns) / self.delay.0.max(1) as f64
    }

    /// The largest margin of use within this budget; `None` where the sleep alone costs more.
    ///
    /// A margin is of no use beyond the lateness of 99 % of the sleeps, as the 99th percentile is
    /// what is asked for, nor beyond nine tenths of the delay, as nearly nothing is left to sleep
    /// for then, and that is spinning.
    pub fn margin_within(&self, budget_percent: f64) -> Option<Nanos> {
        let left_ns = budget_percent / 100.0 * self.delay.0 as f64 - self.cpu_ns;
        let most = Nanos(self.delay.0 / 10 * 9).min(self.lateness.quantile(0.99));
        (left_ns >= 0.0).then(|| self.lateness.margin_for(left_ns, most))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::waits;
    use super::*;
    use crate::experiment::throttle::wait::WaitMethod;
    use crate::rng;

    /// Late by 60 µs and an exponential tail of mean 20 µs.
    fn late() -> Vec<u64> {
        let mut rng = rng::stream(7, 1);
        (0..5_000)
            .map(|_| 60_000 + (20_000.0 * rng::exp1(&mut rng)) as u64)
            .collect()
    }

    fn sleeper(late: &[u64]) -> Sleeper {
        let trial = waits(
            WaitMethod::SleepAbsoluteMinSlack,
            Nanos::from_millis(1),
            late,
        );
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
    fn the_margin_within_a_budget_is_the_largest_that_trial_and_error_finds() {
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
        // 70 and then half of what follows: 10 µs of spinning at 80 µs + 5 µs · 2 … by hand:
        // E = (m − 70)/2 up to 90, so 5 µs are spun at m = 80 µs.
        let more = lateness.margin_for(5_000.0, Nanos::from_millis(1));
        assert!(more.0.abs_diff(80_000) < 100, "{more}");
        // Beyond 90 µs each of the two spins: 10 µs there, then one for one.
        let all = lateness.margin_for(15_000.0, Nanos::from_millis(1));
        assert!(all.0.abs_diff(95_000) < 100, "{all}");
        assert_eq!(lateness.margin_for(1e9, Nanos(99_000)), Nanos(99_000));
    }
}
