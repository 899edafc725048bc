//! Medians and ratios of a handful of rounds.

/// The value below which the share `q` of the values lies (nearest rank); 0 of nothing.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (q * (sorted.len() as f64 - 1.0)).round() as usize;
    sorted.get(rank).copied().unwrap_or(0.0)
}

/// The middle value, or the mean of the two.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Round by round, `ours` over `theirs`: the rounds are paired, as they were measured side by side.
pub fn ratios(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(a, b)| a / b).collect()
}

/// `median (min–max)`.
pub fn spread(values: &[f64], digits: usize) -> String {
    let (low, high) = (quantile(values, 0.0), quantile(values, 1.0));
    if values.len() < 2 {
        return format!("{:.digits$}", median(values));
    }
    format!(
        "{:.digits$} ({low:.digits$}–{high:.digits$})",
        median(values)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_quantiles_and_paired_ratios() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
        let values: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!(
            (quantile(&values, 0.5), quantile(&values, 0.99)),
            (50.0, 99.0)
        );
        assert_eq!(ratios(&[2.0, 9.0], &[1.0, 3.0]), [2.0, 3.0]);
        assert_eq!(spread(&[2.0, 1.0, 3.0], 1), "2.0 (1.0–3.0)");
        assert_eq!(spread(&[2.0], 0), "2");
    }
}
