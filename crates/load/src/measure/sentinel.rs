//! What became of single patient operations beside a load.

use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// A sentinel: see [`SentinelSpec`](crate::spec::SentinelSpec).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentinelSample {
    /// When it began, from the begin of the window.
    pub began_ns: u64,
    /// How long it took to its end. Without an end, how long it had waited.
    pub wait_ns: u64,
    /// Its end.
    pub end: SentinelEnd,
}

impl SentinelSample {
    /// When it began.
    pub fn began(&self) -> Nanos {
        Nanos(self.began_ns)
    }

    /// How long it waited.
    pub fn wait(&self) -> Nanos {
        Nanos(self.wait_ns)
    }
}

/// How a sentinel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SentinelEnd {
    /// With a good response.
    Answered,
    /// It was refused, or its response says that it was not served.
    Refused,
    /// It was still under way, or timed out.
    Pending,
}
