//! The station: workers behind one queue, its stalls and its faults.

use super::request::{RequestFate, SimulatedRequest};
use super::{ServiceOrder, SlowStart, World};
use crate::Stall;
use knee_load::law::Law;
use knee_load::measure::{Histogram, Window};
use knee_load::rng::{self, Rng};
use knee_load::spec::TrialSpec;
use knee_load::time::Nanos;
use std::collections::VecDeque;

/// Admission of a request that arrives at the station.
#[derive(Debug)]
pub(super) enum Admission {
    /// It is served until this time.
    Begun { ends: Nanos },
    /// It waits.
    Queued,
    /// There is no room.
    Refused,
}

/// The state of the station.
#[derive(Debug)]
pub(super) struct StationState {
    workers: usize,
    capacity: usize,
    busy: usize,
    queue: VecDeque<SimulatedRequest>,
    order: ServiceOrder,
    service: Law,
    rng: Rng,
    stalls: StallSchedule,
    slow_start: Option<SlowStart>,
    drift_per_s: f64,
    contention: f64,
    window: Window,
    log: Histogram,
}

impl StationState {
    pub(super) fn new(spec: &TrialSpec, world: &World) -> StationState {
        StationState {
            workers: world.workers.map_or(usize::MAX, |n| n as usize),
            capacity: world.capacity.map_or(usize::MAX, |n| n as usize),
            busy: 0,
            queue: VecDeque::new(),
            order: world.order,
            service: world.service,
            rng: rng::stream(spec.seed, rng::SERVICE),
            stalls: StallSchedule::new(&world.server_stalls),
            slow_start: world.slow_start,
            drift_per_s: world.drift_per_s,
            contention: world.contention,
            window: Window { start: spec.warmup, end: spec.window_end() },
            log: Histogram::default(),
        }
    }

    pub(super) fn arrive(&mut self, request: SimulatedRequest, now: Nanos) -> Admission {
        if self.busy + self.queue.len() >= self.capacity {
            return Admission::Refused;
        }
        if self.busy >= self.workers {
            self.queue.push_back(request);
            return Admission::Queued;
        }
        self.busy += 1;
        Admission::Begun { ends: self.serve(now) }
    }

    /// Ends the service of a request. Returns the next one and the end of its service.
    pub(super) fn finish(
        &mut self,
        request: SimulatedRequest,
        now: Nanos,
    ) -> Option<(SimulatedRequest, Nanos)> {
        if self.window.contains(request.arrives) {
            self.log.record(now - request.arrives);
        }
        let Some(next) = self.next() else {
            self.busy -= 1;
            return None;
        };
        Some((next, self.serve(now)))
    }

    fn next(&mut self) -> Option<SimulatedRequest> {
        match self.order {
            ServiceOrder::FirstCome => self.queue.pop_front(),
            ServiceOrder::LastCome => self.queue.pop_back(),
            ServiceOrder::Random => {
                let any = (rng::unit(&mut self.rng) * self.queue.len() as f64) as usize;
                self.queue.remove(any)
            }
            ServiceOrder::Favourites => {
                let is_favourite =
                    |request: &SimulatedRequest| request.connection.is_multiple_of(4);
                let first = self.queue.iter().position(is_favourite).unwrap_or(0);
                self.queue.remove(first)
            }
        }
    }

    pub(super) fn into_log(self) -> Histogram {
        self.log
    }

    fn serve(&mut self, now: Nanos) -> Nanos {
        let begin = self.stalls.after(now);
        let length = self.service.sample(&mut self.rng).0 as f64 * self.slowness(begin);
        self.stalls.work(begin, Nanos((length as u64).max(1)))
    }

    fn slowness(&self, t: Nanos) -> f64 {
        let slow_start = self.slow_start.map_or(1.0, |slow| {
            let left = 1.0 - t.as_secs_f64() / slow.over.as_secs_f64();
            1.0 + (slow.factor - 1.0) * left.max(0.0)
        });
        let others = (self.busy + self.queue.len()).saturating_sub(1) as f64;
        slow_start * (1.0 + self.drift_per_s * t.as_secs_f64()) * (1.0 + self.contention * others)
    }
}

/// Begin and end of stalls, ascending and disjoint.
#[derive(Debug)]
pub(super) struct StallSchedule(Vec<(Nanos, Nanos)>);

impl StallSchedule {
    pub(super) fn new(stalls: &[Stall]) -> StallSchedule {
        let mut spans: Vec<_> = stalls.iter().map(|s| (s.at, s.at + s.length)).collect();
        spans.sort_unstable();
        let mut joined: Vec<(Nanos, Nanos)> = Vec::new();
        for (begin, end) in spans {
            match joined.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((begin, end)),
            }
        }
        StallSchedule(joined)
    }

    /// `t`, or the end of the stall that it falls in.
    pub(super) fn after(&self, t: Nanos) -> Nanos {
        let next = self.0.partition_point(|&(_, end)| end <= t);
        match self.0.get(next) {
            Some(&(begin, end)) if begin <= t => end,
            _ => t,
        }
    }

    /// The length of the stall that ends at `t`; zero without one.
    pub(super) fn ended_at(&self, t: Nanos) -> Nanos {
        let at = self.0.binary_search_by_key(&t, |&(_, end)| end);
        at.map_or(Nanos::ZERO, |at| t - self.0[at].0)
    }

    /// End of work of this length that begins at `t` and is interrupted by stalls.
    pub(super) fn work(&self, t: Nanos, length: Nanos) -> Nanos {
        let mut done = self.after(t) + length;
        let next = self.0.partition_point(|&(begin, _)| begin <= t);
        for &(begin, end) in &self.0[next..] {
            if done <= begin {
                break;
            }
            done += end - begin;
        }
        done
    }
}

/// The faults of a server; the default has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Every n-th connection never gets an answer (4: the 4th, 8th, …); 0: all do.
    pub hangs_every: u64,
    /// Requests above a rate are answered with status 503.
    pub rejects: Option<RejectAbove>,
    /// The share of operations that are served in full and then answered with a status of 500, 0 to
    /// 1.
    pub errors: f64,
    /// Time at which the process crashes: connections are reset, further ones refused.
    pub crash_at: Option<Nanos>,
}

/// A limit on the rate of requests, as a token bucket holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RejectAbove {
    /// Requests per second that pass.
    pub per_s: f64,
    /// Requests that may pass at once after a time without any.
    pub burst: f64,
    /// Time of a rejection; above 0, so that virtual time advances.
    pub takes: Nanos,
}

/// Time of a refused connection; above 0, so that virtual time advances.
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

    /// The fault that a request meets instead of the station: an answer after a time, or
    /// `Some(None)` for no answer at all. `None`: it goes to the station.
    pub(super) fn fault_of(
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

    /// Draws the answer to a request that was served.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_interrupted_and_moments_are_put_off() {
        let stall = |at, length| Stall { at: Nanos(at), length: Nanos(length) };
        // 10 to 20 and 30 to 45; given out of order and overlapping.
        let stalls = StallSchedule::new(&[stall(30, 10), stall(10, 10), stall(35, 10)]);
        for (t, after) in [(9, 9), (10, 20), (19, 20), (20, 20), (44, 45), (50, 50)] {
            assert_eq!(stalls.after(Nanos(t)), Nanos(after), "{t}");
        }
        for (t, length, done, what) in [
            (0, 5, 5, "before any"),
            (0, 10, 10, "done just as it begins"),
            (0, 11, 21, "interrupted once"),
            (15, 5, 25, "begun in it"),
            (5, 20, 50, "interrupted twice"),
            (20, 10, 30, "between two"),
            (60, 5, 65, "after all"),
        ] {
            assert_eq!(stalls.work(Nanos(t), Nanos(length)), Nanos(done), "{what}");
        }
    }
}
