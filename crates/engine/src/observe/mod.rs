//! What a trial looks like from the server's side: SYNs, the accept queue, drops, processors.
//!
//! Best seen on the server's host itself: by [`PortWatch`] where that is this host, by `knee
//! observe` there ([`ObserveServer`]) and [`ObserverClient`] here where it is another.
//! [`watch_for`] chooses.

mod client;
pub mod data;
mod queue;
pub mod segment;
mod server;
mod streams;
mod tally;
mod watch;
pub mod wire;

pub use client::{ObserverClient, Vantage, watch_for};
pub use server::{ObserveServer, ObserveStats};
pub use streams::StreamCapture;
pub use watch::{ArmedWatch, PortWatch, source_here};

#[cfg(test)]
mod tests;
