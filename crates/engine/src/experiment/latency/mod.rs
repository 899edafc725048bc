//! Flows over TCP in both directions, and the latency inside and beside them.
//!
//! The other end is [`service`]. Both ends carry flows with the same code: `flow_threads` has a
//! thread's loop over its flows, `flow_ends` has one flow's two ends. The pinger has a thread of
//! its own at either end. So it waits for the path and the peer's kernel rather than for our own
//! work. `conductor` has intervals, settling, limits and the end.
//!
//! Latency inside a flow counts from the time at which a record is handed to the sender's socket
//! (see [`payload`]). What waits in the socket's send buffer counts, as it does for any
//! application. The kernel sizes that buffer, and TCP_NOTSENT_LOWAT is left alone, so that a flow
//! is what most applications have.

mod conductor;
mod control;
mod flow_ends;
pub(crate) mod flow_run;
pub(crate) mod flow_threads;
pub mod payload;
mod pinger;
mod run;
pub mod service;
pub(crate) mod sockets;
pub mod wire;

pub use run::{preflight, run};
