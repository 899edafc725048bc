//! The thread that takes datagrams, and how many its receive buffer holds: measured, as the
//! kernel's bookkeeping is its own.

use super::session::{MALFORMED, NOT_OF_THIS_RUN, RealtimeOffset, UdpSession};
use super::{UdpServerSpec, UdpServerStats};
use crate::experiment::udp::wire::{DatagramHeader, UdpReply, UdpSessionSpec};
use crate::sys::datagrams::{DatagramBatch, DatagramSocket};
use crate::sys::epoll::{Epoll, EpollEvent, EventFd, flags};
use crate::sys::{clock, thread};
use knee_load::experiment::udp::{ServiceFacts, ServiceMode};
use knee_load::law::Law;
use knee_load::rng;
use knee_load::time::Nanos;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

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

/// Commands of the control thread.
pub(super) enum DataCommand {
    /// Prepare a session with the client at this address. All replies about it carry the number.
    Begin(u64, Box<UdpSessionSpec>, IpAddr),
    /// Datagrams of the session come; origin of the run on CLOCK_MONOTONIC.
    Start(u64),
    /// Datagrams that were sent; no more come.
    End(u64),
    /// Its client is gone.
    Abandon,
}

/// Channels between the two threads.
pub(super) struct ThreadLink {
    pub(super) commands: mpsc::Receiver<DataCommand>,
    /// Replies to the client, each with the number of its session.
    pub(super) replies: mpsc::Sender<(u64, UdpReply)>,
    /// Wakes this thread.
    pub(super) wake: Arc<EventFd>,
    /// Wakes the control thread.
    pub(super) control: Arc<EventFd>,
    /// Set with a command that must not wait for the work in progress.
    pub(super) hurry: Arc<AtomicBool>,
}

/// The thread's state.
pub(super) struct DataThread {
    spec: UdpServerSpec,
    socket: DatagramSocket,
    link: ThreadLink,
    epoll: Epoll,
    batch: DatagramBatch,
    clocks: RealtimeOffset,
    /// The receive buffer as it was before any session.
    rcvbuf_limit: u32,
    /// The processors that the thread may use when none is asked for.
    cpus: Vec<u32>,
    /// Whether a session gave the thread real-time priority.
    is_realtime: bool,
    session: Option<UdpSession>,
    /// The number of the session that was begun last.
    serial: u64,
    stats: UdpServerStats,
    started_ns: u64,
    socket_drops: u32,
    looked_ns: u64,
    /// Time since which the thread has been ready for the next datagram, or should have been.
    free_since_ns: u64,
    /// Begin of the wait for a datagram, if it has waited since the last one.
    waited_from_ns: Option<u64>,
}

impl DataThread {
    pub(super) fn new(
        spec: UdpServerSpec,
        socket: DatagramSocket,
        link: ThreadLink,
    ) -> io::Result<DataThread> {
        let epoll = Epoll::new()?;
        epoll.add(&socket, SOCKET, flags::READ)?;
        epoll.add(&*link.wake, WAKE, flags::READ)?;
        let rcvbuf_limit = socket.memory()?.limit;
        let now_ns = clock::monotonic_ns();
        let stats =
            UdpServerStats { interval_s: spec.interval.as_secs_f64(), ..UdpServerStats::default() };
        Ok(DataThread {
            spec,
            socket,
            link,
            epoll,
            batch: DatagramBatch::new(BATCH, IDLE_SIZE),
            clocks: RealtimeOffset::now(),
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

    /// Takes datagrams until it is stopped.
    pub(super) fn run(mut self, stop: &AtomicBool) -> UdpServerStats {
        self.cpus = thread::affinity().unwrap_or_default();
        let _ = thread::set_timer_slack_ns(1);
        if let Some(cpu) = self.spec.cpu {
            // What is not permitted was refused at the start.
            let _ = thread::set_affinity(&[cpu]);
        }
        while !stop.load(Ordering::Relaxed) {
            self.pass(stop);
        }
        self.read_drops(clock::monotonic_ns());
        self.stats.drops = self.socket_drops.into();
        self.stats.elapsed_s = self.elapsed(clock::monotonic_ns()).as_secs_f64();
        self.stats
    }

    fn pass(&mut self, stop: &AtomicBool) {
        while let Ok(command) = self.link.commands.try_recv() {
            self.execute(command);
            self.free_since_ns = clock::monotonic_ns();
        }
        let has_work = self.session.as_ref().is_some_and(|s| !s.work.is_zero());
        let limit = if has_work { 1 } else { BATCH };
        // The thread could have taken a datagram since then, and did not.
        let pause_ns = clock::monotonic_ns().saturating_sub(self.free_since_ns);
        if let Some(session) = &mut self.session {
            session.pause_ns_max = session.pause_ns_max.max(pause_ns);
        }
        let received = self.socket.receive(&mut self.batch, limit);
        let now_ns = clock::monotonic_ns();
        self.free_since_ns = now_ns;
        // Errors of a UDP socket's receive are those that ICMP told of replies: nothing was there.
        let count = received.unwrap_or(0);
        self.clocks.refresh(now_ns);
        self.note_wake(count, now_ns);
        for index in 0..count {
            self.take(index, now_ns, stop);
        }
        if now_ns.saturating_sub(self.looked_ns) > LOOK_NS {
            self.read_drops(now_ns);
        }
        self.end_or_wait(count == 0);
    }

    fn take(&mut self, index: usize, now_ns: u64, stop: &AtomicBool) {
        let Some(session) = &mut self.session else {
            let is_ours = DatagramHeader::read(self.batch.bytes(index)).is_some();
            self.discard(if is_ours { NOT_OF_THIS_RUN } else { MALFORMED }, now_ns);
            return;
        };
        match session.take(&self.batch, index, self.clocks, now_ns) {
            Ok(arrived_ns) => {
                if let Some(until_ns) = session.work_until_ns(arrived_ns, now_ns) {
                    let leave = [&self.link.hurry, stop];
                    let (done_ns, pause_ns) = keep_busy(until_ns, now_ns, leave);
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
        let now_ns = clock::monotonic_ns();
        // Drops are read only once the client has ended the session.
        if self.left(is_empty, now_ns).is_some() {
            self.read_drops(now_ns);
        }
        let timeout = self.left(is_empty, now_ns);
        if timeout == Some(0) {
            self.finish();
        } else if is_empty {
            self.wait(timeout.map(Nanos));
        }
    }

    fn left(&self, is_empty: bool, now_ns: u64) -> Option<u64> {
        self.session.as_ref()?.left(is_empty, now_ns, self.socket_drops)
    }

    fn wait(&mut self, timeout: Option<Nanos>) {
        let mut events = [EpollEvent::EMPTY; 2];
        self.waited_from_ns = Some(clock::monotonic_ns());
        let woken = self.epoll.wait(&mut events, timeout).unwrap_or(&[]);
        if woken.iter().any(|event| event.token() == WAKE) {
            self.link.wake.drain();
        }
        self.free_since_ns = clock::monotonic_ns();
    }

    /// Notes the time that the thread took to wake up, which counts as a pause.
    fn note_wake(&mut self, count: usize, now_ns: u64) {
        let Some(waited_from_ns) = self.waited_from_ns.take().filter(|_| count > 0) else {
            return;
        };
        let (Some(session), Some(real_ns)) =
            (&mut self.session, self.batch.received_realtime_ns(0))
        else {
            return;
        };
        let there_ns = self.clocks.to_monotonic(real_ns, now_ns).max(waited_from_ns);
        session.pause_ns_max = session.pause_ns_max.max(now_ns - there_ns);
    }

    fn read_drops(&mut self, now_ns: u64) {
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

    fn execute(&mut self, command: DataCommand) {
        match command {
            DataCommand::Begin(serial, begin, peer) => {
                self.serial = serial;
                let reply = match self.begin(*begin, peer) {
                    Ok(facts) => UdpReply::Ready { facts: facts.into() },
                    Err(reason) => UdpReply::Refused { reason },
                };
                self.reply(reply);
            }
            DataCommand::Start(origin_ns) => {
                self.read_drops(clock::monotonic_ns());
                if let Some(session) = &mut self.session {
                    session.start(origin_ns, self.socket_drops);
                }
                self.reply(UdpReply::Started);
            }
            DataCommand::End(sent) => {
                if let Some(session) = &mut self.session {
                    session.end(sent);
                }
            }
            DataCommand::Abandon => {
                self.link.hurry.store(false, Ordering::Relaxed);
                self.stats.sessions_lost += u64::from(self.session.take().is_some());
            }
        }
    }

    /// Sets up what the session asks for; the rest is as at the start of the service.
    fn begin(&mut self, begin: UdpSessionSpec, peer: IpAddr) -> Result<ServiceFacts, String> {
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
        self.batch = DatagramBatch::new((BATCH_BYTES / size).clamp(1, BATCH), size);
        self.empty();
        let memory = self.socket.memory().map_err(|e| format!("SO_MEMINFO: {e}"))?;
        let local = self.socket.local_address().map_err(|e| e.to_string())?;
        let ip = if local.ip().is_unspecified() { peer } else { local.ip() };
        let is_measurable = begin.sharing.is_some() && !begin.gso;
        let buffer_datagrams = if is_measurable {
            buffer_capacity(ip, memory.limit, begin.size).ok().flatten()
        } else {
            None
        };
        let mode = setup.mode.unwrap_or(self.spec.mode);
        let work = setup.work.unwrap_or(self.spec.work);
        let rng = rng::stream(self.spec.seed, rng::SERVICE + self.stats.sessions);
        self.stats.sessions += 1;
        let facts = ServiceFacts { buffer_datagrams, ..facts(mode, work, memory.limit) };
        self.session = Some(UdpSession::new(begin, peer, mode, work, rng));
        Ok(facts)
    }

    /// Drops what is queued: it came before the session.
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
            self.reply(UdpReply::Record(record.into()));
        }
    }

    fn reply(&self, reply: UdpReply) {
        // The control thread is gone only where the service ends.
        let _ = self.link.replies.send((self.serial, reply));
        self.link.control.notify();
    }

    fn elapsed(&self, now_ns: u64) -> Nanos {
        Nanos(now_ns.saturating_sub(self.started_ns))
    }
}

/// Properties of the service. Call it on the thread of datagrams: they include its processors.
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

/// Works until `until_ns`, or until one of `leave` is set. Returns the time at the end, and the
/// longest time in which the thread did not run.
fn keep_busy(until_ns: u64, from_ns: u64, leave: [&AtomicBool; 2]) -> (u64, u64) {
    let (mut before_ns, mut pause_ns) = (from_ns, 0);
    let leaves = || leave.iter().any(|l| l.load(Ordering::Relaxed));
    while before_ns < until_ns && !leaves() {
        std::hint::spin_loop();
        let now_ns = clock::monotonic_ns();
        pause_ns = pause_ns.max(now_ns - before_ns);
        before_ns = now_ns;
    }
    (before_ns, pause_ns)
}

/// A buffer that holds more than this is not filled: 4 MiB hold some 10,000 of the smallest.
const DATAGRAMS_MAX: u64 = 200_000;
/// Filling takes no more processor time than this. A stall of the machine takes none.
const PATIENCE_NS: u64 = 300_000_000;

/// Fills a twin of the service's socket, which nobody reads, with datagrams of `size` bytes, and
/// returns how many it took. `None`: it took more than could be sent in the time given to this.
///
/// Each datagram that the kernel does not take it counts for the whole network namespace
/// (RcvbufErrors). So the first that would be dropped is not sent: whoever compares that counter
/// with the ledger finds them equal. Which that is goes by the kernel's rule, see
/// [`counts_the_next`]; should a kernel drop one earlier, that ends it too.
///
/// That is what it holds from empty. While it is never empty it takes up to a quarter less (see
/// [`super`]). The room that a datagram takes depends on how its memory was allocated. The sender
/// allocates it where both are on one machine, otherwise the network driver. So this holds for
/// senders on this machine alone.
///
/// # Errors
/// The kernel does not permit it.
fn buffer_capacity(ip: IpAddr, limit_bytes: u32, size: u32) -> io::Result<Option<u64>> {
    let twin = DatagramSocket::bind(SocketAddr::new(ip, 0))?;
    twin.set_receive_buffer(limit_bytes / 2)?;
    let before = twin.memory()?;
    if before.limit.abs_diff(limit_bytes) > 1 {
        return Ok(None);
    }
    let sender = UdpSocket::bind(SocketAddr::new(ip, 0))?;
    sender.connect(twin.local_address()?)?;
    sender.set_nonblocking(true)?;
    let payload = vec![0; size as usize];
    let counts_the_next = counts_the_next();
    let mut one = 0;
    let give_up = clock::thread_cpu_ns() + PATIENCE_NS;
    for sent in 1..=DATAGRAMS_MAX {
        while let Err(error) = sender.send(&payload) {
            if error.kind() != io::ErrorKind::WouldBlock || clock::thread_cpu_ns() > give_up {
                return Err(error);
            }
        }
        let memory = twin.memory()?;
        let drops = memory.drops.wrapping_sub(before.drops);
        if sent == 1 {
            one = memory.used;
        }
        let next = if counts_the_next { one } else { 0 };
        if drops > 0 || memory.used.saturating_add(next) > memory.limit {
            return Ok(Some(sent.saturating_sub(u64::from(drops))));
        }
        if clock::thread_cpu_ns() > give_up {
            break;
        }
    }
    Ok(None)
}

/// Whether a datagram has to fit with those before it, as from Linux 6.18 on. Before, it was taken
/// while those before it did not exceed the buffer (__udp_enqueue_schedule_skb in net/ipv4/udp.c).
fn counts_the_next() -> bool {
    is_from_6_18(&crate::kernel::host::host().kernel)
}

fn is_from_6_18(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map(|n| n.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(18))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_goes_by_the_kernels_version() {
        for (release, counts) in [
            ("6.18.44-fc", true),
            ("6.17.9", false),
            ("7.0-rc1", true),
            ("5.15.0-91-generic", false),
            ("", false),
        ] {
            assert_eq!(is_from_6_18(release), counts, "{release}");
        }
    }

    #[test]
    fn capacity_grows_with_the_buffer_and_falls_with_the_size() {
        let ip = "127.0.0.1".parse().unwrap();
        let small = buffer_capacity(ip, 8_192, 64).unwrap().expect("it can be filled");
        let large = buffer_capacity(ip, 65_536, 64).unwrap().expect("it can be filled");
        let long = buffer_capacity(ip, 65_536, 1_400).unwrap().expect("it can be filled");
        assert!(0 < small && small < long && long < large, "{small} {long} {large}");
    }
}
