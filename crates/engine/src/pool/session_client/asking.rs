//! Steps that get values from programs, and steps that are never sent.

use super::SessionClient;
use super::branches::InformedWalk;
use super::programs::ProgramReply;
use crate::pool::session_end::SessionEnd;
use crate::reactor::Backend;
use knee_load::measure::{Completion, Op, Outcome};
use knee_load::session::{Next, PendingAction, PendingStep, STEPS_AT_ONCE_MAX, UnfitValue};
use knee_load::time::Nanos;
use std::cmp::Reverse;

/// Pause after a step that could not be sent.
pub(super) const AFTER_FAILURE: Nanos = Nanos::from_millis(1);

impl SessionClient {
    /// Fails the next step of a session because of a value. The session ends or goes on after a
    /// pause: without one, a step that takes no time would repeat at once.
    pub(super) fn fail_unfit(
        &mut self,
        (session, request): (u32, u32),
        unfit: UnfitValue,
        now: Nanos,
    ) {
        self.measured.unfit.get_or_insert(unfit);
        let seat = &mut self.seats[session as usize];
        let step = seat.walk.reads_as(request, self.users.plan());
        let due = std::mem::replace(&mut seat.due, now + AFTER_FAILURE);
        let is_there = self.inner.waits() || seat.is_established;
        let goes_on = is_there && self.users.plan().requests[step as usize].goes_on;
        seat.ends = (!goes_on).then_some(SessionEnd::Failed(Some(step), Outcome::UnfitValue));
        self.end_unsent(session, (step, due), Outcome::UnfitValue, now);
        let goes_on_at = now + AFTER_FAILURE;
        self.thinking.push(Reverse((goes_on_at, session)));
    }

    /// Whether steps of this session ask programs.
    #[inline]
    pub(super) fn asks(&self, session: u32) -> bool {
        let kind = self.seats[session as usize].walk.kind();
        let programs = self.programs.as_ref();
        programs.is_some_and(|programs| programs.asks(kind))
    }

    /// Continues a session. Its next step is settled before its pause begins, so that the program
    /// of the step can answer during the pause.
    pub(super) fn go_on_asking(
        &mut self,
        io: &mut dyn Backend,
        session: u32,
        times: (Nanos, Nanos),
    ) {
        let now = times.1;
        let realtime_ns = self.realtime(now);
        let mut steps_left = STEPS_AT_ONCE_MAX;
        loop {
            let next = self.next_step(session, realtime_ns, &mut steps_left);
            let due = self.seats[session as usize].due;
            let is_over = due >= self.config.window.end;
            let asks = match next {
                Next::Request(request) => self.program_of(request).map(|_| request),
                _ => None,
            };
            if let Some(request) = asks.filter(|_| !is_over)
                && self.seats[session as usize].awaited.is_none()
            {
                let asked = self.ask(session, request, now);
                let seat = &mut self.seats[session as usize];
                match asked {
                    Err(unfit) if due <= now => {
                        return self.fail_unfit((session, request), unfit, now);
                    }
                    // It goes on when it has an answer, or will have none.
                    Ok(()) if due <= now => return seat.planned = Some(next),
                    _ => {}
                }
            }
            let seat = &mut self.seats[session as usize];
            if due > now {
                seat.planned = Some(next);
                return self.thinking.push(Reverse((due, session)));
            }
            match (next, &mut seat.awaited) {
                (Next::Over, _) => return self.leave(io, session, SessionEnd::Completed, now),
                _ if is_over => return self.leave(io, session, SessionEnd::Unfinished, now),
                (Next::Think(_) | Next::Yield, _) => return self.yield_to_others(session, now),
                (Next::Fork(at), _) => self.fork(io, session, at, times),
                (Next::Join, _) => {
                    if !self.join(io, session, times) {
                        return;
                    }
                }
                (Next::Unfit(request, reason), _) => {
                    let unfit = UnfitValue::of_repetition(request, reason);
                    return self.fail_unfit((session, request), unfit, now);
                }
                (Next::Request(request), None) => return self.send(io, session, request, times),
                (Next::Request(request), Some(awaited)) => match awaited.on_time() {
                    PendingAction::Still => return seat.planned = Some(next),
                    PendingAction::Nothing => {
                        seat.awaited = None;
                        return self.send_now(io, session, request, (now, now), true);
                    }
                    PendingAction::InVain => {
                        seat.awaited = None;
                        return self.fail(io, session, request, now);
                    }
                },
            }
        }
    }

    /// The next step of a session. If it is not settled yet, its pause begins.
    fn next_step(&mut self, session: u32, realtime_ns: u64, steps_left: &mut u32) -> Next {
        let seat = &mut self.seats[session as usize];
        if let Some(next) = seat.planned.take() {
            return next;
        }
        let due = seat.due;
        let mut walk = InformedWalk::of(&mut self.seats, session, self.width);
        let (pause, next) = walk.ahead(&mut self.users, due, realtime_ns, steps_left);
        drop(walk);
        self.seats[session as usize].due += pause;
        self.note_left(session);
        next
    }

    /// The program that gives values to a request, if any.
    pub(super) fn program_of(&self, request: u32) -> Option<u16> {
        let step = &self.users.plan().requests[request as usize];
        step.ask.as_ref().map(|ask| ask.program)
    }

    /// Asks the program of a step for values, unless the request cannot be made.
    fn ask(&mut self, session: u32, request: u32, now: Nanos) -> Result<(), UnfitValue> {
        let plan = std::rc::Rc::clone(self.users.plan());
        let step = &plan.requests[request as usize];
        let Some(ask) = &step.ask else { return Ok(()) };
        let due = self.seats[session as usize].due;
        // The request is made as it will be when it is sent.
        let realtime_ns = self.realtime(due.max(now));
        InformedWalk::of(&mut self.seats, session, self.width).forget_given(ask);
        let sent = self.fill(session, request, realtime_ns, false)?;
        let Some(programs) = &mut self.programs else {
            return Ok(());
        };
        let id = programs.next_id();
        let mut line = std::mem::take(&mut programs.line);
        line.clear();
        if let Some(question) = programs.question(sent) {
            let fills = (ask, &*self.inner.fills(session));
            let walk = InformedWalk::of(&mut self.seats, session, self.width);
            let whose = (&*walk, &mut self.users);
            question.put(id, fills, whose, realtime_ns, &mut line);
        }
        programs.line = line;
        let limit = step.timeout.unwrap_or(self.config.timeout);
        let mut awaited = PendingStep::new(id, request, (due, limit), now);
        if programs.ask(ask.program, id, session) {
            programs.limits.push(Reverse((awaited.until, session, id)));
        } else if awaited.answered(false) != PendingAction::Still {
            programs.settled.push(session);
        }
        self.seats[session as usize].awaited = Some(awaited);
        Ok(())
    }

    /// Reads output of a program. Returns whether to go on watching it.
    pub(super) fn hear(&mut self, source: u32, now: Nanos) -> bool {
        let Some(programs) = &mut self.programs else {
            return false;
        };
        let mut heard = Vec::new();
        let goes_on = programs.hear(source, &mut heard);
        self.has_run_out |= programs.measured.has_ended;
        for answer in heard {
            self.take_answer(answer, now);
        }
        goes_on
    }

    /// Applies an answer, unless its step has ended.
    fn take_answer(&mut self, (session, id, answer): ProgramReply, now: Nanos) {
        let seat = &mut self.seats[session as usize];
        let Some(awaited) = seat.awaited.as_mut().filter(|awaited| awaited.id == id) else {
            return;
        };
        let Some(programs) = &mut self.programs else {
            return;
        };
        let step = &self.users.plan().requests[awaited.request as usize];
        let Some(ask) = &step.ask else { return };
        let values = answer.and_then(|answer| answer.values(ask));
        let given = values.is_ok();
        if self.config.window.contains(awaited.due) {
            let (took, late) = awaited.took(now);
            programs.measured.answer.record(took);
            programs.measured.late.record(late);
        }
        if awaited.answered(given) != PendingAction::Still {
            programs.settled.push(session);
        }
        match values {
            Ok(values) => InformedWalk::of(&mut self.seats, session, self.width).take_given(values),
            Err(why) => programs.note(ask.program, &why),
        }
    }

    /// Continues a session whose program has answered, or never will. Returns whether there was
    /// one.
    #[inline]
    pub(super) fn resume_answered(&mut self, io: &mut dyn Backend, now: Nanos) -> bool {
        let Some(session) = self.programs.as_mut().and_then(|p| p.settled.pop()) else {
            return false;
        };
        if self.seats[session as usize].awaited.is_some() {
            self.go_on_asking(io, session, (now, now));
        }
        true
    }

    /// Fails sessions that have waited too long.
    pub(super) fn expire_program_waits(&mut self, now: Nanos) {
        let Some(programs) = &mut self.programs else {
            return;
        };
        programs.write_rest();
        while let Some(&Reverse((at, session, id))) = programs.limits.peek()
            && at <= now
        {
            programs.limits.pop();
            let awaited = self.seats[session as usize].awaited.as_mut();
            let Some(awaited) = awaited.filter(|a| a.id == id && a.is_overdue(now)) else {
                continue;
            };
            let step = &self.users.plan().requests[awaited.request as usize];
            if let Some(ask) = &step.ask {
                programs.note(ask.program, "did not answer within the step's time limit");
            }
            awaited.answered(false);
            programs.settled.push(session);
        }
    }

    /// Ends a step that is never sent. Its session ends too, or goes on.
    fn fail(&mut self, io: &mut dyn Backend, session: u32, request: u32, now: Nanos) {
        let due = std::mem::replace(&mut self.seats[session as usize].due, now);
        self.end_unsent(session, (request, due), Outcome::ProgramFailed, now);
        if !self.users.plan().requests[request as usize].goes_on {
            let end = SessionEnd::Failed(Some(request), Outcome::ProgramFailed);
            return self.leave(io, session, end, now);
        }
        // A step that takes no time would be done over and over at once.
        let seat = &mut self.seats[session as usize];
        seat.due = now + AFTER_FAILURE;
        self.thinking.push(Reverse((seat.due, session)));
    }

    /// Ends a step that was intended at `due` and never sent.
    pub(super) fn end_unsent(
        &mut self,
        session: u32,
        (request, due): (u32, Nanos),
        outcome: Outcome,
        now: Nanos,
    ) {
        self.note_begun(session);
        let op = Op { intended: due, lane: session };
        self.completed
            .push(Completion { target: request, ..Completion::at_once(op, now, outcome) });
    }

    /// At the end of the load: a due step that waited for its program has begun.
    pub(super) fn cut_off_program_wait(&mut self, session: u32, now: Nanos) {
        let seat = &mut self.seats[session as usize];
        seat.planned = None;
        let Some(awaited) = seat.awaited.take().filter(|awaited| awaited.due <= now) else {
            return;
        };
        let step = (awaited.request, awaited.due);
        self.end_unsent(session, step, Outcome::InFlight, now);
    }
}
