//! Seeded randomness: one generator for everything, split into independent streams.

use rand_core::{RngCore, SeedableRng};

/// The random generator of all of knee: xoshiro256++, fast, and the same on every platform, so
/// that a seed printed in a report replays the run anywhere.
pub type Rng = rand_xoshiro::Xoshiro256PlusPlus;

/// The first stream of the arrival processes; worker i takes number i after it.
pub const ARRIVALS: u64 = 1 << 40;
/// The first stream of the virtual users' pauses; worker i takes number i after it.
pub const PAUSES: u64 = 2 << 40;
/// The stream of a simulated server's service times.
pub const SERVICE: u64 = 3 << 40;

/// The stream number `stream` of `seed`. Different streams of one seed are independent: a worker,
/// or a purpose within it, takes one each.
pub fn stream(seed: u64, stream: u64) -> Rng {
    // SplitMix64's odd increment spreads neighbouring stream numbers over the seed space.
    Rng::seed_from_u64(seed ^ stream.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// A number in [0, 1) with 53 random bits.
pub fn unit(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// An exponential variate of mean 1, by inversion: −ln(1 − U).
pub fn exp1(rng: &mut Rng) -> f64 {
    -(1.0 - unit(rng)).ln()
}
