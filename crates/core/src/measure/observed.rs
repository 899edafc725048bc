//! What was seen on the server's host while a trial ran.

use super::HostTimes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the server's host saw of a trial, over the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// Where the number of SYNs comes from.
    pub source: SynSource,
    /// Why it comes from nothing better, in words; `None` for a capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// First SYNs that arrived for the target's port, over the window; 0 where nothing counts them.
    pub first_syns: u64,
    /// SYNs that came again (same addresses, ports and sequence number).
    pub repeated_syns: u64,
    /// FINs and RSTs that clients sent to it.
    pub client_ends: u64,
    /// Packets that the capture itself lost: its figures are too low by up to so many.
    pub capture_lost: u64,
    /// The time over which all of this was counted, in nanoseconds.
    pub elapsed_ns: u64,
    /// First SYNs in each interval.
    pub first_syns_by_interval: Vec<u64>,
    /// Counters of that host that moved, by name (ListenOverflows, PassiveOpens, …).
    pub kernel: BTreeMap<String, i64>,
    /// The listening socket's accept queue: connections in it at the most, as sampled.
    pub accept_queue_max: Option<u32>,
    /// How many it may hold.
    pub accept_queue_limit: Option<u32>,
    /// Share of that host's processors that was busy, in percent of all.
    pub cpu_busy_percent: f64,
    /// The time that operations spent inside that host; absent where none were followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_host: Option<HostTimes>,
}

/// What counted the SYNs, in order of trust.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SynSource {
    /// A packet capture at the server, filtered in the kernel.
    Capture,
    /// Counters of the server's kernel.
    Counters,
    /// The generator's own attempts.
    #[default]
    Attempts,
}
