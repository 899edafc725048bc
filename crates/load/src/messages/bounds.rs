//! What a stream has to meet to be good: `first_message<500ms, gap_p95<50ms, stream<20s`.

use crate::quantity::{ParseError, error, parse_duration, parse_list, quoted};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most bounds on gaps.
pub const GAP_BOUNDS_MAX: usize = 4;

/// Bounds on a stream. Each time has to be less than its bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamBounds {
    /// On the time to its first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_message: Option<Nanos>,
    /// On its time per message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_message: Option<Nanos>,
    /// On its time per token, or per message where it does not say how many tokens it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_token: Option<Nanos>,
    /// On its stream time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Nanos>,
    /// On percentiles of its gaps.
    #[serde(default)]
    pub gaps: [Option<GapBound>; GAP_BOUNDS_MAX],
}

/// A bound on a percentile of the gaps of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GapBound {
    /// The percentile, above 0; 100 is the longest gap.
    pub percentile: f64,
    /// The bound.
    pub below: Nanos,
}

impl GapBound {
    /// Whether a stream with this number of gaps meets it; `over` of them are not below the bound.
    pub fn is_met(&self, gaps: u64, over: u64) -> bool {
        let rank = (self.percentile / 100.0 * gaps as f64).ceil() as u64;
        gaps - over >= rank
    }
}

impl StreamBounds {
    /// Reads a list of bounds.
    ///
    /// # Errors
    /// An unknown name, one that comes twice, a time that is none.
    pub fn parse(text: &str) -> Result<StreamBounds, ParseError> {
        let mut bounds = StreamBounds::default();
        for part in parse_list(text)? {
            let Some((name, time)) = part.split_once('<') else {
                let part = quoted(part);
                return Err(error(format!("invalid bound {part}: expected one such as {EXAMPLE}")));
            };
            let (name, time) = (name.trim(), parse_duration(time.trim())?);
            if time == Nanos::ZERO {
                return Err(error(format!("the bound of {name} is 0: expected a longer time")));
            }
            bounds.add(name, time)?;
        }
        Ok(bounds)
    }

    fn add(&mut self, name: &str, below: Nanos) -> Result<(), ParseError> {
        let place = match name {
            "first_message" => &mut self.first_message,
            "per_message" => &mut self.per_message,
            "per_token" => &mut self.per_token,
            "stream" => &mut self.stream,
            _ => return self.add_gap(name, below),
        };
        match place.replace(below) {
            None => Ok(()),
            Some(_) => Err(error(format!("{name} has two bounds: leave one out"))),
        }
    }

    fn add_gap(&mut self, name: &str, below: Nanos) -> Result<(), ParseError> {
        let unknown = || {
            let name = quoted(name);
            error(format!("unknown figure {name} of a stream: expected {NAMES}"))
        };
        let percentile = match name.strip_prefix("gap_").ok_or_else(unknown)? {
            "max" => 100.0,
            kind => percentile(kind).ok_or_else(unknown)?,
        };
        if self.gaps.iter().flatten().any(|gap| gap.percentile == percentile) {
            return Err(error(format!("{name} has two bounds: leave one out")));
        }
        let free = self.gaps.iter_mut().find(|gap| gap.is_none());
        let free = free.ok_or_else(|| {
            error(format!("too many bounds on gaps: expected at most {GAP_BOUNDS_MAX}"))
        })?;
        *free = Some(GapBound { percentile, below });
        Ok(())
    }
}

/// Reads `p95` as 95, and `p999` and `p99.9` as 99.9.
fn percentile(kind: &str) -> Option<f64> {
    let digits = kind.strip_prefix('p')?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let number: f64 = match digits.split_at_checked(2) {
        Some((whole, rest))
            if whole.starts_with('9') && !rest.is_empty() && !rest.starts_with('.') =>
        {
            format!("{whole}.{rest}").parse().ok()?
        }
        _ => digits.parse().ok()?,
    };
    (number > 0.0 && number < 100.0).then_some(number)
}

const NAMES: &str = "first_message, gap_p50 (or another percentile), gap_max, per_message, \
                     per_token, stream";

const EXAMPLE: &str = "'first_message<500ms'";

/// As it is written.
impl fmt::Display for StreamBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named =
            |name: &str, bound: Option<Nanos>| bound.map(|t| format!("{name}<{}", t.exactly()));
        let gap = |gap: &GapBound| match gap.percentile {
            100.0 => format!("gap_max<{}", gap.below.exactly()),
            percentile => format!("gap_p{percentile}<{}", gap.below.exactly()),
        };
        let first = named("first_message", self.first_message);
        let gaps = self.gaps.iter().flatten().map(gap);
        let others = [
            named("per_message", self.per_message),
            named("per_token", self.per_token),
            named("stream", self.stream),
        ];
        let all: Vec<String> =
            first.into_iter().chain(gaps).chain(others.into_iter().flatten()).collect();
        f.write_str(&all.join(","))
    }
}
