//! What the numbers mean.

pub mod batch;
pub mod findings;
pub mod gaps;
pub mod knee;
pub mod little;
pub mod models;
pub mod order;
mod sample;
pub mod stationarity;
pub mod table;
pub mod words;
