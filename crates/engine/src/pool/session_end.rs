//! How sessions end, and what is recorded then.

use knee_load::measure::{Completion, Op, Outcome, SessionsMeasured, Window};
use knee_load::time::Nanos;

/// How a session, or an iteration of a script, ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionEnd {
    Completed,
    /// It failed, after or at this request if there was one.
    Failed(Option<u32>, Outcome),
    Unfinished,
}

impl SessionEnd {
    pub(super) fn outcome(self) -> Outcome {
        match self {
            SessionEnd::Completed => Outcome::Ok,
            SessionEnd::Failed(_, outcome) => outcome,
            SessionEnd::Unfinished => Outcome::InFlight,
        }
    }

    /// Records the end, at `ended_at`, of a session of this kind. Returns it as an operation of the
    /// driver.
    pub(super) fn record(
        self,
        (op, kind): (Op, u16),
        measured: &mut SessionsMeasured,
        window: Window,
        (ended_at, now): (Nanos, Nanos),
    ) -> Completion {
        let outcome = self.outcome();
        let measured = &mut measured.kinds[usize::from(kind)];
        match self {
            SessionEnd::Unfinished => measured.unfinished += 1,
            _ if !window.contains(ended_at) => {}
            SessionEnd::Completed => {
                measured.completed += 1;
                measured.time.record(ended_at - op.intended);
            }
            SessionEnd::Failed(request, _) => {
                measured.failed += 1;
                measured.unanswered += u64::from(!outcome.is_response());
                if let Some(request) = request {
                    *measured.failed_at.entry(request).or_default() += 1;
                }
            }
        }
        Completion {
            completed: ended_at,
            target: u32::from(kind),
            ..Completion::at_once(op, now, outcome)
        }
    }
}
