//! The time that operations spend inside the server's host, and the rest, which is the network's.
//!
//! The generator knows where in its connections' streams each request ends and each response begins
//! and ends. An observer on the server's host knows when those bytes came and went. The time in the
//! host is a difference of two times of the observer's clock, so that no clocks are compared. Bytes
//! are counted, not read, so encryption does not matter.

mod sampler;
mod stream;
#[cfg(test)]
mod tests;

use crate::measure::{BothEnds, HostTimes, Split, Window};
use crate::time::Nanos;
pub use sampler::{Sampled, Sampler};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
pub use stream::{StreamTimes, StreamTimesBuilder};

/// What an observer saw of the connections that it followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedStreams {
    /// The connections, in the order in which they began.
    pub connections: Vec<ObservedConnection>,
    /// Segments that the capture lost: what they carried is not known.
    pub lost: u64,
    /// Connections and parts of connections that there was no room for.
    pub left_out: u64,
    /// Why nothing was followed, where that is so.
    pub because: Option<String>,
}

/// One connection at the server's host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedConnection {
    /// The client's port.
    pub port: u16,
    /// When which of the client's bytes had arrived.
    pub requests: StreamTimes,
    /// When which of the server's bytes had left.
    pub responses: StreamTimes,
}

/// Whether a client's port is among those that are followed: one of `one_of`, which is rounded up
/// to a power of two.
pub fn is_followed(port: u16, one_of: u16) -> bool {
    port & port_mask(one_of) == 0
}

/// The bits of a port that are to be zero. Not the lowest: Linux chooses ports of one parity.
pub fn port_mask(one_of: u16) -> u16 {
    let one_of = one_of.clamp(1, 1 << 14).next_power_of_two();
    (one_of - 1) << 1
}

/// An operation that the generator asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The local port of its connection.
    pub port: u16,
    /// Which connection from that port it was, from 0: ports are used again.
    pub use_of_port: u32,
    /// Bytes of its connection that the generator had sent once the request was.
    pub request_end: u64,
    /// Bytes of its connection that had come before the response.
    pub response_begin: u64,
    /// Bytes of its connection that had come once the response was whole.
    pub response_end: u64,
    /// When the operation was intended, by the generator's clock.
    pub intended: Nanos,
    /// When the request's last byte was handed to the kernel there.
    pub written: Nanos,
    /// When the response's first byte arrived.
    pub first_byte: Nanos,
    /// When its last byte did.
    pub last_byte: Nanos,
}

/// Where the time of an operation was spent, from the request's last byte on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeParts {
    /// In the server's host, up to the response's first byte.
    pub host_first: Nanos,
    /// On the way, there and back, of the time up to the first byte.
    pub network_first: Nanos,
    /// In the server's host, up to the last byte.
    pub host: Nanos,
    /// On the way, of the time up to the last byte.
    pub network: Nanos,
}

/// Both ends, joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinedTimes {
    /// For each sample its parts; `None` where they are not known.
    pub parts: Vec<Option<TimeParts>>,
    /// Samples on connections that the observer did not see, or not as many as the generator had.
    pub unseen: u64,
    /// Samples that the observer saw in part: lost by the capture, or there was no room.
    pub incomplete: u64,
    /// Segments of responses that were sent again.
    pub resent: u64,
}

/// Looks each sample up in what was seen.
///
/// Several uses of a port are matched by their order, so it must have been seen as often as it was
/// used.
pub fn join(seen: &ObservedStreams, sampled: &Sampled) -> JoinedTimes {
    let mut by_port: BTreeMap<u16, Vec<&ObservedConnection>> = BTreeMap::new();
    for connection in &seen.connections {
        by_port.entry(connection.port).or_default().push(connection);
    }
    let mut joined = JoinedTimes {
        resent: seen.connections.iter().map(|c| c.responses.resent).sum(),
        ..JoinedTimes::default()
    };
    for sample in &sampled.samples {
        let used = sampled.uses.get(&sample.port).copied().unwrap_or(1);
        let connection = by_port
            .get(&sample.port)
            .filter(|all| all.len() == used as usize)
            .and_then(|all| all.get(sample.use_of_port as usize));
        let parts = connection.and_then(|connection| parts(connection, sample));
        match (connection, parts) {
            (None, _) => joined.unseen += 1,
            (Some(_), None) => joined.incomplete += 1,
            (Some(_), Some(_)) => {}
        }
        joined.parts.push(parts);
    }
    joined
}

/// The parts of one operation. The network's are what is left of the generator's times, so that
/// both add up to them. On loopback a request arrives before the call that sends it returns: there
/// nothing may be left, and the host's part is a little short.
fn parts(connection: &ObservedConnection, sample: &Sample) -> Option<TimeParts> {
    let came = connection.requests.passed(sample.request_end)?;
    let first = connection.responses.passed(sample.response_begin + 1)?;
    let last = connection.responses.passed(sample.response_end)?;
    let split = |left_ns: u64, arrived: Nanos| {
        let whole = arrived - sample.written;
        let host = Nanos(left_ns.saturating_sub(came)).min(whole);
        (host, whole - host)
    };
    let (host_first, network_first) = split(first, sample.first_byte);
    let (host, network) = split(last, sample.last_byte);
    Some(TimeParts { host_first, network_first, host, network })
}

/// Where the time of the operations went that lie within the window: as a whole, apart by response
/// time, and as distributions that merge.
pub fn host_times(
    seen: &ObservedStreams,
    sampled: &Sampled,
    window: Window,
) -> (HostTimes, Split, BothEnds) {
    let is_within = |s: &Sample| s.written >= window.start && s.last_byte <= window.end;
    let within = Sampled {
        uses: sampled.uses.clone(),
        samples: sampled.samples.iter().copied().filter(is_within).collect(),
        left_out: sampled.left_out,
    };
    let joined = join(seen, &within);
    let mut split = Split::default();
    let mut all = Vec::new();
    for (sample, parts) in within.samples.iter().zip(&joined.parts) {
        let Some(parts) = parts else { continue };
        let response = sample.last_byte - sample.intended;
        split.add(response, parts.host, parts.network);
        all.push([parts.host, parts.network]);
    }
    let all = BothEnds::of(all.into_iter());
    let nothing = within.samples.is_empty().then(|| "no connection was followed".to_owned());
    let mut times = HostTimes {
        unseen: joined.unseen,
        incomplete: joined.incomplete,
        resent: joined.resent,
        lost: seen.lost,
        because: seen.because.clone().or(nothing),
        ..HostTimes::default()
    };
    times.set(&all);
    (times, split, all)
}
