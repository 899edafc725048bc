//! The report of a run whose coordinator is gone.

use crate::args::ThresholdArgs;
use crate::command::laboratory::{self, ReportSetup};
use crate::failure::{Exit, Failure};
use crate::output::OutputArgs;
use crate::resolved_options::ResolvedOptions;
use knee_core::experiment::{Concluded, Conducted, EndReason, Experiment, SingleRun};
use knee_core::report::{Host, Kind};
use knee_core::trial::assess::assess;
use knee_engine::error::RunError;
use knee_fleet::NatsAccess;

/// Collects and reports it, as one run.
pub(super) fn execute(
    access: &NatsAccess,
    run: Option<&str>,
    output: &OutputArgs,
) -> Result<Exit, Failure> {
    let output = output.resolve()?;
    let collected = knee_fleet::collect(access, run).map_err(RunError::from)?;
    let trial = &collected.trial;
    let mut options = ResolvedOptions::default();
    options.put("collected", collected.key.run.as_str());
    options.put("nats", access.place());
    options.put("trial", collected.key.trial + 1);
    let (seed, thresholds) = (trial.spec.seed, ThresholdArgs::default());
    let setup = ReportSetup::new(Kind::Run, seed, options, thresholds, output);
    let host = Host { backend: trial.generator.backend.clone(), ..knee_engine::host() };
    let trials = vec![assess(trial)];
    let Concluded { verdict, findings, conclusion } =
        SingleRun::new(trial.spec.clone()).conclude(&trials);
    let conducted = Conducted {
        trials,
        verdict,
        findings,
        conclusion,
        ended: if trial.interrupted { EndReason::Interrupted } else { EndReason::Converged },
    };
    let report = laboratory::report(&setup, collected.started_at, host, conducted, |t| t);
    laboratory::deliver(setup.output, &report, None)
}
