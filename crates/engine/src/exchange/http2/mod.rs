//! HTTP/2 without sockets (RFC 9113): requests to bytes, bytes to what became of them.
//!
//! `client` is the client's side as a state machine. `connection` holds what both ends keep alike.
//! It, `frame`, `hpack` and the section reader of `fields` know no direction: the built-in server
//! uses them too. `requests` has the client's header blocks, `violation` each rule by its section.
//!
//! **Unprocessed** is an operation that the target says it has not begun, as it closes the
//! connection or permits fewer streams than the client could know. It goes again up to three times,
//! within its deadline. (RFC 9113 §6.8, §8.7)
//!
//! Limits: answers to PING and SETTINGS that wait (`ANSWERS_MAX`), empty DATA frames (`EMPTIES_MAX`),
//! interim responses (`INTERIMS_MAX`), a header block in frames and bytes (`BLOCK_FRAMES_MAX`,
//! `BLOCK_BYTES_MAX`) and its list (`LIST_BYTES_MAX`). Beyond them the connection or the operation ends.
//! Of a body of gRPC nothing is kept: the prefixes of its messages are counted.

mod call;
mod client;
pub mod connection;
pub mod fields;
pub mod frame;
pub mod hpack;
pub(crate) mod requests;
mod streams;
mod violation;

pub use call::CallViolation;
#[cfg(test)]
pub(crate) use client::tests::grpc::{CallMode, call_modes};
pub use client::{Http2, Http2Shared};
pub use violation::ErrorCode;
pub use violation::Violation;
