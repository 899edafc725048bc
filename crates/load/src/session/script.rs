//! Users that a script in JavaScript describes: what a run needs to know of it.

use crate::quantity::UserStage;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rows of the report that requests of a script have, by their names; the last one is for all
/// further names.
pub const SCRIPT_ROWS: usize = 100;

/// A script with its modules, the files that it opens, and its limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptPlan {
    /// The path of the script among `files`.
    pub main: String,
    /// The script, its modules, and the files that it opens, by their paths from its folder.
    pub files: BTreeMap<String, Vec<u8>>,
    /// `__ENV`.
    pub env: BTreeMap<String, String>,
    /// Variables of `__ENV` that a kind of session has beside these, by its number.
    pub envs: Vec<BTreeMap<String, String>>,
    /// The exported function of each kind of session, by its number.
    pub functions: Vec<String>,
    /// `exec.scenario` of each kind of session, by its number: name and executor.
    pub scenarios: Vec<(String, String)>,
    /// What `options` says, as JSON.
    pub options: String,
    /// Names of requests that are known before the load.
    pub rows: Vec<String>,
    /// Most memory of one user, in bytes.
    pub memory_max: u64,
    /// Most processor time of a user between two requests.
    pub time_max: Nanos,
    /// Most bytes of a response's body that a user reads.
    pub body_max: u64,
    /// Most requests of a user under way at once, and most to one server.
    pub batch: (u32, u32),
    /// In a closed loop each user keeps its kind of session.
    pub users_keep_scenarios: bool,
    /// Where the load of the kinds differs and has stages, that of each, by its number.
    pub groups: Vec<ScriptGroup>,
    /// How long after the end of the window an iteration under way goes on, with its requests. What
    /// it does there is not measured. `None`: none goes on, but for requests under way.
    pub graceful_stop: Option<Nanos>,
    /// The same of each kind of session, at most that, by its number.
    pub graceful_stops: Vec<Nanos>,
    /// Servers of the target that are asked for a connection before the load: the first ones. To
    /// further ones a request may go, or not.
    pub servers_asked: u16,
    /// The longest that `setup` and `teardown` may take.
    pub around_max: (Nanos, Nanos),
    /// Most requests per second of all users together, over all processes that make the load.
    pub requests_per_s_max: Option<f64>,
    /// Cookies are kept from one iteration to the next.
    pub keeps_cookies: bool,
    /// Whether a user ever has several requests under way.
    pub is_parallel: bool,
    /// It exports `handleSummary`, which is called with the results of a run.
    pub has_summary: bool,
}

/// The load of one kind of session among several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptGroup {
    /// Users at the most; none in an open loop.
    pub users: u32,
    /// Users over time; in an open loop rates, in a unit that all groups have.
    pub stages: Vec<UserStage>,
    /// Iterations of all users together; `None`: as many as there is time for.
    pub iterations: Option<u64>,
    /// Each user has an equal part of the iterations, instead of taking from what is left.
    pub is_each: bool,
}

impl ScriptPlan {
    /// When the time of each kind of session is over, with that in which its iterations may end;
    /// none where the run gives them no such time. `has_groups`: the load is that of the groups.
    pub fn lasts(&self, warmup: Nanos, window_end: Nanos, has_groups: bool) -> Vec<Nanos> {
        let Some(most) = self.graceful_stop else { return Vec::new() };
        let last = |(number, graceful_stop): (usize, &Nanos)| {
            let end = match self.groups.get(number).filter(|_| has_groups) {
                Some(group) => group.stages.iter().fold(warmup, |end, stage| end + stage.length),
                None => window_end,
            };
            end + most.min(*graceful_stop)
        };
        self.graceful_stops.iter().enumerate().map(last).collect()
    }

    /// The group of a user, and its number there, where users have groups.
    pub fn group_of(&self, user: u64) -> Option<(usize, u32)> {
        let mut first = 0;
        self.groups.iter().zip(0..).find_map(|(group, number)| {
            let rank = user.checked_sub(first)?;
            first += u64::from(group.users);
            (rank < u64::from(group.users)).then_some((number, rank as u32))
        })
    }

    /// The group of an iteration that begins at a time in an open loop, by a number drawn between
    /// 0 and 1.
    pub fn group_at(&self, at: Nanos, drawn: f64) -> Option<usize> {
        let rates = || self.groups.iter().map(|group| UserStage::at(&group.stages, at));
        let mut left = drawn * rates().sum::<f64>();
        rates().position(|rate| {
            left -= rate;
            rate > 0.0 && left < 0.0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_iterations_have_groups() {
        let stage = |from, to, s| UserStage { from, to, length: Nanos::from_secs(s) };
        let group = |users, stages| ScriptGroup { users, stages, ..ScriptGroup::default() };
        let groups =
            vec![group(2, vec![stage(10, 10, 2)]), group(3, vec![stage(0, 0, 1), stage(0, 20, 2)])];
        let graceful_stops = [1, 30].map(Nanos::from_secs).to_vec();
        let plan = ScriptPlan { groups, graceful_stops, ..ScriptPlan::default() };
        let all: Vec<_> = (0..6).map(|user| plan.group_of(user)).collect();
        let second = |rank| Some((1, rank));
        assert_eq!(all, [Some((0, 0)), Some((0, 1)), second(0), second(1), second(2), None]);
        for (ms, drawn, want) in [
            (0, 0.99, Some(0)),
            (1_500, 0.6, Some(0)),
            (1_500, 0.7, Some(1)),
            (2_500, 0.0, Some(1)),
            (3_500, 0.5, None),
        ] {
            assert_eq!(plan.group_at(Nanos::from_millis(ms), drawn), want, "{ms} {drawn}");
        }
        let lasts = |plan: &ScriptPlan, has_groups| {
            let all = plan.lasts(Nanos::ZERO, Nanos::from_secs(9), has_groups);
            all.iter().map(|last| last.0 / 1_000_000_000).collect::<Vec<_>>()
        };
        assert!(lasts(&plan, true).is_empty());
        let plan = ScriptPlan { graceful_stop: Some(Nanos::from_secs(20)), ..plan };
        assert_eq!(lasts(&plan, true), [3, 23]);
        assert_eq!(lasts(&plan, false), [10, 29]);
    }
}
