//! `--seed`.

use super::values::parse_whole;
use clap::Args;
use std::hash::{BuildHasher, RandomState};

#[derive(Args, Clone, Debug)]
pub struct SeedArgs {
    /// Seed of all random choices, for repeatable runs [default: random; always printed]
    #[arg(long, value_name = "N", value_parser = parse_whole, hide_short_help = true)]
    seed: Option<u64>,
}

impl SeedArgs {
    /// The seed given, or a random one short enough to be typed.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(random_seed)
    }
}

/// A seed that differs from run to run: the standard library's hash keys come from the system.
pub fn random_seed() -> u64 {
    RandomState::new().hash_one(0) & 0xffff_ffff
}
