//! What becomes of operations whose time has passed.

use crate::spec::ParseError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What becomes of operations whose moment has passed, after a stall.
///
/// An operation is *missed* once the moment of its successor has come as well: being late by less
/// than a gap is no stall, and no policy acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// The newest so many of those due are made at once, back to back; the older ones are skipped
    /// and counted. `u64::MAX`: none is ever skipped.
    Burst(u64),
    /// All are made, but no faster than so many times the rate (above 1), until the schedule is
    /// caught up with. (It keeps operations apart, so it is felt for a lateness below a gap too.)
    Spread(f64),
    /// Missed ones are counted, not made: the same as a burst of one.
    Skip,
    /// All later moments move back by as much as the first missed one is late; counted.
    Delay,
}

impl CatchUp {
    /// Every operation is made, as soon as it can be.
    pub const ALL: CatchUp = CatchUp::Burst(u64::MAX);

    /// `burst`, `burst(20)`, `spread`, `spread(1.5)` (twice the rate unless given), `skip`,
    /// `delay`.
    ///
    /// # Errors
    /// Another word, a burst of 0, or a spread that does not catch up (1 or less).
    pub fn parse(text: &str) -> Result<CatchUp, ParseError> {
        let (name, argument) = match text.trim().split_once('(') {
            None => (text.trim(), None),
            Some((name, rest)) => (name, Some(rest.strip_suffix(')').unwrap_or(""))),
        };
        let wrong = |what: &str| {
            ParseError(format!(
                "'{text}' {what}: give burst, burst(N) with N from 1, spread(X) with X above 1, \
                 skip or delay"
            ))
        };
        match (name, argument) {
            ("burst", None) => Ok(CatchUp::ALL),
            ("burst", Some(n)) => match n.trim().parse() {
                Ok(n) if n > 0 => Ok(CatchUp::Burst(n)),
                _ => Err(wrong("is no burst")),
            },
            ("spread", None) => Ok(CatchUp::Spread(2.0)),
            ("spread", Some(x)) => match x.trim().parse::<f64>() {
                Ok(x) if x.is_finite() && x > 1.0 => Ok(CatchUp::Spread(x)),
                _ => Err(wrong("never catches up")),
            },
            ("skip", None) => Ok(CatchUp::Skip),
            ("delay", None) => Ok(CatchUp::Delay),
            _ => Err(wrong("is no policy")),
        }
    }
}

impl fmt::Display for CatchUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CatchUp::Burst(u64::MAX) => f.write_str("burst"),
            CatchUp::Burst(n) => write!(f, "burst({n})"),
            CatchUp::Spread(x) => write!(f, "spread({x})"),
            CatchUp::Skip => f.write_str("skip"),
            CatchUp::Delay => f.write_str("delay"),
        }
    }
}
