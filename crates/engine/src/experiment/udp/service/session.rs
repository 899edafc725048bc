//! One session: what is asked, what came, and the record that it ends in.

use super::clocks::RealTime;
use crate::experiment::udp::datagram::Header;
use crate::experiment::udp::wire::{Begin, Record, Sharing};
use crate::kernel::drops::Drops;
use crate::kernel::freed::{self, FreedPackets};
use crate::sys::clock::{self, ThreadUse};
use crate::sys::datagrams::{Batch, DatagramSocket};
use crate::sys::thread;
use knee_core::experiment::udp::measure::{DropCounter, DropPlace};
use knee_core::experiment::udp::recorder::DatagramRecorder;
use knee_core::experiment::udp::spec::ServiceMode;
use knee_core::law::Law;
use knee_core::rng::Rng;
use knee_core::time::Nanos;
use std::net::IpAddr;

/// So many arrivals are kept: 16 MB here, some 10 MB on the way to the client.
const ARRIVALS_MAX: usize = 2_000_000;

/// Once nothing has come for so long, nothing more will: that is longer than a way takes.
const QUIET_NS: u64 = 200_000_000;

/// After the last was sent the service goes on working for so long; whatever is queued then is
/// counted without work.
const WORK_AFTER_END_NS: u64 = 5_000_000_000;

/// So long after the last was sent the session ends whatever still comes.
const DRAIN_NS: u64 = 8_000_000_000;

/// The longest work on one datagram, however rare a length its law yields.
const WORK_NS_MAX: u64 = 60_000_000_000;

/// A datagram of others, or one that knee cannot have sent.
pub(super) const NOT_OF_THIS_RUN: &str = "not_of_this_run";
/// Too short, too long, or without knee's header.
pub(super) const MALFORMED: &str = "malformed";

/// A running session.
pub(super) struct Session {
    begin: Begin,
    peer: IpAddr,
    mode: ServiceMode,
    pub(super) work: Law,
    rng: Rng,
    recorder: DatagramRecorder,
    /// The kernel's reasons for drops, or in words why they are not watched; `None` where nothing
    /// is between client and service that could drop for one.
    freed: Option<Result<FreedPackets, String>>,
    quiet: Moment,
    /// `None` until the client says that it starts.
    running: Option<Running>,
    ending: Option<Ending>,
    replies: u64,
    /// When the datagram in work will be done, in ideal time; CLOCK_MONOTONIC.
    free_at_ns: u64,
    pub(super) pause_ns_max: u64,
}

/// Counters and when they were read.
struct Moment {
    drops: Drops,
    at_ns: u64,
}

impl Moment {
    fn now(freed: Option<&FreedPackets>) -> Moment {
        Moment {
            drops: Drops::now_with(freed),
            at_ns: clock::monotonic_ns(),
        }
    }

    /// What moved since the session began, what is usual in a quiet time taken off.
    fn moved(self, quiet: &Moment, begun: &Moment) -> Drops {
        let usual = begun.drops.since(&quiet.drops);
        let quiet_time = Nanos(begun.at_ns - quiet.at_ns);
        let time = Nanos(self.at_ns - begun.at_ns);
        self.drops
            .since(&begun.drops)
            .without_quiet(&usual, quiet_time, time)
    }
}

struct Running {
    origin_ns: u64,
    socket_drops: u32,
    begun: Moment,
    used: ThreadUse,
    preempted: u64,
}

struct Ending {
    sent: u64,
    since_ns: u64,
    /// When a datagram of this run came last, or when the end was told.
    last_ns: u64,
}

impl Session {
    /// One that has not started. The quiet time before the trial begins now.
    pub(super) fn new(
        begin: Begin,
        peer: IpAddr,
        mode: ServiceMode,
        work: Law,
        rng: Rng,
    ) -> Session {
        let (clients, interval, duration) = (begin.clients, begin.interval, begin.duration);
        let is_apart = begin.sharing != Some(Sharing::Namespace);
        let freed = is_apart.then(|| FreedPackets::watch().map_err(|e| freed::in_words(&e)));
        Session {
            recorder: DatagramRecorder::new(clients, interval, duration, ARRIVALS_MAX),
            begin,
            peer,
            mode,
            work,
            rng,
            quiet: Moment::now(watched(&freed)),
            freed,
            running: None,
            ending: None,
            replies: 0,
            free_at_ns: 0,
            pause_ns_max: 0,
        }
    }

    /// Datagrams count from now on. To be called on the thread that takes them.
    pub(super) fn start(&mut self, origin_ns: u64, socket_drops: u32) {
        self.running = Some(Running {
            origin_ns,
            socket_drops,
            begun: Moment::now(watched(&self.freed)),
            used: ThreadUse::now(),
            preempted: thread::preempted(),
        });
    }

    /// The client has sent `sent` datagrams and sends no more.
    pub(super) fn end(&mut self, sent: u64) {
        let now_ns = clock::monotonic_ns();
        self.ending = Some(Ending {
            sent,
            since_ns: now_ns,
            last_ns: now_ns,
        });
    }

    /// Takes one datagram: whether it was of this run, or else why not.
    #[inline]
    pub(super) fn take(
        &mut self,
        batch: &Batch,
        index: usize,
        clocks: RealTime,
        now_ns: u64,
    ) -> Result<u64, &'static str> {
        let bytes = batch.bytes(index);
        let header = Header::read(bytes);
        let fits = bytes.len() == self.begin.size as usize && !batch.is_cut(index);
        let outcome = match (header, &self.running) {
            (Some(h), Some(running))
                if h.session == self.begin.session && batch.source(index) == Some(self.peer) =>
            {
                if fits && h.client < self.begin.clients {
                    Ok((h, running.origin_ns))
                } else {
                    Err(MALFORMED)
                }
            }
            (Some(_), _) => Err(NOT_OF_THIS_RUN),
            (None, _) => Err(MALFORMED),
        };
        match outcome {
            Ok((header, origin_ns)) => {
                let arrived_ns = batch
                    .received_realtime_ns(index)
                    .map_or(now_ns, |real| clocks.to_monotonic(real, now_ns));
                let arrived = Nanos(arrived_ns.saturating_sub(origin_ns));
                let (client, number) = (header.client, header.number);
                self.recorder.record(client, number, header.sent, arrived);
                if let Some(ending) = &mut self.ending {
                    ending.last_ns = now_ns;
                }
                Ok(arrived_ns)
            }
            Err(why) => {
                self.recorder.discard(why);
                Err(why)
            }
        }
    }

    /// When the work on a datagram that arrived at `arrived_ns` is done, in ideal time: it begins
    /// when the datagram came or when the one before was done, whichever is later, so that no
    /// lateness of the thread adds up and the station serves exactly 1/E\[S\] when saturated.
    /// `None`: no work.
    #[inline]
    pub(super) fn work_until_ns(&mut self, arrived_ns: u64, now_ns: u64) -> Option<u64> {
        let too_late = |e: &Ending| now_ns.saturating_sub(e.since_ns) > WORK_AFTER_END_NS;
        if self.work.is_zero() || self.ending.as_ref().is_some_and(too_late) {
            return None;
        }
        let work_ns = self.work.sample(&mut self.rng).0.min(WORK_NS_MAX);
        self.free_at_ns = arrived_ns.max(self.free_at_ns).saturating_add(work_ns);
        Some(self.free_at_ns)
    }

    /// Sends a datagram of this run back where that is asked for; whether it did.
    #[inline]
    pub(super) fn reply(&mut self, socket: &DatagramSocket, batch: &Batch, index: usize) -> bool {
        let replied = self.mode == ServiceMode::Echo && socket.send_back(batch, index);
        self.replies += u64::from(replied);
        replied
    }

    /// How long to wait for a datagram before the session is over; `None`: it is not ending, zero:
    /// it is over. `is_empty`: nothing was there to take.
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
        let before = self
            .running
            .as_ref()
            .map_or(socket_drops, |r| r.socket_drops);
        socket_drops.wrapping_sub(before).into()
    }

    /// The record. To be called on the thread that took the datagrams.
    pub(super) fn finish(self, socket_drops: u32) -> Record {
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
            received.preempted = thread::preempted().saturating_sub(running.preempted);
            received.scheduled = used.scheduled;
            let over_loopback = self.begin.sharing == Some(Sharing::Namespace);
            let now = Moment::now(watched(&self.freed));
            moved = now
                .moved(&self.quiet, &running.begun)
                .only_path(over_loopback);
        }
        let at_socket = split(drops, &mut moved);
        let not_watched = self.freed.and_then(Result::err);
        let mut record = Record {
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

/// The drops at our socket by their cause. The socket counts them as one; the namespace's counters
/// tell causes apart, but for all sockets. What fits the receive buffers' count was that, as it is
/// by far the most frequent; the rest was what else moved. Each is taken off those counters, so
/// that nothing counts twice.
fn split(drops: u64, moved: &mut Drops) -> Vec<DropCounter> {
    let mut left = drops;
    let mut counters = Vec::new();
    for place in [
        DropPlace::ReceiveBuffer,
        DropPlace::Checksum,
        DropPlace::UdpMemory,
    ] {
        let count = moved.take(place, left);
        left -= count;
        counters.push((place, count));
    }
    // What no counter of the namespace explains is the socket's all the same.
    counters[0].1 += left;
    moved.forget(DropPlace::ReceiveBuffer);
    let counters = counters.into_iter().filter(|&(_, count)| count > 0);
    counters
        .map(|(place, count)| DropCounter {
            place,
            count,
            source: "SO_MEMINFO".to_owned(),
            host_wide: false,
            whole_kernel: false,
            at_service: true,
        })
        .collect()
}
