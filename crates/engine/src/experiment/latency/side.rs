//! What either end of a flow knows of it when it is over. Times are since the run began.

use knee_core::experiment::latency::measure::{FlowLost, TcpSample};
use knee_core::measure::Histogram;
use knee_core::time::Nanos;
use serde::{Deserialize, Serialize};

/// What a sender knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SentSide {
    /// When it stopped.
    pub ended: Nanos,
    /// Bytes that its socket took.
    pub accepted_bytes: u64,
    /// What TCP said about once an interval.
    pub samples: Vec<TcpSample>,
    /// In use.
    pub congestion_control: String,
    /// Both ends agreed on explicit congestion notification.
    pub ecn: bool,
    /// Its end before its time.
    pub lost: Option<FlowLost>,
}

/// What a receiver knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceivedSide {
    /// When it stopped.
    pub ended: Nanos,
    /// Payload bytes received.
    pub received_bytes: u64,
    /// The longest time without any.
    pub gap_max: Nanos,
    /// When that began.
    pub gap_at: Nanos,
    /// Payload bytes received in each interval, up to the last one with any.
    pub by_interval: Vec<u64>,
    /// From the moment at which a record was handed to the sender's socket to that at which its
    /// head was taken here.
    pub inside: Histogram,
    /// The longest of them in each interval, up to the last one with any.
    pub inside_max_by_interval: Vec<Nanos>,
    /// Its end before its time.
    pub lost: Option<FlowLost>,
}

/// Either.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Side {
    Sent(SentSide),
    Received(ReceivedSide),
}
