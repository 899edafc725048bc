//! Sessions that walk through several branches at the same time.
//!
//! The first branch is walked by the seat of the session, the others by the seats after it. Each
//! has a connection of its own, unless connections are shared. What the user knows stays with the
//! first seat, and is lent for each step.

use super::SessionClient;
use super::seat::{SessionBranches, SessionSeat};
use crate::pool::session_end::SessionEnd;
use crate::reactor::Backend;
use knee_load::session::{Instruction, Walk};
use knee_load::time::Nanos;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// The walk of a seat while it has what its user knows.
pub(super) struct InformedWalk<'a> {
    own: &'a mut Walk,
    lender: Option<&'a mut Walk>,
}

impl InformedWalk<'_> {
    /// The walk of seat number `seat`, of sessions with `width` seats.
    pub(super) fn of(seats: &mut [SessionSeat], seat: u32, width: u32) -> InformedWalk<'_> {
        let branch = if width == 1 { 0 } else { seat % width };
        let (before, from) = seats.split_at_mut(seat as usize);
        let own = &mut from[0].walk;
        let lender = (branch > 0).then(|| {
            let main = &mut before[(seat - branch) as usize].walk;
            main.lend(own);
            main
        });
        InformedWalk { own, lender }
    }
}

impl Deref for InformedWalk<'_> {
    type Target = Walk;

    fn deref(&self) -> &Walk {
        self.own
    }
}

impl DerefMut for InformedWalk<'_> {
    fn deref_mut(&mut self) -> &mut Walk {
        self.own
    }
}

impl Drop for InformedWalk<'_> {
    fn drop(&mut self) {
        if let Some(main) = &mut self.lender {
            main.lend(self.own);
        }
    }
}

impl SessionClient {
    /// The first seat of a session.
    fn first_seat(&self, seat: u32) -> u32 {
        if self.width == 1 { seat } else { seat - seat % self.width }
    }

    fn branches(&self, seat: u32) -> &SessionBranches {
        &self.seats[self.first_seat(seat) as usize].branches
    }

    /// Whether a seat walks through one branch of several.
    pub(super) fn is_in_branch(&self, seat: u32) -> bool {
        self.branches(seat).is_forked
    }

    /// Whether a branch beside this one has failed, so that it ends before its next step.
    pub(super) fn ends_early(&self, seat: u32) -> bool {
        self.branches(seat).fails.is_some() && self.seats[seat as usize].awaited.is_none()
    }

    /// Begins the branches of the instruction `at` beside the first one, which the caller walks
    /// through.
    pub(super) fn fork(
        &mut self,
        io: &mut dyn Backend,
        session: u32,
        at: u32,
        times: (Nanos, Nanos),
    ) {
        let plan = Rc::clone(self.users.plan());
        let (before, from) = self.seats.split_at_mut(session as usize + 1);
        let main = &mut before[session as usize];
        let kind = &plan.kinds[usize::from(main.walk.kind())];
        let Some(Instruction::Fork(begins)) = kind.program.get(at as usize) else {
            return;
        };
        for (seat, begin) in from.iter_mut().zip(begins) {
            seat.begin_branch(main, *begin);
        }
        let others = begins.len() as u32;
        main.branches = SessionBranches { is_forked: true, others, ..SessionBranches::default() };
        for seat in session + 1..=session + others {
            self.go_on(io, seat, times);
        }
    }

    /// Ends the branch of a seat. Returns whether the seat itself goes on: it was the last branch,
    /// and is the first one.
    pub(super) fn join(&mut self, io: &mut dyn Backend, seat: u32, times: (Nanos, Nanos)) -> bool {
        match self.end_branch(seat, None) {
            None => return false,
            Some((session, Some(end))) => self.leave(io, session, end, times.1),
            Some((session, None)) if session == seat => return true,
            Some((session, None)) => self.go_on(io, session, times),
        }
        false
    }

    /// Ends the branch of a seat. After the last one: the session, and how it ends if one failed.
    pub(super) fn end_branch(
        &mut self,
        seat: u32,
        end: Option<SessionEnd>,
    ) -> Option<(u32, Option<SessionEnd>)> {
        let session = self.first_seat(seat);
        let due = self.seats[seat as usize].due;
        let main = &mut self.seats[session as usize];
        let branches = &mut main.branches;
        branches.fails = branches.fails.or(end);
        branches.ended = branches.ended.max(due);
        if seat == session {
            branches.is_first_over = true;
        } else {
            branches.others -= 1;
        }
        if branches.others > 0 || !branches.is_first_over {
            return None;
        }
        let SessionBranches { ended, fails, .. } = std::mem::take(branches);
        main.due = main.due.max(ended);
        Some((session, fails))
    }
}
