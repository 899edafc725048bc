//! Sentinels: when patient operations beside a load begin, what they show of a queue, and when a
//! trial has shown enough. Pure; the engine and the simulator both run them.
//!
//! They have connections of their own and are outside all other figures. `trend` tells a queue that
//! drains from one that stays, and so decides when such a trial ends. The engine runs them on a
//! thread (of a fleet: the coordinator's), and the simulator does; `knee-core` asks `trend` again.
//!
//! A **sentinel** is sent without the users' timeout. Where requests are served first come, first
//! served, its wait is the length of the queue when it began.

#[cfg(test)]
mod tests;
mod trend;

pub use trend::{FallingQueue, QueueTrend};

use crate::measure::{Completion, Op, SentinelEnd, SentinelSample};
use crate::spec::{SentinelSpec, TrialSpec};
use crate::time::Nanos;

/// The sentinels of a running trial. Times are those of the run.
#[derive(Clone, Debug)]
pub struct Sentinels {
    spec: SentinelSpec,
    /// The begin of the window.
    begins: Nanos,
    ends: Nanos,
    due: Nanos,
    samples: Vec<SentinelSample>,
}

impl Sentinels {
    /// The sentinels of a trial, if it has any.
    pub fn of(spec: &TrialSpec) -> Option<Sentinels> {
        let sentinel = spec.sentinel?;
        let (begins, ends) = (spec.warmup, spec.window_end());
        Some(Sentinels { spec: sentinel, begins, ends, due: begins, samples: Vec::new() })
    }

    /// When the next one begins; `None` after the window.
    pub fn next_due(&self) -> Option<Nanos> {
        (self.due < self.ends).then_some(self.due)
    }

    /// Begins the next one at `now`. Its lane is its number.
    pub fn begin(&mut self, now: Nanos) -> Op {
        let every = self.spec.every.0.max(1);
        let passed = (now - self.due).0 / every;
        self.due += Nanos(every * (passed + 1));
        let lane = self.samples.len() as u32;
        let began_ns = (now - self.begins).0;
        self.samples.push(SentinelSample { began_ns, wait_ns: 0, end: SentinelEnd::Pending });
        Op { intended: now, lane }
    }

    /// Notes how one ended.
    pub fn on_completion(&mut self, completion: &Completion) {
        let outcome = completion.outcome;
        let end = if outcome.is_good() {
            SentinelEnd::Answered
        } else if outcome.is_censored() {
            SentinelEnd::Pending
        } else {
            SentinelEnd::Refused
        };
        self.end(completion.lane, end, completion.completed);
    }

    fn end(&mut self, number: u32, end: SentinelEnd, at: Nanos) {
        if let Some(sample) = self.samples.get_mut(number as usize) {
            let wait_ns = (at - self.begins).0.saturating_sub(sample.began_ns);
            *sample = SentinelSample { wait_ns, end, ..*sample };
        }
    }

    /// Whether the trial has shown what it was to show by `now`.
    pub fn have_shown_enough(&self, now: Nanos) -> bool {
        let at = now - self.begins;
        if at < self.spec.ends_from {
            return false;
        }
        match QueueTrend::of(&self.samples, &self.spec, at) {
            QueueTrend::Unseen | QueueTrend::OutOfOrder | QueueTrend::Stays { .. } => true,
            QueueTrend::Unknown { .. } => at >= self.spec.undecided_until,
            QueueTrend::Falls(_) => !self.spec.follows_fall,
            QueueTrend::Calm { since } => at - since >= self.spec.calm,
        }
    }

    /// All of them, at the end of the load.
    pub fn finish(mut self, now: Nanos) -> Vec<SentinelSample> {
        for sample in self.samples.iter_mut().filter(|sample| sample.wait_ns == 0) {
            sample.wait_ns = (now - self.begins).0.saturating_sub(sample.began_ns);
        }
        self.samples
    }
}
