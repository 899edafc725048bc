//! Queueing models fitted to throughput against users, by least squares of relative residuals.

mod machine_repair;
mod usl;

pub use machine_repair::MachineRepair;
pub use usl::UniversalScalability;

use crate::experiment::sweep::report::ModelFit;
use crate::experiment::sweep::table::LevelPoint;
use std::collections::BTreeMap;

/// Largest residual of a good fit, in percent.
const GOOD_RMSE_PERCENT: f64 = 5.0;

/// Fits every model with fewer parameters than the table has levels; the best first. Takes rows of
/// positive throughput in ascending order, and the mean pause of the users in seconds, if known.
pub fn fit_all(points: &[LevelPoint], pause_s: Option<f64>) -> Vec<ModelFit> {
    let data = data(points);
    let mut fits = Vec::new();
    if data.len() >= 3 {
        fits.push(fit_asymptotes(&data));
    }
    if data.len() >= 4 {
        fits.push(machine_repair::fit(&data, pause_s, &fits[0]));
        fits.push(usl::fit(&data));
    }
    fits.sort_by(|a, b| a.rmse_percent.total_cmp(&b.rmse_percent));
    fits
}

/// Whether any model fits, or the levels are too few for one.
pub fn any_fits(points: &[LevelPoint]) -> bool {
    let data = data(points);
    if data.len() < 4 {
        return true;
    }
    // In the order of what they cost.
    let asymptotic = fit_asymptotes(&data);
    asymptotic.good || usl::fit(&data).good || machine_repair::fit(&data, None, &asymptotic).good
}

/// Root mean square of the deviations from the Universal Scalability Law, a smooth curve that may
/// fall, as a share.
pub fn smooth_residual(points: &[LevelPoint]) -> f64 {
    usl::fit(&data(points)).rmse_percent / 100.0
}

fn data(points: &[LevelPoint]) -> Vec<(f64, f64)> {
    let row = |p: &LevelPoint| (p.level, p.throughput_per_s);
    points.iter().map(row).collect()
}

/// A fit as reported: parameters only where it is good.
fn model_fit(
    name: &str,
    parameters: &[(&str, f64)],
    data: &[(f64, f64)],
    throughput: impl Fn(f64) -> f64,
) -> ModelFit {
    let squares: f64 = data.iter().map(|&(n, x)| (throughput(n) / x - 1.0).powi(2)).sum();
    let rmse_percent = 100.0 * (squares / data.len() as f64).sqrt();
    let good = rmse_percent < GOOD_RMSE_PERCENT;
    let parameters: BTreeMap<String, f64> =
        parameters.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    ModelFit {
        name: name.to_owned(),
        parameters: if good { parameters } else { BTreeMap::new() },
        rmse_percent,
        good,
    }
}

/// The name under which the asymptotic bounds, min(N/R(1), X_max), are reported.
pub const ASYMPTOTIC_BOUNDS: &str = "asymptotic_bounds";

/// Fits both bounds. Each cut of the ascending levels into rising and saturated ones has a
/// closed-form minimum of the squared relative residuals. The best cut wins.
fn fit_asymptotes(data: &[(f64, f64)]) -> ModelFit {
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
        model_fit(ASYMPTOTIC_BOUNDS, &parameters, data, throughput)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table(levels: &[u32], throughput: impl Fn(f64) -> f64) -> Vec<LevelPoint> {
        levels
            .iter()
            .map(|&n| LevelPoint {
                level: f64::from(n),
                throughput_per_s: throughput(f64::from(n)),
                ..LevelPoint::default()
            })
            .collect()
    }

    fn fitted(points: &[LevelPoint], name: &str) -> ModelFit {
        let fits = fit_all(points, Some(0.0));
        fits.into_iter().find(|f| f.name == name).expect("fitted")
    }

    #[test]
    fn a_sharp_bend_gives_back_its_parameters() {
        let points = table(&[1, 2, 4, 8, 16], |n| 100.0 * n.min(6.0));
        let fit = fitted(&points, "asymptotic_bounds");
        assert!(fit.rmse_percent < 1e-6);
        assert!((fit.parameters["max_throughput_per_s"] - 600.0).abs() < 1e-6);
        assert!((fit.parameters["response_time_1_ns"] - 1e7).abs() < 1.0);
        let fit = fitted(&points, "machine_repair");
        assert!(fit.rmse_percent < 0.5, "{fit:?}");
        assert_eq!(fit.parameters["servers"], 6.0);
        assert!((fit.parameters["service_ns"] / 1e7 - 1.0).abs() < 0.02, "{fit:?}");
    }

    #[test]
    fn machine_repair_gives_back_its_parameters() {
        for (servers, service_s, overhead_s) in
            [(1, 0.01, 0.05), (4, 0.02, 0.02), (10, 0.02, 0.004)]
        {
            let truth = MachineRepair { servers, service_s, overhead_s };
            let levels = [1, 2, 4, 8, 12, 16, 24, 32, 64, 128, 256];
            let points = table(&levels, |n| truth.throughput_per_s(n as u32));
            let fit = fitted(&points, "machine_repair");
            assert!(fit.rmse_percent < 0.5, "{truth:?}: {fit:?}");
            assert_eq!(fit.parameters["servers"], f64::from(servers), "{fit:?}");
            let service_s = fit.parameters["service_ns"] / 1e9;
            assert!((service_s / truth.service_s - 1.0).abs() < 0.05, "{fit:?}");
        }
    }

    #[test]
    fn servers_that_the_data_do_not_tell_are_not_stated() {
        let truth = MachineRepair { servers: 10, service_s: 0.001, overhead_s: 0.04 };
        let levels = [1, 2, 4, 16, 64, 256, 1_024, 2_048];
        let points = table(&levels, |n| truth.throughput_per_s(n as u32));
        let fit = fitted(&points, "machine_repair");
        assert!(fit.good && !fit.parameters.contains_key("servers"), "{fit:?}");
        let most = fit.parameters["max_throughput_per_s"];
        assert!((most / 10_000.0 - 1.0).abs() < 0.01, "{fit:?}");
    }

    #[test]
    fn a_known_pause_leaves_no_room_for_more_servers() {
        // Service of fixed length bends more sharply than the model: 5 servers would fit best.
        let throughput = |n: f64| (n / 0.015).min(3.0 / 0.005) * (1.0 - 0.02 * f64::from(n == 8.0));
        let points = table(&[1, 2, 4, 6, 8, 9, 12, 16, 32], throughput);
        let servers = |pause_s| {
            let fits = fit_all(&points, pause_s);
            let fit = fits.into_iter().find(|f| f.name == "machine_repair");
            fit.and_then(|f| f.parameters.get("servers").copied())
        };
        for pause_s in [None, Some(0.01)] {
            let told = servers(pause_s);
            assert!(told.is_none_or(|n| n == 3.0), "{pause_s:?}: {told:?}");
        }
    }

    #[test]
    fn usl_gives_back_its_parameters() {
        let truth = UniversalScalability { lambda_per_s: 1_000.0, sigma: 0.05, kappa: 0.001 };
        let points = table(&[1, 2, 4, 8, 16, 32, 64], |n| truth.throughput_per_s(n));
        let fit = fitted(&points, "universal_scalability_law");
        assert!(fit.rmse_percent < 1e-6, "{fit:?}");
        assert!((fit.parameters["sigma"] - 0.05).abs() < 1e-9);
        assert!((fit.parameters["kappa"] - 0.001).abs() < 1e-9);
        let peak = fit.parameters["peak_vusers"];
        assert!((peak - (0.95f64 / 0.001).sqrt()).abs() < 1e-3);
        let points = table(&[1, 2, 4, 8, 16, 30], |n| truth.throughput_per_s(n));
        let fit = fitted(&points, "universal_scalability_law");
        assert!(!fit.parameters.contains_key("peak_vusers"), "beyond: {fit:?}");
    }

    #[test]
    fn a_bad_fit_shows_no_parameters() {
        let points = table(&[1, 2, 4, 8, 16], |n| if n == 4.0 { 10.0 } else { 100.0 * n });
        for fit in fit_all(&points, None) {
            assert!(!fit.good && fit.parameters.is_empty(), "{fit:?}");
        }
    }

    #[test]
    fn too_few_levels_fit_nothing() {
        assert!(fit_all(&table(&[1, 2], |n| n), None).is_empty());
        assert_eq!(fit_all(&table(&[1, 2, 3], |n| n), None).len(), 1);
    }
}
