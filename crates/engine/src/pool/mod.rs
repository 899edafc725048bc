//! Operations and connections: which operation goes over which connection, and what becomes of it.

pub(crate) mod client;
pub(crate) mod connect_client;
mod deadlines;
mod flight;
pub(crate) mod http_client;
pub(crate) mod requests;
