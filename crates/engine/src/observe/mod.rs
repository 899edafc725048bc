//! What a trial looks like from the server's side: SYNs, the accept queue, drops, processors.
//!
//! Best seen on the server's host itself: by [`Watch`] where that is this host, by `knee observe`
//! there ([`ObserveServer`]) and [`RemoteWatch`] here where it is another.

mod ledger;
mod queue;
mod segment;
mod tally;
mod watch;

pub use watch::{Watch, source_here};
