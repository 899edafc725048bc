//! HTTP/2 without sockets (RFC 9113): requests to bytes, bytes to what became of them.

mod call;
mod client;
pub(crate) mod connection;
pub(crate) mod fields;
pub(crate) mod frame;
pub mod hpack;
mod requests;
mod streams;
mod violation;

pub use call::CallViolation;
#[cfg(test)]
pub(crate) use client::tests::grpc::{CallMode, call_modes};
pub use client::{Http2, Http2Shared};
pub(crate) use violation::ErrorCode;
pub use violation::Violation;
