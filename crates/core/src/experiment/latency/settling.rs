//! When a scenario of flows has settled.

use crate::experiment::latency::spec::Settle;
use crate::time::Nanos;
use std::collections::VecDeque;

/// Whether a scenario of flows has settled, told at the end of each window.
///
/// It has when over the last [`Settle::windows`] windows the mean goodput of each flow since it
/// began stayed within the tolerance of what it is now, and the pinger saw no new maximum. Beside
/// that:
///
/// - A flow that never moved is steady, as its mean is.
/// - A flow that was lost is left out: its mean only falls from then on, and says nothing.
/// - While there are flows but none of them gets anything over those windows, nothing settles: it
///   is a standstill, and only the scenario's limit ends it.
#[derive(Clone, Debug)]
pub struct Settling {
    settle: Settle,
    /// At the end of each of the last windows, oldest first: one more than are to agree.
    seen: VecDeque<Seen>,
    gone: Vec<bool>,
}

/// What was known at the end of one window.
#[derive(Clone, Debug)]
struct Seen {
    at: Nanos,
    received: Vec<u64>,
    longest: Nanos,
}

impl Settling {
    /// Nothing is known yet. No windows count as one.
    pub fn new(settle: Settle) -> Settling {
        let windows = settle.windows.max(1);
        Settling {
            settle: Settle { windows, ..settle },
            seen: VecDeque::with_capacity(windows as usize + 2),
            gone: Vec::new(),
        }
    }

    /// Flow `index`, counted as in [`Settling::on_window`], was lost: it counts no more.
    pub fn on_flow_lost(&mut self, index: usize) {
        if self.gone.len() <= index {
            self.gone.resize(index + 1, false);
        }
        self.gone[index] = true;
    }

    /// A window is over, `since_begin` after the flows began. Each flow has received so many bytes
    /// since it began, and the longest latency of the pinger so far is `longest_latency` (that of
    /// this window alone does as well). True when the scenario has settled; it takes one window
    /// more than are to agree, as the first one has nothing to be compared with.
    pub fn on_window(
        &mut self,
        received_bytes: &[u64],
        since_begin: Nanos,
        longest_latency: Nanos,
    ) -> bool {
        let longest = self.seen.back().map_or(Nanos::ZERO, |s| s.longest);
        self.seen.push_back(Seen {
            at: since_begin,
            received: received_bytes.to_vec(),
            longest: longest.max(longest_latency),
        });
        let wanted = self.settle.windows as usize + 1;
        if self.seen.len() > wanted {
            self.seen.pop_front();
        }
        self.seen.len() == wanted && self.settled()
    }

    fn settled(&self) -> bool {
        let (Some(first), Some(now)) = (self.seen.front(), self.seen.back()) else {
            return false;
        };
        let live = || (0..now.received.len()).filter(|&flow| !self.is_gone(flow));
        let moved = live().any(|flow| received(now, flow) > received(first, flow));
        let standstill = live().next().is_some() && !moved;
        let steady = |flow| {
            let mean_now = mean(now, flow);
            let allowed = self.settle.tolerance * mean_now;
            let moved_by = |then: &Seen| (mean(then, flow) - mean_now).abs();
            self.seen.iter().all(|then| moved_by(then) <= allowed)
        };
        first.longest == now.longest && !standstill && live().all(steady)
    }

    fn is_gone(&self, flow: usize) -> bool {
        self.gone.get(flow).copied().unwrap_or(false)
    }
}

fn received(seen: &Seen, flow: usize) -> u64 {
    seen.received.get(flow).copied().unwrap_or(0)
}

/// Mean goodput since the flows began, in bytes per nanosecond.
fn mean(seen: &Seen, flow: usize) -> f64 {
    received(seen, flow) as f64 / seen.at.0.max(1) as f64
}

#[cfg(test)]
mod tests;
