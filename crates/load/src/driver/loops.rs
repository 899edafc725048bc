//! The two loops. In the open one a schedule starts operations, whatever the target does. In the
//! closed one virtual users each wait for the response before the next operation.

use super::{Action, Driver, next_intended};
use crate::measure::{Completion, Op, Outcome};
use crate::rng::{self, Rng};
use crate::session::ScriptPlan;
use crate::spec::{OpenLoad, Pause, PauseKind, Share, TrialSpec, UserStage};
use crate::throttle::{CatchUp, Throttle};
use crate::time::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// User k begins at k times this, so that 10,000 users do not connect at the same time.
pub const RAMP_UP_STEP: Nanos = Nanos::from_micros(20);

/// First wait of a user after an operation without a response, so that a refusing server does not
/// get a hundred thousand operations per second. It doubles with each further failure in a row, up
/// to [`BACKOFF_LONGEST`]. Users wait for half of it to all of it, spread evenly: some user is soon
/// there when the server comes back.
pub const BACKOFF_FIRST: Nanos = Nanos::from_millis(10);

/// The longest wait after failures of up to a thousand users. More users wait longer, up to 1 s, so
/// that all together fail about as often.
pub const BACKOFF_LONGEST: Nanos = Nanos::from_millis(100);

/// Virtual users who each have one operation in flight at the most.
///
/// With a think time, the next operation of a user is intended that time after the generator saw
/// the end of the last one. With a cycle, it is intended one cycle after the last intended time,
/// but not before that end. Nothing intended at or after the end of the window starts. Exactly
/// `operations_max` operations start in all.
#[derive(Debug)]
pub struct ClosedLoop {
    share: Share,
    pause: Pause,
    /// `None` without pauses.
    pause_rng: Option<Rng>,
    end: Nanos,
    /// Operations that may still start.
    remaining: u64,
    in_flight: u32,
    /// The first lane that has not begun yet, and how many lanes there are.
    fresh: u32,
    lanes: u32,
    /// Users whose next operation is due: the whole hot path without pauses.
    ready: VecDeque<Op>,
    /// Users who pause or back off, by the intended time of their next operation.
    pausing: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Failures in a row, per lane.
    failures: Vec<u8>,
    /// How many users of all are there over time; empty: all.
    stages: Box<[UserStage]>,
    /// Operations that may still begin, by pool; empty: as many as all may.
    left: Box<[u64]>,
    /// The pool of each lane.
    pools: Box<[usize]>,
    /// Groups of users, each with stages of its own.
    script: Option<Arc<ScriptPlan>>,
}

impl ClosedLoop {
    /// One worker's share of `vusers` users: its lanes are 0 to its number of users, and lane l is
    /// user l·W + i of all. A worker without users gets no operations.
    pub fn new(spec: &TrialSpec, vusers: u32, pause: Pause, share: Share) -> ClosedLoop {
        let lanes = share.part(vusers.into()) as u32;
        let working = Share { of: share.of.min(vusers).max(1), ..share };
        let remaining = spec.operations_max.map_or(u64::MAX, |n| working.part(n));
        let rng = || rng::stream(spec.seed, rng::PAUSES + u64::from(share.index));
        ClosedLoop {
            share,
            pause,
            pause_rng: (!pause.law.is_zero()).then(rng),
            end: spec.window_end(),
            remaining: if lanes == 0 { 0 } else { remaining },
            in_flight: 0,
            fresh: 0,
            lanes,
            ready: VecDeque::with_capacity(lanes as usize),
            pausing: BinaryHeap::with_capacity(lanes as usize),
            failures: vec![0; lanes as usize],
            stages: Box::default(),
            left: Box::default(),
            pools: Box::default(),
            script: None,
        }
    }

    /// The same, with this number of users over time, of each group where a script has groups. A
    /// user who is not there any more ends the operation under way.
    pub fn in_stages(
        mut self,
        stages: &[UserStage],
        script: Option<&Arc<ScriptPlan>>,
    ) -> ClosedLoop {
        let script = script.filter(|script| !script.groups.is_empty() && !stages.is_empty());
        let Some(script) = script else { return ClosedLoop { stages: stages.into(), ..self } };
        self.script = Some(Arc::clone(script));
        // The pools of groups, then those of lanes.
        let mut left = vec![0_u64; script.groups.len()];
        let mut pools = Vec::new();
        for lane in 0..self.lanes {
            let user = self.user(lane);
            let (number, rank) = script.group_of(user.into()).unwrap_or_default();
            let group = &script.groups[number];
            let share = Share { index: rank, of: group.users.max(1) };
            let own = group.iterations.map_or(u64::MAX, |all| share.part(all));
            if group.is_each {
                pools.push(left.len());
                left.push(own);
            } else {
                pools.push(number);
                left[number] = left[number].saturating_add(own);
            }
            let begin = self.first(lane, Nanos(u64::from(user) * RAMP_UP_STEP.0));
            if let Some(begin) = begin.filter(|begin| *begin < self.end) {
                self.pausing.push(Reverse((begin, lane)));
            }
        }
        let sum = left.iter().fold(0, |sum: u64, own| sum.saturating_add(*own));
        let has_number = script.groups.iter().all(|group| group.iterations.is_some());
        self.remaining = if has_number { sum } else { self.remaining.min(sum) };
        (self.left, self.pools, self.fresh) = (left.into(), pools.into(), self.lanes);
        self
    }

    /// The first time at or after `now` at which the user of a lane is there.
    fn first(&self, lane: u32, now: Nanos) -> Option<Nanos> {
        let user = self.user(lane);
        let group = self.script.as_ref().and_then(|s| Some((s, s.group_of(user.into())?)));
        match group {
            Some((script, (group, rank))) => {
                UserStage::first(&script.groups[group].stages, rank + 1, now)
            }
            None => UserStage::first(&self.stages, user + 1, now),
        }
    }

    /// What the user of a lane may still begin.
    fn left(&mut self, lane: u32) -> Option<&mut u64> {
        self.left.get_mut(*self.pools.get(lane as usize)?)
    }

    /// The number of the user of a lane among all, from 0 on.
    #[inline]
    fn user(&self, lane: u32) -> u32 {
        lane * self.share.of + self.share.index
    }

    #[inline]
    fn start(&mut self, op: Op) -> Action {
        self.remaining -= 1;
        self.in_flight += 1;
        if let Some(left) = self.left(op.lane) {
            *left -= 1;
        }
        Action::Start(op)
    }

    /// Begin of the next user who has not begun yet.
    #[inline]
    fn fresh_moment(&self) -> Option<Nanos> {
        if self.fresh >= self.lanes {
            return None;
        }
        let moment = Nanos(u64::from(self.user(self.fresh)) * RAMP_UP_STEP.0);
        self.first(self.fresh, moment).filter(|moment| *moment < self.end)
    }

    /// Intended time of the user's next operation.
    #[inline]
    fn next_intended(&mut self, completion: &Completion) -> Nanos {
        let pause = match &mut self.pause_rng {
            Some(rng) => self.pause.law.sample(rng),
            None => Nanos::ZERO,
        };
        let next = match self.pause.kind {
            // A user acts on a response once it was read. Until then the generator is late, not the
            // next operation.
            PauseKind::Think => completion.picked_up + pause,
            PauseKind::Cycle => completion.picked_up.max(completion.intended + pause),
        };
        let users = u64::from(self.lanes) * u64::from(self.share.of);
        // Multiples of the golden ratio fall evenly.
        let spread = f64::from(self.user(completion.lane) + 1) * 0.618_033_988_7;
        let failures = &mut self.failures[completion.lane as usize];
        // A script that failed is a failure of the user, not of the target.
        if completion.outcome.is_response() || completion.outcome == Outcome::ScriptFailed {
            *failures = 0;
            return next;
        }
        let longest = Nanos(BACKOFF_LONGEST.0 * users.div_ceil(1_000).min(10));
        let backoff = Nanos(BACKOFF_FIRST.0 << *failures).min(longest);
        *failures = (*failures + 1).min(7);
        let part = 1.0 - 0.5 * spread.fract();
        next.max(completion.picked_up + Nanos((backoff.0 as f64 * part) as u64))
    }
}

impl Driver for ClosedLoop {
    #[inline]
    fn poll(&mut self, now: Nanos) -> Action {
        if self.remaining == 0 {
            return Action::Done;
        }
        while let Some(op) = self.ready.pop_front() {
            if self.left(op.lane) != Some(&mut 0) {
                return self.start(op);
            }
        }
        while let Some(&Reverse((_, lane))) = self.pausing.peek()
            && self.left(lane) == Some(&mut 0)
        {
            self.pausing.pop();
        }
        let pausing = self.pausing.peek().map(|Reverse(next)| *next);
        let fresh = self.fresh_moment().map(|moment| (moment, self.fresh));
        let counts =
            |script: &Arc<ScriptPlan>| script.groups.iter().any(|g| g.iterations.is_some());
        let (intended, lane) = match (pausing, fresh) {
            (Some(pausing), Some(fresh)) => pausing.min(fresh),
            (Some(next), None) | (None, Some(next)) => next,
            (None, None) if now >= self.end => return Action::Done,
            (None, None) if self.in_flight == 0 && self.script.as_ref().is_some_and(counts) => {
                return Action::Done;
            }
            // All users have done; the window has not, and all of it is measured.
            (None, None) if self.in_flight == 0 => return Action::WaitUntil(self.end),
            (None, None) => return Action::WaitForCompletion,
        };
        if intended > now {
            return Action::WaitUntil(intended);
        }
        if fresh == Some((intended, lane)) {
            self.fresh += 1;
        } else {
            self.pausing.pop();
        }
        self.start(Op { intended, lane })
    }

    #[inline]
    fn on_completion(&mut self, completion: &Completion, now: Nanos) {
        debug_assert!(self.in_flight > 0, "a completion without a start");
        self.in_flight = self.in_flight.saturating_sub(1);
        let lane = completion.lane;
        let intended = self.next_intended(completion);
        let intended = self.first(lane, intended).unwrap_or(Nanos::MAX);
        let has_none_left = self.left(lane) == Some(&mut 0);
        if intended >= self.end || now >= self.end || has_none_left {
            // This user has done with the trial.
        } else if intended <= now {
            self.ready.push_back(Op { intended, lane });
        } else {
            self.pausing.push(Reverse((intended, lane)));
        }
    }
}

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
