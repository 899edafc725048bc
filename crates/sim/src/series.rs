//! Series for tests, all from seeds.

use knee_load::rng::{self, Rng};

/// A standard normal variate (Box and Muller).
pub fn normal(rng: &mut Rng) -> f64 {
    let radius = (2.0 * rng::exp1(rng)).sqrt();
    radius * (std::f64::consts::TAU * rng::unit(rng)).cos()
}

/// A first-order autoregression of n values about 100 with standard deviation `sd`.
pub fn autoregression(rng: &mut Rng, n: usize, phi: f64, sd: f64) -> Vec<f64> {
    let mut x = normal(rng) * sd;
    let noise = sd * (1.0 - phi * phi).sqrt();
    let mut values = Vec::with_capacity(n);
    for _ in 0..n {
        values.push(100.0 + x);
        x = phi * x + noise * normal(rng);
    }
    values
}

/// Response times of an M/M/1 queue in equilibrium, with the times of departure, in s, by
/// Lindley's recursion.
pub fn mm1(rng: &mut Rng, lambda: f64, mu: f64, seconds: f64) -> Vec<(f64, f64)> {
    // The first customer of a queue in equilibrium has an Exp(μ − λ) response time.
    let mut response = rng::exp1(rng) / (mu - lambda).max(mu / 1e3);
    if lambda >= mu {
        response = 0.0;
    }
    let mut now = 0.0;
    let mut served = Vec::new();
    while now < seconds {
        served.push((now + response, response));
        let gap = rng::exp1(rng) / lambda;
        now += gap;
        response = (response - gap).max(0.0) + rng::exp1(rng) / mu;
    }
    served
}
