//! What a limit on operations per second did to a load.

use serde::{Deserialize, Serialize};

/// What a limit on operations per second let through and held back, in the whole trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateLimitUse {
    /// Operations per second that may start.
    pub per_s: f64,
    /// Operations that started within the limit.
    pub started: u64,
    /// Operations that had to wait for the limit.
    pub held_back: u64,
}

impl RateLimitUse {
    /// Adds the part of another worker, or of another process.
    pub(super) fn merge(&mut self, other: RateLimitUse) {
        self.per_s += other.per_s;
        self.started += other.started;
        self.held_back += other.held_back;
    }
}
