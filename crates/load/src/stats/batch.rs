//! Confidence in a mean by batch means.

use super::sample::{autocorrelation, batch_means, inflation, mean, t975, variance};

/// Numbers of batches that are tried, the largest first: more batches give a better estimate of the
/// spread, fewer have less correlation.
const BATCHES: [usize; 6] = [40, 30, 20, 15, 10, 8];
/// Least batches for an estimate of their spread.
pub const BATCHES_MIN: usize = 5;
/// Largest autocorrelation of nearly independent batches, in its standard errors 1/√n.
const CORRELATION_Z: f64 = 1.5;

/// 95 % confidence interval of the mean of a stationary series, by batch means (Law and Kelton,
/// Simulation Modeling and Analysis, ch. 9). The means of long enough batches are nearly
/// independent and normal, so Student's t holds for them.
///
/// Takes the largest number of batches with an insignificant autocorrelation at lag 1, and widens
/// the interval by the correlation that is left. `None` for fewer than five values, or if even the
/// longest batches are correlated: the series then moves as slowly as it is long.
pub fn mean_ci95(series: &[f64]) -> Option<[f64; 2]> {
    if series.len() < BATCHES_MIN {
        return None;
    }
    let means = BATCHES.iter().find_map(|&batches| {
        let means = batch_means(series, batches);
        let insignificant = CORRELATION_Z / (means.len() as f64).sqrt();
        (autocorrelation(&means) < insignificant).then_some(means)
    })?;
    let widening = inflation(autocorrelation(&means), means.len());
    let error = (variance(&means) * widening / means.len() as f64).sqrt();
    let half = t975(means.len() - 1) * error;
    // The mean of the whole series, with the values that batching leaves out.
    let centre = mean(series);
    Some([centre - half, centre + half])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;
    use crate::series::autoregression;

    /// The share of intervals that hold the true mean, and their mean half-width.
    fn coverage(n: usize, phi: f64) -> (f64, f64) {
        let runs = 400;
        let (mut told, mut held, mut width) = (0.0, 0.0, 0.0);
        for seed in 0..runs {
            let series = autoregression(&mut rng::stream(seed, 5), n, phi, 10.0);
            let Some([lo, hi]) = mean_ci95(&series) else {
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
        assert_eq!(mean_ci95(&[1.0; 4]), None);
        assert_eq!(mean_ci95(&[1.0; 5]), Some([1.0, 1.0]));
    }

    #[test]
    fn slowly_moving_series_has_no_interval() {
        let shift = |at: usize| (0..200).map(|i| if i < at { 340.0 } else { 176.0 }).collect();
        let half: Vec<f64> = shift(110);
        assert_eq!(mean_ci95(&half), None, "one level, then another");
        let to_and_fro: Vec<f64> = (0..200).map(|i| [340.0, 176.0][i / 10 % 2]).collect();
        assert!(mean_ci95(&to_and_fro).is_some(), "often enough to and fro");
    }
}
