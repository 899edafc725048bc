//! Sentinels: patient operations beside the load, by a thread and connections of their own.

use super::RunPlan;
use super::dispatch::Dispatch;
use crate::error::RunError;
use crate::pool::client::Client;
use crate::pool::requests::RequestSet;
use crate::reactor::{Backend, Event, EventTime, Sink};
use crate::sys::clock::{self, MonotonicClock};
use knee_load::measure::SentinelSample;
use knee_load::rng;
use knee_load::sentinel::Sentinels;
use knee_load::spec::{Load, Share, TrialSpec, WorkerRange};
use knee_load::time::{Clock, Nanos};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest wait for an event. Bounds the time until a flag is seen.
const LOOK_EVERY: Nanos = Nanos::from_millis(50);

/// Makes the sentinels of a trial that begins at `origin`, in nanoseconds of CLOCK_MONOTONIC, until
/// `stop` or `enough` is set. Sets `enough` once they have shown what they were to show. `origin`
/// may wait; `None`: the trial does not begin.
///
/// # Errors
/// The target cannot be reached, or the system refuses what a connection needs.
pub fn run_sentinels(
    spec: &TrialSpec,
    origin: impl FnOnce() -> Option<u64>,
    stop: &AtomicBool,
    enough: &AtomicBool,
) -> Result<Vec<SentinelSample>, RunError> {
    let Some(sentinels) = Sentinels::of(spec) else {
        return Ok(Vec::new());
    };
    let patient = patient(spec);
    let plan = RunPlan::new(&patient, WorkerRange::whole(1), stop, enough)?;
    let picks = rng::stream(spec.seed, rng::SENTINELS);
    let requests = RequestSet::new(&patient.target, plan.requests.clone(), 0, picks);
    let dispatch = Dispatch { plan: &plan, share: Share::WHOLE, connects_each: true };
    let (client, io) = dispatch.client(requests);
    let mut io = io.map_err(super::not_run)?;
    let Some(origin) = origin() else {
        return Ok(Vec::new());
    };
    let clock = MonotonicClock { origin };
    let mut worker = SentinelWorker { client, sentinels, clock };
    worker.client.set_epoch(clock::realtime_ahead_ns() + origin);
    worker.run(&mut *io, [stop, enough]).map_err(super::not_run)?;
    Ok(worker.sentinels.finish(clock.now()))
}

/// The same trial for users who wait to its end, of whom each has a connection.
fn patient(spec: &TrialSpec) -> TrialSpec {
    let every = spec.sentinel.map_or(Nanos::ZERO, |sentinel| sentinel.every);
    let most = u32::try_from(spec.duration.0 / every.0.max(1) + 1).unwrap_or(u32::MAX);
    let mut load = spec.load.clone();
    if let Load::Open(open) = &mut load {
        open.connections_max = most;
    }
    TrialSpec {
        load,
        timeout: spec.window_end(),
        connect_timeout: spec.window_end(),
        retry: None,
        ..spec.clone()
    }
}

struct SentinelWorker {
    client: Box<dyn Client>,
    sentinels: Sentinels,
    clock: MonotonicClock,
}

impl SentinelWorker {
    fn run(&mut self, io: &mut dyn Backend, flags: [&AtomicBool; 2]) -> io::Result<()> {
        let [_, enough] = flags;
        while !flags.iter().any(|flag| flag.load(Ordering::Relaxed)) {
            let now = self.clock.now();
            self.client.expire(io, now);
            let due = self.sentinels.next_due();
            if due.is_some_and(|due| due <= now) {
                let op = self.sentinels.begin(now);
                self.client.start(io, op, now);
            }
            let clock = self.clock;
            self.client.flush(io, &|| clock.now());
            self.note_ended();
            if self.sentinels.have_shown_enough(now) {
                enough.store(true, Ordering::Relaxed);
            }
            let next = due.unwrap_or(Nanos::MAX).min(self.client.next_deadline());
            let next = next.min(self.client.next_due());
            io.poll((next - self.clock.now()).min(LOOK_EVERY), self)?;
        }
        Ok(())
    }

    fn note_ended(&mut self) {
        while let Some(completion) = self.client.take_completed() {
            self.sentinels.on_completion(completion);
        }
        while self.client.take_message().is_some() {}
    }
}

impl Sink for SentinelWorker {
    fn on_event(&mut self, io: &mut dyn Backend, slot: u32, event: Event<'_>) {
        let now = self.clock.now();
        self.client.on_event(io, slot, event, EventTime::seen(now));
        let clock = self.clock;
        self.client.flush(io, &|| clock.now());
        self.note_ended();
    }
}
