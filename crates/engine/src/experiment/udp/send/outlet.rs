//! Where one sender's datagrams leave: a socket, a batch of buffers, the numbers of its clients.
//!
//! What the network answers to a datagram that was sent, such as that nobody listens there, Linux
//! tells instead of sending a later one (udp(7)): that one counts as refused. Beyond a device's MTU
//! datagrams leave in fragments, as IP_MTU_DISCOVER is left as it is (ip(7)); with `--gso`, and
//! beyond 65,507 bytes, they are refused. What a device's queue drops is told (`ENOBUFS`), but for
//! a part of a burst that it cuts itself, which it only counts.

use super::replies::Replies;
use super::tally::Tally;
use super::term::Term;
use crate::experiment::udp::datagram::Header;
use crate::sys::udp::{self, SendBatch};
use knee_core::experiment::udp::spec::{ServiceMode, UdpTrialSpec};
use knee_core::spec::Share;
use knee_core::time::Nanos;
use std::io;
use std::net::UdpSocket;
use std::time::Duration;

/// So many datagrams go to the kernel at once at most: it cuts no more from one buffer
/// (UDP_MAX_SEGMENTS before Linux 6.9), and nothing is won by more.
const AT_ONCE: usize = 64;

/// How long a sender waits for room, or for an echo, before it looks whether it is to stop,
const PIECE: Nanos = Nanos::from_millis(50);
/// and how long a send blocks.
const BLOCKED: Duration = Duration::from_millis(20);

/// A datagram about to be sent.
#[derive(Clone, Copy)]
struct Due {
    /// Its client, counted among those of this sender.
    client: usize,
    number: u64,
    intended: Option<Nanos>,
}

/// How datagrams are handed over.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// In one call, or one by one where that has met an error that it does not tell.
    Several,
    /// As one buffer that the kernel cuts.
    Cut,
    /// One by one, in a call that blocks where there is no room.
    Blocking,
}

/// Sends the datagrams of one sender's clients.
pub(super) struct Outlet {
    socket: UdpSocket,
    mode: Mode,
    batch: SendBatch,
    due: Vec<Due>,
    /// The number that each client's next datagram has.
    numbers: Vec<u64>,
    session: u64,
    share: Share,
    replies: Option<Replies>,
}

impl Outlet {
    /// One for `clients` clients, which hands over up to `at_once` datagrams in one call.
    ///
    /// # Errors
    /// The kernel does not cut buffers (--gso), or tells no timestamps.
    pub(super) fn new(
        socket: UdpSocket,
        spec: &UdpTrialSpec,
        session: u64,
        share: Share,
        is_single: bool,
    ) -> io::Result<Outlet> {
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
        udp::set_errors_told(&socket)?;
        let echoes = spec.setup.mode == Some(ServiceMode::Echo);
        let replies = echoes.then(|| Replies::new(&socket, session, share, clients));
        Ok(Outlet {
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

    /// How many clients send here.
    pub(super) fn clients(&self) -> usize {
        self.numbers.len()
    }

    /// How many datagrams go to the kernel at once at most.
    pub(super) fn at_once(&self) -> usize {
        self.batch.capacity()
    }

    /// Whether no more can be added before [`Outlet::flush`].
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.due.len() == self.batch.capacity()
    }

    /// How many were added and not flushed yet.
    #[inline]
    pub(super) fn pending(&self) -> usize {
        self.due.len()
    }

    /// Adds a datagram of a client (counted among those here), intended for a moment, or for
    /// whenever it is flushed.
    #[inline]
    pub(super) fn push(&mut self, client: usize, intended: Option<Nanos>) {
        let number = self.numbers[client];
        self.numbers[client] += 1;
        self.due.push(Due {
            client,
            number,
            intended,
        });
    }

    /// Sends all that was added, and says when. What the kernel refuses is not tried again, unless
    /// there is no room: then it waits for some, and gives up when the term is over.
    #[inline]
    pub(super) fn flush(&mut self, term: &Term<'_>, tally: &mut Tally) -> Nanos {
        let (mut from, count) = (0, self.due.len());
        let mut one_by_one = count == 1 || self.mode == Mode::Blocking;
        let (mut now, mut blocks) = (Nanos::ZERO, false);
        while from < count {
            now = term.now();
            self.stamp(from, now);
            let to = if one_by_one { from + 1 } else { count };
            match self.hand_over(from, to, blocks) {
                Ok(taken) => {
                    self.note_pacing(from, from + taken, now, tally);
                    tally.taken(taken, now);
                    (from, blocks) = (from + taken, false);
                    // The next one met an error that was not told: alone, it tells.
                    one_by_one |= from < to;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    tally.sent.blocked += u64::from(!blocks);
                    blocks = self.mode == Mode::Blocking;
                    if !self.wait_for_room(term) {
                        tally.refused(libc::EAGAIN, 1);
                        self.forget(from, count - from);
                        now = term.now();
                        break;
                    }
                    one_by_one = count - from == 1 || self.mode == Mode::Blocking;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    let refused = if self.mode == Mode::Cut { to - from } else { 1 };
                    tally.refused(e.raw_os_error().unwrap_or(0), refused);
                    udp::forget_errors(&self.socket);
                    self.forget(from, refused);
                    from += refused;
                }
            }
        }
        self.due.clear();
        now
    }

    /// Takes in echoes that have come, where there are any to come.
    #[inline]
    pub(super) fn take_replies(&mut self, term: &Term<'_>, tally: &mut Tally) {
        if let Some(replies) = &mut self.replies {
            replies.drain(&self.socket, term.clock, &self.numbers, tally);
        }
    }

    /// Sleeps for so long, or until an echo comes; whether one came.
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

    /// Waits for the last echoes, up to `patience`.
    ///
    /// # Errors
    /// None in correct use.
    pub(super) fn await_replies(
        &mut self,
        term: &Term<'_>,
        patience: Nanos,
        tally: &mut Tally,
    ) -> io::Result<()> {
        let until = term.now() + patience;
        while self
            .replies
            .as_ref()
            .is_some_and(|r| r.count < tally.sent.sent)
        {
            let now = term.now();
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
            let sent = if blocks {
                self.socket.send(bytes)
            } else {
                udp::try_send(&self.socket, bytes)
            };
            return sent.map(|_| to - from);
        }
        udp::send_batch(&self.socket, &mut self.batch, from, to)
    }

    #[inline]
    fn stamp(&mut self, from: usize, now: Nanos) {
        for (index, due) in self.due.iter().enumerate().skip(from) {
            let header = Header {
                session: self.session,
                client: self.share.index + due.client as u32 * self.share.of,
                number: due.number,
                intended: due.intended.unwrap_or(now),
                sent: now,
            };
            header.write(self.batch.datagram(index));
        }
    }

    fn note_pacing(&self, from: usize, to: usize, now: Nanos, tally: &mut Tally) {
        for intended in self.due[from..to].iter().filter_map(|due| due.intended) {
            tally.sent.pacing_error.record(now - intended);
        }
    }

    /// Whether there is room before the term is over. Where sends block, the next one waits.
    fn wait_for_room(&self, term: &Term<'_>) -> bool {
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
                // Where it cannot wait, the next send tells why.
                Ok(_) | Err(_) => return true,
            }
        }
        false
    }

    /// Clears what makes the socket look ready for nothing.
    fn forget_errors(&self) {
        udp::forget_errors(&self.socket);
        // One that did not fit the queue of errors is only pending.
        let _ = self.socket.take_error();
    }

    /// `count` datagrams from `from` on will not be sent: their numbers go to later ones.
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
