//! The open loop: a schedule that does not care how the target fares.

use super::{Action, Driver, Op};
use crate::arrival::{ArrivalProcess, Arrivals};
use crate::measure::Completion;
use crate::spec::{OpenLoad, Share, TrialSpec};
use crate::time::Nanos;

/// Starts an operation at each moment of an arrival process, however many are in flight.
///
/// An arrival that the generator is late for keeps its intended moment. One that would exceed
/// `in_flight_max` is shed; it counts as one of `operations_max`. The schedule ends with a trace's
/// last moment, or after exactly `operations_max` arrivals, or with the window: then it waits for
/// the window's end even if its last arrival came long before, as the window is measured whole.
#[derive(Debug)]
pub struct OpenLoop {
    arrivals: Arrivals,
    /// The next arrival; `None`: there are no more.
    next: Option<Nanos>,
    /// Arrivals there would have been, but beyond the end of the window.
    cut: bool,
    /// Arrivals still to come after `next`, at the most.
    remaining: u64,
    end: Nanos,
    in_flight: u64,
    in_flight_max: u64,
}

impl OpenLoop {
    /// One worker's share of `load`, the load of `spec`. Of `in_flight_max` it has its part, but
    /// at least 1.
    pub fn new(spec: &TrialSpec, load: &OpenLoad, share: Share) -> OpenLoop {
        let in_flight_max = load.in_flight_max.map(|max| share.part(max.into()).max(1));
        let mut driver = OpenLoop {
            arrivals: Arrivals::new(load, share, spec.seed),
            next: None,
            cut: false,
            remaining: spec.operations_max.map_or(u64::MAX, |n| share.part(n)),
            end: spec.window_end(),
            in_flight: 0,
            in_flight_max: in_flight_max.unwrap_or(u64::MAX),
        };
        driver.advance();
        driver
    }

    fn advance(&mut self) {
        self.next = None;
        if self.remaining > 0 {
            self.remaining -= 1;
            let next = self.arrivals.next();
            self.next = next.filter(|&t| t < self.end);
            self.cut = next.is_some() && self.next.is_none();
        }
    }
}

impl Driver for OpenLoop {
    fn poll(&mut self, now: Nanos) -> Action {
        let Some(intended) = self.next else {
            let lasts = self.cut && now < self.end;
            return if lasts {
                Action::WaitUntil(self.end)
            } else {
                Action::Done
            };
        };
        if intended > now {
            return Action::WaitUntil(intended);
        }
        self.advance();
        let lane = Op::ANY_LANE;
        if self.in_flight >= self.in_flight_max {
            return Action::Shed(Op { intended, lane });
        }
        self.in_flight += 1;
        Action::Start(Op { intended, lane })
    }

    fn on_completion(&mut self, _completion: &Completion, _now: Nanos) {
        debug_assert!(self.in_flight > 0, "a completion without a start");
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}
