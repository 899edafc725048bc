//! Queueing stations whose behaviour is known in closed form, for comparison with measurements.
//!
//! Names after Kendall: arrivals / service / servers, where M is exponential and D is fixed. Rates
//! are per second and per server, times are in seconds, queues are endless and first come, first
//! served. A station that is offered as much as it can serve, or more, has no steady state: its
//! times are infinite.

use std::collections::VecDeque;

/// Mean response time of M/M/1: 1/(μ − λ) (Kleinrock, Queueing Systems I, 1975, 3.2).
pub fn mm1_response_mean_s(arrivals_per_s: f64, service_per_s: f64) -> f64 {
    if arrivals_per_s >= service_per_s {
        return f64::INFINITY;
    }
    1.0 / (service_per_s - arrivals_per_s)
}

/// Response time that a share `q` (0 to 1) of the operations do not exceed in M/M/1, where it is
/// exponential: −ln(1 − q)/(μ − λ).
pub fn mm1_response_quantile_s(arrivals_per_s: f64, service_per_s: f64, q: f64) -> f64 {
    -(1.0 - q).ln() * mm1_response_mean_s(arrivals_per_s, service_per_s)
}

/// Mean wait before service of M/D/1: ρ/(2μ(1 − ρ)), by Pollaczek and Khinchine.
pub fn md1_wait_mean_s(arrivals_per_s: f64, service_per_s: f64) -> f64 {
    let load = arrivals_per_s / service_per_s;
    if load >= 1.0 {
        return f64::INFINITY;
    }
    load / (2.0 * service_per_s * (1.0 - load))
}

/// The share of operations that have to wait in M/M/c, by Erlang's C formula. `offered` = λ/μ is
/// the load in servers; the share is 1 at or beyond saturation.
///
/// From Erlang's B by its recursion B(0) = 1, B(k) = a·B(k−1)/(k + a·B(k−1)), which neither
/// overflows nor cancels: C = B/(1 − ρ·(1 − B)).
pub fn erlang_c(servers: u32, offered: f64) -> f64 {
    let load = offered / f64::from(servers);
    if load >= 1.0 {
        return 1.0;
    }
    let blocked = (1..=servers).fold(1.0, |b, k| offered * b / (f64::from(k) + offered * b));
    blocked / (1.0 - load * (1.0 - blocked))
}

/// Mean wait before service of M/M/c: C/(cμ − λ) with Erlang's C.
pub fn mmc_wait_mean_s(servers: u32, arrivals_per_s: f64, service_per_s: f64) -> f64 {
    let capacity = f64::from(servers) * service_per_s;
    if arrivals_per_s >= capacity {
        return f64::INFINITY;
    }
    erlang_c(servers, arrivals_per_s / service_per_s) / (capacity - arrivals_per_s)
}

/// Mean response time of D/M/1: 1/(μ(1 − σ)), where σ < 1 solves σ = exp(−(μ − μσ)/λ) (Kleinrock
/// I, 6.4, with the transform of a fixed gap).
pub fn dm1_response_mean_s(arrivals_per_s: f64, service_per_s: f64) -> f64 {
    let load = arrivals_per_s / service_per_s;
    if load >= 1.0 {
        return f64::INFINITY;
    }
    // exp(−(1 − σ)/ρ) − σ is convex and above zero at 0. So Newton's steps rise from 0 to the
    // smaller root (the other is 1) and never pass it.
    let mut sigma = 0.0;
    for _ in 0..NEWTON_STEPS {
        let e = (-(1.0 - sigma) / load).exp();
        sigma += (e - sigma) / (1.0 - e / load);
    }
    1.0 / (service_per_s * (1.0 - sigma))
}

/// Response time that a share `q` (0 to 1) of the operations do not exceed in D/M/1, where it is
/// exponential as in M/M/1.
pub fn dm1_response_quantile_s(arrivals_per_s: f64, service_per_s: f64, q: f64) -> f64 {
    -(1.0 - q).ln() * dm1_response_mean_s(arrivals_per_s, service_per_s)
}

/// Newton's steps. Usually six suffice; close to saturation more are needed.
const NEWTON_STEPS: u32 = 40;

/// The share of arrivals that M/D/1/K loses, with `load` = λ/μ, which may be above 1. It has room
/// for `places` operations, at least 1, the one in service included.
///
/// From the chain embedded at the ends of service: the number that those who leave leave behind, 0
/// to K − 1. Source: Tijms, A First Course in Stochastic Models, 2003, 9.8, on finite M/G/c. From
/// one end to the next a Poisson number of mean ρ comes. Upward and downward crossings of each
/// level balance. So π(j+1)·p(0) = π(0)·P(A > j) + Σ π(i)·P(A > j − i + 1) over i = 1 … j. All its
/// terms are positive. A customer leaves every 1/(μ(π(0)/ρ + 1)) seconds, which is the rate of
/// those who get in. So the share of the lost is 1 − 1/(π(0) + ρ).
pub fn md1k_loss(load: f64, places: u64) -> f64 {
    if load.is_nan() || load <= 0.0 {
        return 0.0;
    }
    // Hardly a service ends without an arrival meanwhile: the server never rests.
    if load > LOAD_HIGH && places > 1 {
        return 1.0 - 1.0 / load;
    }
    let none = (-load.min(LOAD_HIGH)).exp();
    let more = poisson_tails(load.min(LOAD_HIGH));
    // π up to a factor: of the level 0, of the last levels (the newest first), of all together.
    let mut first = 1.0;
    let mut last: VecDeque<f64> = VecDeque::new();
    let mut sum = 1.0;
    for level in 1..places {
        let from_first = first * more.get(level as usize - 1).copied().unwrap_or(0.0);
        let from_rest: f64 = last.iter().zip(&more[1..]).map(|(p, m)| p * m).sum();
        let next = (from_first + from_rest) / none;
        sum += next;
        if sum > 1.0 / SMALLEST {
            // Nothing is left of the first level: ρ > 1 and many places.
            return 1.0 - 1.0 / load;
        }
        if next < sum * SMALLEST {
            break;
        }
        last.push_front(next);
        last.truncate(more.len());
    }
    first /= sum;
    (1.0 - 1.0 / (first + load)).max(0.0)
}

/// A load beyond which a service without an arrival meanwhile has a probability below 10^−43.
const LOAD_HIGH: f64 = 100.0;
/// Share of a sum that is negligible.
const SMALLEST: f64 = 1e-30;

/// P(A > 0), P(A > 1), … of a Poisson number A, as far as they matter.
fn poisson_tails(mean: f64) -> Vec<f64> {
    let mut term = (-mean).exp();
    let mut terms = vec![term];
    for k in 1u32.. {
        term *= mean / f64::from(k);
        terms.push(term);
        if f64::from(k) > mean && term < SMALLEST {
            break;
        }
    }
    // From the small end, so that the tails do not cancel.
    let mut tails: Vec<f64> = terms
        .iter()
        .rev()
        .scan(0.0, |sum, term| {
            let above = *sum;
            *sum += term;
            Some(above)
        })
        .collect();
    tails.reverse();
    tails
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::rng;
    use knee_load::stats::buffer::Buffer;
    use knee_load::time::Nanos;

    fn assert_close(value: f64, expected: f64, what: &str) {
        let off = (value - expected).abs() / expected;
        assert!(off < 1e-3, "{what}: {value}, not {expected}");
    }

    #[test]
    fn known_values() {
        for (value, expected, what) in [
            (mm1_response_mean_s(800.0, 1000.0), 0.005, "M/M/1 at 0.8"),
            (mm1_response_quantile_s(800.0, 1000.0, 0.99), 0.023_026, "its 99th percentile"),
            (md1_wait_mean_s(500.0, 1000.0), 0.000_5, "M/D/1 at 0.5: half of M/M/1's wait"),
            (erlang_c(1, 0.7), 0.7, "with one server the busy share waits"),
            (erlang_c(2, 1.0), 1.0 / 3.0, "two servers, half loaded"),
            (erlang_c(10, 8.0), 0.409_18, "ten servers at 0.8"),
            (erlang_c(1000, 900.0), 0.000_592_67, "a thousand servers do not overflow"),
            (mmc_wait_mean_s(1, 800.0, 1000.0), 0.004, "M/M/1 as M/M/c"),
            (dm1_response_quantile_s(5e3, 1.0 / 120e-6, 0.5), 123.1e-6, "D/M/1 at 0.6, median"),
            (dm1_response_quantile_s(5e3, 1.0 / 120e-6, 0.9), 408.9e-6, "its 90th percentile"),
            (dm1_response_mean_s(1.0, 1e6), 1e-6, "an idle D/M/1 only serves"),
            // Near saturation σ → 1 − 2(1 − ρ): half the response time of M/M/1.
            (dm1_response_mean_s(9999.0, 10_000.0), 0.5, "D/M/1 at 0.9999"),
        ] {
            assert_close(value, expected, what);
        }
    }

    #[test]
    fn saturated_stations_have_no_steady_state() {
        assert_eq!(mm1_response_mean_s(5.0, 5.0), f64::INFINITY);
        assert_eq!(md1_wait_mean_s(5.0, 5.0), f64::INFINITY);
        assert_eq!(mmc_wait_mean_s(2, 11.0, 5.0), f64::INFINITY);
        assert_eq!(dm1_response_mean_s(5.0, 5.0), f64::INFINITY);
        assert_eq!(erlang_c(2, 2.5), 1.0);
    }

    fn poisson(seed: u64, load: f64, count: usize) -> Vec<Nanos> {
        let mut rng = rng::stream(seed, 1);
        let mut t = 0.0;
        let gaps = (0..count).map(|_| {
            t += rng::exp1(&mut rng) / load;
            Nanos((t * 1e6) as u64)
        });
        gaps.collect()
    }

    #[test]
    fn loss_of_md1k_is_that_of_a_simulation() {
        const SERVICE: Nanos = Nanos(1_000_000);
        const COUNT: usize = 3_000_000;
        for load in [0.3, 0.7, 0.9, 1.0, 1.1, 2.0, 5.0] {
            let arrivals = poisson(3, load, COUNT);
            for places in [2, 3, 5, 10] {
                let simulated =
                    Buffer::plain(places - 1).lost(arrivals.clone(), SERVICE) as f64 / COUNT as f64;
                let exact = md1k_loss(load, places);
                // Rare losses come in few clusters, which chance tells no closer.
                let tolerance = if exact > 0.03 { 0.01 * exact } else { 0.001 };
                assert!(
                    (simulated - exact).abs() <= tolerance,
                    "{load}, {places}: {simulated}, not {exact}"
                );
            }
        }
    }

    #[test]
    fn loss_at_its_limits() {
        for load in [0.01, 0.5, 1.0, 3.0, 99.0, 101.0, 1e6] {
            // Erlang's loss formula for one server holds for any service law.
            assert_close(md1k_loss(load, 1), load / (1.0 + load), "one place");
        }
        for load in [1.5, 4.0, 99.0, 101.0, 1e6] {
            assert_close(md1k_loss(load, 100_000), 1.0 - 1.0 / load, "overload");
        }
        assert!(md1k_loss(0.9, 1_000) < 1e-12);
        assert!(md1k_loss(0.9, 10) > md1k_loss(0.9, 11));
        // At a load of 1 the loss falls as 1/(2K).
        assert!((md1k_loss(1.0, 2_000) * 4_000.0 - 1.0).abs() < 0.01);
        for nothing in [0.0, -1.0, f64::NAN] {
            assert_eq!(md1k_loss(nothing, 5), 0.0);
        }
    }
}
