//! Where an overload's trials are run: in front of a server that may not answer, watched from
//! where its SYNs arrive.

use super::super::http_stand::HttpStand;
use super::super::laboratory::{Made, Stand};
use crate::args::{ObserveArgs, Output};
use knee_core::experiment::Experiment;
use knee_core::experiment::overload::OverloadSpec;
use knee_core::report::TrialReport;
use knee_core::spec::{HttpTarget, Level, Load, TrialSpec};
use knee_engine::RunError;
use std::sync::atomic::AtomicBool;

/// An HTTP target that connections are offered to.
#[derive(Debug)]
pub struct OverloadStand {
    http: HttpStand,
    target: HttpTarget,
    sources: Vec<String>,
    observe: ObserveArgs,
    /// Whether the target answered before the load.
    answers: bool,
}

impl OverloadStand {
    /// A stand in front of the target of this overload.
    pub fn new(spec: &OverloadSpec, observe: ObserveArgs) -> OverloadStand {
        let sources = match &spec.base.load {
            Load::Overload(load) => load.sources.clone(),
            Load::Open(_) | Load::Closed { .. } => Vec::new(),
        };
        let target = spec.base.target.clone();
        OverloadStand {
            http: HttpStand::new(target.clone(), true, observe.clone()),
            target,
            sources,
            observe,
            answers: true,
        }
    }
}

impl<X: Experiment<Spec = TrialSpec, Trial = TrialReport>> Stand<X> for OverloadStand {
    fn prepare(&mut self) -> Result<(), RunError> {
        let (address, answers) = knee_engine::aim(&self.target, &self.sources)?;
        self.answers = answers;
        self.http
            .watch_from(self.observe.vantage_or_here(&address)?);
        Ok(())
    }

    fn run(
        &mut self,
        spec: &TrialSpec,
        output: &Output,
        stop: &AtomicBool,
    ) -> Result<Made<TrialReport>, RunError> {
        if !self.answers {
            self.answers = true;
            output.note("note: the target did not answer a connect before the load; going on");
        }
        Stand::<X>::run(&mut self.http, spec, output, stop)
    }

    fn line(&self, number: usize, trial: &TrialReport) -> Option<String> {
        Some(line(number, trial))
    }

    fn counts(trial: &TrialReport) -> (u64, u64) {
        (trial.attempted, trial.completed)
    }

    fn listed(trials: Vec<TrialReport>) -> Vec<TrialReport> {
        trials
    }

    fn backend(&self) -> String {
        Stand::<X>::backend(&self.http)
    }
}

/// What an ended level showed, in one line.
fn line(number: usize, trial: &TrialReport) -> String {
    let level = match trial.level {
        Level::Clients(1) => "1 simple client".to_string(),
        Level::Clients(n) => format!("{n} simple clients"),
        Level::Descriptors(n) => format!("{n} descriptors"),
        Level::RatePerS(_) | Level::Vusers(_) => trial.label.clone(),
    };
    let (started, served) = (trial.offered.achieved_per_s, trial.throughput_per_s);
    format!(
        "{:>3}  {level:<20} {started:>9.1}/s connections  {served:>9.1}/s served  not served {}",
        number + 1,
        trial.attempted - trial.completed,
    )
}
