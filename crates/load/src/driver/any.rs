//! All drivers as one type, without dynamic dispatch.

use super::{
    Action, ClosedLoop, Driver, Limited, OpenLoop, RateLimit, Retrying, SClients, Scheduled,
};
use crate::measure::{AttemptsMeasured, Completion};
use crate::spec::{ConnectScheme, Load, Pause, Share, TrialSpec};
use crate::time::Nanos;

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
                AnyDriver::Closed(closed.in_stages(stages))
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
