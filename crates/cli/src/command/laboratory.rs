//! Conducts an experiment and reports it: what all commands that measure share.

use super::started_at;
use crate::args::{Output, ThresholdArgs};
use crate::audience::{Audience, Opening, Upcoming};
use crate::failure::{Exit, Failure};
use crate::words::Words;
use knee_core::experiment::{self, Concluded, Conducted, Ended, Experiment};
use knee_core::measure::Observer;
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

    /// What is known of the next trial before it begins.
    fn upcoming(&mut self, spec: &X::Spec) -> Upcoming;

    /// Runs one trial; `watch` sees its intervals, `stop` ends it early.
    fn run(
        &mut self,
        spec: &X::Spec,
        watch: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<Made<X::Trial>, RunError>;

    /// What to tell the user of trial `number` (from 0) as it ends, if anything.
    fn line(&self, number: usize, trial: &X::Trial) -> Option<String>;

    /// Operations attempted and completed in a trial.
    fn counts(trial: &X::Trial) -> (u64, u64);

    /// Why nothing was measured by these trials, in a line.
    fn nothing(_: &[TrialReport], attempted: u64) -> String {
        format!("nothing was measured: {attempted} operations, not one response")
    }

    /// What to tell where a trial shows that the target is gone: what was measured is reported, and
    /// the command fails.
    fn gone(_: &X::Trial) -> Option<String> {
        None
    }

    /// A trial as the report lists it; `None`: it does not.
    fn report(trial: &X::Trial) -> Option<&TrialReport>;

    /// The kernel interface that carried the traffic; empty before the first trial.
    fn backend(&self) -> String;
}

/// An experiment that was conducted, before its report is delivered.
#[derive(Debug)]
struct Measured {
    /// All that came of it.
    report: Report,
    /// What the process is to end with, thresholds apart: `Err` where nothing was measured.
    ending: Result<Exit, Failure>,
    /// What was lost on the way, after the first trial.
    lost: Option<RunError>,
}

/// Runs the experiment to its end or to the first Ctrl-C, and delivers its report.
pub fn conduct<X: Experiment, S: Stand<X>>(
    order: Order,
    experiment: &mut X,
    stand: &mut S,
) -> Result<Exit, Failure> {
    let measured = measure(&order, experiment, stand)?;
    order.output.deliver(&measured.report)?;
    let thresholds = &measured.report.thresholds;
    // After the report, where a person at a terminal sees them.
    for line in thresholds.iter().flat_map(|t| &t.crossed) {
        Output::explain(&format!("--fail-if: {line}"));
    }
    let is_crossed = thresholds.iter().any(|t| !t.crossed.is_empty());
    if let Some(e) = measured.lost {
        return Err(e.into());
    }
    Ok(match measured.ending? {
        Exit::Fine if is_crossed => Exit::Crossed,
        exit => exit,
    })
}

/// Runs the experiment to its end or to the first Ctrl-C.
fn measure<X: Experiment, S: Stand<X>>(
    order: &Order,
    experiment: &mut X,
    stand: &mut S,
) -> Result<Measured, Failure> {
    let stop = interrupt::install()
        .map_err(|e| Failure::input(format!("Ctrl-C cannot be handled: {e}")))?;
    let started_at = started_at::now();
    stand.prepare()?;
    let mut audience = order.output.audience();
    audience.opens(&Opening {
        command: order.command,
        started_at: started_at.clone(),
        seed: order.seed,
        spec: order.words.0.clone(),
    });
    let conducted = run_trials(order, &started_at, experiment, stand, &mut audience, stop);
    let Trials {
        conducted,
        counts,
        lost,
    } = conducted.inspect_err(|e| audience.fails(&e.to_string()))?;
    let host = Host {
        backend: stand.backend(),
        ..knee_engine::host()
    };
    let listed = |trials: Vec<X::Trial>| listed::<X, S>(&trials);
    let mut report = report(order, started_at, host, conducted, listed);
    report.thresholds = order.thresholds.judge(&report);
    audience.closes(&report);
    let ending = ending(&report, counts, S::nothing);
    Ok(Measured {
        report,
        ending,
        lost,
    })
}

/// The trials of an experiment, and what became of the operations.
struct Trials<T> {
    conducted: Conducted<T>,
    /// Attempted and completed.
    counts: (u64, u64),
    lost: Option<RunError>,
}

fn run_trials<X: Experiment, S: Stand<X>>(
    order: &Order,
    started_at: &str,
    experiment: &mut X,
    stand: &mut S,
    audience: &mut Audience,
    stop: &AtomicBool,
) -> Result<Trials<X::Trial>, RunError> {
    let mut trials = 0;
    let mut counts = (0, 0);
    let mut lost: Option<RunError> = None;
    let conducted = experiment::conduct_in_view(experiment, |experiment, past, spec| {
        if !past.is_empty() {
            audience
                .so_far(|| so_far::<X, S>(order, started_at, stand.backend(), experiment, past));
        }
        audience.trial_begins(&stand.upcoming(spec));
        let made = stand.run(spec, audience, stop);
        audience.trial_ends(made.as_ref().ok().and_then(|m| S::report(&m.trial)));
        let made = match made {
            Ok(made) => made,
            Err(e) if trials == 0 => return Err(e),
            // What was measured before is worth a report.
            Err(e) => {
                lost = Some(e);
                return Ok(ControlFlow::Break(None));
            }
        };
        if let Some(line) = stand.line(trials, &made.trial) {
            audience.note(&line);
        }
        trials += 1;
        lost = S::gone(&made.trial).map(RunError::Unreachable);
        let (attempted, completed) = S::counts(&made.trial);
        counts = (counts.0 + attempted, counts.1 + completed);
        Ok(match made.interrupted {
            true => ControlFlow::Break(Some(made.trial)),
            false => ControlFlow::Continue(made.trial),
        })
    })?;
    Ok(Trials {
        conducted,
        counts,
        lost,
    })
}

/// What an interruption after these trials would report.
fn so_far<X: Experiment, S: Stand<X>>(
    order: &Order,
    started_at: &str,
    backend: String,
    experiment: &X,
    past: &[X::Trial],
) -> Report {
    let Concluded {
        verdict,
        findings,
        conclusion,
    } = experiment.conclude(past);
    let conducted = Conducted {
        trials: Vec::new(),
        verdict,
        findings,
        conclusion,
        ended: Ended::Interrupted,
    };
    let host = Host {
        backend,
        ..knee_engine::host()
    };
    let listed = |_: Vec<X::Trial>| listed::<X, S>(past);
    report(order, started_at.to_string(), host, conducted, listed)
}

fn listed<X: Experiment, S: Stand<X>>(trials: &[X::Trial]) -> Vec<TrialReport> {
    trials.iter().filter_map(S::report).cloned().collect()
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
        thresholds: Vec::new(),
        conclusion: conducted.conclusion,
    }
}

/// Nothing measured goes before invalid, and that before thresholds, which are judged elsewhere.
fn ending(
    report: &Report,
    (attempted, completed): (u64, u64),
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
        Verdict::Valid => Exit::Fine,
    })
}
