//! The time that operations spent inside the server's host.

use super::Histogram;
use serde::{Deserialize, Serialize};

/// Where the time of the operations that were followed was spent, from the request's last byte
/// leaving the generator to the response's last byte.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostTimes {
    /// Operations of which it is known.
    pub operations: u64,
    /// Operations on connections that the observer did not see.
    pub unseen: u64,
    /// Operations of which it did not see all.
    pub incomplete: u64,
    /// Segments of responses that the server's host sent again, over the whole load.
    pub resent: u64,
    /// Segments that the capture lost.
    pub lost: u64,
    /// Why nothing is known; absent where something is.
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
    /// That of a histogram.
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
