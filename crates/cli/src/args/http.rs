//! What all experiments over HTTP have in common, whatever they vary.

use super::{EngineArgs, FleetArgs, LimitArgs, ObserveArgs, TargetArgs, ThresholdArgs};
use crate::failure::Failure;
use crate::words::Words;
use clap::Args;
use knee_core::scenario::Scenario;
use knee_core::spec::TrialSpec;
use knee_fleet::Fleet;

/// Limits, who makes the load and how, who watches, and what decides.
#[derive(Args, Clone, Debug)]
pub struct HttpArgs {
    #[command(flatten)]
    pub limits: LimitArgs,

    #[command(flatten)]
    pub engine: EngineArgs,

    #[command(flatten)]
    pub observe: ObserveArgs,

    #[command(flatten)]
    fleet: FleetArgs,

    #[command(flatten)]
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
            target.refuse_programs_of_a_fleet()?;
        }
        self.fleet.gather(self.engine.threads)
    }

    /// The options in the words of the command line, as the trials have them.
    pub fn tell(&self, trial: &TrialSpec, words: &mut Words) {
        self.limits.tell(trial.interval, words);
        EngineArgs::tell(&trial.engine, trial.seed, words);
        self.observe.tell(words);
        self.thresholds.tell(words);
    }
}
