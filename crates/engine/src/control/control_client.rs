//! The client's end of a control connection.

use super::control_connection::{Lines, line};
use crate::error::{RunError, reason};
use crate::names::lookup_text;
use crate::sys::{clock, socket};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time limit of a connect.
const CONNECT: Duration = Duration::from_secs(5);

/// Longest silence of a service.
pub(crate) const SILENCE_NS: u64 = 10_000_000_000;

/// Interval at which a wait checks whether it is to stop.
const POLL: Duration = Duration::from_millis(20);

/// Why a service is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServiceLost {
    /// What happened, in words that follow the name of the service.
    Because(String),
    /// The user has interrupted the wait.
    Interrupted,
}

/// The clock of a service, relative to that of this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServiceClock {
    /// CLOCK_MONOTONIC of the service less that of this host, modulo 2^64.
    pub ahead_ns: u64,
    /// Largest error of `ahead_ns`, either way.
    pub uncertainty_ns: u64,
}

impl ServiceClock {
    /// Reads the clock several times by `read` and takes the reading with the shortest round trip.
    /// It is exact to half of that (Cristian, Probabilistic Clock Synchronization, 1989). Returns
    /// the round trip too, in nanoseconds.
    ///
    /// # Errors
    /// The first error of `read`.
    pub(crate) fn quickest<E>(
        readings: u32,
        mut read: impl FnMut() -> Result<u64, E>,
    ) -> Result<(ServiceClock, u64), E> {
        let (mut best, mut best_ns) = (ServiceClock::default(), u64::MAX);
        for _ in 0..readings {
            let asked_ns = clock::monotonic_ns();
            let at_ns = read()?;
            let round_ns = clock::monotonic_ns() - asked_ns;
            if round_ns < best_ns {
                best_ns = round_ns;
                best = ServiceClock {
                    ahead_ns: at_ns.wrapping_sub(asked_ns + round_ns / 2),
                    uncertainty_ns: round_ns / 2,
                };
            }
        }
        Ok((best, best_ns))
    }

    /// Uncertainty over a whole trial, in nanoseconds. It is that of this first reading, plus the
    /// difference of a second one at the end of the trial, as two clocks drift apart.
    pub(crate) fn uncertainty_until(self, second: Option<ServiceClock>) -> u64 {
        let drift_ns = second.map_or(0, |second| {
            let apart = second.ahead_ns.wrapping_sub(self.ahead_ns) as i64;
            apart.unsigned_abs().saturating_sub(second.uncertainty_ns)
        });
        self.uncertainty_ns.saturating_add(drift_ns)
    }
}

/// A control connection to a service.
#[derive(Debug)]
pub(crate) struct ControlClient {
    pub(crate) stream: TcpStream,
    pub(crate) lines: Lines,
    /// Address as the user wrote it.
    pub(crate) service: String,
    /// Address that answered.
    pub(crate) address: SocketAddr,
}

impl ControlClient {
    /// Connects, for lines of up to `line_max` bytes. `nobody`: advice where nothing answers.
    ///
    /// # Errors
    /// [`RunError::Unreachable`].
    pub(crate) fn connect(
        service: &str,
        line_max: usize,
        nobody: &str,
    ) -> Result<ControlClient, RunError> {
        let addresses = lookup_text(service).map_err(|unknown| {
            RunError::Unreachable(format!(
                "cannot resolve '{service}' ({}): give HOST:PORT such as 127.0.0.1:7007",
                unknown.reason()
            ))
        })?;
        let mut tried = Vec::new();
        for address in addresses {
            let stream = TcpStream::connect_timeout(&address, CONNECT).and_then(|stream| {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(POLL))?;
                stream.set_write_timeout(Some(CONNECT))?;
                socket::set_user_timeout(&stream, (SILENCE_NS / 1_000_000) as u32)?;
                Ok(stream)
            });
            match stream {
                Ok(stream) => {
                    return Ok(ControlClient {
                        stream,
                        lines: Lines::new(line_max),
                        service: service.to_owned(),
                        address,
                    });
                }
                Err(error) => tried.push(format!("{address}: {}", reason(&error))),
            }
        }
        if tried.is_empty() {
            tried.push(format!("'{service}' has no address"));
        }
        Err(RunError::Unreachable(format!(
            "no knee service answers over TCP at {}: {nobody}",
            tried.join("; ")
        )))
    }

    /// Error: the service cannot be used. `what` follows its name.
    pub(crate) fn unreachable(&self, what: &str) -> RunError {
        RunError::Unreachable(format!("the service {} {what}", self.service))
    }

    /// Error: the service was lost before anything was measured.
    pub(crate) fn lost(&self, lost: ServiceLost) -> RunError {
        self.unreachable(match &lost {
            ServiceLost::Because(why) => why,
            ServiceLost::Interrupted => "had not answered when it was interrupted",
        })
    }

    /// Error: the service refused a session, for this reason.
    pub(crate) fn refused(&self, reason: &str) -> RunError {
        RunError::NotPermitted(format!("the service {} refuses: {reason}", self.service))
    }

    /// # Errors
    /// [`ServiceLost::Because`].
    pub(crate) fn send(&mut self, request: &impl Serialize) -> Result<(), ServiceLost> {
        self.stream.write_all(&line(request)).map_err(|e| ServiceLost::gone(&e))
    }

    /// The next message, within `patience_ns` of the last byte.
    ///
    /// # Errors
    /// [`ServiceLost`].
    pub(crate) fn receive<S: DeserializeOwned>(
        &mut self,
        patience_ns: u64,
        stop: Option<&AtomicBool>,
    ) -> Result<S, ServiceLost> {
        let mut heard_ns = clock::monotonic_ns();
        let mut held = 0;
        loop {
            if let Some(message) = self.poll()? {
                return Ok(message);
            }
            if stop.is_some_and(|s| s.load(Ordering::Relaxed)) {
                return Err(ServiceLost::Interrupted);
            }
            let now_ns = clock::monotonic_ns();
            if self.lines.held() != held {
                (held, heard_ns) = (self.lines.held(), now_ns);
            }
            if now_ns - heard_ns > patience_ns {
                return Err(ServiceLost::silent());
            }
        }
    }

    /// The next message, if it comes within 20 ms.
    ///
    /// # Errors
    /// [`ServiceLost::Because`].
    pub(crate) fn poll<S: DeserializeOwned>(&mut self) -> Result<Option<S>, ServiceLost> {
        if let Some(message) = self.next_message()? {
            return Ok(Some(message));
        }
        let mut buffer = [0; 64 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(ServiceLost::closed()),
            Ok(count) => {
                self.lines.push(&buffer[..count]);
                self.next_message()
            }
            Err(e) if is_no_data(&e) => Ok(None),
            Err(e) => Err(ServiceLost::gone(&e)),
        }
    }

    /// The next message of the bytes that were read; `None`: more are needed.
    ///
    /// # Errors
    /// [`ServiceLost::Because`].
    pub(crate) fn next_message<S: DeserializeOwned>(&mut self) -> Result<Option<S>, ServiceLost> {
        let line = self.lines.take().map_err(|_| ServiceLost::nonsense())?;
        let message =
            line.map(|line| serde_json::from_slice(&line).map_err(|_| ServiceLost::nonsense()));
        message.transpose()
    }
}

impl ServiceLost {
    pub(crate) fn silent() -> ServiceLost {
        let seconds = SILENCE_NS / 1_000_000_000;
        ServiceLost::Because(format!("says nothing any more (for {seconds} s)"))
    }

    pub(crate) fn nonsense() -> ServiceLost {
        ServiceLost::Because("says what knee does not understand".to_owned())
    }

    /// The service refused, for a reason, or sent another message than was expected.
    pub(crate) fn unexpected(refused: Option<&str>) -> ServiceLost {
        ServiceLost::Because(match refused {
            Some(reason) => format!("refuses: {}", printable(reason)),
            None => "sent an unexpected message".to_owned(),
        })
    }

    pub(crate) fn closed() -> ServiceLost {
        ServiceLost::Because("closed its control connection".to_owned())
    }

    pub(crate) fn gone(error: &io::Error) -> ServiceLost {
        ServiceLost::Because(format!("is gone: {}", reason(error)))
    }
}

/// Text of a service for the terminal: one line of up to 200 characters.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

fn is_no_data(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_service_refuses_is_told_in_one_line() {
        let refused = ServiceLost::unexpected(Some("a\n\u{1b}[31mb"));
        assert_eq!(refused, ServiceLost::Because("refuses: a[31mb".to_owned()));
    }
}
