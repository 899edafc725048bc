//! Where trials of datagrams are run: in front of a service.

use crate::command::laboratory::{Made, Stand};
use crate::watch::{LiveKind, Upcoming};
use knee_core::experiment::Experiment;
use knee_core::experiment::udp::AssessedUdpTrial;
use knee_core::experiment::udp::spec::{ClientWait, UdpTrialSpec};
use knee_core::measure::IntervalWatcher;
use knee_core::time::Nanos;
use knee_core::trial::report::TrialReport;
use knee_engine::error::RunError;
use knee_engine::experiment::udp;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// A service, and what runs clients that are processes.
#[derive(Debug)]
pub struct UdpStand {
    service: String,
    token: String,
    program: PathBuf,
    /// How many trials there will be, where each is told of as it ends.
    trials: Option<usize>,
    begun: usize,
    backend: String,
}

impl UdpStand {
    /// A stand in front of this service; `program` is this executable.
    pub fn new(service: String, token: String, program: PathBuf) -> UdpStand {
        UdpStand {
            service,
            token,
            program,
            trials: None,
            begun: 0,
            backend: String::new(),
        }
    }

    /// Whether the service may have real-time priority; a service that cannot be asked says why
    /// when it is to be used.
    pub fn may_be_realtime(&self) -> bool {
        udp::preflight(&self.service, &self.token).is_ok_and(|facts| facts.may_be_realtime)
    }

    /// Tells of each trial as it ends: there will be so many.
    pub fn tells_trials(&mut self, trials: usize) {
        self.trials = Some(trials);
    }
}

impl<X: Experiment<Spec = UdpTrialSpec, Trial = AssessedUdpTrial>> Stand<X> for UdpStand {
    fn prepare(&mut self) -> Result<(), RunError> {
        udp::preflight(&self.service, &self.token).map(drop)
    }

    fn upcoming(&mut self, spec: &UdpTrialSpec) -> Upcoming {
        self.begun += 1;
        let label = match self.trials {
            Some(trials) => format!("{} of {trials}  {}", self.begun, spec.label),
            None => spec.label.clone(),
        };
        let is_timed = spec.datagrams_max.is_none();
        Upcoming {
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
        }
    }

    fn run(
        &mut self,
        spec: &UdpTrialSpec,
        watch: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<Made<AssessedUdpTrial>, RunError> {
        let trial = udp::run(spec, &self.program, watch, stop)?;
        self.backend.clone_from(&trial.generator.backend);
        Ok(Made {
            interrupted: trial.interrupted,
            trial: AssessedUdpTrial::of(&trial),
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

    fn backend(&self) -> String {
        self.backend.clone()
    }
}
