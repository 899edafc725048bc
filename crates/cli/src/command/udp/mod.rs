//! `knee udp`: datagrams by a schedule or by waits of their clients, each accounted for.

mod options;
mod resolve;

use super::laboratory::{self, ReportSetup};
use super::service;
use crate::args::{
    SETTLED_WAITS, SeedArgs, ThresholdArgs, TokenArgs, one_of, parse_count, parse_number,
    parse_positive, with_exits,
};
use crate::command::laboratory::{TrialOutput, TrialRunner};
use crate::failure::{Exit, Failure};
use crate::margins;
use crate::output::MeasuredOutputArgs;
use crate::resolved_options::typed;
use crate::stdio::about;
use crate::watch::{LiveKind, LiveTrial, UpcomingTrial};
use clap::Args;
use knee_core::experiment::udp::{AssessedUdpTrial, ExplainSpec, UdpExplain, UdpLaws};
use knee_core::trial::report::TrialReport;
use knee_core::trial::statistics::{StatisticUnit, threshold_names};
use knee_engine::error::RunError;
use knee_engine::experiment::udp;
use knee_engine::experiment::udp::send::client_process;
use knee_load::arrival::{either, shapes};
use knee_load::experiment::udp::{ClientWait, ClientsAs, ServiceMode, UdpTrialSpec};
use knee_load::law::Law;
use knee_load::measure::IntervalWatcher;
use knee_load::spec::{AskedArrival, Rate, WaitPolicy, parse_law, parse_rate};
use knee_load::time::Nanos;
#[cfg(feature = "fleet")]
pub use options::{Cpus, parse_cpus};
pub use options::{MODES, parse_buffer, parse_cpu};
use serde::Serialize;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Send datagrams and account for every one of them
///
/// Accounts for every datagram: received, refused by the kernel, lost at a place named by a
/// counter, or unexplained. Without HOST the service is built-in; another host must run 'knee serve
/// udp'. --compare runs several kinds of clients in turn; --explain finds by experiment why two of
/// them differ.
#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(
    after_help = "Examples:\n  \
        knee udp --wait poisson --rate 6000 --service 'fixed(100us)' --rcvbuf 4096\n  \
        knee udp --compare 'yield*64' 'exp(200us)*128' -d 2s\n  \
        knee udp --explain",
    after_long_help = with_exits(LONG_HELP),
    mut_arg("token", |a| a.hide_short_help(true)),
    mut_arg("fail_if", |a| a.help(FAIL_IF_HELP).long_help(fail_if_long_help())),
)]
pub struct RawUdp {
    /// A 'knee serve udp' [default port: 7007; default: built-in]
    #[arg(value_name = "HOST[:PORT]", value_parser = options::parse_service)]
    #[serde(rename = "target")]
    service_address: Option<String>,

    /// Wait of each client between two datagrams: none, yield, sleep(T), exp(T), uniform(FROM,TO),
    /// tick(T), or a schedule: constant, poisson, … [default: constant]
    ///
    /// none: nothing. yield: gives the processor up, sched_yield(2). sleep(0): a sleep of zero,
    /// which costs the timer slack. sleep(T), exp(T), uniform(FROM,TO), lognormal(MEDIAN,SIGMA): a
    /// sleep after each datagram, so that the time for sending and waking adds to it. tick(T): a
    /// short sleep on an old kernel, which ends with the second tick of a clock that all clients
    /// share. An arrival process of --arrival: the times of a schedule.
    #[arg(long, value_name = "WAIT", help_heading = "Load", conflicts_with = "arrival")]
    wait: Option<String>,

    /// Datagrams offered per second by all clients together: 1000, 2.5k, 90/m
    /// [default: 10,000, where neither --wait nor --arrival is given]
    #[arg(short = 'R', long, value_name = "N", value_parser = parse_rate, help_heading = "Load")]
    #[serde(serialize_with = "typed")]
    rate: Option<Rate>,

    #[arg(
        long,
        value_name = "A",
        value_parser = AskedArrival::parse,
        help_heading = "Load",
        hide_short_help = true,
        help = format!("Of a schedule: {}", either(&shapes(None)))
    )]
    #[serde(skip)]
    arrival: Option<AskedArrival>,

    /// Number of clients; each has its own sequence numbers [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = "Load")]
    clients: Option<u32>,

    /// How clients run: multiplexed (few threads send for all), threads, processes [default:
    /// multiplexed; with --explain processes]
    #[arg(long, value_name = "AS", value_parser = one_of(options::CARRIERS), help_heading = "Load")]
    #[arg(hide_possible_values = true)]
    clients_as: Option<ClientsAs>,

    /// Datagram size in bytes, at least 40
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = options::parse_size)]
    #[arg(help_heading = "Load")]
    size: u32,

    /// Least processor time that a client uses for each datagram, as on a slower machine: 20us
    #[arg(long, value_name = "T", value_parser = parse_positive, help_heading = "Load")]
    #[arg(hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    send_cost: Option<Nanos>,

    /// Use UDP_SEGMENT: the kernel cuts one buffer into many datagrams; faster, in bursts
    #[arg(long, help_heading = "Load", hide_short_help = true)]
    gso: bool,

    /// Kinds of clients to run in turn, two or more: WAIT*N, a schedule as ARRIVAL@RATE*N
    #[arg(long, value_names = ["WAIT*N", "WAIT*N"], num_args = 1.., help_heading = "Experiment")]
    compare: Vec<String>,

    /// Kinds of clients whose difference to explain, within 60s [default: 'yield*64'
    /// 'exp(200us)*128']
    ///
    /// Varies one thing at a time, in random order, with repeats. Takes at most 60s: where more is
    /// asked for, the report says what was cut.
    #[arg(long, value_names = ["WAIT*N", "WAIT*N"], num_args = 0..=2, conflicts_with = "compare")]
    #[arg(help_heading = "Experiment")]
    #[serde(serialize_with = "options::explained")]
    explain: Option<Vec<String>>,

    /// Two kinds of clients by name: published (a published puzzle, on a machine as slow as then)
    ///
    /// published: 'yield*64' and 'tick(10ms)*128', as processes that share one processor with the
    /// service. Each datagram takes its client 75 µs of it (--send-cost 75us). The receive buffer
    /// holds 42 datagrams (--rcvbuf 16384). On a kernel of then, whose clock ticked every 10 ms, a
    /// sleep of exp(200us) ended with the second tick. So the second kind sends 6,400/s at most,
    /// about half as much as the first. It loses datagrams, as all its clients wake together. Where
    /// other programs use that processor, the result is INVALID. Compared, or with --explain
    /// explained.
    #[arg(long, value_name = "NAME", value_parser = one_of(options::PRESETS))]
    #[arg(help_heading = "Experiment", conflicts_with = "compare")]
    #[arg(hide_possible_values = true, hide_short_help = true)]
    #[serde(skip)]
    preset: Option<options::Preset>,

    /// Trials per kind of clients [default: 3; with --explain as many as fit, up to 6]
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = "Experiment")]
    #[arg(hide_short_help = true)]
    repeats: Option<u32>,

    /// Sending time per trial [default: 10s; with --explain up to 500ms]
    #[arg(short, long, value_name = "T", value_parser = parse_positive, help_heading = "Time")]
    #[serde(serialize_with = "typed")]
    duration: Option<Nanos>,

    /// Number of datagrams; sending stops after exactly this many
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_number)]
    #[arg(alias = "requests", help_heading = "Time")]
    datagrams: Option<u64>,

    /// Interval length of the time series, at least 10ms [default: a tenth of the duration, from
    /// 100ms to 1s]
    #[arg(long, value_name = "T", value_parser = parse_positive, help_heading = "Time")]
    #[arg(hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    interval: Option<Nanos>,

    /// Service mode: sink (count datagrams), echo (also send them back)
    #[arg(long, value_name = "MODE", value_parser = one_of(MODES), help_heading = "Service")]
    #[arg(hide_possible_values = true, hide_short_help = true)]
    mode: Option<ServiceMode>,

    /// Service work per datagram: 200us, exp(100us), uniform(1ms,2ms), lognormal(1ms,0.5)
    #[arg(long, value_name = "LAW", value_parser = parse_law, help_heading = "Service")]
    #[serde(serialize_with = "typed")]
    service: Option<Law>,

    /// Service receive buffer as given to setsockopt(2), which the kernel doubles
    #[arg(long, value_name = "BYTES", value_parser = parse_buffer, help_heading = "Service")]
    rcvbuf: Option<u32>,

    /// Processor to which the service is bound, from 0 [default: any]
    #[arg(long, value_name = "N", value_parser = parse_cpu, help_heading = "Service")]
    #[arg(hide_short_help = true)]
    service_cpu: Option<u32>,

    #[command(flatten, next_help_heading = "Service")]
    #[serde(skip)]
    token: TokenArgs,

    /// Processors that clients may use, such as 1 or 0,2-3 [default: any]
    #[arg(long, value_name = "LIST", value_parser = options::parse_cpus)]
    #[arg(help_heading = "Generator", hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    client_cpus: Option<options::Cpus>,

    /// Timer slack of sleeping clients: how much later the kernel may wake them
    #[arg(long, value_name = "T", value_parser = parse_positive, help_heading = "Generator")]
    #[arg(hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    timer_slack: Option<Nanos>,

    /// Threads that send for multiplexed clients
    /// [default: 1, and one more for each 100,000 datagrams per second]
    #[arg(short, long, value_name = "N", value_parser = parse_count, help_heading = "Generator")]
    #[arg(hide_short_help = true)]
    threads: Option<u32>,

    /// How these threads wait for the intended time: hybrid (sleep, then poll), sleep, spin
    /// [default: hybrid]
    #[arg(long, value_name = "W", value_parser = one_of(SETTLED_WAITS), help_heading = "Generator")]
    #[arg(hide_short_help = true, hide_possible_values = true)]
    wait_policy: Option<WaitPolicy>,

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

const FAIL_IF_HELP: &str = "Threshold that fails the run (exit code 1), repeatable: 'errors>0.1%', \
                            'throughput<5000', 'invalid'";

fn fail_if_long_help() -> String {
    format!(
        "{FAIL_IF_HELP}\n\nerrors are all datagrams intended that were not received, throughput \
         those received per second. Of several trials any may cross it. With --mode echo also \
         round trips: {} against a time.",
        threshold_names(StatisticUnit::Nanoseconds).join(", ")
    )
}

const LONG_HELP: &str = "\
The ledger:
  intended = not attempted + send errors + lost on the way, by place + received + discarded by the
  service + unexplained. It is exact, and 'unexplained' is shown even at 0.

Examples:
  knee udp
  knee udp --wait poisson -R 6000 --service 200us --rcvbuf 4096
  knee udp 127.0.0.1:7007 --clients 64 --wait yield --clients-as processes --interval 10s -d 1m
  knee udp --wait none --gso --size 1200 -d 3s
  knee udp --compare 'yield*64' 'exp(200us)*128' --clients-as processes
  knee udp --compare constant@6000 poisson@6000 'tick(10ms)*60' --service 100us
  knee udp --explain -d 1s --json why.json
  knee udp --preset published -d 2s
  knee udp --explain 'sleep(1ms)*50' 'exp(1ms)*50' --rcvbuf 8192 --service 10us";

/// Datagrams that cannot be wrong.
#[derive(Debug)]
pub struct UdpSpec {
    plan: Plan,
    /// The service that was named; `None`: the built-in one.
    service: Option<String>,
    token: String,
    setup: ReportSetup,
}

/// What is to be found out.
#[derive(Clone, Debug, PartialEq)]
enum Plan {
    Run(Box<UdpTrialSpec>),
    Compare(Vec<UdpTrialSpec>, u32),
    Explain(Box<ExplainSpec>),
}

impl Plan {
    /// The trials that all others are made of.
    fn trials_mut(&mut self) -> Vec<&mut UdpTrialSpec> {
        match self {
            Plan::Run(spec) => vec![spec],
            Plan::Compare(laws, _) => laws.iter_mut().collect(),
            Plan::Explain(spec) => vec![&mut spec.first, &mut spec.second],
        }
    }
}

/// Sends, and reports where each datagram went.
pub fn execute(mut spec: UdpSpec) -> Result<Exit, Failure> {
    let notes = spec.setup.output.notes();
    let program = std::env::current_exe();
    let program = program.map_err(|e| Failure::input(format!("where this program is: {e}")))?;
    let mut plan = spec.plan;
    let is_scheduled =
        |trial: &&mut UdpTrialSpec| matches!(trial.wait, ClientWait::Schedule { .. });
    let explains = matches!(plan, Plan::Explain(_));
    let needs_margins = explains || plan.trials_mut().iter().any(is_scheduled);
    let margins = needs_margins.then(|| margins::of_this_machine(notes));
    let service = service::datagrams(spec.service.take(), spec.setup.seed)?;
    if let Some(line) = &service.announcement {
        notes.say(line);
    }
    for trial in plan.trials_mut() {
        trial.service.clone_from(&service.address);
        if let Some(margins) = margins {
            trial.engine.margins = margins;
        }
    }
    let mut runner = UdpRunner {
        service: service.address.clone(),
        token: spec.token,
        program,
        trials: None,
        begun: 0,
    };
    let setup = spec.setup;
    match plan {
        Plan::Run(spec) => {
            laboratory::conduct(setup, &mut UdpLaws::new(vec![*spec], 1), &mut runner)
        }
        Plan::Compare(laws, repeats) => {
            let trials = laws.len() * repeats as usize;
            let each = laws.iter().map(|law| (law.duration + law.around()).0).max();
            let total = Nanos(each.unwrap_or(0).saturating_mul(trials as u64));
            notes.say(&announcement(&laws, trials, total));
            runner.trials = Some(trials);
            laboratory::conduct(setup, &mut UdpLaws::new(laws, repeats), &mut runner)
        }
        Plan::Explain(mut spec) => {
            spec.realtime = runner.may_be_realtime();
            let (both, length) = ([spec.first.clone(), spec.second.clone()], spec.length());
            spec.cut.iter().for_each(|cut| notes.say(cut));
            let mut experiment = UdpExplain::new(*spec);
            let trials = experiment.trials();
            notes.say(&announcement(&both, trials, length));
            runner.trials = Some(trials);
            laboratory::conduct(setup, &mut experiment, &mut runner)
        }
    }
}

/// How long it will take, roughly.
fn announcement(laws: &[UdpTrialSpec], trials: usize, total: Nanos) -> String {
    let duration = laws.first().map_or(Nanos::ZERO, |law| law.duration);
    let labels: Vec<&str> = laws.iter().map(|law| law.label.as_str()).collect();
    format!(
        "{}: {trials} trials of {}, about {}",
        labels.join(" and "),
        duration.exactly(),
        about(total)
    )
}

/// One client in a process of its own.
pub fn client() -> Result<Exit, Failure> {
    client_process(io::stdin(), io::stdout().lock())
        .map(|()| Exit::Fine)
        .map_err(|e| Failure::input(format!("udp-client: started by 'knee udp' alone: {e}")))
}

/// A service, and what runs clients that are processes.
#[derive(Debug)]
struct UdpRunner {
    service: String,
    token: String,
    program: PathBuf,
    /// Number of trials, where a line follows each.
    trials: Option<usize>,
    begun: usize,
}

impl UdpRunner {
    /// Whether the service may have real-time priority; a service that cannot be asked says why
    /// when it is to be used.
    fn may_be_realtime(&self) -> bool {
        udp::preflight(&self.service, &self.token).is_ok_and(|facts| facts.may_be_realtime)
    }
}

impl TrialRunner for UdpRunner {
    type Spec = UdpTrialSpec;
    type Trial = AssessedUdpTrial;

    fn find(&mut self) -> Result<(), RunError> {
        udp::preflight(&self.service, &self.token).map(drop)
    }

    fn upcoming(&mut self, spec: &UdpTrialSpec) -> UpcomingTrial {
        self.begun += 1;
        let label = match self.trials {
            Some(trials) => format!("{} of {trials}  {}", self.begun, spec.label),
            None => spec.label.clone(),
        };
        let is_timed = spec.datagrams_max.is_none();
        let live = LiveTrial {
            label,
            kind: LiveKind::Datagrams,
            warmup: Nanos::ZERO,
            total: is_timed.then_some(spec.duration),
            interval: spec.interval,
            asked_per_s: match spec.wait {
                ClientWait::Schedule { rate, .. } => Some(rate.per_s()),
                _ => None,
            },
            names: Default::default(),
        };
        UpcomingTrial { live, level: Some(spec.level), http: None }
    }

    fn run(
        &mut self,
        spec: &UdpTrialSpec,
        watch: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<TrialOutput<AssessedUdpTrial>, RunError> {
        let trial = udp::run(spec, &self.program, watch, stop)?;
        Ok(TrialOutput {
            interrupted: trial.interrupted,
            trial: AssessedUdpTrial::of(&trial),
            backend: trial.generator.backend,
        })
    }

    fn line(&self, number: usize, tried: &AssessedUdpTrial) -> Option<String> {
        let trials = self.trials?;
        let datagrams = tried.report.datagrams().cloned().unwrap_or_default();
        Some(knee_render::sent_line(
            &format!("{:>3} of {trials}", number + 1),
            &tried.report.label,
            &datagrams,
        ))
    }

    fn report(tried: &AssessedUdpTrial) -> Option<&TrialReport> {
        Some(&tried.report)
    }
}

#[cfg(test)]
mod tests;
