//! Fixed concurrency: a number of calls over a number of lanes.

use std::ops::ControlFlow;

/// Limits the calls in flight, and permits an exact number in all, unless one fails.
///
/// It starts nothing itself: it says when a call may begin, and its user reports when one has
/// ended. So it serves threads, tasks and state machines alike.
///
/// The first call that fails is the last that any lane begins. Its error comes back at once,
/// whichever lane it was in: nobody waits for the calls that began before it. Those still in flight
/// are to be ended as well; an error of theirs comes back likewise.
///
/// ```
/// use knee_load::throttle::Lanes;
/// use std::ops::ControlFlow;
///
/// let mut lanes = Lanes::new(2, 5);
/// let first = lanes.begin().unwrap();
/// let second = lanes.begin().unwrap();
/// assert_eq!((first.lane(), second.lane()), (0, 1));
/// assert!(lanes.begin().is_none(), "both lanes are taken");
///
/// assert_eq!(lanes.end(first, Ok::<_, &str>(42)), ControlFlow::Continue(42));
/// let third = lanes.begin().unwrap();
/// assert_eq!((third.number(), third.lane()), (2, 0));
///
/// // The second fails while the third is in flight: two of the five are never begun.
/// assert_eq!(lanes.end(second, Err::<(), _>("reset")), ControlFlow::Break("reset"));
/// assert!(lanes.begin().is_none() && !lanes.is_done());
/// assert_eq!(lanes.end(third, Ok::<_, &str>(())), ControlFlow::Continue(()));
/// assert!(lanes.is_done());
/// assert_eq!((lanes.begun(), lanes.succeeded(), lanes.failed()), (3, 2, 1));
/// ```
#[derive(Debug)]
pub struct Lanes {
    lanes: u32,
    total: u64,
    begun: u64,
    succeeded: u64,
    failed: u64,
    /// Lanes that were used and are free again.
    free: Vec<u32>,
    /// Lanes from this one on were never used.
    unused_from: u32,
}

/// A call that has begun: to be handed back when it has ended.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "its lane is taken until it is ended"]
pub struct LaneCall {
    number: u64,
    lane: u32,
}

impl LaneCall {
    /// Which call it is, from 0, in the order in which they begin.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The lane that is its own until it ends, from 0: no other call in flight has it.
    pub fn lane(&self) -> u32 {
        self.lane
    }
}

impl Lanes {
    /// Room for `lanes` calls at once, and `total` in all. Without lanes none can begin.
    pub fn new(lanes: u32, total: u64) -> Lanes {
        Lanes { lanes, total, begun: 0, succeeded: 0, failed: 0, free: Vec::new(), unused_from: 0 }
    }

    /// Whether a call may begin now. With a [`Throttle`](super::Throttle), ask this first: an
    /// operation that the throttle has let go should not have to wait for a lane.
    pub fn is_free(&self) -> bool {
        self.more_to_begin() && (self.unused_from < self.lanes || !self.free.is_empty())
    }

    /// Begins a call, in the lane that was given back last; `None`: all lanes are taken, all calls
    /// have begun, or one has failed.
    pub fn begin(&mut self) -> Option<LaneCall> {
        if !self.is_free() {
            return None;
        }
        let lane = self.free.pop().unwrap_or_else(|| {
            self.unused_from += 1;
            self.unused_from - 1
        });
        let number = self.begun;
        self.begun += 1;
        Some(LaneCall { number, lane })
    }

    /// Ends a call that these lanes began: its value to continue with, or its error to stop for.
    pub fn end<T, E>(&mut self, call: LaneCall, result: Result<T, E>) -> ControlFlow<E, T> {
        self.free.push(call.lane);
        match result {
            Ok(value) => {
                self.succeeded += 1;
                ControlFlow::Continue(value)
            }
            Err(error) => {
                self.failed += 1;
                ControlFlow::Break(error)
            }
        }
    }

    /// Whether nothing is in flight and nothing will begin any more.
    pub fn is_done(&self) -> bool {
        self.in_flight() == 0 && !(self.more_to_begin() && self.lanes > 0)
    }

    /// Calls that have begun and not ended.
    pub fn in_flight(&self) -> u64 {
        self.begun - self.succeeded - self.failed
    }

    /// Calls that have begun.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Calls that ended well.
    pub fn succeeded(&self) -> u64 {
        self.succeeded
    }

    /// Calls that ended with an error: more than one only where several were in flight.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    fn more_to_begin(&self) -> bool {
        self.begun < self.total && self.failed == 0
    }
}
