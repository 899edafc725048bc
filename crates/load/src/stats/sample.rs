//! Mean and variance of samples, quantiles of Student's law, and confidence: in a mean by batch
//! means, in percentiles by order statistics.

use crate::measure::Histogram;

/// The arithmetic mean; 0 where empty.
pub fn mean(x: &[f64]) -> f64 {
    // The sum of no numbers is −0, which would be shown as such.
    (x.iter().sum::<f64>() + 0.0) / x.len().max(1) as f64
}

/// The unbiased variance; 0 below two values.
pub fn variance(x: &[f64]) -> f64 {
    let m = mean(x);
    let squares: f64 = x.iter().map(|v| (v - m) * (v - m)).sum();
    squares / x.len().saturating_sub(1).max(1) as f64
}

/// The autocorrelation at lag 1; 0 where the values do not vary.
pub fn autocorrelation(x: &[f64]) -> f64 {
    let m = mean(x);
    let squares: f64 = x.iter().map(|v| (v - m) * (v - m)).sum();
    if squares <= 0.0 {
        return 0.0;
    }
    let products: f64 = x.windows(2).map(|w| (w[0] - m) * (w[1] - m)).sum();
    products / squares
}

/// Ratio of the variance of the mean of `n` values to that of independent ones, at least 1. For a
/// first-order autoregression with the sample autocorrelation `r` it is (1 + φ)/(1 − φ).
///
/// φ is r with its bias of −(1 + 4φ)/n removed (Marriott and Pope, Biometrika 41, 1954), at most
/// 0.99.
pub(crate) fn inflation(r: f64, n: usize) -> f64 {
    let n = n.max(5) as f64;
    let phi = ((r + 1.0 / n) / (1.0 - 4.0 / n)).clamp(0.0, 0.99);
    (1.0 + phi) / (1.0 - phi)
}

/// Means of `batches` consecutive stretches of equal length, without the first values where they
/// do not divide evenly.
pub(crate) fn batch_means(x: &[f64], batches: usize) -> Vec<f64> {
    let size = (x.len() / batches.max(1)).max(1);
    let left_out = x.len() - size * batches.min(x.len() / size);
    x[left_out..].chunks(size).map(mean).collect()
}

/// The 97.5 % quantile of the normal law.
pub const Z975: f64 = 1.959_963_984_540_054;

/// The 99.95 % quantile of the normal law.
const Z9995: f64 = 3.290_526_731_491_926;

/// The 97.5 % quantile of Student's t law with `df` ≥ 3 degrees of freedom, within 0.2 %.
pub(super) fn t975(df: usize) -> f64 {
    cornish_fisher(Z975, df.max(3) as f64)
}

/// The 99.95 % quantile of Student's t law with `df` ≥ 1 degrees of freedom, within 0.01 %: half of
/// a 99.9 % interval in standard errors.
pub fn t9995(df: u64) -> f64 {
    /// From here on the expansion is that good; below, the law itself is turned round.
    const EXPANDED: u64 = 40;
    if df >= EXPANDED {
        return cornish_fisher(Z9995, df as f64);
    }
    let (mut low, mut high) = (Z9995, 1_000.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if within(middle, df.max(1)) < 0.999 {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Interval of a population's share from the share of a sample of `n`. It misses the true one with
/// `probability` (Wilson, Journal of the American Statistical Association 22, 1927). The share
/// itself where `n` is 0, for an unknown size.
pub fn share_interval(share: f64, n: u64, probability: f64) -> [f64; 2] {
    if n == 0 {
        return [share; 2];
    }
    let n = n as f64;
    let z2 = t_beyond(probability, NORMAL_FREEDOM).powi(2);
    let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = (z2 * (share * (1.0 - share) / n + z2 / (4.0 * n * n))).sqrt() / (1.0 + z2 / n);
    [middle - half, middle + half]
}

/// Degrees of freedom at which Student's law is nearly the normal one.
const NORMAL_FREEDOM: u64 = 400;

/// The value that Student's t with `df` ≥ 1 degrees of freedom exceeds with probability `p`, both
/// sides together (0 < p < 1). 0.05 gives a 95 % interval.
pub fn t_beyond(p: f64, df: u64) -> f64 {
    let (mut low, mut high) = (0.0, 1e4);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if 1.0 - within(middle, df.max(1)) > p {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The probability that Student's t with `df` ≥ 1 degrees of freedom lies between −t and t. A
/// finite sum (Abramowitz and Stegun 26.7.3 and 26.7.4).
pub fn within(t: f64, df: u64) -> f64 {
    let theta = (t / (df as f64).sqrt()).atan();
    let (sin, cos) = theta.sin_cos();
    let is_odd = df % 2 == 1;
    // Odd: cos θ + 2/3 cos³ θ + 2·4/(3·5) cos⁵ θ + …; even: 1 + 1/2 cos² θ + 1·3/(2·4) cos⁴ θ + ….
    let mut term = if is_odd { cos } else { 1.0 };
    let mut power = if is_odd { 1 } else { 0 };
    let mut sum = 0.0;
    while power + 2 <= df {
        sum += term;
        power += 2;
        let above = power as f64;
        term *= (above - 1.0) / above * cos * cos;
    }
    if is_odd { (theta + sin * sum) / std::f64::consts::FRAC_PI_2 } else { sin * sum }
}

/// A quantile of Student's t law from the normal law's `z`: the Cornish–Fisher expansion
/// (Abramowitz and Stegun 26.7.5).
fn cornish_fisher(z: f64, v: f64) -> f64 {
    let g1 = (z.powi(3) + z) / 4.0;
    let g2 = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let g3 = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    let g4 = (79.0 * z.powi(9) + 776.0 * z.powi(7) + 1482.0 * z.powi(5)
        - 1920.0 * z.powi(3)
        - 945.0 * z)
        / 92_160.0;
    z + g1 / v + g2 / v.powi(2) + g3 / v.powi(3) + g4 / v.powi(4)
}

/// Student's 97.5 % quantiles for 1 and 2 degrees of freedom, which the expansion of [`t975`] does
/// not reach.
const T975_FEW: [f64; 2] = [12.706_205, 4.302_653];

/// Mean of independent, nearly normal values and its 95 % confidence interval by Student's t; no
/// interval below two values.
pub fn mean_and_ci95(values: &[f64]) -> (f64, Option<[f64; 2]>) {
    let centre = mean(values);
    let Some(df) = values.len().checked_sub(1).filter(|&df| df > 0) else {
        return (centre, None);
    };
    let t = T975_FEW.get(df - 1).copied().unwrap_or_else(|| t975(df));
    let half = t * (variance(values) / values.len() as f64).sqrt();
    (centre, Some([centre - half, centre + half]))
}

/// Numbers of batches that are tried, the largest first: more batches give a better estimate of the
/// spread, fewer have less correlation.
const BATCHES: [usize; 6] = [40, 30, 20, 15, 10, 8];
/// Least batches for an estimate of their spread.
pub const BATCHES_MIN: usize = 5;
/// Largest autocorrelation of nearly independent batches, in its standard errors 1/√n.
const CORRELATION_Z: f64 = 1.5;

/// The means of the largest number of batches with an insignificant autocorrelation at lag 1;
/// `None` if even the longest are correlated.
pub(super) fn independent_batches(series: &[f64]) -> Option<Vec<f64>> {
    BATCHES.iter().find_map(|&batches| {
        let means = batch_means(series, batches);
        let insignificant = CORRELATION_Z / (means.len() as f64).sqrt();
        (autocorrelation(&means) < insignificant).then_some(means)
    })
}

/// 95 % confidence interval of the mean of a stationary series, by batch means (Law and Kelton,
/// Simulation Modeling and Analysis, ch. 9). The means of long enough batches are nearly
/// independent and normal, so Student's t holds for them.
///
/// The interval is widened by the correlation that is left between the batches. `None` for fewer than five values, or if even the
/// longest batches are correlated: the series then moves as slowly as it is long.
pub fn batch_means_ci95(series: &[f64]) -> Option<[f64; 2]> {
    if series.len() < BATCHES_MIN {
        return None;
    }
    let means = independent_batches(series)?;
    let widening = inflation(autocorrelation(&means), means.len());
    let error = (variance(&means) * widening / means.len() as f64).sqrt();
    let half = t975(means.len() - 1) * error;
    // The mean of the whole series, with the values that batching leaves out.
    let centre = mean(series);
    Some([centre - half, centre + half])
}

/// Least (effective) observations beyond a percentile.
const BEYOND_MIN: f64 = 5.0;
/// Most observations for which the binomial law is summed exactly. Beyond it is nearly normal.
const EXACT_MAX: f64 = 1_000.0;

/// 95 % confidence interval of the percentile `q` (0 to 1) of a histogram, in nanoseconds, by order
/// statistics (Hahn and Meeker, Statistical Intervals, 5.2). The number of observations below the
/// true percentile is binomial, whatever their law. That bounds its rank.
///
/// Correlated observations count as a sample smaller by `design_effect` (at least 1, see
/// [`super::correlation::Correlation`]). `None` if that leaves fewer than five on either side.
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
    use crate::series::autoregression;
    use crate::time::Nanos;

    #[test]
    fn mean_of_nothing_has_no_sign() {
        assert!(mean(&[]).is_sign_positive());
    }

    #[test]
    fn student_quantiles_agree_with_the_tables() {
        for (df, exact) in [(4, 2.7764), (5, 2.5706), (9, 2.2622), (19, 2.0930), (39, 2.0227)] {
            assert!((t975(df) / exact - 1.0).abs() < 2e-3, "{df}: {}", t975(df));
        }
    }

    #[test]
    fn far_student_quantiles_agree_with_the_tables() {
        for (df, exact) in [
            (1, 636.619),
            (2, 31.5991),
            (3, 12.9240),
            (4, 8.6103),
            (5, 6.8688),
            (9, 4.7809),
            (10, 4.5869),
            (29, 3.6594),
            (39, 3.5581),
            (40, 3.5510),
            (120, 3.3735),
            (1_000_000, 3.2905),
        ] {
            assert!((t9995(df) / exact - 1.0).abs() < 1e-4, "{df}: {}", t9995(df));
        }
    }

    #[test]
    fn two_sided_quantiles_agree_with_the_tables() {
        for (p, df, exact) in [
            (0.05, 1, 12.7062),
            (0.05, 6, 2.44691),
            (0.01, 4, 4.60409),
            (0.5, 10, 0.69981),
            (0.05, 1_000, 1.96234),
        ] {
            let t = t_beyond(p, df);
            assert!((t / exact - 1.0).abs() < 1e-4, "{p}, {df}: {t}");
            assert!((1.0 - within(t, df) - p).abs() < 1e-9);
        }
    }

    #[test]
    fn batches_are_equal_and_leave_out_the_beginning() {
        assert_eq!(batch_means(&[9.0, 1.0, 3.0, 5.0, 7.0], 2), [2.0, 6.0]);
        assert_eq!(batch_means(&[1.0, 2.0], 5), [1.0, 2.0]);
        assert!(batch_means(&[], 5).is_empty());
    }

    #[test]
    fn inflation_is_that_of_an_autoregression() {
        assert_eq!(inflation(-0.5, 1_000), 1.0);
        assert!((inflation(0.5, 1_000_000) - 3.0).abs() < 1e-3);
        assert!(inflation(1.0, 10) <= 199.0 + 1e-9);
    }

    #[test]
    fn intervals_are_those_of_the_tables() {
        assert_eq!(mean_and_ci95(&[]), (0.0, None));
        assert_eq!(mean_and_ci95(&[3.0]), (3.0, None));
        for (values, half) in [
            (&[1.0, 3.0][..], 12.7062),
            // A variance of 1 each.
            (&[1.0, 2.0, 3.0], 4.30265 / 3f64.sqrt()),
            (&[1.0, 3.0, 1.0, 3.0], 3.18245 * (4.0f64 / 3.0).sqrt() / 2.0),
        ] {
            let (centre, ci95) = mean_and_ci95(values);
            let [low, high] = ci95.expect("two values or more");
            assert_eq!(centre, 2.0);
            assert!((high - centre - half).abs() < 2e-3 * half, "{high}, {half}");
            assert!((high + low - 2.0 * centre).abs() < 1e-12);
        }
    }

    /// The share of intervals that hold the true mean, and their mean half-width.
    fn coverage(n: usize, phi: f64) -> (f64, f64) {
        let runs = 400;
        let (mut told, mut held, mut width) = (0.0, 0.0, 0.0);
        for seed in 0..runs {
            let series = autoregression(&mut rng::stream(seed, 5), n, phi, 10.0);
            let Some([lo, hi]) = batch_means_ci95(&series) else {
                continue;
            };
            told += 1.0;
            held += f64::from(u8::from(lo <= 100.0 && 100.0 <= hi));
            width += (hi - lo) / 2.0;
        }
        assert!(told >= 0.97 * runs as f64, "{told} of {runs}");
        (held / told, width / told)
    }

    #[test]
    fn intervals_hold_the_mean_as_often_as_they_say() {
        for (n, phi) in
            [(400, 0.0), (400, 0.3), (400, 0.6), (400, 0.8), (400, 0.9), (200, 0.5), (25, 0.0)]
        {
            let (held, width) = coverage(n, phi);
            assert!(held >= 0.90, "{n} values, autocorrelation {phi}: {held}");
            let exact = 1.96 * 10.0 * ((1.0 + phi) / (1.0 - phi) / n as f64).sqrt();
            assert!(width < 1.6 * exact, "{n}, {phi}: {width} where {exact} is due");
        }
    }

    #[test]
    fn too_little_gives_no_interval_and_no_spread_gives_none() {
        assert_eq!(batch_means_ci95(&[1.0; 4]), None);
        assert_eq!(batch_means_ci95(&[1.0; 5]), Some([1.0, 1.0]));
    }

    #[test]
    fn slowly_moving_series_has_no_interval() {
        let shift = |at: usize| (0..200).map(|i| if i < at { 340.0 } else { 176.0 }).collect();
        let half: Vec<f64> = shift(110);
        assert_eq!(batch_means_ci95(&half), None, "one level, then another");
        let to_and_fro: Vec<f64> = (0..200).map(|i| [340.0, 176.0][i / 10 % 2]).collect();
        assert!(batch_means_ci95(&to_and_fro).is_some(), "often enough to and fro");
    }

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
}
