//! The latency service: the other end of [`crate::experiment::latency`], on one port.
//!
//! One thread has the control connections and answers pings and UDP probes, so that these do not
//! wait behind payload in this process. Others carry the flows. A connection's first line says what
//! it is: a client's control connection, or a flow of the session that it names.
//!
//! One client holds the service at a time; it is busy for others. Flows and probes have to come
//! from the client's address and to name the session, a number that its client drew at random. A
//! UDP probe is answered with the same number of bytes. So the service cannot be used to flood
//! others.

mod control;
#[cfg(test)]
mod tests;

use crate::error::RunError;
use crate::experiment::latency::flow_run::FlowRun;
pub use crate::experiment::latency::flow_threads::FlowFaultKind;
use crate::experiment::latency::flow_threads::{CarriedFlows, FlowEnd, FlowThreads};
use crate::experiment::latency::sockets;
use crate::experiment::latency::wire::{
    FlowSide, LatencyReply, LatencyServiceRecord, LatencySessionSpec,
};
use crate::kernel::host;
use crate::port;
use crate::sys::clock::{self, ThreadUse};
use crate::sys::epoll::EventFd;
use crate::threads::{self, RunningServer, StoppableThread};
use control::LatencyService;
use knee_load::experiment::latency::LatencyServiceFacts;
use knee_load::measure::Direction;
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::{fmt, io};

/// Configuration of the latency service.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyServerSpec {
    /// Address of control connections and flows (TCP) and probes (UDP); port 0 picks one that is
    /// free for both.
    pub listen: SocketAddr,
    /// Token that clients need; empty: none, which is permitted only on a loopback address.
    pub token: String,
    /// The longest session that a client may ask for.
    pub session_max: Nanos,
    /// Bytes of its flows after which a session is ended; `None`: no limit.
    pub bytes_max: Option<u64>,
    /// Threads that carry flows, at least 1.
    pub workers: u32,
    /// Deliberate faults in every session.
    pub faults: Vec<FlowFault>,
}

impl Default for LatencyServerSpec {
    /// On a loopback port of the kernel's choice, with one thread per processor.
    fn default() -> LatencyServerSpec {
        LatencyServerSpec {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            token: String::new(),
            session_max: Nanos::from_secs(3_600),
            bytes_max: None,
            workers: crate::sys::thread::cpu_count(),
            faults: Vec::new(),
        }
    }
}

/// A deliberate fault of a flow, to test clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowFault {
    /// Direction of the flow, as the client sees it.
    pub direction: Direction,
    /// Number of the flow in that direction, from 0.
    pub number: u32,
    /// Time since the session began.
    pub at: Nanos,
    /// Kind of the fault.
    pub kind: FlowFaultKind,
}

/// Counts of a latency service from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyServerStats {
    /// From start to end, in seconds.
    pub elapsed_s: f64,
    /// Sessions that were started.
    pub sessions: u64,
    /// Of them, those whose client vanished before it had its record.
    pub sessions_lost: u64,
    /// Flows that were carried.
    pub flows: u64,
    /// Payload bytes received over uploads.
    pub received_bytes: u64,
    /// Payload bytes that downloads' sockets took.
    pub sent_bytes: u64,
    /// Pings answered over TCP.
    pub pings: u64,
    /// Probes answered over UDP.
    pub probes: u64,
    /// Datagrams that were no probes of the running session.
    pub discarded: u64,
}

impl fmt::Display for LatencyServerStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        write!(
            f,
            "carried {} flows of {} sessions in {:.1} s",
            self.flows, self.sessions, self.elapsed_s
        )?;
        if self.sessions_lost > 0 {
            write!(f, " ({} lost their client)", self.sessions_lost)?;
        }
        writeln!(f)?;
        writeln!(f, "received {:.3} GiB", gib(self.received_bytes))?;
        writeln!(f, "sent     {:.3} GiB", gib(self.sent_bytes))?;
        writeln!(f, "answered {} pings over TCP, {} probes over UDP", self.pings, self.probes)?;
        if self.discarded > 0 {
            writeln!(f, "discarded  {} datagrams", self.discarded)?;
        }
        Ok(())
    }
}

/// A running latency service; it ends when it is stopped or dropped.
pub type LatencyServer = RunningServer<SocketAddr, LatencyServerStats>;

impl LatencyServer {
    /// Listens and serves in threads of its own.
    ///
    /// # Errors
    /// [`RunError::NotPermitted`]: no token for an address that others reach; the address is in
    /// use, not permitted or not this machine's.
    pub fn start(spec: LatencyServerSpec) -> Result<LatencyServer, RunError> {
        port::check_token(spec.listen, &spec.token)?;
        let (listener, probes) = port::bind(spec.listen, UdpSocket::bind)?;
        let cannot = |e: io::Error| RunError::NotPermitted(format!("cannot serve flows: {e}"));
        let address = listener.local_addr().map_err(cannot)?;
        let wake = Arc::new(EventFd::new().map_err(cannot)?);
        let host = host::host();
        let facts = LatencyServiceFacts {
            congestion_control: host.congestion_control,
            kernel: host.kernel,
            cpus: host.cpus,
            ..LatencyServiceFacts::default()
        };
        let service =
            LatencyService::new(spec, facts, probes, (listener, wake.clone())).map_err(cannot)?;
        let run = |stop: &Arc<_>| service.run(stop);
        let thread = StoppableThread::start("serve-latency", Some(wake), run);
        Ok(LatencyServer::new(address, thread.map_err(|e| threads::refused(&e))?))
    }
}

/// A session of one client.
struct LatencySession {
    begin: LatencySessionSpec,
    /// Address of its client.
    peer: IpAddr,
    /// The uploads first; `None`: has not joined.
    flows: Vec<Option<TcpStream>>,
    running: Option<RunningFlows>,
}

struct RunningFlows {
    carriers: Option<FlowThreads>,
    flow_run: Arc<FlowRun>,
    /// Processor time of this thread at the beginning.
    used: ThreadUse,
    /// Run time at which progress of uploads is sent next.
    due: Nanos,
    /// Whether the record was asked for.
    is_ending: bool,
    /// Whether the service has ended it itself.
    is_over: bool,
}

impl LatencySession {
    /// A session whose flows are still to join.
    fn new(begin: LatencySessionSpec, peer: IpAddr) -> LatencySession {
        let count = (begin.up + begin.down) as usize;
        LatencySession { begin, peer, flows: (0..count).map(|_| None).collect(), running: None }
    }

    /// Flows that are still to join.
    fn missing(&self) -> usize {
        self.flows.iter().filter(|f| f.is_none()).count()
    }

    fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Adds a flow.
    ///
    /// # Errors
    /// There is no such flow to join, or its socket cannot be set up.
    fn join(&mut self, direction: Direction, number: u32, stream: TcpStream) -> Result<(), String> {
        let place = place(&self.begin, direction, number);
        let free = place.and_then(|place| self.flows.get_mut(place));
        let Some(free) = free.filter(|f| f.is_none()) else {
            return Err("there is no such flow to join".to_owned());
        };
        if self.running.is_some() {
            return Err("the flows have begun already".to_owned());
        }
        sockets::set_up(&stream, &self.begin.sockets).map_err(|e| e.to_string())?;
        *free = Some(stream);
        Ok(())
    }

    /// Starts the flows.
    ///
    /// # Errors
    /// The system refuses a thread.
    fn start(
        &mut self,
        origin_ns: u64,
        end_ns: u64,
        workers: u32,
        faults: &[FlowFault],
    ) -> io::Result<()> {
        let limit_ns = origin_ns.saturating_add(self.begin.limit.0);
        let (count, end_ns) = (self.flows.len(), end_ns.min(limit_ns));
        let flow_run = FlowRun::new(count, origin_ns, end_ns, 0, self.begin.interval);
        let up = self.begin.up as usize;
        let joined = self.flows.iter_mut().enumerate();
        let mut ends: Vec<FlowEnd> = joined
            .filter_map(|(index, stream)| {
                Some(FlowEnd {
                    index,
                    stream: stream.take()?,
                    sends: index >= up,
                    faults: Vec::new(),
                })
            })
            .collect();
        for fault in faults {
            let place = place(&self.begin, fault.direction, fault.number);
            let Some(end) = place.and_then(|place| ends.get_mut(place)) else {
                continue;
            };
            end.faults.push((fault.at, fault.kind));
        }
        let carriers = FlowThreads::start(flow_run.clone(), ends, workers)?;
        self.running = Some(RunningFlows {
            carriers: Some(carriers),
            flow_run,
            used: ThreadUse::now(),
            due: next_due(&self.begin, Nanos::ZERO),
            is_ending: false,
            is_over: false,
        });
        Ok(())
    }

    /// Time until there is something to do.
    fn patience(&self, now_ns: u64) -> Nanos {
        match &self.running {
            // The threads end shortly after the end.
            Some(running) if running.is_ending => Nanos::from_millis(1),
            Some(running) if running.due < Nanos::MAX => {
                running.due - running.flow_run.since(now_ns)
            }
            _ => Nanos::MAX,
        }
    }

    /// The next message that is due.
    fn next_message(&mut self, now_ns: u64, bytes_max: Option<u64>) -> Option<LatencyReply> {
        let up = self.begin.up as usize;
        let running = self.running.as_mut()?;
        let now = running.flow_run.since(now_ns);
        let cap = bytes_max.filter(|&max| running.flow_run.carried_in_all() >= max);
        if let Some(max) = cap.filter(|_| !running.is_over) {
            running.is_over = true;
            running.flow_run.end_ns.fetch_min(now_ns, Ordering::Relaxed);
            let reason = format!("the service permits no more than {max} bytes a session");
            return Some(LatencyReply::Over { reason });
        }
        let end = running.flow_run.since(running.flow_run.end_ns.load(Ordering::Relaxed));
        let at = running.due;
        if at > end {
            // Nothing is due any more.
            running.due = Nanos::MAX;
        }
        if at > now || at > end {
            return None;
        }
        let bytes = running.flow_run.carried(0..up);
        running.due = next_due(&self.begin, at);
        Some(LatencyReply::Progress { at, bytes })
    }

    /// Ends the flows at `at_ns` of this host's clock.
    fn end(&mut self, at_ns: u64) {
        let Some(running) = &mut self.running else {
            return;
        };
        running.is_ending = true;
        running.flow_run.end_ns.fetch_min(at_ns, Ordering::Relaxed);
    }

    /// The record and the threads' results, once it was asked for and all flows have ended.
    fn record(&mut self) -> Option<(LatencyServiceRecord, CarriedFlows)> {
        let running = self.running.as_mut().filter(|r| r.is_ending)?;
        let carried = running.carriers.take_if(|c| c.has_ended())?.join().unwrap_or_default();
        let mut record = LatencyServiceRecord::default();
        let used = ThreadUse::now().since(running.used);
        let used = carried.used.iter().chain([&used]);
        record.cpu = Nanos(used.map(|u| (u.user + u.system).0).sum());
        for flow in &carried.flows {
            match flow.side.clone() {
                FlowSide::Received(side) => record.up.push(side),
                FlowSide::Sent(side) => record.down.push(side),
            }
        }
        Some((record, carried))
    }

    /// Ends the session at any stage, and drops what waits to be sent.
    fn abandon(mut self) -> CarriedFlows {
        self.end(clock::monotonic_ns());
        let carried = self.running.and_then(|r| r.carriers).map(|c| c.join().unwrap_or_default());
        let carried = carried.unwrap_or_default();
        carried.reset();
        carried
    }
}

/// First end of an interval or a window after `at`.
fn next_due(begin: &LatencySessionSpec, at: Nanos) -> Nanos {
    let after = |length: Nanos| match length.0 {
        0 => Nanos::MAX,
        ns => Nanos(ns.saturating_mul(at.0 / ns + 1)),
    };
    match begin.up {
        0 => Nanos::MAX,
        _ => after(begin.interval).min(after(begin.window)),
    }
}

/// A flow's place: the uploads come first.
fn place(begin: &LatencySessionSpec, direction: Direction, number: u32) -> Option<usize> {
    match direction {
        Direction::Up if number < begin.up => Some(number as usize),
        Direction::Down if number < begin.down => Some((begin.up + number) as usize),
        _ => None,
    }
}
