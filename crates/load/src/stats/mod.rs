//! Statistics without knowledge of experiments: numbers in, numbers out.

pub mod buffer;
pub mod change_points;
pub mod course;
pub mod gaps;
pub mod rounds;
pub mod sample;
pub mod stationarity;
pub mod tail;
