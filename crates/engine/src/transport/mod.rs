//! Transports: what carries an operation to a target.

pub(crate) mod client;
pub(crate) mod connect_client;
pub mod datagram;
mod deadlines;
mod flight;
pub mod http1;
pub(crate) mod http_client;
pub(crate) mod requests;
