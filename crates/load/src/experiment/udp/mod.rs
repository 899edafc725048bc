//! UDP arrivals against loss: a trial's settings, its recorder and its measurement.

pub mod measure;
pub mod recorder;
pub mod spec;
