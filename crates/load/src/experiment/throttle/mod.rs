//! Ways to wait, and holding a rate by each: settings and measurements.

pub mod hold;
pub mod wait;
