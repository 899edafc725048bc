//! HTTP/2 without sockets (RFC 9113): requests to bytes, bytes to what became of them.

mod client;
pub(crate) mod connection;
pub(crate) mod fields;
pub(crate) mod frame;
pub mod hpack;
mod requests;
mod streams;
mod violation;

pub use client::{Http2, Http2Shared};
pub(crate) use violation::ErrorCode;
pub use violation::Violation;
