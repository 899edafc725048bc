//! The client's end of the control connection, before and after the flows.

use super::sockets;
use super::wire::{self, Ask, Begin, LINE_MAX, Lines, SERVICE, Say};
use crate::control::{Door, Lost, SILENCE_NS, ServiceClock, Sharing, Talk};
use crate::error::RunError;
use crate::error::reason;
use crate::sys::stream;
use knee_core::experiment::latency::measure::LatencyServiceFacts;
use knee_core::experiment::latency::spec::FlowSockets;
use knee_core::measure::Direction;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;

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
        let door = Door {
            at: service,
            service: SERVICE,
            token,
            purpose: "the other end of the flows is a service",
            line_max: LINE_MAX,
        };
        let (talk, welcome) = door.enter::<LatencyServiceFacts>(stop)?;
        let sharing = Sharing::with(&welcome.boot, &welcome.namespace);
        Ok(Control {
            talk,
            facts: LatencyServiceFacts {
                same_host: sharing.is_some(),
                ..welcome.facts
            },
            pings: FIRST_PING,
        })
    }

    /// One that goes on over `talk` after a session.
    pub(super) fn resumed(talk: Talk, facts: LatencyServiceFacts) -> Control {
        Control {
            talk,
            facts,
            pings: 2 * FIRST_PING,
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
        self.talk.lost(lost)
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
    Lost::unexpected(match said {
        Say::Refused { reason } => Some(reason),
        _ => None,
    })
}
