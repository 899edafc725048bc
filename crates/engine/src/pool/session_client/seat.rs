//! State of one session.

use crate::pool::session_end::SessionEnd;
use knee_load::measure::Op;
use knee_load::session::{Next, PendingStep, Walk};
use knee_load::time::Nanos;

/// One session under way.
pub(super) struct SessionSeat {
    pub(super) walk: Walk,
    /// The driver's operation.
    pub(super) op: Op,
    /// Intended time of its next step.
    pub(super) due: Nanos,
    pub(super) is_taken: bool,
    /// It has not begun a step.
    pub(super) is_new: bool,
    /// It has had a connection.
    pub(super) is_established: bool,
    /// Its next step, if settled.
    pub(super) planned: Option<Next>,
    /// The wait of the settled step, if any.
    pub(super) awaited: Option<PendingStep>,
    /// How it ends when it goes on.
    pub(super) ends: Option<SessionEnd>,
    /// Intended time of the first attempt at its step, and how often that was tried again.
    pub(super) first: Nanos,
    pub(super) retries: u32,
    /// The request to send again when it goes on.
    pub(super) again: Option<u32>,
    /// Its branches, where it is the first seat of its session.
    pub(super) branches: SessionBranches,
}

impl SessionSeat {
    /// A seat without a session.
    pub(super) fn free() -> SessionSeat {
        SessionSeat {
            walk: Walk::default(),
            op: Op { intended: Nanos::ZERO, lane: Op::ANY_LANE },
            due: Nanos::ZERO,
            is_taken: false,
            is_new: false,
            is_established: false,
            planned: None,
            awaited: None,
            ends: None,
            first: Nanos::ZERO,
            retries: 0,
            again: None,
            branches: SessionBranches::default(),
        }
    }

    /// Walks through a branch of another seat's session from this instruction on.
    pub(super) fn begin_branch(&mut self, of: &SessionSeat, begin: u32) {
        self.walk.branch_off(&of.walk, begin);
        (self.op, self.due) = (of.op, of.due);
        (self.is_new, self.is_established) = (false, true);
        (self.retries, self.again) = (0, None);
        (self.planned, self.awaited, self.ends) = (None, None, None);
    }
}

/// The branches of a session.
#[derive(Default)]
pub(super) struct SessionBranches {
    /// There are several now.
    pub(super) is_forked: bool,
    /// Those under way beside the first.
    pub(super) others: u32,
    /// The first one has ended.
    pub(super) is_first_over: bool,
    /// Latest end of one.
    pub(super) ended: Nanos,
    /// How the first that failed or was cut off ended. The others end at their next step, and the
    /// session with them.
    pub(super) fails: Option<SessionEnd>,
}
