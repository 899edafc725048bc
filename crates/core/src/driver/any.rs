//! Either of the drivers, without dynamic dispatch.

use super::{Action, ClosedLoop, Driver, OpenLoop};
use crate::measure::Completion;
use crate::spec::{Load, Share, TrialSpec};
use crate::time::Nanos;

/// One of the drivers: an enum, since the hot loop asks it for each operation.
#[derive(Debug)]
pub enum AnyDriver {
    /// A schedule that does not care how the target fares.
    Open(OpenLoop),
    /// Virtual users.
    Closed(ClosedLoop),
}

impl AnyDriver {
    /// The driver of one worker's share of the trial.
    pub fn new(spec: &TrialSpec, share: Share) -> AnyDriver {
        match &spec.load {
            Load::Open(load) => AnyDriver::Open(OpenLoop::new(spec, load, share)),
            Load::Closed { vusers, pause } => {
                AnyDriver::Closed(ClosedLoop::new(spec, *vusers, *pause, share))
            }
        }
    }
}

impl Driver for AnyDriver {
    fn poll(&mut self, now: Nanos) -> Action {
        match self {
            AnyDriver::Open(driver) => driver.poll(now),
            AnyDriver::Closed(driver) => driver.poll(now),
        }
    }

    fn on_completion(&mut self, completion: &Completion, now: Nanos) {
        match self {
            AnyDriver::Open(driver) => driver.on_completion(completion, now),
            AnyDriver::Closed(driver) => driver.on_completion(completion, now),
        }
    }
}
