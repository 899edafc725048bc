//! Options of the load that several commands share, and all that experiments over HTTP have in
//! common.

use super::arrival::{ArrivalArgs, RecordedArrivals};
use super::values::{parse_count, parse_positive};
use super::{EngineArgs, Fleet, FleetArgs, ObserveArgs, TargetArgs, ThresholdArgs};
use crate::failure::Failure;
use crate::machine::{IN_FLIGHT_DEFAULT, Machine};
use crate::resolved_options::typed;
use clap::Args;
use knee_load::law::Law;
use knee_load::spec::{OpenLoad, Pause, PauseKind, Rate, Target, TrialSpec, parse_law};
use knee_load::time::Nanos;
use knee_scenario::Scenario;
use serde::Serialize;

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Load")]
pub struct OpenArgs {
    /// Maximum open connections (open loop)
    ///
    /// [default: as many as the descriptors permit, up to 10,000; one in HTTP/2, which carries many
    /// operations at once]. In a closed loop each virtual user has one, so -c N alone means N
    /// users. In HTTP/2 --vusers with -c has the users share them.
    #[arg(short, long, value_name = "N", value_parser = parse_count)]
    pub connections: Option<u32>,

    #[command(flatten)]
    #[serde(skip)]
    pub arrivals: ArrivalArgs,

    /// Maximum operations in flight; further arrivals are counted as shed
    /// [default: 1000000]
    #[arg(long, value_name = "N", value_parser = parse_count, hide_short_help = true)]
    pub max_in_flight: Option<u32>,
}

impl OpenArgs {
    /// The open-loop load at this rate (`None`: the arrivals carry it) over the whole run.
    pub fn load(
        &self,
        rate: Option<Rate>,
        target: &Target,
        trace: Option<&RecordedArrivals>,
        run_length: Nanos,
        machine: &Machine,
    ) -> Result<OpenLoad, Failure> {
        let (rate, arrival) = self.arrivals.schedule(rate, trace, run_length)?;
        // Where operations share connections, one carries many at once.
        let is_shared = target.shared_by().is_some();
        let default = if is_shared { 1 } else { machine.connections_default() };
        let connections_max = self.connections.unwrap_or(default);
        machine.check_connections("--connections", connections_max)?;
        let carries_rate = self.arrivals.carries_rate();
        let in_flight_max = Some(self.max_in_flight.unwrap_or(IN_FLIGHT_DEFAULT));
        let load = OpenLoad { rate, arrival, connections_max, in_flight_max };
        machine.check_rate(if carries_rate { "--arrival" } else { "--rate" }, load.peak_per_s())?;
        Ok(load)
    }

    /// The same target, whose connections the virtual users of a closed loop share where `-c` says
    /// how many there are.
    pub fn shared_by_users(&self, mut target: Target) -> Result<Target, Failure> {
        if self.connections.is_some() && target.shared_by().is_none() {
            let wrong = "in HTTP/1.1 each virtual user has a connection of its own: leave it out";
            return Err(Failure::argument("--connections", wrong));
        }
        target.connections_max = self.connections;
        Ok(target)
    }
}

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Load")]
pub struct ClosedArgs {
    /// Pause of a virtual user between two operations: 0, fixed(10ms), exp(10ms),
    /// uniform(5ms,15ms), lognormal(10ms,0.5) [default: 0]
    #[arg(long, value_name = "T", value_parser = parse_law, hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    pub think: Option<Law>,

    /// Time from the start of an operation to the start of the next; after a longer operation the
    /// next starts at once
    #[arg(long, value_name = "T", value_parser = parse_law, conflicts_with = "think")]
    #[arg(hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    pub cycle: Option<Law>,
}

impl ClosedArgs {
    /// What a user does between two operations.
    pub fn pause(&self) -> Pause {
        let think = self.think.map(|law| (PauseKind::Think, law));
        let cycle = self.cycle.map(|law| (PauseKind::Cycle, law));
        match think.or(cycle) {
            Some((kind, law)) => Pause { kind, law },
            None => Pause::NONE,
        }
    }

    /// Puts the pause of users in the place of the default.
    pub fn fill_defaults(&mut self) {
        if self.given().is_none() {
            self.think = Some(Pause::NONE.law);
        }
    }

    /// The option that was given, if any.
    pub fn given(&self) -> Option<&'static str> {
        self.think.map(|_| "--think").or(self.cycle.map(|_| "--cycle"))
    }
}

#[derive(Args, Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Time")]
pub struct LimitArgs {
    /// Time limit for an operation, counted from its intended time [default: 10s]
    #[arg(long, value_name = "T", value_parser = parse_positive)]
    #[serde(serialize_with = "typed")]
    pub(super) timeout: Option<Nanos>,

    /// Time limit for establishing a connection, and before the load for resolving the name of the
    /// target
    #[arg(long, value_name = "T", default_value = "5s", value_parser = parse_positive)]
    #[arg(hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    pub connect_timeout: Nanos,

    /// Interval length of the time series, at least 10ms [default: a tenth of the duration, from
    /// 100ms to 1s]
    #[arg(long, value_name = "T", value_parser = parse_positive, hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    pub interval: Option<Nanos>,
}

/// Default time limit for an operation.
const TIMEOUT: Nanos = Nanos::from_secs(10);

impl LimitArgs {
    /// The time limit for an operation of a target.
    ///
    /// # Errors
    /// Its last message leaves only after that.
    pub fn timeout_for(&self, target: &Target) -> Result<Nanos, Failure> {
        let timed = target.requests.iter().filter_map(|request| request.timed.as_ref());
        let last = timed.map(|timed| timed.last_due()).max().unwrap_or(Nanos::ZERO);
        if last < self.timeout() {
            return Ok(self.timeout());
        }
        let wrong = format!(
            "{} is over before the last message of a call leaves, after {last}: give a longer one",
            self.timeout()
        );
        Err(Failure::argument("--timeout", wrong))
    }

    /// The time limit for an operation.
    pub fn timeout(&self) -> Nanos {
        self.timeout.unwrap_or(TIMEOUT)
    }

    /// Whether the time limit for an operation was given.
    pub fn has_timeout(&self) -> bool {
        self.timeout.is_some()
    }

    /// Takes the time limit of a scenario where none was given.
    pub fn fill(&mut self, scenario: &Scenario) {
        self.timeout = self.timeout.or(scenario.timeout);
    }

    /// The interval for this length of measured time.
    pub fn interval(&self, duration: Nanos) -> Result<Nanos, Failure> {
        interval(self.interval, duration)
    }
}

/// The interval asked for, or that for this length of measured time.
pub fn interval(asked: Option<Nanos>, duration: Nanos) -> Result<Nanos, Failure> {
    match asked {
        Some(t) if t < INTERVAL_MIN => Err(Failure::argument(
            "--interval",
            format!("'{}' is too short: at least 10ms", t.exactly()),
        )),
        Some(t) => Ok(t),
        None => Ok(default_interval(duration)),
    }
}

/// The shortest interval whose percentiles mean something.
const INTERVAL_MIN: Nanos = Nanos::from_millis(10);

/// 1 s; a tenth of the duration where that is shorter, but not below 100 ms.
fn default_interval(duration: Nanos) -> Nanos {
    Nanos(duration.0 / 10).clamp(Nanos::from_millis(100), Nanos::from_secs(1))
}

/// Limits, who makes the load and how, who watches, and what decides.
#[derive(Args, Clone, Debug, Serialize)]
pub struct HttpArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub limits: LimitArgs,

    #[command(flatten)]
    #[serde(flatten)]
    pub engine: EngineArgs,

    #[command(flatten)]
    #[serde(flatten)]
    pub observe: ObserveArgs,

    #[command(flatten)]
    #[serde(skip)]
    fleet: FleetArgs,

    #[command(flatten)]
    #[serde(flatten)]
    pub thresholds: ThresholdArgs,
}

impl HttpArgs {
    /// Takes what a scenario says where nothing was given.
    pub fn fill(&mut self, scenario: &Scenario) -> Result<(), Failure> {
        self.limits.fill(scenario);
        self.thresholds.fill(scenario)
    }

    /// The fleet that is to load this target, ready for trials; `None` where none was asked for.
    pub fn gather(&self, target: &TargetArgs) -> Result<Option<Fleet>, Failure> {
        if self.fleet.is_asked_for() {
            target.refuse_files_of_a_fleet()?;
        }
        self.fleet.gather(self.engine.threads)
    }

    /// Puts what trials use in the place of defaults.
    pub fn fill_defaults(&mut self, trial: &TrialSpec) {
        self.limits.timeout = Some(trial.timeout);
        self.limits.interval = Some(trial.interval);
        self.engine.fill_defaults(&trial.engine, trial.seed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_ten_intervals_unless_they_would_be_too_short() {
        for (duration_ms, interval_ms) in
            [(10_000, 1_000), (3_600_000, 1_000), (5_000, 500), (1_000, 100), (300, 100)]
        {
            let interval = default_interval(Nanos::from_millis(duration_ms));
            assert_eq!(interval, Nanos::from_millis(interval_ms), "{duration_ms} ms");
        }
    }
}
