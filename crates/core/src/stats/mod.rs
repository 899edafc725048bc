//! Statistics without knowledge of experiments: numbers in, numbers out.

pub mod batch;
pub mod buffer;
pub mod gaps;
pub mod order;
pub mod rounds;
pub(crate) mod sample;
pub mod stationarity;
#[cfg(test)]
#[path = "tests/theory.rs"]
pub(crate) mod theory;
