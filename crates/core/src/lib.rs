//! knee-core decides: what to send when, when to stop, and what the numbers mean.
//!
//! Nothing here opens a socket, reads a clock, starts a thread or prints. Time and randomness come
//! in as arguments, so a seed replays a run and every test of timing runs in virtual time.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod arrival;
pub mod driver;
pub mod experiment;
pub mod law;
pub mod measure;
pub mod report;
pub mod rng;
pub mod sim;
pub mod spec;
pub mod time;
