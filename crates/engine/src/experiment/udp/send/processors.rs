//! How busy the clients' processors are while they send.

use super::SendPlan;
use crate::kernel::host::Processors;
use crate::sys::clock::monotonic_ns;
use crate::threads;
use knee_core::time::Nanos;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// Runs `run`, and for how long the processors that the clients are bound to were busy from the
/// plan's origin until its time or `run` was over; `None`: they are bound to none, or a send costs
/// what it does, so that nobody asks.
pub(super) fn watch<T>(plan: &SendPlan, run: impl FnOnce() -> T) -> (T, Option<Nanos>) {
    let spec = &plan.spec;
    if spec.client_cpus.is_empty() || spec.send_cost == Nanos::ZERO {
        return (run(), None);
    }
    thread::scope(|scope| {
        let (running, over) = mpsc::channel::<()>();
        let watcher = threads::spawn(scope, "processors", move || {
            wait(&over, plan.origin);
            let before = Processors::now(&spec.client_cpus);
            wait(&over, plan.origin.saturating_add(spec.duration.0));
            before.busy_since()
        });
        let made = run();
        drop(running);
        // Where no thread can be had it stays unknown.
        let busy = watcher.ok().and_then(|watcher| watcher.join().ok());
        (made, busy.flatten())
    })
}

/// Sleeps until this moment, or until what is watched is over.
fn wait(over: &Receiver<()>, until_ns: u64) {
    let left = until_ns.saturating_sub(monotonic_ns());
    // It ends with an error either way, as nothing is ever sent.
    let _ = over.recv_timeout(Duration::from_nanos(left));
}
