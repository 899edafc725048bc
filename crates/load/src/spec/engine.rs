//! How the generator itself works.

use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// How the generator itself works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineOptions {
    /// Worker threads, at least 1.
    pub workers: u32,
    /// Which kernel interface carries the traffic.
    pub backend: BackendChoice,
    /// Whether the kernel tells when bytes came.
    #[serde(default)]
    pub timestamps: TimestampsChoice,
    /// How a worker waits for a deadline.
    pub wait: WaitPolicy,
    /// How long before a deadline a sleep has to end on this machine, where that was measured.
    pub margins: Margins,
    /// Whether the target answered before: the load begins even if it does not now.
    #[serde(default)]
    pub was_reached: bool,
}

impl Default for EngineOptions {
    /// One worker; all else as by default on the command line.
    fn default() -> EngineOptions {
        EngineOptions {
            workers: 1,
            backend: BackendChoice::Auto,
            timestamps: TimestampsChoice::Auto,
            wait: WaitPolicy::Hybrid,
            margins: Margins::UNKNOWN,
            was_reached: false,
        }
    }
}

/// Which kernel interface carries the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendChoice {
    /// The one that measured best among those that this machine permits.
    Auto,
    /// epoll(7).
    Epoll,
    /// io_uring(7); an error where it is not permitted.
    IoUring,
}

/// Whether the kernel tells when bytes came (receive timestamps), so that a generator that wakes
/// late does not count its delay as the target's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimestampsChoice {
    /// Wherever it does.
    #[default]
    Auto,
    /// Never: the time at which bytes are read stands in.
    Off,
}

/// How a worker waits for a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitPolicy {
    /// As `hybrid`, and polls all the time where sleeping makes operations late, a processor is to
    /// spare, and polling helps.
    Auto,
    /// Sleeps until a margin before it, learnt from its own late wake-ups, then polls.
    Hybrid,
    /// Sleeps until it.
    Sleep,
    /// Never sleeps.
    Spin,
}

/// Lengths of sleep are grouped by their power of two from 2^14 ns (16 µs) on: the longer a core
/// slept, the later it wakes.
const BUCKETS: usize = 13;

/// How long before a deadline a sleep has to end so that most deadlines are met: a margin for
/// sleeps of each length. Measured on the machine at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Margins([u64; BUCKETS]);

impl Margins {
    /// What is assumed before anything is known: an idle virtual core wakes 60 to 200 µs late.
    pub const UNKNOWN: Margins = Margins([120_000; BUCKETS]);

    /// A set with the same margin for all lengths.
    pub fn of(margin: Nanos) -> Margins {
        Margins([margin.0; BUCKETS])
    }

    /// Which of the margins is for sleeps of this length.
    pub fn bucket(length: Nanos) -> usize {
        let log = (length.0 | 1).ilog2() as usize;
        log.saturating_sub(14).min(BUCKETS - 1)
    }

    /// Number of margins.
    pub const COUNT: usize = BUCKETS;

    /// The shortest length of sleep that bucket number `bucket` is for, but for the first, which is
    /// for all shorter ones as well.
    pub fn length_min(bucket: usize) -> Nanos {
        Nanos(1 << (14 + bucket.min(BUCKETS - 1)))
    }

    /// The margin for sleeps of this length.
    pub fn at(&self, length: Nanos) -> Nanos {
        Nanos(self.0[Margins::bucket(length)])
    }

    /// All margins in nanoseconds, by bucket.
    pub fn by_bucket(&self) -> [u64; BUCKETS] {
        self.0
    }

    /// The margins from those by bucket, in nanoseconds.
    pub fn from_buckets(margins_ns: [u64; BUCKETS]) -> Margins {
        Margins(margins_ns)
    }
}
