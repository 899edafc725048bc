//! The control thread: connections, the one client that has the service, pings and probes.

use super::session::{self, Session};
use super::spec::LatencyServerSpec;
use super::stats::LatencyServerStats;
use crate::control::clients::Clients;
use crate::control::connection::{Heard, IDLE_NS};
use crate::experiment::latency::carry::Carried;
use crate::experiment::latency::gate::Gate;
use crate::experiment::latency::probe::{PROBE_BYTES, ProbeDatagram};
use crate::experiment::latency::side::Side;
use crate::experiment::latency::sockets;
use crate::experiment::latency::wire::{Ask, Begin, Hello, LINE_MAX, SERVICE, Say};
use crate::sys::clock;
use crate::sys::eventfd::EventFd;
use crate::sys::{stream, thread as sys_thread};
use knee_core::experiment::latency::measure::LatencyServiceFacts;
use knee_core::measure::Direction;
use knee_core::time::Nanos;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A client that pings has fallen silent for so long: it is gone.
const SILENCE_NS: u64 = 20_000_000_000;

/// How often deadlines are looked at.
const TICK: Nanos = Nanos::from_millis(250);

/// How often it is looked whether pings can be answered that wait for room in this host.
const LOOK_AGAIN: Nanos = Nanos::from_micros(500);

/// So many probes are answered in one go.
const PROBES_AT_ONCE: usize = 64;

/// The clients and the session.
pub(super) struct Room {
    spec: LatencyServerSpec,
    facts: LatencyServiceFacts,
    probes: UdpSocket,
    clients: Clients,
    session: Option<Session>,
    /// Pings to be answered: their numbers, and when they came.
    pings: Vec<(u64, u64)>,
    gate: Gate,
    stats: LatencyServerStats,
}

impl Room {
    pub(super) fn new(
        spec: LatencyServerSpec,
        facts: LatencyServiceFacts,
        listener: TcpListener,
        probes: UdpSocket,
        wake: Arc<EventFd>,
    ) -> io::Result<Room> {
        probes.set_nonblocking(true)?;
        let clients = Clients::new(listener, wake, LINE_MAX)?;
        clients.wait_for(&probes)?;
        Ok(Room {
            spec,
            facts,
            probes,
            clients,
            session: None,
            pings: Vec::new(),
            gate: Gate::default(),
            stats: LatencyServerStats::default(),
        })
    }

    /// Serves until it is told to stop.
    pub(super) fn run(mut self, stop: &AtomicBool) -> LatencyServerStats {
        let begun = clock::monotonic_ns();
        // Otherwise progress may be told 50 µs late for the sake of the kernel's batching.
        let _ = sys_thread::set_timer_slack_ns(1);
        // Pings are not to wait for threads that carry flows, where a processor has both.
        sys_thread::go_first();
        while !stop.load(Ordering::Relaxed) {
            let patience = match (&self.session, self.pings.is_empty()) {
                // Nothing tells when a segment has left this host.
                (_, false) => LOOK_AGAIN,
                (Some(session), _) => session.patience(clock::monotonic_ns()).min(TICK),
                (None, _) => TICK,
            };
            self.clients.wait(patience);
            self.answer_probes();
            self.pass();
        }
        self.abandon();
        self.stats.elapsed_s = (clock::monotonic_ns() - begun) as f64 / 1e9;
        self.stats
    }

    fn pass(&mut self) {
        let now_ns = clock::monotonic_ns();
        // The client that leaves before the one that comes, so that it does not find us busy.
        self.listen_to_all(now_ns);
        let missing = self.session.as_ref().map_or(0, Session::missing);
        self.clients.accept(missing, now_ns);
        self.listen_to_all(now_ns);
        self.go_on();
        self.answer_pings();
        self.clients.flush(now_ns);
        self.bury(now_ns);
    }

    fn listen_to_all(&mut self, now_ns: u64) {
        self.clients.read();
        self.bury(now_ns);
        while let Some((id, heard)) = self.clients.hear() {
            self.obey(id, heard, now_ns);
        }
        self.bury(now_ns);
    }

    /// Does away with connections that are over; with that of the holder goes its session.
    fn bury(&mut self, now_ns: u64) {
        let patience_ns = match self.session {
            Some(_) => SILENCE_NS,
            None => IDLE_NS,
        };
        if self.clients.bury(now_ns, patience_ns) {
            self.pings.clear();
            self.abandon();
        }
    }

    fn abandon(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        self.stats.sessions_lost += u64::from(session.is_running());
        let carried = session.abandon();
        self.account(&carried);
        let _ = stream::set_dscp(&self.probes, 0);
    }

    fn obey(&mut self, id: u64, heard: Heard<Ask>, now_ns: u64) {
        let holds = self.clients.holds(id);
        let Some(connection) = self.clients.get(id) else {
            return;
        };
        let Heard::Ask(ask) = heard else {
            return connection.refuse("this is no line of a knee client");
        };
        connection.touch(now_ns);
        match ask {
            Ask::Ping { n } if holds => {
                self.pings.push((n, clock::monotonic_ns()));
                self.stats.pings += 1;
                // At once: what else there is to do can wait.
                self.answer_pings();
            }
            Ask::Hello(hello) if !holds => self.greet(id, &hello),
            Ask::Join {
                session,
                direction,
                number,
            } if !holds => self.join(id, session, direction, number),
            Ask::Begin(begin) if holds && self.session.is_none() => self.begin(id, begin),
            Ask::Start { origin_ns, end_ns } if holds => self.start(id, origin_ns, end_ns),
            Ask::End { at_ns } if holds => match &mut self.session {
                Some(session) if session.is_running() => session.end(at_ns),
                _ => connection.refuse("no session runs"),
            },
            Ask::Hello(_) => connection.refuse("hello was said already"),
            Ask::Join { .. } => connection.refuse("a flow is a connection of its own"),
            _ if !holds => connection.refuse("hello has to come first"),
            _ => connection.refuse("this is not the time for that"),
        }
    }

    fn greet(&mut self, id: u64, said: &Hello) {
        let expected = (SERVICE, self.spec.token.as_str());
        self.clients.greet(id, said, expected, &self.facts);
    }

    fn begin(&mut self, id: u64, begin: Begin) {
        let Some(connection) = self.clients.get(id) else {
            return;
        };
        let checked = begin
            .check(self.spec.session_max)
            .and_then(|()| sockets::check(&begin.sockets));
        if let Err(reason) = checked {
            connection.refuse(&reason);
            return;
        }
        if let Some(dscp) = begin.sockets.dscp {
            let _ = stream::set_dscp(connection.stream(), dscp);
            let _ = stream::set_dscp(&self.probes, dscp);
        }
        connection.say(&Say::Ready);
        if begin.up + begin.down == 0 {
            connection.say(&Say::Joined);
        }
        self.gate = Gate::default();
        self.session = Some(Session::new(begin, connection.peer));
    }

    fn join(&mut self, id: u64, number: u64, direction: Direction, flow: u32) {
        let Some(connection) = self.clients.release(id) else {
            return;
        };
        let peer = connection.peer;
        let ours = |s: &&mut Session| s.begin.session == number && s.peer == peer;
        let Some(session) = self.session.as_mut().filter(ours) else {
            return;
        };
        let stream = connection.into_stream();
        let missing = session.missing();
        let say = match session.join(direction, flow, stream) {
            Ok(()) if session.missing() == 0 && missing > 0 => Say::Joined,
            Ok(()) => return,
            Err(reason) => Say::Refused { reason },
        };
        self.say_to_holder(&say);
    }

    fn start(&mut self, id: u64, origin_ns: u64, end_ns: u64) {
        let Some(connection) = self.clients.get(id) else {
            return;
        };
        let waits = |s: &&mut Session| s.missing() == 0 && !s.is_running();
        let Some(session) = self.session.as_mut().filter(waits) else {
            connection.refuse("this is not the time for that");
            return;
        };
        self.stats.sessions += 1;
        self.stats.flows += u64::from(session.begin.up + session.begin.down);
        match session.start(origin_ns, end_ns, self.spec.workers, &self.spec.faults) {
            Ok(()) => connection.say(&Say::Started),
            Err(e) => connection.refuse(&format!("no thread can be had: {e}")),
        }
    }

    /// Tells how the session fares, and its record when it has ended.
    fn go_on(&mut self) {
        let now_ns = clock::monotonic_ns();
        let Some(session) = &mut self.session else {
            return;
        };
        let mut said = Vec::new();
        while let Some(say) = session.say(now_ns, self.spec.bytes_max) {
            said.push(say);
        }
        let ended = session.record();
        for say in &said {
            self.say_to_holder(say);
        }
        if let Some((record, carried)) = ended {
            self.say_to_holder(&Say::Record(Box::new(record)));
            session::reset(&carried);
            self.account(&carried);
            self.session = None;
            let _ = stream::set_dscp(&self.probes, 0);
        }
    }

    fn account(&mut self, carried: &[Carried]) {
        for flow in carried.iter().flat_map(|c| &c.flows) {
            match &flow.side {
                Side::Received(side) => self.stats.received_bytes += side.received_bytes,
                Side::Sent(side) => self.stats.sent_bytes += side.accepted_bytes,
            }
        }
    }

    fn say_to_holder(&mut self, say: &Say) {
        if let Some(connection) = self.clients.holder() {
            connection.say(say);
        }
    }

    /// Answers pings once their answers leave this host at once: what they had to wait here is no
    /// part of their round trip, as each says when it came and when it left.
    fn answer_pings(&mut self) {
        let Some(connection) = self.clients.holder() else {
            self.pings.clear();
            return;
        };
        if self.pings.is_empty() || !self.gate.is_open(connection.stream()) {
            return;
        }
        let left_ns = clock::monotonic_ns();
        for (n, reached_ns) in self.pings.drain(..) {
            connection.say(&Say::Pong {
                n,
                reached_ns,
                left_ns,
            });
        }
        connection.flush(left_ns);
        self.gate.has_written(connection.stream());
    }

    /// Sends back the probes of the session, and nothing else.
    fn answer_probes(&mut self) {
        let mut buffer = [0; PROBE_BYTES + 1];
        for _ in 0..PROBES_AT_ONCE {
            let Ok((count, from)) = self.probes.recv_from(&mut buffer) else {
                return;
            };
            let reached_ns = clock::monotonic_ns();
            let probe = ProbeDatagram::decode(&buffer[..count]);
            let ours = self.session.as_ref();
            let ours = ours.filter(|s| s.peer == from.ip().to_canonical());
            let probe = probe.filter(|p| ours.is_some_and(|s| s.begin.session == p.session));
            let Some(probe) = probe else {
                self.stats.discarded += 1;
                continue;
            };
            let back = ProbeDatagram {
                reached_ns,
                left_ns: clock::monotonic_ns(),
                ..probe
            };
            if self.probes.send_to(&back.encode(), from).is_ok() {
                self.stats.probes += 1;
            }
        }
    }
}
