//! The steps of a session.

use super::SessionClient;
use super::branches::InformedWalk;
use super::seat::SessionBranches;
use crate::pool::flight::Flight;
use crate::pool::session_end::SessionEnd;
use crate::reactor::Backend;
use knee_load::measure::{Completion, Op, Outcome, RanOut};
use knee_load::session::{
    AfterResponse, Fills, Next, STEPS_AT_ONCE_MAX, UnfitValue, WholeResponse,
};
use knee_load::spec::Cut;
use knee_load::time::Nanos;
use std::cmp::Reverse;

impl SessionClient {
    /// Seats a session at `now`; the generator came to it at `started`.
    pub(super) fn seat(
        &mut self,
        io: &mut dyn Backend,
        session: u32,
        (op, started): (Op, Nanos),
        now: Nanos,
    ) {
        let seat = &mut self.seats[session as usize];
        (seat.op, seat.due) = (op, op.intended);
        (seat.is_taken, seat.is_new, seat.is_established) = (true, true, false);
        (seat.retries, seat.again) = (0, None);
        seat.branches = SessionBranches::default();
        let in_warmup = op.intended < self.config.window.start;
        if !seat.walk.begin(&mut self.users, in_warmup) {
            // It has not begun: there is no record for it.
            seat.is_taken = false;
            self.note_ran_out(now);
            self.free.push(session);
            self.in_flight -= 1;
            return self.ended.push(Completion::at_once(op, now, Outcome::Shed));
        }
        self.go_on(io, session, (started, now));
    }

    /// Ends the load: a data set has no record left.
    fn note_ran_out(&mut self, now: Nanos) {
        self.has_run_out = true;
        let after = now - self.config.window.start;
        let ran_out = self.users.exhausted().map(|set| RanOut {
            set: set.name.clone(),
            records: set.rows.len() as u64,
            after,
        });
        self.measured.ran_out = self.measured.ran_out.take().or(ran_out);
    }

    /// Handles ended steps, and continues their sessions, until nothing is left to do at `now`.
    pub(super) fn advance(&mut self, io: &mut dyn Backend, now: Nanos) {
        loop {
            loop {
                self.note_established(now);
                let Some(completion) = self.inner.take_step() else {
                    break;
                };
                self.on_step(io, completion, now);
            }
            if !self.resume_answered(io, now) {
                return self.note_opened(now);
            }
        }
    }

    /// Counts opened connections.
    #[inline]
    fn note_opened(&mut self, now: Nanos) {
        if let Some(attempts) = &mut self.measured.attempts {
            let opened = self.inner.tally().opened;
            let more = opened - std::mem::replace(&mut self.opened, opened);
            if self.config.window.contains(now) {
                attempts.connections += more;
            }
        }
    }

    /// Records sessions whose first connection was established.
    #[inline]
    fn note_established(&mut self, now: Nanos) {
        while let Some(session) = self.inner.take_established() {
            let seat = &mut self.seats[session as usize];
            if std::mem::replace(&mut seat.is_established, true) {
                continue;
            }
            self.established.push(seat.op.lane);
            if let Some(attempts) = &mut self.measured.attempts {
                attempts.established += u64::from(self.config.window.contains(now));
            }
        }
    }

    /// Handles the end of a step.
    fn on_step(&mut self, io: &mut dyn Backend, mut completion: Completion, now: Nanos) {
        let session = completion.lane;
        let request = completion.target;
        let realtime_ns = self.realtime(now);
        let seat = &mut self.seats[session as usize];
        // A user acts on an answer once it was picked up.
        seat.due = completion.picked_up;
        let mut outcome = completion.outcome;
        let mut follows = AfterResponse::Next;
        if outcome.is_response()
            && let Some(readings) = self.inner.readings()
        {
            let answered = WholeResponse {
                session,
                status: completion.status,
                is_success: outcome.is_good(),
                response: completion.response_time(),
                realtime_ns,
            };
            let users = &mut self.users;
            let mut walk = InformedWalk::of(&mut self.seats, session, self.width);
            follows = walk.answered(request, answered, readings, users);
            match follows {
                AfterResponse::Unexpected(number) => {
                    self.measured.keep(|| {
                        walk.describe_unexpected(number, request, answered, readings, users)
                    });
                    outcome = Outcome::Unexpected;
                }
                // A status that was expected is no error.
                AfterResponse::Next | AfterResponse::Redirected(_) => outcome = Outcome::Ok,
                AfterResponse::TooManyRedirections => outcome = Outcome::TooManyRedirections,
                AfterResponse::BadStatus => {}
            }
        }
        let step = self.seats[session as usize].walk.reads_as(request, self.users.plan());
        completion.outcome = outcome;
        let tries_again = self.tries_again(&completion, now);
        // A redirection belongs to its step.
        completion.target = step;
        self.completed.push(completion);
        if tries_again {
            return;
        }
        if let AfterResponse::Redirected(to) = follows {
            return self.send(io, session, to, (now, now));
        }
        let is_there = self.inner.waits() || self.seats[session as usize].is_established;
        let goes_on =
            outcome.is_good() || is_there && self.users.plan().requests[step as usize].goes_on;
        if outcome == Outcome::InFlight {
            self.leave(io, session, SessionEnd::Unfinished, now);
        } else if goes_on {
            self.go_on(io, session, (now, now));
        } else {
            self.leave(io, session, SessionEnd::Failed(Some(step), outcome), now);
        }
    }

    /// Whether the request of an ended attempt is sent again after a pause, which then begins. What
    /// a program gave is not asked for twice.
    fn tries_again(&mut self, ended: &Completion, now: Nanos) -> bool {
        let (session, request) = (ended.lane, ended.target);
        let is_asked = self.program_of(request).is_some();
        let Some(retries) = &mut self.config.retries else {
            return false;
        };
        let seat = &mut self.seats[session as usize];
        let tried = if is_asked { u32::MAX } else { seat.retries };
        let Some(at) = retries.on_end(seat.first, tried, ended, now) else {
            seat.retries = 0;
            return false;
        };
        seat.retries += 1;
        (seat.due, seat.again) = (at, Some(request));
        self.thinking.push(Reverse((at, session)));
        true
    }

    /// Continues a session.
    pub(super) fn go_on(&mut self, io: &mut dyn Backend, session: u32, times: (Nanos, Nanos)) {
        if let Some(end) = self.seats[session as usize].ends.take() {
            return self.leave(io, session, end, times.1);
        }
        if let Some(request) = self.seats[session as usize].again.take() {
            return self.send(io, session, request, times);
        }
        if self.ends_early(session) {
            self.join(io, session, times);
            return;
        }
        if self.asks(session) {
            return self.go_on_asking(io, session, times);
        }
        let now = times.1;
        let realtime_ns = self.realtime(now);
        let mut steps_left = STEPS_AT_ONCE_MAX;
        loop {
            let due = self.seats[session as usize].due;
            let mut walk = InformedWalk::of(&mut self.seats, session, self.width);
            let next = walk.next(&mut self.users, due, realtime_ns, &mut steps_left);
            drop(walk);
            self.note_left(session);
            let seat = &mut self.seats[session as usize];
            match next {
                Next::Over => return self.leave(io, session, SessionEnd::Completed, now),
                _ if seat.due >= self.config.window.end => {
                    return self.leave(io, session, SessionEnd::Unfinished, now);
                }
                Next::Request(request) => return self.send(io, session, request, times),
                Next::Unfit(request, reason) => {
                    let unfit = UnfitValue::of_repetition(request, reason);
                    return self.fail_unfit((session, request), unfit, now);
                }
                Next::Think(time) => {
                    seat.due += time;
                    if seat.due > now {
                        return self.thinking.push(Reverse((seat.due, session)));
                    }
                }
                Next::Yield => return self.yield_to_others(session, now),
                Next::Fork(at) => self.fork(io, session, at, times),
                Next::Join => {
                    if !self.join(io, session, times) {
                        return;
                    }
                }
            }
        }
    }

    /// A session goes on in the next turn of its worker, so that others do, and the end is seen.
    pub(super) fn yield_to_others(&mut self, session: u32, now: Nanos) {
        self.thinking.push(Reverse((now + Nanos(1), session)));
    }

    /// Records the groups of steps that a session has left.
    #[inline]
    pub(super) fn note_left(&mut self, session: u32) {
        let walk = &mut self.seats[session as usize].walk;
        while let Some((group, from, to)) = walk.take_left() {
            if self.config.window.contains(to)
                && let Some(times) = self.measured.groups.get_mut(usize::from(group))
            {
                times.record(to - from);
            }
        }
    }

    /// Sends a request as the next step of a session, once the limit permits.
    #[inline]
    pub(super) fn send(
        &mut self,
        io: &mut dyn Backend,
        session: u32,
        request: u32,
        times: (Nanos, Nanos),
    ) {
        if self.limited.pass((session, request), times.1).is_some() {
            self.send_now(io, session, request, times, false);
        }
    }

    /// Sends requests that the limit permits now. After the end of the window none begins: their
    /// sessions stay unfinished.
    pub(super) fn release(&mut self, io: &mut dyn Backend, now: Nanos) {
        if now >= self.config.window.end {
            return self.give_up_limited(io, now);
        }
        while let Some((session, request)) = self.limited.release(now) {
            let seat = &mut self.seats[session as usize];
            if !seat.is_new {
                // A user waits for the limit as for a pause.
                seat.due = now;
            }
            self.send_now(io, session, request, (now, now), false);
        }
    }

    fn give_up_limited(&mut self, io: &mut dyn Backend, now: Nanos) {
        for (session, request) in self.limited.give_up() {
            self.end_held(session, request, now);
            self.leave(io, session, SessionEnd::Unfinished, now);
        }
    }

    /// Ends a request that the limit held back. The first of a session counts as begun.
    pub(super) fn end_held(&mut self, session: u32, request: u32, now: Nanos) {
        let seat = &self.seats[session as usize];
        if seat.is_new {
            let step = (request, seat.due);
            self.end_unsent(session, step, Outcome::InFlight, now);
        }
    }

    /// Sends a request as the next step of a session, at once. Where it waited for the answer of a
    /// program, `is_answered`, that wait is the generator's delay.
    pub(super) fn send_now(
        &mut self,
        io: &mut dyn Backend,
        session: u32,
        request: u32,
        times: (Nanos, Nanos),
        is_answered: bool,
    ) {
        let now = times.1;
        let realtime_ns = self.realtime(now);
        match self.fill(session, request, realtime_ns, is_answered) {
            Ok(request) => {
                let due = self.seats[session as usize].due;
                // Its time limit is the target's: what the program took of it does not count.
                let from = if is_answered { due.max(now) } else { due };
                self.start_step(io, (session, request), from, times);
            }
            Err(unfit) => self.fail_unfit((session, request), unfit, now),
        }
    }

    /// Fills the holes of a session's next request; those that waited for a program once it
    /// `is_answered`. Says which one is to be sent.
    pub(super) fn fill(
        &mut self,
        session: u32,
        request: u32,
        realtime_ns: u64,
        is_answered: bool,
    ) -> Result<u32, UnfitValue> {
        let path = path_of(&self.paths[request as usize]);
        let fills = self.inner.fills(session);
        let mut walk = InformedWalk::of(&mut self.seats, session, self.width);
        if is_answered {
            walk.fill_waiting(request, &mut self.users, realtime_ns, fills, path)
        } else {
            walk.fill(request, &mut self.users, realtime_ns, fills, path)
        }
    }

    /// Starts the next step of a session, which the generator came to at `started`. Its time limit
    /// counts from `from`.
    #[inline]
    pub(super) fn start_step(
        &mut self,
        io: &mut dyn Backend,
        (session, request): (u32, u32),
        from: Nanos,
        (started, now): (Nanos, Nanos),
    ) {
        let seat = &mut self.seats[session as usize];
        if let Some(retries) = &mut self.config.retries {
            if seat.retries == 0 {
                seat.first = seat.due;
                retries.on_request(seat.due, now);
            } else {
                retries.on_retry(seat.first, seat.due, now);
            }
        }
        let read_as = seat.walk.reads_as(request, self.users.plan());
        let limit = self.users.plan().requests[read_as as usize].timeout;
        let op = Op { intended: seat.due, lane: session };
        let until = from + limit.unwrap_or(self.config.timeout);
        let mut flight = Flight::new(op, request as usize, until, started);
        (flight.session, flight.read_as) = (session, read_as);
        self.note_begun(session);
        self.inner.start_step(io, flight, now);
    }

    /// Counts a begun step. The first one was counted when the session came.
    #[inline]
    pub(super) fn note_begun(&mut self, session: u32) {
        let was_new = std::mem::take(&mut self.seats[session as usize].is_new);
        self.begun += u64::from(!was_new);
    }

    /// Continues sessions whose pause is over.
    pub(super) fn wake(&mut self, io: &mut dyn Backend, now: Nanos) {
        while let Some(&Reverse((at, session))) = self.thinking.peek()
            && at <= now
        {
            self.thinking.pop();
            let is_cut = at >= self.config.window.end;
            if is_cut {
                self.leave(io, session, SessionEnd::Unfinished, now)
            } else {
                self.go_on(io, session, (now, now))
            }
        }
    }
}

/// The number of a path's holes, and its texts and holes.
fn path_of(cuts: &[Cut]) -> (usize, impl FnOnce(&Fills, &mut Vec<u8>)) {
    let holes = cuts.iter().filter(|cut| matches!(cut, Cut::Hole(_)));
    let put =
        move |fills: &Fills, out: &mut Vec<u8>| cuts.iter().for_each(|cut| cut.put(fills, out));
    (holes.count(), put)
}
