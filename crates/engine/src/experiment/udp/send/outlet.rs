//! Sends the datagrams of one sender, and receives their echoes.
//!
//! The network's answer to a datagram, such as that nobody listens, fails a later call that then
//! sends nothing (udp(7)). That later datagram counts as refused. Beyond a device's MTU datagrams
//! leave in fragments, as IP_MTU_DISCOVER is left as it is (ip(7)). With `--gso`, and beyond 65,507
//! bytes, they are refused. A device's queue reports what it drops (`ENOBUFS`). It only counts a
//! part of a burst that it cuts itself.

use super::send_period::SendPeriod;
use super::tally::SendTally;
use crate::experiment::udp::wire::DatagramHeader;
use crate::sys::clock::{MonotonicClock, monotonic_ns, realtime_ahead_ns};
use crate::sys::timestamps;
use crate::sys::udp::{self, PrefixBatch, SendBatch};
use knee_load::experiment::udp::{ServiceMode, UdpTrialSpec};
use knee_load::spec::Share;
use knee_load::time::Nanos;
use std::io;
use std::net::UdpSocket;
use std::time::Duration;

/// Datagrams per call. The kernel cuts no more from one buffer (UDP_MAX_SEGMENTS before Linux 6.9),
/// and more gain nothing.
const AT_ONCE: usize = 64;

/// Longest wait for room, or for an echo, in one piece. Bounds the delay of a stop.
const PIECE: Nanos = Nanos::from_millis(50);
/// Time limit of the next echo after the last datagram, where earlier ones took less than half of
/// it; else it is twice the longest.
const ECHO_PATIENCE: Nanos = Nanos::from_millis(200);
/// The same where none has come yet.
const FIRST_ECHO_PATIENCE: Nanos = Nanos::from_secs(1);
/// Time limit of all of them.
const ECHOES_PATIENCE: Nanos = Nanos::from_secs(8);
/// Longest time in which a send blocks.
const BLOCKED: Duration = Duration::from_millis(20);

/// A datagram about to be sent.
#[derive(Clone, Copy)]
struct DueDatagram {
    /// Its client, counted among those of this sender.
    client: usize,
    number: u64,
    intended: Option<Nanos>,
}

/// How datagrams are handed over.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// In one call, or one by one after an error that the call does not report.
    Several,
    /// As one buffer, which the kernel cuts.
    Cut,
    /// One by one, in a call that blocks where there is no room.
    Blocking,
}

/// Sends the datagrams of one sender's clients.
pub(super) struct DatagramOutlet {
    socket: UdpSocket,
    mode: Mode,
    batch: SendBatch,
    due: Vec<DueDatagram>,
    /// Number of each client's next datagram.
    numbers: Vec<u64>,
    session: u64,
    share: Share,
    replies: Option<Replies>,
}

impl DatagramOutlet {
    /// An outlet for the clients of a share. `is_single`: one datagram per call, which blocks.
    ///
    /// # Errors
    /// The kernel does not cut buffers (--gso), or gives no timestamps.
    pub(super) fn new(
        socket: UdpSocket,
        spec: &UdpTrialSpec,
        session: u64,
        share: Share,
        is_single: bool,
    ) -> io::Result<DatagramOutlet> {
        let size = spec.size.max(UdpTrialSpec::SIZE_MIN) as usize;
        let clients = share.part(spec.clients.into()) as usize;
        let mut at_once = AT_ONCE;
        let mut mode = Mode::Several;
        if is_single {
            (at_once, mode) = (1, Mode::Blocking);
            socket.set_write_timeout(Some(BLOCKED))?;
        } else if spec.gso {
            at_once = (UdpTrialSpec::SIZE_MAX as usize / size).clamp(1, AT_ONCE);
            if at_once > 1 {
                udp::set_segment(&socket, size as u16)?;
                mode = Mode::Cut;
            }
        }
        udp::report_errors(&socket)?;
        let echoes = spec.setup.mode == Some(ServiceMode::Echo);
        let replies = echoes.then(|| Replies::new(&socket, session, share, clients));
        Ok(DatagramOutlet {
            socket,
            mode,
            batch: SendBatch::new(at_once, size),
            due: Vec::with_capacity(at_once),
            numbers: vec![0; clients],
            session,
            share,
            replies: replies.transpose()?,
        })
    }

    /// Number of clients.
    pub(super) fn clients(&self) -> usize {
        self.numbers.len()
    }

    /// Largest number of datagrams per call.
    pub(super) fn at_once(&self) -> usize {
        self.batch.capacity()
    }

    /// Whether no more can be added before [`DatagramOutlet::flush`].
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.due.len() == self.batch.capacity()
    }

    /// How many were added and not flushed yet.
    #[inline]
    pub(super) fn pending(&self) -> usize {
        self.due.len()
    }

    /// Adds a datagram of a client, counted among those of this sender. `intended`: its intended
    /// time; `None`: whenever it is flushed.
    #[inline]
    pub(super) fn push(&mut self, client: usize, intended: Option<Nanos>) {
        let number = self.numbers[client];
        self.numbers[client] += 1;
        self.due.push(DueDatagram { client, number, intended });
    }

    /// Sends all that was added, and returns the time. What the kernel refuses is not tried again,
    /// unless there is no room: then it waits for some until the end of the period.
    #[inline]
    pub(super) fn flush(&mut self, term: &SendPeriod<'_>, tally: &mut SendTally) -> Nanos {
        let (mut from, count) = (0, self.due.len());
        let mut one_by_one = count == 1 || self.mode == Mode::Blocking;
        let (mut now, mut blocks) = (Nanos::ZERO, false);
        while from < count {
            now = term.now();
            self.stamp(from, now);
            let to = if one_by_one { from + 1 } else { count };
            match self.hand_over(from, to, blocks) {
                Ok(taken) => {
                    let sent = self.due[from..from + taken].iter();
                    for intended in sent.filter_map(|due| due.intended) {
                        tally.sent.pacing_error.record(now - intended);
                    }
                    tally.taken(taken, now);
                    (from, blocks) = (from + taken, false);
                    // The next one met an error that was not reported: sent alone, it is.
                    one_by_one |= from < to;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    tally.sent.blocked += u64::from(!blocks);
                    blocks = self.mode == Mode::Blocking;
                    if !self.wait_for_room(term) {
                        now = term.now();
                        tally.refused(libc::EAGAIN, 1, now);
                        self.forget(from, count - from);
                        break;
                    }
                    one_by_one = count - from == 1 || self.mode == Mode::Blocking;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    let refused = if self.mode == Mode::Cut { to - from } else { 1 };
                    tally.refused(e.raw_os_error().unwrap_or(0), refused, now);
                    udp::forget_errors(&self.socket);
                    self.forget(from, refused);
                    from += refused;
                }
            }
        }
        self.due.clear();
        now
    }

    /// Reads echoes that have come, in echo mode.
    #[inline]
    pub(super) fn take_replies(&mut self, term: &SendPeriod<'_>, tally: &mut SendTally) {
        if let Some(replies) = &mut self.replies {
            replies.drain(&self.socket, term.clock, &self.numbers, tally);
        }
    }

    /// Sleeps for `length`, or until an echo comes. Returns whether one came.
    ///
    /// # Errors
    /// None in correct use.
    pub(super) fn sleep(&self, length: Nanos) -> io::Result<bool> {
        let ready = udp::wait_readable(self.replies.as_ref().map(|_| &self.socket), length)?;
        if ready.error {
            self.forget_errors();
        }
        Ok(ready.found)
    }

    /// Waits for the last echoes, until none has come for long enough.
    ///
    /// # Errors
    /// None in correct use.
    pub(super) fn await_replies(
        &mut self,
        term: &SendPeriod<'_>,
        tally: &mut SendTally,
    ) -> io::Result<()> {
        let begun = term.now();
        let (mut count, mut last) = (0, begun);
        while let Some(came) = self.replies.as_ref().map(|r| r.count)
            && came < tally.sent.sent
            && !term.is_stopped()
        {
            let now = term.now();
            if came > count {
                (count, last) = (came, now);
            }
            let longest = tally.sent.round_trip.max();
            let silence = match longest {
                Nanos::ZERO => FIRST_ECHO_PATIENCE,
                longest => ECHO_PATIENCE.max(longest + longest),
            };
            let until = (last + silence).min(begun + ECHOES_PATIENCE);
            if now >= until {
                break;
            }
            self.sleep((until - now).min(PIECE))?;
            self.take_replies(term, tally);
        }
        Ok(())
    }

    #[inline]
    fn hand_over(&mut self, from: usize, to: usize, blocks: bool) -> io::Result<usize> {
        if self.mode == Mode::Cut || to - from == 1 {
            let bytes = self.batch.side_by_side(from, to);
            let sent =
                if blocks { self.socket.send(bytes) } else { udp::try_send(&self.socket, bytes) };
            return sent.map(|_| to - from);
        }
        udp::send_batch(&self.socket, &mut self.batch, from, to)
    }

    #[inline]
    fn stamp(&mut self, from: usize, now: Nanos) {
        for (index, due) in self.due.iter().enumerate().skip(from) {
            let header = DatagramHeader {
                session: self.session,
                client: self.share.index + due.client as u32 * self.share.of,
                number: due.number,
                intended: due.intended.unwrap_or(now),
                sent: now,
            };
            header.write(self.batch.datagram(index));
        }
    }

    /// Waits for room until the end of the period. Returns whether there is some. Where sends
    /// block, the next one waits.
    fn wait_for_room(&self, term: &SendPeriod<'_>) -> bool {
        while !term.is_stopped() {
            let left = term.given_up() - term.now();
            if left == Nanos::ZERO {
                break;
            }
            if self.mode == Mode::Blocking {
                return true;
            }
            match udp::wait_writable(&self.socket, left.min(PIECE)) {
                Ok(ready) if ready.error => self.forget_errors(),
                Ok(ready) if !ready.found => {}
                // Where it cannot wait, the next send reports why.
                Ok(_) | Err(_) => return true,
            }
        }
        false
    }

    /// Clears errors that make the socket look ready.
    fn forget_errors(&self) {
        udp::forget_errors(&self.socket);
        // An error that did not fit the error queue is only pending.
        let _ = self.socket.take_error();
    }

    /// Drops `count` datagrams from `from` on: their numbers go to later ones.
    fn forget(&mut self, from: usize, count: usize) {
        let (gone, later) = self.due[from..].split_at_mut(count);
        for gone in gone {
            self.numbers[gone.client] -= 1;
            for due in later.iter_mut().filter(|due| due.client == gone.client) {
                due.number -= 1;
            }
        }
    }
}

/// Echoes received in one call.
const REPLIES_AT_ONCE: usize = 32;
/// Calls in a row: a sender has other things to do.
const CALLS_MAX: usize = 4;

/// Receives echoes, each counted once.
pub(super) struct Replies {
    batch: PrefixBatch,
    session: u64,
    share: Share,
    /// A bit for each datagram of each client.
    seen: Vec<Vec<u64>>,
    /// Echoes that came back, each counted once.
    pub(super) count: u64,
}

impl Replies {
    /// Replies to one sender's share of the clients of a session.
    ///
    /// # Errors
    /// The socket gives no timestamps.
    pub(super) fn new(
        socket: &UdpSocket,
        session: u64,
        share: Share,
        clients: usize,
    ) -> io::Result<Replies> {
        timestamps::set_timestamps(socket)?;
        Ok(Replies {
            batch: PrefixBatch::new(REPLIES_AT_ONCE, DatagramHeader::BYTES),
            session,
            share,
            seen: vec![Vec::new(); clients],
            count: 0,
        })
    }

    /// Reads what has come, without waiting. `numbers`: number of each client's next datagram.
    pub(super) fn drain(
        &mut self,
        socket: &UdpSocket,
        clock: MonotonicClock,
        numbers: &[u64],
        tally: &mut SendTally,
    ) {
        for _ in 0..CALLS_MAX {
            // An error is the network's answer to a datagram that was counted as sent. Reading
            // clears it, and the next datagram goes out.
            let Ok(count) = udp::receive_batch(socket, &mut self.batch) else {
                return;
            };
            self.take_in(clock, numbers, tally);
            if count < self.batch.capacity() {
                return;
            }
        }
    }

    fn take_in(&mut self, clock: MonotonicClock, numbers: &[u64], tally: &mut SendTally) {
        let now = monotonic_ns();
        // The kernel's timestamps are of another clock.
        let ahead = realtime_ahead_ns();
        for (bytes, came) in self.batch.received() {
            let came = came.map_or(now, |t| t.saturating_sub(ahead).min(now));
            let came = Nanos(came.saturating_sub(clock.origin));
            let header = DatagramHeader::read(bytes).filter(|h| h.session == self.session);
            let of = self.share.of;
            let ours = header
                .filter(|h| h.client % of == self.share.index)
                .map(|h| (h, (h.client / of) as usize))
                .filter(|(h, local)| numbers.get(*local).is_some_and(|&n| h.number < n));
            match ours {
                Some((header, local)) if is_new(&mut self.seen[local], header.number) => {
                    self.count += 1;
                    tally.sent.round_trip.record(came - header.sent);
                }
                _ => tally.sent.stray_replies += 1,
            }
        }
    }
}

/// Marks a number. Returns whether it was not marked before.
fn is_new(seen: &mut Vec<u64>, number: u64) -> bool {
    let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
    if seen.len() <= word {
        seen.resize(word + 1, 0);
    }
    let is_new = seen[word] & bit == 0;
    seen[word] |= bit;
    is_new
}
