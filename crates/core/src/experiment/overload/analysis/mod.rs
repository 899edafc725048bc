//! What trials of an overload show: what arrived, what was served, and how the one goes with the
//! other.

mod point;
mod recovery;
mod stop;
mod summary;
mod unanswered;

pub use point::{LevelScheme, OverloadPoint, SYN_AGAIN, ServerObservation};
pub use recovery::{base, heaviest};
pub use stop::{ServerStop, Silence, StopEnd};
pub use summary::{BeyondCapacity, LineFit, OverloadSummary, PRESSED_FACTOR, most_served_per_s};
pub use unanswered::{AcceptState, UnansweredCause, UnansweredDatagrams};

use crate::words::{number, ratio};
use knee_load::measure::Outcome;
use knee_load::spec::CloseKind;
use knee_load::time::Nanos;
use std::borrow::Cow;

/// Settings of the overload that its trials do not have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverloadSetting {
    /// T: the time limit of a connect, after which it is closed and replaced. Over datagrams, that
    /// of the answer.
    pub patience: Nanos,
    /// Where a schedule started the connects: how many could be in flight at once.
    pub scheduled_descriptors: u32,
    /// How connections were closed; `None` where attempts are requests in datagrams.
    pub close: Option<CloseKind>,
    /// How long each level was warmed up.
    pub warmup: Nanos,
    /// How many times the capacity was to be offered; `None` where levels were given.
    pub wanted_factor: Option<f64>,
}

impl OverloadSetting {
    /// Whether attempts are requests in datagrams, and no connects.
    pub fn is_of_datagrams(&self) -> bool {
        self.close.is_none()
    }

    /// How an attempt ends that the server does not answer within T.
    pub fn unanswered(&self) -> Outcome {
        if self.is_of_datagrams() { Outcome::ResponseTimeout } else { Outcome::ConnectTimeout }
    }
}

/// How many times the one goes into the other, in words: `16.3`, `2`.
pub fn times(many: f64, one: f64) -> String {
    match many / one {
        t if t >= 10.0 => number((10.0 * t).round() / 10.0),
        t => ratio(t),
    }
}

/// How unserved attempts ended, in words that follow their number.
pub fn end(how: Outcome) -> Cow<'static, str> {
    Cow::Borrowed(match how {
        Outcome::Refused => "were refused",
        Outcome::Reset => "were reset before their response",
        Outcome::Closed => "were accepted and closed without a response",
        Outcome::Truncated => "were closed in the middle of the response",
        Outcome::Malformed => "received a malformed response",
        Outcome::HTTP_4XX => "received a 4xx response",
        Outcome::HTTP_5XX => "received a 5xx response",
        Outcome::Failed(_) => return Cow::Owned(format!("received {}", how.meaning())),
        Outcome::ResponseTimeout | Outcome::Timeout => "received no whole response in time",
        Outcome::Ghost => "were established at the generator and never at the server",
        Outcome::ConnectTimeout => "received no answer to their SYN",
        Outcome::HandshakeTimeout => "were established, but not secured in time",
        Outcome::HandshakeFailed => "were established, but their TLS handshake failed",
        Outcome::RefusedStream => "had their stream refused",
        Outcome::StreamReset => "had their stream reset",
        Outcome::Unprocessed => "were not processed before their connection was closed",
        Outcome::Unexpected => "received a response that was not what was expected",
        Outcome::Late => "were established only after T",
        Outcome::Unreachable => "found the host or its network unreachable",
        Outcome::InFlight => "had no end when the level ended",
        Outcome::PortExhausted => "found no local port",
        Outcome::DescriptorExhausted => "found no descriptor",
        _ => "ended in another error",
    })
}
