//! Where waits and rates are measured: this machine. Operations send to a named service, or to a
//! built-in one in this process.

use crate::args::Choices;
use crate::command::laboratory::{TrialOutput, TrialRunner};
use crate::failure::Failure;
use crate::watch::{LiveKind, LiveTrial, UpcomingTrial};
use knee_core::trial::report::TrialReport;
use knee_engine::error::RunError;
use knee_engine::experiment::throttle;
use knee_engine::experiment::throttle::service::{QotdServer, QotdSpec, UdpSink, of_the_day};
use knee_load::experiment::throttle::{Chore, WaitMethod, WaitSpec, WaitTrial};
use knee_load::experiment::throttle::{HoldSpec, HoldTrial};
use knee_load::measure::IntervalWatcher;
use knee_load::spec::ParseError;
use knee_load::time::Nanos;
use serde::Serialize;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;

/// The rows of a table, one after another. Nothing is shown during a row, as that would disturb it.
#[derive(Debug)]
pub(super) struct Rows {
    /// How long each takes.
    times: Vec<Nanos>,
    begun: usize,
}

impl Rows {
    fn of(times: Vec<Nanos>) -> Rows {
        Rows { times, begun: 0 }
    }

    pub(super) fn total(&self) -> Nanos {
        sum(&self.times)
    }

    /// The next row, of this name.
    fn next(&mut self, label: String) -> UpcomingTrial {
        let before = self.begun.min(self.times.len());
        self.begun += 1;
        let live = LiveTrial {
            label,
            kind: LiveKind::Row {
                number: self.begun,
                of: self.times.len(),
                before: sum(&self.times[..before]),
                all: self.total(),
            },
            warmup: Nanos::ZERO,
            total: self.times.get(before).copied(),
            interval: Nanos::ZERO,
            asked_per_s: None,
            names: Default::default(),
        };
        UpcomingTrial { live, level: None, http: None }
    }
}

fn sum(times: &[Nanos]) -> Nanos {
    times.iter().fold(Nanos::ZERO, |sum, t| sum + *t)
}

/// Measures waits.
#[derive(Debug)]
pub struct WaitRunner {
    pub(super) rows: Rows,
    /// The fewest waits with the work that rows have, where they have any.
    probe: Option<WaitSpec>,
    trials: Vec<WaitTrial>,
}

impl WaitRunner {
    /// For these rows.
    pub fn new(rows: &[WaitSpec]) -> WaitRunner {
        let with_work = rows.iter().find(|row| row.chore != Chore::None);
        WaitRunner {
            rows: Rows::of(rows.iter().map(wait_time).collect()),
            probe: with_work.map(probe),
            trials: Vec::new(),
        }
    }

    /// What was measured; `None` where the user ended it early.
    pub fn trials(&self) -> Option<&[WaitTrial]> {
        let is_whole = !self.trials.iter().any(|t| t.waits.interrupted);
        is_whole.then_some(&self.trials)
    }
}

fn probe(row: &WaitSpec) -> WaitSpec {
    WaitSpec {
        method: WaitMethod::Spin,
        delay: Nanos::from_micros(1),
        duration: Nanos::ZERO,
        ..row.clone()
    }
}

/// How long a row takes, its operations apart.
fn wait_time(row: &WaitSpec) -> Nanos {
    let least = Nanos(row.delay.0.saturating_mul(WaitSpec::SAMPLES_MIN));
    row.duration.max(least)
}

fn wait_label(row: &WaitSpec) -> String {
    let waits = format!("{} {}", row.method.name(), row.delay);
    match &row.chore {
        Chore::None => waits,
        chore => format!("{waits} with {}", chore.name()),
    }
}

impl TrialRunner for WaitRunner {
    type Spec = WaitSpec;
    type Trial = WaitTrial;

    /// The first row has no work: that nobody is there to do it should not come out only after it.
    fn find(&mut self) -> Result<(), RunError> {
        match self.probe.take() {
            Some(probe) => throttle::wait(&probe, &AtomicBool::new(false)).map(drop),
            None => Ok(()),
        }
    }

    fn upcoming(&mut self, spec: &WaitSpec) -> UpcomingTrial {
        self.rows.next(wait_label(spec))
    }

    fn run(
        &mut self,
        spec: &WaitSpec,
        _: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<TrialOutput<WaitTrial>, RunError> {
        let waits = throttle::wait(spec, stop)?;
        let interrupted = waits.interrupted;
        let spec = spec.clone();
        let trial = WaitTrial { spec, waits };
        self.trials.push(trial.clone());
        Ok(TrialOutput { trial, interrupted, backend: String::new() })
    }

    fn report(_: &WaitTrial) -> Option<&TrialReport> {
        None
    }
}

/// Holds rates.
#[derive(Debug)]
pub struct HoldRunner {
    pub(super) rows: Rows,
}

impl HoldRunner {
    /// For these rows.
    pub fn new(rows: &[HoldSpec]) -> HoldRunner {
        HoldRunner { rows: Rows::of(rows.iter().map(|row| row.duration).collect()) }
    }
}

impl TrialRunner for HoldRunner {
    type Spec = HoldSpec;
    type Trial = HoldTrial;

    fn upcoming(&mut self, spec: &HoldSpec) -> UpcomingTrial {
        self.rows.next(spec.method.name().to_owned())
    }

    fn run(
        &mut self,
        spec: &HoldSpec,
        _: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<TrialOutput<HoldTrial>, RunError> {
        let holds = throttle::hold(spec, stop)?;
        let interrupted = holds.interrupted;
        let spec = spec.clone();
        let trial = HoldTrial { spec, holds };
        Ok(TrialOutput { trial, interrupted, backend: String::new() })
    }

    fn report(_: &HoldTrial) -> Option<&TrialReport> {
        None
    }
}

/// The kinds of `--op`.
pub const KINDS: Choices<OperationKind> =
    &[("udp", OperationKind::Udp), ("qotd", OperationKind::Qotd)];

/// An operation that sends something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// A datagram is sent.
    Udp,
    /// A quote of the day is asked for and awaited.
    Qotd,
}

impl OperationKind {
    /// The operation, sent there.
    pub fn chore(self, to: SocketAddr) -> Chore {
        match self {
            OperationKind::Udp => Chore::Udp(to.to_string()),
            OperationKind::Qotd => Chore::Qotd(to.to_string()),
        }
    }
}

/// A built-in service on the loopback; it ends when it is dropped.
#[derive(Debug)]
pub enum OperationService {
    /// Takes datagrams and does nothing with them.
    Sink(UdpSink),
    /// Answers with a quote.
    Qotd(QotdServer),
}

impl OperationService {
    /// Starts one on a free port.
    pub fn start(kind: OperationKind) -> Result<OperationService, Failure> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let started: io::Result<OperationService> = match kind {
            OperationKind::Udp => UdpSink::bind(address).map(OperationService::Sink),
            OperationKind::Qotd => {
                let spec = QotdSpec { listen: address, quote: of_the_day(), allow: Vec::new() };
                QotdServer::start(spec).map(OperationService::Qotd)
            }
        };
        started.map_err(|e| {
            let line = format!("the service for --op cannot start: {e}; name one with --to");
            Failure::nothing_measured(line)
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        match self {
            OperationService::Sink(sink) => sink.address(),
            OperationService::Qotd(server) => server.address(),
        }
    }

    /// What a newcomer should know about it.
    pub fn announcement(&self) -> String {
        let what = match self {
            OperationService::Sink(_) => "UDP socket that discards datagrams",
            OperationService::Qotd(_) => "quote-of-the-day service",
        };
        let address = self.address();
        format!("no --to given: sending to a built-in {what} on {address}")
    }
}

/// An address to send to.
pub fn parse_address(text: &str) -> Result<SocketAddr, ParseError> {
    let wrong = |what: &str| {
        ParseError(format!("'{text}' {what}: give ADDR:PORT, such as 127.0.0.1:1717 or [::1]:17"))
    };
    match text.trim().parse::<SocketAddr>() {
        Ok(address) if address.port() == 0 => Err(wrong("has the port 0")),
        Ok(address) => Ok(address),
        Err(_) => Err(wrong("is no address to send to")),
    }
}
