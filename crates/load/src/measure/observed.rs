//! Observations on the server's host while a trial ran.

use super::{Histogram, HistogramCounts};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Observations on the server's host over the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// The source of the number of SYNs.
    pub source: SynSource,
    /// Why no capture was possible, in words; `None` for a capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// First SYNs that arrived for the target's port, over the window; 0 where nothing counts them.
    pub first_syns: u64,
    /// SYNs that came again (same addresses, ports and sequence number).
    pub repeated_syns: u64,
    /// FINs and RSTs that clients sent to it.
    pub client_ends: u64,
    /// Packets that the capture itself lost: its figures may be too low by this number.
    pub capture_lost: u64,
    /// The time over which all of this was counted, in nanoseconds.
    pub elapsed_ns: u64,
    /// First SYNs in each interval.
    pub first_syns_by_interval: Vec<u64>,
    /// Counters of that host that moved, by name (ListenOverflows, PassiveOpens, …).
    pub kernel: BTreeMap<String, i64>,
    /// The listening socket's accept queue: connections in it at the most, as sampled.
    pub accept_queue_max: Option<u32>,
    /// The limit of the accept queue.
    pub accept_queue_limit: Option<u32>,
    /// Share of that host's processors that was busy, in percent of all.
    pub cpu_busy_percent: f64,
    /// The time that operations spent inside that host; absent where none were followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_host: Option<HostTimes>,
}

impl Observed {
    /// Without the figures of TCP connections, for a target over UDP.
    pub fn without_tcp(self) -> Observed {
        Observed {
            kernel: self.kernel,
            elapsed_ns: self.elapsed_ns,
            cpu_busy_percent: self.cpu_busy_percent,
            ..Observed::default()
        }
    }
}

/// The source of the number of SYNs, in order of trust.
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

/// Where the time of the operations that were followed was spent, from the request's last byte
/// leaving the generator to the response's last byte.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostTimes {
    /// Operations whose time is known.
    pub operations: u64,
    /// Operations on connections that the observer did not see.
    pub unseen: u64,
    /// Operations that the observer saw in part only.
    pub incomplete: u64,
    /// Segments of responses that the server's host sent again, over the whole load.
    pub resent: u64,
    /// Segments that the capture lost.
    pub lost: u64,
    /// Why no time is known; absent where one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The server host's share of that time, in percent; the rest is the network's.
    pub host_percent: Option<f64>,
    /// Time inside the server's host: from the arrival of the request's last byte there until the
    /// response's last byte left it.
    pub host_ns: PartTimes,
    /// The rest: the network, both ways.
    pub network_ns: PartTimes,
}

/// A distribution of times, in nanoseconds; what the operations do not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartTimes {
    /// Mean.
    pub mean: Option<u64>,
    /// Median.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// Largest.
    pub max: Option<u64>,
}

impl PartTimes {
    /// The figures of a histogram.
    pub fn of(times: &Histogram) -> PartTimes {
        let any = !times.is_empty();
        let percentile = |q| times.percentile(q).map(|t| t.0);
        PartTimes {
            mean: any.then(|| times.mean_ns().round() as u64),
            p50: percentile(0.5),
            p90: percentile(0.9),
            p99: percentile(0.99),
            max: any.then(|| times.max().0),
        }
    }
}

/// How long operations that both ends saw were inside the server's host and on the network. Unlike
/// percentiles of it, it merges exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BothEnds {
    host: HistogramCounts,
    network: HistogramCounts,
    /// Sums of both in nanoseconds, exactly.
    sums: [u64; 2],
}

impl BothEnds {
    /// The sum of operations with these times inside the host and on the network.
    pub fn of(parts: impl Iterator<Item = [Nanos; 2]>) -> BothEnds {
        let (mut host, mut network) = (Histogram::default(), Histogram::default());
        let mut sums = [0_u64; 2];
        for part in parts {
            host.record(part[0]);
            network.record(part[1]);
            sums = [0, 1].map(|i| sums[i].saturating_add(part[i].0));
        }
        BothEnds { host: host.counts(), network: network.counts(), sums }
    }

    /// Whether it has no operation.
    pub fn is_empty(&self) -> bool {
        self.host.is_empty()
    }

    /// Adds another's operations.
    pub fn merge(&mut self, other: &BothEnds) {
        self.host.merge(&other.host);
        self.network.merge(&other.network);
        self.sums = [0, 1].map(|i| self.sums[i].saturating_add(other.sums[i]));
    }
}

impl HostTimes {
    /// Sets the figures to those of `all`.
    pub fn set(&mut self, all: &BothEnds) {
        let [host, network] = [&all.host, &all.network].map(|counts| {
            let mut times = Histogram::default();
            times.add(counts);
            times
        });
        let whole_ns = all.sums[0].saturating_add(all.sums[1]);
        self.operations = host.count();
        self.host_percent = (whole_ns > 0).then(|| all.sums[0] as f64 * 100.0 / whole_ns as f64);
        self.host_ns = PartTimes::of(&host);
        self.network_ns = PartTimes::of(&network);
    }

    /// Adds what was seen of a later window of the same load; [`HostTimes::set`] sets the figures.
    pub(super) fn append(&mut self, later: HostTimes) {
        self.unseen += later.unseen;
        self.incomplete += later.incomplete;
        self.resent += later.resent;
        self.lost += later.lost;
        // One window with figures is enough.
        self.because = self.because.take().and(later.because);
    }
}
