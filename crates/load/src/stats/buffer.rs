//! A server behind a finite buffer, fed with the arrival times of its work.

use crate::time::Nanos;
use std::collections::VecDeque;

/// Size of a buffer, and when its room returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Items that fit into the empty buffer.
    pub room: u64,
    /// Number of taken items whose room returns at once, at least 1. Room also returns when the
    /// reader has taken all that it could see. With 1 it returns with each item: the queue G/D/1/K
    /// with K = room + 1, as the one in service has left the buffer.
    pub returned_together: u64,
}

impl Buffer {
    /// A buffer in which the room of each taken item returns at once.
    pub fn plain(room: u64) -> Buffer {
        Buffer { room, returned_together: 1 }
    }

    /// The receive buffer of a UDP socket that was measured to hold `room` datagrams.
    ///
    /// Linux gives memory back only when what was read makes up a quarter of the buffer, or when
    /// the reader's own queue is empty. This is `udp_rmem_release` in net/ipv4/udp.c, since 4.13. A
    /// buffer of `room` has between 3/4 of it and all of it. It loses more below saturation than
    /// the plain queue.
    pub fn of_udp_socket(room: u64) -> Buffer {
        Buffer { room, returned_together: room / 4 + 1 }
    }

    /// Number of these ascending arrivals that are lost. The server takes the time `service` for
    /// each of the others, one after another.
    pub fn lost(self, arrivals: impl IntoIterator<Item = Nanos>, service: Nanos) -> u64 {
        let mut queue = self.before(service);
        let lost = arrivals.into_iter().filter(|&at| !queue.takes_in(at));
        lost.count() as u64
    }

    /// This buffer, empty, before a server that takes the time `service` for each.
    pub fn before(self, service: Nanos) -> Queue {
        Queue { buffer: self, service, ..Queue::default() }
    }
}

/// Waiting items and what the reader sees of them. There are two queues, as in the kernel, so that
/// the reader takes from the one without a lock on the other.
#[derive(Debug, Default)]
pub struct Queue {
    buffer: Buffer,
    service: Nanos,
    waiting: VecDeque<Nanos>,
    /// The newest of the waiting items, not yet seen by the reader.
    unseen: u64,
    /// Room of waiting items, and of taken ones whose room has not returned.
    occupied: u64,
    /// Taken items whose room has not returned.
    owed: u64,
    /// Time at which the server is free.
    free: Nanos,
}

impl Queue {
    /// Whether there is room for an arrival at `now`, which is not before the last one.
    pub fn takes_in(&mut self, now: Nanos) -> bool {
        self.serve_until(now);
        let has_room = self.occupied < self.buffer.room;
        if has_room {
            self.occupied += 1;
            self.unseen += 1;
            self.waiting.push_back(now);
        }
        has_room
    }

    /// Serves all that begins by `now`.
    fn serve_until(&mut self, now: Nanos) {
        while let Some(&first) = self.waiting.front() {
            let begin = first.max(self.free);
            if begin > now {
                return;
            }
            self.waiting.pop_front();
            self.free = begin + self.service;
            let waiting = self.waiting.len() as u64;
            if self.unseen > waiting {
                // The reader had seen none of the waiting items: it looks and sees all.
                self.unseen = 0;
            }
            self.owed += 1;
            if self.owed >= self.buffer.returned_together || self.unseen == waiting {
                self.occupied -= self.owed;
                self.owed = 0;
                self.unseen = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;
    use crate::theory::md1k_loss;

    const SERVICE: Nanos = Nanos::from_micros(200);

    fn poisson(per_s: f64, count: usize) -> Vec<Nanos> {
        let mut rng = rng::stream(7, 0);
        let mut t = 0.0;
        let moments = (0..count).map(|_| {
            t += rng::exp1(&mut rng) / per_s;
            Nanos::from_secs_f64(t)
        });
        moments.collect()
    }

    fn loss(buffer: Buffer, per_s: f64) -> f64 {
        let count = 1_000_000;
        buffer.lost(poisson(per_s, count), SERVICE) as f64 / count as f64
    }

    #[test]
    fn a_plain_buffer_loses_what_the_formula_says() {
        for (room, per_s) in [(1, 5_000.0), (4, 4_500.0), (9, 6_000.0)] {
            let exact = md1k_loss(per_s * SERVICE.as_secs_f64(), room + 1);
            let simulated = loss(Buffer::plain(room), per_s);
            let off = (simulated / exact - 1.0).abs();
            assert!(off < 0.02, "room {room}, {per_s}/s: {simulated}, not {exact}");
        }
    }

    /// Measured on Linux 6.18 with payloads of 64 bytes and SO_RCVBUF 4096, which holds 9.
    #[test]
    fn a_sockets_buffer_loses_what_was_measured_of_one() {
        for (per_s, measured) in [(4_500.0, 0.0257), (5_000.0, 0.0601), (6_000.0, 0.1675)] {
            let simulated = loss(Buffer::of_udp_socket(9), per_s);
            let off = (simulated / measured - 1.0).abs();
            assert!(off < 0.1, "{per_s}/s: {simulated}, not {measured}");
        }
    }

    #[test]
    fn each_arrival_by_hand() {
        let at = |us: &[u64]| us.iter().map(|&t| Nanos::from_micros(t)).collect::<Vec<_>>();
        // 0 is served at once; 1 and 2 wait; 3 finds two waiting; 250 finds one.
        let arrivals = at(&[0, 1, 2, 3, 250]);
        assert_eq!(Buffer::plain(2).lost(arrivals.clone(), SERVICE), 1);
        assert_eq!(Buffer::plain(3).lost(arrivals, SERVICE), 0);
        assert_eq!(Buffer::plain(1).lost(at(&[0, 200, 400]), SERVICE), 0);
        assert_eq!(Buffer::plain(1).lost(at(&[]), SERVICE), 0);
    }
}
