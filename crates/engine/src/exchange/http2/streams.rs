//! The streams of a connection that operations are under way on.

use super::frame::MAX_31;
use crate::exchange::FlightId;

/// The places that a connection begins with.
const PLACES_FIRST: usize = 8;

/// One stream, from its request to the end of its response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// Its identifier; 0 where the place is free.
    pub(super) id: u32,
    pub(super) op: FlightId,
    /// The number of its request.
    pub(super) request: u32,
    /// The status of its response; 0 until the final header section came.
    pub(super) status: u16,
    /// Interim responses so far.
    pub(super) interims: u8,
    /// Its request asked for no content.
    pub(super) is_head: bool,
    /// Its response has no content by its status or its request's method.
    pub(super) is_bare: bool,
    /// Some of its response came.
    pub(super) has_begun: bool,
    /// Part of its request's body is to be sent.
    pub(super) is_sending: bool,
    /// It waits for its turn to send, and not for its window.
    pub(super) is_queued: bool,
    /// How many bytes of the request's body have been put into the outbox.
    pub(super) sent: usize,
    /// How many bytes of content are still to come, where that was announced.
    pub(super) left: Option<u64>,
    pub(super) send_window: super::flow::SendWindow,
    pub(super) receive_window: super::flow::ReceiveWindow,
}

/// All open streams. The place of one follows from its identifier: where the next place in turn is
/// taken by a stream that has been open for very long, its identifier is left out (which RFC 9113
/// §5.1.1 permits), so that each lookup is one step.
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
        Streams {
            places: Vec::new(),
            open: 0,
            next: 1,
        }
    }

    /// How many are open.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.open
    }

    /// Whether the identifiers that are left may not do for another stream: some of them are left
    /// out where their places are taken.
    #[inline]
    pub(super) fn is_exhausted(&self) -> bool {
        let places = self.places.len().max(PLACES_FIRST) as u32;
        self.next > MAX_31 - 4 * places
    }

    /// The identifier that the next stream has at least.
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

    /// Opens a stream with the next identifier, which is filled in, unless
    /// [`Streams::is_exhausted`].
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
        let taken = self
            .places
            .get_mut(place)?
            .take_if(|stream| stream.id == id);
        self.open -= u32::from(taken.is_some());
        taken
    }

    /// All open streams, in the order of their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.places.iter().flatten()
    }

    /// The same, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.places.iter_mut().flatten()
    }

    /// The identifiers of all open streams, oldest first.
    pub(super) fn ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.iter().map(|stream| stream.id).collect();
        ids.sort_unstable();
        ids
    }

    /// Twice the places. Two streams that differ in their places do so among twice as many.
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
    /// As though all identifiers up to this one had been used.
    pub(super) fn skip_to(&mut self, id: u32) {
        self.next = id;
    }
}
