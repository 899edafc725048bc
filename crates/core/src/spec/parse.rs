//! The small languages of the command line: durations, rates, laws, arrivals.

use super::{ArrivalLaw, Rate};
use crate::law::Law;
use crate::time::Nanos;
use std::fmt;

/// What is wrong with a value and what would be right, in one line without the option's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(pub String);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

/// `30s`, `2m`, `1h`, `500ms`, `20us` (or `µs`), `100ns`, `1.5s`, `1/130s`; a bare number is seconds.
pub fn parse_duration(_text: &str) -> Result<Nanos, ParseError> {
    todo!()
}

/// `1000`, `1000/s`, `90/m`, `12/h`, `0.5`, `2.5k`: never zero.
pub fn parse_rate(_text: &str) -> Result<Rate, ParseError> {
    todo!()
}

/// Several rates, separated by commas, ascending or not.
pub fn parse_rates(_text: &str) -> Result<Vec<Rate>, ParseError> {
    todo!()
}

/// `0`, `fixed(10ms)`, `exp(10ms)`, `uniform(5ms,15ms)`, `lognormal(10ms,0.5)`; a bare duration is fixed.
pub fn parse_law(_text: &str) -> Result<Law, ParseError> {
    todo!()
}

/// `constant`, `poisson`, `uniform`, `burst(a,b,period)`, `ramp(from,to)` over `run_length`.
/// `trace(FILE)` is the caller's to open: it is refused here.
pub fn parse_arrival(_text: &str, _run_length: Nanos) -> Result<ArrivalLaw, ParseError> {
    todo!()
}
