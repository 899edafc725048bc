//! Confidence in percentiles by order statistics.

use super::sample::{Z975, autocorrelation, inflation, mean, variance};
use crate::measure::{Histogram, Series};

/// Least (effective) observations beyond a percentile.
const BEYOND_MIN: f64 = 5.0;
/// Most observations for which the binomial law is summed exactly. Beyond it is nearly normal.
const EXACT_MAX: f64 = 1_000.0;
/// Least slots for an estimate of correlation.
const SLOTS_MIN: usize = 10;

/// 95 % confidence interval of the percentile `q` (0 to 1) of a histogram, in nanoseconds, by order
/// statistics (Hahn and Meeker, Statistical Intervals, 5.2). The number of observations below the
/// true percentile is binomial, whatever their law. That bounds its rank.
///
/// Correlated observations count as a sample smaller by `design_effect` (at least 1, see
/// [`design_effect`]). `None` if that leaves fewer than five on either side.
pub fn quantile_ci95(histogram: &Histogram, q: f64, design_effect: f64) -> Option<[u64; 2]> {
    let n = (histogram.count() as f64 / design_effect.max(1.0)).floor();
    if n * q.min(1.0 - q) < BEYOND_MIN {
        return None;
    }
    let (low, high) = if n <= EXACT_MAX { exact_ranks(n as u32, q) } else { normal_ranks(n, q) };
    if low < 1.0 || high > n {
        return None;
    }
    Some([low, high].map(|rank| histogram.quantile(rank / n).0))
}

/// Ratio of the variance of the mean response time to that of independent observations (Kish's
/// design effect), at least 1. It is the spread of the means of slots against the spread within,
/// times the correlation between slots. It is estimated for the mean and used for percentiles too.
pub fn design_effect(series: &Series, responses: &Histogram) -> f64 {
    let slots = series.response_count.iter().zip(&series.response_sum_ns);
    let (counts, means): (Vec<f64>, Vec<f64>) = slots
        .filter(|&(&count, _)| count > 0)
        .map(|(&count, sum)| (count as f64, sum / count as f64))
        .unzip();
    let within = responses.std_dev_ns().powi(2);
    if means.len() < SLOTS_MIN || within <= 0.0 {
        return 1.0;
    }
    // The mean of a slot of independent observations has the variance within / count.
    let per_mean = within * mean(&counts.iter().map(|n| 1.0 / n).collect::<Vec<_>>());
    let spread = variance(&means) / per_mean;
    (spread * inflation(autocorrelation(&means), means.len())).max(1.0)
}

/// The ranks l and u, from 1. At least l − 1 and at most u observations lie below the percentile,
/// with 97.5 % probability each.
fn exact_ranks(n: u32, q: f64) -> (f64, f64) {
    let odds = (q / (1.0 - q)).ln();
    let mut log_probability = f64::from(n) * (1.0 - q).ln();
    let mut below = 0.0;
    let (mut low, mut high) = (0.0, f64::from(n) + 1.0);
    for k in 0..=n {
        below += log_probability.exp();
        // `below` is now P(B ≤ k).
        if below <= 0.025 {
            low = f64::from(k) + 1.0;
        }
        if below >= 0.975 {
            high = f64::from(k) + 1.0;
            break;
        }
        log_probability += odds + (f64::from(n - k) / (f64::from(k) + 1.0)).ln();
    }
    (low, high)
}

fn normal_ranks(n: f64, q: f64) -> (f64, f64) {
    let half = Z975 * (n * q * (1.0 - q)).sqrt();
    ((n * q - half).floor(), (n * q + half).ceil() + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;
    use crate::series::mm1;
    use crate::time::Nanos;

    #[test]
    fn ranks_bound_the_binomial_law() {
        // P(B ≤ 39) = 0.0176 and P(B ≤ 60) = 0.9824; P(B ≤ 40) = 0.0245 and P(B ≤ 49) = 0.9948
        assert_eq!(exact_ranks(100, 0.5), (40.0, 61.0));
        assert_eq!(exact_ranks(50, 0.9), (41.0, 50.0));
        let (low, high) = normal_ranks(10_000.0, 0.9);
        assert_eq!((low, high), (8_941.0, 9_060.0));
    }

    #[test]
    fn an_interval_needs_five_observations_on_either_side() {
        for (n, q, effect, there, what) in [
            (49, 0.9, 1.0, false, "4.9 beyond"),
            (60, 0.9, 1.0, true, "6 beyond"),
            (499, 0.99, 1.0, false, "4.99 beyond"),
            (5_000, 0.99, 9.0, true, "5.5 beyond after correlation"),
            (5_000, 0.99, 11.0, false, "4.5 beyond after correlation"),
        ] {
            let mut histogram = Histogram::default();
            (1..=n).for_each(|k| histogram.record(Nanos(k)));
            let interval = quantile_ci95(&histogram, q, effect);
            assert_eq!(interval.is_some(), there, "{what}: {interval:?}");
        }
    }

    /// Independent exponential observations, then those of a queue, which are correlated.
    #[test]
    fn intervals_hold_the_true_percentile() {
        let seconds = 20.0;
        for (lambda, q, least) in [(10.0, 0.9, 0.92), (500.0, 0.9, 0.90), (800.0, 0.9, 0.88)] {
            let (mu, runs) = (1_000.0, 150);
            let exact_ns = -(1.0f64 - q).ln() / (mu - lambda) * 1e9;
            let mut held = 0.0;
            for seed in 0..runs {
                let served = mm1(&mut rng::stream(seed, 6), lambda, mu, seconds);
                let mut series = Series {
                    slot: Nanos::from_millis(50),
                    completed: vec![0.0; 400],
                    response_sum_ns: vec![0.0; 400],
                    response_count: vec![0; 400],
                    ..Series::default()
                };
                let mut histogram = Histogram::default();
                for (at, response) in served {
                    histogram.record(Nanos::from_secs_f64(response));
                    let slot = ((at / seconds * 400.0) as usize).min(399);
                    series.response_sum_ns[slot] += response * 1e9;
                    series.response_count[slot] += 1;
                }
                let effect = design_effect(&series, &histogram);
                let Some([lo, hi]) = quantile_ci95(&histogram, q, effect) else {
                    continue;
                };
                held += f64::from(u8::from(lo as f64 <= exact_ns && exact_ns <= hi as f64));
            }
            let share = held / f64::from(runs as u32);
            assert!(share >= least, "{lambda}/s: {share}");
        }
    }
}
