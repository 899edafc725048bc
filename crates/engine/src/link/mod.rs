//! The layer between the bytes on the wire and the exchange: cleartext or TLS.
//!
//! A link transforms bytes. It does no I/O.

mod call;
mod config;
mod failure;
mod greet;
mod tls;
mod verify;

pub use call::CallResponse;
pub(crate) use call::call;
pub(crate) use config::{check_system_file, tls_target};
pub use greet::Greeting;
pub(crate) use greet::greet;
pub(crate) use tls::{Tls, TlsTarget};

use knee_load::measure::Handshakes;
use knee_load::time::Nanos;

/// One connection's link, from its establishment to its end.
pub(crate) trait Link: Sized {
    /// State shared by all connections of one thread.
    type Shared;

    /// Whether bytes go over the wire as they are.
    fn is_clear(shared: &Self::Shared) -> bool;

    /// Starts the link of an established connection. [`Link::take_wire`] has its first bytes.
    ///
    /// # Errors
    /// Why the connection cannot be secured.
    fn new(shared: &mut Self::Shared) -> Result<Self, String>;

    /// Continues the handshake with bytes off the front of `wire`, which is not empty.
    ///
    /// # Errors
    /// A rule that the peer broke, or its own complaint. The link is of no further use, except for
    /// an alert in [`Link::take_wire`].
    fn secure(&mut self, wire: &mut &[u8]) -> Result<(), String>;

    /// Whether the handshake, if any, is over.
    fn is_secured(&self) -> bool;

    /// Whether data may be sealed before the handshake is over (early data, RFC 8446 §2.3). It is
    /// sent again afterwards unless the peer has accepted it.
    fn takes_early(&self) -> bool {
        false
    }

    /// Whether the peer has accepted all early data.
    fn is_early_taken(&self) -> bool {
        false
    }

    /// Opens `wire`, received after the handshake. Each piece of data goes to `take`, with the
    /// number of bytes of `wire` that follow those it came in.
    ///
    /// # Errors
    /// See [`Link::secure`]. Data before the fault has been passed on.
    fn open(&mut self, wire: &[u8], take: impl FnMut(&[u8], usize)) -> Result<(), String>;

    /// Whether the peer has announced the end of its side (`close_notify`). Only a FIN follows.
    fn is_ended(&self) -> bool {
        false
    }

    /// Seals data and appends it to `wire`.
    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>);

    /// Whether the link has bytes of its own to send, before anything sealed later.
    fn has_wire(&self) -> bool;

    /// Appends these bytes to `into`.
    fn take_wire(&mut self, into: &mut Vec<u8>);

    /// Records how the connection was secured.
    fn note(&self, _of: &mut Handshakes) {}
}

/// The peer closed its side during the handshake.
pub(crate) const HUNG_UP: &str = "it closed the connection during the TLS handshake";

/// Records how a connection was secured, and when it was opened, established and secured.
pub(crate) fn note_secured<L: Link>(
    link: Option<&L>,
    of: &mut Handshakes,
    [opened, connected, secured]: [Nanos; 3],
) {
    if let Some(link) = link {
        link.note(of);
        of.connect.record(connected - opened);
        of.time.record(secured - connected);
    }
}

/// The link of all connections to one server: none where it is without TLS.
pub(crate) type ServerLink = Option<Tls>;

impl<L: Link> Link for Option<L> {
    type Shared = Option<L::Shared>;

    #[inline]
    fn is_clear(shared: &Option<L::Shared>) -> bool {
        shared.is_none()
    }

    fn new(shared: &mut Option<L::Shared>) -> Result<Option<L>, String> {
        shared.as_mut().map(L::new).transpose()
    }

    fn secure(&mut self, wire: &mut &[u8]) -> Result<(), String> {
        self.as_mut().map_or(Ok(()), |link| link.secure(wire))
    }

    #[inline]
    fn is_secured(&self) -> bool {
        self.as_ref().is_none_or(L::is_secured)
    }

    fn takes_early(&self) -> bool {
        self.as_ref().is_some_and(L::takes_early)
    }

    fn is_early_taken(&self) -> bool {
        self.as_ref().is_some_and(L::is_early_taken)
    }

    #[inline]
    fn open(&mut self, wire: &[u8], mut take: impl FnMut(&[u8], usize)) -> Result<(), String> {
        match self {
            Some(link) => link.open(wire, take),
            None => {
                take(wire, 0);
                Ok(())
            }
        }
    }

    fn is_ended(&self) -> bool {
        self.as_ref().is_some_and(L::is_ended)
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) {
        match self {
            Some(link) => link.seal(plain, wire),
            None => wire.extend_from_slice(plain),
        }
    }

    fn has_wire(&self) -> bool {
        self.as_ref().is_some_and(L::has_wire)
    }

    fn take_wire(&mut self, into: &mut Vec<u8>) {
        if let Some(link) = self {
            link.take_wire(into);
        }
    }

    fn note(&self, of: &mut Handshakes) {
        if let Some(link) = self {
            link.note(of);
        }
    }
}
