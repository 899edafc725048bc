//! Datagrams: those who send them, and the service that counts them.

mod control;
pub mod datagram;
mod run;
pub mod send;
pub mod service;
pub mod wire;

pub use run::{preflight, run};
