//! knee-core decides: what to send when, when to stop, and what the numbers mean.
//!
//! Nothing here opens a socket, reads a clock, starts a thread or prints. Time and randomness come
//! in as arguments, so a seed replays a run and every test of timing runs in virtual time.
//!
//! [`throttle`] is of use by itself: it holds a rate of operations of whatever kind.
//!
//! What a sweep concludes follows from its table alone, whoever measured it. Throughput of this
//! server bends where the line of one user's rate meets the maximum, at 88,400/1,833 = 48 users:
//!
//! ```
//! use knee_core::experiment::sweep::{conclude_table, table::parse_csv};
//!
//! let table = "1,1833\n10,18226\n50,74684\n100,86069\n200,88455\n300,88375";
//! let rows = parse_csv(table.as_bytes()).expect("two columns of numbers");
//! let (_, conclusion) = conclude_table(&rows);
//! let knee = conclusion.knee_vusers.expect("throughput bends");
//! assert!((knee - 48.0).abs() < 3.0, "{knee} users");
//! ```
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod arrival;
pub mod both_ends;
pub mod compare;
pub mod consistency;
pub mod date;
pub mod digits;
pub mod driver;
pub mod experiment;
pub mod finding;
pub mod import;
pub mod law;
pub mod measure;
pub mod messages;
mod names;
mod percent;
pub mod polling;
pub mod pool;
pub mod quantity;
pub mod report;
pub mod rng;
pub mod scenario;
pub mod secrets;
pub mod session;
pub mod shown;
pub mod spec;
pub mod stats;
pub mod threshold;
pub mod throttle;
pub mod time;
pub mod trial;
pub mod words;

#[cfg(test)]
extern crate self as knee_core;
#[cfg(test)]
#[allow(unreachable_pub)]
#[path = "../tests/sim/mod.rs"]
mod sim;
#[cfg(test)]
#[path = "../tests/sim/tests.rs"]
mod sim_tests;
