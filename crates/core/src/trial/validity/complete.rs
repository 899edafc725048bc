//! Whether the whole load was made, and all of it is in the figures.

use super::Evidence;
use crate::words::{exact, number};

/// Share of the operations that a limit may hold back, …
const HELD_BACK_SHARE: f64 = 0.01;
/// … and the number that it may: users begin together.
const HELD_BACK: u64 = 10;

/// Whether the books balance: operations begun equal those that ended and those under way.
pub(super) fn operations_are_lost(e: &Evidence) -> Option<String> {
    (e.lost > 0).then(|| {
        format!(
            "the generator lost {} operations: they began, and their ends are not known",
            exact(e.lost as f64)
        )
    })
}

pub(super) fn agent_is_lost(e: &Evidence) -> Option<String> {
    let (agent, because) = e.agents_lost.first()?;
    let others = match e.agents_lost.len() {
        1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    Some(format!(
        "agent {agent} is lost ({because}){others}: its share of the load is not in the figures"
    ))
}

/// The limit is the generator's. What came of the load says nothing of what the target can do.
pub(super) fn rate_limited(e: &Evidence) -> Option<String> {
    let limit = e.rate_limit?;
    let share = limit.held_back as f64 / limit.started.max(1) as f64;
    (share > HELD_BACK_SHARE && limit.held_back > HELD_BACK).then(|| {
        format!(
            "--rate-max of the agents, {}/s in all, held back {} of {} operations: the generator \
             is the limit, and the target can do at least this",
            number(limit.per_s),
            exact(limit.held_back as f64),
            exact(limit.started.max(limit.held_back) as f64)
        )
    })
}
