//! Whether a scenario of flows has settled.

use crate::experiment::latency::{LatencyTrial, Probe, ScenarioEnd, Settle};
use crate::stats::rounds::trend;
use crate::time::Nanos;
use std::collections::VecDeque;

/// The judged part is compared in this many batches, …
const BATCHES: usize = 8;
/// … of two windows at the least: neighbouring windows are not independent. By simulation (see the
/// tests) 2 % of climbing queues then pass for level.
const WINDOWS_PER_BATCH: usize = 2;
/// Latency may move by this share of its mean over the judged part, …
const LATENCY_SHARE: f64 = 0.2;
/// … or by this much: no grade of bufferbloat is narrower.
const LATENCY_LEAST_NS: f64 = 5e6;

/// Whether a scenario of flows has settled, judged at the end of each window.
///
/// It has settled when all of these hold:
///
/// - Goodput: over the last [`Settle::windows`] windows the mean goodput of each flow since it
///   began stayed within the tolerance of what it is now. A flow that never moved is steady. A lost
///   flow is left out. While no flow receives anything, nothing settles.
/// - Longest ping: none of the same windows had a longer one than all before.
/// - Latency: it is shown to be level over the later half of all windows, at least 16. This part
///   makes 8 batches. A straight line through their mean pings rises by some time from the first
///   batch to the last, with a 95 % interval by Student's t. Means of long batches are nearly
///   independent (batch means: Law and Kelton, *Simulation Modeling and Analysis*, ch. 9). The
///   whole interval has to lie within ±20 % of the mean, or ±5 ms. This is a test of equivalence
///   (Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987). So a climb below an earlier maximum is
///   seen, noise delays the end, and a queue that oscillates settles after a few periods.
#[derive(Clone, Debug)]
pub struct Settling {
    settle: Settle,
    /// At the end of each of the last windows, oldest first: one more than are compared.
    seen: VecDeque<WindowEnd>,
    /// At the end of every window, from zero at the beginning.
    pings: Vec<PingsSoFar>,
    gone: Vec<bool>,
}

/// Pings that came back since the scenario began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PingsSoFar {
    /// Their number.
    pub answered: u64,
    /// The sum of their round trips.
    pub round_trips: Nanos,
    /// The longest wait of any ping, also of one that is still under way.
    pub longest: Nanos,
}

impl PingsSoFar {
    /// Counts one that came back.
    pub fn add(&mut self, round_trip: Nanos) {
        self.answered += 1;
        self.round_trips += round_trip;
        self.longest = self.longest.max(round_trip);
    }
}

/// Bytes received by the end of one window.
#[derive(Clone, Debug)]
struct WindowEnd {
    at: Nanos,
    received: Vec<u64>,
}

impl Settling {
    /// Nothing is known yet. No windows count as one.
    pub fn new(settle: Settle) -> Settling {
        let windows = settle.windows.max(1);
        Settling {
            settle: Settle { windows, ..settle },
            seen: VecDeque::with_capacity(windows as usize + 2),
            pings: vec![PingsSoFar::default()],
            gone: Vec::new(),
        }
    }

    /// Leaves out flow `index`, counted as in [`Settling::on_window`], which was lost.
    pub fn on_flow_lost(&mut self, index: usize) {
        if self.gone.len() <= index {
            self.gone.resize(index + 1, false);
        }
        self.gone[index] = true;
    }

    /// A window ended, `since_begin` after the flows began: what each flow has received and what
    /// pings measured since then. True when the scenario has settled.
    pub fn on_window(
        &mut self,
        received_bytes: &[u64],
        since_begin: Nanos,
        pings: PingsSoFar,
    ) -> bool {
        self.seen.push_back(WindowEnd { at: since_begin, received: received_bytes.to_vec() });
        if self.seen.len() > self.settle.windows as usize + 1 {
            self.seen.pop_front();
        }
        self.pings.push(pings);
        self.still_changes().is_none()
    }

    /// What has not settled by the end of the last window; `None` where all has.
    pub fn still_changes(&self) -> Option<&'static str> {
        let is_whole = self.seen.len() > self.settle.windows as usize;
        let Some((first, last)) = self.seen.front().zip(self.seen.back()).filter(|_| is_whole)
        else {
            return Some("it was too short to tell");
        };
        if !self.is_goodput_steady(first, last) {
            return Some("its goodput still changed");
        }
        let (now, windows) = (self.pings.len() - 1, self.settle.windows as usize);
        let no_longer = self.pings[now].longest == self.pings[now - windows].longest;
        (!no_longer || !self.is_latency_level()).then_some("its latency still changed")
    }

    fn is_goodput_steady(&self, first: &WindowEnd, now: &WindowEnd) -> bool {
        let live = || (0..now.received.len()).filter(|&flow| !self.is_gone(flow));
        let moved = live().any(|flow| received(now, flow) > received(first, flow));
        let standstill = live().next().is_some() && !moved;
        let steady = |flow| {
            let mean_now = mean(now, flow);
            let allowed = self.settle.tolerance * mean_now;
            let moved_by = |then: &WindowEnd| (mean(then, flow) - mean_now).abs();
            self.seen.iter().all(|then| moved_by(then) <= allowed)
        };
        !standstill && live().all(steady)
    }

    /// Whether the interval of the trend lies within what may be.
    fn is_latency_level(&self) -> bool {
        let windows = self.pings.len() - 1;
        let of_each = (windows / (2 * BATCHES)).max(WINDOWS_PER_BATCH);
        let Some(first) = windows.checked_sub(BATCHES * of_each) else {
            return false;
        };
        let ends: Vec<&PingsSoFar> = self.pings[first..].iter().step_by(of_each).collect();
        let mean_ping = |(index, ends): (usize, &[&PingsSoFar])| {
            let count = ends[1].answered - ends[0].answered;
            let sum_ns = ends[1].round_trips - ends[0].round_trips;
            (count > 0).then(|| (index as f64, sum_ns.0 as f64 / count as f64))
        };
        let means: Option<Vec<(f64, f64)>> = ends.windows(2).enumerate().map(mean_ping).collect();
        // A batch without a ping tells nothing yet; later batches are longer.
        let Some(means) = means else {
            return false;
        };
        let mean_ns = means.iter().map(|(_, ns)| ns).sum::<f64>() / BATCHES as f64;
        let allowed_ns = LATENCY_LEAST_NS.max(LATENCY_SHARE * mean_ns);
        trend(&means).is_some_and(|rise| rise.value.abs() + rise.half_width <= allowed_ns)
    }

    fn is_gone(&self, flow: usize) -> bool {
        self.gone.get(flow).copied().unwrap_or(false)
    }
}

fn received(seen: &WindowEnd, flow: usize) -> u64 {
    seen.received.get(flow).copied().unwrap_or(0)
}

/// Mean goodput since the flows began, in bytes per nanosecond.
fn mean(seen: &WindowEnd, flow: usize) -> f64 {
    received(seen, flow) as f64 / seen.at.0.max(1) as f64
}

/// What had not settled at the end of a scenario that ran for its whole time; `None` where all had.
/// Windows are whole intervals of the time series.
pub fn still_changed(trial: &LatencyTrial) -> Option<&'static str> {
    let settle = match trial.spec.end {
        ScenarioEnd::Settled { settle, .. } => settle,
        ScenarioEnd::After(_) => Settle::default(),
    };
    let interval = trial.spec.interval.0.max(1);
    let per_window = (settle.window.0 / interval).max(1) as usize;
    let mut settling = Settling::new(settle);
    let lost = trial.flows.iter().enumerate();
    let lost = lost.filter_map(|(index, flow)| flow.lost.as_ref().map(|_| index));
    lost.for_each(|index| settling.on_flow_lost(index));
    let came = |p: &Probe| p.back.map(|back| (p.sent + back.round_trip, back.round_trip));
    let mut back: Vec<(Nanos, Nanos)> = trial.tcp.probes.iter().filter_map(came).collect();
    back.sort_unstable();
    let (mut back, mut pings) = (back.into_iter().peekable(), PingsSoFar::default());
    let mut received = vec![0; trial.flows.len()];
    for window in 1..=(trial.elapsed.0 / interval) as usize / per_window {
        let end = Nanos((window * per_window) as u64 * interval);
        for (sum, flow) in received.iter_mut().zip(&trial.flows) {
            let counts = flow.by_interval.iter().skip((window - 1) * per_window);
            *sum += counts.take(per_window).sum::<u64>();
        }
        while let Some((_, round_trip)) = back.next_if(|(at, _)| *at <= end) {
            pings.add(round_trip);
        }
        settling.on_window(&received, end, pings);
    }
    settling.still_changes()
}

#[cfg(test)]
mod tests;
