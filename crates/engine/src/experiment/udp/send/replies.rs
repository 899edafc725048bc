//! Echoes that come back to a sender's socket.

use super::tally::Tally;
use crate::experiment::udp::datagram::Header;
use crate::sys::clock::{MonotonicClock, monotonic_ns, realtime_ahead_ns};
use crate::sys::udp::{self, ReceiveBatch};
use knee_core::spec::Share;
use knee_core::time::Nanos;
use std::io;
use std::net::UdpSocket;

/// So many are received in one call,
const AT_ONCE: usize = 32;
/// and so many calls are made in a row: a sender has other things to do.
const CALLS_MAX: usize = 4;

/// Takes in echoes and knows which have come before.
pub(super) struct Replies {
    batch: ReceiveBatch,
    session: u64,
    share: Share,
    /// A bit for each datagram of each client.
    seen: Vec<Vec<u64>>,
    /// Echoes that came back, each counted once.
    pub(super) count: u64,
}

impl Replies {
    /// For one sender's share of the clients of a session.
    ///
    /// # Errors
    /// The socket does not tell when a datagram came.
    pub(super) fn new(
        socket: &UdpSocket,
        session: u64,
        share: Share,
        clients: usize,
    ) -> io::Result<Replies> {
        udp::set_timestamps(socket)?;
        Ok(Replies {
            batch: ReceiveBatch::new(AT_ONCE, Header::BYTES),
            session,
            share,
            seen: vec![Vec::new(); clients],
            count: 0,
        })
    }

    /// Takes in what has come, without waiting. `numbers` are those that each client has reached.
    pub(super) fn drain(
        &mut self,
        socket: &UdpSocket,
        clock: MonotonicClock,
        numbers: &[u64],
        tally: &mut Tally,
    ) {
        for _ in 0..CALLS_MAX {
            // An error is the network's answer to a datagram that has been counted as sent; it is
            // cleared by being told, and the next datagram goes out.
            let Ok(count) = udp::receive_batch(socket, &mut self.batch) else {
                return;
            };
            self.take_in(clock, numbers, tally);
            if count < self.batch.capacity() {
                return;
            }
        }
    }

    fn take_in(&mut self, clock: MonotonicClock, numbers: &[u64], tally: &mut Tally) {
        let now = monotonic_ns();
        // The kernel tells by another clock when a datagram came.
        let ahead = realtime_ahead_ns();
        for (bytes, came) in self.batch.received() {
            let came = came.map_or(now, |t| t.saturating_sub(ahead).min(now));
            let came = Nanos(came.saturating_sub(clock.origin));
            let header = Header::read(bytes).filter(|h| h.session == self.session);
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

/// Marks a number; whether it was not marked before.
fn is_new(seen: &mut Vec<u64>, number: u64) -> bool {
    let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
    if seen.len() <= word {
        seen.resize(word + 1, 0);
    }
    let is_new = seen[word] & bit == 0;
    seen[word] |= bit;
    is_new
}
