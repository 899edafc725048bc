//! HTTP/2 without sockets (RFC 9113): requests to bytes, bytes to what became of them.

mod client;
pub(crate) mod connection;
mod error_code;
pub(crate) mod fields;
pub(crate) mod flow;
pub(crate) mod frame;
pub mod hpack;
mod requests;
pub(crate) mod settings;
mod streams;
mod violation;

pub use client::{Http2, Http2Shared};
pub(crate) use error_code::ErrorCode;
pub use violation::Violation;
