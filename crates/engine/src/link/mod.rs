//! The layer between the bytes on the wire and the exchange, where they are not in cleartext: TLS.
//!
//! A link transforms bytes. It does no I/O.
//!
//! `config` makes settings of what was asked for. `greet` meets the target before any load, and
//! `call` makes one operation then, such as a question to gRPC's reflection, and `alternative` asks
//! whether HTTP/3 is offered. `verify` checks
//! certificates, `failure` says in words why a connection could not be secured, `tunnel` asks a
//! proxy for one. Handshake and records are rustls's, by its buffered interface, behind `Tls`
//! alone. Records are passed to it one at a time, so that a conversation learns which received
//! bytes a piece of data came in.
//!
//! A **full** handshake exchanges keys and certificates, a **resumed** one goes on from an earlier
//! session (RFC 8446 §2). A **record** is what TLS encrypts and authenticates as one, up to 16,384
//! bytes of data (RFC 8446 §5).

mod alternative;
mod call;
mod config;
mod failure;
mod greet;
mod tls;
mod tunnel;
mod verify;

pub use alternative::Http3Offer;
pub(crate) use alternative::ask_for_http3;
pub use call::CallResponse;
pub(crate) use call::call;
pub(crate) use config::{check_system_file, tls_target};
pub use greet::Greeting;
pub(crate) use greet::{greet, greet_in_datagrams};
pub(crate) use tls::{Tls, TlsTarget};
pub(crate) use tunnel::{HUNG_UP as PROXY_HUNG_UP, Tunnel};

use crate::exchange::HandshakeFault;
use knee_load::measure::Handshakes;

/// Why a conversation could not secure its connection, in one line.
pub(crate) fn fault_words(fault: &HandshakeFault) -> String {
    match fault {
        HandshakeFault::Tls(error) => failure::words(error),
        HandshakeFault::Other(why) => why.clone(),
    }
}

/// One connection's link, from its establishment to its end.
pub(crate) trait Link: Sized {
    /// State shared by all connections of one thread.
    type Shared;

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

    /// Whether the handshake is over.
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
