//! knee-engine acts: every socket, thread, system call and line of unsafe code is here.

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
mod pool;
mod port;
mod program;
pub mod push;
mod reactor;
mod resolve;
mod run;
#[cfg(test)]
mod scratch_for_tests;
pub mod serve;
pub mod sys;
mod threads;
mod worker;

pub use crate::kernel::host::{OpenFiles, RESERVED_FILES, connections_permitted, preflight_facts};
pub use kernel::host::host;
pub use link::{CallResponse, Greeting};
pub use resolve::{call_once, is_on_this_host, preflight, preflight_overload};
pub use run::{StartBarrier, connections_of, run, run_observed, run_part, run_sentinels};
pub use sys::thread::cpu_count as cpus;
