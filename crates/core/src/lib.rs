//! knee-core decides: which trial is next, when to stop, and what the numbers mean.
//!
//! Nothing here opens a socket, reads a clock, starts a thread or prints. Time and randomness come
//! in as arguments, so that a seed replays a run and tests of time run in virtual time.
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

pub mod compare;
pub mod consistency;
pub mod experiment;
pub mod finding;
pub mod report;
pub mod threshold;
pub mod trial;
pub mod words;
