//! What lies between the bytes on the wire and what is spoken: nothing, or TLS.
//!
//! A link transforms bytes. It reads, writes and waits for nothing.

mod config;
mod failure;
mod greet;
pub mod records;
mod tls;
mod verify;

pub(crate) use config::tls_target;
pub use greet::Greeting;
pub(crate) use greet::greet;
pub(crate) use tls::{Tls, TlsTarget};

use knee_core::measure::Handshakes;
use knee_core::time::Nanos;

/// One connection's link, from its establishment to its end.
pub(crate) trait Link: Sized {
    /// What all connections of a worker share.
    type Shared;

    /// Bytes go over the wire as they are.
    const IS_CLEAR: bool;

    /// A connection that has just been established. What goes out first is there to be
    /// [taken](Link::take_wire).
    ///
    /// # Errors
    /// Why it cannot be secured.
    fn new(shared: &mut Self::Shared) -> Result<Self, String>;

    /// Takes bytes off the front of `wire`, which is not empty, as far as they secure it.
    ///
    /// # Errors
    /// What the peer did wrong, or said to be wrong. The link is of no use from then on, but for
    /// what it has to say to the peer.
    fn secure(&mut self, wire: &mut &[u8]) -> Result<(), String>;

    /// Whether what is spoken can go over it: the handshake, if any, is over.
    fn is_secured(&self) -> bool;

    /// Whether what is spoken may be sealed before that, to go out with the handshake: all of it is
    /// sent again once it is secured, unless the peer has taken it.
    fn takes_early(&self) -> bool {
        false
    }

    /// Whether the peer has taken all that was sealed before it was secured.
    fn is_early_taken(&self) -> bool {
        false
    }

    /// Hands over what is in `wire`, which came once it was secured, piece by piece: each with how
    /// many bytes of `wire` are behind those that it was made of.
    ///
    /// # Errors
    /// As [`Link::secure`]; what came before it has been handed over.
    fn open(
        &mut self,
        wire: &[u8],
        shared: &mut Self::Shared,
        take: impl FnMut(&[u8], usize),
    ) -> Result<(), String>;

    /// Whether the peer has announced the end of its side (`close_notify`). Only a FIN follows.
    fn is_ended(&self) -> bool {
        false
    }

    /// Makes bytes of what is to be sent, and puts them behind what is in `wire`.
    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>);

    /// Whether something of its own is to go over the wire, before anything that is sealed.
    fn has_wire(&self) -> bool;

    /// Takes that, and puts it behind what is in `into`.
    fn take_wire(&mut self, into: &mut Vec<u8>);

    /// Notes how it was secured.
    fn note(&self, _of: &mut Handshakes) {}
}

/// What a peer did that closed its side before a connection was secured.
pub(crate) const HUNG_UP: &str = "it closed the connection during the TLS handshake";

/// Notes how a connection was secured, and when it was opened, established and secured.
pub(crate) fn note_secured<L: Link>(
    link: Option<&L>,
    of: &mut Handshakes,
    [opened, connected, secured]: [Nanos; 3],
) {
    if let Some(link) = link.filter(|_| !L::IS_CLEAR) {
        link.note(of);
        of.connect.record(connected - opened);
        of.time.record(secured - connected);
    }
}

/// Nothing in between.
pub(crate) struct Clear;

impl Link for Clear {
    type Shared = ();

    const IS_CLEAR: bool = true;

    fn new((): &mut ()) -> Result<Clear, String> {
        Ok(Clear)
    }

    fn secure(&mut self, _: &mut &[u8]) -> Result<(), String> {
        Ok(())
    }

    #[inline]
    fn is_secured(&self) -> bool {
        true
    }

    #[inline]
    fn open(
        &mut self,
        wire: &[u8],
        (): &mut (),
        mut take: impl FnMut(&[u8], usize),
    ) -> Result<(), String> {
        take(wire, 0);
        Ok(())
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) {
        wire.extend_from_slice(plain);
    }

    fn has_wire(&self) -> bool {
        false
    }

    fn take_wire(&mut self, _: &mut Vec<u8>) {}
}
