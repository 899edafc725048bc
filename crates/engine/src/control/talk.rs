//! The client's end of a control connection, whatever is said over it.

use super::lines::{Lines, line};
use crate::error::RunError;
use crate::error::reason;
use crate::names::lookup_text;
use crate::sys::{clock, socket};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a connect may take.
const CONNECT: Duration = Duration::from_secs(5);

/// A service that says nothing for so long is lost.
pub(crate) const SILENCE_NS: u64 = 10_000_000_000;

/// How often a wait looks at whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(20);

/// Why the service says no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// What happened, in words that follow the service's name.
    Because(String),
    /// The user wants no more of it.
    Interrupted,
}

/// The service's clock, as seen from here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServiceClock {
    /// Its CLOCK_MONOTONIC less ours, modulo 2^64.
    pub ahead_ns: u64,
    /// It may be off by so much either way.
    pub uncertainty_ns: u64,
}

impl ServiceClock {
    /// The clock as `read` tells it, from the quickest of several answers, and that one's round
    /// trip in nanoseconds: the shortest tells it best, to half of itself (Cristian, Probabilistic
    /// Clock Synchronization, 1989).
    ///
    /// # Errors
    /// The first of `read`.
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
}

/// A connection over which lines go both ways.
#[derive(Debug)]
pub(crate) struct Talk {
    stream: TcpStream,
    lines: Lines,
    /// As the user named it.
    pub(crate) service: String,
    /// Where it is.
    pub(crate) address: SocketAddr,
}

impl Talk {
    /// Connects, for lines of up to `line_max` bytes. `nobody`: what to do where nobody answers.
    ///
    /// # Errors
    /// [`RunError::Unreachable`].
    pub(crate) fn connect(service: &str, line_max: usize, nobody: &str) -> Result<Talk, RunError> {
        let (stream, address) = connect(service, nobody)?;
        Ok(Talk {
            stream,
            lines: Lines::new(line_max),
            service: service.to_owned(),
            address,
        })
    }

    /// What [`Talk::into_parts`] took apart.
    ///
    /// # Errors
    /// The connection is gone.
    pub(crate) fn from_parts(stream: TcpStream, lines: Lines, service: &str) -> io::Result<Talk> {
        stream.set_nonblocking(false)?;
        Ok(Talk {
            address: stream.peer_addr()?,
            stream,
            lines,
            service: service.to_owned(),
        })
    }

    pub(crate) fn set_line_max(&mut self, max: usize) {
        self.lines.set_max(max);
    }

    /// That it cannot be used, in words that follow its name.
    pub(crate) fn unreachable(&self, what: &str) -> RunError {
        RunError::Unreachable(format!("the service {} {what}", self.service))
    }

    /// That it was lost before anything was measured.
    pub(crate) fn lost(&self, lost: Lost) -> RunError {
        self.unreachable(match &lost {
            Lost::Because(why) => why,
            Lost::Interrupted => "had not answered when it was interrupted",
        })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The stream, and what of it was read and not yet taken.
    pub(crate) fn into_parts(self) -> (TcpStream, Lines) {
        (self.stream, self.lines)
    }

    /// # Errors
    /// [`Lost::Because`].
    pub(crate) fn tell(&mut self, ask: &impl Serialize) -> Result<(), Lost> {
        self.stream
            .write_all(&line(ask))
            .map_err(|e| Lost::gone(&e))
    }

    /// The next thing that is said, within `patience_ns` of the last byte.
    ///
    /// # Errors
    /// [`Lost`].
    pub(crate) fn hear<S: DeserializeOwned>(
        &mut self,
        patience_ns: u64,
        stop: Option<&AtomicBool>,
    ) -> Result<S, Lost> {
        let mut heard_ns = clock::monotonic_ns();
        let mut held = 0;
        loop {
            if let Some(said) = self.glance()? {
                return Ok(said);
            }
            if stop.is_some_and(|s| s.load(Ordering::Relaxed)) {
                return Err(Lost::Interrupted);
            }
            let now_ns = clock::monotonic_ns();
            if self.lines.held() != held {
                (held, heard_ns) = (self.lines.held(), now_ns);
            }
            if now_ns - heard_ns > patience_ns {
                return Err(Lost::silent());
            }
        }
    }

    /// What is said within a short time.
    ///
    /// # Errors
    /// [`Lost::Because`].
    pub(crate) fn glance<S: DeserializeOwned>(&mut self) -> Result<Option<S>, Lost> {
        if let Some(said) = self.said()? {
            return Ok(Some(said));
        }
        let mut buffer = [0; 64 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(Lost::closed()),
            Ok(count) => {
                self.lines.push(&buffer[..count]);
                self.said()
            }
            Err(e) if is_no_data(&e) => Ok(None),
            Err(e) => Err(Lost::gone(&e)),
        }
    }

    fn said<S: DeserializeOwned>(&mut self) -> Result<Option<S>, Lost> {
        let line = self.lines.take().map_err(|_| Lost::nonsense())?;
        let said = line.map(|line| serde_json::from_slice(&line).map_err(|_| Lost::nonsense()));
        said.transpose()
    }
}

fn connect(service: &str, nobody: &str) -> Result<(TcpStream, SocketAddr), RunError> {
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
            stream.set_read_timeout(Some(GLANCE))?;
            stream.set_write_timeout(Some(CONNECT))?;
            socket::set_user_timeout(&stream, (SILENCE_NS / 1_000_000) as u32)?;
            Ok(stream)
        });
        match stream {
            Ok(stream) => return Ok((stream, address)),
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

impl Lost {
    pub(crate) fn silent() -> Lost {
        let seconds = SILENCE_NS / 1_000_000_000;
        Lost::Because(format!("says nothing any more (for {seconds} s)"))
    }

    pub(crate) fn nonsense() -> Lost {
        Lost::Because("says what knee does not understand".to_owned())
    }

    /// It said something else than was asked: that it refuses, for this reason, or what not.
    pub(crate) fn unexpected(refused: Option<&str>) -> Lost {
        Lost::Because(match refused {
            Some(reason) => format!("refuses: {}", printable(reason)),
            None => "sent an unexpected message".to_owned(),
        })
    }

    pub(crate) fn closed() -> Lost {
        Lost::Because("closed its control connection".to_owned())
    }

    pub(crate) fn gone(error: &io::Error) -> Lost {
        Lost::Because(format!("is gone: {}", reason(error)))
    }
}

/// What a service said, as it may go to the terminal: one line of limited length.
pub(crate) fn printable(text: &str) -> String {
    let printed = text.chars().filter(|c| !c.is_control());
    printed.take(200).collect()
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
        let refused = Lost::unexpected(Some("a\n\u{1b}[31mb"));
        assert_eq!(refused, Lost::Because("refuses: a[31mb".to_owned()));
    }
}
