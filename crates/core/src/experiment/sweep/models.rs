//! Queueing models fitted to throughput against users, by least squares of relative residuals.
//!
//! They are asymptotic bounds, the Universal Scalability Law and the machine-repair model. The law
//! is that of Gunther (Guerrilla Capacity Planning, 2007, chapter 4). The machine-repair model has
//! users between a delay and a station.
//!
//! Machine repair is N users who think and then queue for m workers, solved exactly by mean-value
//! analysis (Reiser and Lavenberg, 1980). The Universal Scalability Law has costs of contention and
//! coherency; it alone of these models falls again.

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
        fits.push(fit_machine_repair(&data, pause_s, &fits[0]));
        fits.push(fit_usl(&data));
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
    asymptotic.good || fit_usl(&data).good || fit_machine_repair(&data, None, &asymptotic).good
}

/// Root mean square of the deviations from the Universal Scalability Law, a smooth curve that may
/// fall, as a share.
pub fn smooth_residual(points: &[LevelPoint]) -> f64 {
    fit_usl(&data(points)).rmse_percent / 100.0
}

fn data(points: &[LevelPoint]) -> Vec<(f64, f64)> {
    points.iter().map(|p| (p.level, p.throughput_per_s)).collect()
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
fn fit_usl(data: &[(f64, f64)]) -> ModelFit {
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

/// N users, each of whom spends `overhead_s` outside (network, client, pause), then is served by
/// one of `servers` from a common queue. Exact for exponential service times and any law of the
/// overhead; without overhead exact for every law, as then X = min(N, m)/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineRepair {
    /// Servers, at least 1.
    pub servers: u32,
    /// Mean service time in seconds, above 0.
    pub service_s: f64,
    /// Mean time outside in seconds, 0 or more.
    pub overhead_s: f64,
}

/// Weight of a state, as a share of all so far, below which it and those beyond are left out.
const NEGLIGIBLE: f64 = 1e-17;

/// Numbers of servers that are tried, evenly on a logarithmic scale.
const SERVERS_TRIED: u32 = 48;
/// Numbers of servers that are fitted in full.
const SERVERS_REFINED: usize = 6;
/// Distance of numbers of servers, as a logarithm, and the ratio and difference of their residuals
/// within which a rival fit leaves the number undetermined.
const SERVERS_APART: f64 = 0.2;
const RIVAL_FACTOR: f64 = 1.25;
const RIVAL_SHARE: f64 = 0.001;
/// Share of the service time below which the overhead is none: then there are as many servers as
/// users at the knee.
const OVERHEAD_NONE: f64 = 0.02;
/// Accuracy of the known pause, as a share.
const PAUSE_SHARE: f64 = 0.02;

impl MachineRepair {
    /// Mean response time of `users` who each think `overhead_s` in the mean between two
    /// operations: N/X − Z, by Little's law over the whole cycle.
    #[cfg(test)]
    pub fn response_mean_s(&self, users: u32) -> f64 {
        f64::from(users) / self.throughput_per_s(users) - self.overhead_s
    }

    /// Throughput of `users`, by the birth–death chain of users at the station. The birth rate is
    /// (N − k)/overhead, the death rate min(k, m)/s (Kleinrock, Queueing Systems I, 1975, 3.8).
    pub fn throughput_per_s(&self, users: u32) -> f64 {
        let servers = f64::from(self.servers);
        let n = f64::from(users);
        if self.overhead_s <= 0.0 {
            return n.min(servers) / self.service_s;
        }
        // Ratio of the weights of k + 1 and k users at the station. It falls with k, so the weights
        // have one peak. They are summed outwards from it until they vanish: about √N terms.
        let ratio = |k: u32| {
            let served = f64::from(k + 1).min(servers);
            f64::from(users - k) * self.service_s / (self.overhead_s * served)
        };
        let peak = self.likeliest(users);
        let at_work = |k: u32| f64::from(k).min(servers);
        let (mut sum, mut busy) = (1.0, at_work(peak));
        let mut weight = 1.0;
        for k in peak..users {
            weight *= ratio(k);
            sum += weight;
            busy += weight * at_work(k + 1);
            if weight < NEGLIGIBLE * sum {
                break;
            }
        }
        weight = 1.0;
        for k in (0..peak).rev() {
            weight /= ratio(k);
            sum += weight;
            busy += weight * at_work(k);
            if weight < NEGLIGIBLE * sum {
                break;
            }
        }
        busy / sum / self.service_s
    }

    /// Likeliest number of users at the station: the ratio of neighbouring weights passes 1, with
    /// idle servers or without.
    fn likeliest(&self, users: u32) -> u32 {
        let (n, m) = (f64::from(users), f64::from(self.servers));
        let idle = (n * self.service_s - self.overhead_s) / (self.service_s + self.overhead_s);
        let busy = n - m * self.overhead_s / self.service_s;
        let k = if idle + 1.0 <= m { idle } else { busy };
        (k.clamp(0.0, n) as u32).min(users)
    }
}

/// Fits servers, service and overhead, which includes the pause of the users. Each number of
/// servers starts from the rise X(1) and the ceiling m/s of the data; for the most promising ones
/// Nelder–Mead moves both.
///
/// The sharpness of the bend determines the number of servers only for exponential service times.
/// Fixed ones bend sharply for every number (Lazowska et al., chapter 5). So the number is not
/// stated if the asymptotes fit as well and users may spend time neither pausing nor served.
fn fit_machine_repair(
    data: &[(f64, f64)],
    pause_s: Option<f64>,
    asymptotes: &ModelFit,
) -> ModelFit {
    let x_max = data.iter().map(|d| d.1).fold(0.0, f64::max);
    let x_1 = data.iter().map(|&(n, x)| x / n).fold(0.0, f64::max);
    let start = [x_1.ln(), x_max.ln()];
    let cost = |servers: u32, p: [f64; 2]| -> f64 {
        let model = with_asymptotes(servers, p);
        data.iter().map(|&(n, x)| (model.throughput_per_s(n as u32) / x - 1.0).powi(2)).sum()
    };
    let busy_at_most = x_max * (1.0 / x_1 - (1.0 - PAUSE_SHARE) * pause_s.unwrap_or(0.0));
    let pauses = pause_s.is_some_and(|pause_s| pause_s > 0.0);
    let mut promising: Vec<(f64, u32)> = server_counts(busy_at_most)
        .filter(|servers| !pauses || f64::from(*servers) <= busy_at_most.max(1.0))
        .map(|servers| (cost(servers, start), servers))
        .collect();
    promising.sort_by(|a, b| a.0.total_cmp(&b.0));
    let best = promising
        .iter()
        .take(SERVERS_REFINED)
        .map(|&(_, servers)| {
            let (at, cost) = minimise(start, 0.05, |p| cost(servers, p));
            (cost, with_asymptotes(servers, at))
        })
        .min_by(|a, b| a.0.total_cmp(&b.0));
    let (cost, model) = best.expect("one server is always possible");
    let response_1_s = model.service_s + model.overhead_s;
    let mut parameters = vec![
        ("max_throughput_per_s", f64::from(model.servers) / model.service_s),
        ("response_time_1_ns", 1e9 * response_1_s),
    ];
    let rmse = |cost: f64| (cost / data.len() as f64).sqrt();
    let bends_sharply = asymptotes.rmse_percent / 100.0 < RIVAL_FACTOR * rmse(cost) + RIVAL_SHARE;
    let no_overhead = |pause_s| model.overhead_s - pause_s <= OVERHEAD_NONE * model.service_s;
    let is_determined = !bends_sharply || pause_s.is_some_and(no_overhead);
    let rival = |&(other, servers): &(f64, u32)| {
        let apart = (f64::from(servers) / f64::from(model.servers)).ln().abs();
        apart > SERVERS_APART && rmse(other) < RIVAL_FACTOR * rmse(cost) + RIVAL_SHARE
    };
    if is_determined && !promising.iter().any(rival) {
        parameters.extend([
            ("servers", f64::from(model.servers)),
            ("service_ns", 1e9 * model.service_s),
            ("overhead_ns", 1e9 * model.overhead_s),
        ]);
    }
    model_fit("machine_repair", &parameters, data, |n| model.throughput_per_s(n as u32))
}

/// The model with m servers from the logarithms of X(1) and of the ceiling.
fn with_asymptotes(servers: u32, [ln_x_1, ln_x_max]: [f64; 2]) -> MachineRepair {
    let service_s = f64::from(servers) / ln_x_max.exp();
    MachineRepair { servers, service_s, overhead_s: ((-ln_x_1).exp() - service_s).max(0.0) }
}

/// Numbers of servers from 1 to a little above the knee. More servers than users at the knee make
/// no difference.
fn server_counts(knee: f64) -> impl Iterator<Item = u32> {
    let most = (1.1 * knee).ceil().clamp(1.0, 1e6);
    let mut last = 0;
    (0..=SERVERS_TRIED).filter_map(move |i| {
        let spaced = most.powf(f64::from(i) / f64::from(SERVERS_TRIED)).round() as u32;
        let servers = if most <= f64::from(SERVERS_TRIED) { i + 1 } else { spaced.max(last + 1) };
        let wanted = f64::from(servers) <= most && servers > last;
        last = last.max(servers);
        wanted.then_some(servers)
    })
}

/// Limits of the simplex method.
const STEPS_MAX: usize = 120;
const TOLERANCE: f64 = 1e-7;

/// Simplex method of Nelder and Mead (The Computer Journal 7(4), 1965) in two dimensions. Minimises
/// `f` from `start` with a first simplex of size `step`; returns the place and the value.
fn minimise(start: [f64; 2], step: f64, f: impl Fn([f64; 2]) -> f64) -> ([f64; 2], f64) {
    let corners = [start, [start[0] + step, start[1]], [start[0], start[1] + step]];
    let mut simplex = corners.map(|p| (p, f(p)));
    for _ in 0..STEPS_MAX {
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        let [best, second, worst] = simplex;
        if spread(best.0, worst.0).max(spread(best.0, second.0)) < TOLERANCE {
            break;
        }
        let middle = along(best.0, second.0, 0.5);
        let try_at = |t: f64| {
            let p = along(middle, worst.0, t);
            (p, f(p))
        };
        let reflected = try_at(-1.0);
        let replacement = if reflected.1 < best.1 {
            let expanded = try_at(-2.0);
            if expanded.1 < reflected.1 { expanded } else { reflected }
        } else if reflected.1 < second.1 {
            reflected
        } else {
            try_at(if reflected.1 < worst.1 { -0.5 } else { 0.5 })
        };
        if replacement.1 < worst.1 {
            simplex[2] = replacement;
        } else {
            for corner in &mut simplex[1..] {
                let p = along(best.0, corner.0, 0.5);
                *corner = (p, f(p));
            }
        }
    }
    simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
    simplex[0]
}

fn along(from: [f64; 2], to: [f64; 2], t: f64) -> [f64; 2] {
    [from[0] + t * (to[0] - from[0]), from[1] + t * (to[1] - from[1])]
}

fn spread(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).abs().max((a[1] - b[1]).abs())
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
            let servers = servers(pause_s);
            assert!(servers.is_none_or(|n| n == 3.0), "{pause_s:?}: {servers:?}");
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

    /// Exact mean-value analysis of one queueing server and a delay (Reiser and Lavenberg, Mean-
    /// Value Analysis of Closed Multichain Queuing Networks, JACM 27, 1980).
    #[test]
    fn one_server_agrees_with_mean_value_analysis() {
        let (service_s, overhead_s) = (0.002, 0.050);
        let model = MachineRepair { servers: 1, service_s, overhead_s };
        let mut queue = 0.0;
        for users in 1..=80 {
            let response = service_s * (1.0 + queue);
            queue = f64::from(users) * response / (response + overhead_s);
            let off = model.response_mean_s(users) / response - 1.0;
            assert!(off.abs() < 1e-3, "{users} users: {off}");
        }
    }

    #[test]
    fn finds_the_bottom_of_a_curved_valley() {
        let valley = |[x, y]: [f64; 2]| (1.0 - x).powi(2) + 5.0 * (y - x * x).powi(2);
        let ([x, y], value) = minimise([-1.0, 1.0], 0.5, valley);
        assert!((x - 1.0).abs() < 1e-3 && (y - 1.0).abs() < 1e-3, "{x} {y}");
        assert!(value < 1e-6);
    }
}
