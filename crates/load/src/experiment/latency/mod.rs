//! Latency under load: a trial's settings, when its flows have settled, and its measurement.

pub mod measure;
pub mod settling;
pub mod spec;
