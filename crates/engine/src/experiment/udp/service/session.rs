//! One session: what is asked, what came, and the record that it ends in.

use crate::experiment::udp::wire::{DatagramHeader, Sharing, UdpServiceRecord, UdpSessionSpec};
use crate::kernel::drops::{DropReading, Drops};
use crate::kernel::freed::{self, FreedPackets};
use crate::sys::clock::{self, ThreadUse};
use crate::sys::datagrams::{DatagramBatch, DatagramSocket};
use knee_load::experiment::udp::recorder::DatagramRecorder;
use knee_load::experiment::udp::{DropCounter, DropPlace, ServiceMode};
use knee_load::law::Law;
use knee_load::rng::Rng;
use knee_load::time::Nanos;
use std::net::IpAddr;

/// Arrivals kept: 16 MB in memory, some 10 MB in the record.
const ARRIVALS_MAX: usize = 2_000_000;

/// Silence after which nothing more will come: longer than any path delays a datagram.
const QUIET_NS: u64 = 200_000_000;

/// Time after the last send in which the service still works on datagrams. What is queued then is
/// counted without work.
const WORK_AFTER_END_NS: u64 = 5_000_000_000;

/// Time after the last send at which the session ends, whatever still comes.
const DRAIN_NS: u64 = 8_000_000_000;

/// Longest work on one datagram, whatever length its law yields.
const WORK_NS_MAX: u64 = 60_000_000_000;

/// Reason: a datagram of another run or of no run.
pub(super) const NOT_OF_THIS_RUN: &str = "not_of_this_run";
/// Reason: too short, too long, or without the header.
pub(super) const MALFORMED: &str = "malformed";

/// A session of one client.
pub(super) struct UdpSession {
    begin: UdpSessionSpec,
    peer: IpAddr,
    mode: ServiceMode,
    pub(super) work: Law,
    rng: Rng,
    recorder: DatagramRecorder,
    /// The kernel's reasons for drops, or why they are not watched. `None`: client and service
    /// share the network namespace, where nothing between them drops.
    freed: Option<Result<FreedPackets, String>>,
    quiet: DropReading,
    /// `None` until the client says that it starts.
    running: Option<StartedSession>,
    ending: Option<EndingSession>,
    replies: u64,
    /// Time at which the datagram in work is done, in ideal time; CLOCK_MONOTONIC.
    free_at_ns: u64,
    pub(super) pause_ns_max: u64,
}

struct StartedSession {
    origin_ns: u64,
    socket_drops: u32,
    begun: DropReading,
    used: ThreadUse,
}

struct EndingSession {
    sent: u64,
    since_ns: u64,
    /// Time of the last datagram of this run, or of the end request.
    last_ns: u64,
}

impl UdpSession {
    /// A session that has not started. The quiet time before the trial begins now.
    pub(super) fn new(
        begin: UdpSessionSpec,
        peer: IpAddr,
        mode: ServiceMode,
        work: Law,
        rng: Rng,
    ) -> UdpSession {
        let (clients, interval, duration) = (begin.clients, begin.interval, begin.duration);
        let is_apart = begin.sharing != Some(Sharing::Namespace);
        let freed = is_apart.then(|| FreedPackets::watch().map_err(|e| freed::in_words(&e)));
        UdpSession {
            recorder: DatagramRecorder::new(clients, interval, duration, ARRIVALS_MAX),
            begin,
            peer,
            mode,
            work,
            rng,
            quiet: DropReading::now(watched(&freed)),
            freed,
            running: None,
            ending: None,
            replies: 0,
            free_at_ns: 0,
            pause_ns_max: 0,
        }
    }

    /// Begins to count datagrams. Call it on the thread that takes them.
    pub(super) fn start(&mut self, origin_ns: u64, socket_drops: u32) {
        self.running = Some(StartedSession {
            origin_ns,
            socket_drops,
            begun: DropReading::now(watched(&self.freed)),
            used: ThreadUse::now(),
        });
    }

    /// Ends the session: the client has sent `sent` datagrams and sends no more.
    pub(super) fn end(&mut self, sent: u64) {
        let now_ns = clock::monotonic_ns();
        self.ending = Some(EndingSession { sent, since_ns: now_ns, last_ns: now_ns });
    }

    /// Takes one datagram. Returns its arrival, or why it is not of this run.
    #[inline]
    pub(super) fn take(
        &mut self,
        batch: &DatagramBatch,
        index: usize,
        clocks: RealtimeOffset,
        now_ns: u64,
    ) -> Result<u64, &'static str> {
        let bytes = batch.bytes(index);
        let why = match (DatagramHeader::read(bytes), &self.running) {
            (Some(header), Some(running))
                if header.session == self.begin.session
                    && batch.source(index) == Some(self.peer) =>
            {
                let is_whole = bytes.len() == self.begin.size as usize && !batch.is_cut(index);
                if is_whole && header.client < self.begin.clients {
                    let arrived_ns = batch
                        .received_realtime_ns(index)
                        .map_or(now_ns, |real| clocks.to_monotonic(real, now_ns));
                    let arrived = Nanos(arrived_ns.saturating_sub(running.origin_ns));
                    self.recorder.record(header.client, header.number, header.sent, arrived);
                    if let Some(ending) = &mut self.ending {
                        ending.last_ns = now_ns;
                    }
                    return Ok(arrived_ns);
                }
                MALFORMED
            }
            (Some(_), _) => NOT_OF_THIS_RUN,
            (None, _) => MALFORMED,
        };
        self.recorder.discard(why);
        Err(why)
    }

    /// Time at which the work on a datagram that arrived at `arrived_ns` is done, in ideal time.
    /// Work begins when the datagram came or when the one before was done, whichever is later. So
    /// no lateness of the thread adds up, and the station serves exactly 1/E\[S\] when saturated.
    /// `None`: no work.
    #[inline]
    pub(super) fn work_until_ns(&mut self, arrived_ns: u64, now_ns: u64) -> Option<u64> {
        let too_late = |e: &EndingSession| now_ns.saturating_sub(e.since_ns) > WORK_AFTER_END_NS;
        if self.work.is_zero() || self.ending.as_ref().is_some_and(too_late) {
            return None;
        }
        let work_ns = self.work.sample(&mut self.rng).0.min(WORK_NS_MAX);
        self.free_at_ns = arrived_ns.max(self.free_at_ns).saturating_add(work_ns);
        Some(self.free_at_ns)
    }

    /// Sends a datagram of this run back, in echo mode. Returns whether it did.
    #[inline]
    pub(super) fn reply(
        &mut self,
        socket: &DatagramSocket,
        batch: &DatagramBatch,
        index: usize,
    ) -> bool {
        let replied = self.mode == ServiceMode::Echo && socket.send_back(batch, index);
        self.replies += u64::from(replied);
        replied
    }

    /// Time to wait for a datagram before the session is over. `None`: the session is not ending;
    /// zero: it is over. `is_empty`: no datagram was queued.
    pub(super) fn left(&self, is_empty: bool, now_ns: u64, socket_drops: u32) -> Option<u64> {
        let ending = self.ending.as_ref()?;
        let drops = self.drops(socket_drops);
        let received = self.recorder.received();
        let all_came = received >= ending.sent || is_empty && received + drops >= ending.sent;
        if all_came || now_ns.saturating_sub(ending.since_ns) >= DRAIN_NS {
            return Some(0);
        }
        let quiet_ns = now_ns.saturating_sub(ending.last_ns);
        // Where something is there, it is not over yet, however long ago the last one came.
        Some(QUIET_NS.saturating_sub(quiet_ns).max(u64::from(!is_empty)))
    }

    fn drops(&self, socket_drops: u32) -> u64 {
        let before = self.running.as_ref().map_or(socket_drops, |r| r.socket_drops);
        socket_drops.wrapping_sub(before).into()
    }

    /// Returns the record. Call it on the thread that took the datagrams.
    pub(super) fn finish(self, socket_drops: u32) -> UdpServiceRecord {
        let drops = self.drops(socket_drops);
        let mut received = self.recorder.finish();
        received.socket_drops = drops;
        received.replies = self.replies;
        received.pause_ns_max = self.pause_ns_max;
        let mut moved = Drops::default();
        if let Some(running) = &self.running {
            let used = ThreadUse::now().since(running.used);
            received.cpu = used.user + used.system;
            received.over = Nanos(clock::monotonic_ns().saturating_sub(running.origin_ns));
            received.kept_waiting = used.kept_waiting;
            received.preempted = used.preempted;
            received.scheduled = used.scheduled;
            let over_loopback = self.begin.sharing == Some(Sharing::Namespace);
            let now = DropReading::now(watched(&self.freed));
            moved = now.moved_since(&running.begun, &self.quiet).only_path(over_loopback);
        }
        let at_socket = split(drops, &mut moved);
        let not_watched = self.freed.and_then(Result::err);
        let mut record = UdpServiceRecord {
            received,
            gaps_ns: Vec::new(),
            at_socket,
            reassembly: moved.reassembly(),
            in_namespace: moved.clone().in_namespace().counters(true),
            on_machine: moved.of_machine().counters(true),
            not_read: Drops::not_read().into_iter().chain(not_watched).collect(),
        };
        record.pack();
        record
    }
}

fn watched(freed: &Option<Result<FreedPackets, String>>) -> Option<&FreedPackets> {
    freed.as_ref()?.as_ref().ok()
}

/// Drops at the service's socket by cause. The socket has one count; the counters of the namespace
/// tell causes apart, but for all sockets. Drops are assigned to the receive buffer first, as that
/// is by far the most frequent cause, then to the other causes. Each is taken off those counters,
/// so that nothing counts twice.
fn split(drops: u64, moved: &mut Drops) -> Vec<DropCounter> {
    let mut left = drops;
    let mut counters = Vec::new();
    for place in [DropPlace::ReceiveBuffer, DropPlace::Checksum, DropPlace::UdpMemory] {
        let count = moved.take(place, left);
        left -= count;
        counters.push((place, count));
    }
    // Drops that no counter of the namespace explains are the socket's, too.
    counters[0].1 += left;
    moved.forget(DropPlace::ReceiveBuffer);
    let counters = counters.into_iter().filter(|&(_, count)| count > 0);
    counters.map(|(place, count)| DropCounter::at_socket(place, count)).collect()
}

/// Age at which the difference is read again, as CLOCK_REALTIME may be set.
const GOOD_FOR_NS: u64 = 100_000_000;

/// The difference between CLOCK_REALTIME and CLOCK_MONOTONIC.
///
/// It is exact to half the time between two readings of the latter with one of the former between
/// them. That is some 30 ns where clocks are read without a system call, otherwise below a
/// microsecond. A datagram that was queued while CLOCK_REALTIME was set is off by as much as that.
#[derive(Clone, Copy, Debug)]
pub(super) struct RealtimeOffset {
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, modulo 2^64.
    ahead_ns: u64,
    read_at_ns: u64,
}

impl RealtimeOffset {
    /// Reads it now.
    pub(super) fn now() -> RealtimeOffset {
        RealtimeOffset { ahead_ns: clock::realtime_ahead_ns(), read_at_ns: clock::monotonic_ns() }
    }

    /// Reads it anew where that is due.
    pub(super) fn refresh(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.read_at_ns) > GOOD_FOR_NS {
            *self = RealtimeOffset::now();
        }
    }

    /// Converts a time of CLOCK_REALTIME to CLOCK_MONOTONIC, at most `now_ns`.
    #[inline]
    pub(super) fn to_monotonic(self, real_ns: u64, now_ns: u64) -> u64 {
        real_ns.wrapping_sub(self.ahead_ns).min(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_keeps_its_place_between_others() {
        let mut clocks = RealtimeOffset::now();
        let before = clock::monotonic_ns();
        let real = clock::realtime_ns();
        let after = clock::monotonic_ns();
        let at = clocks.to_monotonic(real, after);
        assert!(before.saturating_sub(1_000) <= at && at <= after, "{before} {at} {after}");
        assert_eq!(clocks.to_monotonic(u64::MAX, after), after);
        clocks.refresh(after + 2 * GOOD_FOR_NS);
        assert!(clocks.read_at_ns >= after);
    }
}
