//! What a trial looks like from the server's side: SYNs, the accept queue, drops, processors.
//!
//! Best seen on the server's host itself: by [`PortWatch`] where that is this host, by `knee
//! observe` there ([`ObserveServer`]) and [`ObserverClient`] here where it is another.
//! [`watch_for`] chooses.
//!
//! A watch is armed before a trial and keeps what comes, so that nothing is missed however late its
//! window is known. The clock of an observer on another host is read from the quickest of several
//! answers. `streams` taps a share of the connections, both ways, and keeps when which of their
//! bytes came and went.

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
pub use watch::{ArmedWatch, PortWatch, syn_source};

#[cfg(test)]
mod tests;
