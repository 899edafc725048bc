//! Runs an experiment on the engine and reports it: what `run` and `sweep` share.

use super::progress::{self, Progress};
use super::started_at;
use crate::args::{Output, ThresholdArgs};
use crate::failure::{Exit, Failure};
use crate::words::Words;
use knee_core::analysis::assess::assess;
use knee_core::experiment::{self, Conducted, Ended, Experiment};
use knee_core::report::{Host, Report, SCHEMA, Verdict};
use knee_core::spec::{HttpTarget, Level};
use knee_engine::{RunError, interrupt};
use std::ops::ControlFlow;

/// All about an experiment but its policy.
#[derive(Debug)]
pub struct Order {
    /// `run`, `sweep`.
    pub command: &'static str,
    /// What every trial is sent to.
    pub target: HttpTarget,
    /// Seeds every random choice.
    pub seed: u64,
    /// The resolved options.
    pub words: Words,
    /// When to exit with 1.
    pub thresholds: ThresholdArgs,
    /// Where the report goes.
    pub output: Output,
}

/// Runs the experiment to its end or to the first Ctrl-C, and delivers its report.
pub fn conduct(order: Order, experiment: &mut dyn Experiment) -> Result<Exit, Failure> {
    let stop = interrupt::install()
        .map_err(|e| Failure::input(format!("Ctrl-C cannot be handled: {e}")))?;
    let started_at = started_at::now();
    knee_engine::preflight(&order.target)?;
    let mut backend = String::new();
    let mut lost: Option<RunError> = None;
    let conducted = experiment::conduct(
        experiment,
        |spec| {
            let mut progress = Progress::begin(spec, &order.output);
            let trial = knee_engine::run(spec, &mut progress, stop);
            progress.end();
            let trial = match trial {
                Ok(trial) => trial,
                Err(e) if backend.is_empty() => return Err(e),
                // What was measured before is worth a report.
                Err(e) => {
                    lost = Some(e);
                    return Ok(ControlFlow::Break(None));
                }
            };
            backend.clone_from(&trial.generator.backend);
            let report = assess(&trial);
            Ok(match trial.interrupted {
                true => ControlFlow::Break(Some(report)),
                false => ControlFlow::Continue(report),
            })
        },
        |number, trial| {
            if order.command == "sweep" {
                order.output.note(&progress::level_line(number, trial));
            }
        },
    )?;
    let host = Host {
        backend,
        ..knee_engine::host()
    };
    let report = report(&order, started_at, host, conducted);
    let crossed = order.thresholds.crossed(&report);
    let ending = ending(&report, !crossed.is_empty());
    order.output.deliver(&report)?;
    // After the report, where a person at a terminal sees them.
    for line in &crossed {
        Output::explain(&format!("--fail-if: {line}"));
    }
    match lost {
        Some(e) => Err(e.into()),
        None => ending,
    }
}

/// A trial's name for people: `vusers=10`, `rate=1000/s`.
pub fn label(level: Level) -> String {
    match level {
        Level::Vusers(n) => format!("vusers={n}"),
        Level::RatePerS(rate) => format!("rate={rate}/s"),
    }
}

impl From<RunError> for Failure {
    fn from(e: RunError) -> Failure {
        match e {
            RunError::Unreachable(line) => Failure::nothing_measured(line),
            RunError::NotPermitted(line) => Failure::input(line),
        }
    }
}

/// All that is known of an experiment that has ended.
pub(super) fn report(
    order: &Order,
    started_at: String,
    host: Host,
    conducted: Conducted,
) -> Report {
    Report {
        schema: SCHEMA.to_string(),
        command: order.command.to_string(),
        knee_version: env!("CARGO_PKG_VERSION").to_string(),
        started_at,
        seed: order.seed,
        verdict: conducted.verdict,
        interrupted: conducted.ended == Ended::Interrupted,
        host,
        spec: order.words.0.clone(),
        trials: conducted.trials,
        findings: conducted.findings,
        conclusion: conducted.conclusion,
    }
}

/// Nothing measured goes before invalid, and that before thresholds.
fn ending(report: &Report, is_crossed: bool) -> Result<Exit, Failure> {
    if report.trials.iter().all(|t| t.completed == 0) {
        let attempted: u64 = report.trials.iter().map(|t| t.attempted).sum();
        if report.interrupted && attempted == 0 {
            let line = "nothing was measured: interrupted before the first operation that counts";
            return Err(Failure::nothing_measured(line.to_string()));
        }
        let line = format!("nothing was measured: {attempted} operations, not one response");
        return Err(Failure::nothing_measured(line));
    }
    Ok(match report.verdict {
        Verdict::Invalid => Exit::Invalid,
        Verdict::Valid if is_crossed => Exit::Crossed,
        Verdict::Valid => Exit::Fine,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names() {
        assert_eq!(label(Level::Vusers(10)), "vusers=10");
        assert_eq!(label(Level::RatePerS(1.5)), "rate=1.5/s");
    }
}
