//! Steps that are not sent, as a value does not fit its place in the request.

use super::SessionClient;
use super::asking::AFTER_FAILURE;
use super::seat::End;
use crate::exchange::Exchange;
use crate::link::Link;
use crate::pool::http_client::Policy;
use knee_core::measure::Outcome;
use knee_core::session::UnfitValue;
use knee_core::time::Nanos;
use std::cmp::Reverse;

impl<L: Link, X: Exchange, P: Policy> SessionClient<L, X, P> {
    /// The next step of a session has failed. The session ends a little later, or goes on then: a
    /// step that takes no time would be done over and over at once.
    pub(super) fn fail_unfit(
        &mut self,
        (session, request): (u32, u32),
        unfit: UnfitValue,
        now: Nanos,
    ) {
        self.measured.unfit.get_or_insert(unfit);
        let seat = &mut self.seats[session as usize];
        let step = seat.walk.reads_as(request);
        let due = std::mem::replace(&mut seat.due, now + AFTER_FAILURE);
        let is_there = P::WAITS || seat.is_established;
        let goes_on = is_there && self.users.plan().requests[step as usize].goes_on;
        seat.ends = (!goes_on).then_some(End::Failed(step, Outcome::UnfitValue));
        self.end_unsent(session, (step, due), Outcome::UnfitValue, now);
        let goes_on_at = now + AFTER_FAILURE;
        self.thinking.push(Reverse((goes_on_at, session)));
    }
}
