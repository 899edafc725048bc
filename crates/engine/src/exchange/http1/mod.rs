//! HTTP/1.1 without sockets (RFC 9110, RFC 9112): requests to bytes, bytes to responses.
//!
//! Nothing here reads, writes, waits or knows the time, so the same code runs over epoll, io_uring,
//! a test's byte slice and a fuzzer.

mod chunked;
mod exchange;
mod head;
mod request;
mod response;

pub use exchange::{Http1, Shared};
pub use head::{HEAD_BYTES_MAX, HEADERS_MAX, HeadCache};
pub(super) use request::put_decimal;
pub(super) use request::wire_requests;
pub use request::{serialise, serialise_head};
pub use response::{Eof, Http1Violation, Progress, ResponseParser, ResponseSink};
