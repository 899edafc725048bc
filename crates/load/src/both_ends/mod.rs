//! The time that operations spend inside the server's host, and the rest, which is the network's.
//!
//! The generator knows where in its connections' streams each request ends and each response begins
//! and ends. An observer on the server's host knows when those bytes came and went. The time in the
//! host is a difference of two times of the observer's clock, so that no clocks are compared. Bytes
//! are counted, not read, so encryption does not matter.
//!
//! `measure::Split` keeps these times by response time. So they merge exactly, and the groups of
//! the anatomy are split by them.

mod offset_recorder;
#[cfg(test)]
mod tests;

use crate::measure::{BothEnds, HostTimes, Split, Window};
use crate::time::Nanos;
pub use offset_recorder::{OffsetRecorder, Sampled};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

/// Most segments that came before one that is still missing. Beyond that number the capture has
/// lost the missing one: the network would have sent it again.
const EARLY_MAX: usize = 64;

/// When which bytes of a direction had passed, all before them included. Times are nanoseconds of
/// the clock of whoever watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamTimes {
    /// Number of bytes that had passed, and when; both ascend.
    pub marks: Vec<(u64, u64)>,
    /// Bytes that passed unseen: from, to.
    pub holes: Vec<(u64, u64)>,
    /// Segments with bytes that had passed before.
    pub resent: u64,
}

impl StreamTimes {
    /// When the first `bytes` bytes had passed; `None` where they have not or the last of them was
    /// not seen.
    pub fn passed(&self, bytes: u64) -> Option<u64> {
        let last = bytes.checked_sub(1)?;
        let is_hidden = |&(from, to): &(u64, u64)| from <= last && last < to;
        if self.holes.iter().any(is_hidden) {
            return None;
        }
        let at = self.marks.partition_point(|&(end, _)| end < bytes);
        self.marks.get(at).map(|&(_, at_ns)| at_ns)
    }
}

/// Builds a [`StreamTimes`] from segments as they pass.
#[derive(Clone, Debug, Default)]
pub struct StreamTimesBuilder {
    stream: StreamTimes,
    /// The sequence number of the stream's first byte.
    first: u32,
    /// Bytes that have passed without a gap.
    passed: u64,
    /// Pieces beyond a gap: from, to, in order and apart.
    early: Vec<(u64, u64)>,
}

impl StreamTimesBuilder {
    /// A direction whose SYN had this sequence number.
    pub fn new(initial_sequence: u32) -> StreamTimesBuilder {
        StreamTimesBuilder {
            first: initial_sequence.wrapping_add(1),
            ..StreamTimesBuilder::default()
        }
    }

    /// How many marks there are.
    pub fn marks(&self) -> usize {
        self.stream.marks.len()
    }

    /// A segment of `length` bytes passes at `at_ns`. Sequence numbers are 32 bits and wrap: they
    /// are taken for those nearest to where the stream is, as TCP does (RFC 9293, 3.4).
    pub fn pass(&mut self, sequence: u32, length: u32, at_ns: u64) {
        let here = self.first.wrapping_add(self.passed as u32);
        let ahead = i64::from(sequence.wrapping_sub(here).cast_signed());
        let Some(from) = self.passed.checked_add_signed(ahead) else {
            // Before the stream's first byte: of another connection.
            return;
        };
        let to = from + u64::from(length);
        if length == 0 {
            return;
        }
        if from < self.passed || self.early.iter().any(|&(f, t)| f < to && from < t) {
            self.stream.resent += 1;
        }
        if to <= self.passed {
            return;
        }
        self.add(from.max(self.passed), to);
        self.advance(at_ns);
        if self.early.len() > EARLY_MAX {
            let missing = (self.passed, self.early[0].0);
            self.stream.holes.push(missing);
            self.passed = missing.1;
            self.advance(at_ns);
        }
    }

    /// Notes a segment before which all bytes are known to have passed, seen or not: what a host
    /// sends.
    pub fn send(&mut self, sequence: u32, length: u32, at_ns: u64) {
        self.pass(sequence, length, at_ns);
        while let Some(&(from, _)) = self.early.first() {
            self.stream.holes.push((self.passed, from));
            self.passed = from;
            self.advance(at_ns);
        }
    }

    /// What has passed.
    pub fn finish(self) -> StreamTimes {
        self.stream
    }

    /// Notes a piece, joined with those that it touches.
    fn add(&mut self, mut from: u64, mut to: u64) {
        self.early.retain(|&(f, t)| {
            let touches = f <= to && from <= t;
            if touches {
                (from, to) = (from.min(f), to.max(t));
            }
            !touches
        });
        let place = self.early.partition_point(|&(f, _)| f < from);
        self.early.insert(place, (from, to));
    }

    /// Goes on over the first piece, where nothing is missing before it.
    fn advance(&mut self, at_ns: u64) {
        if let Some(&(from, to)) = self.early.first()
            && from <= self.passed
        {
            self.early.remove(0);
            self.passed = to;
            // Packets of one batch may have times that go back a little.
            let at_ns = self.stream.marks.last().map_or(at_ns, |m| m.1.max(at_ns));
            self.stream.marks.push((to, at_ns));
        }
    }
}
