//! Control connections: a JSON object per line over TCP, the same for all services.
//!
//! `service` is the loop of a service that one client holds at a time; its trait `Service` is what
//! udp, latency and the observer add. `service_clients` has the connections, `greeting` hello with
//! its versions and tokens, `control_client` the client's side and the clock of the service, `login`
//! how a client gets there.
//! Services run on a `threads::StoppableThread`, which ends when it is stopped or dropped.

mod control_client;
mod control_connection;
mod greeting;
mod login;
mod service;
mod service_clients;

pub(crate) use control_client::{ControlClient, SILENCE_NS, ServiceClock, ServiceLost, printable};
pub(crate) use control_connection::IDLE_NS;
pub use control_connection::{Lines, TooLong, line};
#[cfg(test)]
pub(crate) use greeting::Welcome;
pub use greeting::{Hello, HelloReply, Sharing};
pub(crate) use login::ServiceLogin;
pub(crate) use service::Service;
pub(crate) use service_clients::ServiceClients;

use std::hash::{BuildHasher, Hasher, RandomState};

/// A number that nobody can guess: the standard library seeds its hashers from the system's source
/// of randomness.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
