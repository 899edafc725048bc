//! Requests in the order of their times, as far as memory permits.

use super::line::LoggedRequest;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Requests that are kept to be put in order. Servers log a request when it ends, so that one that
/// took long stands behind others that came later.
const KEPT_MAX: usize = 100_000;

const SECOND_NS: i64 = 1_000_000_000;

/// Puts requests in order, and spreads those of a second.
#[derive(Debug, Default)]
pub(super) struct LogOrder {
    kept: BinaryHeap<Reverse<Kept>>,
    count: u64,
    /// The time of the last one that left.
    last_ns: i64,
    /// Requests that left later than at their times.
    pub(super) moved: u64,
    /// Requests of one second, whose times are not known further, or a single one.
    group: VecDeque<LoggedRequest>,
}

/// A request that waits, in the order of the times and then of the log.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    at_ns: i64,
    number: u64,
    request: LoggedRequest,
}

impl LogOrder {
    /// Adds a request.
    pub(super) fn push(&mut self, request: LoggedRequest) {
        let at_ns = request.at_ns;
        self.kept.push(Reverse(Kept { at_ns, number: self.count, request }));
        self.count += 1;
    }

    /// The next one, if too many are kept.
    pub(super) fn next_if_full(&mut self) -> Option<LoggedRequest> {
        if self.group.is_empty() && self.kept.len() < KEPT_MAX {
            return None;
        }
        self.next()
    }

    /// The next one in the order of their times.
    pub(super) fn next(&mut self) -> Option<LoggedRequest> {
        if self.group.is_empty() {
            self.gather();
        }
        self.group.pop_front()
    }

    /// Gathers those that are next: of one second, where that is all that is known.
    fn gather(&mut self) {
        let Some(first) = self.take() else {
            return;
        };
        let second = first.at_ns.div_euclid(SECOND_NS);
        let is_spread = first.is_of_second;
        self.group.push_back(first);
        let goes_with = |Reverse(next): &Reverse<Kept>| {
            next.request.is_of_second && next.request.at_ns.div_euclid(SECOND_NS) == second
        };
        while is_spread && self.kept.peek().is_some_and(goes_with) {
            let next = self.take();
            self.group.extend(next);
        }
        if is_spread {
            let each = SECOND_NS / self.group.len() as i64;
            for (k, request) in (0..).zip(&mut self.group) {
                request.at_ns = (second * SECOND_NS + k * each).max(self.last_ns);
            }
        }
        self.last_ns = self.group.back().map_or(self.last_ns, |last| last.at_ns);
    }

    fn take(&mut self) -> Option<LoggedRequest> {
        let Reverse(Kept { mut request, .. }) = self.kept.pop()?;
        let latest = request.at_ns + if request.is_of_second { SECOND_NS - 1 } else { 0 };
        if latest < self.last_ns {
            self.moved += 1;
            request.at_ns = self.last_ns;
        }
        Some(request)
    }
}
