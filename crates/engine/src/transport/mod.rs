//! Transports: what carries an operation to a target.

mod deadlines;
mod flight;
pub mod http1;
pub mod http_client;
pub mod requests;
