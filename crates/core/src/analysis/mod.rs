//! What the numbers mean.

pub mod batch;
pub mod gaps;
pub mod little;
pub mod order;
mod sample;
pub mod stationarity;
