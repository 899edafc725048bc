//! Statistics that know no experiment: numbers in, numbers out.

pub mod batch;
pub mod buffer;
pub mod gaps;
pub mod order;
pub mod pairs;
pub mod rounds;
pub(crate) mod sample;
pub mod stationarity;
pub mod theory;
