//! The report of a run whose coordinator is gone.

use crate::args::ThresholdArgs;
use crate::command::laboratory::{self, Order};
use crate::failure::{Exit, Failure};
use crate::output::OutputArgs;
use crate::words::Words;
use knee_core::experiment::{Concluded, Conducted, EndReason, Experiment, SingleRun};
use knee_core::report::{Command, Host, Kind};
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
    let mut words = Words::default();
    words.put("collected", collected.key.run.as_str());
    words.put("nats", access.place());
    words.put("trial", collected.key.trial + 1);
    let order = Order {
        command: Command::of(Kind::Run),
        seed: trial.spec.seed,
        words,
        thresholds: ThresholdArgs::default(),
        output,
    };
    let host = Host {
        backend: trial.generator.backend.clone(),
        ..knee_engine::host()
    };
    let trials = vec![assess(trial)];
    let Concluded {
        verdict,
        findings,
        conclusion,
    } = SingleRun::new(trial.spec.clone()).conclude(&trials);
    let conducted = Conducted {
        trials,
        verdict,
        findings,
        conclusion,
        ended: match trial.interrupted {
            true => EndReason::Interrupted,
            false => EndReason::Converged,
        },
    };
    let report = laboratory::report(&order, collected.started_at, host, conducted, |t| t);
    laboratory::deliver(order.output, &report, None)
}
