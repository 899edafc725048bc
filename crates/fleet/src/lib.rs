//! knee-fleet runs one experiment on many machines, which meet on NATS.
//!
//! Nothing else in knee knows of it, and this is the only crate with an async runtime: it begins with
//! the first connection to NATS, so that a run on one machine has none.

#![warn(unreachable_pub)]
