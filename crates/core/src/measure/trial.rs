//! What one trial yields: raw, mergeable, serialisable. Statistics come later, in `analysis`.

use super::{Histogram, Interval, Outcomes};
use crate::spec::TrialSpec;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One trial as the engine ran it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// What was asked for.
    pub spec: TrialSpec,
    /// What was measured, merged over all workers.
    pub measurement: Measurement,
    /// What it cost the generator.
    pub generator: GeneratorUse,
    /// Kernel counters that moved during the trial, by name.
    pub kernel: BTreeMap<String, i64>,
    /// The user ended it early.
    pub interrupted: bool,
}

/// The part of the run that counts, in run time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Its beginning: the end of the warm-up.
    pub start: Nanos,
    /// Its end.
    pub end: Nanos,
}

impl Window {
    /// Its length.
    pub fn length(&self) -> Nanos {
        self.end - self.start
    }

    /// Whether `t` lies in it (the end excluded).
    pub fn contains(&self, t: Nanos) -> bool {
        self.start <= t && t < self.end
    }
}

/// What was measured. Latencies and outcomes are of the operations *intended* within the window,
/// however late they completed; `series` is of what happened during the window.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measurement {
    /// The measured window as it really was.
    pub window: Window,
    /// How the operations intended in the window ended.
    pub outcomes: Outcomes,
    /// Response times: completed − intended, censored ones with the time they had waited.
    pub response: Histogram,
    /// Service times: completed − sent, of operations that were sent.
    pub service: Histogram,
    /// The generator's own lateness: started − intended (open loop, and closed loop with pauses).
    pub pacing_error: Histogram,
    /// Waits for a free connection: sent − started (open loop).
    pub connection_wait: Histogram,
    /// Throughput and response times in fine slots, for tests of stationarity and batch means.
    pub series: Series,
    /// The same in the intervals that people look at.
    pub intervals: Vec<Interval>,
    /// When operations were started, ascending within the window (open loop; the first million or
    /// so per worker, and never beyond `starts_until`).
    pub starts: Vec<Nanos>,
    /// Up to when `starts` is complete.
    pub starts_until: Nanos,
    /// Bytes received in the window.
    pub bytes_received: u64,
    /// Connections opened in the whole trial.
    pub connections_opened: u64,
    /// Most connections open at once in the whole trial.
    pub connections_max: u64,
    /// The longest time by which a worker woke late or was busy past a deadline, its own stall.
    pub stall_ns_max: u64,
}

/// Fine, equal slots over the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of one slot.
    pub slot: Nanos,
    /// Operations completed with a response per slot. In a closed loop an operation that spans
    /// several slots is credited to each in proportion to the time it spent there, so that
    /// operations straddling a boundary bias nothing; in an open loop it counts where it completed.
    pub completed: Vec<f64>,
    /// Sum of the response times, in nanoseconds, of the operations that completed in the slot.
    pub response_sum_ns: Vec<f64>,
    /// Number of those operations.
    pub response_count: Vec<u64>,
}

/// What a trial cost the generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorUse {
    /// Which kernel interface carried the traffic: `epoll` or `io_uring`.
    pub backend: String,
    /// Processor time of the workers in user mode, in seconds, over the window.
    pub cpu_user_s: f64,
    /// Processor time of the workers in the kernel, in seconds, over the window.
    pub cpu_system_s: f64,
    /// The share of a core that the busiest worker used, in percent.
    pub busiest_worker_percent: f64,
    /// The part of that spent waiting for a deadline by polling, in percent of a core.
    pub busiest_worker_spin_percent: f64,
    /// Share of the host's processor time that the hypervisor gave to others, in percent.
    pub steal_percent: f64,
    /// Largest resident memory of the process, in bytes.
    pub peak_rss_bytes: u64,
    /// Worker threads.
    pub workers: u32,
}
