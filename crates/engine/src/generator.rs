//! What a run cost the generator, summed up over its workers.

use crate::kernel::host;
use crate::sys::clock::ThreadUse;
use knee_load::measure::GeneratorUse;
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};

/// What one worker cost.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WorkerUse {
    /// Its processor time over the measured time.
    pub used: ThreadUse,
    /// Of it, time spent polling in vain.
    pub polled: Nanos,
    /// The time in which it was used; it covers all of that.
    pub over: Nanos,
}

impl WorkerUse {
    fn busy(&self) -> f64 {
        (self.used.user + self.used.system).thread_percent(self.over)
    }

    fn waiting(&self) -> f64 {
        self.used.kept_waiting.thread_percent(self.over)
    }
}

/// The sum over `workers`, whose traffic `backend` carried, while the hypervisor gave
/// `steal_percent` of the host's time to others.
pub(crate) fn generator_use(
    backend: &str,
    workers: &[WorkerUse],
    steal_percent: Option<f64>,
) -> GeneratorUse {
    let wanted = |w: &&WorkerUse| w.busy() + w.waiting();
    let busiest = workers.iter().max_by(|a, b| wanted(a).total_cmp(&wanted(b)));
    let sum = |part: fn(&ThreadUse) -> Nanos| {
        let parts = workers.iter().map(|w| part(&w.used).as_secs_f64());
        parts.sum::<f64>()
    };
    GeneratorUse {
        backend: backend.to_owned(),
        cpu_user_s: sum(|u| u.user),
        cpu_system_s: sum(|u| u.system),
        busiest_worker_percent: busiest.map_or(0.0, WorkerUse::busy),
        busiest_worker_waiting_percent: busiest.map_or(0.0, WorkerUse::waiting),
        busiest_worker_spin_percent: busiest.map_or(0.0, |w| w.polled.thread_percent(w.over)),
        steal_percent,
        peak_rss_bytes: host::peak_rss_bytes(),
        workers: workers.len() as u32,
        woken_by_target: None,
        wait: None,
    }
}
