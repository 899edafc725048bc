//! Positions of operations in connections that an observer follows.

use super::{HttpClient, Policy};
use crate::exchange::{Conversation, FlightId, OpEvent};
use crate::link::Link;
use crate::reactor::Backend;
use knee_load::both_ends::OffsetRecorder;
use knee_load::measure::Completion;
use knee_load::time::Nanos;

/// Records the positions, if connections are followed.
#[derive(Default)]
pub(super) struct Followed(Option<Box<Following>>);

struct Following {
    offset_recorder: OffsetRecorder,
    /// Positions of operations that share their connections, by number.
    places: Vec<Place>,
}

/// Position of an operation in the streams of its connection.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Bytes sent on the connection up to the end of its request; 0 until the kernel has them.
    request_end: u64,
    /// Begin and end of the part of its response received so far.
    response: Option<[u64; 2]>,
}

impl<L: Link, X: Conversation, P: Policy> HttpClient<L, X, P> {
    /// Lets an observer follow one of `one_of` connections.
    pub(crate) fn followed(self, one_of: Option<u16>) -> HttpClient<L, X, P> {
        let slots = self.connections.len();
        let following = one_of.map(|one_of| {
            Box::new(Following {
                offset_recorder: OffsetRecorder::new(slots, one_of),
                places: Vec::new(),
            })
        });
        HttpClient { followed: Followed(following), ..self }
    }
}

impl Followed {
    pub(super) fn connected(&mut self, io: &dyn Backend, slot: u32, now: Nanos) {
        if let Some(Following { offset_recorder, .. }) = self.0.as_deref_mut() {
            match io.local_port(slot) {
                Some(port) => offset_recorder.established(slot, port, now),
                None => offset_recorder.closed(slot),
            }
        }
    }

    /// Counts the bytes of a request that is sent.
    #[inline]
    pub(super) fn sent(&mut self, slot: u32, bytes: u64) {
        if let Some(following) = &mut self.0 {
            following.offset_recorder.sent(slot, bytes);
        }
    }

    #[inline]
    pub(super) fn received(&mut self, slot: u32, bytes: usize) {
        if let Some(following) = &mut self.0 {
            following.offset_recorder.received(slot, bytes as u64);
        }
    }

    /// A response is complete, its request was sent whole, and nothing else was received.
    #[inline]
    pub(super) fn ended(&mut self, slot: u32, completion: &Completion) {
        if let Some(following) = &mut self.0 {
            following.offset_recorder.ended(slot, times(completion));
        }
    }

    /// Like [`Followed::ended`], without a known end of the request.
    #[inline]
    pub(super) fn passed_over(&mut self, slot: u32) {
        if let Some(following) = &mut self.0 {
            following.offset_recorder.passed_over(slot);
        }
    }

    /// An operation begins on a connection that others may share.
    #[inline]
    pub(super) fn begun(&mut self, op: FlightId) {
        if let Some(Following { places, .. }) = self.0.as_deref_mut() {
            let index = op as usize;
            if places.len() <= index {
                places.resize(index + 1, Place::default());
            }
            places[index] = Place::default();
        }
    }

    /// The kernel has everything sent so far, up to the end of this request.
    #[inline]
    pub(super) fn written(&mut self, slot: u32, op: FlightId) {
        if let Some(following) = &mut self.0
            && let Some((sent, _)) = following.offset_recorder.offsets(slot)
        {
            following.places[op as usize].request_end = sent;
        }
    }

    /// Records the position of events in the bytes received last. `left` are the unread bytes
    /// before the first and behind the last of them. Bytes without an operation are passed over, so
    /// a response may be found too early by as many bytes, but not before the first.
    #[inline]
    pub(super) fn came(&mut self, slot: u32, events: &[OpEvent], left: [usize; 2]) {
        if let Some(following) = &mut self.0 {
            following.place(slot, events, left, false);
        }
    }

    /// Like [`Followed::came`], for bytes that could only be read together.
    #[inline]
    pub(super) fn opened(&mut self, slot: u32, events: &[OpEvent], left: [usize; 2]) {
        if let Some(following) = &mut self.0 {
            following.place(slot, events, left, true);
        }
    }

    /// Like [`Followed::ended`], for a shared connection.
    #[inline]
    pub(super) fn ended_among_others(&mut self, slot: u32, op: FlightId, completion: &Completion) {
        if let Some(Following { offset_recorder, places }) = self.0.as_deref_mut()
            && let Some(&Place { request_end: request_end @ 1.., response: Some([begin, end]) }) =
                places.get(op as usize)
        {
            offset_recorder.ended_at(slot, [request_end, begin, end], times(completion));
        }
    }

    pub(super) fn take(&mut self) -> Option<OffsetRecorder> {
        self.0.take().map(|following| following.offset_recorder)
    }
}

impl Following {
    /// Records where events lie: one after the other, or all in all of the bytes.
    fn place(&mut self, slot: u32, events: &[OpEvent], [before, behind]: [usize; 2], in_all: bool) {
        let Some((_, received)) = self.offset_recorder.offsets(slot) else {
            return;
        };
        let (mut at, last) = (received - before as u64, received - behind as u64);
        for event in events {
            if let OpEvent::Received { op, bytes } = event {
                let to = if in_all { last } else { last.min(at + bytes) };
                let place = &mut self.places[*op as usize];
                place.response.get_or_insert([at, to])[1] = to;
                if !in_all {
                    at = to;
                }
            }
        }
    }
}

/// Times of a sample.
fn times(of: &Completion) -> [Nanos; 4] {
    [of.intended, of.written, of.first_byte, of.completed]
}
