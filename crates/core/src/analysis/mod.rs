//! What the numbers mean.

pub mod assess;
pub mod batch;
pub mod buffer;
pub mod datagrams;
pub mod findings;
pub mod gaps;
pub mod knee;
pub mod little;
pub mod models;
pub mod offered;
pub mod order;
pub mod overload;
pub mod pairs;
mod sample;
pub mod stationarity;
pub mod table;
pub mod theory;
pub mod threshold;
pub mod throttle;
pub mod validity;
pub mod words;
