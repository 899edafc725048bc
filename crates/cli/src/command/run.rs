//! `knee run`: one load, reported.

use super::http_runner::{self, HttpRunner, LevelLine, level_line, report_setup};
use super::laboratory::{self, ReportSetup};
use crate::args::{ClosedArgs, HttpArgs, ObserveArgs, OpenArgs, RecordedArrivals, TargetArgs};
use crate::args::{Fleet, FleetArgs, ReplayArgs, RetryArgs, first_given, refuse_first};
use crate::args::{parse_count, parse_number, parse_positive, with_exits};
use crate::failure::{Exit, Failure};
use crate::machine::Machine;
use crate::margins;
use crate::output::MeasuredOutputArgs;
use crate::resolved_options::{ResolvedOptions, typed};
use clap::Args;
use knee_core::experiment::SingleRun;
use knee_core::report::Kind;
use knee_load::spec::{AskedArrival, Load, Rate, Target, TrialSpec, parse_duration, parse_rate};
use knee_load::time::Nanos;
use knee_scenario::ScenarioLoad;
use serde::Serialize;
use std::sync::Arc;

/// Offer one load to a server and report throughput and response times
///
/// Without options: a closed loop of 10 virtual users for 10 s. With --rate (or an arrival process
/// that has its own rate): an open loop. Operations start when the schedule says, whatever the
/// server does, and response times count from the intended time. With --vusers (or -c alone): a
/// closed loop. Each virtual user sends a request, waits for the response, pauses, and repeats.
#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(
    after_help = "Example:\n  \
        knee run http://127.0.0.1:8080/ --rate 1000 -d 30s --fail-if 'p99>200ms'",
    after_long_help = with_exits("Examples:\n  \
        knee run http://127.0.0.1:8080/\n  \
        knee run http://127.0.0.1:8080/ --rate 1000 --arrival poisson -d 30s\n  \
        knee run http://127.0.0.1:8080/ --vusers 50 --think 'exp(100ms)' --json report.json\n  \
        knee run http://127.0.0.1:8080/items -b @item.json -T application/json -n 10000\n  \
        knee run --targets urls.txt --pick random --rate 500 --fail-if 'p99>200ms'"),
)]
pub struct RawRun {
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) target: TargetArgs,

    /// Offered load in operations per second (open loop): 1000, 2.5k, 0.5, 90/m, 12/h
    #[arg(short = 'R', long, value_name = "N", value_parser = parse_rate, help_heading = "Load")]
    #[serde(serialize_with = "typed")]
    rate: Option<Rate>,

    /// Virtual users (closed loop) [default: 10 without --rate]
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = "Load")]
    vusers: Option<u32>,

    #[command(flatten)]
    #[serde(flatten)]
    open: OpenArgs,

    #[command(flatten)]
    #[serde(flatten)]
    closed: ClosedArgs,

    #[command(flatten)]
    #[serde(flatten)]
    replay: ReplayArgs,

    #[command(flatten)]
    #[serde(flatten)]
    retry: RetryArgs,

    /// Measured time: 30s, 2m, 500ms [default: 10s; with -n 24h; with a trace its length]
    #[arg(short, long, value_name = "T", value_parser = parse_positive, help_heading = "Time")]
    #[serde(serialize_with = "typed")]
    duration: Option<Nanos>,

    /// Warm-up time, excluded from the results [default: 1s; 0 with -n or a trace]
    #[arg(long, value_name = "T", value_parser = parse_duration, help_heading = "Time")]
    #[serde(serialize_with = "typed")]
    warmup: Option<Nanos>,

    /// Number of operations; the run stops after exactly this many
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_number)]
    #[arg(help_heading = "Time")]
    requests: Option<u64>,

    /// Repeats of the run; figures then have intervals from the spread between repeats
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = "Time")]
    repeat: Option<u32>,

    #[command(flatten)]
    #[serde(flatten)]
    http: HttpArgs,

    #[command(flatten)]
    #[serde(skip)]
    output: MeasuredOutputArgs,

    /// The stages of a scenario.
    #[arg(skip)]
    #[serde(skip)]
    stages: Option<ScenarioLoad>,
}

/// Name of arrivals by the stages of a scenario, in reports.
const STAGES: &str = "trace(stages of the scenario)";

/// The same by a recording.
const RECORDED: &str = "trace(requests of the recording)";

/// A run that cannot be wrong.
#[derive(Debug)]
pub struct RunSpec {
    pub(super) trial: TrialSpec,
    repeats: u32,
    observe: ObserveArgs,
    /// How long after the end iterations of a script go on.
    graceful_stop: Nanos,
    /// Who makes it; `None`: this process.
    fleet: Option<Fleet>,
    pub(super) setup: ReportSetup,
}

/// Makes the run and reports it.
pub fn execute(mut spec: RunSpec) -> Result<Exit, Failure> {
    let fleet = spec.fleet.take();
    if let Some(plan) = &mut spec.trial.target.sessions
        && let Some(script) = &mut Arc::make_mut(plan).script
    {
        Arc::make_mut(script).graceful_stop = Some(spec.graceful_stop);
    }
    if fleet.is_none() {
        spec.trial.engine.margins = margins::of_this_machine(spec.setup.output.notes());
    }
    let mut runner = spec.runner(spec.repeats > 1).made_by(fleet);
    let (setup, mut experiment) = spec.split();
    laboratory::conduct(setup, &mut experiment, &mut runner)
}

impl RunSpec {
    /// Runs its trials; `tells_levels`: a line for each as it ends.
    pub(super) fn runner(&self, tells_levels: bool) -> HttpRunner {
        let line = tells_levels.then_some(level_line as LevelLine);
        HttpRunner::new(&self.trial, line, self.observe.clone())
    }

    /// A text without the secrets of the target.
    pub(super) fn hidden(&self, text: &str) -> String {
        self.setup.output.secrets.hide(text).into_owned()
    }

    /// The policy, and what its report needs.
    pub(super) fn split(self) -> (ReportSetup, SingleRun) {
        let experiment = SingleRun::new(self.trial).repeated(self.repeats);
        (self.setup, experiment)
    }
}

impl RawRun {
    /// What is to be run; files are read here.
    pub fn resolve(mut self, machine: &Machine) -> Result<RunSpec, Failure> {
        let mut graceful_stop = Nanos::ZERO;
        if let Some(scenario) = self.target.scenario()? {
            self.http.fill(&scenario)?;
            if let Some(load) = &scenario.load {
                graceful_stop = load.graceful_stop;
                self.fill(load)?;
            }
        }
        self.fill_recording()?;
        self.refuse_contradictions()?;
        let fleet = self.http.gather(&self.target)?;
        let machine = FleetArgs::machine(fleet.as_ref(), machine);
        let mut trial = self.trial(&machine, fleet.as_ref())?;
        let is_own = |most: &u32| *most > 1 && *most != machine.connections_default();
        let connections = self.open.connections.filter(is_own);
        let options = self.resolved_options(&trial);
        let observe = self.http.observe.with_token()?;
        let (output, thresholds) = (self.output.resolve()?, self.http.thresholds);
        if let (Load::Open(_), None, Some(most)) =
            (&trial.load, trial.target.shared_by(), connections)
        {
            output.note(&format!(
                "note: at a rate, connections are opened as they are needed, here up to {most}; \
                 for {most} users give --vusers {most} without a rate"
            ));
        }
        let setup =
            report_setup(Kind::Run, &mut trial, fleet.as_ref(), options, thresholds, output)?;
        let repeats = self.repeat.unwrap_or(1);
        Ok(RunSpec { trial, repeats, fleet, observe, graceful_stop, setup })
    }

    /// Takes the load of a scenario where none was given.
    fn fill(&mut self, load: &ScenarioLoad) -> Result<(), Failure> {
        let is_said = self.requests.is_some()
            || self.duration.is_some()
            || self.rate.is_some()
            || self.vusers.is_some();
        if !is_said {
            self.requests = load.iterations;
        }
        if self.requests.is_none() || load.iterations.is_some() && !is_said {
            self.duration = self.duration.or(load.duration);
            self.warmup = self.warmup.or(load.warmup);
        }
        let is_closed = self.vusers.is_some() || self.closed.given().is_some();
        if is_closed || self.open.arrivals.carries_rate() {
            return Ok(());
        }
        if self.rate.is_none() {
            // Who gives a number of iterations or a time does so in the place of the script's.
            let is_replaced = is_said && load.iterations.is_some();
            if !load.stages.is_empty() && !is_replaced {
                return self.fill_stages(load);
            }
            // -c alone is a number of users too.
            if self.open.connections.is_none() {
                self.vusers = load.vusers;
            }
            self.rate = load.rate;
        }
        let arrival = load.arrival.as_ref();
        let arrival = arrival.filter(|arrival| self.rate.is_none() || !arrival.carries_rate());
        if self.open.arrivals.arrival.is_none() && self.vusers.is_none() {
            self.open.arrivals.arrival = arrival.cloned();
        }
        Ok(())
    }

    /// Takes the schedule of a recording, if the URL names one.
    fn fill_recording(&mut self) -> Result<(), Failure> {
        if !self.target.recording(&self.replay)? {
            return Ok(());
        }
        let refused = [
            (self.open.arrivals.arrival.is_some(), "--arrival"),
            (self.rate.is_some(), "--rate"),
            (self.vusers.is_some(), "--vusers"),
            (self.closed.given().is_some(), self.closed.given().unwrap_or_default()),
        ];
        if let Some(option) = first_given(&refused) {
            let wrong = "a recording has its own schedule: leave it out";
            return Err(Failure::argument(option, wrong));
        }
        let asked = AskedArrival::parse(RECORDED).map_err(|e| Failure::argument(RECORDED, e))?;
        self.open.arrivals.arrival = Some(asked);
        Ok(())
    }

    /// Takes the stages of a scenario, which say how long the run is too.
    fn fill_stages(&mut self, load: &ScenarioLoad) -> Result<(), Failure> {
        if self.open.arrivals.arrival.is_some() || self.duration.is_some() {
            let wrong =
                "the scenario has stages, which have their own: give a rate, or leave it out";
            return Err(Failure::argument("--arrival and --duration", wrong));
        }
        match load.stages.of_users() {
            Some((most, _)) => self.vusers = load.vusers.or(Some(most)),
            None => {
                let asked =
                    AskedArrival::parse(STAGES).map_err(|e| Failure::argument(STAGES, e))?;
                self.open.arrivals.arrival = Some(asked);
            }
        }
        self.stages = Some(load.clone());
        let warmup = self.warmup.unwrap_or_default();
        let length = load.stages.length();
        if length <= warmup {
            let wrong = "as long as all stages of the scenario: expected less";
            return Err(Failure::argument("--warmup", wrong));
        }
        self.duration = Some(length - warmup);
        Ok(())
    }

    /// Recorded times of arrivals: of a file, or by the stages of a scenario.
    fn trace(&self, seed: u64) -> Result<Option<RecordedArrivals>, Failure> {
        if let Some(arrivals) = self.target.recorded_arrivals() {
            return Ok(Some(arrivals));
        }
        let stages = self.stages.as_ref().filter(|load| load.stages.of_users().is_none());
        let Some(load) = stages else {
            return self.open.arrivals.trace();
        };
        let times = load.moments(seed).map_err(|e| Failure::argument("load", e))?;
        Ok(Some(RecordedArrivals { times: times.into() }))
    }

    fn trial(&mut self, machine: &Machine, fleet: Option<&Fleet>) -> Result<TrialSpec, Failure> {
        let target = self.target.resolve()?;
        self.http.observe.check(&target)?;
        self.http.thresholds.check(&target)?;
        let seed = self.http.engine.seed();
        let trace = self.trace(seed)?;
        let (warmup, duration) = self.times(trace.as_ref());
        let target = http_runner::settle(target, self.http.limits.connect_timeout, fleet)?;
        let target = match self.vusers {
            Some(_) => self.open.shared_by_users(target)?,
            None => target,
        };
        let retry = self.retry.resolve(&target)?;
        if retry.is_some() && target.recording.is_some() {
            let wrong = "a recording has its own schedule: leave it out";
            return Err(Failure::argument("--retries", wrong));
        }
        if retry.is_some() && target.sessions.as_ref().is_some_and(|plan| plan.script.is_some()) {
            let wrong = "a script tries again by itself: leave it out";
            return Err(Failure::argument("--retries", wrong));
        }
        let load = self.load(&target, trace.as_ref(), warmup + duration, machine)?;
        let mut engine = self.http.engine.for_load(&machine.beside(&target), &load);
        if target.recording.as_ref().is_some_and(|recording| recording.has_users) {
            // Who waits for whom is known within a worker.
            engine.workers = 1;
        }
        let trial = http_runner::trial(&self.http, target, load, [warmup, duration], engine)?;
        Ok(TrialSpec { operations_max: self.requests, retry, seed, ..trial })
    }

    fn is_open(&self) -> bool {
        self.rate.is_some() || self.open.arrivals.carries_rate()
    }

    fn refuse_contradictions(&self) -> Result<(), Failure> {
        let asked = self.open.arrivals.arrival.as_ref();
        let (arrival, name) = asked.map_or(("", ""), |asked| (asked.text(), asked.name()));
        let carries_rate = asked.is_some_and(AskedArrival::carries_rate);
        let takes_length = asked.is_some_and(AskedArrival::takes_length);
        let pause = self.closed.given();
        let (is_open, counts) = (self.is_open(), self.requests.is_some());
        refuse_first(&[
            (
                self.rate.is_some() && carries_rate,
                "--rate",
                &format!("'{arrival}' carries its own rate: leave one out"),
            ),
            (
                is_open && self.vusers.is_some(),
                "--vusers",
                "users make a closed loop, --rate an open one: leave one out",
            ),
            (
                is_open && pause.is_some(),
                pause.unwrap_or_default(),
                "only virtual users pause: leave it or the rate out",
            ),
            (
                !is_open && asked.is_some(),
                "--arrival",
                "needs a rate: give --rate, such as --rate 1000",
            ),
            (
                !is_open && self.open.max_in_flight.is_some(),
                "--max-in-flight",
                "only an open loop sheds: give --rate with it",
            ),
            (
                counts && self.warmup.is_some_and(|t| t > Nanos::ZERO),
                "--warmup",
                "with -n every operation counts: leave one out",
            ),
            (
                counts && takes_length && self.duration.is_none(),
                "--arrival",
                &format!("a {name} takes its length from --duration: give it too"),
            ),
        ])
    }

    /// Warm-up and measured time.
    fn times(&self, trace: Option<&RecordedArrivals>) -> (Nanos, Nanos) {
        let counts_all = self.requests.is_some() || trace.is_some();
        let warmup = match self.warmup {
            Some(t) => t,
            None if counts_all => Nanos::ZERO,
            None => Nanos::from_secs(1),
        };
        let duration = match (self.duration, trace) {
            (Some(t), _) => t,
            (None, Some(trace)) => (trace.length() - warmup).max(Nanos::from_millis(1)),
            (None, None) if self.requests.is_some() => Nanos::from_secs(24 * 3600),
            (None, None) => Nanos::from_secs(10),
        };
        (warmup, duration)
    }

    fn load(
        &self,
        target: &Target,
        trace: Option<&RecordedArrivals>,
        run_length: Nanos,
        machine: &Machine,
    ) -> Result<Load, Failure> {
        if self.is_open() {
            if target.protocol.subscribes() {
                let wrong = "the server sends by itself: leave the rate out, or --subscribe";
                return Err(Failure::argument("--subscribe", wrong));
            }
            let load = self.open.load(self.rate, target, trace, run_length, machine)?;
            return Ok(Load::Open(load));
        }
        let (argument, vusers) = match (self.vusers, self.open.connections) {
            (None, Some(connections)) => ("--connections", connections),
            (vusers, _) => ("--vusers", vusers.unwrap_or(10)),
        };
        Machine::check_users(argument, vusers)?;
        let of_users = vusers.saturating_mul(target.lanes_per_user());
        let connections = target.connections_max.unwrap_or(of_users);
        machine.check_connections(argument, connections)?;
        let stages = self.stages.as_ref().and_then(|load| load.stages.of_users());
        let stages = stages.map_or(Vec::new(), |(_, stages)| stages.to_vec());
        Ok(Load::Closed { vusers, pause: self.closed.pause(), stages })
    }

    /// Puts what the trial uses in the place of defaults; the options that repeat it.
    fn resolved_options(&mut self, trial: &TrialSpec) -> ResolvedOptions {
        match &trial.load {
            Load::Open(load) => self.open.connections = Some(load.connections_max),
            Load::Closed { vusers, .. } => {
                self.vusers = Some(*vusers);
                self.open.connections = trial.target.connections_max;
                self.closed.fill_defaults();
            }
            Load::Overload(_) => {}
        }
        self.duration = Some(trial.duration);
        self.warmup = Some(trial.warmup);
        self.http.fill_defaults(trial);
        let mut options = ResolvedOptions::of(self);
        if self.stages.is_some() || self.target.recorded_arrivals().is_some() {
            // The next run has them of the file again.
            options.leave_out("duration");
            options.leave_out("vusers");
        } else if let Load::Open(load) = &trial.load {
            self.open.arrivals.put_in(&load.arrival, &mut options);
        }
        options
    }
}
