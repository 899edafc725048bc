//! Takes the place of `fleet` in a build without the feature `fleet`: nobody can ask for one.

use crate::failure::Failure;
use crate::machine::Machine;
use crate::resolved_options::ResolvedOptions;
use clap::Args;
use knee_engine::error::RunError;
use knee_engine::observe::Vantage;
use knee_load::measure::{IntervalWatcher, Trial};
use knee_load::spec::{HttpVersion, Target, TrialSpec};
use knee_load::time::Nanos;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

/// No options.
#[derive(Args, Clone, Debug, Default)]
pub struct FleetArgs {}

/// A fleet: no value of it exists.
#[derive(Debug)]
pub enum Fleet {}

impl FleetArgs {
    /// Whether a fleet is to make the load.
    pub fn is_asked_for(&self) -> bool {
        false
    }

    /// The fleet.
    pub fn gather(&self, _: Option<u32>) -> Result<Option<Fleet>, Failure> {
        Ok(None)
    }

    /// Adds the options as they can be typed again.
    pub fn tell(_: Option<&Fleet>, _: &mut ResolvedOptions) {}

    /// What the machine that makes the load permits.
    pub fn machine(_: Option<&Fleet>, here: &Machine) -> Machine {
        *here
    }
}

impl Fleet {
    /// The target's address, and its version of HTTP.
    pub fn greet(&self, _: &Target, _: Nanos) -> Result<(String, HttpVersion), RunError> {
        match *self {}
    }

    /// Address of the target of an overload, and whether it answers.
    pub fn aim(&self, _: &Target) -> Result<(SocketAddr, bool), RunError> {
        match *self {}
    }

    /// Runs a trial.
    pub fn run(
        &mut self,
        _: &TrialSpec,
        _: Option<&mut Vantage>,
        _: &mut dyn IntervalWatcher,
        _: &AtomicBool,
    ) -> Result<Trial, RunError> {
        match *self {}
    }
}
