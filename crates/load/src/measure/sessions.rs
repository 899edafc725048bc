//! What was measured of sessions.

use super::sums::{add_by_name, merge_each, merge_some};
use super::{Histogram, Outcomes, ScriptMeasured};
use crate::session::{SessionPlan, Unexpected, UnfitValue};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of unexpected responses that are kept.
pub const UNEXPECTED_KEPT: usize = 3;

/// The sessions of one worker, or of several together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionsMeasured {
    /// By kind of session.
    pub kinds: Vec<SessionMeasured>,
    /// How long each group of the plan took, where a session came to its end within the window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Histogram>,
    /// The first responses that were not what was expected.
    pub unexpected: Vec<Unexpected>,
    /// The data set that had no record left for a user, which ended the load.
    pub ran_out: Option<RanOut>,
    /// The first value that its place in a request cannot have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<UnfitValue>,
    /// Their outcomes as attempts of an overload, where each opens a connection of its own.
    pub attempts: Option<SessionAttempts>,
    /// The programs that give values to steps; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<ProgramsMeasured>,
    /// Redirections in the whole trial that led to no server of the target, and were not followed.
    #[serde(default)]
    pub led_away: u64,
    /// What a script recorded; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Box<ScriptMeasured>>,
    /// The variables of the first session that came to its end, where the plan keeps them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Vec<Vec<u8>>>,
}

/// A data set without a record for the next user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanOut {
    /// Its name.
    pub set: String,
    /// Number of its records.
    pub records: u64,
    /// Time from the begin of the window until no record was left.
    pub after: Nanos,
}

/// Sessions as attempts to be served, each over a connection of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionAttempts {
    /// Those intended in the window, by their end: served where a session came to its end, else how
    /// the step ended that it failed at.
    pub outcomes: Outcomes,
    /// Sessions whose first connection was established in the window.
    pub established: u64,
    /// Connections that were opened in the window: where a server closes one before its session is
    /// over, the session's next step opens another.
    pub connections: u64,
}

/// Answers of the programs of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramsMeasured {
    /// How long they took to answer, of steps that were intended within the window.
    pub answer: Histogram,
    /// How long those steps had to wait for that beyond their intended time. Most of them, or none,
    /// by 0.
    pub late: Histogram,
    /// Why a program gave no value, for the first time.
    pub failed: Option<String>,
    /// Whether a program ended, which ended the load.
    pub has_ended: bool,
}

impl ProgramsMeasured {
    /// None yet, with the memory for their times.
    pub fn ready() -> ProgramsMeasured {
        ProgramsMeasured {
            answer: Histogram::ready(),
            late: Histogram::ready(),
            ..ProgramsMeasured::default()
        }
    }

    fn merge(&mut self, other: ProgramsMeasured) {
        self.answer.merge(&other.answer);
        self.late.merge(&other.late);
        // That one has ended says more than that it did not answer.
        if other.has_ended && !self.has_ended || self.failed.is_none() {
            self.failed = other.failed.or(self.failed.take());
        }
        self.has_ended |= other.has_ended;
    }
}

/// The sessions of one kind: those that ended within the window, but for the unfinished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionMeasured {
    /// Sessions that completed.
    pub completed: u64,
    /// Sessions that a failed step ended.
    pub failed: u64,
    /// Failed sessions whose last step had no response.
    #[serde(default)]
    pub unanswered: u64,
    /// Sessions under way when the load ended.
    pub unfinished: u64,
    /// From the intended begin to the end of those that came to it, pauses included.
    pub time: Histogram,
    /// Failed sessions by the number of their last request.
    pub failed_at: BTreeMap<u32, u64>,
}

impl SessionsMeasured {
    /// None yet, with the memory for their times.
    pub fn new(plan: &SessionPlan) -> SessionsMeasured {
        let none = SessionMeasured { time: Histogram::ready(), ..SessionMeasured::default() };
        SessionsMeasured {
            kinds: vec![none; plan.kinds.len()],
            groups: vec![Histogram::ready(); plan.groups.len()],
            programs: (!plan.programs.is_empty()).then(ProgramsMeasured::default),
            ..SessionsMeasured::default()
        }
    }

    /// Keeps a response that was not what was expected, if it is among the first.
    pub fn keep(&mut self, unexpected: impl FnOnce() -> Unexpected) {
        if self.unexpected.len() < UNEXPECTED_KEPT {
            self.unexpected.push(unexpected());
        }
    }

    /// Adds another's, of the same plan.
    pub fn merge(&mut self, other: SessionsMeasured) {
        merge_each(&mut self.kinds, other.kinds, SessionMeasured::merge);
        self.groups.resize(self.groups.len().max(other.groups.len()), Histogram::default());
        self.groups.iter_mut().zip(&other.groups).for_each(|(mine, theirs)| mine.merge(theirs));
        self.unexpected.extend(other.unexpected);
        self.unexpected.truncate(UNEXPECTED_KEPT);
        // Until the last worker has none, there are records.
        let ran_out = self.ran_out.take().into_iter().chain(other.ran_out);
        self.ran_out = ran_out.max_by_key(|ran_out| ran_out.after);
        self.unfit = self.unfit.take().or(other.unfit);
        self.kept = self.kept.take().or(other.kept);
        self.led_away += other.led_away;
        merge_some(&mut self.attempts, other.attempts, |mine, theirs| {
            mine.outcomes.merge(&theirs.outcomes);
            mine.established += theirs.established;
            mine.connections += theirs.connections;
        });
        merge_some(&mut self.programs, other.programs, ProgramsMeasured::merge);
        merge_some(&mut self.script, other.script, |mine, theirs| mine.merge(*theirs));
    }
}

impl SessionMeasured {
    fn merge(&mut self, other: SessionMeasured) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.unanswered += other.unanswered;
        self.unfinished += other.unfinished;
        self.time.merge(&other.time);
        add_by_name(&mut self.failed_at, other.failed_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_last_until_the_last_worker_has_none() {
        let ran_out = |after| SessionsMeasured {
            ran_out: Some(RanOut { set: "users".to_owned(), records: 10, after }),
            ..SessionsMeasured::default()
        };
        let mut all = SessionsMeasured::default();
        for after in [2, 5, 3].map(Nanos::from_secs) {
            all.merge(ran_out(after));
        }
        all.merge(SessionsMeasured::default());
        assert_eq!(all.ran_out.unwrap().after, Nanos::from_secs(5));
    }
}
