//! The pinger: a thread with the control connection, which sends pings and UDP probes at absolute
//! times, whatever the flows do. It keeps account of those of each kind.

use super::control::unexpected;
use super::payload::{PROBE_BYTES, ProbeDatagram};
use super::sockets::SendGate;
use super::wire::{self, LatencyReply, LatencyRequest, LatencyServiceRecord, RECORD_MAX};
use crate::control::{ControlClient, SILENCE_NS, ServiceLost};
use crate::sys::clock::{self, ThreadUse};
use crate::sys::epoll::{Epoll, EpollEvent, EventFd, flags};
use crate::sys::thread as sys_thread;
use knee_load::experiment::latency::{Probe, ProbeBack, ProbeSpec, ProbesMeasured};
use knee_load::measure::Histogram;
use knee_load::time::Nanos;
use std::io::{self, Read, Write};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

/// Interval of looking at requests of the conductor.
const GLANCE_NS: u64 = 20_000_000;

/// Events of the pinger, for the thread that conducts the run.
#[derive(Debug)]
pub(super) enum PingerEvent {
    /// A ping was sent.
    Sent,
    /// A ping came back, after this round trip.
    Back(Nanos),
    /// Bytes of each upload by a run time.
    Progress(Nanos, Vec<u64>),
    /// The service ended the flows itself.
    Over(String),
    /// The record of the service.
    Record(Box<LatencyServiceRecord>),
    /// The service is lost.
    Lost(ServiceLost),
}

/// State that the pinger and the thread that conducts the run share.
#[derive(Debug)]
pub(super) struct PingerControl {
    /// Time at which sending ends, on this host's clock; it may move.
    pub(super) end_ns: AtomicU64,
    /// Longest wait of a ping so far, in nanoseconds. Includes the one under way.
    pub(super) longest_ns: AtomicU64,
    /// Set to end the pinger at once.
    halt: AtomicBool,
    asks: Mutex<Vec<LatencyRequest>>,
    wake: EventFd,
}

impl PingerControl {
    pub(super) fn new(end_ns: u64) -> io::Result<Arc<PingerControl>> {
        Ok(Arc::new(PingerControl {
            end_ns: AtomicU64::new(end_ns),
            longest_ns: AtomicU64::new(0),
            halt: AtomicBool::new(false),
            asks: Mutex::default(),
            wake: EventFd::new()?,
        }))
    }

    /// Sends a request to the service.
    pub(super) fn send(&self, ask: LatencyRequest) {
        let asks = self.asks.lock();
        asks.unwrap_or_else(PoisonError::into_inner).push(ask);
        self.wake.notify();
    }

    /// Ends the pinger.
    pub(super) fn halt(&self) {
        self.halt.store(true, Ordering::Relaxed);
        self.wake.notify();
    }
}

/// Result of the pinger.
#[derive(Debug)]
pub(super) struct PingerResult {
    pub(super) tcp: ProbesMeasured,
    pub(super) udp: Option<ProbesMeasured>,
    /// The control connection, unless the service is lost.
    pub(super) control: Option<ControlClient>,
    pub(super) used: ThreadUse,
}

/// The pinger's state.
pub(super) struct Pinger {
    pub(super) pinger_control: Arc<PingerControl>,
    pub(super) events: Sender<PingerEvent>,
    pub(super) client: ControlClient,
    pub(super) udp: Option<UdpSocket>,
    pub(super) session: u64,
    /// When the run begins, on this host's clock.
    pub(super) origin_ns: u64,
    /// The service's clock less this host's, modulo 2^64.
    pub(super) ahead_ns: u64,
    pub(super) probes: ProbeSpec,
}

impl Pinger {
    /// Pings until the end, and reads until the record and the last probes have come, the service
    /// is lost, or it is halted.
    ///
    /// # Errors
    /// Out of descriptors or memory at the start.
    pub(super) fn run(self) -> io::Result<PingerResult> {
        let _ = sys_thread::set_timer_slack_ns(1);
        // Pings are not to wait for threads that carry flows, where a processor has both.
        sys_thread::go_first();
        self.client.stream.set_nonblocking(true)?;
        let epoll = Epoll::new()?;
        epoll.add(&self.client.stream, 0, flags::READ)?;
        epoll.add(&self.pinger_control.wake, 1, flags::READ)?;
        if let Some(udp) = &self.udp {
            udp.set_nonblocking(true)?;
            epoll.add(udp, 2, flags::READ)?;
        }
        let mut round = PingerState::new(self);
        round.pinger.client.lines.set_max(RECORD_MAX);
        let used = ThreadUse::now();
        let mut events = [EpollEvent::EMPTY; 4];
        loop {
            let now_ns = clock::monotonic_ns();
            round.send(now_ns);
            if round.is_done(now_ns) {
                break;
            }
            epoll.wait(&mut events, Some(round.patience(now_ns)))?;
            round.pinger.pinger_control.wake.drain();
            round.read_replies();
        }
        Ok(round.finish(ThreadUse::now().since(used)))
    }
}

struct PingerState {
    pinger: Pinger,
    gate: SendGate,
    /// Intended time of the first ping that could not leave, where none has left since.
    held_since: Option<Nanos>,
    tcp: ProbeLog,
    udp: ProbeLog,
    /// Time of the next ping.
    due_ns: u64,
    /// When the service was heard last.
    heard_ns: u64,
    out: Vec<u8>,
    has_record: bool,
    is_lost: bool,
}

impl PingerState {
    fn new(pinger: Pinger) -> PingerState {
        PingerState {
            tcp: ProbeLog::new(None),
            udp: ProbeLog::new(Some(pinger.probes.timeout)),
            due_ns: pinger.origin_ns,
            heard_ns: clock::monotonic_ns(),
            out: Vec::new(),
            has_record: false,
            is_lost: false,
            gate: SendGate::default(),
            held_since: None,
            pinger,
        }
    }

    fn end_ns(&self) -> u64 {
        self.pinger.pinger_control.end_ns.load(Ordering::Relaxed)
    }

    fn patience(&self, now_ns: u64) -> Nanos {
        let until_ns = if self.due_ns < self.end_ns() { self.due_ns } else { u64::MAX };
        Nanos(until_ns.saturating_sub(now_ns).min(GLANCE_NS))
    }

    /// Sends what is due. Times that were missed are skipped, so that a late pinger makes no burst.
    /// So are times at which a ping could not leave this host: it would measure the wait of earlier
    /// ones.
    fn send(&mut self, now_ns: u64) {
        let asks = self.pinger.pinger_control.asks.lock();
        let asks = std::mem::take(&mut *asks.unwrap_or_else(PoisonError::into_inner));
        for ask in asks {
            self.out.extend(wire::line(&ask));
        }
        let every_ns = self.pinger.probes.every.0.max(1);
        if now_ns >= self.due_ns && self.due_ns < self.end_ns() {
            let late = Nanos(now_ns - self.due_ns);
            let measured = &mut self.tcp.measured;
            measured.stall_max = measured.stall_max.max(late);
            let missed = late.0 / every_ns;
            let intended = Nanos(self.due_ns + missed * every_ns - self.pinger.origin_ns);
            self.due_ns += (missed + 1) * every_ns;
            // Other requests go first, and are no reason to leave the ping out.
            self.flush();
            if self.out.is_empty() && self.gate.is_open(&self.pinger.client.stream) {
                let sent = Nanos(clock::monotonic_ns() - self.pinger.origin_ns);
                let n = self.tcp.sent(intended, sent);
                self.out.extend(wire::line(&LatencyRequest::Ping { n }));
                let _ = self.pinger.events.send(PingerEvent::Sent);
                self.flush();
                self.gate.has_written(&self.pinger.client.stream);
                self.held_since = None;
            } else {
                self.tcp.measured.held_back += 1;
                self.held_since.get_or_insert(intended);
            }
            self.send_probe(intended);
        } else {
            self.flush();
        }
        let longest = &self.pinger.pinger_control.longest_ns;
        let waiting = self.tcp.waiting(Nanos(now_ns.saturating_sub(self.pinger.origin_ns)));
        longest.fetch_max(waiting.max(self.tcp.measured.longest).0, Ordering::Relaxed);
    }

    fn send_probe(&mut self, intended: Nanos) {
        let Some(udp) = &self.pinger.udp else {
            return;
        };
        let sent = Nanos(clock::monotonic_ns() - self.pinger.origin_ns);
        let number = self.udp.sent(intended, sent);
        let probe =
            ProbeDatagram { session: self.pinger.session, number, reached_ns: 0, left_ns: 0 };
        // A probe that this host does not send is lost like any other.
        let _ = udp.send(&probe.encode());
    }

    fn flush(&mut self) {
        while !self.out.is_empty() {
            match self.pinger.client.stream.write(&self.out) {
                Ok(count) => drop(self.out.drain(..count)),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) => return self.lost(ServiceLost::gone(&e)),
            }
        }
    }

    fn read_replies(&mut self) {
        let mut buffer = [0; 64 << 10];
        loop {
            let lost = match self.pinger.client.stream.read(&mut buffer) {
                Ok(0) => ServiceLost::closed(),
                Ok(count) => {
                    let now_ns = clock::monotonic_ns();
                    self.heard_ns = now_ns;
                    self.pinger.client.lines.push(&buffer[..count]);
                    self.handle_replies(now_ns);
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => ServiceLost::gone(&e),
            };
            self.lost(lost);
            break;
        }
        self.read_probes();
    }

    fn handle_replies(&mut self, now_ns: u64) {
        loop {
            let said = match self.pinger.client.next_message() {
                Ok(None) => return,
                Ok(Some(said)) => said,
                Err(lost) => return self.lost(lost),
            };
            let event = match said {
                LatencyReply::Pong { n, reached_ns, left_ns } => {
                    match self.pinger.back(&mut self.tcp, n, [reached_ns, left_ns, now_ns]) {
                        Some(round_trip) => PingerEvent::Back(round_trip),
                        None => continue,
                    }
                }
                LatencyReply::Progress { at, bytes } => PingerEvent::Progress(at, bytes),
                LatencyReply::Over { reason } => PingerEvent::Over(reason),
                LatencyReply::Record(record) => {
                    self.has_record = true;
                    PingerEvent::Record(record)
                }
                other => return self.lost(unexpected(&other)),
            };
            let _ = self.pinger.events.send(event);
        }
    }

    fn read_probes(&mut self) {
        let mut buffer = [0; PROBE_BYTES + 1];
        while let Some(Ok(count)) = self.pinger.udp.as_ref().map(|udp| udp.recv(&mut buffer)) {
            let now_ns = clock::monotonic_ns();
            let probe = ProbeDatagram::decode(&buffer[..count]);
            let ours = probe.filter(|p| p.session == self.pinger.session);
            if let Some(p) = ours {
                let times = [p.reached_ns, p.left_ns, now_ns];
                self.pinger.back(&mut self.udp, p.number, times);
            }
        }
    }

    fn lost(&mut self, lost: ServiceLost) {
        if !self.is_lost {
            self.is_lost = true;
            let _ = self.pinger.events.send(PingerEvent::Lost(lost));
        }
    }

    fn is_done(&mut self, now_ns: u64) -> bool {
        if now_ns.saturating_sub(self.heard_ns) > SILENCE_NS && now_ns > self.pinger.origin_ns {
            self.lost(ServiceLost::silent());
        }
        let since_end = Nanos(now_ns.saturating_sub(self.end_ns()));
        let udp_done =
            self.udp.back == self.udp.measured.sent || since_end > self.pinger.probes.timeout;
        let halted = self.pinger.pinger_control.halt.load(Ordering::Relaxed);
        halted || self.is_lost || self.has_record && udp_done
    }

    fn finish(self, used: ThreadUse) -> PingerResult {
        let now = Nanos(clock::monotonic_ns().saturating_sub(self.pinger.origin_ns));
        let end = Nanos(self.end_ns().saturating_sub(self.pinger.origin_ns)).min(now);
        let every = self.pinger.probes.every;
        let has_udp = self.pinger.udp.is_some();
        let mut tcp = self.tcp.finish(now);
        if let Some(since) = self.held_since {
            add_held(&mut tcp, every, [since, end]);
        }
        PingerResult {
            tcp,
            udp: has_udp.then(|| self.udp.finish(now)),
            control: (self.has_record && !self.is_lost).then_some(self.pinger.client),
            used,
        }
    }
}

impl Pinger {
    /// Notes that a probe came back. `times`: when it reached and left the service, on the
    /// service's clock, and when it came back, on this host's. Returns the round trip, unless the
    /// probe is late or known already.
    fn back(&self, probes: &mut ProbeLog, n: u64, times: [u64; 3]) -> Option<Nanos> {
        let [reached_ns, left_ns, now_ns] = times;
        let probe = probes.measured.probes.get_mut(usize::try_from(n).ok()?)?;
        let sent_ns = self.origin_ns + probe.sent.0;
        let elapsed = Nanos(now_ns.saturating_sub(sent_ns));
        let is_late = probes.timeout.is_some_and(|timeout| elapsed > timeout);
        if probe.back.is_some() || is_late {
            return None;
        }
        let there_ns = reached_ns.wrapping_sub(sent_ns.wrapping_add(self.ahead_ns));
        let back_ns = now_ns.wrapping_add(self.ahead_ns).wrapping_sub(left_ns);
        // An inexact clock may put it before the send.
        let forward = |ns: u64| Nanos((ns as i64).max(0) as u64);
        let held = Nanos(left_ns.saturating_sub(reached_ns));
        let round_trip = elapsed - held;
        probe.back = Some(ProbeBack { round_trip, up: forward(there_ns), down: forward(back_ns) });
        probes.back += 1;
        probes.measured.longest = probes.measured.longest.max(round_trip);
        Some(round_trip)
    }
}

/// Probes of one kind that are kept.
const PROBES_MAX: usize = 1_000_000;

/// Probes of one kind.
#[derive(Debug)]
struct ProbeLog {
    pub(super) measured: ProbesMeasured,
    /// All before this index have come back.
    pub(super) oldest: usize,
    /// Probes that have come back, or are not kept.
    pub(super) back: u64,
    /// Time after which a probe is lost.
    pub(super) timeout: Option<Nanos>,
}

impl ProbeLog {
    fn new(timeout: Option<Nanos>) -> ProbeLog {
        let pacing_error = Histogram::ready();
        let measured = ProbesMeasured { pacing_error, ..ProbesMeasured::default() };
        ProbeLog { measured, oldest: 0, back: 0, timeout }
    }

    /// Notes a probe that was sent. Returns its number.
    pub(super) fn sent(&mut self, intended: Nanos, sent: Nanos) -> u64 {
        let n = self.measured.sent;
        self.measured.sent += 1;
        self.measured.pacing_error.record(sent - intended);
        if self.measured.probes.len() < PROBES_MAX {
            self.measured.probes.push(Probe { intended, sent, back: None, waited: Nanos::ZERO });
        } else {
            // A probe that is not kept is not waited for.
            self.back += 1;
        }
        n
    }

    /// Time that the oldest probe still out has been under way.
    pub(super) fn waiting(&mut self, now: Nanos) -> Nanos {
        let probes = &self.measured.probes;
        while probes.get(self.oldest).is_some_and(|p| p.back.is_some()) {
            self.oldest += 1;
        }
        probes.get(self.oldest).map_or(Nanos::ZERO, |p| now - p.sent)
    }

    pub(super) fn finish(mut self, now: Nanos) -> ProbesMeasured {
        for probe in self.measured.probes.iter_mut().filter(|probe| probe.back.is_none()) {
            probe.waited = (now - probe.sent).min(self.timeout.unwrap_or(Nanos::MAX));
            self.measured.longest = self.measured.longest.max(probe.waited);
        }
        self.measured
    }
}

/// Pings in a row that could not leave and are no accident.
const HELD_MIN: u64 = 4;

/// Adds pings that could not leave this host from `since` to `until`, the end. Where that is longer
/// than any ping took, the first of them counts as lost after that time. It waited at least that
/// time, and the pings before it do not stand for it.
fn add_held(tcp: &mut ProbesMeasured, every: Nanos, [since, until]: [Nanos; 2]) {
    let waited = until - since;
    let is_long = waited > tcp.longest && waited.0 >= every.0.saturating_mul(HELD_MIN);
    if !is_long || tcp.probes.len() >= PROBES_MAX {
        return;
    }
    tcp.held_back -= 1;
    tcp.sent += 1;
    tcp.probes.push(Probe { intended: since, sent: since, back: None, waited });
    tcp.longest = waited;
}

#[cfg(test)]
mod tests;
