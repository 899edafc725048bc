//! What correlation takes from the certainty of times: operations that waited in the same queue tell
//! less than as many independent ones.

use super::sample::{Z975, autocorrelation, independent_batches, inflation, mean, t975, variance};
use crate::measure::{Histogram, Series};

/// Least slots for an estimate of correlation.
const SLOTS_MIN: usize = 10;
/// Least observations for an interval of the mean: it is nearly normal then, or skewed as its
/// batches are.
const MEAN_OBSERVATIONS_MIN: u64 = 30;

/// How much less certain correlated response times are than as many independent ones.
#[derive(Clone, Copy, Debug)]
pub struct Correlation {
    /// Ratio of the variance of the mean to that of independent observations (Kish's design
    /// effect), at least 1, from the autocorrelation of slots. It is estimated for the mean, and
    /// is used for percentiles, which depend less on it.
    pub effect: f64,
    /// The same from batches, which follow slow queues too; `None` where even long batches are
    /// correlated.
    batches: Option<Batches>,
}

/// What batches tell of the mean.
#[derive(Clone, Copy, Debug)]
struct Batches {
    number: usize,
    effect: f64,
    /// Skewness of the batches.
    skewness: f64,
}

impl Correlation {
    /// None: each observation is independent of the others.
    pub const NONE: Correlation = Correlation {
        effect: 1.0,
        batches: Some(Batches { number: usize::MAX, effect: 1.0, skewness: 0.0 }),
    };

    /// The correlation of the response times of a window, which its slots show.
    pub fn of(series: &Series, responses: &Histogram) -> Correlation {
        let counts: Vec<f64> = series.response_count.iter().map(|&count| count as f64).collect();
        // A window that ended early leaves slots empty.
        let last = counts.iter().rposition(|&count| count > 0.0);
        let counts = &counts[..last.map_or(0, |last| last + 1)];
        let per_slot = mean(counts);
        let within = responses.std_dev_ns().powi(2);
        if counts.iter().filter(|&&count| count > 0.0).count() < SLOTS_MIN || within <= 0.0 {
            return Correlation::NONE;
        }
        // The mean response time is a ratio of sums: each slot moves it by what its sum is beyond
        // its share.
        let ratio = mean(&series.response_sum_ns[..counts.len()]) / per_slot;
        let slots = series.response_sum_ns.iter().zip(counts);
        let moves: Vec<f64> = slots.map(|(sum, count)| (sum - ratio * count) / per_slot).collect();
        // Of independent observations.
        let independent = within / (per_slot * counts.len() as f64);
        let effect_of = |values: &[f64], inflation: f64| {
            (variance(values) * inflation / values.len() as f64 / independent).max(1.0)
        };
        let by_slots = inflation(autocorrelation(&moves), moves.len());
        let freedom = moves.len() as f64 / by_slots - 1.0;
        let batches = independent_batches(&moves).map(|batches| Batches {
            number: batches.len(),
            effect: effect_of(&batches, inflation(autocorrelation(&batches), batches.len())),
            skewness: skewness(&batches),
        });
        Correlation {
            effect: effect_of(&moves, by_slots * (t975(freedom as usize) / Z975).powi(2)),
            batches,
        }
    }

    /// The larger effects of the two.
    pub fn or_larger(self, other: Correlation) -> Correlation {
        let batches = self.batches.zip(other.batches);
        Correlation {
            effect: self.effect.max(other.effect),
            batches: batches.map(|(a, b)| if a.effect < b.effect { b } else { a }),
        }
    }

    /// 95 % confidence interval of the mean of times of these operations, in nanoseconds: by batch
    /// means and Student's t, adjusted for the skewness of the batches (Johnson, Journal of the
    /// American Statistical Association 73, 1978; Hall 1992; used so in Tafazzoli and Wilson's
    /// N-Skart, 2011). `None` of fewer than 30 times, or where even long batches are correlated.
    pub fn mean_ci95(&self, times: &Histogram) -> Option<[u64; 2]> {
        let batches = self.batches.filter(|_| times.count() >= MEAN_OBSERVATIONS_MIN)?;
        let error = times.std_dev_ns() * (batches.effect / times.count() as f64).sqrt();
        let t = t975(batches.number - 1);
        let skew = batches.skewness / (6.0 * (batches.number as f64).sqrt());
        let adjusted = |t: f64| {
            if skew.abs() < 1e-9 {
                t
            } else {
                ((1.0 + 6.0 * skew * (t - skew)).cbrt() - 1.0) / (2.0 * skew)
            }
        };
        let ends = [adjusted(t), adjusted(-t)].map(|t| times.mean_ns() - t * error);
        Some(ends.map(|end| end.max(0.0).round() as u64))
    }
}

/// Skewness of values that vary; 0 of others.
fn skewness(values: &[f64]) -> f64 {
    let m = mean(values);
    let power = |k: i32| mean(&values.iter().map(|v| (v - m).powi(k)).collect::<Vec<_>>());
    match power(2) {
        spread if spread > 0.0 => power(3) / spread.powf(1.5),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;
    use crate::series::mm1;
    use crate::stats::sample::quantile_ci95;
    use crate::time::Nanos;

    /// The response times of an M/M/1 queue in seconds, from `begin_s` on for `seconds`.
    fn queue(seed: u64, lambda: f64, mu: f64, seconds: f64) -> (Series, Histogram) {
        let begin_s = seconds;
        let mut series = Series {
            slot: Nanos::from_secs_f64(seconds / 400.0),
            completed: vec![0.0; 400],
            response_sum_ns: vec![0.0; 400],
            response_count: vec![0; 400],
            ..Series::default()
        };
        let mut histogram = Histogram::default();
        for (at, response) in mm1(&mut rng::stream(seed, 6), lambda, mu, begin_s + seconds) {
            let slot = (at - begin_s) / seconds * 400.0;
            if (0.0..400.0).contains(&slot) {
                histogram.record(Nanos::from_secs_f64(response));
                series.response_sum_ns[slot as usize] += response * 1e9;
                series.response_count[slot as usize] += 1;
            }
        }
        (series, histogram)
    }

    /// Of the runs with an interval, the share in which it holds the truth; and how many those are.
    fn held(runs: u64, exact_ns: f64, interval: impl Fn(u64) -> Option<[u64; 2]>) -> (f64, usize) {
        let ends: Vec<[u64; 2]> = (0..runs).filter_map(interval).collect();
        let holds = |[low, high]: &&[u64; 2]| (*low as f64..=*high as f64).contains(&exact_ns);
        (ends.iter().filter(holds).count() as f64 / ends.len() as f64, ends.len())
    }

    #[test]
    fn intervals_of_a_queue_hold_the_truth_as_often_as_they_say() {
        let runs = 200;
        // operations per second offered and served, seconds, least shares for the mean and the p90
        for (lambda, mu, seconds, mean_least, p90_least) in [
            (10.0, 1_000.0, 20.0, 0.92, 0.92),
            (500.0, 1_000.0, 20.0, 0.92, 0.92),
            (800.0, 1_000.0, 20.0, 0.90, 0.90),
            (300.0, 1_000.0, 2.0, 0.91, 0.91),
            (30.0, 100.0, 10.0, 0.90, 0.91),
            (50.0, 100.0, 10.0, 0.90, 0.88),
            (70.0, 100.0, 10.0, 0.86, 0.75),
        ] {
            let mean_ns = 1e9 / (mu - lambda);
            let what = format!("{lambda}/s of {mu}/s for {seconds} s");
            let (share, given) = held(runs, mean_ns, |seed| {
                let (series, times) = queue(seed, lambda, mu, seconds);
                Correlation::of(&series, &times).mean_ci95(&times)
            });
            assert!(share >= mean_least && given > 190, "{what}: mean {share} of {given}");
            let (share, given) = held(runs, mean_ns * 10.0_f64.ln(), |seed| {
                let (series, times) = queue(seed, lambda, mu, seconds);
                quantile_ci95(&times, 0.9, Correlation::of(&series, &times).effect)
            });
            assert!(share >= p90_least, "{what}: p90 {share} of {given}");
        }
    }

    #[test]
    fn too_few_times_have_no_interval_and_equal_ones_a_point() {
        let mut times = Histogram::default();
        (0..29).for_each(|_| times.record(Nanos(1_000)));
        assert_eq!(Correlation::NONE.mean_ci95(&times), None);
        times.record(Nanos(1_000));
        let [low, high] = Correlation::NONE.mean_ci95(&times).expect("30 times");
        assert_eq!(low, high);
    }
}
