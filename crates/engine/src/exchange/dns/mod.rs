//! DNS (RFC 1035): queries and their answers, over UDP, TCP and TLS.

mod client;
mod message;

pub use client::{Dns, DnsShared};
pub use message::{DnsHeader, DnsViolation, check_answer, put_query};
pub(crate) use message::{HEADER_BYTES, after_name};
