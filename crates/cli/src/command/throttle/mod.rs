//! `knee throttle`: how well this machine waits, and what holds a rate in spite of it.

mod runner;
mod tables;

#[cfg(test)]
mod tests;

use super::laboratory::ReportSetup;
use crate::args::{SeedArgs, ThresholdArgs, one_of, parse_positive, refuse_first, with_exits};
use crate::failure::{Exit, Failure};
use crate::output::MeasuredOutputArgs;
use crate::resolved_options::{ResolvedOptions, displayed, typed};
use clap::Args;
use knee_core::report::Kind;
use knee_load::arrival::shapes;
use knee_load::spec::{AskedArrival, Rate, parse_duration, parse_rate};
use knee_load::throttle::CatchUp;
use knee_load::time::Nanos;
use runner::{OperationKind, OperationService};
use serde::Serialize;
use std::net::SocketAddr;
use tables::Table;

/// Measure how this machine waits, or hold a rate of operations
///
/// Without --rate: measures for each way of waiting and each delay how late it ends and what it
/// costs. The margin that makes hybrid waits exact is kept and used by all other commands. With
/// --rate: holds that rate with each method, from the naive loop "operate, sleep" to the throttle,
/// and reports how exactly.
#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(
    after_help = "Examples:\n  \
        knee throttle --delays 1ms,10ms\n  \
        knee throttle --rate 1000 --op-time 0.9ms",
    after_long_help = with_exits(LONG_HELP),
    mut_arg("fail_if", |a| a.help(FAIL_IF_HELP).long_help(FAIL_IF_HELP)),
)]
pub struct RawThrottle {
    /// Rate to hold, in operations per second: 1000, 2.5k, 0.5, 90/m, 12/h
    #[arg(short = 'R', long, value_name = "N", value_parser = parse_rate)]
    #[serde(serialize_with = "typed")]
    rate: Option<Rate>,

    /// Methods: sleep,hybrid; with --rate naive-sleep,throttle [default: all]
    #[arg(long, value_name = "M,M...")]
    methods: Option<String>,

    /// Delays to wait for: 50us,1ms [default: 13 from 50us to 50ms]
    #[arg(long, value_name = "T,T...")]
    delays: Option<String>,

    /// Time per row of the table [default: 500ms; with --rate 2s]
    #[arg(short, long, value_name = "T", value_parser = parse_positive)]
    #[serde(serialize_with = "typed")]
    duration: Option<Nanos>,

    /// Operation: udp (send a datagram) or qotd (request a quote of the day and wait for it)
    ///
    /// Without --rate each method and delay has a row without it and a row with it.
    #[arg(long, value_name = "OP", value_parser = one_of(runner::KINDS))]
    #[arg(hide_possible_values = true, help_heading = "Operation")]
    op: Option<OperationKind>,

    /// Target of --op [default: a built-in service]
    #[arg(long, value_name = "ADDR:PORT", value_parser = runner::parse_address)]
    #[arg(help_heading = "Operation")]
    to: Option<SocketAddr>,

    /// With --rate: processor time of the operation
    #[arg(long, value_name = "T", value_parser = parse_duration, conflicts_with = "op")]
    #[arg(help_heading = "Operation")]
    #[serde(serialize_with = "typed")]
    op_time: Option<Nanos>,

    /// With --rate: policy for operations that are late after a stall: burst, burst(N), spread,
    /// spread(X), skip, delay [default: burst]
    ///
    /// burst: all are made at once; burst(N): the newest N, the rest is counted as skipped.
    /// spread(X): all are made, at no more than X times the rate (2 unless given). skip: those that
    /// were missed are counted, not made. delay: the schedule moves back, which is counted.
    #[arg(long, value_name = "POLICY", value_parser = CatchUp::parse, help_heading = "Schedule")]
    #[serde(serialize_with = "displayed")]
    policy: Option<CatchUp>,

    /// With --rate: minimum wait; operations are grouped instead of waiting less [default: 0]
    #[arg(long, value_name = "T", value_parser = parse_duration, help_heading = "Schedule")]
    #[serde(serialize_with = "typed")]
    min_wait: Option<Nanos>,

    #[arg(
        long,
        value_name = "A",
        value_parser = AskedArrival::parse,
        help_heading = "Schedule",
        help = format!(
            "With --rate: arrival process: {} [default: constant]",
            shapes(Some(false)).join(", ")
        )
    )]
    #[serde(skip)]
    arrival: Option<AskedArrival>,

    #[command(flatten, next_help_heading = "Schedule")]
    #[serde(flatten)]
    seed: SeedArgs,

    #[command(flatten)]
    #[serde(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    #[serde(skip)]
    output: MeasuredOutputArgs,
}

const FAIL_IF_HELP: &str = "Exit with 1 where this holds; here there is only 'invalid'";

const LONG_HELP: &str = "\
Ways to wait:
  sleep                     clock_nanosleep(2) for a length of time
  sleep-min-slack           the same with a timer slack of 1 ns instead of the default 50 us
  sleep-absolute            clock_nanosleep(2) until a time (TIMER_ABSTIME)
  sleep-absolute-min-slack  the same with a timer slack of 1 ns
  timerfd                   a read of a timer's descriptor, timerfd_create(2)
  epoll                     epoll_pwait2(2) with a timeout
  io_uring                  a timeout of io_uring(7)
  hybrid                    sleeps until a learnt margin before the deadline, then spins
  spin                      reads the clock until the deadline
  yield                     the same with sched_yield(2) in between

Ways to hold a rate (--rate):
  naive-sleep     operate, sleep 1/rate, again
  relative-sleep  operate, sleep what is left of 1/rate, again
  tick            wake up every 10 ms and make what is due
  token-bucket    take a token that is refilled at the rate; sleep where there is none
  interval-timer  operate at each expiry of a periodic timer
  spin            the throttle's schedule, waited for by reading the clock
  throttle        the throttle: an absolute schedule without drift, waited for as hybrid does

Examples:
  knee throttle
  knee throttle --methods sleep,hybrid --delays 1ms,10ms -d 2s
  knee throttle --op qotd --to 127.0.0.1:1717 --delays 1ms
  knee throttle --rate 1000 --op-time 0.9ms
  knee throttle --rate 10000 --methods throttle,spin -d 10s
  knee throttle --rate 2000 --op-time 100us --min-wait 10ms --methods throttle
  knee throttle --rate 1000 --arrival poisson --policy 'spread(1.5)'";

/// A table that cannot be wrong.
#[derive(Debug)]
pub struct ThrottleSpec {
    table: Table,
    setup: ReportSetup,
    /// The built-in service, where the operation needs one and none was named; it serves as
    /// long as this lives.
    service: Option<OperationService>,
}

/// Measures the table and reports it.
pub fn execute(spec: ThrottleSpec) -> Result<Exit, Failure> {
    if let Some(service) = &spec.service {
        spec.setup.output.note(&service.announcement);
    }
    match spec.table {
        Table::Waits { rows, is_picky } => tables::measure_waits(spec.setup, rows, is_picky),
        Table::Holds(rows) => tables::measure_holds(spec.setup, rows),
    }
}

impl RawThrottle {
    /// What is to be measured; the service is started if the operation needs one.
    pub fn resolve(self) -> Result<ThrottleSpec, Failure> {
        let is_free = self.rate.is_none();
        let needs_rate = "needs a rate to hold: give --rate, such as --rate 1000";
        refuse_first(&[
            (
                self.to.is_some() && self.op.is_none(),
                "--to",
                "needs an operation that is sent there: give --op udp or --op qotd",
            ),
            (
                !is_free && self.delays.is_some(),
                "--delays",
                "with --rate the rate is what is asked for: leave one out",
            ),
            (is_free && self.op_time.is_some(), "--op-time", needs_rate),
            (is_free && self.policy.is_some(), "--policy", needs_rate),
            (is_free && self.min_wait.is_some(), "--min-wait", needs_rate),
            (is_free && self.arrival.is_some(), "--arrival", needs_rate),
        ])?;
        self.thresholds.refuse_all_but_invalid()?;
        let service = match (self.op, self.to) {
            (Some(kind), None) => Some(OperationService::start(kind)?),
            _ => None,
        };
        // The port of a built-in service differs from run to run: it is no option of the report.
        let address = self.to.or(service.as_ref().map(|service| service.address));
        let chore = self.op.zip(address).map(|(kind, to)| kind.chore(to));
        let seed = self.seed.seed();
        let mut options = ResolvedOptions::of(&self);
        options.put("seed", seed);
        let table = match self.rate {
            None => self.waits(chore, &mut options)?,
            Some(rate) => self.holds(rate, seed, chore, &mut options)?,
        };
        let output = self.output.resolve()?;
        let setup = ReportSetup::new(Kind::Throttle, seed, options, self.thresholds, output);
        Ok(ThrottleSpec { table, setup, service })
    }
}
