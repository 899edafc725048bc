//! The UDP experiment: senders, and the service that counts their datagrams.

mod control;
mod run;
pub mod send;
pub mod service;
pub mod wire;

pub use run::{preflight, run};
