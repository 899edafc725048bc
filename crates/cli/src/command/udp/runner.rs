//! Where trials of datagrams are run: in front of a service.

use crate::command::laboratory::{TrialOutput, TrialRunner};
use crate::watch::{LiveKind, UpcomingTrial};
use knee_core::experiment::Experiment;
use knee_core::experiment::udp::AssessedUdpTrial;
use knee_core::trial::report::TrialReport;
use knee_engine::error::RunError;
use knee_engine::experiment::udp;
use knee_load::experiment::udp::{ClientWait, UdpTrialSpec};
use knee_load::measure::IntervalWatcher;
use knee_load::time::Nanos;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// A service, and what runs clients that are processes.
#[derive(Debug)]
pub struct UdpRunner {
    service: String,
    token: String,
    program: PathBuf,
    /// Number of trials, where a line follows each.
    trials: Option<usize>,
    begun: usize,
}

impl UdpRunner {
    /// A runner against this service; `program` is this executable.
    pub fn new(service: String, token: String, program: PathBuf) -> UdpRunner {
        UdpRunner { service, token, program, trials: None, begun: 0 }
    }

    /// Whether the service may have real-time priority; a service that cannot be asked says why
    /// when it is to be used.
    pub fn may_be_realtime(&self) -> bool {
        udp::preflight(&self.service, &self.token).is_ok_and(|facts| facts.may_be_realtime)
    }

    /// Makes a line follow each of this number of trials.
    pub fn tells_trials(&mut self, trials: usize) {
        self.trials = Some(trials);
    }
}

impl<X: Experiment<Spec = UdpTrialSpec, Trial = AssessedUdpTrial>> TrialRunner<X> for UdpRunner {
    fn prepare(&mut self, _stop: &AtomicBool) -> Result<(), RunError> {
        udp::preflight(&self.service, &self.token).map(drop)
    }

    fn upcoming(&mut self, spec: &UdpTrialSpec) -> UpcomingTrial {
        self.begun += 1;
        let label = match self.trials {
            Some(trials) => format!("{} of {trials}  {}", self.begun, spec.label),
            None => spec.label.clone(),
        };
        let is_timed = spec.datagrams_max.is_none();
        UpcomingTrial {
            label,
            level: Some(spec.level),
            kind: LiveKind::Datagrams,
            warmup: Nanos::ZERO,
            total: is_timed.then_some(spec.duration),
            interval: spec.interval,
            asked_per_s: match spec.wait {
                ClientWait::Schedule { rate, .. } => Some(rate.per_s()),
                _ => None,
            },
            names: Default::default(),
            http: None,
        }
    }

    fn run(
        &mut self,
        spec: &UdpTrialSpec,
        watch: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<TrialOutput<AssessedUdpTrial>, RunError> {
        let trial = udp::run(spec, &self.program, watch, stop)?;
        Ok(TrialOutput {
            interrupted: trial.interrupted,
            trial: AssessedUdpTrial::of(&trial),
            backend: trial.generator.backend,
        })
    }

    fn line(&self, number: usize, tried: &AssessedUdpTrial) -> Option<String> {
        let trials = self.trials?;
        let datagrams = tried.report.datagrams().cloned().unwrap_or_default();
        Some(knee_render::sent_line(
            &format!("{:>3} of {trials}", number + 1),
            &tried.report.label,
            &datagrams,
        ))
    }

    fn report(tried: &AssessedUdpTrial) -> Option<&TrialReport> {
        Some(&tried.report)
    }
}
