//! Operations and connections: which operation goes over which connection, and what becomes of it.

pub(crate) mod client;
mod deadlines;
pub(crate) mod diverting_client;
mod flight;
mod flights;
pub(crate) mod http_client;
mod ready;
pub(crate) mod replay_client;
pub(crate) mod requests;
pub(crate) mod script_client;
pub(crate) mod servers_client;
pub(crate) mod session_client;
pub(crate) mod step_client;
