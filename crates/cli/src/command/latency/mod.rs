//! `knee latency`: flows in both directions in front of a service, and what they do to latency.

mod options;

use super::laboratory::{self, ReportSetup};
use super::service;
use crate::args::{SeedArgs, ThresholdArgs, TokenArgs, parse_count, parse_positive, with_exits};
use crate::command::laboratory::{TrialOutput, TrialRunner};
use crate::failure::{Exit, Failure};
use crate::margins;
use crate::output::MeasuredOutputArgs;
use crate::resolved_options::{joined, typed};
use crate::watch::{LiveKind, LiveTrial, UpcomingTrial};
use clap::Args;
use knee_core::experiment::latency::analysis::assess;
use knee_core::experiment::latency::{Latency, LatencyPlan, gone};
use knee_core::trial::report::TrialReport;
use knee_core::trial::statistics::{StatisticUnit, threshold_names};
use knee_engine::error::RunError;
use knee_engine::experiment::latency as flows;
use knee_load::experiment::latency::{LatencyTrialSpec, ScenarioEnd};
use knee_load::measure::IntervalWatcher;
use knee_load::spec::parse_duration;
use knee_load::time::Nanos;
use knee_render::scenario_line;
pub use options::{PORT, parse_amount};
use serde::Serialize;
use std::sync::atomic::AtomicBool;

/// Measure what parallel uploads and downloads do to latency
///
/// Runs scenarios of 1 to 32 parallel TCP flows between this host and a 'knee serve latency' on
/// HOST. Reports capacity in each direction, responsiveness (1 / the longest latency) and
/// smoothness (1 / the longest gap of any flow). A flow that stalls or is killed counts as zero.
/// Without HOST it measures the loopback with a built-in service.
#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(
    after_help = "Example:\n  \
        there:  knee serve latency --listen 192.0.2.7:7008 --token 'a secret'\n  \
        here:   knee latency 192.0.2.7 --token 'a secret' --quick --cc cubic,bbr",
    after_long_help = with_exits(LONG_HELP),
    mut_arg("fail_if", |a| a.help(FAIL_IF_HELP).long_help(fail_if_long_help())),
)]
pub struct RawLatency {
    /// Host of a 'knee serve latency' [default port: 7008; default: built-in]
    #[arg(value_name = "HOST[:PORT]", value_parser = options::parse_service)]
    #[serde(rename = "target")]
    service_address: Option<String>,

    #[command(flatten)]
    #[serde(skip)]
    token: TokenArgs,

    /// Scenarios as uploads/downloads, such as 1/1,4/4 [default: 19, from 0/1 to 32/0]
    #[arg(long, value_name = "U/D,U/D...", value_parser = options::parse_list)]
    #[arg(help_heading = "Scenarios")]
    #[serde(serialize_with = "typed")]
    scenarios: Option<options::Scenarios>,

    /// Run five scenarios only
    #[arg(long, conflicts_with = "scenarios", help_heading = "Scenarios")]
    quick: bool,

    /// Time per scenario [default: until it has settled]
    #[arg(short, long, value_name = "T", value_parser = parse_positive)]
    #[arg(help_heading = "Scenarios", conflicts_with_all = ["scenario_limit", "settle"])]
    #[serde(serialize_with = "typed")]
    duration: Option<Nanos>,

    /// Time limit for a scenario that does not settle [default: 10m]
    #[arg(long, value_name = "T", value_parser = parse_positive, help_heading = "Scenarios")]
    #[serde(serialize_with = "typed")]
    scenario_limit: Option<Nanos>,

    /// Tolerance for settling: no flow's mean goodput changes by more [default: 5%]
    ///
    /// Besides, no ping takes longer than all before, and the mean ping is level. Level means that
    /// over the second half of the scenario its trend, with a confidence of 95 %, is within 20 % or
    /// 5 ms.
    #[arg(long, value_name = "PERCENT", value_parser = options::parse_tolerance)]
    #[arg(help_heading = "Scenarios", hide_short_help = true)]
    #[serde(serialize_with = "options::percent")]
    settle: Option<f64>,

    /// Time to measure the idle path first; 0 disables it [default: 2s]
    #[arg(long, value_name = "T", value_parser = parse_duration)]
    #[arg(help_heading = "Scenarios", hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    idle: Option<Nanos>,

    /// Bytes after which a scenario ends: 500M, 10GB, 4GiB
    #[arg(long, value_name = "BYTES", value_parser = parse_amount)]
    #[arg(help_heading = "Scenarios", hide_short_help = true)]
    bytes_max: Option<u64>,

    /// Congestion control of both ends; with several, all scenarios run with each in turn
    #[arg(long, value_name = "NAME,NAME...", value_delimiter = ',')]
    #[arg(value_parser = options::parse_control, help_heading = "Flows")]
    #[serde(serialize_with = "joined")]
    cc: Vec<String>,

    /// Differentiated services code point of flows and probes: 0 to 63, or EF, CS1, AF41, …
    #[arg(long, value_name = "CODE", value_parser = options::parse_dscp, help_heading = "Flows")]
    #[arg(hide_short_help = true)]
    dscp: Option<u8>,

    /// Explicit congestion notification: on, off [default: each host's setting]
    #[arg(long, value_name = "SWITCH", value_parser = options::parse_switch)]
    #[arg(help_heading = "Flows", hide_short_help = true)]
    #[serde(serialize_with = "options::switch")]
    ecn: Option<bool>,

    /// Time between two pings over TCP, and between two probes over UDP
    #[arg(long, value_name = "T", value_parser = parse_positive, default_value = "10ms")]
    #[arg(help_heading = "Probes", hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    probe_every: Nanos,

    /// Disable probes over UDP
    #[arg(long, help_heading = "Probes", hide_short_help = true)]
    no_udp: bool,

    /// Interval length of the time series, at least 10ms [default: 500ms; with -d a tenth of it,
    /// from 100ms to 1s]
    #[arg(long, value_name = "T", value_parser = parse_positive)]
    #[arg(help_heading = "Generator", hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    interval: Option<Nanos>,

    /// Threads that carry the flows [default: 1]
    #[arg(short, long, value_name = "N", value_parser = parse_count)]
    #[arg(help_heading = "Generator", hide_short_help = true)]
    threads: Option<u32>,

    #[command(flatten, next_help_heading = "Generator")]
    #[serde(flatten)]
    seed: SeedArgs,

    #[command(flatten)]
    #[serde(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    #[serde(skip)]
    output: MeasuredOutputArgs,
}

const FAIL_IF_HELP: &str =
    "Threshold that fails the run (exit code 1), repeatable: 'p99>200ms', 'max>500ms', 'invalid'";

fn fail_if_long_help() -> String {
    format!(
        "{FAIL_IF_HELP}\n\nOf the pings beside the flows, in any scenario: {} against a time. \
         errors are pings that did not come back, against a share (0.1%) or a number.",
        threshold_names(StatisticUnit::Nanoseconds).join(", ")
    )
}

const LONG_HELP: &str = "\
What is reported:
  capacity        of n flows: n times the harmonic mean of their goodputs, so unfairness lowers it;
                  overall the harmonic mean over the scenarios, in KiB/s
  responsiveness  1 / the longest latency of a ping beside the flows, in Hz
  smoothness      1 / the longest gap between two receives of any flow, in Hz
  All are bigger-is-better and rounded down; a flow that is killed, or never moves, makes zeros.
  'knee analyze latency FILE.txt' reads the text again, and that of the test of 2011.

Examples:
  knee latency
  knee latency 192.0.2.7 --token 'a secret' --quick
  knee latency 192.0.2.7:7008 --token 'a secret' --scenarios 1/0,0/1,4/4 -d 10s
  knee latency 192.0.2.7 --token 'a secret' --cc cubic,bbr --scenarios 1/1
  knee latency 192.0.2.7 --token 'a secret' --dscp EF --ecn on --fail-if 'p99>100ms'";

/// Scenarios that cannot be wrong.
#[derive(Debug)]
pub struct LatencySpec {
    plan: LatencyPlan,
    /// The service that was named; `None`: the built-in one.
    service: Option<String>,
    setup: ReportSetup,
}

/// Runs the scenarios, and reports capacity, responsiveness and smoothness.
pub fn execute(mut spec: LatencySpec) -> Result<Exit, Failure> {
    let notes = spec.setup.output.notes();
    let margins = margins::of_this_machine(notes);
    let service = service::flows(spec.service.take())?;
    if let Some(line) = &service.announcement {
        notes.say(line);
    }
    let plan = &mut spec.plan;
    plan.base.service.clone_from(&service.address);
    plan.base.engine.margins = margins;
    notes.say(&options::announcement(plan));
    let mut runner = LatencyRunner::new(plan);
    laboratory::conduct(spec.setup, &mut Latency::new(spec.plan), &mut runner)
}

/// A latency service.
#[derive(Debug)]
pub struct LatencyRunner {
    service: String,
    token: String,
    /// How many trials there will be.
    trials: usize,
    /// How wide their names are.
    label_columns: usize,
    begun: usize,
    last: String,
}

impl LatencyRunner {
    /// A runner for this plan.
    pub fn new(plan: &LatencyPlan) -> LatencyRunner {
        let several = plan.congestion.len() > 1;
        let controls = plan.congestion.iter().flatten().map(|name| name.len() + 2);
        let control_columns = controls.max().filter(|_| several).unwrap_or(0);
        LatencyRunner {
            label_columns: "16 up, 16 down".len() + control_columns,
            service: plan.base.service.clone(),
            token: plan.base.token.clone(),
            trials: Latency::new(plan.clone()).steps(),
            begun: 0,
            last: String::new(),
        }
    }
}

impl TrialRunner for LatencyRunner {
    type Spec = LatencyTrialSpec;
    type Trial = TrialReport;

    fn find(&mut self) -> Result<(), RunError> {
        flows::preflight(&self.service, &self.token).map(drop)
    }

    fn upcoming(&mut self, spec: &LatencyTrialSpec) -> UpcomingTrial {
        // One that is run again has the label of the one before.
        let is_again = self.begun > 0 && self.last == spec.label;
        self.begun += usize::from(!is_again);
        self.last.clone_from(&spec.label);
        let again = if is_again { ", again" } else { "" };
        let live = LiveTrial {
            label: format!("{} of {}  {}{again}", self.begun, self.trials, spec.label),
            kind: LiveKind::Flows,
            warmup: Nanos::ZERO,
            total: match spec.end {
                ScenarioEnd::After(length) => Some(length),
                ScenarioEnd::Settled { .. } => None,
            },
            interval: spec.interval,
            asked_per_s: None,
            names: Default::default(),
        };
        UpcomingTrial { live, level: Some(spec.level), http: None }
    }

    fn run(
        &mut self,
        spec: &LatencyTrialSpec,
        watch: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<TrialOutput<TrialReport>, RunError> {
        let trial = flows::run(spec, watch, stop)?;
        Ok(TrialOutput {
            interrupted: trial.interrupted,
            trial: assess(&trial),
            backend: trial.generator.backend,
        })
    }

    fn line(&self, _: usize, trial: &TrialReport) -> Option<String> {
        let which = format!("{:>2} of {}", self.begun, self.trials);
        let flows = trial.flows()?;
        let label = format!("{:<1$}", trial.label, self.label_columns);
        Some(scenario_line(&which, &label, flows))
    }

    fn gone(trial: &TrialReport) -> Option<String> {
        gone(trial)
    }

    fn report(trial: &TrialReport) -> Option<&TrialReport> {
        Some(trial)
    }
}

#[cfg(test)]
mod tests;
