//! Conducts an experiment and reports it: what all commands that measure share.

use super::started_at;
use crate::args::{Output, ThresholdArgs};
use crate::failure::{Exit, Failure};
use crate::words::Words;
use knee_core::experiment::{self, Conducted, Ended, Experiment};
use knee_core::report::{Host, Report, SCHEMA, TrialReport, Verdict};
use knee_engine::{RunError, interrupt};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

/// All about an experiment but its policy and where its trials are run.
#[derive(Debug)]
pub struct Order {
    /// `run`, `sweep`.
    pub command: &'static str,
    /// Seeds every random choice.
    pub seed: u64,
    /// The resolved options.
    pub words: Words,
    /// When to exit with 1.
    pub thresholds: ThresholdArgs,
    /// Where the report goes.
    pub output: Output,
}

/// One trial as it was run.
#[derive(Debug)]
pub struct Made<T> {
    /// Its statistics.
    pub trial: T,
    /// The user ended it early.
    pub interrupted: bool,
}

/// Where the trials of an experiment are run.
pub trait Stand<X: Experiment> {
    /// Makes sure, before any load, that the target is there.
    fn prepare(&mut self) -> Result<(), RunError>;

    /// Runs one trial; `stop` ends it early.
    fn run(
        &mut self,
        spec: &X::Spec,
        output: &Output,
        stop: &AtomicBool,
    ) -> Result<Made<X::Trial>, RunError>;

    /// What to tell on standard error of trial `number` (from 0) as it ends, if anything.
    fn line(&self, number: usize, trial: &X::Trial) -> Option<String>;

    /// Operations attempted and completed in a trial.
    fn counts(trial: &X::Trial) -> (u64, u64);

    /// Why nothing was measured by these trials, in a line.
    fn nothing(_: &[TrialReport], attempted: u64) -> String {
        format!("nothing was measured: {attempted} operations, not one response")
    }

    /// The trials as the report lists them.
    fn listed(trials: Vec<X::Trial>) -> Vec<TrialReport>;

    /// The kernel interface that carried the traffic; empty before the first trial.
    fn backend(&self) -> String;
}

/// Runs the experiment to its end or to the first Ctrl-C, and delivers its report.
pub fn conduct<X: Experiment, S: Stand<X>>(
    order: Order,
    experiment: &mut X,
    stand: &mut S,
) -> Result<Exit, Failure> {
    let stop = interrupt::install()
        .map_err(|e| Failure::input(format!("Ctrl-C cannot be handled: {e}")))?;
    let started_at = started_at::now();
    stand.prepare()?;
    let mut trials = 0;
    let mut counts = (0, 0);
    let mut lost: Option<RunError> = None;
    let conducted = experiment::conduct(experiment, |spec| {
        let made = match stand.run(spec, &order.output, stop) {
            Ok(made) => made,
            Err(e) if trials == 0 => return Err(e),
            // What was measured before is worth a report.
            Err(e) => {
                lost = Some(e);
                return Ok(ControlFlow::Break(None));
            }
        };
        if let Some(line) = stand.line(trials, &made.trial) {
            order.output.note(&line);
        }
        trials += 1;
        let (attempted, completed) = S::counts(&made.trial);
        counts = (counts.0 + attempted, counts.1 + completed);
        Ok(match made.interrupted {
            true => ControlFlow::Break(Some(made.trial)),
            false => ControlFlow::Continue(made.trial),
        })
    })?;
    let host = Host {
        backend: stand.backend(),
        ..knee_engine::host()
    };
    let report = report(&order, started_at, host, conducted, S::listed);
    let crossed = order.thresholds.crossed(&report);
    let ending = ending(&report, counts, !crossed.is_empty(), S::nothing);
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

impl From<RunError> for Failure {
    fn from(e: RunError) -> Failure {
        match e {
            RunError::Unreachable(line) => Failure::nothing_measured(line),
            RunError::NotPermitted(line) => Failure::input(line),
        }
    }
}

/// All that is known of an experiment that has ended.
pub(super) fn report<T>(
    order: &Order,
    started_at: String,
    host: Host,
    conducted: Conducted<T>,
    listed: impl FnOnce(Vec<T>) -> Vec<TrialReport>,
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
        trials: listed(conducted.trials),
        findings: conducted.findings,
        conclusion: conducted.conclusion,
    }
}

/// Nothing measured goes before invalid, and that before thresholds.
fn ending(
    report: &Report,
    (attempted, completed): (u64, u64),
    is_crossed: bool,
    nothing: fn(&[TrialReport], u64) -> String,
) -> Result<Exit, Failure> {
    if completed == 0 {
        if report.interrupted && attempted == 0 {
            let line = "nothing was measured: interrupted before the first operation that counts";
            return Err(Failure::nothing_measured(line.to_string()));
        }
        return Err(Failure::nothing_measured(nothing(
            &report.trials,
            attempted,
        )));
    }
    Ok(match report.verdict {
        Verdict::Invalid => Exit::Invalid,
        Verdict::Valid if is_crossed => Exit::Crossed,
        Verdict::Valid => Exit::Fine,
    })
}
