//! What all experiments over HTTP have in common, whatever they vary.

use super::{EngineArgs, FleetArgs, LimitArgs, ObserveArgs, TargetArgs, ThresholdArgs};
use crate::failure::Failure;
use clap::Args;
use knee_fleet::Fleet;
use knee_load::spec::TrialSpec;
use knee_scenario::Scenario;
use serde::Serialize;

/// Limits, who makes the load and how, who watches, and what decides.
#[derive(Args, Clone, Debug, Serialize)]
pub struct HttpArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub limits: LimitArgs,

    #[command(flatten)]
    #[serde(flatten)]
    pub engine: EngineArgs,

    #[command(flatten)]
    #[serde(flatten)]
    pub observe: ObserveArgs,

    #[command(flatten)]
    #[serde(skip)]
    fleet: FleetArgs,

    #[command(flatten)]
    #[serde(flatten)]
    pub thresholds: ThresholdArgs,
}

impl HttpArgs {
    /// Takes what a scenario says where nothing was given.
    pub fn fill(&mut self, scenario: &Scenario) {
        self.limits.fill(scenario);
        self.thresholds.fill(scenario);
    }

    /// The fleet that is to load this target, ready for trials; `None` where none was asked for.
    pub fn gather(&self, target: &TargetArgs) -> Result<Option<Fleet>, Failure> {
        if self.fleet.is_asked_for() {
            target.refuse_files_of_a_fleet()?;
        }
        self.fleet.gather(self.engine.threads)
    }

    /// Puts what trials use in the place of defaults.
    pub fn settle(&mut self, trial: &TrialSpec) {
        self.limits.timeout = Some(trial.timeout);
        self.limits.interval = Some(trial.interval);
        self.engine.settle(&trial.engine, trial.seed);
    }
}
