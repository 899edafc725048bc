//! The asymptotic bounds themselves: min(N/R(1), X_max).

use super::model_fit;
use crate::experiment::sweep::report::ModelFit;

/// The name it is reported under.
pub const NAME: &str = "asymptotic_bounds";

/// Fits both bounds. For each way to cut the ascending levels into rising and saturated ones, the
/// sum of squared relative residuals has a closed-form minimum; the best cut wins.
pub(super) fn fit(data: &[(f64, f64)]) -> ModelFit {
    let candidates = (1..=data.len()).map(|cut| {
        let (rising, saturated) = data.split_at(cut);
        let x_1 = scale(rising.iter().map(|&(n, x)| n / x));
        let x_max = if saturated.is_empty() {
            x_1 * data[data.len() - 1].0
        } else {
            scale(saturated.iter().map(|&(_, x)| 1.0 / x))
        };
        let throughput = move |n: f64| (n * x_1).min(x_max);
        let parameters = [
            ("max_throughput_per_s", x_max),
            ("response_time_1_ns", 1e9 / x_1),
            ("knee_vusers", x_max / x_1),
        ];
        model_fit(NAME, &parameters, data, throughput)
    });
    candidates
        .min_by(|a, b| a.rmse_percent.total_cmp(&b.rmse_percent))
        .expect("there is at least one level")
}

/// The `a` that minimises Σ(a·u − 1)².
fn scale(u: impl Iterator<Item = f64>) -> f64 {
    let (sum, squares) = u.fold((0.0, 0.0), |(s, q), u| (s + u, q + u * u));
    sum / squares
}
