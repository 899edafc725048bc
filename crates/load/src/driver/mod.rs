//! Drivers decide when operations start. Pure; the engine and the simulator both run them.
//!
//! All drivers are one type, without dynamic dispatch.
//!
//! `loops` has the open loop (a throttle that makes every operation) and the closed one, `overload`
//! S-Clients and scheduled connects. `retrying` wraps any of them whose failed operations are tried
//! again: the driver below sees one end of each request, and `measure::attempts` counts requests
//! apart from attempts. `limit` wraps any of them within operations per second (`knee agent
//! --rate-max`). A worker's driver, the steps of its sessions and what it sends again share one
//! `RateLimit`.

mod limit;
mod loops;
mod overload;
mod retrying;
#[cfg(test)]
mod tests;

use crate::measure::{AttemptsMeasured, Completion, Op};
use crate::spec::{ConnectScheme, Load, Pause, Share, TrialSpec};
use crate::throttle::{Throttle, Turn};
use crate::time::Nanos;
pub use limit::{Gate, Limited, RateLimit};
pub use loops::{BACKOFF_FIRST, BACKOFF_LONGEST, ClosedLoop, OpenLoop, RAMP_UP_STEP};
pub use overload::{SClients, Scheduled};
pub use retrying::{Retries, Retrying};

/// Next action of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start this operation now, then poll again.
    Start(Op),
    /// Start this further attempt of an operation that failed now, then poll again.
    Retry(Op),
    /// Count this arrival as shed (more in flight than permitted), then poll again.
    Shed(Op),
    /// Nothing before this time, unless an operation completes.
    WaitUntil(Nanos),
    /// Nothing until an operation completes.
    WaitForCompletion,
    /// Nothing more; operations in flight may still complete.
    Done,
}

/// Decides when operations start. `now` never decreases from call to call.
pub trait Driver {
    /// The next action at `now`.
    fn poll(&mut self, now: Nanos) -> Action;

    /// Notes that the connection of the operation with this lane was established, if it has one of
    /// its own and goes on. Called at most once, before its completion.
    fn on_established(&mut self, _lane: u32, _now: Nanos) {}

    /// Notes that an operation ended, with or without success. Not called for shed ones.
    fn on_completion(&mut self, completion: &Completion, now: Nanos);
}

/// The intended time of the next operation of a schedule that ends with the window, or the action
/// while there is none.
#[inline]
fn next_intended(throttle: &mut Throttle, end: Nanos, now: Nanos) -> Result<Nanos, Action> {
    match throttle.poll(now) {
        Turn::Operate { intended } if intended < end => Ok(intended),
        Turn::WaitUntil(time) if now < end => Err(Action::WaitUntil(time.min(end))),
        // The rest of the schedule lies beyond the window.
        _ => Err(Action::Done),
    }
}

/// One of the drivers. An enum, as the hot loop calls it for each operation.
#[derive(Debug)]
pub enum AnyDriver {
    /// A schedule, whatever the target does.
    Open(OpenLoop),
    /// Virtual users.
    Closed(ClosedLoop),
    /// S-Clients.
    SClients(SClients),
    /// A schedule of connects.
    Scheduled(Scheduled),
    /// A schedule or users, with retries.
    Retrying(Box<Retrying>),
    /// One of the others within a limit on operations per second.
    Limited(Box<Limited>),
}

impl AnyDriver {
    /// Driver of one worker's share of the trial.
    pub fn new(spec: &TrialSpec, share: Share) -> AnyDriver {
        let once = AnyDriver::trying_once(spec, share);
        // Sessions retry their steps themselves.
        match spec.retry.as_ref().filter(|_| spec.target.sessions.is_none()) {
            Some(policy) => AnyDriver::Retrying(Box::new(Retrying::new(once, policy, spec, share))),
            None => once,
        }
    }

    fn trying_once(spec: &TrialSpec, share: Share) -> AnyDriver {
        match &spec.load {
            Load::Open(load) => AnyDriver::Open(OpenLoop::new(spec, load, share)),
            Load::Closed { vusers, pause, stages } => {
                let closed = ClosedLoop::new(spec, *vusers, *pause, share);
                let plan = spec.target.sessions.as_ref();
                let script = plan.and_then(|plan| plan.script.as_ref());
                AnyDriver::Closed(closed.in_stages(stages, script))
            }
            Load::Overload(load) => match &load.scheme {
                ConnectScheme::Simple { clients } => {
                    AnyDriver::Closed(ClosedLoop::new(spec, *clients, Pause::NONE, share))
                }
                ConnectScheme::SClients { descriptors, .. } => {
                    AnyDriver::SClients(SClients::new(spec, *descriptors, share))
                }
                ConnectScheme::Scheduled { rate, arrival, descriptors } => {
                    let schedule = (*rate, arrival);
                    AnyDriver::Scheduled(Scheduled::new(spec, schedule, *descriptors, share))
                }
            },
        }
    }

    /// Applies a limit, if there is one.
    pub fn limited(self, limit: Option<RateLimit>, spec: &TrialSpec) -> AnyDriver {
        let Some(limit) = limit else {
            return self;
        };
        let end = spec.load.schedule().is_none().then(|| spec.window_end());
        AnyDriver::Limited(Box::new(Limited::new(self, limit, end)))
    }

    /// Ends it: what was measured of requests, where failed attempts are retried.
    pub fn finish(self, end: Nanos) -> Option<AttemptsMeasured> {
        match self {
            AnyDriver::Retrying(driver) => Some(driver.finish(end)),
            AnyDriver::Limited(driver) => driver.into_inner().finish(end),
            _ => None,
        }
    }
}

impl Driver for AnyDriver {
    #[inline]
    fn poll(&mut self, now: Nanos) -> Action {
        match self {
            AnyDriver::Open(driver) => driver.poll(now),
            AnyDriver::Closed(driver) => driver.poll(now),
            AnyDriver::SClients(driver) => driver.poll(now),
            AnyDriver::Scheduled(driver) => driver.poll(now),
            AnyDriver::Retrying(driver) => driver.poll(now),
            AnyDriver::Limited(driver) => driver.poll(now),
        }
    }

    #[inline]
    fn on_established(&mut self, lane: u32, now: Nanos) {
        match self {
            AnyDriver::Open(driver) => driver.on_established(lane, now),
            AnyDriver::Closed(driver) => driver.on_established(lane, now),
            AnyDriver::SClients(driver) => driver.on_established(lane, now),
            AnyDriver::Scheduled(driver) => driver.on_established(lane, now),
            AnyDriver::Retrying(driver) => driver.on_established(lane, now),
            AnyDriver::Limited(driver) => driver.on_established(lane, now),
        }
    }

    #[inline]
    fn on_completion(&mut self, completion: &Completion, now: Nanos) {
        match self {
            AnyDriver::Open(driver) => driver.on_completion(completion, now),
            AnyDriver::Closed(driver) => driver.on_completion(completion, now),
            AnyDriver::SClients(driver) => driver.on_completion(completion, now),
            AnyDriver::Scheduled(driver) => driver.on_completion(completion, now),
            AnyDriver::Retrying(driver) => driver.on_completion(completion, now),
            AnyDriver::Limited(driver) => driver.on_completion(completion, now),
        }
    }
}
