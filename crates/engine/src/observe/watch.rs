//! Watches a port of this host for the length of a window, on its own thread.

use super::queue::read_queue;
use super::segment;
use super::tally::{SynTally, TimeWindow};
use crate::error::reason;
use crate::kernel::counters::Counters;
use crate::kernel::host::HostTime;
use crate::sys::clock::{monotonic_ns, realtime_ahead_ns};
use crate::sys::packet::{Packet, PacketBatch, PacketSocket};
use crate::threads::StoppableThread;
use knee_load::measure::{Observed, SynSource};
use knee_load::time::Nanos;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Bytes of packets that the kernel keeps between two reads: some 40,000 of about 800 bytes.
pub(super) const BUFFER: usize = 32 << 20;

/// Batches read in one pass: more than the buffer holds. Packets that come meanwhile wait for the
/// next pass.
const BATCHES_MAX: usize = 10_000;

/// Interval of reading packets: the thread is not woken by each.
const LOOK_EVERY: u64 = 5_000_000;

/// Interval if the kernel keeps less than an eighth of the buffer: 400 KB hold some 300 packets.
const LOOK_OFTEN: u64 = 1_000_000;

/// Time before the window at which its initial counters are read, as reading takes a while. So SYNs
/// at its begin are counted.
const EARLY: u64 = 500_000;

/// Interval of reading the accept queue, and the counters if there is no capture.
const SAMPLE_EVERY: u64 = 100_000_000;

/// Counters of connections and of drops.
const COUNTERS: [&str; 14] = [
    "TcpPassiveOpens",
    "TcpAttemptFails",
    "TcpEstabResets",
    "TcpRetransSegs",
    "TcpOutRsts",
    "TcpExtListenOverflows",
    "TcpExtListenDrops",
    "TcpExtTCPReqQFullDrop",
    "TcpExtTCPReqQFullDoCookies",
    "TcpExtSyncookiesSent",
    "TcpExtSyncookiesRecv",
    "TcpExtSyncookiesFailed",
    "TcpExtTCPSynRetrans",
    "TcpExtTCPBacklogDrop",
];

/// A port whose SYNs are captured before its window is known. The kernel timestamps and keeps them,
/// so none is missed.
#[derive(Debug)]
pub struct ArmedWatch {
    port: u16,
    tap: Result<PacketSocket, String>,
    initial: HostReading,
}

impl ArmedWatch {
    /// Begins to capture, or to count if a capture is not permitted. Earlier SYNs are not seen.
    pub fn new(port: u16) -> ArmedWatch {
        ArmedWatch::with_tap(port, open_tap(port))
    }

    /// Counts by the kernel's counters alone, for this reason.
    #[cfg(test)]
    fn with_counters(port: u16, because: &str) -> ArmedWatch {
        ArmedWatch::with_tap(port, Err(because.to_owned()))
    }

    fn with_tap(port: u16, tap: Result<PacketSocket, String>) -> ArmedWatch {
        ArmedWatch { port, tap, initial: HostReading::now() }
    }

    /// Watches a window that begins at `origin_ns` (of CLOCK_MONOTONIC, past or to come) and lasts
    /// for `duration`, counted in intervals too. If it has begun already, the kernel's counters are
    /// read from [`ArmedWatch::new`] on.
    pub fn begin(self, origin_ns: u64, interval: Nanos, duration: Nanos) -> PortWatch {
        let span = TimeWindow::new(origin_ns, interval, duration);
        let (source, tap, because) = match self.tap {
            Ok(tap) => (SynSource::Capture, Some(tap), None),
            Err(because) => (SynSource::Counters, None, Some(because)),
        };
        let mut watcher = WatchThread::new(self.port, span, tap);
        // On the calling thread, so that everything after this call is seen.
        let now = monotonic_ns();
        if now > span.begin {
            watcher.begun = Some(self.initial);
        }
        watcher.open_if_due(now);
        let thread = StoppableThread::start("observe", None, |stop| watcher.run(stop));
        PortWatch {
            source,
            because,
            // Without a thread nothing is seen: the observation has a length of 0.
            thread: thread.ok(),
        }
    }
}

/// Counters and processor time of the host at one time.
#[derive(Debug)]
struct HostReading {
    counters: Counters,
    time: HostTime,
}

impl HostReading {
    fn now() -> HostReading {
        HostReading { counters: Counters::of(&COUNTERS), time: HostTime::now() }
    }
}

/// A port of this host (in this network namespace) that is being watched, until it is finished or
/// dropped.
///
/// With CAP_NET_RAW a capture counts, filtered in the kernel. It has every SYN that came for the
/// port, as it left the interface, before a firewall or the listening socket could drop it.
///
/// Without it, counters of the kernel take its place. The first SYNs are then PassiveOpens +
/// ListenDrops, and nothing tells first ones from repeated ones. PassiveOpens moves as a handshake
/// ends and its connection is made, also one by SYN cookie. So it does not move for a handshake
/// that never ends. ListenDrops moves for each SYN that a listening socket dropped, repeated ones
/// included. The reason was a full accept queue (ListenOverflows) or a full queue of requests
/// (TCPReqQFullDrop). It moves too for each segment that would have ended a handshake but met a
/// full accept queue. Both are of all listening sockets of the network namespace, and are read up
/// to a millisecond off the window's edges. So the figure is exact while nothing is dropped and no
/// other port is in use. It is too high where clients wait long enough to repeat their SYNs (a
/// second).
#[derive(Debug)]
pub struct PortWatch {
    source: SynSource,
    because: Option<String>,
    thread: Option<StoppableThread<Observed>>,
}

impl PortWatch {
    /// Watches `port` for a window that begins at `origin_ns`, from now on: of a window that began
    /// before, only the rest is seen. [`ArmedWatch`] misses nothing.
    #[cfg(test)]
    fn begin(port: u16, origin_ns: u64, interval: Nanos, duration: Nanos) -> PortWatch {
        ArmedWatch::new(port).begin(origin_ns, interval, duration)
    }

    /// What counts the SYNs.
    pub fn source(&self) -> SynSource {
        self.source
    }

    /// Why SYNs are not captured.
    pub fn because(&self) -> Option<&str> {
        self.because.as_deref()
    }

    /// Ends the watch, also before the end of the window, and returns what was seen.
    pub fn finish(self) -> Observed {
        let observed = self.thread.map(StoppableThread::stop);
        Observed { source: self.source, because: self.because, ..observed.unwrap_or_default() }
    }
}

/// How a watch of this port counts SYNs, and why not by a capture.
pub fn syn_source(port: u16) -> (SynSource, Option<String>) {
    match open_tap(port) {
        Ok(_) => (SynSource::Capture, None),
        Err(because) => (SynSource::Counters, Some(because)),
    }
}

fn open_tap(port: u16) -> Result<PacketSocket, String> {
    PacketSocket::open(&segment::filter(port), BUFFER, false).map_err(|e| capture_error(&e))
}

/// Message about a capture that is not possible.
pub(super) fn capture_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "a capture needs the capability CAP_NET_RAW".to_owned(),
        _ => format!("a capture is not possible here: {}", reason(error)),
    }
}

/// Passes on the packets that have come, each with its receive time by CLOCK_MONOTONIC, if the
/// kernel gave one.
pub(super) fn read_packets(
    tap: &PacketSocket,
    batch: &mut PacketBatch,
    mut pass_on: impl FnMut(&Packet<'_>, Option<u64>),
) {
    for _ in 0..BATCHES_MAX {
        match tap.receive(batch) {
            Ok(0) => return,
            Ok(_) => {}
            // An interface went down; the others go on.
            Err(_) => continue,
        }
        // Read for each batch: a step of the time of day in between does no harm.
        let ahead = realtime_ahead_ns();
        for packet in batch.packets() {
            pass_on(&packet, packet.realtime_ns.map(|at| at.saturating_sub(ahead)));
        }
    }
}

/// State of the thread.
struct WatchThread {
    span: TimeWindow,
    tally: SynTally,
    /// The capture, until the window has ended.
    tap: Option<PacketSocket>,
    is_tapped: bool,
    port: u16,
    /// Reading at the begin of the window.
    begun: Option<HostReading>,
    counted: i64,
    next_sample: u64,
}

impl WatchThread {
    fn new(port: u16, span: TimeWindow, tap: Option<PacketSocket>) -> WatchThread {
        WatchThread {
            span,
            tally: SynTally::new(span),
            is_tapped: tap.is_some(),
            tap,
            port,
            begun: None,
            counted: 0,
            next_sample: span.begin,
        }
    }

    fn run(mut self, stop: &AtomicBool) -> Observed {
        let (mut batch, mut is_over) = (PacketBatch::for_packets(), false);
        let is_small = self.tap.as_ref().is_some_and(|t| t.buffer() < BUFFER / 8);
        let look_every = if is_small { LOOK_OFTEN } else { LOOK_EVERY };
        loop {
            let now = monotonic_ns();
            self.open_if_due(now);
            self.read_packets(&mut batch);
            if !is_over && self.begun.is_some() && now >= self.next_sample {
                self.next_sample = now + SAMPLE_EVERY;
                self.sample(now);
            }
            if !is_over && now >= self.span.end {
                is_over = true;
                self.close_window(now);
            }
            let next = [self.opens_at(), self.span.end, now + look_every];
            let next = next.into_iter().filter(|&t| t > now).min();
            let nap = if is_over { Nanos::from_secs(3600).0 } else { next.unwrap_or(now) - now };
            thread::park_timeout(Duration::from_nanos(nap));
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        let until = monotonic_ns();
        if !is_over {
            self.read_packets(&mut batch);
            self.close_window(until);
        }
        self.tally.finish(until)
    }

    fn opens_at(&self) -> u64 {
        self.span.begin.saturating_sub(EARLY)
    }

    fn open_if_due(&mut self, now: u64) {
        if self.begun.is_some() || now < self.opens_at() {
            return;
        }
        self.begun = Some(HostReading::now());
        // Packets lost before do not matter.
        let _ = self.tap.as_ref().map(PacketSocket::take_lost);
    }

    /// Reads the counters at the end, and ends the capture.
    fn close_window(&mut self, now: u64) {
        self.sample(now);
        if let Some(begun) = &self.begun {
            let now = HostReading::now();
            let observed = &mut self.tally.observed;
            observed.kernel = now.counters.moved_since(&begun.counters);
            observed.cpu_busy_percent = now.time.busy_percent_since(begun.time).unwrap_or(0.0);
            let lost = self.tap.as_ref().and_then(|tap| tap.take_lost().ok());
            observed.capture_lost = lost.unwrap_or(0);
        }
        self.tap = None;
    }

    /// Counts packets that have come.
    fn read_packets(&mut self, batch: &mut PacketBatch) {
        let Some(tap) = &self.tap else {
            return;
        };
        let tally = &mut self.tally;
        read_packets(tap, batch, |packet, came_ns| {
            if let Some(segment) = segment::parse(packet.bytes) {
                tally.count(&segment, packet.interface, came_ns.unwrap_or_else(monotonic_ns));
            }
        });
    }

    /// Reads the accept queue, and the number of SYNs from the counters if there is no capture.
    fn sample(&mut self, now: u64) {
        let Some(begun) = &self.begun else {
            return;
        };
        if let Some(queue) = read_queue(self.port) {
            let observed = &mut self.tally.observed;
            let max = observed.accept_queue_max.get_or_insert(0);
            *max = queue.waiting.max(*max);
            observed.accept_queue_limit = queue.limit.or(observed.accept_queue_limit);
        }
        if !self.is_tapped {
            let counters = Counters::of(&COUNTERS);
            let arrived = |c: &Counters| c.get("TcpPassiveOpens") + c.get("TcpExtListenDrops");
            let counted = arrived(&counters) - arrived(&begun.counters);
            let added = u64::try_from(counted - self.counted).unwrap_or(0);
            // The SYNs came before `now`, which may be past the end.
            let last = self.span.end.saturating_sub(1);
            let at_ns = now.saturating_sub(1).min(last).max(self.span.begin);
            self.tally.add_first(added, at_ns);
            self.counted = counted;
        }
    }
}

#[cfg(test)]
mod tests;
