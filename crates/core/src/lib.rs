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
//!
//! # Parts
//!
//! From the bottom up: `words` and `finding`; `trial`; `consistency`; the folders of `experiment`,
//! which do not know of each other; `threshold`; `report`; `compare`.
//!
//! # Where to look
//!
//! - What does an experiment do next, and what follows? `experiment/NAME/`; how it ends:
//!   `experiment/ending.rs`.
//! - Which slice does a sweep measure next? `experiment/sweep/progress.rs`; what its rounds say:
//!   `inference.rs` there.
//! - Which rate does a search try next? `experiment/sweep/rates.rs`; what trials say of a rate:
//!   `goals.rs` there.
//! - How do slices become one trial? `trial/slice.rs`.
//! - When was the target silent, and whose fault was it? `trial/silence.rs`; over a whole sweep:
//!   `experiment/sweep/silences.rs`.
//! - Which statistics judge and compare a trial? `trial/statistics.rs`, a row for each.
//! - Which figures are determined? `trial/bounds.rs`.
//! - What is a response time made of? `trial/timing.rs`; streams: `trial/messages.rs`.
//! - What makes a trial INVALID? `trial/validity.rs`.
//! - What does knee say in words? `trial/findings/`, `experiment/NAME/findings`; while a trial
//!   runs: `trial/live.rs`.
//! - Where did a datagram go, and why was it lost? `experiment/udp/analysis/ledger.rs`,
//!   `experiment/udp/explain/rules.rs`.
//! - Do two reports differ? `compare/difference.rs`; two targets in turns: `compare/live.rs`; many
//!   runs: `compare/trend.rs`.
//! - What is left of a run that was killed? `report/salvage.rs`.
//! - Which advice is not printed? `report/advice.rs`.
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
