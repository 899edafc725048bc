//! The client's end of the control connection, before and after the flows.

use super::sockets;
use super::wire::{self, Ask, Begin, LINE_MAX, Lines, Say, VERSION, Welcome};
use crate::control::{Lost, SILENCE_NS, ServiceClock, Sharing, Talk};
use crate::error::RunError;
use crate::error::reason;
use crate::sys::stream;
use knee_core::experiment::latency::measure::LatencyServiceFacts;
use knee_core::experiment::latency::spec::FlowSockets;
use knee_core::measure::Direction;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How long an answer to hello may take.
const HELLO_NS: u64 = 5_000_000_000;

/// How often a busy service is asked again, and after how long each time.
const BUSY_TRIES: u32 = 4;
const BUSY_PAUSE: Duration = Duration::from_millis(150);

/// Pings of one estimate of the clock, and of the round trip alone.
const PINGS: u32 = 12;
const PINGS_ONE_CLOCK: u32 = 3;

/// These pings' numbers, apart from those of the pinger.
const FIRST_PING: u64 = 1 << 62;

/// A connection to a service that has let us in.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) talk: Talk,
    /// What it is.
    pub(super) facts: LatencyServiceFacts,
    pings: u64,
}

impl Control {
    /// Connects and says hello.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: nobody there, nobody of ours, refused, or busy.
    pub(super) fn open(service: &str, token: &str, stop: &AtomicBool) -> Result<Control, RunError> {
        let nobody = format!(
            "the other end of the flows is a service, so start one there with `knee serve latency \
             --listen {service}`"
        );
        for tried in 0.. {
            let mut control = Control {
                talk: Talk::connect(service, LINE_MAX, &nobody)?,
                facts: LatencyServiceFacts::default(),
                pings: FIRST_PING,
            };
            if let Some(welcome) = control.hello(token, stop)? {
                let sharing = Sharing::with(&welcome.boot, &welcome.namespace);
                control.facts = LatencyServiceFacts {
                    same_host: sharing.is_some(),
                    ..welcome.facts
                };
                return Ok(control);
            }
            // A client that has just left may still be seen there: its last packet was lost.
            if tried == BUSY_TRIES || stop.load(Ordering::Relaxed) {
                return Err(control.talk.unreachable("is busy with another client"));
            }
            thread::sleep(BUSY_PAUSE);
        }
        unreachable!("an endless count has an end only inside")
    }

    /// One that goes on over `talk` after a session.
    pub(super) fn resumed(talk: Talk, facts: LatencyServiceFacts) -> Control {
        Control {
            talk,
            facts,
            pings: 2 * FIRST_PING,
        }
    }

    /// Says hello; `None`: the service is busy.
    fn hello(&mut self, token: &str, stop: &AtomicBool) -> Result<Option<Welcome>, RunError> {
        let hello = Ask::Hello {
            version: VERSION,
            token: token.to_owned(),
        };
        let told = self.talk.tell(&hello);
        match told.and_then(|()| self.talk.hear(HELLO_NS, Some(stop))) {
            Ok(Say::Welcome(welcome)) => Ok(Some(welcome)),
            Ok(Say::Busy) => Ok(None),
            Ok(Say::Refused { reason }) => {
                Err(self.talk.unreachable(&format!("refuses: {reason}")))
            }
            Err(lost @ Lost::Interrupted) => Err(self.lost(lost)),
            Ok(_) | Err(Lost::Because(_)) => Err(self.talk.unreachable(
                "accepts connections but does not answer as a knee service: start one there with \
                 `knee serve latency`",
            )),
        }
    }

    /// Estimates the service's clock, and the round trip in nanoseconds: the ping with the shortest
    /// one tells both best. One clock needs no estimate.
    ///
    /// # Errors
    /// [`Lost`].
    pub(super) fn clock(&mut self) -> Result<(ServiceClock, u64), Lost> {
        let one_clock = self.facts.same_host;
        let pings = if one_clock { PINGS_ONE_CLOCK } else { PINGS };
        let (best, best_ns) = ServiceClock::quickest(pings, || {
            let n = self.pings;
            self.pings += 1;
            self.talk.tell(&Ask::Ping { n })?;
            match self.talk.hear(SILENCE_NS, None)? {
                Say::Pong {
                    n: pong, left_ns, ..
                } if pong == n => Ok(left_ns),
                other => Err(unexpected(&other)),
            }
        })?;
        let best = if one_clock {
            ServiceClock::default()
        } else {
            best
        };
        Ok((best, best_ns))
    }

    /// Prepares a session and lets its flows join, the uploads first.
    ///
    /// # Errors
    /// [`RunError`]: the service refuses, or is lost; a flow cannot connect, or is not what was
    /// asked for.
    pub(super) fn begin(
        &mut self,
        begin: &Begin,
        stop: &AtomicBool,
    ) -> Result<Vec<TcpStream>, RunError> {
        if let Some(dscp) = begin.sockets.dscp {
            let _ = stream::set_dscp(self.talk.stream(), dscp);
        }
        self.ask(&Ask::Begin(begin.clone()), &Say::Ready, stop)?;
        let count = (begin.up + begin.down) as usize;
        let flows = sockets::connect(self.talk.address, count, &begin.sockets)?;
        for (n, mut flow) in flows.iter().enumerate() {
            let n = n as u32;
            let (direction, number) = if n < begin.up {
                (Direction::Up, n)
            } else {
                (Direction::Down, n - begin.up)
            };
            let join = Ask::Join {
                session: begin.session,
                direction,
                number,
            };
            // A new connection's buffer has room for a line.
            flow.write_all(&wire::line(&join)).map_err(|e| {
                RunError::Unreachable(format!("flow {n} cannot begin: {}", reason(&e)))
            })?;
        }
        self.await_say(&Say::Joined, stop)?;
        check_ecn(&flows, &begin.sockets)?;
        Ok(flows)
    }

    /// Says when flows begin and end at the latest, on the service's clock.
    ///
    /// # Errors
    /// [`RunError`]: the service is lost.
    pub(super) fn start(
        &mut self,
        origin_ns: u64,
        end_ns: u64,
        stop: &AtomicBool,
    ) -> Result<(), RunError> {
        self.ask(&Ask::Start { origin_ns, end_ns }, &Say::Started, stop)
    }

    fn ask(&mut self, ask: &Ask, wanted: &Say, stop: &AtomicBool) -> Result<(), RunError> {
        self.talk.tell(ask).map_err(|lost| self.lost(lost))?;
        self.await_say(wanted, stop)
    }

    fn await_say(&mut self, wanted: &Say, stop: &AtomicBool) -> Result<(), RunError> {
        match self.talk.hear(SILENCE_NS, Some(stop)) {
            Ok(said) if said == *wanted => Ok(()),
            Ok(Say::Refused { reason }) => Err(RunError::NotPermitted(format!(
                "the service {} refuses: {reason}",
                self.talk.service
            ))),
            Ok(other) => Err(self.lost(unexpected(&other))),
            Err(lost) => Err(self.lost(lost)),
        }
    }

    /// That the service was lost before the flows began.
    pub(super) fn lost(&self, lost: Lost) -> RunError {
        match lost {
            Lost::Because(why) => self.talk.unreachable(&why),
            Lost::Interrupted => {
                let what = "had not answered when it was interrupted";
                self.talk.unreachable(what)
            }
        }
    }

    /// The connection, for the pinger.
    pub(super) fn into_parts(self) -> (TcpStream, Lines) {
        self.talk.into_parts()
    }
}

/// Linux has no switch of a socket for explicit congestion notification: it is the host's, or the
/// route's, and what came of it is known once flows are connected.
fn check_ecn(flows: &[TcpStream], how: &FlowSockets) -> Result<(), RunError> {
    let Some(wanted) = how.ecn else {
        return Ok(());
    };
    let differs = |flow: &TcpStream| stream::tcp_info(flow).is_none_or(|i| i.ecn != wanted);
    if !flows.iter().any(differs) {
        return Ok(());
    }
    let set = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_ecn").unwrap_or_default();
    let set = set.trim();
    Err(RunError::NotPermitted(if wanted {
        format!(
            "ECN was asked for and the two hosts did not agree on it: `sysctl net.ipv4.tcp_ecn=1` \
             here (it is {set}), or `ip route change ROUTE features ecn`, and 1 or 2 on the \
             service's host (Linux has no switch of a single connection)"
        )
    } else {
        format!(
            "flows without ECN were asked for and the two hosts agreed on it: `sysctl \
             net.ipv4.tcp_ecn=2` here (it is {set}) makes connections from here without (Linux has \
             no switch of a single connection)"
        )
    }))
}

/// What the service said that it was not asked.
pub(super) fn unexpected(said: &Say) -> Lost {
    Lost::Because(match said {
        Say::Refused { reason } => format!("refuses: {reason}"),
        Say::Busy => "is busy with another client".to_owned(),
        _ => "says what it was not asked".to_owned(),
    })
}
