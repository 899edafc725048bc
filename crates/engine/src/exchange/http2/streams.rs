//! Open streams of a connection.

use super::call::CallResponseState;
use super::frame::MAX_31;
use crate::exchange::FlightId;

/// Initial number of places.
const PLACES_FIRST: usize = 8;

/// One stream, from its request to the end of its response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// Its identifier; 0 for a free place.
    pub(super) id: u32,
    pub(super) op: FlightId,
    /// Number of its request.
    pub(super) request: u32,
    /// Status of its response; 0 before the final header section.
    pub(super) status: u16,
    /// What its response says, if it is a call of gRPC.
    pub(super) call: CallResponseState,
    /// Interim responses so far.
    pub(super) interims: u8,
    /// The request is HEAD.
    pub(super) is_head: bool,
    /// The response has no content, by its status or the request's method.
    pub(super) is_bare: bool,
    /// Part of the response was received.
    pub(super) has_begun: bool,
    /// Part of the request's body is not sent yet.
    pub(super) is_sending: bool,
    /// It waits for its turn to send, not for its window.
    pub(super) is_queued: bool,
    /// Bytes of the request's body in the outbox so far.
    pub(super) sent: usize,
    /// Bytes of content still to come, if announced.
    pub(super) left: Option<u64>,
    pub(super) send_window: super::connection::SendWindow,
    pub(super) receive_window: super::connection::ReceiveWindow,
}

/// All open streams. The place of a stream follows from its identifier, so that each lookup is one
/// step. An identifier whose place is taken is skipped, as RFC 9113 §5.1.1 permits.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// A power of two of places, at least half of them free.
    places: Vec<Option<Stream>>,
    open: u32,
    /// The identifier of the next stream, unless its place is taken; odd.
    next: u32,
}

impl Streams {
    pub(super) fn new() -> Streams {
        Streams { places: Vec::new(), open: 0, next: 1 }
    }

    /// Number of open streams.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.open
    }

    /// Whether the remaining identifiers may not suffice for another stream, as some are skipped.
    #[inline]
    pub(super) fn is_exhausted(&self) -> bool {
        let places = self.places.len().max(PLACES_FIRST) as u32;
        self.next > MAX_31 - 4 * places
    }

    /// Least identifier of the next stream.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Whether a stream of the client's numbers has not been opened yet.
    #[inline]
    pub(super) fn is_idle(&self, id: u32) -> bool {
        id >= self.next
    }

    #[inline]
    fn place(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.places.len().wrapping_sub(1))
    }

    #[inline]
    pub(super) fn get(&mut self, id: u32) -> Option<&mut Stream> {
        let place = self.place(id);
        match self.places.get_mut(place) {
            Some(Some(stream)) if stream.id == id => Some(stream),
            _ => None,
        }
    }

    /// Opens a stream and sets its identifier. Not if [`Streams::is_exhausted`].
    #[inline]
    pub(super) fn open(&mut self, mut stream: Stream) -> u32 {
        if (self.open as usize + 1) * 2 > self.places.len() {
            self.grow();
        }
        let mut id = self.next;
        while self.places[self.place(id)].is_some() {
            id += 2;
        }
        debug_assert!(id <= MAX_31);
        let place = self.place(id);
        stream.id = id;
        self.places[place] = Some(stream);
        self.next = id + 2;
        self.open += 1;
        id
    }

    /// Closes an open stream.
    #[inline]
    pub(super) fn close(&mut self, id: u32) -> Option<Stream> {
        let place = self.place(id);
        let taken = self.places.get_mut(place)?.take_if(|stream| stream.id == id);
        self.open -= u32::from(taken.is_some());
        taken
    }

    /// All open streams, in the order of their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.places.iter().flatten()
    }

    /// All open streams, mutable.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.places.iter_mut().flatten()
    }

    /// The identifiers of all open streams, oldest first.
    pub(super) fn ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.iter().map(|stream| stream.id).collect();
        ids.sort_unstable();
        ids
    }

    /// Doubles the places. Streams with different places keep different places.
    #[cold]
    fn grow(&mut self) {
        let count = (self.places.len() * 2).max(PLACES_FIRST);
        let before = std::mem::replace(&mut self.places, vec![None; count]);
        for stream in before.into_iter().flatten() {
            let place = self.place(stream.id);
            self.places[place] = Some(stream);
        }
    }
}

#[cfg(test)]
impl Streams {
    /// Skips all identifiers up to this one.
    pub(super) fn skip_to(&mut self, id: u32) {
        self.next = id;
    }
}
