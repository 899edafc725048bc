//! What the numbers mean.

pub mod assess;
pub mod batch;
pub mod buffer;
pub mod compare;
pub mod datagrams;
pub mod findings;
pub mod flows;
pub mod gaps;
pub mod knee;
pub mod little;
pub mod live;
pub mod models;
pub mod offered;
pub mod order;
pub mod overload;
pub mod pairs;
mod sample;
pub mod silence;
mod spectrum;
pub mod stationarity;
pub mod table;
pub mod theory;
pub mod threshold;
pub mod throttle;
mod traffic;
pub mod validity;
pub mod words;
