//! The client's end of the control connection, before and after the flows.

use super::sockets;
use super::wire::{self, LINE_MAX, LatencyReply, LatencyRequest, LatencySessionSpec, SERVICE};
use crate::control::{ControlClient, SILENCE_NS, ServiceClock, ServiceLogin, ServiceLost, Sharing};
use crate::error::{RunError, reason};
use crate::sys::stream;
use knee_load::experiment::latency::{FlowSockets, LatencyServiceFacts};
use knee_load::measure::Direction;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;

/// Pings of one clock reading, and of a reading of the round trip alone.
const PINGS: u32 = 12;
const PINGS_ONE_CLOCK: u32 = 3;

/// First number of these pings, apart from those of the pinger.
const FIRST_PING: u64 = 1 << 62;

/// A control connection to a service that this client holds.
#[derive(Debug)]
pub(super) struct LatencyControl {
    pub(super) client: ControlClient,
    /// Properties of the service.
    pub(super) facts: LatencyServiceFacts,
    pings: u64,
}

impl LatencyControl {
    /// Connects and says hello.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: nothing answers, no knee service, refused, or busy.
    pub(super) fn open(
        service: &str,
        token: &str,
        stop: &AtomicBool,
    ) -> Result<LatencyControl, RunError> {
        let login = ServiceLogin {
            at: service,
            service: SERVICE,
            token,
            token_option: "--token",
            purpose: "the other end of the flows is a service",
            line_max: LINE_MAX,
        };
        let (client, welcome) = login.connect::<LatencyServiceFacts>(stop)?;
        let sharing = Sharing::with(&welcome.boot, &welcome.namespace);
        Ok(LatencyControl {
            client,
            facts: LatencyServiceFacts { same_host: sharing.is_some(), ..welcome.facts },
            pings: FIRST_PING,
        })
    }

    /// Goes on over a connection after a session.
    pub(super) fn resumed(client: ControlClient, facts: LatencyServiceFacts) -> LatencyControl {
        LatencyControl { client, facts, pings: 2 * FIRST_PING }
    }

    /// Reads the service's clock, and the round trip in nanoseconds, by the ping with the shortest
    /// one. On one machine both have one clock.
    ///
    /// # Errors
    /// [`ServiceLost`].
    pub(super) fn clock(&mut self) -> Result<(ServiceClock, u64), ServiceLost> {
        let one_clock = self.facts.same_host;
        let pings = if one_clock { PINGS_ONE_CLOCK } else { PINGS };
        let (best, best_ns) = ServiceClock::quickest(pings, || {
            let n = self.pings;
            self.pings += 1;
            self.client.send(&LatencyRequest::Ping { n })?;
            match self.client.receive(SILENCE_NS, None)? {
                LatencyReply::Pong { n: pong, left_ns, .. } if pong == n => Ok(left_ns),
                other => Err(unexpected(&other)),
            }
        })?;
        let best = if one_clock { ServiceClock::default() } else { best };
        Ok((best, best_ns))
    }

    /// Prepares a session and lets its flows join, the uploads first.
    ///
    /// # Errors
    /// [`RunError`]: the service refuses, or is lost; a flow cannot connect, or is not what was
    /// asked for.
    pub(super) fn begin(
        &mut self,
        begin: &LatencySessionSpec,
        stop: &AtomicBool,
    ) -> Result<Vec<TcpStream>, RunError> {
        if let Some(dscp) = begin.sockets.dscp {
            let _ = stream::set_dscp(&self.client.stream, dscp);
        }
        self.request(&LatencyRequest::Begin(begin.clone()), &LatencyReply::Ready, stop)?;
        let count = (begin.up + begin.down) as usize;
        let flows = sockets::connect(self.client.address, count, &begin.sockets)?;
        for (n, mut flow) in flows.iter().enumerate() {
            let n = n as u32;
            let (direction, number) =
                if n < begin.up { (Direction::Up, n) } else { (Direction::Down, n - begin.up) };
            let join = LatencyRequest::Join { session: begin.session, direction, number };
            // A new connection's buffer has room for a line.
            flow.write_all(&wire::line(&join)).map_err(|e| {
                RunError::Unreachable(format!("flow {n} cannot begin: {}", reason(&e)))
            })?;
        }
        self.await_reply(&LatencyReply::Joined, stop)?;
        check_ecn(&flows, &begin.sockets)?;
        Ok(flows)
    }

    /// Starts the flows. Both times are of the service's clock; `end_ns` is the latest end.
    ///
    /// # Errors
    /// [`RunError`]: the service is lost.
    pub(super) fn start(
        &mut self,
        origin_ns: u64,
        end_ns: u64,
        stop: &AtomicBool,
    ) -> Result<(), RunError> {
        self.request(&LatencyRequest::Start { origin_ns, end_ns }, &LatencyReply::Started, stop)
    }

    fn request(
        &mut self,
        request: &LatencyRequest,
        wanted: &LatencyReply,
        stop: &AtomicBool,
    ) -> Result<(), RunError> {
        self.client.send(request).map_err(|lost| self.client.lost(lost))?;
        self.await_reply(wanted, stop)
    }

    fn await_reply(&mut self, wanted: &LatencyReply, stop: &AtomicBool) -> Result<(), RunError> {
        match self.client.receive(SILENCE_NS, Some(stop)) {
            Ok(said) if said == *wanted => Ok(()),
            Ok(LatencyReply::Refused { reason }) => Err(self.client.refused(&reason)),
            Ok(other) => Err(self.client.lost(unexpected(&other))),
            Err(lost) => Err(self.client.lost(lost)),
        }
    }
}

/// Checks explicit congestion notification. Linux has no switch of a single socket, only of the
/// host or the route: the outcome is known once flows are connected.
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

/// Error: an unexpected message.
pub(super) fn unexpected(said: &LatencyReply) -> ServiceLost {
    ServiceLost::unexpected(match said {
        LatencyReply::Refused { reason } => Some(reason),
        _ => None,
    })
}
