//! What an observer that follows connections is to be asked about.

use super::{HttpClient, Policy};
use crate::exchange::{Exchange, FlightId, Told};
use crate::link::Link;
use crate::reactor::Backend;
use knee_core::both_ends::Sampler;
use knee_core::measure::Completion;
use knee_core::time::Nanos;

/// Notes where operations lie in the streams of connections, where these are followed.
#[derive(Default)]
pub(super) struct Followed(Option<Box<Following>>);

struct Following {
    sampler: Sampler,
    /// Where operations lie that share their connections with others, by their number.
    places: Vec<Place>,
}

/// Where in the streams of its connection an operation lies.
#[derive(Clone, Copy, Default)]
struct Place {
    /// So many bytes were sent once its request was; 0: that is not with the kernel yet.
    request_end: u64,
    /// From where to where its response goes, as far as it came.
    response: Option<[u64; 2]>,
}

impl<L: Link, X: Exchange, P: Policy> HttpClient<L, X, P> {
    /// The same client, of whose connections an observer follows one of `one_of`.
    pub(crate) fn followed(self, one_of: Option<u16>) -> HttpClient<L, X, P> {
        let slots = self.connections.len();
        let following = one_of.map(|one_of| {
            Box::new(Following {
                sampler: Sampler::new(slots, one_of),
                places: Vec::new(),
            })
        });
        HttpClient {
            followed: Followed(following),
            ..self
        }
    }
}

impl Followed {
    pub(super) fn connected<B: Backend>(&mut self, io: &B, slot: u32, now: Nanos) {
        if let Some(Following { sampler, .. }) = self.0.as_deref_mut() {
            match io.local_port(slot) {
                Some(port) => sampler.established(slot, port, now),
                None => sampler.closed(slot),
            }
        }
    }

    /// A request of so many bytes goes out.
    #[inline]
    pub(super) fn sent(&mut self, slot: u32, bytes: u64) {
        if let Some(following) = &mut self.0 {
            following.sampler.sent(slot, bytes);
        }
    }

    #[inline]
    pub(super) fn received(&mut self, slot: u32, bytes: usize) {
        if let Some(following) = &mut self.0 {
            following.sampler.received(slot, bytes as u64);
        }
    }

    /// A response is whole, whose request was sent whole, and nothing else has come.
    #[inline]
    pub(super) fn ended(&mut self, slot: u32, completion: &Completion) {
        if let Some(following) = &mut self.0 {
            following.sampler.ended(slot, times(completion));
        }
    }

    /// As [`Followed::ended`], but where its request ends is not known.
    #[inline]
    pub(super) fn passed_over(&mut self, slot: u32) {
        if let Some(following) = &mut self.0 {
            following.sampler.passed_over(slot);
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

    /// All that was handed over so far is with the kernel, the end of this request among it.
    #[inline]
    pub(super) fn written(&mut self, slot: u32, op: FlightId) {
        if let Some(following) = &mut self.0
            && let Some((sent, _)) = following.sampler.offsets(slot)
        {
            following.places[op as usize].request_end = sent;
        }
    }

    /// What was told was read of the bytes that came last. Of those, before the first of them
    /// `left[0]` and behind the last of them `left[1]` were to be read. What belongs to no
    /// operation is passed over: a response is found so many bytes too early at most, and never
    /// before those.
    #[inline]
    pub(super) fn came(&mut self, slot: u32, told: &[Told], left: [usize; 2]) {
        if let Some(following) = &mut self.0 {
            following.place(slot, told, left, false);
        }
    }

    /// As [`Followed::came`], of bytes that could only be read together.
    #[inline]
    pub(super) fn opened(&mut self, slot: u32, told: &[Told], left: [usize; 2]) {
        if let Some(following) = &mut self.0 {
            following.place(slot, told, left, true);
        }
    }

    /// As [`Followed::ended`], where others may share the connection.
    #[inline]
    pub(super) fn ended_among_others(&mut self, slot: u32, op: FlightId, completion: &Completion) {
        if let Some(Following { sampler, places }) = self.0.as_deref_mut()
            && let Some(&Place {
                request_end: request_end @ 1..,
                response: Some([begin, end]),
            }) = places.get(op as usize)
        {
            sampler.ended_at(slot, [request_end, begin, end], times(completion));
        }
    }

    pub(super) fn take(&mut self) -> Option<Sampler> {
        self.0.take().map(|following| following.sampler)
    }
}

impl Following {
    /// Notes where what was told lies: one after the other, or all in all that was read.
    fn place(&mut self, slot: u32, told: &[Told], [before, behind]: [usize; 2], in_all: bool) {
        let Some((_, received)) = self.sampler.offsets(slot) else {
            return;
        };
        let (mut at, last) = (received - before as u64, received - behind as u64);
        for told in told {
            if let Told::Received { op, bytes } = told {
                let to = match in_all {
                    true => last,
                    false => last.min(at + bytes),
                };
                let place = &mut self.places[*op as usize];
                place.response.get_or_insert([at, to])[1] = to;
                if !in_all {
                    at = to;
                }
            }
        }
    }
}

/// The times that a sample has.
fn times(of: &Completion) -> [Nanos; 4] {
    [of.intended, of.written, of.first_byte, of.completed]
}
