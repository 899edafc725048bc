//! Where waits and rates are measured: this machine. Operations send to a named service, or to a
//! built-in one in this process.

use crate::args::Choices;
use crate::command::laboratory::{TrialOutput, TrialRunner};
use crate::failure::Failure;
use crate::watch::{LiveKind, LiveTrial, UpcomingTrial};
use knee_core::trial::report::TrialReport;
use knee_engine::error::RunError;
use knee_engine::experiment::throttle::service::{QotdServer, QotdSpec, UdpSink, of_the_day};
use knee_load::experiment::throttle::Chore;
use knee_load::measure::IntervalWatcher;
use knee_load::spec::ParseError;
use knee_load::time::Nanos;
use serde::Serialize;
use std::any::Any;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;

/// Measures a row of a table. Returns what was measured, and whether the user ended it early.
type MeasureRow<S, T> = fn(&S, &AtomicBool) -> Result<(T, bool), RunError>;

/// Measures the rows of a table, one after another. Nothing is shown during a row, as that would
/// disturb it.
pub(super) struct RowRunner<S, T> {
    /// How long each row takes, its operations apart, and its name.
    pub rows: Vec<(Nanos, String)>,
    pub measure: MeasureRow<S, T>,
    /// A short row that shows whether the service of the operations is there.
    pub probe: Option<S>,
    /// What was measured.
    pub trials: Vec<T>,
    pub begun: usize,
}

/// How long rows take together.
pub(super) fn total(rows: &[(Nanos, String)]) -> Nanos {
    rows.iter().fold(Nanos::ZERO, |sum, (time, _)| sum + *time)
}

impl<S, T: Clone> TrialRunner for RowRunner<S, T> {
    type Spec = S;
    type Trial = T;

    fn find(&mut self) -> Result<(), RunError> {
        let measured = self.probe.take().map(|row| (self.measure)(&row, &AtomicBool::new(false)));
        measured.transpose().map(drop)
    }

    fn upcoming(&mut self, _: &S) -> UpcomingTrial {
        let (time, label) = self.rows[self.begun].clone();
        let before = total(&self.rows[..self.begun]);
        self.begun += 1;
        let live = LiveTrial {
            label,
            kind: LiveKind::Row {
                number: self.begun,
                of: self.rows.len(),
                before,
                all: total(&self.rows),
            },
            warmup: Nanos::ZERO,
            total: Some(time),
            interval: Nanos::ZERO,
            asked_per_s: None,
            names: Default::default(),
        };
        UpcomingTrial { live, level: None, http: None }
    }

    fn run(
        &mut self,
        spec: &S,
        _: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<TrialOutput<T>, RunError> {
        let (trial, interrupted) = (self.measure)(spec, stop)?;
        self.trials.push(trial.clone());
        Ok(TrialOutput { trial, interrupted, backend: String::new() })
    }

    fn report(_: &T) -> Option<&TrialReport> {
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
pub struct OperationService {
    pub address: SocketAddr,
    /// What a newcomer should know about it.
    pub announcement: String,
    _service: Box<dyn Any>,
}

impl OperationService {
    /// Starts one on a free port.
    pub fn start(kind: OperationKind) -> Result<OperationService, Failure> {
        let failed = |e| {
            let line = format!("the service for --op cannot start: {e}; name one with --to");
            Failure::nothing_measured(line)
        };
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (address, what, service): (_, _, Box<dyn Any>) = match kind {
            OperationKind::Udp => {
                let sink = UdpSink::bind(listen).map_err(failed)?;
                (sink.address(), "UDP socket that discards datagrams", Box::new(sink))
            }
            OperationKind::Qotd => {
                let spec = QotdSpec { listen, quote: of_the_day(), allow: Vec::new() };
                let server = QotdServer::start(spec).map_err(failed)?;
                (server.address(), "quote-of-the-day service", Box::new(server))
            }
        };
        let announcement = format!("no --to given: sending to a built-in {what} on {address}");
        Ok(OperationService { address, announcement, _service: service })
    }
}

/// An address to send to.
pub fn parse_address(text: &str) -> Result<SocketAddr, ParseError> {
    let error = |what: &str| {
        ParseError(format!("'{text}' {what}: give ADDR:PORT, such as 127.0.0.1:1717 or [::1]:17"))
    };
    match text.trim().parse::<SocketAddr>() {
        Ok(address) if address.port() == 0 => Err(error("has the port 0")),
        Ok(address) => Ok(address),
        Err(_) => Err(error("is no address to send to")),
    }
}
