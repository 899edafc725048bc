//! One direction of a connection: when which of its bytes had passed.

use serde::{Deserialize, Serialize};

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
#[derive(Clone, Debug)]
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
            stream: StreamTimes::default(),
            first: initial_sequence.wrapping_add(1),
            passed: 0,
            early: Vec::new(),
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
