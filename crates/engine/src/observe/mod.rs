//! What a trial looks like from the server's side: SYNs, the accept queue, drops, processors.
//!
//! Best seen on the server's host itself: by [`Watch`] where that is this host, by `knee observe`
//! there ([`ObserveServer`]) and [`RemoteWatch`] here where it is another. [`watch_for`] chooses.

mod client;
pub mod control;
pub mod data;
mod follow;
mod ledger;
mod queue;
pub mod segment;
mod server;
mod streams;
mod tally;
mod watch;

pub use client::{RemoteWatch, Vantage, watch_for};
pub use follow::Following;
pub use server::{ObserveServer, ObserveStats};
pub use watch::{Armed, Watch, source_here};

#[cfg(test)]
mod tests;
