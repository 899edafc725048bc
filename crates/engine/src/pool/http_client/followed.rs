//! What an observer that follows connections is to be asked about.

use super::{HttpClient, Policy};
use crate::exchange::Exchange;
use crate::link::Link;
use crate::reactor::Backend;
use knee_core::both_ends::Sampler;
use knee_core::measure::Completion;
use knee_core::time::Nanos;

/// Notes where operations lie in the streams of connections, where these are followed.
#[derive(Default)]
pub(super) struct Followed(Option<Box<Sampler>>);

impl<L: Link, X: Exchange, P: Policy> HttpClient<L, X, P> {
    /// The same client, of whose connections an observer follows one of `one_of`.
    pub(crate) fn followed(self, one_of: Option<u16>) -> HttpClient<L, X, P> {
        let slots = self.connections.len();
        let sampler = one_of.map(|one_of| Box::new(Sampler::new(slots, one_of)));
        HttpClient {
            followed: Followed(sampler),
            ..self
        }
    }
}

impl Followed {
    pub(super) fn connected<B: Backend>(&mut self, io: &B, slot: u32, now: Nanos) {
        if let Some(sampler) = &mut self.0 {
            match io.local_port(slot) {
                Some(port) => sampler.established(slot, port, now),
                None => sampler.closed(slot),
            }
        }
    }

    /// A request of so many bytes goes out.
    #[inline]
    pub(super) fn sent(&mut self, slot: u32, bytes: u64) {
        if let Some(sampler) = &mut self.0 {
            sampler.sent(slot, bytes);
        }
    }

    #[inline]
    pub(super) fn received(&mut self, slot: u32, bytes: usize) {
        if let Some(sampler) = &mut self.0 {
            sampler.received(slot, bytes as u64);
        }
    }

    /// A response is whole. Only where the request was sent whole, and nothing else has come, do
    /// the streams tell where both lie.
    #[inline]
    pub(super) fn ended(&mut self, slot: u32, completion: &Completion, is_clean: bool) {
        if let Some(sampler) = &mut self.0
            && is_clean
        {
            let c = completion;
            sampler.ended(slot, [c.intended, c.written, c.first_byte, c.completed]);
        }
    }

    pub(super) fn take(&mut self) -> Option<Sampler> {
        self.0.take().map(|sampler| *sampler)
    }
}
