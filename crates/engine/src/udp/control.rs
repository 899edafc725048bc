//! The client's end of the control connection.

use super::identity;
use super::wire::{
    self, Ask, Begin, LINE_MAX, Lines, RECORD_MAX, Record, Say, Sharing, VERSION, Welcome,
};
use crate::RunError;
use crate::resolve::reason;
use crate::sys::{clock, socket};
use knee_core::measure::ServiceFacts;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How long a connect may take.
const CONNECT: Duration = Duration::from_secs(5);

/// A service that says nothing for so long is lost; one that runs a session says something once a
/// second.
const SILENCE_NS: u64 = 10_000_000_000;

/// How long a service that gives signs of life may take to answer: more than it takes to drain what
/// is queued.
const ANSWER_NS: u64 = 60_000_000_000;

/// How long an answer to hello may take.
const HELLO_NS: u64 = 5_000_000_000;

/// How often a busy service is asked again, and after how long each time.
const BUSY_TRIES: u32 = 4;
const BUSY_PAUSE: Duration = Duration::from_millis(150);

/// How often a wait looks at whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(20);

/// Pings of one estimate of the clock.
const PINGS: u32 = 12;

/// Why the service says no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// What happened, in words that follow the service's name.
    Because(String),
    /// The user wants no more of it.
    Interrupted,
}

/// The service's clock, as seen from here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceClock {
    /// Its CLOCK_MONOTONIC less ours, modulo 2^64.
    pub ahead_ns: u64,
    /// It may be off by so much either way.
    pub uncertainty_ns: u64,
}

/// A connection to a service that has let us in.
#[derive(Debug)]
pub struct Control {
    stream: TcpStream,
    lines: Lines,
    /// As the user named it.
    service: String,
    /// Where datagrams go.
    pub address: SocketAddr,
    /// What it is.
    pub facts: ServiceFacts,
    /// What we share with it; `None`: not even the machine.
    pub sharing: Option<Sharing>,
}

impl Control {
    /// Connects and says hello.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: nobody there, nobody of ours, refused, or busy.
    pub fn open(service: &str, token: &str, stop: &AtomicBool) -> Result<Control, RunError> {
        let mut control = Control::connect(service)?;
        let mut welcome = control.hello(token, stop)?;
        // A client that has just left may still be seen there: its last packet was lost.
        for _ in 0..BUSY_TRIES {
            if welcome.is_some() || stop.load(Ordering::Relaxed) {
                break;
            }
            thread::sleep(BUSY_PAUSE);
            control = Control::connect(service)?;
            welcome = control.hello(token, stop)?;
        }
        let Some(welcome) = welcome else {
            return Err(control.unreachable("is busy with another client"));
        };
        control.sharing = sharing(&welcome.boot, &welcome.namespace);
        control.facts = ServiceFacts {
            same_host: control.sharing.is_some(),
            ..welcome.facts
        };
        Ok(control)
    }

    fn connect(service: &str) -> Result<Control, RunError> {
        let (stream, address) = connect(service)?;
        Ok(Control {
            stream,
            lines: Lines::new(LINE_MAX),
            service: service.to_owned(),
            address,
            facts: ServiceFacts::default(),
            sharing: None,
        })
    }

    /// Says hello; `None`: the service is busy.
    fn hello(&mut self, token: &str, stop: &AtomicBool) -> Result<Option<Welcome>, RunError> {
        let hello = Ask::Hello {
            version: VERSION,
            token: token.to_owned(),
        };
        let answer = self
            .tell(&hello)
            .and_then(|()| self.hear(HELLO_NS, Some(stop)));
        match answer {
            Ok(Say::Welcome(welcome)) => Ok(Some(welcome)),
            Ok(Say::Busy) => Ok(None),
            Ok(Say::Refused { reason }) => Err(self.unreachable(&format!("refuses: {reason}"))),
            Err(Lost::Interrupted) => Err(self.interrupted()),
            Ok(_) | Err(Lost::Because(_)) => Err(self.unreachable(
                "accepts connections but does not answer as a knee service: start one there with \
                 `knee serve udp`",
            )),
        }
    }

    /// Estimates the service's clock: the ping with the shortest round trip tells it best, to half
    /// of that. One clock needs no estimate.
    ///
    /// # Errors
    /// [`Lost`].
    pub fn clock(&mut self) -> Result<ServiceClock, Lost> {
        let mut best = ServiceClock {
            ahead_ns: 0,
            uncertainty_ns: u64::MAX,
        };
        if self.sharing.is_some() {
            return Ok(ServiceClock::default());
        }
        for n in 0..PINGS {
            let asked_ns = clock::monotonic_ns();
            self.tell(&Ask::Ping { n })?;
            let at_ns = loop {
                match self.hear(SILENCE_NS, None)? {
                    Say::Pong { n: pong, at_ns } if pong == n => break at_ns,
                    Say::Alive | Say::Pong { .. } => {}
                    other => return Err(unexpected(&other)),
                }
            };
            let half_ns = (clock::monotonic_ns() - asked_ns) / 2;
            if half_ns < best.uncertainty_ns {
                best = ServiceClock {
                    ahead_ns: at_ns.wrapping_sub(asked_ns + half_ns),
                    uncertainty_ns: half_ns,
                };
            }
        }
        Ok(best)
    }

    /// Prepares a session; what the service then is.
    ///
    /// # Errors
    /// [`RunError`]: it refuses, or is lost.
    pub fn begin(&mut self, begin: &Begin, stop: &AtomicBool) -> Result<ServiceFacts, RunError> {
        let answer = self
            .tell(&Ask::Begin(begin.clone()))
            .and_then(|()| self.hear_more(Some(stop)));
        match answer {
            Ok(Say::Ready { facts }) => Ok(ServiceFacts {
                same_host: self.sharing.is_some(),
                ..*facts
            }),
            Ok(Say::Refused { reason }) => Err(RunError::NotPermitted(format!(
                "the service {} refuses: {reason}",
                self.service
            ))),
            Ok(other) => Err(self.lost(unexpected(&other))),
            Err(lost) => Err(self.lost(lost)),
        }
    }

    /// Says when the run begins, on the service's clock.
    ///
    /// # Errors
    /// [`Lost`].
    pub fn start(&mut self, origin_ns: u64) -> Result<(), Lost> {
        self.tell(&Ask::Start { origin_ns })?;
        match self.hear_more(None)? {
            Say::Started => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Listens while datagrams are sent, until `over`. Raises `halt` where the service is lost, and
    /// where the user stops.
    ///
    /// # Errors
    /// [`Lost::Because`].
    pub fn watch(
        &mut self,
        over: &AtomicBool,
        stop: &AtomicBool,
        halt: &AtomicBool,
    ) -> Result<(), Lost> {
        let mut heard_ns = clock::monotonic_ns();
        while !over.load(Ordering::Acquire) {
            if stop.load(Ordering::Relaxed) {
                halt.store(true, Ordering::Relaxed);
            }
            let heard = self.glance();
            let now_ns = clock::monotonic_ns();
            let lost = match heard {
                Ok(Some(Say::Alive)) => {
                    heard_ns = now_ns;
                    continue;
                }
                Ok(None) if now_ns - heard_ns < SILENCE_NS => continue,
                Ok(None) => silent(),
                Ok(Some(other)) => unexpected(&other),
                Err(lost) => lost,
            };
            halt.store(true, Ordering::Relaxed);
            return Err(lost);
        }
        Ok(())
    }

    /// Says that `sent` datagrams were sent and takes the record.
    ///
    /// # Errors
    /// [`Lost::Because`].
    pub fn end(&mut self, sent: u64) -> Result<Record, Lost> {
        self.lines.set_max(RECORD_MAX);
        self.tell(&Ask::End { sent })?;
        let said = self.hear_more(None)?;
        self.lines.set_max(LINE_MAX);
        match said {
            Say::Record(mut record) => {
                record.unpack();
                Ok(*record)
            }
            other => Err(unexpected(&other)),
        }
    }

    /// That the service was lost before anything was sent.
    pub fn lost(&self, lost: Lost) -> RunError {
        match lost {
            Lost::Because(why) => self.unreachable(&why),
            Lost::Interrupted => self.interrupted(),
        }
    }

    fn unreachable(&self, what: &str) -> RunError {
        RunError::Unreachable(format!("the service {} {what}", self.service))
    }

    fn interrupted(&self) -> RunError {
        self.unreachable("had not answered when it was interrupted")
    }

    fn tell(&mut self, ask: &Ask) -> Result<(), Lost> {
        let told = self.stream.write_all(&wire::line(ask));
        told.map_err(|e| gone(&e))
    }

    /// The next thing that is more than a sign of life.
    fn hear_more(&mut self, stop: Option<&AtomicBool>) -> Result<Say, Lost> {
        let asked_ns = clock::monotonic_ns();
        loop {
            match self.hear(SILENCE_NS, stop)? {
                Say::Alive if clock::monotonic_ns() - asked_ns < ANSWER_NS => {}
                Say::Alive => return Err(Lost::Because("lives but does not answer".to_owned())),
                other => return Ok(other),
            }
        }
    }

    /// The next thing that is said, within `patience_ns` of the last byte.
    fn hear(&mut self, patience_ns: u64, stop: Option<&AtomicBool>) -> Result<Say, Lost> {
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
                return Err(silent());
            }
        }
    }

    /// What is said within a short time.
    fn glance(&mut self) -> Result<Option<Say>, Lost> {
        if let Some(said) = self.said()? {
            return Ok(Some(said));
        }
        let mut buffer = [0; 64 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(Lost::Because("closed its control connection".to_owned())),
            Ok(count) => {
                self.lines.push(&buffer[..count]);
                self.said()
            }
            Err(e) if is_no_data(&e) => Ok(None),
            Err(e) => Err(gone(&e)),
        }
    }

    fn said(&mut self) -> Result<Option<Say>, Lost> {
        let nonsense = || Lost::Because("says what knee does not understand".to_owned());
        let line = self.lines.take().map_err(|_| nonsense())?;
        let said = line.map(|line| serde_json::from_slice(&line).map_err(|_| nonsense()));
        said.transpose()
    }
}

fn connect(service: &str) -> Result<(TcpStream, SocketAddr), RunError> {
    let addresses = service.to_socket_addrs().map_err(|e| {
        RunError::Unreachable(format!(
            "cannot resolve '{service}' ({}): give HOST:PORT such as 127.0.0.1:9000",
            reason(&e)
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
        "no knee service answers over TCP at {}: datagrams are accounted for by the service, so \
         start one there with `knee serve udp --listen {service}`",
        tried.join("; ")
    )))
}

/// What we share with a service of this boot in this network namespace.
fn sharing(boot: &str, namespace: &str) -> Option<Sharing> {
    if boot.is_empty() || boot != identity::boot() {
        return None;
    }
    let same = !namespace.is_empty() && namespace == identity::network_namespace();
    Some(if same {
        Sharing::Namespace
    } else {
        Sharing::Machine
    })
}

fn unexpected(said: &Say) -> Lost {
    Lost::Because(match said {
        Say::Refused { reason } => format!("refuses: {reason}"),
        Say::Busy => "is busy with another client".to_owned(),
        _ => "says what it was not asked".to_owned(),
    })
}

fn silent() -> Lost {
    let seconds = SILENCE_NS / 1_000_000_000;
    Lost::Because(format!("says nothing any more (for {seconds} s)"))
}

fn gone(error: &io::Error) -> Lost {
    Lost::Because(format!("is gone: {}", reason(error)))
}

fn is_no_data(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::udp::{UdpServer, UdpServerSpec};

    #[test]
    fn the_clock_of_another_host_is_known_to_half_a_round_trip() {
        let server = UdpServer::start(UdpServerSpec {
            listen: "127.0.0.1:0".parse().unwrap(),
            ..UdpServerSpec::default()
        })
        .unwrap();
        let service = server.address().to_string();
        let mut control = Control::open(&service, "", &AtomicBool::new(false)).unwrap();
        assert_eq!(control.sharing, Some(Sharing::Namespace));
        assert_eq!(control.clock(), Ok(ServiceClock::default()));
        // As though it were on another host, whose clock happens to be ours.
        control.sharing = None;
        let clock = control.clock().unwrap();
        let off_ns = (clock.ahead_ns as i64).unsigned_abs();
        assert!(
            clock.uncertainty_ns > 0 && off_ns <= clock.uncertainty_ns + 1,
            "{clock:?}"
        );
        drop(server);
        assert!(matches!(control.clock(), Err(Lost::Because(_))));
    }
}
