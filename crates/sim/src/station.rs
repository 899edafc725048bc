//! The station: workers behind one queue, first come, first served.

use super::generator::SimulatedRequest;
use super::stalls::StallSchedule;
use super::{SlowStart, World};
use knee_load::law::Law;
use knee_load::measure::{Histogram, Window};
use knee_load::rng::{self, Rng};
use knee_load::spec::TrialSpec;
use knee_load::time::Nanos;
use std::collections::VecDeque;

/// What becomes of a request that comes to the station.
#[derive(Debug)]
pub(super) enum Admission {
    /// It is being served until then.
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

    /// Ends the service of a request; the one that is served next, and until when.
    pub(super) fn finish(
        &mut self,
        request: SimulatedRequest,
        now: Nanos,
    ) -> Option<(SimulatedRequest, Nanos)> {
        if self.window.contains(request.arrives) {
            self.log.record(now - request.arrives);
        }
        let Some(next) = self.queue.pop_front() else {
            self.busy -= 1;
            return None;
        };
        Some((next, self.serve(now)))
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
        let at_first = self.slow_start.map_or(1.0, |slow| {
            let left = 1.0 - t.as_secs_f64() / slow.over.as_secs_f64();
            1.0 + (slow.factor - 1.0) * left.max(0.0)
        });
        let others = (self.busy + self.queue.len()).saturating_sub(1) as f64;
        at_first * (1.0 + self.drift_per_s * t.as_secs_f64()) * (1.0 + self.contention * others)
    }
}
