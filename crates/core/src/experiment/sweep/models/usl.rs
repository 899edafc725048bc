//! The Universal Scalability Law (Gunther, Guerrilla Capacity Planning, 2007, chapter 4).

use super::model_fit;
use crate::experiment::sweep::report::ModelFit;

/// X(N) = λN / (1 + σ(N − 1) + κN(N − 1)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UniversalScalability {
    /// Throughput of one user, above 0.
    pub lambda_per_s: f64,
    /// Contention, 0 or more.
    pub sigma: f64,
    /// Coherence, 0 or more; above 0 throughput falls beyond √((1 − σ)/κ) users.
    pub kappa: f64,
}

impl UniversalScalability {
    /// Throughput of `n` users.
    pub fn throughput_per_s(&self, n: f64) -> f64 {
        let slowdown = 1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0);
        self.lambda_per_s * n / slowdown
    }
}

/// Fits λ, σ and κ. N/X is linear in (1, σ, κ)/λ, so weighted least squares of it have a closed
/// form. For small residuals they are the relative residuals of X. A coefficient that comes out
/// negative is fixed at 0 and the rest fitted again. The peak is stated only where the levels reach
/// it: beyond them it would be the noise of κ.
pub(super) fn fit(data: &[(f64, f64)]) -> ModelFit {
    let subsets: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[0]];
    let best = subsets
        .iter()
        .filter_map(|terms| least_squares(data, terms))
        .filter(|c| c[0] > 0.0 && c[1] >= 0.0 && c[2] >= 0.0)
        .map(|c| UniversalScalability {
            lambda_per_s: 1.0 / c[0],
            sigma: c[1] / c[0],
            kappa: c[2] / c[0],
        })
        .map(|law| {
            let mut parameters = vec![
                ("lambda_per_s", law.lambda_per_s),
                ("sigma", law.sigma),
                ("kappa", law.kappa),
            ];
            let peak = ((1.0 - law.sigma) / law.kappa).sqrt();
            if data.last().is_some_and(|&(n, _)| peak <= n) {
                parameters.push(("peak_vusers", peak));
            }
            let name = "universal_scalability_law";
            model_fit(name, &parameters, data, |n| law.throughput_per_s(n))
        })
        .min_by(|a, b| a.rmse_percent.total_cmp(&b.rmse_percent));
    best.expect("λ alone can always be fitted")
}

/// The coefficients of 1, N − 1 and N(N − 1) that minimise the squared relative residuals of N/X.
/// Those not among `terms` are 0. `None` where the equations are singular.
fn least_squares(data: &[(f64, f64)], terms: &[usize]) -> Option<[f64; 3]> {
    // Normal equations of Σ(Σ cᵢ·uᵢ − 1)² with uᵢ = termᵢ·X/N, columns scaled to unit length.
    let row = |&(n, x): &(f64, f64)| [1.0, n - 1.0, n * (n - 1.0)].map(|t| t * x / n);
    let mut lengths = [0.0f64; 3];
    for u in data.iter().map(row) {
        for (length, u) in lengths.iter_mut().zip(u) {
            *length = length.hypot(u);
        }
    }
    let k = terms.len();
    let mut matrix = [[0.0f64; 4]; 3];
    for u in data.iter().map(row) {
        for (i, &a) in terms.iter().enumerate() {
            for (j, &b) in terms.iter().enumerate() {
                matrix[i][j] += u[a] / lengths[a] * u[b] / lengths[b];
            }
            matrix[i][k] += u[a] / lengths[a];
        }
    }
    let solution = solve(&mut matrix, k)?;
    let mut coefficients = [0.0; 3];
    for (&term, value) in terms.iter().zip(solution) {
        coefficients[term] = value / lengths[term];
    }
    Some(coefficients)
}

/// Gauss–Jordan elimination with pivoting of a system of `k` ≤ 3 equations.
fn solve(matrix: &mut [[f64; 4]; 3], k: usize) -> Option<[f64; 3]> {
    for column in 0..k {
        let size = |r: &usize| matrix[*r][column].abs();
        let pivot = (column..k).max_by(|a, b| size(a).total_cmp(&size(b)))?;
        matrix.swap(column, pivot);
        let pivot_row = matrix[column];
        if pivot_row[column].abs() <= 1e-12 {
            return None;
        }
        for (r, row) in matrix.iter_mut().enumerate().take(k) {
            if r != column {
                let factor = row[column] / pivot_row[column];
                for (value, p) in row.iter_mut().zip(pivot_row) {
                    *value -= factor * p;
                }
            }
        }
    }
    let mut solution = [0.0; 3];
    for (i, value) in solution.iter_mut().enumerate().take(k) {
        *value = matrix[i][k] / matrix[i][i];
    }
    Some(solution)
}
