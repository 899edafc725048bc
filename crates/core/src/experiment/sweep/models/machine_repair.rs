//! The machine-repair model: users who alternate between a delay and a station of m servers.

use super::model_fit;
use super::nelder_mead::minimise;
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

/// A state whose weight is below this share of all so far, and those beyond it, add nothing.
const NEGLIGIBLE: f64 = 1e-17;

/// Numbers of servers tried, of all those possible, evenly on a logarithmic scale.
const SERVERS_TRIED: u32 = 48;
/// The most promising of them are fitted in full.
const SERVERS_REFINED: usize = 6;
/// Where a number of servers further apart than this, as a logarithm, fits nearly as well, the
/// data do not tell how many there are.
const SERVERS_APART: f64 = 0.2;
const RIVAL_FACTOR: f64 = 1.25;
const RIVAL_SHARE: f64 = 0.001;
/// An overhead below this share of the service time is none: then there are as many servers as
/// users at the knee.
const OVERHEAD_NONE: f64 = 0.02;
/// The pause is known this well.
const PAUSE_SHARE: f64 = 0.02;

impl MachineRepair {
    /// Mean response time of `users` who each think `overhead_s` in the mean between two
    /// operations: N/X − Z, by Little's law over the whole cycle.
    #[cfg(test)]
    pub fn response_mean_s(&self, users: u32) -> f64 {
        f64::from(users) / self.throughput_per_s(users) - self.overhead_s
    }

    /// Throughput of `users`, by the birth–death chain of users at the station: birth rate
    /// (N − k)/overhead, death rate min(k, m)/s (Kleinrock, Queueing Systems I, 1975, 3.8).
    pub fn throughput_per_s(&self, users: u32) -> f64 {
        let servers = f64::from(self.servers);
        let n = f64::from(users);
        if self.overhead_s <= 0.0 {
            return n.min(servers) / self.service_s;
        }
        // The weight of k + 1 users at the station over that of k: falls with k, so the weights
        // have one peak, and are summed from there outwards until they vanish: about √N of them.
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

    /// The likeliest number of users at the station: where the ratio of neighbouring weights
    /// passes 1, with idle servers or without.
    fn likeliest(&self, users: u32) -> u32 {
        let (n, m) = (f64::from(users), f64::from(self.servers));
        let idle = (n * self.service_s - self.overhead_s) / (self.service_s + self.overhead_s);
        let busy = n - m * self.overhead_s / self.service_s;
        let k = if idle + 1.0 <= m { idle } else { busy };
        (k.clamp(0.0, n) as u32).min(users)
    }
}

/// Fits servers, service and overhead, which has at least the users' pause in it. Each number of
/// servers is judged with the rise X(1) and the ceiling m/s that the data show; for the most
/// promising ones both are then moved by Nelder–Mead.
///
/// How sharply throughput bends tells the number of servers only if service times are exponential:
/// if they are fixed, it bends sharply for every number (Lazowska et al., chapter 5). So where the
/// mere asymptotes fit as well, and users may spend time neither pausing nor served, the number is
/// not stated.
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
        (
            "max_throughput_per_s",
            f64::from(model.servers) / model.service_s,
        ),
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
    model_fit("machine_repair", &parameters, data, |n| {
        model.throughput_per_s(n as u32)
    })
}

/// The model with m servers of these logarithms of X(1) and of the ceiling.
fn with_asymptotes(servers: u32, [ln_x_1, ln_x_max]: [f64; 2]) -> MachineRepair {
    let service_s = f64::from(servers) / ln_x_max.exp();
    MachineRepair {
        servers,
        service_s,
        overhead_s: ((-ln_x_1).exp() - service_s).max(0.0),
    }
}

/// From 1 to a little above the knee: more servers than users at the knee cannot be told apart.
fn server_counts(knee: f64) -> impl Iterator<Item = u32> {
    let most = (1.1 * knee).ceil().clamp(1.0, 1e6);
    let mut last = 0;
    (0..=SERVERS_TRIED).filter_map(move |i| {
        let spaced = most.powf(f64::from(i) / f64::from(SERVERS_TRIED)).round() as u32;
        let all = i + 1;
        let servers = if most <= f64::from(SERVERS_TRIED) {
            all
        } else {
            spaced.max(last + 1)
        };
        let wanted = f64::from(servers) <= most && servers > last;
        last = last.max(servers);
        wanted.then_some(servers)
    })
}

fn squares(model: &MachineRepair, data: &[(f64, f64)]) -> f64 {
    data.iter()
        .map(|&(n, x)| (model.throughput_per_s(n as u32) / x - 1.0).powi(2))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exact mean-value analysis of one queueing server and a delay (Reiser and Lavenberg, Mean-
    /// Value Analysis of Closed Multichain Queuing Networks, JACM 27, 1980).
    #[test]
    fn one_server_agrees_with_mean_value_analysis() {
        let (service_s, overhead_s) = (0.002, 0.050);
        let model = MachineRepair {
            servers: 1,
            service_s,
            overhead_s,
        };
        let mut queue = 0.0;
        for users in 1..=80 {
            let response = service_s * (1.0 + queue);
            queue = f64::from(users) * response / (response + overhead_s);
            let off = model.response_mean_s(users) / response - 1.0;
            assert!(off.abs() < 1e-3, "{users} users: {off}");
        }
    }
}
