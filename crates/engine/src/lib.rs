//! knee-engine acts: every socket, thread and system call is here, and all unsafe code but that of
//! `knee-script` (stacks, and values of QuickJS).
//!
//! It knows no statistics, no findings and no output.
//!
//! # Parts
//!
//! From the bottom up:
//!
//! - `sys`, `error`: system calls, one call each, and the only place that reads a clock; why a
//!   trial could not run.
//! - `permit`, `confine`, `interrupt`, `threads`, `port`, `kernel`, `program`: limits from outside, signals,
//!   threads that the system may refuse, host facts and counters, programs of scenarios.
//! - `reactor`: waiting for completions and deadlines.
//! - `names`, `addresses`, `input`, `exchange`: names to addresses, input files, protocols.
//! - `link`, `control`: TLS, control connections.
//! - `pool`, `observe`, `push`, `resolve`: operations over connections, the server's side,
//!   documents for collectors, what comes before a run.
//! - `worker`, `run`: the hot loop; one `TrialSpec` in, one `Trial` out.
//! - `experiment`: clients and services of udp, latency and throttle.
//!
//! # Where to look
//!
//! - What runs during a measurement? `worker.rs`.
//! - Which connection does an operation get? `pool/http_client/place.rs`; which address:
//!   `addresses.rs`.
//! - Who carries sessions, scripts, recordings? `pool/session_client.rs`, `pool/script_client.rs`,
//!   `pool/replay_client.rs`.
//! - How does a connection pass a proxy? `link/tunnel.rs`, `pool/http_client/tunnel.rs`.
//! - Which counters tell where a datagram was dropped? `kernel/drops.rs`; the kernel's own reasons:
//!   `kernel/freed.rs`.
//! - Which combination of parts runs? `run/dispatch.rs`, one axis per function.

#![warn(unreachable_pub)]

mod addresses;
pub mod confine;
mod control;
pub mod error;
pub mod exchange;
pub mod experiment;
mod generator;
pub mod input;
pub mod interrupt;
mod kernel;
mod link;
mod names;
pub mod observe;
pub mod permit;
mod pool;
pub mod port;
mod program;
pub mod push;
mod reactor;
mod resolve;
mod run;
#[cfg(test)]
mod scratch_for_tests;
pub mod sys;
pub mod threads;
mod worker;

pub use crate::kernel::host::{OpenFiles, RESERVED_FILES, connections_permitted, preflight_facts};
pub use kernel::host::host;
pub use link::{CallResponse, Greeting, Http3Offer};
pub use reactor::Waiter;
pub use resolve::{call_once, http3_offer, is_on_this_host, preflight, preflight_overload};
pub use run::{StartBarrier, connections_of, run, run_observed, run_part, run_sentinels};
pub use sys::thread::cpu_count as cpus;
