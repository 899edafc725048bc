//! Conducts an experiment and reports it: what all commands that measure share.

use super::report::undetermined;
use crate::args::ThresholdArgs;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::resolved_options::ResolvedOptions;
use crate::watch::{ExperimentStart, LiveTrial, UpcomingTrial, Watchers};
use crate::{history, machine, stdio};
use knee_core::compare::{has_host_speed, state_host_speed};
use knee_core::experiment::{self, Concluded, Conducted, EndReason, ending};
use knee_core::finding::Finding;
use knee_core::report::{Command, Conclusion, Host, Kind, Report, ReportResult, Reported, SCHEMA};
use knee_core::trial::findings::marked_failed;
use knee_core::trial::report::{TrialReport, Verdict};
use knee_core::trial::step_names::SessionNames;
use knee_engine::error::RunError;
use knee_engine::interrupt;
use knee_load::measure::IntervalWatcher;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

/// What the report of an experiment needs beside the experiment.
#[derive(Debug)]
pub struct ReportSetup {
    /// `run`, `sweep`.
    pub command: Command,
    /// Seeds every random choice.
    pub seed: u64,
    pub options: ResolvedOptions,
    /// Thresholds that fail the command.
    pub thresholds: ThresholdArgs,
    /// Where the report goes.
    pub output: Output,
}

/// Output of one trial.
#[derive(Debug)]
pub struct TrialOutput<T> {
    pub trial: T,
    /// The user ended it early.
    pub interrupted: bool,
    /// The kernel interface that carried the traffic; empty where there was none.
    pub backend: String,
}

/// Runs the trials of an experiment.
pub trait TrialRunner {
    /// What a trial is to be.
    type Spec;
    /// What came of one.
    type Trial;

    /// Makes sure, before any load, that the target is there. A signal ends the process meanwhile.
    fn find(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    /// Does what is to be done before the first trial; `stop` ends that early.
    fn set_up(&mut self, _stop: &AtomicBool) -> Result<(), RunError> {
        Ok(())
    }

    /// Does what is to be done after the last trial, also where `stop` was raised before; raised
    /// meanwhile, it ends that early.
    ///
    /// # Errors
    /// What failed, in a line.
    fn tear_down(&mut self, _stop: &AtomicBool) -> Result<(), RunError> {
        Ok(())
    }

    /// Whether a failure of [`tear_down`](TrialRunner::tear_down) fails the command, as with a
    /// script of k6. Otherwise it is a note.
    fn must_tear_down(&self) -> bool {
        false
    }

    /// Does what is to be done once the report is out. `has_stdout`: whether it went to standard
    /// output as text.
    fn reported(&mut self, _report: &Report, _has_stdout: bool) {}

    /// What is known of the next trial before it begins.
    fn upcoming(&mut self, spec: &Self::Spec) -> UpcomingTrial;

    /// Runs one trial; `watch` sees its intervals, `stop` ends it early.
    fn run(
        &mut self,
        spec: &Self::Spec,
        watch: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<TrialOutput<Self::Trial>, RunError>;

    /// A line for the user about trial `number` (from 0) as it ends.
    fn line(&self, _number: usize, _: &Self::Trial) -> Option<String> {
        None
    }

    /// The error where a trial shows that the target is gone: what was measured is reported, and
    /// the command fails.
    fn gone(_: &Self::Trial) -> Option<String> {
        None
    }

    /// A trial as the report lists it; `None`: it does not.
    fn report(trial: &Self::Trial) -> Option<&TrialReport>;
}

/// Runs the experiment to its end or to the first Ctrl-C, and delivers its report.
pub fn conduct<X: Reported, S: TrialRunner<Spec = X::Spec, Trial = X::Trial>>(
    mut setup: ReportSetup,
    experiment: &mut X,
    runner: &mut S,
) -> Result<Exit, Failure> {
    setup.hide_secrets();
    let secrets = setup.output.secrets.clone();
    conduct_hidden(setup, experiment, runner).map_err(|failure| failure.without_secrets(&secrets))
}

/// The same where the options have no secret.
fn conduct_hidden<X: Reported, S: TrialRunner<Spec = X::Spec, Trial = X::Trial>>(
    mut setup: ReportSetup,
    experiment: &mut X,
    runner: &mut S,
) -> Result<Exit, Failure> {
    let started_at = machine::now();
    if let Err(e) = runner.find() {
        return unreached(setup, experiment, e);
    }
    let stop = interrupt::catch();
    if let Err(e) = runner.set_up(stop) {
        return unreached(setup, experiment, e);
    }
    let mut watchers = setup.output.watchers();
    watchers.opens(&setup.start(&started_at));
    let mut backend = String::new();
    let trials =
        run_trials(&setup, &started_at, experiment, runner, &mut watchers, (stop, &mut backend));
    let left = runner.tear_down(stop).err().map(|e| setup.hidden(&e.to_string()));
    if let Some(line) = &left {
        watchers.note(line);
    }
    let host = host(backend);
    let (report, lost) = match trials {
        Ok((mut conducted, lost)) => {
            let left = left.filter(|_| runner.must_tear_down());
            conducted.findings.extend(left.map(|line| marked_failed(&line)));
            let listed = |trials: Vec<X::Trial>| listed::<S>(&trials);
            let mut report = report(&setup, started_at, host, conducted, listed);
            if setup.output.keeps() && has_host_speed(&report) {
                let earlier = history::earlier(&report);
                state_host_speed(&mut report, &earlier);
            }
            (report, lost)
        }
        Err(e @ (RunError::NotPermitted(_) | RunError::NotStarted(_))) => {
            watchers.fails(&setup.hidden(&e.to_string()));
            return Err(e.into());
        }
        Err(e) => {
            let conducted = unmeasured(experiment, &e);
            let report = report(&setup, started_at, host, conducted, |_| Vec::new());
            (report, Some(e))
        }
    };
    watchers.closes(&report);
    setup.output.kept_as = watchers.kept_as();
    let has_stdout = setup.output.has_text();
    let exit = deliver(setup.output, &report, lost);
    runner.reported(&report, has_stdout);
    exit
}

/// Reports that the target could not be reached before the first trial. A line says so to people:
/// the report goes to the files that were asked for alone.
pub fn unreached<X: Reported>(
    mut setup: ReportSetup,
    experiment: &X,
    error: RunError,
) -> Result<Exit, Failure> {
    setup.hide_secrets();
    if !matches!(error, RunError::Unreachable(_) | RunError::FleetLost(_)) {
        return Err(error.into());
    }
    let started_at = machine::now();
    setup.output.begin_files(&setup.start(&started_at));
    let conducted = unmeasured(experiment, &error);
    let host = host(String::new());
    let report = report(&setup, started_at, host, conducted, |_| Vec::new());
    deliver(setup.output, &report, Some(error))
}

/// What ended an experiment, as a finding: its target was lost, or the machines that load it.
fn finding_of(error: &RunError) -> Finding {
    match error {
        RunError::FleetLost(line) => ending::fleet_lost(line),
        other => ending::unreachable(&other.to_string()),
    }
}

/// What is left of an experiment whose target could not be reached.
fn unmeasured<X: Reported>(experiment: &X, error: &RunError) -> Conducted<X::Trial, X::Conclusion> {
    let Concluded { verdict, conclusion, .. } = experiment.conclude(&[]);
    Conducted {
        trials: Vec::new(),
        verdict,
        findings: vec![finding_of(error)],
        conclusion,
        ended: EndReason::Doomed(error.to_string()),
    }
}

/// Writes the report where it was asked for, and says why the command ends as it does.
pub(super) fn deliver(
    output: Output,
    report: &Report,
    lost: Option<RunError>,
) -> Result<Exit, Failure> {
    output.note_result(report);
    if report.has_measured() || lost.is_none() {
        output.deliver(report)?;
    } else {
        output.deliver_to_files(report)?;
    }
    if cfg!(debug_assertions) {
        let contradictions = report.contradictions();
        assert!(contradictions.is_empty(), "{contradictions:#?}");
    }
    if let Some(e) = lost {
        return Err(e.into());
    }
    let exit = exit(report);
    if exit == Exit::NothingMeasured {
        return Err(Failure::nothing_measured(report.failed_because.join("; ")));
    }
    // After the report, where a person at a terminal sees them.
    for line in &report.failed_because {
        stdio::say(&format!("failed: {line}"));
    }
    Ok(exit)
}

/// What the process ends with. An invalid result says nothing about the target, so that goes before
/// what failed.
fn exit(report: &Report) -> Exit {
    let signal = ended_by_signal().filter(|_| report.interrupted);
    match (report.has_measured(), report.verdict, report.result) {
        (false, ..) => signal.unwrap_or(Exit::NothingMeasured),
        (_, Verdict::Invalid, _) => Exit::Invalid,
        (_, _, ReportResult::Failed) if undetermined(&report.thresholds) => Exit::Invalid,
        (_, _, ReportResult::Failed) => Exit::Failed,
        _ => signal.unwrap_or(Exit::Fine),
    }
}

/// What a signal makes of the exit code, if one ended what ran.
pub fn ended_by_signal() -> Option<Exit> {
    let signal = u8::try_from(interrupt::signal()?).ok()?;
    Some(Exit::Signal(signal))
}

impl ReportSetup {
    /// What the report of such an experiment needs.
    pub fn new(
        kind: Kind,
        seed: u64,
        options: ResolvedOptions,
        thresholds: ThresholdArgs,
        output: Output,
    ) -> ReportSetup {
        ReportSetup { command: Command::of(kind), seed, options, thresholds, output }
    }

    /// Takes the secrets out of the options: from now on they are in what is sent alone.
    pub fn hide_secrets(&mut self) {
        self.output.secrets.hide_options(&mut self.options.0);
    }

    fn hidden(&self, line: &str) -> String {
        self.output.secrets.hide(line).into_owned()
    }

    /// The same with names that may be shown.
    fn upcoming(&self, upcoming: UpcomingTrial) -> UpcomingTrial {
        let secrets = &self.output.secrets;
        let live = upcoming.live;
        let steps: Vec<String> = live.names.steps.iter().flatten().cloned().collect();
        let mut hidden = secrets.hide_names(&steps).into_iter();
        let step = |name: Option<String>| name.and_then(|_| hidden.next());
        let names = SessionNames {
            steps: live.names.steps.into_iter().map(step).collect(),
            kinds: secrets.hide_names(&live.names.kinds),
        };
        let live = LiveTrial { label: self.hidden(&live.label), names, ..live };
        UpcomingTrial { live, ..upcoming }
    }

    fn start(&self, started_at: &str) -> ExperimentStart {
        ExperimentStart {
            command: self.command,
            started_at: started_at.to_string(),
            seed: self.seed,
            spec: self.options.0.clone(),
        }
    }
}

fn host(backend: String) -> Host {
    Host { backend, ..knee_engine::host() }
}

/// What an experiment came to, and what was lost on the way, after its first trial.
type ConductedAndLost<T, C> = (Conducted<T, C>, Option<RunError>);

/// Runs the trials.
fn run_trials<X: Reported, S: TrialRunner<Spec = X::Spec, Trial = X::Trial>>(
    setup: &ReportSetup,
    started_at: &str,
    experiment: &mut X,
    runner: &mut S,
    watchers: &mut Watchers,
    (stop, backend): (&AtomicBool, &mut String),
) -> Result<ConductedAndLost<X::Trial, X::Conclusion>, RunError> {
    let mut trials = 0;
    let mut lost: Option<RunError> = None;
    let mut conducted = experiment::conduct_in_view(experiment, |experiment, past, spec| {
        if !past.is_empty() {
            watchers
                .so_far(|| so_far::<X, S>(setup, started_at, backend.clone(), experiment, past));
        }
        watchers.trial_begins(&setup.upcoming(runner.upcoming(spec)));
        let output = runner.run(spec, watchers, stop);
        let trial = output.as_ref().ok().and_then(|m| S::report(&m.trial));
        let trial = trial.and_then(|trial| setup.output.secrets.hide_all(trial));
        watchers.trial_ends(trial.as_ref());
        let output = match output {
            Ok(output) => {
                backend.clone_from(&output.backend);
                output
            }
            // The user ended it while the trial began.
            Err(RunError::Unreachable(_)) if ended_by_signal().is_some() => {
                return Ok(ControlFlow::Break(None));
            }
            Err(e) if trials == 0 => return Err(e),
            // What was measured before is worth a report.
            Err(e) => {
                lost = Some(e);
                return Ok(ControlFlow::Break(None));
            }
        };
        if let Some(line) = runner.line(trials, &output.trial) {
            watchers.note(&setup.hidden(&line));
        }
        trials += 1;
        lost = S::gone(&output.trial).map(RunError::Unreachable);
        Ok(if output.interrupted {
            ControlFlow::Break(Some(output.trial))
        } else {
            ControlFlow::Continue(output.trial)
        })
    })?;
    if let Some(e) = lost.as_ref().filter(|_| conducted.ended == EndReason::Interrupted) {
        conducted.end_without(finding_of(e), &e.to_string());
    }
    Ok((conducted, lost))
}

/// What an interruption after these trials would report.
fn so_far<X: Reported, S: TrialRunner<Spec = X::Spec, Trial = X::Trial>>(
    setup: &ReportSetup,
    started_at: &str,
    backend: String,
    experiment: &X,
    past: &[X::Trial],
) -> Report {
    let Concluded { verdict, findings, conclusion } = experiment.conclude(past);
    let conducted = Conducted {
        trials: Vec::new(),
        verdict,
        findings,
        conclusion,
        ended: EndReason::Interrupted,
    };
    let reported = experiment.reported(past);
    let listed = |_: Vec<X::Trial>| listed::<S>(reported.as_deref().unwrap_or(past));
    report(setup, started_at.to_string(), host(backend), conducted, listed)
}

fn listed<S: TrialRunner>(trials: &[S::Trial]) -> Vec<TrialReport> {
    trials.iter().filter_map(S::report).cloned().collect()
}

impl From<RunError> for Failure {
    fn from(e: RunError) -> Failure {
        match e {
            RunError::Unreachable(line)
            | RunError::NotStarted(line)
            | RunError::FleetLost(line) => Failure::nothing_measured(line),
            RunError::NotPermitted(line) => Failure::input(line),
        }
    }
}

/// The report of an experiment that has ended.
pub(super) fn report<T>(
    setup: &ReportSetup,
    started_at: String,
    host: Host,
    conducted: Conducted<T, impl Into<Conclusion>>,
    listed: impl FnOnce(Vec<T>) -> Vec<TrialReport>,
) -> Report {
    let mut report = Report {
        schema: SCHEMA.to_string(),
        command: setup.command,
        knee_version: env!("CARGO_PKG_VERSION").to_string(),
        started_at,
        seed: setup.seed,
        verdict: conducted.verdict,
        result: ReportResult::default(),
        failed_because: Vec::new(),
        interrupted: conducted.ended == EndReason::Interrupted,
        host,
        spec: setup.options.0.clone(),
        trials: listed(conducted.trials),
        findings: conducted.findings,
        thresholds: Vec::new(),
        conclusion: conducted.conclusion.into(),
    };
    report.thresholds = setup.thresholds.judge(&report);
    report.judge();
    report.drop_present_advice();
    report.without_secrets(&setup.output.secrets)
}
