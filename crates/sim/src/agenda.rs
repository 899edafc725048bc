//! What happens next in virtual time.

use super::request::{RequestFate, SimulatedRequest};
use knee_load::time::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SimulatedEvent {
    /// A request comes to the station.
    Arrive(SimulatedRequest),
    /// The station has served a request.
    Finish(SimulatedRequest),
    /// The generator learns what became of its request.
    Answer { request: SimulatedRequest, answer: RequestFate },
    /// The server's process dies.
    Crash,
    /// The generator looks whether the operation in this slot has timed out.
    Deadline(u32),
    /// The user wants the trial to end.
    Interrupt,
    /// A sentinel begins.
    Sentinel,
}

/// Events in the order of their times; those of the same time in the order they were added.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    events: BinaryHeap<Reverse<(Nanos, u64, SimulatedEvent)>>,
    added: u64,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Nanos, event: SimulatedEvent) {
        self.events.push(Reverse((at, self.added, event)));
        self.added += 1;
    }

    /// The next event, unless it is later than `until`.
    pub(super) fn next_until(&mut self, until: Nanos) -> Option<(Nanos, SimulatedEvent)> {
        let &Reverse((at, _, event)) = self.events.peek()?;
        if at > until {
            return None;
        }
        self.events.pop();
        Some((at, event))
    }
}
