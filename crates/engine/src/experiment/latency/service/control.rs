//! The control thread: clients, sessions, pings and probes.

use super::{LatencyServerSpec, LatencyServerStats, LatencySession};
use crate::control::{IDLE_NS, Service, ServiceClients};
use crate::experiment::latency::flow_threads::CarriedFlows;
use crate::experiment::latency::payload::{PROBE_BYTES, ProbeDatagram};
use crate::experiment::latency::sockets::{self, SendGate};
use crate::experiment::latency::wire::{
    FlowSide, Hello, LINE_MAX, LatencyReply, LatencyRequest, LatencySessionSpec, SERVICE,
};
use crate::sys::epoll::EventFd;
use crate::sys::{clock, stream, thread as sys_thread};
use knee_load::experiment::latency::LatencyServiceFacts;
use knee_load::measure::Direction;
use knee_load::time::Nanos;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Longest silence of a client with a session, which pings all the time.
const SILENCE_NS: u64 = 20_000_000_000;

/// Interval of looking whether pings can be answered that wait for room in this host: nothing tells
/// when a segment has left it.
const PING_RETRY: Nanos = Nanos::from_micros(500);

/// Probes answered per pass.
const PROBES_PER_PASS: usize = 64;

/// The state of the control thread.
pub(super) struct LatencyService {
    spec: LatencyServerSpec,
    probes: UdpSocket,
    clients: ServiceClients<LatencyServiceFacts>,
    session: Option<LatencySession>,
    /// Pings to be answered: their numbers, and when they came.
    pings: Vec<(u64, u64)>,
    gate: SendGate,
    stats: LatencyServerStats,
}

impl Service for LatencyService {
    type Request = LatencyRequest;
    type Facts = LatencyServiceFacts;

    fn clients(&mut self) -> &mut ServiceClients<LatencyServiceFacts> {
        &mut self.clients
    }

    fn hello(request: LatencyRequest) -> Result<Hello, LatencyRequest> {
        match request {
            LatencyRequest::Hello(hello) => Ok(hello),
            other => Err(other),
        }
    }

    fn answer(&mut self, id: u64, request: LatencyRequest) -> Result<(), String> {
        match request {
            LatencyRequest::Ping { n } => {
                self.pings.push((n, clock::monotonic_ns()));
                self.stats.pings += 1;
                // At once: what else there is to do can wait.
                self.answer_pings();
                Ok(())
            }
            LatencyRequest::Begin(begin) if self.session.is_none() => self.begin(id, begin),
            LatencyRequest::Start { origin_ns, end_ns } => self.start(origin_ns, end_ns),
            LatencyRequest::End { at_ns } => match &mut self.session {
                Some(session) if session.is_running() => {
                    session.end(at_ns);
                    Ok(())
                }
                _ => Err("no session runs".to_owned()),
            },
            LatencyRequest::Join { .. } => Err("a flow is a connection of its own".to_owned()),
            _ => Err(NOT_NOW.to_owned()),
        }
    }

    fn admit(&mut self, id: u64, request: LatencyRequest) -> Result<(), String> {
        match request {
            LatencyRequest::Join { session, direction, number } => {
                self.join(id, session, direction, number)
            }
            _ => return Err(Self::NO_HELLO.to_owned()),
        }
        Ok(())
    }

    fn holder_patience_ns(&self) -> u64 {
        self.session.as_ref().map_or(IDLE_NS, |_| SILENCE_NS)
    }

    fn abandon(&mut self) {
        self.pings.clear();
        self.end_session();
    }

    fn expected(&self) -> usize {
        self.session.as_ref().map_or(0, LatencySession::missing)
    }

    fn patience(&self) -> Nanos {
        if !self.pings.is_empty() {
            return PING_RETRY;
        }
        self.session.as_ref().map_or(Nanos::MAX, |s| s.patience(clock::monotonic_ns()))
    }

    fn on_wake(&mut self) {
        self.answer_probes();
    }

    fn advance(&mut self) {
        self.advance_session();
        self.answer_pings();
    }
}

/// Refusal of a request that does not fit the state of the session.
const NOT_NOW: &str = "this is not the time for that";
/// Time within which a run begins, in nanoseconds.
const BEGINS_WITHIN_NS: u64 = 60_000_000_000;

impl LatencyService {
    pub(super) fn new(
        spec: LatencyServerSpec,
        facts: LatencyServiceFacts,
        probes: UdpSocket,
        listen: (TcpListener, Arc<EventFd>),
    ) -> io::Result<LatencyService> {
        probes.set_nonblocking(true)?;
        let identity = (SERVICE, spec.token.clone(), facts);
        let clients = ServiceClients::new(identity, listen, LINE_MAX)?;
        clients.wait_for(&probes)?;
        Ok(LatencyService {
            spec,
            probes,
            clients,
            session: None,
            pings: Vec::new(),
            gate: SendGate::default(),
            stats: LatencyServerStats::default(),
        })
    }

    /// Serves until it is stopped.
    pub(super) fn run(mut self, stop: &AtomicBool) -> LatencyServerStats {
        let begun = clock::monotonic_ns();
        // Without it progress may be sent 50 µs late, as the kernel batches timers.
        let _ = sys_thread::set_timer_slack_ns(1);
        // Pings are not to wait for threads that carry flows, where a processor has both.
        sys_thread::go_first();
        self.serve(stop);
        self.end_session();
        self.stats.elapsed_s = (clock::monotonic_ns() - begun) as f64 / 1e9;
        self.stats
    }

    fn end_session(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        self.stats.sessions_lost += u64::from(session.is_running());
        let carried = session.abandon();
        self.account(&carried);
        let _ = stream::set_dscp(&self.probes, 0);
    }

    fn begin(&mut self, id: u64, begin: LatencySessionSpec) -> Result<(), String> {
        begin.check(self.spec.session_max)?;
        sockets::check(&begin.sockets)?;
        let Some(connection) = self.clients.get(id) else {
            return Ok(());
        };
        if let Some(dscp) = begin.sockets.dscp {
            let _ = stream::set_dscp(&connection.stream, dscp);
            let _ = stream::set_dscp(&self.probes, dscp);
        }
        connection.send(&LatencyReply::Ready);
        if begin.up + begin.down == 0 {
            connection.send(&LatencyReply::Joined);
        }
        self.gate = SendGate::default();
        self.session = Some(LatencySession::new(begin, connection.peer));
        Ok(())
    }

    fn join(&mut self, id: u64, number: u64, direction: Direction, flow: u32) {
        let Some(connection) = self.clients.release(id) else {
            return;
        };
        let peer = connection.peer;
        let ours = |s: &&mut LatencySession| s.begin.session == number && s.peer == peer;
        let Some(session) = self.session.as_mut().filter(ours) else {
            return;
        };
        let stream = connection.stream;
        let missing = session.missing();
        let say = match session.join(direction, flow, stream) {
            Ok(()) if session.missing() == 0 && missing > 0 => LatencyReply::Joined,
            Ok(()) => return,
            Err(reason) => LatencyReply::Refused { reason },
        };
        self.clients.send_to_holder(&say);
    }

    fn start(&mut self, origin_ns: u64, end_ns: u64) -> Result<(), String> {
        let waits = |s: &&mut LatencySession| s.missing() == 0 && !s.is_running();
        let session = self.session.as_mut().filter(waits).ok_or(NOT_NOW)?;
        if origin_ns.saturating_sub(clock::monotonic_ns()) > BEGINS_WITHIN_NS {
            return Err("a run begins within a minute".to_owned());
        }
        self.stats.sessions += 1;
        self.stats.flows += u64::from(session.begin.up + session.begin.down);
        let started = session.start(origin_ns, end_ns, self.spec.workers, &self.spec.faults);
        started.map_err(|e| format!("no thread can be had: {e}"))?;
        self.clients.send_to_holder(&LatencyReply::Started);
        Ok(())
    }

    /// Sends the progress of the session, and its record once it has ended.
    fn advance_session(&mut self) {
        let now_ns = clock::monotonic_ns();
        let Some(session) = &mut self.session else {
            return;
        };
        while let Some(message) = session.next_message(now_ns, self.spec.bytes_max) {
            self.clients.send_to_holder(&message);
        }
        if let Some((record, carried)) = session.record() {
            self.clients.send_to_holder(&LatencyReply::Record(Box::new(record)));
            carried.reset();
            self.account(&carried);
            self.session = None;
            let _ = stream::set_dscp(&self.probes, 0);
        }
    }

    fn account(&mut self, carried: &CarriedFlows) {
        for flow in &carried.flows {
            match &flow.side {
                FlowSide::Received(side) => self.stats.received_bytes += side.received_bytes,
                FlowSide::Sent(side) => self.stats.sent_bytes += side.accepted_bytes,
            }
        }
    }

    /// Answers pings once the answers leave this host at once. The wait until then is no part of
    /// the round trip, as each answer has the times at which its ping came and it left.
    fn answer_pings(&mut self) {
        let Some(connection) = self.clients.holder() else {
            self.pings.clear();
            return;
        };
        if self.pings.is_empty() || !self.gate.is_open(&connection.stream) {
            return;
        }
        let left_ns = clock::monotonic_ns();
        for (n, reached_ns) in self.pings.drain(..) {
            connection.send(&LatencyReply::Pong { n, reached_ns, left_ns });
        }
        connection.flush(left_ns);
        self.gate.has_written(&connection.stream);
    }

    /// Sends back the probes of the session, and no other datagram.
    fn answer_probes(&mut self) {
        let mut buffer = [0; PROBE_BYTES + 1];
        for _ in 0..PROBES_PER_PASS {
            let Ok((count, from)) = self.probes.recv_from(&mut buffer) else {
                return;
            };
            let reached_ns = clock::monotonic_ns();
            let probe = ProbeDatagram::decode(&buffer[..count]);
            let ours = self.session.as_ref().filter(|s| s.peer == from.ip().to_canonical());
            let probe = probe.filter(|p| ours.is_some_and(|s| s.begin.session == p.session));
            let Some(probe) = probe else {
                self.stats.discarded += 1;
                continue;
            };
            let back = ProbeDatagram { reached_ns, left_ns: clock::monotonic_ns(), ..probe };
            if self.probes.send_to(&back.encode(), from).is_ok() {
                self.stats.probes += 1;
            }
        }
    }
}
