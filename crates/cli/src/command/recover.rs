//! `knee recover`: whether a service comes back after an overload.

use super::http_runner::{self, HttpRunner, PreparedHttp, report_setup};
use super::laboratory;
use crate::args::with_exits;
use crate::args::{FleetArgs, HttpArgs, RetryArgs, TargetArgs, parse_count, parse_positive};
use crate::failure::{Exit, Failure};
use crate::machine::Machine;
use crate::margins;
use crate::output::MeasuredOutputArgs;
use crate::resolved_options::{ResolvedOptions, Typed, typed};
use clap::Args;
use knee_core::experiment::recover::{Recover, RecoverPhases, RecoverSpec};
use knee_core::report::Kind;
use knee_fleet::Fleet;
use knee_load::spec::{
    ArrivalLaw, Level, Load, OpenLoad, ParseError, Rate, TrialSpec, parse_duration, parse_rate,
};
use knee_load::time::Nanos;
use serde::Serialize;
use serde_json::Value;

/// Find out whether a service comes back after an overload
///
/// The base load, then the trigger, then the base load again, in one trial. A service can stay down
/// after the overload has ended, as retries and work for clients that have gone keep it overloaded:
/// a metastable failure. The answer is recovered (with the time that it took), degraded, stuck or
/// crashed.
#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(
    after_help = "Example:\n  \
        knee recover http://127.0.0.1:8080/ -R 800 --trigger 3x --retries 3 --timeout 500ms",
    after_long_help = with_exits("Examples:\n  \
        knee recover http://127.0.0.1:8080/ -R 800 --trigger 2000 --for 10s\n  \
        knee recover http://127.0.0.1:8080/ -R 800 --trigger 3x --retries 3 --timeout 500ms\n  \
        knee recover http://127.0.0.1:8080/ -R 800 --trigger 3x --retries 3 --timeout 500ms \
        --explain\n  \
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
    #[arg(long, value_name = "N", value_parser = parse_trigger, help_heading = "Load")]
    #[serde(serialize_with = "typed")]
    trigger: Trigger,

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

    /// Time of the trigger
    #[arg(long = "for", value_name = "T", default_value = "10s", value_parser = parse_positive)]
    #[arg(help_heading = "Time")]
    #[serde(rename = "for", serialize_with = "typed")]
    lasting: Nanos,

    /// Time of the base load after the trigger
    #[arg(long, value_name = "T", default_value = "60s", value_parser = parse_positive)]
    #[arg(help_heading = "Time")]
    #[serde(serialize_with = "typed")]
    after: Nanos,

    /// Warm-up time, excluded from the results
    #[arg(long, value_name = "T", default_value = "2s", value_parser = parse_duration)]
    #[arg(help_heading = "Time")]
    #[serde(serialize_with = "typed")]
    warmup: Nanos,

    /// If the service does not recover, measure what helps: no retries, a retry budget of 10 %,
    /// half the timeout, three quarters of the base load
    #[arg(long, help_heading = "Load")]
    explain: bool,

    /// Time before each of these trials in which 1 % of the base load is offered
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
enum Trigger {
    /// Requests per second.
    Rate(Rate),
    /// A multiple of the base load.
    Times(f64),
}

impl Trigger {
    fn rate(self, base: Rate) -> Option<Rate> {
        match self {
            Trigger::Rate(rate) => Some(rate),
            Trigger::Times(factor) => Rate::from_f64(base.per_s() * factor),
        }
    }
}

impl Typed for Trigger {
    fn typed(&self) -> Value {
        match self {
            Trigger::Rate(rate) => rate.typed(),
            Trigger::Times(factor) => format!("{factor}x").into(),
        }
    }
}

fn parse_trigger(text: &str) -> Result<Trigger, ParseError> {
    let Some(number) = text.trim().strip_suffix('x') else {
        return parse_rate(text).map(Trigger::Rate);
    };
    match number.trim().parse::<f64>() {
        Ok(factor) if factor > 1.0 && factor <= 1000.0 => Ok(Trigger::Times(factor)),
        _ => Err(ParseError(format!(
            "'{text}' is no multiple above 1: give a rate such as 2000, or a multiple such as 3x"
        ))),
    }
}

/// An experiment that cannot be wrong.
pub type ResolvedRecover = PreparedHttp<RecoverSpec>;

/// Makes the experiment and reports it.
pub fn execute(mut recover: ResolvedRecover) -> Result<Exit, Failure> {
    recover.announce();
    let fleet = recover.fleet.take();
    if fleet.is_none() {
        recover.spec.base.engine.margins = margins::of_this_machine(recover.setup.output.notes());
    }
    let runner = HttpRunner::new(&recover.spec.base, false, recover.observe.clone());
    let mut runner = runner.made_by(fleet);
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
        let fleet = self.http.gather(&self.target)?;
        let machine = FleetArgs::machine(fleet.as_ref(), machine);
        let mut spec = self.spec(&machine, fleet.as_ref())?;
        self.http.settle(&spec.base);
        let options = ResolvedOptions::of(&self);
        let observe = self.http.observe.with_token()?;
        let (base, thresholds) = (&mut spec.base, self.http.thresholds);
        let setup = report_setup(Kind::Recover, base, fleet.as_ref(), options, thresholds, output);
        Ok(ResolvedRecover { spec, unused: None, observe, setup, fleet, demo: None })
    }

    fn spec(&mut self, machine: &Machine, fleet: Option<&Fleet>) -> Result<RecoverSpec, Failure> {
        let target = self.target.resolve()?;
        let target = http_runner::settle(target, self.http.limits.connect_timeout, fleet)?;
        self.http.observe.check(&target)?;
        self.http.thresholds.check(&target)?;
        let retry = self.retry.settle(&target)?;
        if retry.is_some() && !self.http.limits.has_timeout() {
            let wrong = "users who retry need a time after which they do: give --timeout, such as \
                         500ms";
            return Err(Failure::argument("--retries", wrong));
        }
        let trigger = self.trigger.rate(self.rate).filter(|t| t.per_s() > self.rate.per_s());
        let trigger = trigger.ok_or_else(|| {
            let base = self.rate.exactly();
            Failure::argument("--trigger", format!("is not above the base load of {base}"))
        })?;
        let connections = self.connections.unwrap_or(machine.connections_default());
        machine.check_connections("--connections", connections)?;
        self.connections = Some(connections);
        let load = Load::Open(OpenLoad {
            rate: self.rate,
            arrival: ArrivalLaw::Constant,
            connections_max: connections,
            in_flight_max: None,
        });
        let phases =
            RecoverPhases { before: self.before, trigger: self.lasting, after: self.after };
        let shortest = self.before.min(self.lasting).min(self.after);
        let engine = self.http.engine.for_load(machine, &load);
        let base = TrialSpec {
            label: format!("trigger {}", trigger.exactly()),
            level: Level::RatePerS(self.rate.per_s()),
            load,
            target,
            warmup: self.warmup,
            duration: phases.length(),
            operations_max: None,
            timeout: self.http.limits.timeout(),
            retry,
            connect_timeout: self.http.limits.connect_timeout,
            interval: self.http.limits.interval(shortest)?,
            seed: self.http.engine.seed(),
            engine,
        };
        let (rate, explains, rest) = (self.rate, self.explain, self.rest);
        Ok(RecoverSpec { base, phases, rate, trigger, explains, rest })
    }
}
