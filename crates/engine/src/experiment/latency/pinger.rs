//! The pinger: a thread with the control connection, whose pings and UDP probes go out at absolute
//! moments, whatever the flows do.

use super::control::unexpected;
use super::gate::Gate;
use super::held;
use super::probe::{PROBE_BYTES, ProbeDatagram};
use super::wire::{self, Ask, Lines, RECORD_MAX, Record, Say};
use crate::control::{Lost, SILENCE_NS};
use crate::sys::clock::{self, ThreadUse};
use crate::sys::epoll::{Epoll, Event, flags};
use crate::sys::eventfd::EventFd;
use crate::sys::thread as sys_thread;
use knee_core::experiment::latency::measure::{Probe, ProbeBack, ProbesMeasured};
use knee_core::experiment::latency::spec::ProbeSpec;
use knee_core::time::Nanos;
use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

/// So many probes of a kind are kept.
pub(super) const PROBES_MAX: usize = 1_000_000;

/// How often the thread looks at what it is told.
const GLANCE_NS: u64 = 20_000_000;

/// What happens at the pinger, for the thread that conducts the run.
#[derive(Debug)]
pub(super) enum News {
    /// A ping was sent.
    Sent,
    /// One came back, after so long.
    Back(Nanos),
    /// What uploads have carried by then.
    Progress(Nanos, Vec<u64>),
    /// The service ended the flows itself.
    Over(String),
    /// What the service saw.
    Record(Box<Record>),
    /// The service is gone.
    Lost(Lost),
}

/// What the pinger and the thread that conducts the run share.
#[derive(Debug)]
pub(super) struct Desk {
    /// From then on nothing is sent, on this host's clock; it may move.
    pub(super) end_ns: AtomicU64,
    /// The longest wait of a ping so far, one that is under way included, in nanoseconds.
    pub(super) longest_ns: AtomicU64,
    /// Whatever is under way, it is over now.
    halt: AtomicBool,
    asks: Mutex<Vec<Ask>>,
    wake: EventFd,
}

impl Desk {
    pub(super) fn new(end_ns: u64) -> io::Result<Arc<Desk>> {
        Ok(Arc::new(Desk {
            end_ns: AtomicU64::new(end_ns),
            longest_ns: AtomicU64::new(0),
            halt: AtomicBool::new(false),
            asks: Mutex::default(),
            wake: EventFd::new()?,
        }))
    }

    /// Says something to the service.
    pub(super) fn ask(&self, ask: Ask) {
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

/// What the pinger measured.
#[derive(Debug)]
pub(super) struct Pinged {
    pub(super) tcp: ProbesMeasured,
    pub(super) udp: Option<ProbesMeasured>,
    /// The control connection, where the service is still there.
    pub(super) control: Option<(TcpStream, Lines)>,
    pub(super) used: ThreadUse,
}

/// Probes of one kind.
#[derive(Debug, Default)]
struct Probes {
    measured: ProbesMeasured,
    /// All before this one have come back.
    oldest: usize,
    /// How many have.
    back: u64,
    /// One that takes longer is lost.
    timeout: Option<Nanos>,
}

/// The pinger's state.
pub(super) struct Pinger {
    pub(super) desk: Arc<Desk>,
    pub(super) events: Sender<News>,
    pub(super) stream: TcpStream,
    pub(super) lines: Lines,
    pub(super) udp: Option<UdpSocket>,
    pub(super) session: u64,
    /// When the run begins, on this host's clock.
    pub(super) origin_ns: u64,
    /// The service's clock less this host's, modulo 2^64.
    pub(super) ahead_ns: u64,
    pub(super) probes: ProbeSpec,
}

impl Pinger {
    /// Pings until the end, and listens until the record and the last probes have come, the service
    /// is lost, or it is told to halt.
    ///
    /// # Errors
    /// Out of descriptors or memory at the very start.
    pub(super) fn run(self) -> io::Result<Pinged> {
        let _ = sys_thread::set_timer_slack_ns(1);
        // Pings are not to wait for threads that carry flows, where a processor has both.
        sys_thread::go_first();
        self.stream.set_nonblocking(true)?;
        let epoll = Epoll::new()?;
        epoll.add(&self.stream, 0, flags::READ)?;
        epoll.add(&self.desk.wake, 1, flags::READ)?;
        if let Some(udp) = &self.udp {
            udp.set_nonblocking(true)?;
            epoll.add(udp, 2, flags::READ)?;
        }
        let mut round = Round {
            tcp: Probes::default(),
            udp: Probes {
                timeout: Some(self.probes.timeout),
                ..Probes::default()
            },
            due_ns: self.origin_ns,
            heard_ns: clock::monotonic_ns(),
            out: Vec::new(),
            has_record: false,
            is_lost: false,
            gate: Gate::default(),
            held_since: None,
            pinger: self,
        };
        round.pinger.lines.set_max(RECORD_MAX);
        let used = ThreadUse::now();
        let mut events = [Event::EMPTY; 4];
        loop {
            let now_ns = clock::monotonic_ns();
            round.send(now_ns);
            if round.is_done(now_ns) {
                break;
            }
            epoll.wait(&mut events, Some(round.patience(now_ns)))?;
            round.pinger.desk.wake.drain();
            round.listen();
        }
        Ok(round.finish(ThreadUse::now().since(used)))
    }
}

struct Round {
    pinger: Pinger,
    gate: Gate,
    /// The first ping was due then of those that could not leave, where none has since.
    held_since: Option<Nanos>,
    tcp: Probes,
    udp: Probes,
    /// When the next ping is due.
    due_ns: u64,
    /// When the service was heard last.
    heard_ns: u64,
    out: Vec<u8>,
    has_record: bool,
    is_lost: bool,
}

impl Round {
    fn end_ns(&self) -> u64 {
        self.pinger.desk.end_ns.load(Ordering::Relaxed)
    }

    fn patience(&self, now_ns: u64) -> Nanos {
        let until_ns = if self.due_ns < self.end_ns() {
            self.due_ns
        } else {
            u64::MAX
        };
        Nanos(until_ns.saturating_sub(now_ns).min(GLANCE_NS))
    }

    /// Sends what is due. Moments that were missed are skipped: the pinger's own lateness is to
    /// make no burst of pings. So are those at which a ping could not leave this host: it would
    /// measure how long earlier ones take to.
    fn send(&mut self, now_ns: u64) {
        let asks = self.pinger.desk.asks.lock();
        let asks = std::mem::take(&mut *asks.unwrap_or_else(PoisonError::into_inner));
        for ask in asks {
            self.out.extend(wire::line(&ask));
        }
        let every_ns = self.pinger.probes.every.0.max(1);
        if now_ns >= self.due_ns && self.due_ns < self.end_ns() {
            let missed = (now_ns - self.due_ns) / every_ns;
            let intended = Nanos(self.due_ns + missed * every_ns - self.pinger.origin_ns);
            self.due_ns += (missed + 1) * every_ns;
            // What is asked besides goes first, and is no reason to leave the ping out.
            self.flush();
            if self.out.is_empty() && self.gate.is_open(&self.pinger.stream) {
                let sent = Nanos(clock::monotonic_ns() - self.pinger.origin_ns);
                let n = self.tcp.sent(intended, sent);
                self.out.extend(wire::line(&Ask::Ping { n }));
                let _ = self.pinger.events.send(News::Sent);
                self.flush();
                self.gate.has_written(&self.pinger.stream);
                self.held_since = None;
            } else {
                self.tcp.measured.held_back += 1;
                self.held_since.get_or_insert(intended);
            }
            self.send_udp(intended);
        } else {
            self.flush();
        }
        let longest = &self.pinger.desk.longest_ns;
        let waiting = self
            .tcp
            .waiting(Nanos(now_ns.saturating_sub(self.pinger.origin_ns)));
        longest.fetch_max(waiting.max(self.tcp.measured.longest).0, Ordering::Relaxed);
    }

    fn send_udp(&mut self, intended: Nanos) {
        let Some(udp) = &self.pinger.udp else {
            return;
        };
        let sent = Nanos(clock::monotonic_ns() - self.pinger.origin_ns);
        let number = self.udp.sent(intended, sent);
        let probe = ProbeDatagram {
            session: self.pinger.session,
            number,
            reached_ns: 0,
            left_ns: 0,
        };
        // One that this host does not send is lost like any other.
        let _ = udp.send(&probe.encode());
    }

    fn flush(&mut self) {
        while !self.out.is_empty() {
            match self.pinger.stream.write(&self.out) {
                Ok(count) => drop(self.out.drain(..count)),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) => return self.lost(Lost::gone(&e)),
            }
        }
    }

    fn listen(&mut self) {
        let mut buffer = [0; 64 << 10];
        loop {
            match self.pinger.stream.read(&mut buffer) {
                Ok(0) => {
                    self.lost(Lost::closed());
                    break;
                }
                Ok(count) => {
                    let now_ns = clock::monotonic_ns();
                    self.heard_ns = now_ns;
                    self.pinger.lines.push(&buffer[..count]);
                    self.hear(now_ns);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => {
                    self.lost(Lost::gone(&e));
                    break;
                }
            }
        }
        self.listen_udp();
    }

    fn hear(&mut self, now_ns: u64) {
        loop {
            let said = match self.pinger.lines.take() {
                Ok(None) => return,
                Ok(Some(line)) => serde_json::from_slice(&line).ok(),
                Err(_) => None,
            };
            let event = match said {
                Some(Say::Pong {
                    n,
                    reached_ns,
                    left_ns,
                }) => {
                    let back = self
                        .pinger
                        .back(&mut self.tcp, n, [reached_ns, left_ns, now_ns]);
                    match back {
                        Some(round_trip) => News::Back(round_trip),
                        None => continue,
                    }
                }
                Some(Say::Progress { at, bytes }) => News::Progress(at, bytes),
                Some(Say::Over { reason }) => News::Over(reason),
                Some(Say::Record(record)) => {
                    self.has_record = true;
                    News::Record(record)
                }
                Some(other) => return self.lost(unexpected(&other)),
                None => return self.lost(Lost::nonsense()),
            };
            let _ = self.pinger.events.send(event);
        }
    }

    fn listen_udp(&mut self) {
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

    fn lost(&mut self, lost: Lost) {
        if !self.is_lost {
            self.is_lost = true;
            let _ = self.pinger.events.send(News::Lost(lost));
        }
    }

    fn is_done(&mut self, now_ns: u64) -> bool {
        if now_ns.saturating_sub(self.heard_ns) > SILENCE_NS && now_ns > self.pinger.origin_ns {
            self.lost(Lost::silent());
        }
        let since_end = Nanos(now_ns.saturating_sub(self.end_ns()));
        let udp_done =
            self.udp.back == self.udp.measured.sent || since_end > self.pinger.probes.timeout;
        let halted = self.pinger.desk.halt.load(Ordering::Relaxed);
        halted || self.is_lost || self.has_record && udp_done
    }

    fn finish(self, used: ThreadUse) -> Pinged {
        let now = Nanos(clock::monotonic_ns().saturating_sub(self.pinger.origin_ns));
        let end = Nanos(self.end_ns().saturating_sub(self.pinger.origin_ns)).min(now);
        let every = self.pinger.probes.every;
        let has_udp = self.pinger.udp.is_some();
        let control = (self.pinger.stream, self.pinger.lines);
        let mut tcp = self.tcp.finish(now);
        if let Some(since) = self.held_since {
            held::add(&mut tcp, every, [since, end]);
        }
        Pinged {
            tcp,
            udp: has_udp.then(|| self.udp.finish(now)),
            control: (self.has_record && !self.is_lost).then_some(control),
            used,
        }
    }
}

impl Pinger {
    /// A probe came back: when it reached the service and left it, on the service's clock, and when
    /// it came, on ours. Its round trip, where it counts.
    fn back(&self, probes: &mut Probes, n: u64, times: [u64; 3]) -> Option<Nanos> {
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
        // A clock that is known too inexactly may show it before it was sent.
        let forward = |ns: u64| Nanos((ns as i64).max(0) as u64);
        let held = Nanos(left_ns.saturating_sub(reached_ns));
        let round_trip = elapsed - held;
        probe.back = Some(ProbeBack {
            round_trip,
            up: forward(there_ns),
            down: forward(back_ns),
        });
        let sent = probe.sent;
        probes.back += 1;
        probes.lengthen(round_trip, sent);
        Some(round_trip)
    }
}

impl Probes {
    /// One was sent; its number.
    fn sent(&mut self, intended: Nanos, sent: Nanos) -> u64 {
        let n = self.measured.sent;
        self.measured.sent += 1;
        self.measured.pacing_error.record(sent - intended);
        if self.measured.probes.len() < PROBES_MAX {
            self.measured.probes.push(Probe {
                intended,
                sent,
                back: None,
                waited: Nanos::ZERO,
            });
        } else {
            // What is not kept is not waited for either.
            self.back += 1;
        }
        n
    }

    /// How long the oldest that has not come back has been under way.
    fn waiting(&mut self, now: Nanos) -> Nanos {
        let probes = &self.measured.probes;
        while probes.get(self.oldest).is_some_and(|p| p.back.is_some()) {
            self.oldest += 1;
        }
        probes
            .get(self.oldest)
            .map_or(Nanos::ZERO, |p| now - p.sent)
    }

    fn lengthen(&mut self, wait: Nanos, sent: Nanos) {
        if wait > self.measured.longest {
            (self.measured.longest, self.measured.longest_at) = (wait, sent);
        }
    }

    fn finish(mut self, now: Nanos) -> ProbesMeasured {
        for n in 0..self.measured.probes.len() {
            let probe = &mut self.measured.probes[n];
            if probe.back.is_none() {
                probe.waited = (now - probe.sent).min(self.timeout.unwrap_or(Nanos::MAX));
                let (waited, sent) = (probe.waited, probe.sent);
                self.lengthen(waited, sent);
            }
        }
        self.measured
    }
}
