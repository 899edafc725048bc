//! What happens next in virtual time.

use super::generator::{Answer, Request};
use knee_load::time::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A request comes to the station.
    Arrive(Request),
    /// The station has served a request.
    Finish(Request),
    /// The generator learns what became of its request.
    Answer { request: Request, answer: Answer },
    /// The server's process dies.
    Crash,
    /// The generator looks whether the operation in this slot has timed out.
    Deadline(u32),
    /// The user wants the trial to end.
    Interrupt,
}

/// Events in the order of their moments; those of the same moment in the order they were added.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    added: u64,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Nanos, event: Event) {
        self.events.push(Reverse((at, self.added, event)));
        self.added += 1;
    }

    /// The next event, unless it is later than `until`.
    pub(super) fn next_until(&mut self, until: Nanos) -> Option<(Nanos, Event)> {
        let &Reverse((at, _, event)) = self.events.peek()?;
        if at > until {
            return None;
        }
        self.events.pop();
        Some((at, event))
    }
}
