//! The machine that made the load, what a trial cost it, and what held it back.
//!
//! **Steal** is processor time that the hypervisor gave to others while this machine wanted it.
//! (proc(5))

use super::Histogram;
use super::sums::merge_some;
use crate::polling::WaitModeChange;
use crate::spec::WaitPolicy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The larger of those that are known.
pub(super) fn most(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.into_iter().chain(b).reduce(f64::max)
}

/// The mean of two values with these weights; 0 without any weight.
pub(super) fn mean([a, b]: [f64; 2], [of_a, of_b]: [f64; 2]) -> f64 {
    (a * of_a + b * of_b) / (of_a + of_b).max(f64::MIN_POSITIVE)
}

/// The resources that a trial used at the generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorUse {
    /// Which kernel interface carried the traffic: `epoll` or `io_uring`.
    pub backend: String,
    /// Processor time of the workers in user mode, in seconds, over the window.
    pub cpu_user_s: f64,
    /// Processor time of the workers in the kernel, in seconds, over the window.
    pub cpu_system_s: f64,
    /// The share of a core that the busiest worker used, in percent: the one that used, or was
    /// kept waiting for, the most.
    pub busiest_worker_percent: f64,
    /// The share of the time in which it was ready to run but others had its core, in percent.
    #[serde(default)]
    pub busiest_worker_waiting_percent: f64,
    /// The part of that spent waiting for a deadline by polling, in percent of a core.
    pub busiest_worker_spin_percent: f64,
    /// Share of the host's processor time that the hypervisor gave to others, in percent; `None`
    /// where too few ticks of the host's counters tell it.
    pub steal_percent: Option<f64>,
    /// Largest resident memory of the process, in bytes.
    pub peak_rss_bytes: u64,
    /// Worker threads.
    pub workers: u32,
    /// How often a response woke a sleeping worker over the window. Absent where the target is on
    /// another host, or where workers sleep for other reasons too.
    pub woken_by_target: Option<u64>,
    /// How they waited; absent where nothing tells.
    pub wait: Option<WaitUse>,
}

impl GeneratorUse {
    /// Adds another process of the same trial. Processor time adds up; of the busiest worker and
    /// the host the worst counts.
    pub(super) fn merge(&mut self, other: GeneratorUse) {
        if other.busiest_worker_percent > self.busiest_worker_percent {
            self.busiest_worker_percent = other.busiest_worker_percent;
            self.busiest_worker_waiting_percent = other.busiest_worker_waiting_percent;
            self.busiest_worker_spin_percent = other.busiest_worker_spin_percent;
        }
        if self.backend.is_empty() {
            self.backend = other.backend;
        }
        self.cpu_user_s += other.cpu_user_s;
        self.cpu_system_s += other.cpu_system_s;
        self.steal_percent = most(self.steal_percent, other.steal_percent);
        self.peak_rss_bytes = self.peak_rss_bytes.max(other.peak_rss_bytes);
        merge_some(&mut self.woken_by_target, other.woken_by_target, |mine, more| *mine += more);
        let (workers, others) = (self.workers, other.workers);
        merge_some(&mut self.wait, other.wait, |mine, theirs| mine.merge(workers, theirs, others));
        self.workers += others;
    }
}

/// How workers waited for their deadlines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitUse {
    /// The value of `--wait`.
    pub policy: WaitPolicy,
    /// The share of the window in which a worker polled all the time by its own decision, in
    /// percent; mean over the workers.
    pub polling_percent: f64,
    /// The share of the window in which a worker had real-time priority, in percent; mean over the
    /// workers.
    #[serde(default)]
    pub realtime_percent: f64,
    /// The share of the window that a worker spent polling in vain, in percent; mean over the
    /// workers.
    pub polled_percent: f64,
    /// When which worker began to poll all the time, and when it slept again; in order.
    pub changes: Vec<WaitModeChange>,
    /// How late sleeps ended that no event cut short, from the begin of the load.
    pub lateness: Histogram,
}

impl WaitUse {
    /// Adds another process. Its workers are numbered after the `workers` workers of this one.
    fn merge(&mut self, workers: u32, other: WaitUse, others: u32) {
        self.add(&other, [workers, others].map(f64::from));
        let changes = other.changes.into_iter();
        let renumbered =
            |change: WaitModeChange| WaitModeChange { worker: change.worker + workers, ..change };
        self.changes.extend(changes.map(renumbered));
        self.changes.sort_by_key(|change| (change.at, change.worker));
    }

    /// Adds all but the changes. Shares become means with these weights.
    pub(super) fn add(&mut self, other: &WaitUse, weights: [f64; 2]) {
        for (mine, theirs) in [
            (&mut self.polling_percent, other.polling_percent),
            (&mut self.realtime_percent, other.realtime_percent),
            (&mut self.polled_percent, other.polled_percent),
        ] {
            *mine = mean([*mine, theirs], weights);
        }
        self.lateness.merge(&other.lateness);
    }
}

/// The effect of a limit on operations per second in the whole trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateLimitUse {
    /// Operations per second that may start.
    pub per_s: f64,
    /// Operations that started within the limit.
    pub started: u64,
    /// Operations that had to wait for the limit.
    pub held_back: u64,
}

impl RateLimitUse {
    /// Adds the part of another worker, or of another process.
    pub(super) fn merge(&mut self, other: RateLimitUse) {
        self.per_s += other.per_s;
        self.started += other.started;
        self.held_back += other.held_back;
    }
}

/// The machine that the generator ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Processors this process may use.
    pub cpus: u32,
    /// Kernel release.
    pub kernel: String,
    /// Default TCP congestion control, where known.
    pub congestion_control: String,
    /// The backend used: `epoll` or `io_uring`; empty where nothing was run.
    pub backend: String,
    /// Processor model, where known.
    pub cpu_model: String,
    /// Further facts by name.
    #[serde(default)]
    pub facts: BTreeMap<String, String>,
}
