//! Operations that wait for one of a bounded number of connections. The engine and the simulator
//! use it.

mod service_times;
#[cfg(test)]
mod tests;

use crate::time::Nanos;
use service_times::ServiceTimes;
use std::collections::VecDeque;

/// Operations that wait for a connection, in the order of their deadlines.
///
/// Under overload, first come, first served would send every operation just before its timeout.
/// None would succeed, and each would cost the server work and the generator a connection. So an
/// operation without a chance is passed over. It ends at its timeout, unsent:
///
/// - one with less time left than the shortest recent service time;
/// - while the line is longer than the connections can carry in time, also one with less time left
///   than nearly all recent requests took. Some of the line cannot be served then. What has waited
///   longest gains least.
///
/// Older service times count for less. A faster server is noticed, as something is always sent: at
/// least what comes while a connection is free.
#[derive(Debug)]
pub struct ConnectionQueue<T> {
    connections: u64,
    line: Line<T>,
    /// Passed over.
    hopeless: Line<T>,
    times: ServiceTimes,
}

/// Operations by deadline.
type Line<T> = VecDeque<(Nanos, T)>;

/// Adds an operation to a line. Deadlines come nearly in order, so that the search from the back
/// looks at one or two.
#[inline]
fn add<T>(line: &mut Line<T>, deadline: Nanos, operation: T) {
    let earlier = line.iter().rposition(|&(at, _)| at <= deadline);
    let place = earlier.map_or(0, |at| at + 1);
    if place == line.len() {
        line.push_back((deadline, operation));
    } else {
        line.insert(place, (deadline, operation));
    }
}

impl<T> ConnectionQueue<T> {
    /// An empty queue for these connections.
    pub fn new(connections: u64) -> ConnectionQueue<T> {
        ConnectionQueue {
            connections: connections.max(1),
            line: VecDeque::new(),
            hopeless: VecDeque::new(),
            times: ServiceTimes::default(),
        }
    }

    /// An operation begins to wait, until its deadline at most.
    #[inline]
    pub fn push(&mut self, deadline: Nanos, operation: T) {
        add(&mut self.line, deadline, operation);
    }

    /// A connection is free at `now`: the operation that gets it.
    #[inline]
    pub fn take(&mut self, now: Nanos) -> Option<T> {
        if self.line.is_empty() {
            return None;
        }
        self.take_with_chance(now)
    }

    #[inline(never)]
    fn take_with_chance(&mut self, now: Nanos) -> Option<T> {
        let needed = self.times.needed();
        while let Some((deadline, operation)) = self.line.pop_front() {
            let left = deadline - now;
            let passed_over = left == Nanos::ZERO
                || left < needed.least
                || (left < needed.usual && self.is_too_long(now));
            if !passed_over {
                return Some(operation);
            }
            add(&mut self.hopeless, deadline, operation);
        }
        None
    }

    /// Whether the last of the line would be reached with less time left than a request takes.
    #[inline]
    fn is_too_long(&mut self, now: Nanos) -> bool {
        let Some(&(deadline, _)) = self.line.back() else {
            return false;
        };
        let needed = self.times.needed();
        let waits = u128::from(needed.mean.0) * self.line.len() as u128;
        let waits = (waits / u128::from(self.connections)).min(u128::from(u64::MAX));
        now + Nanos(waits as u64) + needed.mean > deadline
    }

    /// An operation had a connection for this long: until its whole response was there, or, where
    /// it is not `whole`, until its timeout.
    #[inline]
    pub fn note(&mut self, took: Nanos, whole: bool) {
        self.times.note(took, whole);
    }

    /// The operation with the first deadline.
    #[inline]
    pub fn first(&self) -> Option<&T> {
        let first = [&self.line, &self.hopeless].map(VecDeque::front);
        let first = first.into_iter().flatten().min_by_key(|(at, _)| *at)?;
        Some(&first.1)
    }

    /// When [`ConnectionQueue::expire`] has something to do next.
    #[inline]
    pub fn next_deadline(&self) -> Nanos {
        let first = |of: &Line<T>| of.front().map_or(Nanos::MAX, |&(at, _)| at);
        first(&self.line).min(first(&self.hopeless))
    }

    /// An operation whose time is over at `now`; ask until there is none.
    #[inline]
    pub fn expire(&mut self, now: Nanos) -> Option<T> {
        let first = [&mut self.hopeless, &mut self.line];
        let over = first
            .into_iter()
            .find(|of| of.front().is_some_and(|&(deadline, _)| deadline <= now))?;
        over.pop_front().map(|(_, operation)| operation)
    }

    /// Whatever waits; ask until there is nothing.
    pub fn abandon(&mut self) -> Option<T> {
        let next = self.hopeless.pop_front().or_else(|| self.line.pop_front());
        next.map(|(_, operation)| operation)
    }
}
