//! The machine-repair model: users who alternate between a delay and a station of m servers.

use super::model_fit;
use crate::experiment::sweep::report::ModelFit;

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
pub(super) fn fit(data: &[(f64, f64)], pause_s: Option<f64>, asymptotes: &ModelFit) -> ModelFit {
    let x_max = data.iter().map(|d| d.1).fold(0.0, f64::max);
    let x_1 = data.iter().map(|&(n, x)| x / n).fold(0.0, f64::max);
    let start = [x_1.ln(), x_max.ln()];
    let cost = |servers: u32, p: [f64; 2]| squares(&with_asymptotes(servers, p), data);
    let busy_at_most = x_max * (1.0 / x_1 - (1.0 - PAUSE_SHARE) * pause_s.unwrap_or(0.0));
    let pauses = pause_s.is_some_and(|pause_s| pause_s > 0.0);
    let has_room = |n: &u32| !pauses || f64::from(*n) <= busy_at_most.max(1.0);
    let mut promising: Vec<(f64, u32)> = server_counts(busy_at_most)
        .filter(has_room)
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
    let is_told = !bends_sharply || pause_s.is_some_and(no_overhead);
    let rival = |&(other, servers): &(f64, u32)| {
        let apart = (f64::from(servers) / f64::from(model.servers)).ln().abs();
        apart > SERVERS_APART && rmse(other) < RIVAL_FACTOR * rmse(cost) + RIVAL_SHARE
    };
    if is_told && !promising.iter().any(rival) {
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
        let all = i + 1;
        let servers = if most <= f64::from(SERVERS_TRIED) { all } else { spaced.max(last + 1) };
        let wanted = f64::from(servers) <= most && servers > last;
        last = last.max(servers);
        wanted.then_some(servers)
    })
}

fn squares(model: &MachineRepair, data: &[(f64, f64)]) -> f64 {
    data.iter().map(|&(n, x)| (model.throughput_per_s(n as u32) / x - 1.0).powi(2)).sum()
}

/// Limits of the simplex method.
const STEPS_MAX: usize = 120;
const TOLERANCE: f64 = 1e-7;

/// Simplex method of Nelder and Mead (The Computer Journal 7(4), 1965) in two dimensions. Minimises
/// `f` from `start` with a first simplex of size `step`; gives the place and the value.
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
