//! What the service did, told when it ends.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a latency service did from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyServerStats {
    /// From start to end, in seconds.
    pub elapsed_s: f64,
    /// Sessions that were started.
    pub sessions: u64,
    /// Of them, those whose client vanished before it had its record.
    pub sessions_lost: u64,
    /// Flows that were carried.
    pub flows: u64,
    /// Payload bytes received over uploads.
    pub received_bytes: u64,
    /// Payload bytes that downloads' sockets took.
    pub sent_bytes: u64,
    /// Pings answered over TCP.
    pub pings: u64,
    /// Probes answered over UDP.
    pub probes: u64,
    /// Datagrams that were no probes of the running session.
    pub discarded: u64,
}

impl fmt::Display for LatencyServerStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        write!(
            f,
            "carried {} flows of {} sessions in {:.1} s",
            self.flows, self.sessions, self.elapsed_s
        )?;
        if self.sessions_lost > 0 {
            write!(f, " ({} lost their client)", self.sessions_lost)?;
        }
        writeln!(f)?;
        writeln!(f, "received {:.3} GiB", gib(self.received_bytes))?;
        writeln!(f, "sent     {:.3} GiB", gib(self.sent_bytes))?;
        writeln!(
            f,
            "answered {} pings over TCP, {} probes over UDP",
            self.pings, self.probes
        )?;
        if self.discarded > 0 {
            writeln!(f, "discarded  {} datagrams", self.discarded)?;
        }
        Ok(())
    }
}
