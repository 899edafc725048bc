//! The thread that takes datagrams.

use super::buffer;
use super::clocks::RealTime;
use super::session::{MALFORMED, NOT_OF_THIS_RUN, Session};
use super::spec::UdpServerSpec;
use super::stats::UdpServerStats;
use crate::experiment::udp::datagram::Header;
use crate::experiment::udp::wire::{Begin, Record};
use crate::sys::clock;
use crate::sys::datagrams::{Batch, DatagramSocket};
use crate::sys::epoll::{Epoll, Event, flags};
use crate::sys::eventfd::EventFd;
use crate::sys::thread;
use knee_core::experiment::udp::measure::ServiceFacts;
use knee_core::experiment::udp::spec::ServiceMode;
use knee_core::law::Law;
use knee_core::rng;
use knee_core::time::Nanos;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// Datagrams taken in one call where there is no work to do on them.
const BATCH: usize = 64;

/// Buffers of a batch take no more than this.
const BATCH_BYTES: usize = 1 << 20;

/// Drops at the socket are looked for so often, for the service's own intervals.
const LOOK_NS: u64 = 50_000_000;

/// Between sessions whatever comes is read into buffers of this size.
const IDLE_SIZE: usize = 2_048;

const SOCKET: u64 = 0;
const WAKE: u64 = 1;

/// What the control thread asks of this one.
pub(super) enum Command {
    /// Prepare a session with a client at this address. What is said of it carries the number.
    Begin(u64, Box<Begin>, IpAddr),
    /// Its datagrams come; the run's origin on CLOCK_MONOTONIC.
    Start(u64),
    /// So many were sent, and no more come.
    End(u64),
    /// Its client is gone.
    Abandon,
    /// End the thread.
    Stop,
}

/// What it answers.
pub(super) enum Reply {
    Ready(Box<ServiceFacts>),
    Refused(String),
    Started,
    Record(Box<Record>),
}

/// How both threads reach each other.
pub(super) struct Link {
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) replies: mpsc::Sender<(u64, Reply)>,
    /// Wakes this thread.
    pub(super) wake: Arc<EventFd>,
    /// Wakes the control thread.
    pub(super) control: Arc<EventFd>,
    /// Raised with a command that work is not to hold up.
    pub(super) hurry: Arc<AtomicBool>,
}

/// The thread's state.
pub(super) struct DataThread {
    spec: UdpServerSpec,
    socket: DatagramSocket,
    link: Link,
    epoll: Epoll,
    batch: Batch,
    clocks: RealTime,
    /// The receive buffer as it was before any session.
    rcvbuf_limit: u32,
    /// The processors that the thread may use when none is asked for.
    cpus: Vec<u32>,
    /// Whether a session gave the thread real-time priority.
    is_realtime: bool,
    session: Option<Session>,
    /// The number of the session that was begun last.
    serial: u64,
    stats: UdpServerStats,
    started_ns: u64,
    socket_drops: u32,
    looked_ns: u64,
    /// Since when the thread has been ready to take the next datagram, or should have been.
    free_since_ns: u64,
    /// When it began to wait, where it did since the last datagram.
    waited_from_ns: Option<u64>,
}

impl DataThread {
    pub(super) fn new(
        spec: UdpServerSpec,
        socket: DatagramSocket,
        link: Link,
    ) -> io::Result<DataThread> {
        let epoll = Epoll::new()?;
        epoll.add(&socket, SOCKET, flags::READ)?;
        epoll.add(&*link.wake, WAKE, flags::READ)?;
        let rcvbuf_limit = socket.memory()?.limit;
        let now_ns = clock::monotonic_ns();
        let stats = UdpServerStats {
            interval_s: spec.interval.as_secs_f64(),
            ..UdpServerStats::default()
        };
        Ok(DataThread {
            spec,
            socket,
            link,
            epoll,
            batch: Batch::new(BATCH, IDLE_SIZE),
            clocks: RealTime::now(),
            rcvbuf_limit,
            cpus: Vec::new(),
            is_realtime: false,
            session: None,
            serial: 0,
            stats,
            started_ns: now_ns,
            socket_drops: 0,
            looked_ns: now_ns,
            free_since_ns: now_ns,
            waited_from_ns: None,
        })
    }

    /// Takes datagrams until it is told to stop.
    pub(super) fn run(mut self) -> UdpServerStats {
        self.cpus = thread::affinity().unwrap_or_default();
        let _ = thread::set_timer_slack_ns(1);
        if let Some(cpu) = self.spec.cpu {
            // What is not permitted was refused at the start.
            let _ = thread::set_affinity(&[cpu]);
        }
        while self.pass() {}
        self.look_for_drops(clock::monotonic_ns());
        self.stats.drops = self.socket_drops.into();
        self.stats.elapsed_s = self.elapsed(clock::monotonic_ns()).as_secs_f64();
        self.stats
    }

    /// One round; false once it is to stop.
    fn pass(&mut self) -> bool {
        while let Ok(command) = self.link.commands.try_recv() {
            if matches!(command, Command::Stop) {
                return false;
            }
            self.obey(command);
            self.free_since_ns = clock::monotonic_ns();
        }
        let has_work = self.session.as_ref().is_some_and(|s| !s.work.is_zero());
        let limit = if has_work { 1 } else { BATCH };
        self.note_pause(clock::monotonic_ns());
        let received = self.socket.receive(&mut self.batch, limit);
        let now_ns = clock::monotonic_ns();
        self.free_since_ns = now_ns;
        // Errors of a UDP socket's receive are those that ICMP told of replies: nothing was there.
        let count = received.unwrap_or(0);
        self.clocks.refresh(now_ns);
        self.note_wake(count, now_ns);
        for index in 0..count {
            self.take(index, now_ns);
        }
        if now_ns.saturating_sub(self.looked_ns) > LOOK_NS {
            self.look_for_drops(now_ns);
        }
        self.end_or_wait(count == 0);
        true
    }

    fn take(&mut self, index: usize, now_ns: u64) {
        let Some(session) = &mut self.session else {
            let is_ours = Header::read(self.batch.bytes(index)).is_some();
            self.discard(if is_ours { NOT_OF_THIS_RUN } else { MALFORMED }, now_ns);
            return;
        };
        match session.take(&self.batch, index, self.clocks, now_ns) {
            Ok(arrived_ns) => {
                if let Some(until_ns) = session.work_until_ns(arrived_ns, now_ns) {
                    let (done_ns, pause_ns) = keep_busy(until_ns, now_ns, &self.link.hurry);
                    session.pause_ns_max = session.pause_ns_max.max(pause_ns);
                    self.free_since_ns = done_ns;
                }
                let replied = session.reply(&self.socket, &self.batch, index);
                self.stats.replies += u64::from(replied);
                self.stats.received += 1;
                let at = self.elapsed(now_ns);
                self.stats.interval(at, self.spec.interval).received += 1;
            }
            Err(why) => self.discard(why, now_ns),
        }
    }

    fn discard(&mut self, why: &str, now_ns: u64) {
        match self.stats.discarded.get_mut(why) {
            Some(count) => *count += 1,
            None => drop(self.stats.discarded.insert(why.to_owned(), 1)),
        }
        let at = self.elapsed(now_ns);
        self.stats.interval(at, self.spec.interval).discarded += 1;
    }

    /// Ends the session where it is over, and otherwise waits where nothing was there.
    fn end_or_wait(&mut self, is_empty: bool) {
        let mut timeout = None;
        if let Some(session) = &self.session {
            // Only an end that was told makes it worth asking for the drops.
            let now_ns = clock::monotonic_ns();
            let drops = self.socket_drops;
            timeout = session.left(is_empty, now_ns, drops);
            if timeout.is_some() {
                self.look_for_drops(now_ns);
                timeout = self.left(is_empty, now_ns);
            }
        }
        if timeout == Some(0) {
            self.finish();
        } else if is_empty {
            self.wait(timeout.map(Nanos));
        }
    }

    fn left(&self, is_empty: bool, now_ns: u64) -> Option<u64> {
        let session = self.session.as_ref()?;
        session.left(is_empty, now_ns, self.socket_drops)
    }

    fn wait(&mut self, timeout: Option<Nanos>) {
        let mut events = [Event::EMPTY; 2];
        self.waited_from_ns = Some(clock::monotonic_ns());
        let woken = self.epoll.wait(&mut events, timeout).unwrap_or(&[]);
        if woken.iter().any(|event| event.token() == WAKE) {
            self.link.wake.drain();
        }
        self.free_since_ns = clock::monotonic_ns();
    }

    /// From when the thread could have taken a datagram to now, when it does.
    fn note_pause(&mut self, now_ns: u64) {
        let pause_ns = now_ns.saturating_sub(self.free_since_ns);
        if let Some(session) = &mut self.session {
            session.pause_ns_max = session.pause_ns_max.max(pause_ns);
        }
    }

    /// How long the thread took to wake once a datagram was there is its own pause too.
    fn note_wake(&mut self, count: usize, now_ns: u64) {
        let Some(waited_from_ns) = self.waited_from_ns.take().filter(|_| count > 0) else {
            return;
        };
        let (Some(session), Some(real_ns)) =
            (&mut self.session, self.batch.received_realtime_ns(0))
        else {
            return;
        };
        let there_ns = self
            .clocks
            .to_monotonic(real_ns, now_ns)
            .max(waited_from_ns);
        session.pause_ns_max = session.pause_ns_max.max(now_ns - there_ns);
    }

    fn look_for_drops(&mut self, now_ns: u64) {
        self.looked_ns = now_ns;
        if let Ok(memory) = self.socket.memory() {
            let new = memory.drops.wrapping_sub(self.socket_drops);
            self.socket_drops = memory.drops;
            if new > 0 {
                let at = self.elapsed(now_ns);
                self.stats.interval(at, self.spec.interval).dropped += u64::from(new);
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Begin(serial, begin, peer) => {
                self.serial = serial;
                let reply = self.begin(*begin, peer);
                self.reply(reply.map_or_else(Reply::Refused, |facts| Reply::Ready(facts.into())));
            }
            Command::Start(origin_ns) => {
                self.look_for_drops(clock::monotonic_ns());
                if let Some(session) = &mut self.session {
                    session.start(origin_ns, self.socket_drops);
                }
                self.reply(Reply::Started);
            }
            Command::End(sent) => {
                if let Some(session) = &mut self.session {
                    session.end(sent);
                }
            }
            Command::Abandon => {
                self.link.hurry.store(false, Ordering::Relaxed);
                self.stats.sessions_lost += u64::from(self.session.take().is_some());
            }
            Command::Stop => {}
        }
    }

    /// Sets up what the session asks for, and what it leaves open as it was at the start.
    fn begin(&mut self, begin: Begin, peer: IpAddr) -> Result<ServiceFacts, String> {
        let setup = &begin.setup;
        match setup.cpu.or(self.spec.cpu) {
            Some(cpu) => thread::set_affinity(&[cpu])
                .map_err(|e| format!("the service cannot be bound to processor {cpu}: {e}"))?,
            None => drop(thread::set_affinity(&self.cpus)),
        }
        if setup.realtime != self.is_realtime {
            let set = thread::set_realtime(setup.realtime);
            set.map_err(|e| format!("the service cannot have real-time priority: {e}"))?;
            self.is_realtime = setup.realtime;
        }
        let rcvbuf = setup.rcvbuf.unwrap_or(self.rcvbuf_limit / 2);
        let set = self.socket.set_receive_buffer(rcvbuf);
        set.map_err(|e| format!("a receive buffer of {rcvbuf} bytes: {e}"))?;
        let size = begin.size as usize;
        self.batch = Batch::new((BATCH_BYTES / size).clamp(1, BATCH), size);
        self.empty();
        let memory = self
            .socket
            .memory()
            .map_err(|e| format!("SO_MEMINFO: {e}"))?;
        let local = self.socket.local_address().map_err(|e| e.to_string())?;
        let ip = if local.ip().is_unspecified() {
            peer
        } else {
            local.ip()
        };
        let is_measurable = begin.sharing.is_some() && !begin.gso;
        let measured = is_measurable.then(|| buffer::capacity(ip, memory.limit, begin.size));
        let mode = setup.mode.unwrap_or(self.spec.mode);
        let work = setup.work.unwrap_or(self.spec.work);
        let rng = rng::stream(self.spec.seed, rng::SERVICE + self.stats.sessions);
        self.stats.sessions += 1;
        let facts = ServiceFacts {
            buffer_datagrams: measured.flatten(),
            ..facts(mode, work, memory.limit)
        };
        self.session = Some(Session::new(begin, peer, mode, work, rng));
        Ok(facts)
    }

    /// Whatever is queued came before the session.
    fn empty(&mut self) {
        for _ in 0..10_000 {
            let count = self.socket.receive(&mut self.batch, BATCH).unwrap_or(0);
            if count == 0 {
                return;
            }
            let now_ns = clock::monotonic_ns();
            for _ in 0..count {
                self.discard(NOT_OF_THIS_RUN, now_ns);
            }
        }
    }

    fn finish(&mut self) {
        if let Some(session) = self.session.take() {
            let record = session.finish(self.socket_drops);
            self.reply(Reply::Record(record.into()));
        }
    }

    fn reply(&self, reply: Reply) {
        // The control thread is gone only where the service ends.
        let _ = self.link.replies.send((self.serial, reply));
        self.link.control.notify();
    }

    fn elapsed(&self, now_ns: u64) -> Nanos {
        Nanos(now_ns.saturating_sub(self.started_ns))
    }
}

/// What the service is; to be called on the thread of datagrams, whose processors it tells.
pub(super) fn facts(mode: ServiceMode, work: Law, rcvbuf_limit: u32) -> ServiceFacts {
    ServiceFacts {
        mode: Some(mode),
        work: Some(work),
        rcvbuf_bytes: rcvbuf_limit.into(),
        cpus: thread::affinity().unwrap_or_default(),
        pid: std::process::id(),
        kernel: crate::kernel::host::host().kernel,
        ..ServiceFacts::default()
    }
}

/// Works until `until_ns`: when it was done, and the longest time in which it did not get on.
fn keep_busy(until_ns: u64, from_ns: u64, hurry: &AtomicBool) -> (u64, u64) {
    let (mut before_ns, mut pause_ns) = (from_ns, 0);
    while before_ns < until_ns && !hurry.load(Ordering::Relaxed) {
        std::hint::spin_loop();
        let now_ns = clock::monotonic_ns();
        pause_ns = pause_ns.max(now_ns - before_ns);
        before_ns = now_ns;
    }
    (before_ns, pause_ns)
}
