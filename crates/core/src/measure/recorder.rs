//! The recorder: what a worker writes down of each operation.

use super::{Completion, Measurement, Window};
use crate::driver::Op;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// What a recorder needs to know before the run.
#[derive(Clone, Copy, Debug)]
pub struct RecorderConfig {
    /// The measured window.
    pub window: Window,
    /// Length of an interval.
    pub interval: Nanos,
    /// Open loop: pacing, waits and starts are recorded, completions count where they fall.
    /// Closed loop: completions are credited in proportion to time.
    pub open_loop: bool,
    /// How many start times are kept at the most.
    pub starts_max: usize,
}

/// One interval of the time series, over all workers. Operations count where they completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Begin, from the begin of the window.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Operations started.
    pub attempted: u64,
    /// Operations that completed with a response.
    pub completed: u64,
    /// Operations that ended otherwise.
    pub errors: u64,
    /// Median response time; 0 where nothing completed.
    pub p50_ns: u64,
    /// 90th percentile of response time.
    pub p90_ns: u64,
    /// 99th percentile of response time.
    pub p99_ns: u64,
    /// Longest response time.
    pub max_ns: u64,
}

/// Sees the intervals of a running trial as they end: a progress line, a live view, an exporter.
pub trait Observer {
    /// An interval has ended.
    fn on_interval(&mut self, interval: &Interval);
}

/// One worker's share of an interval.
#[derive(Clone, Debug)]
pub struct IntervalPart;

/// Records one worker's operations. No allocation per operation.
#[derive(Debug)]
pub struct Recorder;

impl Recorder {
    /// A recorder for one worker.
    pub fn new(_config: RecorderConfig) -> Recorder {
        todo!()
    }

    /// Notes that an operation was started at `now` (open loop: goes into the gap statistics).
    pub fn on_start(&mut self, _op: Op, _now: Nanos) {
        todo!()
    }

    /// Notes an operation that ended (also a shed one, with all its moments at the same `now`).
    pub fn on_completion(&mut self, _completion: &Completion) {
        todo!()
    }

    /// Notes by how much the worker was late for a deadline of its own (woke late, or was busy).
    pub fn on_stall(&mut self, _late: Nanos) {
        todo!()
    }

    /// Ends the intervals that are over at `now`; cheap when none is.
    pub fn roll(&mut self, _now: Nanos) -> Option<IntervalPart> {
        todo!()
    }

    /// Ends the recording; the window is cut at `end` if that is earlier.
    pub fn finish(self, _end: Nanos) -> Measurement {
        todo!()
    }
}
