//! Confidence in a mean of few independent values, such as differences of pairs of trials.

use super::sample::{mean, t975, variance};

/// Student's 97.5 % quantiles for 1 and 2 degrees of freedom, which the expansion behind
/// `sample::t975` does not reach.
const T975_FEW: [f64; 2] = [12.706_205, 4.302_653];

/// The mean of independent values and its 95 % confidence interval by Student's t, for values that
/// are nearly normal; no interval below two values.
pub fn mean_and_ci95(values: &[f64]) -> (f64, Option<[f64; 2]>) {
    let centre = mean(values);
    let Some(df) = values.len().checked_sub(1).filter(|&df| df > 0) else {
        return (centre, None);
    };
    let t = T975_FEW.get(df - 1).copied().unwrap_or_else(|| t975(df));
    let half = t * (variance(values) / values.len() as f64).sqrt();
    (centre, Some([centre - half, centre + half]))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
