//! What the service did, counted while it runs and told when it ends.

use knee_core::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// So many intervals are kept; what comes later counts in the last.
const INTERVALS_MAX: usize = 100_000;

/// What a datagram service did from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UdpServerStats {
    /// From start to end, in seconds.
    pub elapsed_s: f64,
    /// Sessions that were begun.
    pub sessions: u64,
    /// Of them, those whose client vanished before it had its record.
    pub sessions_lost: u64,
    /// Datagrams taken that were of the running session.
    pub received: u64,
    /// Those that were not, by reason: `not_of_this_run`, `malformed`.
    pub discarded: BTreeMap<String, u64>,
    /// Datagrams that the kernel dropped at the service's socket (SO_MEMINFO).
    pub drops: u64,
    /// Datagrams sent back.
    pub replies: u64,
    /// Length of the intervals, in seconds.
    pub interval_s: f64,
    /// What came in each interval since the start.
    pub intervals: Vec<UdpServerInterval>,
}

/// What came in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpServerInterval {
    /// Datagrams of the running session.
    pub received: u64,
    /// Those that were not.
    pub discarded: u64,
    /// Drops at the socket, counted when they were noticed.
    pub dropped: u64,
}

impl UdpServerStats {
    /// The interval of the moment `at`.
    pub(super) fn interval(&mut self, at: Nanos, length: Nanos) -> &mut UdpServerInterval {
        let index = ((at.0 / length.0.max(1)) as usize).min(INTERVALS_MAX - 1);
        if index >= self.intervals.len() {
            self.intervals
                .resize(index + 1, UdpServerInterval::default());
        }
        &mut self.intervals[index]
    }
}

impl fmt::Display for UdpServerStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "received {} datagrams of {} sessions in {:.1} s",
            self.received, self.sessions, self.elapsed_s
        )?;
        if self.sessions_lost > 0 {
            write!(f, " ({} lost their client)", self.sessions_lost)?;
        }
        writeln!(f)?;
        writeln!(f, "dropped  {} at the socket", self.drops)?;
        if self.replies > 0 {
            writeln!(f, "replies  {}", self.replies)?;
        }
        if !self.discarded.is_empty() {
            let list = self.discarded.iter().map(|(why, n)| format!("{why} {n}"));
            writeln!(f, "discarded  {}", list.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}
