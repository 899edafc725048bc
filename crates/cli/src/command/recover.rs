//! `knee recover`: whether a service comes back after an overload.

use super::demo::DemoServer;
use super::http_runner::{self, HttpRunner, PreparedHttp, report_setup};
use super::laboratory;
use super::trigger::TriggerCommand;
use crate::args::with_exits;
use crate::args::{Fleet, FleetArgs, HttpArgs, RetryArgs, TargetArgs, parse_count, parse_positive};
use crate::failure::{Exit, Failure};
use crate::machine::{IN_FLIGHT_DEFAULT, Machine};
use crate::margins;
use crate::output::MeasuredOutputArgs;
use crate::resolved_options::{ResolvedOptions, Typed, typed};
use clap::Args;
use knee_core::experiment::recover::{Recover, RecoverPhases, RecoverSpec, Trigger};
use knee_core::report::Kind;
use knee_load::spec::{
    ArrivalLaw, Load, OpenLoad, ParseError, Rate, TrialSpec, parse_duration, parse_rate,
};
use knee_load::time::Nanos;
use serde::Serialize;
use serde_json::Value;

/// Find out whether a service comes back after an overload
///
/// The base load, then the trigger, then the base load again, in one trial. A service can stay down
/// after the overload has ended, as retries and work for clients that have gone keep it overloaded:
/// a metastable failure. The answer is recovered (with the time that it took), degraded, stuck or
/// crashed. Without --trigger the smallest one is looked for after which the service does not come
/// back.
#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(
    after_help = "Without a URL the target is a built-in server.\n\nExample:\n  \
        knee recover http://127.0.0.1:8080/ -R 800 --trigger 3x --retries 3 --timeout 500ms",
    after_long_help = with_exits("Examples:\n  \
        knee recover http://127.0.0.1:8080/ -R 800 --trigger 2000 --for 10s\n  \
        knee recover http://127.0.0.1:8080/ -R 800 --trigger 3x --retries 3 --timeout 500ms\n  \
        knee recover http://127.0.0.1:8080/ -R 800 --trigger 3x --retries 3 --timeout 500ms \
        --explain\n  \
        knee recover http://127.0.0.1:8080/ -R 800 --trigger-max 5x --retries 3 \
        --timeout 500ms\n  \
        knee recover http://127.0.0.1:8080/ -R 800 --trigger-exec './drop-cache.sh'\n  \
        knee recover http://127.0.0.1:8080/ -R 800 --trigger 1500 --for forever\n  \
        knee recover http://127.0.0.1:8080/ -R 800 --trigger 3x --fail-if 'recovery>30s'"),
)]
pub struct RawRecover {
    #[command(flatten)]
    #[serde(flatten)]
    target: TargetArgs,

    /// Base load in requests per second, which the service carries
    #[arg(short = 'R', long, value_name = "N", value_parser = parse_rate, help_heading = "Load")]
    #[serde(serialize_with = "typed")]
    rate: Rate,

    /// Load of the trigger: requests per second, or a multiple of the base load such as 3x
    ///
    /// Without it, and without --trigger-exec, the smallest one is looked for after which the
    /// service does not come back.
    #[arg(long, value_name = "N", value_parser = parse_trigger, help_heading = "Load")]
    #[serde(serialize_with = "typed")]
    trigger: Option<TriggerRate>,

    /// Highest load in the search for the smallest trigger [default: 5x]
    #[arg(long, value_name = "N", value_parser = parse_trigger, help_heading = "Load")]
    #[arg(conflicts_with_all = ["trigger", "trigger_exec"])]
    #[serde(serialize_with = "typed")]
    trigger_max: Option<TriggerRate>,

    /// Command that is the trigger: a shell runs it as the trigger begins
    ///
    /// The base load goes on, unless --trigger is given too. The trigger lasts for --for; a command
    /// that is not done by then is ended, with all that it started; one that is done leaves what it
    /// started in the background. If it fails, the experiment ends.
    #[arg(long, value_name = "CMD", help_heading = "Load", conflicts_with = "trigger_max")]
    trigger_exec: Option<String>,

    /// Maximum open connections [default: as many as the descriptors permit, up to 10,000]
    #[arg(short, long, value_name = "N", value_parser = parse_count, help_heading = "Load")]
    #[arg(hide_short_help = true)]
    connections: Option<u32>,

    #[command(flatten)]
    #[serde(flatten)]
    retry: RetryArgs,

    /// Time of the base load before the trigger
    #[arg(long, value_name = "T", default_value = "10s", value_parser = parse_positive)]
    #[arg(help_heading = "Time")]
    #[serde(serialize_with = "typed")]
    before: Nanos,

    /// Time of the trigger, or forever: its load stays [default: 10s; in a search up to 30s]
    #[arg(long = "for", value_name = "T", value_parser = parse_lasting)]
    #[arg(help_heading = "Time")]
    #[serde(rename = "for", serialize_with = "typed")]
    lasting: Option<Lasting>,

    /// Time of the base load after the trigger [default: 60s, up to 4m while a queue drains]
    ///
    /// It goes on for up to 60s more until it is known whether the queue of the service drains.
    #[arg(long, value_name = "T", value_parser = parse_positive, help_heading = "Time")]
    #[serde(serialize_with = "typed")]
    after: Option<Nanos>,

    /// Warm-up time, excluded from the results
    #[arg(long, value_name = "T", default_value = "2s", value_parser = parse_duration)]
    #[arg(help_heading = "Time")]
    #[serde(serialize_with = "typed")]
    warmup: Nanos,

    /// If the service does not recover, measure what helps: no retries, a retry budget of 10 %,
    /// half the timeout, three quarters of the base load
    #[arg(long, help_heading = "Load")]
    explain: bool,

    /// Then raise the load to the trigger and lower it again, in steps of this time, such as 5s
    ///
    /// It shows whether the service serves on the way down what it served on the way up.
    #[arg(long, value_name = "T", value_parser = parse_positive, help_heading = "Load")]
    #[arg(conflicts_with = "trigger_exec")]
    #[serde(serialize_with = "typed")]
    hysteresis: Option<Nanos>,

    /// Time before each trial but the first in which 1 % of the base load is offered
    #[arg(long, value_name = "T", default_value = "20s", value_parser = parse_duration)]
    #[arg(help_heading = "Time", hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    rest: Nanos,

    #[command(flatten)]
    #[serde(flatten)]
    http: HttpArgs,

    #[command(flatten)]
    #[serde(skip)]
    output: MeasuredOutputArgs,
}

/// The load of a trigger as typed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TriggerRate {
    /// Requests per second.
    Rate(Rate),
    /// A multiple of the base load.
    Times(f64),
}

impl TriggerRate {
    /// The highest load in a search where none is given.
    const MAX: TriggerRate = TriggerRate::Times(5.0);

    /// The rate over this base load, if it is above it.
    fn above(self, base: Rate, option: &'static str) -> Result<Rate, Failure> {
        let rate = match self {
            TriggerRate::Rate(rate) => Some(rate),
            TriggerRate::Times(factor) => Rate::from_f64(base.per_s() * factor),
        };
        rate.filter(|rate| rate.per_s() > base.per_s()).ok_or_else(|| {
            let base = base.exactly();
            Failure::argument(option, format!("is not above the base load of {base}"))
        })
    }
}

impl Typed for TriggerRate {
    fn typed(&self) -> Value {
        match self {
            TriggerRate::Rate(rate) => rate.typed(),
            TriggerRate::Times(factor) => format!("{factor}x").into(),
        }
    }
}

fn parse_trigger(text: &str) -> Result<TriggerRate, ParseError> {
    let Some(number) = text.trim().strip_suffix('x') else {
        return parse_rate(text).map(TriggerRate::Rate);
    };
    match number.trim().parse::<f64>() {
        Ok(factor) if factor > 1.0 && factor <= 1000.0 => Ok(TriggerRate::Times(factor)),
        _ => Err(ParseError(format!(
            "'{text}' is no multiple above 1: give a rate such as 2000, or a multiple such as 3x"
        ))),
    }
}

/// How long a trigger lasts, as typed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lasting {
    /// This long.
    Time(Nanos),
    /// To the end.
    Forever,
}

impl Typed for Lasting {
    fn typed(&self) -> Value {
        match self {
            Lasting::Time(time) => time.typed(),
            Lasting::Forever => "forever".into(),
        }
    }
}

fn parse_lasting(text: &str) -> Result<Lasting, ParseError> {
    match text.trim() {
        "forever" => Ok(Lasting::Forever),
        _ => parse_positive(text).map(Lasting::Time),
    }
}

/// Time of the base load after the trigger where none is given.
const AFTER: Nanos = Nanos::from_secs(60);

/// An experiment that cannot be wrong.
#[derive(Debug)]
pub struct ResolvedRecover {
    pub http: PreparedHttp<RecoverSpec>,
    command: Option<TriggerCommand>,
}

/// Makes the experiment and reports it.
pub fn execute(recover: ResolvedRecover) -> Result<Exit, Failure> {
    let ResolvedRecover { http: mut recover, command } = recover;
    recover.announce();
    let fleet = recover.fleet.take();
    if fleet.is_none() {
        recover.spec.base.engine.margins = margins::of_this_machine(recover.setup.output.notes());
    }
    let runner = HttpRunner::new(&recover.spec.base, None, recover.observe.clone());
    let mut runner = runner.made_by(fleet).triggered_by(command);
    laboratory::conduct(recover.setup, &mut Recover::new(recover.spec), &mut runner)
}

impl RawRecover {
    /// What is to be measured; files are read here.
    pub fn resolve(mut self, machine: &Machine) -> Result<ResolvedRecover, Failure> {
        if self.target.scenario()?.is_some() {
            let wrong = "users of a scenario have no base load of requests: give a URL";
            return Err(Failure::argument("URL", wrong));
        }
        let output = self.output.resolve()?;
        let (demo, share) = DemoServer::stand_in(&mut self.target, machine, DemoServer::queue)?;
        let fleet = self.http.gather(&self.target)?;
        let machine = FleetArgs::machine(fleet.as_ref(), &share);
        let mut spec = self.spec(&machine, fleet.as_ref())?;
        self.http.fill_defaults(&spec.base);
        let mut options = ResolvedOptions::of(&self);
        if demo.is_some() {
            // The next one without a URL brings its own server again, on another port.
            options.leave_out("url");
        }
        let observe = self.http.observe.with_token()?;
        let (base, thresholds) = (&mut spec.base, self.http.thresholds);
        let setup = report_setup(Kind::Recover, base, fleet.as_ref(), options, thresholds, output)?;
        let (begins, lasting) = (spec.phases.before, spec.phases.trigger);
        let ends = begins + lasting;
        let command = self.trigger_exec.map(|line| TriggerCommand { line, begins, ends });
        let http = PreparedHttp { spec, unused: None, observe, setup, fleet, demo };
        Ok(ResolvedRecover { http, command })
    }

    fn spec(&mut self, machine: &Machine, fleet: Option<&Fleet>) -> Result<RecoverSpec, Failure> {
        let target = self.target.resolve()?;
        let target = http_runner::settle(target, self.http.limits.connect_timeout, fleet)?;
        self.http.observe.check(&target)?;
        self.http.thresholds.check(&target)?;
        let retry = self.retry.resolve(&target)?;
        if retry.is_some() && !self.http.limits.has_timeout() {
            let wrong = "users who retry need a time after which they do: give --timeout, such as \
                         500ms";
            return Err(Failure::argument("--retries", wrong));
        }
        let (trigger, lasting) = self.trigger()?;
        let connections = self.connections.unwrap_or(machine.connections_default());
        machine.check_connections("--connections", connections)?;
        self.connections = Some(connections);
        machine.check_rate("--rate", self.rate.per_s())?;
        machine.check_rate("--trigger", trigger.rate().per_s())?;
        let load = Load::Open(OpenLoad {
            rate: self.rate,
            arrival: ArrivalLaw::Constant,
            connections_max: connections,
            in_flight_max: Some(IN_FLIGHT_DEFAULT),
        });
        let after = self.after.unwrap_or(AFTER);
        let phases = RecoverPhases { before: self.before, trigger: lasting, after };
        let shortest = self.before.min(lasting).min(after);
        let engine = self.http.engine.for_load(&machine.beside(&target), &load);
        let times = [self.warmup, phases.length()];
        let base = TrialSpec {
            label: format!("trigger {}", trigger.rate().exactly()),
            retry,
            interval: self.http.limits.interval(shortest)?,
            ..http_runner::trial(&self.http, target, load, times, engine)?
        };
        let (rate, explains, rest) = (self.rate, self.explain, self.rest);
        Ok(RecoverSpec {
            base,
            phases,
            follows_fall: self.after.is_none(),
            rate,
            trigger,
            explains,
            hysteresis: self.hysteresis,
            rest,
        })
    }

    /// The trigger and its time. Defaults are settled.
    fn trigger(&mut self) -> Result<(Trigger, Nanos), Failure> {
        let is_search = self.trigger.is_none() && self.trigger_exec.is_none();
        let default = Nanos::from_secs(if is_search { 30 } else { 10 });
        let lasting = *self.lasting.get_or_insert(Lasting::Time(default));
        if is_search {
            let most = *self.trigger_max.get_or_insert(TriggerRate::MAX);
            let Lasting::Time(lasting) = lasting else {
                let wrong = "forever needs a load that stays: give --trigger, such as 2x";
                return Err(Failure::argument("--for", wrong));
            };
            return Ok((Trigger::Search(most.above(self.rate, "--trigger-max")?), lasting));
        }
        let rate = match self.trigger {
            Some(rate) => rate.above(self.rate, "--trigger")?,
            // The command alone is the trigger.
            None => self.rate,
        };
        match lasting {
            Lasting::Time(lasting) => Ok((Trigger::Load(rate), lasting)),
            Lasting::Forever => Ok((Trigger::Stays(rate), self.after.unwrap_or(AFTER))),
        }
    }
}
