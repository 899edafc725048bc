//! knee-load: what a load is, and what was measured of it. Schedules, drivers, sessions, requests,
//! recorders and statistics, below everything that acts or decides.
//!
//! Nothing here opens a socket, reads a clock, starts a thread or prints. Time and randomness come
//! in as arguments, so that a seed replays a run and tests of time run in virtual time.
//!
//! [`throttle`] is of use by itself: it holds a rate of operations of any kind.
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod arrival;
pub mod both_ends;
pub mod digits;
pub mod driver;
pub mod experiment;
pub mod law;
pub mod measure;
pub mod messages;
pub mod names;
mod octaves;
pub mod percent;
pub mod polling;
pub mod pool;
pub mod quantity;
pub mod rng;
pub mod secrets;
pub mod sentinel;
pub mod session;
pub mod shown;
pub mod spec;
pub mod stats;
pub mod throttle;
pub mod time;

// Unit tests cannot use a crate that depends on this one: they compile its parts here.
#[cfg(test)]
extern crate self as knee_load;
#[cfg(test)]
#[allow(dead_code, unreachable_pub)]
#[path = "../../sim/src/fixture.rs"]
mod fixture;
#[cfg(test)]
#[allow(unreachable_pub)]
#[path = "../../sim/src/series.rs"]
mod series;
#[cfg(test)]
#[allow(unreachable_pub)]
#[path = "../../sim/src/theory.rs"]
mod theory;
