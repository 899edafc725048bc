//! What schedules are made of: exact rates and shares of a load. Also how rates, lengths of time
//! and laws are written on the command line.

pub mod parse;
mod rate;
mod share;

pub use parse::{ParseError, parse_duration, parse_law, parse_list, parse_rate, parse_rates};
pub use rate::Rate;
pub use share::{Share, WorkerRange};
