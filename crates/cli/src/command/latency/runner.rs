//! Where scenarios of flows are run: in front of a latency service.

use crate::command::laboratory::{TrialOutput, TrialRunner};
use crate::watch::{LiveKind, UpcomingTrial};
use knee_core::experiment::latency::analysis::assess;
use knee_core::experiment::latency::{Latency, LatencyPlan, gone};
use knee_core::trial::report::TrialReport;
use knee_engine::error::RunError;
use knee_engine::experiment::latency as flows;
use knee_load::experiment::latency::{LatencyTrialSpec, ScenarioEnd};
use knee_load::measure::IntervalWatcher;
use knee_load::time::Nanos;
use knee_render::scenario_line;
use std::sync::atomic::AtomicBool;

/// A latency service.
#[derive(Debug)]
pub struct LatencyRunner {
    service: String,
    token: String,
    /// How many trials there will be.
    trials: usize,
    /// How wide their names are.
    label_columns: usize,
    begun: usize,
    last: String,
}

impl LatencyRunner {
    /// A runner for this plan.
    pub fn new(plan: &LatencyPlan) -> LatencyRunner {
        let several = plan.congestion.len() > 1;
        let controls = plan.congestion.iter().flatten().map(|name| name.len() + 2);
        let control_columns = controls.max().filter(|_| several).unwrap_or(0);
        LatencyRunner {
            label_columns: "16 up, 16 down".len() + control_columns,
            service: plan.base.service.clone(),
            token: plan.base.token.clone(),
            trials: Latency::new(plan.clone()).steps(),
            begun: 0,
            last: String::new(),
        }
    }
}

impl TrialRunner<Latency> for LatencyRunner {
    fn prepare(&mut self, _stop: &AtomicBool) -> Result<(), RunError> {
        flows::preflight(&self.service, &self.token).map(drop)
    }

    fn upcoming(&mut self, spec: &LatencyTrialSpec) -> UpcomingTrial {
        // One that is run again has the label of the one before.
        let is_again = self.begun > 0 && self.last == spec.label;
        self.begun += usize::from(!is_again);
        self.last.clone_from(&spec.label);
        let again = if is_again { ", again" } else { "" };
        UpcomingTrial {
            label: format!("{} of {}  {}{again}", self.begun, self.trials, spec.label),
            level: Some(spec.level),
            kind: LiveKind::Flows,
            warmup: Nanos::ZERO,
            total: match spec.end {
                ScenarioEnd::After(length) => Some(length),
                ScenarioEnd::Settled { .. } => None,
            },
            interval: spec.interval,
            asked_per_s: None,
            names: Default::default(),
            http: None,
        }
    }

    fn run(
        &mut self,
        spec: &LatencyTrialSpec,
        watch: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<TrialOutput<TrialReport>, RunError> {
        let trial = flows::run(spec, watch, stop)?;
        Ok(TrialOutput {
            interrupted: trial.interrupted,
            trial: assess(&trial),
            backend: trial.generator.backend,
        })
    }

    fn line(&self, _: usize, trial: &TrialReport) -> Option<String> {
        let which = format!("{:>2} of {}", self.begun, self.trials);
        let flows = trial.flows()?;
        let label = format!("{:<1$}", trial.label, self.label_columns);
        Some(scenario_line(&which, &label, flows))
    }

    fn gone(trial: &TrialReport) -> Option<String> {
        gone(trial)
    }

    fn report(trial: &TrialReport) -> Option<&TrialReport> {
        Some(trial)
    }
}
