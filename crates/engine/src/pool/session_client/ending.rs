//! How sessions end, and what is recorded then.

use super::SessionClient;
use crate::pool::session_end::SessionEnd;
use crate::reactor::Backend;
use knee_load::measure::{Completion, Op, Outcome};
use knee_load::time::Nanos;

impl SessionClient {
    /// Ends a session. The next one that waits takes its seat.
    pub(super) fn leave(
        &mut self,
        io: &mut dyn Backend,
        session: u32,
        end: SessionEnd,
        now: Nanos,
    ) {
        if self.is_in_branch(session) {
            if let Some((session, fails)) = self.end_branch(session, Some(end)) {
                self.leave(io, session, fails.unwrap_or(end), now);
            }
            return;
        }
        let kind = self.seats[session as usize].walk.kind();
        if !self.inner.waits() || self.users.plan().kinds[usize::from(kind)].new_connection {
            for lane in session..session + self.width {
                self.inner.close_lane(io, lane, now);
            }
        }
        self.end(session, end, now);
        if let Some(waits) = self.waiting.pop_front() {
            self.free.pop();
            self.seat(io, session, waits, now);
        }
    }

    /// Ends a session that has a seat.
    fn end(&mut self, session: u32, end: SessionEnd, now: Nanos) {
        let seat = &mut self.seats[session as usize];
        seat.is_taken = false;
        (seat.planned, seat.awaited, seat.ends) = (None, None, None);
        let (op, kind) = (seat.op, seat.walk.kind());
        if self.users.plan().keeps == Some(kind) && end == SessionEnd::Completed {
            self.measured.kept.get_or_insert_with(|| seat.walk.variables().to_vec());
        }
        let ended_at = seat.due.min(now).max(op.intended);
        self.free.push(session);
        self.book((op, kind), end, (ended_at, now));
    }

    /// Records the end of a session of this kind.
    fn book(&mut self, (op, kind): (Op, u16), end: SessionEnd, times: (Nanos, Nanos)) {
        self.note_attempt(op, end.outcome());
        self.in_flight -= 1;
        let window = self.config.window;
        self.ended.push(end.record((op, kind), &mut self.measured, window, times));
    }

    /// Records the end of a session as an attempt to be served.
    #[inline]
    fn note_attempt(&mut self, op: Op, outcome: Outcome) {
        if let Some(attempts) = &mut self.measured.attempts
            && self.config.window.contains(op.intended)
        {
            attempts.outcomes.add(match outcome {
                Outcome::Ok => Outcome::Served,
                other => other,
            });
        }
    }

    /// Ends a session before it has begun, which the generator came to at `started`. Counts at the
    /// first step of its kind.
    pub(super) fn turn_away(&mut self, (op, started): (Op, Nanos), outcome: Outcome, now: Nanos) {
        let kind = self.users.draw_kind();
        let first = self.users.plan().kinds[usize::from(kind)].first_request();
        let step = first.unwrap_or_default();
        self.completed.push(Completion {
            started,
            target: step,
            ..Completion::at_once(op, now, outcome)
        });
        let end = match outcome {
            Outcome::InFlight => SessionEnd::Unfinished,
            _ => SessionEnd::Failed(Some(step), outcome),
        };
        self.book((op, kind), end, (now, now));
    }

    /// Fails sessions that have waited too long for their turn.
    pub(super) fn expire_waiting(&mut self, now: Nanos) {
        while let Some(&(op, started)) = self.waiting.front()
            && op.intended + self.config.timeout <= now
        {
            self.waiting.pop_front();
            self.turn_away((op, started), Outcome::Timeout, now);
        }
    }

    /// At the end of the load: sessions under way stay unfinished.
    pub(super) fn cut_off(&mut self, now: Nanos) {
        while let Some(completion) = self.inner.take_step() {
            let walk = &self.seats[completion.lane as usize].walk;
            let step = walk.reads_as(completion.target, self.users.plan());
            self.completed.push(Completion { target: step, ..completion });
        }
        for (session, request) in self.limited.give_up() {
            self.end_held(session, request, now);
        }
        for session in 0..self.seats.len() as u32 {
            self.cut_off_program_wait(session, now);
            if self.seats[session as usize].is_taken {
                self.end(session, SessionEnd::Unfinished, now);
            }
        }
        while let Some(waits) = self.waiting.pop_front() {
            self.turn_away(waits, Outcome::InFlight, now);
        }
    }
}
