//! One run of flows: its clock, and what its flows have carried.

use knee_load::time::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// State that the threads of one end share.
#[derive(Debug)]
pub(crate) struct FlowRun {
    /// Begin of the run, on this host's clock.
    pub(crate) origin_ns: u64,
    /// End of the run, on this host's clock; it may move.
    pub(crate) end_ns: AtomicU64,
    /// The service's clock less this host's, modulo 2^64.
    pub(crate) ahead_ns: u64,
    /// Length of the intervals.
    pub(crate) interval: Nanos,
    /// Bytes of each flow so far: received, or taken by the socket.
    pub(crate) bytes: Vec<AtomicU64>,
    /// Whether each flow is lost.
    pub(crate) lost: Vec<AtomicBool>,
}

impl FlowRun {
    /// A run of `flows` flows that have carried nothing yet.
    pub(crate) fn new(
        flows: usize,
        origin_ns: u64,
        end_ns: u64,
        ahead_ns: u64,
        interval: Nanos,
    ) -> Arc<FlowRun> {
        Arc::new(FlowRun {
            origin_ns,
            end_ns: AtomicU64::new(end_ns),
            ahead_ns,
            interval: interval.max(Nanos(1)),
            bytes: (0..flows).map(|_| AtomicU64::new(0)).collect(),
            lost: (0..flows).map(|_| AtomicBool::new(false)).collect(),
        })
    }

    /// Run time at `now_ns` of this host's clock.
    #[inline]
    pub(crate) fn since(&self, now_ns: u64) -> Nanos {
        Nanos(now_ns.saturating_sub(self.origin_ns))
    }

    /// Bytes of each flow in `range` so far.
    pub(crate) fn carried(&self, range: std::ops::Range<usize>) -> Vec<u64> {
        self.bytes[range].iter().map(|b| b.load(Ordering::Relaxed)).collect()
    }

    /// Bytes of all flows so far.
    pub(crate) fn carried_in_all(&self) -> u64 {
        self.bytes.iter().map(|b| b.load(Ordering::Relaxed)).sum()
    }
}
