//! The open loop: a schedule of operations, whatever the target does.

use super::{Action, Driver, next_intended};
use crate::measure::{Completion, Op};
use crate::spec::{OpenLoad, Share, TrialSpec};
use crate::throttle::{CatchUp, Throttle};
use crate::time::Nanos;

/// Starts an operation at each time of an arrival process, however many are in flight.
///
/// A late start keeps its intended time. An arrival that would exceed `in_flight_max` is shed; it
/// counts as one of `operations_max`. The schedule ends with the last time of a trace, after
/// exactly `operations_max` arrivals, or with the window. It waits for the window's end even if its
/// last arrival came long before, as the whole window is measured.
#[derive(Debug)]
pub struct OpenLoop {
    throttle: Throttle,
    end: Nanos,
    /// The number of the next arrival, where each sends the recorded request with its number.
    number: Option<u32>,
    in_flight: u64,
    in_flight_max: u64,
}

impl OpenLoop {
    /// One worker's share of `load`, the load of `spec`. Of `in_flight_max` it has its part, but
    /// at least 1.
    pub fn new(spec: &TrialSpec, load: &OpenLoad, share: Share) -> OpenLoop {
        let arrivals = load.arrivals(share, spec.seed);
        let mut throttle = Throttle::new(arrivals, CatchUp::ALL, Nanos::ZERO);
        if let Some(n) = spec.operations_max {
            throttle = throttle.with_operations_max(share.part(n));
        }
        let in_flight_max = load.in_flight_max.map(|max| share.part(max.into()).max(1));
        OpenLoop {
            throttle,
            end: spec.window_end(),
            number: spec.target.recording.is_some().then_some(0),
            in_flight: 0,
            in_flight_max: in_flight_max.unwrap_or(u64::MAX),
        }
    }
}

impl Driver for OpenLoop {
    #[inline]
    fn poll(&mut self, now: Nanos) -> Action {
        let intended = match next_intended(&mut self.throttle, self.end, now) {
            Ok(intended) => intended,
            Err(action) => return action,
        };
        let lane = self.number.unwrap_or(Op::ANY_LANE);
        self.number = self.number.map(|number| number.wrapping_add(1));
        if self.in_flight >= self.in_flight_max {
            return Action::Shed(Op { intended, lane });
        }
        self.in_flight += 1;
        Action::Start(Op { intended, lane })
    }

    #[inline]
    fn on_completion(&mut self, _completion: &Completion, _now: Nanos) {
        debug_assert!(self.in_flight > 0, "a completion without a start");
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}
