//! Where in the streams of a generator's connections its operations lie.

use super::{Sample, is_followed};
use crate::time::Nanos;
use std::collections::BTreeMap;

/// Maximum sampled operations per worker, 72 bytes each.
const SAMPLES_MAX: usize = 200_000;

/// Notes the operations of one worker that go over connections that an observer follows. Of others
/// it knows nothing, at the price of a look at the slot.
#[derive(Clone, Debug, Default)]
pub struct OffsetRecorder {
    one_of: u16,
    /// The place in `connections` of what is open in each slot, where it is followed.
    slots: Vec<Option<u32>>,
    connections: Vec<SampledConnection>,
    samples: Vec<(u32, Sample)>,
    left_out: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct SampledConnection {
    port: u16,
    established: Nanos,
    sent: u64,
    received: u64,
    /// What had been received when the last response ended.
    response_end: u64,
}

impl OffsetRecorder {
    /// A recorder for a worker with `slots` connections; one of `one_of` ports is followed.
    pub fn new(slots: usize, one_of: u16) -> OffsetRecorder {
        OffsetRecorder { one_of, slots: vec![None; slots], ..OffsetRecorder::default() }
    }

    /// A connection from a local port is established in a slot, in place of the one before.
    pub fn established(&mut self, slot: u32, port: u16, now: Nanos) {
        let Some(place) = self.slots.get_mut(slot as usize) else {
            return;
        };
        *place = is_followed(port, self.one_of).then_some(self.connections.len() as u32);
        if place.is_some() {
            self.connections.push(SampledConnection {
                port,
                established: now,
                ..SampledConnection::default()
            });
        }
    }

    /// The connection in a slot has closed, or is not followed.
    pub fn closed(&mut self, slot: u32) {
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = None;
        }
    }

    /// Counts bytes that were handed to the kernel.
    #[inline]
    pub fn sent(&mut self, slot: u32, bytes: u64) {
        if let Some((_, connection)) = self.connection(slot) {
            connection.sent += bytes;
        }
    }

    /// Counts bytes that came.
    #[inline]
    pub fn received(&mut self, slot: u32, bytes: u64) {
        if let Some((_, connection)) = self.connection(slot) {
            connection.received += bytes;
        }
    }

    /// Bytes sent and received over a connection so far, where it is followed: what
    /// [`OffsetRecorder::ended_at`] wants of a protocol that interleaves operations.
    #[inline]
    pub fn offsets(&mut self, slot: u32) -> Option<(u64, u64)> {
        self.connection(slot).map(|(_, c)| (c.sent, c.received))
    }

    /// The only operation under way on a connection has its whole response. All that was sent is
    /// its request, all that came since the response before is its response.
    #[inline]
    pub fn ended(&mut self, slot: u32, [intended, written, first_byte, last_byte]: [Nanos; 4]) {
        let Some((_, connection)) = self.connection(slot) else {
            return;
        };
        let (request_end, response_end) = (connection.sent, connection.received);
        let response_begin = std::mem::replace(&mut connection.response_end, response_end);
        let offsets = [request_end, response_begin, response_end];
        self.ended_at(slot, offsets, [intended, written, first_byte, last_byte]);
    }

    /// As [`OffsetRecorder::ended`], of an operation that nobody is to be asked about.
    pub fn passed_over(&mut self, slot: u32) {
        if let Some((_, connection)) = self.connection(slot) {
            connection.response_end = connection.received;
        }
    }

    /// An operation has its whole response. Takes where its request ends, and where its response
    /// begins and ends. Takes also its intended time, when its request was written, and when its
    /// response's first and last byte came.
    pub fn ended_at(
        &mut self,
        slot: u32,
        [request_end, response_begin, response_end]: [u64; 3],
        [intended, written, first_byte, last_byte]: [Nanos; 4],
    ) {
        let Some((index, connection)) = self.connection(slot) else {
            return;
        };
        let port = connection.port;
        if self.samples.len() >= SAMPLES_MAX {
            self.left_out += 1;
            return;
        }
        let sample = Sample {
            port,
            use_of_port: 0,
            request_end,
            response_begin,
            response_end,
            intended,
            written,
            first_byte,
            last_byte,
        };
        self.samples.push((index, sample));
    }

    #[inline]
    fn connection(&mut self, slot: u32) -> Option<(u32, &mut SampledConnection)> {
        let index = (*self.slots.get(slot as usize)?)?;
        let connection = self.connections.get_mut(index as usize)?;
        Some((index, connection))
    }
}

/// What the offset recorders of all workers noted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// How often each port was used.
    pub uses: BTreeMap<u16, u32>,
    /// The operations.
    pub samples: Vec<Sample>,
    /// Those that there was no room for.
    pub left_out: u64,
}

impl Sampled {
    /// Joins the workers. Connections that used one port in succession are distinguished by time.
    /// A connection without sent bytes is not counted: its server may not know of it.
    pub fn of(workers: Vec<OffsetRecorder>) -> Sampled {
        let mut by_port: BTreeMap<u16, Vec<Nanos>> = BTreeMap::new();
        let connections = workers.iter().flat_map(|worker| &worker.connections);
        for connection in connections.filter(|connection| connection.sent > 0) {
            let times = by_port.entry(connection.port).or_default();
            times.push(connection.established);
        }
        by_port.values_mut().for_each(|times| times.sort_unstable());
        let mut sampled = Sampled {
            uses: by_port.iter().map(|(&port, times)| (port, times.len() as u32)).collect(),
            ..Sampled::default()
        };
        for worker in workers {
            sampled.left_out += worker.left_out;
            for (index, sample) in worker.samples {
                let established = worker.connections[index as usize].established;
                let times = by_port.get(&sample.port).map_or(&[][..], Vec::as_slice);
                let before = times.partition_point(|&at| at < established);
                sampled.samples.push(Sample { use_of_port: before as u32, ..sample });
            }
        }
        sampled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: [Nanos; 4] = [Nanos(0), Nanos(1), Nanos(2), Nanos(3)];

    fn places(sampled: &Sampled) -> Vec<[u64; 3]> {
        let of = |s: &Sample| [s.request_end, s.response_begin, s.response_end];
        sampled.samples.iter().map(of).collect()
    }

    #[test]
    fn operations_follow_each_other_in_the_streams() {
        let mut recorder = OffsetRecorder::new(2, 1);
        recorder.established(1, 40_000, Nanos(5));
        for (request, response) in [(50, [100, 900]), (60, [10, 20])] {
            recorder.sent(1, request);
            response.into_iter().for_each(|n| recorder.received(1, n));
            recorder.ended(1, TIMES);
        }
        assert_eq!(recorder.offsets(1), Some((110, 1_030)));
        recorder.ended_at(1, [7, 8, 9], TIMES);
        let sampled = Sampled::of(vec![recorder]);
        let expected = [[50, 0, 1_000], [110, 1_000, 1_030], [7, 8, 9]];
        assert_eq!(places(&sampled), expected);
        let Sample { intended, written, first_byte, last_byte, .. } = sampled.samples[0];
        assert_eq!([intended, written, first_byte, last_byte], TIMES);
        assert_eq!(sampled.uses, BTreeMap::from([(40_000, 1)]));
    }

    #[test]
    fn what_is_not_followed_leaves_no_trace() {
        let mut recorder = OffsetRecorder::new(1, 2);
        let mut one = |port| {
            recorder.established(0, port, Nanos(1));
            recorder.sent(0, 1);
            recorder.received(0, 1);
            recorder.ended(0, TIMES);
        };
        one(40_002);
        one(40_000);
        one(40_002);
        recorder.established(9, 40_000, Nanos(1));
        recorder.ended(9, TIMES);
        let sampled = Sampled::of(vec![recorder]);
        assert_eq!(places(&sampled), [[1, 0, 1]]);
        assert_eq!(sampled.uses, BTreeMap::from([(40_000, 1)]));
    }

    #[test]
    fn a_port_that_workers_used_in_turn_is_told_apart_by_when() {
        let worker = |times: &[u64]| {
            let mut recorder = OffsetRecorder::new(1, 1);
            for &at in times {
                recorder.established(0, 40_000, Nanos(at));
                recorder.sent(0, at);
                recorder.ended(0, TIMES);
            }
            recorder
        };
        let sampled = Sampled::of(vec![worker(&[10, 30]), worker(&[20])]);
        assert_eq!(sampled.uses, BTreeMap::from([(40_000, 3)]));
        let uses = sampled.samples.iter();
        let uses: Vec<_> = uses.map(|s| (s.request_end, s.use_of_port)).collect();
        assert_eq!(uses, [(10, 0), (30, 2), (20, 1)]);
    }

    #[test]
    fn a_connection_that_carried_nothing_is_no_use_of_its_port() {
        let mut recorder = OffsetRecorder::new(1, 1);
        recorder.established(0, 40_000, Nanos(1));
        recorder.established(0, 40_000, Nanos(2));
        recorder.sent(0, 50);
        recorder.ended(0, TIMES);
        let sampled = Sampled::of(vec![recorder]);
        assert_eq!(sampled.uses, BTreeMap::from([(40_000, 1)]));
        assert_eq!(sampled.samples[0].use_of_port, 0);
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let mut recorder = OffsetRecorder::new(1, 1);
        recorder.established(0, 40_000, Nanos(1));
        (0..SAMPLES_MAX + 3).for_each(|_| recorder.ended(0, TIMES));
        let sampled = Sampled::of(vec![recorder]);
        assert_eq!((sampled.samples.len(), sampled.left_out), (SAMPLES_MAX, 3));
    }
}
