//! HTTP/3 without sockets (RFC 9114): requests to datagrams, datagrams to what became of them.
//!
//! - `quic` is a connection of QUIC by quinn-proto, in the time of the caller; `session` its TLS.
//! - `frame` reads frames and writes them, `qpack` field sections without a dynamic table
//!   (RFC 9204 with a capacity of 0). Both know no direction: the built-in server uses them too.
//! - `requests` has the field sections of requests. `client` is the conversation.
//! - `critical` reads the streams that a peer opens for the connection: control, encoder, decoder.
//! - Limits, beyond which the connection ends: of frames and fields in `frame` and `qpack`, of
//!   streams and windows in `quic`. A response with too many header fields fails alone. What waits
//!   to be sent is bounded by `SEND_WINDOW` and the outbox of `quic`.
//! - `violation` has each rule by its section. Rules of fields and messages are those of
//!   `http2::fields`, with the sections of RFC 9114.

mod client;
mod critical;
pub mod frame;
pub mod qpack;
pub mod quic;
mod requests;
mod session;
mod violation;

pub use client::{Http3, Http3Shared};
pub use critical::{CriticalStreams, Role};
pub use violation::{Http3Code, Http3Violation};
