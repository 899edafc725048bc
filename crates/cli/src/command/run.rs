//! `knee run`: one load, reported.

use super::http_stand::{self, HttpStand};
use super::laboratory::{self, Order};
use crate::args::{ClosedArgs, HttpArgs, ObserveArgs, OpenArgs, TargetArgs, ThresholdArgs, Trace};
use crate::args::{FleetArgs, parse_count, parse_positive, parse_whole, with_exits};
use crate::failure::{Exit, Failure};
use crate::machine::Machine;
use crate::margins;
use crate::output::MeasuredOutputArgs;
use crate::output::Output;
use crate::words::{self, Words};
use clap::Args;
use knee_core::experiment::SingleRun;
use knee_core::report::{Command, Kind};
use knee_core::scenario::ScenarioLoad;
use knee_core::spec::{
    AskedArrival, HttpTarget, Load, Rate, TrialSpec, parse_duration, parse_rate,
};
use knee_core::time::Nanos;
use knee_fleet::Fleet;

/// Offer one load to a server and report throughput and response times
///
/// Without options: a closed loop of 10 virtual users for 10 s. With --rate (or an arrival process
/// that has its own rate): an open loop. Operations start when the schedule says, whatever the
/// server does, and response times count from the intended time. With --vusers (or -c alone): a
/// closed loop. Each virtual user sends a request, waits for the response, pauses, and repeats.
#[derive(Args, Clone, Debug)]
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
    pub(super) target: TargetArgs,

    /// Offered load in operations per second (open loop): 1000, 2.5k, 0.5, 90/m, 12/h
    #[arg(short = 'R', long, value_name = "N", value_parser = parse_rate, help_heading = "Load")]
    rate: Option<Rate>,

    /// Virtual users (closed loop) [default: 10 without --rate]
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = "Load")]
    vusers: Option<u32>,

    #[command(flatten)]
    open: OpenArgs,

    #[command(flatten)]
    closed: ClosedArgs,

    /// Measured time: 30s, 2m, 500ms [default: 10s; with -n 24h; with a trace its length]
    #[arg(short, long, value_name = "T", value_parser = parse_positive, help_heading = "Time")]
    duration: Option<Nanos>,

    /// Warm-up time, excluded from the results [default: 1s; 0 with -n or a trace]
    #[arg(long, value_name = "T", value_parser = parse_duration, help_heading = "Time")]
    warmup: Option<Nanos>,

    /// Number of operations; the run stops after exactly this many
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_operations)]
    #[arg(help_heading = "Time")]
    requests: Option<u64>,

    /// Repeats of the run; figures then have intervals from the spread between repeats
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = "Time")]
    repeat: Option<u32>,

    #[command(flatten)]
    http: HttpArgs,

    #[command(flatten)]
    output: MeasuredOutputArgs,

    /// The stages of a scenario.
    #[arg(skip)]
    stages: Option<ScenarioLoad>,
}

/// How reports call arrivals by the stages of a scenario.
const STAGES: &str = "trace(stages of the scenario)";

/// A run that cannot be wrong.
#[derive(Debug)]
pub struct RunSpec {
    pub(super) trial: TrialSpec,
    pub(super) words: Words,
    repeats: u32,
    observe: ObserveArgs,
    /// Who makes it; `None`: this process.
    fleet: Option<Fleet>,
    thresholds: ThresholdArgs,
    output: Output,
}

/// Makes the run and reports it.
pub fn execute(mut spec: RunSpec) -> Result<Exit, Failure> {
    let fleet = spec.fleet.take();
    if fleet.is_none() {
        spec.trial.engine.margins = margins::of_this_machine(spec.output.notes());
    }
    let mut stand = spec.stand(spec.repeats > 1).made_by(fleet);
    let (order, mut experiment) = spec.split();
    laboratory::conduct(order, &mut experiment, &mut stand)
}

impl RunSpec {
    /// Where its trials are run; `tells_levels`: a line for each as it ends.
    pub(super) fn stand(&self, tells_levels: bool) -> HttpStand {
        HttpStand::new(&self.trial, tells_levels, self.observe.clone())
    }

    /// A text without the secrets of the target.
    pub(super) fn hidden(&self, text: &str) -> String {
        self.output.secrets().hide(text).into_owned()
    }

    /// The policy, and all else about it.
    pub(super) fn split(self) -> (Order, SingleRun) {
        let order = Order {
            command: Command::of(Kind::Run),
            seed: self.trial.seed,
            words: self.words,
            thresholds: self.thresholds,
            output: self.output,
        };
        (order, SingleRun::new(self.trial).repeated(self.repeats))
    }
}

impl RawRun {
    /// What is to be run; files are read here.
    pub fn resolve(mut self, machine: &Machine) -> Result<RunSpec, Failure> {
        if let Some(scenario) = self.target.scenario()? {
            self.http.fill(&scenario);
            if let Some(load) = &scenario.load {
                self.fill(load)?;
            }
        }
        self.refuse_contradictions()?;
        let fleet = self.http.gather(&self.target)?;
        let machine = FleetArgs::machine(fleet.as_ref(), machine);
        let (mut trial, mut words) = self.trial(&machine, fleet.as_ref())?;
        FleetArgs::tell(fleet.as_ref(), &mut words);
        let observe = self.http.observe.with_token()?;
        let mut output = self.output.resolve()?;
        output.secrets_mut().learn_target(&mut trial.target);
        if let Some(repeats) = self.repeat {
            words.put("repeat", repeats);
        }
        Ok(RunSpec {
            trial,
            words,
            repeats: self.repeat.unwrap_or(1),
            fleet,
            observe,
            thresholds: self.http.thresholds,
            output,
        })
    }

    /// Takes the load of a scenario where none was given.
    fn fill(&mut self, load: &ScenarioLoad) -> Result<(), Failure> {
        if self.requests.is_none() {
            self.duration = self.duration.or(load.duration);
            self.warmup = self.warmup.or(load.warmup);
        }
        let is_closed = self.vusers.is_some() || self.closed.given().is_some();
        if is_closed || self.open.arrivals.carries_rate() {
            return Ok(());
        }
        if self.rate.is_none() {
            if !load.stages.is_empty() {
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

    /// Takes the stages of a scenario, which say how long the run is too.
    fn fill_stages(&mut self, load: &ScenarioLoad) -> Result<(), Failure> {
        if self.open.arrivals.arrival.is_some() || self.duration.is_some() {
            let wrong =
                "the scenario has stages, which have their own: give a rate, or leave it out";
            return Err(Failure::argument("--arrival and --duration", wrong));
        }
        let recorded = AskedArrival::parse(STAGES).map_err(|e| Failure::argument(STAGES, e))?;
        self.open.arrivals.arrival = Some(recorded);
        self.stages = Some(load.clone());
        let warmup = self.warmup.unwrap_or_default();
        let length = load.stages_length();
        if length <= warmup {
            let wrong = "as long as all stages of the scenario: expected less";
            return Err(Failure::argument("--warmup", wrong));
        }
        self.duration = Some(length - warmup);
        Ok(())
    }

    /// Recorded times of arrivals: of a file, or by the stages of a scenario.
    fn trace(&self, seed: u64) -> Result<Option<Trace>, Failure> {
        let Some(load) = &self.stages else {
            return self.open.arrivals.trace();
        };
        let moments = load
            .moments(seed)
            .map_err(|e| Failure::argument("load", e))?;
        Ok(Some(Trace {
            moments: moments.into(),
        }))
    }

    fn trial(
        &self,
        machine: &Machine,
        fleet: Option<&Fleet>,
    ) -> Result<(TrialSpec, Words), Failure> {
        let target = self.target.resolve()?;
        self.http.observe.check(&target)?;
        self.http.thresholds.check(&target)?;
        let seed = self.http.engine.seed();
        let trace = self.trace(seed)?;
        let (warmup, duration) = self.times(trace.as_ref());
        let target = http_stand::settle(target, self.http.limits.connect_timeout, fleet)?;
        let target = match self.vusers {
            Some(_) => self.open.shared_by_users(target)?,
            None => target,
        };
        let load = self.load(&target, trace.as_ref(), warmup + duration, machine)?;
        let level = load.level();
        let engine = self.http.engine.for_load(machine, &load);
        let trial = TrialSpec {
            label: http_stand::label(level),
            level,
            load,
            target,
            warmup,
            duration,
            operations_max: self.requests,
            timeout: self.http.limits.timeout(),
            connect_timeout: self.http.limits.connect_timeout,
            interval: self.http.limits.interval(duration)?,
            seed,
            engine,
        };
        let words = self.words(&trial);
        Ok((trial, words))
    }

    fn is_open(&self) -> bool {
        self.rate.is_some() || self.open.arrivals.carries_rate()
    }

    fn refuse_contradictions(&self) -> Result<(), Failure> {
        let refuse = |argument: &str, wrong: &str| Err(Failure::argument(argument, wrong));
        let asked = self.open.arrivals.arrival.as_ref();
        if let (Some(_), Some(asked)) = (self.rate, asked.filter(|a| a.carries_rate())) {
            return refuse(
                "--rate",
                &format!("'{}' carries its own rate: leave one out", asked.text()),
            );
        }
        if self.is_open() {
            if self.vusers.is_some() {
                return refuse(
                    "--vusers",
                    "users make a closed loop, --rate an open one: leave one out",
                );
            }
            if let Some(pause) = self.closed.given() {
                return refuse(pause, "only virtual users pause: leave it or the rate out");
            }
        } else if asked.is_some() {
            return refuse(
                "--arrival",
                "needs a rate: give --rate, such as --rate 1000",
            );
        } else if self.open.max_in_flight.is_some() {
            return refuse(
                "--max-in-flight",
                "only an open loop sheds: give --rate with it",
            );
        }
        if self.requests.is_some() {
            if self.warmup.is_some_and(|t| t > Nanos::ZERO) {
                return refuse("--warmup", "with -n every operation counts: leave one out");
            }
            if let (Some(asked), None) = (asked.filter(|a| a.takes_length()), self.duration) {
                let name = asked.name();
                return refuse(
                    "--arrival",
                    &format!("a {name} takes its length from --duration: give it too"),
                );
            }
        }
        Ok(())
    }

    /// Warm-up and measured time.
    fn times(&self, trace: Option<&Trace>) -> (Nanos, Nanos) {
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
        target: &HttpTarget,
        trace: Option<&Trace>,
        run_length: Nanos,
        machine: &Machine,
    ) -> Result<Load, Failure> {
        if self.is_open() {
            let load = self
                .open
                .load(self.rate, target, trace, run_length, machine)?;
            return Ok(Load::Open(load));
        }
        let (argument, vusers) = match (self.vusers, self.open.connections) {
            (None, Some(connections)) => ("--connections", connections),
            (vusers, _) => ("--vusers", vusers.unwrap_or(10)),
        };
        let connections = target.http2.connections_max.unwrap_or(vusers);
        machine.check_connections(argument, connections)?;
        Ok(Load::Closed {
            vusers,
            pause: self.closed.pause(),
        })
    }

    fn words(&self, trial: &TrialSpec) -> Words {
        let mut words = Words::default();
        self.target.tell(&mut words);
        match &trial.load {
            Load::Open(load) => {
                if self.rate.is_some() {
                    words.put("rate", load.rate.exactly());
                }
                self.open.tell(load, &mut words);
            }
            Load::Closed { vusers, pause } => {
                words.put("vusers", *vusers);
                words.put_some("connections", trial.target.http2.connections_max);
                words::pause(pause, &mut words);
            }
            Load::Overload(_) => {}
        }
        words.put("duration", trial.duration.exactly());
        words.put("warmup", trial.warmup.exactly());
        words.put_some("requests", trial.operations_max);
        self.http.tell(trial, &mut words);
        if self.stages.is_some() {
            // The next run has them of the file again.
            words.leave_out("arrival");
            words.leave_out("duration");
        }
        words
    }
}

fn parse_operations(text: &str) -> Result<u64, knee_core::spec::ParseError> {
    match parse_whole(text)? {
        0 => parse_count(text).map(u64::from),
        n => Ok(n),
    }
}
