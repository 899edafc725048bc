//! How a simulated server fails.

use super::generator::{RequestFate, SimulatedRequest};
use knee_load::rng::{self, Rng};
use knee_load::time::Nanos;

/// The faults of a server; the default has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Every so-manieth connection never gets an answer (4: the 4th, 8th, …). 0: all do.
    pub hangs_every: u64,
    /// It answers with a status of 503 what exceeds a rate.
    pub rejects: Option<RejectAbove>,
    /// The share of operations that are served in full and then answered with a status of 500, 0 to
    /// 1.
    pub errors: f64,
    /// Its process dies at this time of the run: connections are reset, further ones refused.
    pub crash_at: Option<Nanos>,
}

/// A limit on the rate of requests, as a token bucket holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RejectAbove {
    /// Requests per second that pass.
    pub per_s: f64,
    /// Requests that may pass at once after a time without any.
    pub burst: f64,
    /// How long a rejection takes, so that time passes.
    pub takes: Nanos,
}

/// Least time of a refused connection, so that time passes.
const REFUSAL: Nanos = Nanos::from_micros(20);

/// The faults of one trial as they happen.
#[derive(Debug)]
pub(super) struct FaultState {
    faults: Faults,
    rng: Rng,
    tokens: f64,
    filled: Nanos,
}

impl FaultState {
    pub(super) fn new(faults: &Faults, seed: u64) -> FaultState {
        FaultState {
            faults: *faults,
            rng: rng::stream(seed, rng::SERVER_FAULTS),
            tokens: faults.rejects.map_or(0.0, |limit| limit.burst),
            filled: Nanos::ZERO,
        }
    }

    /// What a request meets instead of the station: an answer after a time, or `Some(None)` where
    /// it never gets one. `None`: the station.
    pub(super) fn meets(
        &mut self,
        request: &SimulatedRequest,
        now: Nanos,
    ) -> Option<Option<(RequestFate, Nanos)>> {
        if self.has_crashed(now) {
            return Some(Some((RequestFate::Refused, REFUSAL)));
        }
        let every = self.faults.hangs_every;
        if every > 0 && request.connection.is_multiple_of(every) {
            return Some(None);
        }
        let limit = self.faults.rejects?;
        let refill = (now - self.filled).as_secs_f64() * limit.per_s;
        self.tokens = (self.tokens + refill).min(limit.burst.max(1.0));
        self.filled = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return None;
        }
        Some(Some((RequestFate::Rejected, limit.takes)))
    }

    /// What one that was served is answered with.
    pub(super) fn answer(&mut self) -> RequestFate {
        if self.faults.errors > 0.0 && rng::unit(&mut self.rng) < self.faults.errors {
            return RequestFate::Rejected;
        }
        RequestFate::Served
    }

    pub(super) fn has_crashed(&self, now: Nanos) -> bool {
        self.faults.crash_at.is_some_and(|at| at <= now)
    }
}
