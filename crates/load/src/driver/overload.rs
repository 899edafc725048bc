//! Connection overload: connects that start whatever becomes of the earlier ones.
//!
//! Simple clients have no driver of their own: they are the closed loop without a pause. It holds a
//! client back after a failure (see [`super::BACKOFF_FIRST`]). A blocking client would connect
//! again at once, and the storm of refused connects would hide everything else.

use super::{Action, Driver, next_intended};
use crate::arrival::Arrivals;
use crate::measure::{Completion, Op};
use crate::spec::{ArrivalLaw, Rate, Share, TrialSpec};
use crate::throttle::{CatchUp, Throttle};
use crate::time::Nanos;
use std::collections::VecDeque;

/// S-Clients (Banga and Druschel, USITS 1997): a fixed number D of connects in flight. Each is
/// abandoned after T, the trial's `connect_timeout`, and replaced.
///
/// Slot i of all D first starts at i·T/D. A slot whose connect is established starts its next at
/// that time. Any other starts it exactly T after the intended start of the last. The schedule is
/// absolute, so lateness never adds up, and a server that refuses gets no more connects than a
/// silent one. The offered rate is the rate of established connects plus D/T.
///
/// A late worker starts the next connect of a slot before it abandons the last one. For the time of
/// its delay more than D connects may be in flight.
#[derive(Debug)]
pub struct SClients {
    patience: Nanos,
    end: Nanos,
    /// Operations that may still start.
    remaining: u64,
    tickets: Tickets,
    /// Next start of each slot, in order. Entries whose ticket is no longer valid are void.
    due: VecDeque<Op>,
    /// Slots whose connect was established, with that time.
    ready: VecDeque<Op>,
}

impl SClients {
    /// One worker's share of `descriptors` slots: it has every W-th of all, so that the starts of
    /// all workers together are spread evenly.
    pub fn new(spec: &TrialSpec, descriptors: u32, share: Share) -> SClients {
        let slots = share.part(descriptors.into()) as u32;
        let working = Share { of: share.of.min(descriptors).max(1), ..share };
        let remaining = spec.operations_max.map_or(u64::MAX, |n| working.part(n));
        let patience = spec.connect_timeout.max(Nanos(1));
        let first = |slot: u32| {
            let of_all = u128::from(slot) * u128::from(share.of) + u128::from(share.index);
            let at = of_all * u128::from(patience.0) / u128::from(descriptors.max(1));
            Op { intended: Nanos(at as u64), lane: slot }
        };
        SClients {
            patience,
            end: spec.window_end(),
            remaining: if slots == 0 { 0 } else { remaining },
            tickets: Tickets::new(slots),
            due: (0..slots).map(first).collect(),
            ready: VecDeque::new(),
        }
    }

    /// The next slot to start with its intended time, and whether it was established.
    #[inline]
    fn next(&mut self) -> Option<(Op, bool)> {
        while let Some(op) = self.due.front()
            && !self.tickets.is_valid(op.lane)
        {
            self.due.pop_front();
        }
        match (self.ready.front(), self.due.front()) {
            (Some(&ready), Some(&due)) if due.intended < ready.intended => Some((due, false)),
            (Some(&ready), _) => Some((ready, true)),
            (None, due) => due.map(|&due| (due, false)),
        }
    }

    /// Plans the next start of a slot. Times come nearly in order, so the search begins at the end.
    #[inline]
    fn plan(&mut self, op: Op) {
        let later = |due: &&Op| due.intended > op.intended;
        let behind = self.due.iter().rev().take_while(later).count();
        self.due.insert(self.due.len() - behind, op);
    }
}

impl Driver for SClients {
    #[inline]
    fn poll(&mut self, now: Nanos) -> Action {
        if self.remaining == 0 {
            return Action::Done;
        }
        let Some((next, established)) = self.next() else {
            return Action::Done;
        };
        if next.intended >= self.end {
            // Until the end a connect may still be established, and be followed by another.
            return if now < self.end { Action::WaitUntil(self.end) } else { Action::Done };
        }
        if next.intended > now {
            return Action::WaitUntil(next.intended);
        }
        let queue = if established { &mut self.ready } else { &mut self.due };
        queue.pop_front();
        self.remaining -= 1;
        let op = Op { lane: self.tickets.renew(next.lane), ..next };
        self.plan(Op { intended: op.intended + self.patience, ..op });
        Action::Start(op)
    }

    #[inline]
    fn on_established(&mut self, lane: u32, now: Nanos) {
        if self.tickets.is_valid(lane) {
            // A new ticket makes the planned start of this slot void.
            let lane = self.tickets.renew(lane);
            let intended = now;
            self.ready.push_back(Op { intended, lane });
        }
    }

    #[inline]
    fn on_completion(&mut self, _completion: &Completion, _now: Nanos) {}
}

/// Connects started by a schedule, with a limit on the number in flight.
///
/// A connect is in flight until it is established or has ended. A start that would exceed the limit
/// is shed and counted. A late start keeps its intended time.
#[derive(Debug)]
pub struct Scheduled {
    throttle: Throttle,
    end: Nanos,
    tickets: Tickets,
    /// Tickets of the unused slots.
    free: Vec<u32>,
}

impl Scheduled {
    /// One worker's share of the schedule, and its part of `descriptors`, at least 1.
    pub fn new(
        spec: &TrialSpec,
        (rate, arrival): (Rate, &ArrivalLaw),
        descriptors: u32,
        share: Share,
    ) -> Scheduled {
        let arrivals = Arrivals::of(rate, arrival, share, spec.seed);
        let mut throttle = Throttle::new(arrivals, CatchUp::ALL, Nanos::ZERO);
        if let Some(n) = spec.operations_max {
            throttle = throttle.with_operations_max(share.part(n));
        }
        let slots = share.part(descriptors.into()).max(1) as u32;
        Scheduled {
            throttle,
            end: spec.window_end(),
            tickets: Tickets::new(slots),
            free: (0..slots).rev().collect(),
        }
    }

    /// The connect with this ticket is no longer in flight.
    #[inline]
    fn release(&mut self, ticket: u32) {
        if self.tickets.is_valid(ticket) {
            let fresh = self.tickets.renew(ticket);
            self.free.push(fresh);
        }
    }
}

impl Driver for Scheduled {
    #[inline]
    fn poll(&mut self, now: Nanos) -> Action {
        let intended = match next_intended(&mut self.throttle, self.end, now) {
            Ok(intended) => intended,
            Err(action) => return action,
        };
        match self.free.pop() {
            Some(lane) => Action::Start(Op { intended, lane }),
            None => Action::Shed(Op { intended, lane: Op::ANY_LANE }),
        }
    }

    #[inline]
    fn on_established(&mut self, lane: u32, _now: Nanos) {
        self.release(lane);
    }

    #[inline]
    fn on_completion(&mut self, completion: &Completion, _now: Nanos) {
        self.release(completion.lane);
    }
}

/// Tickets tell the uses of a slot apart. The lane of an operation is a ticket; only the last one
/// issued for a slot is valid. An operation that ends late does not disturb the next one of its
/// slot.
#[derive(Debug)]
struct Tickets(Vec<u32>);

impl Tickets {
    /// Slot i begins with ticket i.
    fn new(slots: u32) -> Tickets {
        Tickets((0..slots).collect())
    }

    #[inline]
    fn slot(&self, ticket: u32) -> usize {
        ticket as usize % self.0.len().max(1)
    }

    #[inline]
    fn is_valid(&self, ticket: u32) -> bool {
        self.0.get(self.slot(ticket)) == Some(&ticket)
    }

    /// Issues the next ticket of the slot that this ticket is of.
    #[inline]
    fn renew(&mut self, ticket: u32) -> u32 {
        let slot = self.slot(ticket);
        let next = ticket.checked_add(self.0.len() as u32);
        let next = next.filter(|&t| t != Op::ANY_LANE).unwrap_or(slot as u32);
        self.0[slot] = next;
        next
    }
}

#[cfg(test)]
mod tests;
