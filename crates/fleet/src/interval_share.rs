//! An agent's share of an interval, or of all intervals so far, as it travels. It has the counts of
//! a histogram, not the histogram, so that a coordinator of many agents can hold it.
//!
//! Live intervals of a running trial are made of such snapshots, which may be lost. A snapshot has
//! the sums of all intervals up to its own. So the next one replaces a lost one, and its figures
//! are shown an interval later. None of it is in the report, which is made of what the agents
//! deliver.
//!
//! A histogram has 270 KB, and a coordinator would hold one of each agent.

use knee_load::measure::{
    AgentInterval, EndedCounts, Histogram, HistogramCounts, Interval, IntervalPart, Outcome, Pacing,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// An agent's share of an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct IntervalShare {
    /// All but the response times.
    but: IntervalPart,
    response: HistogramCounts,
}

impl IntervalShare {
    pub(crate) fn new(part: &IntervalPart) -> IntervalShare {
        IntervalShare {
            response: part.response.counts(),
            // A clone of all would copy the histogram too.
            but: IntervalPart {
                response: Histogram::default(),
                failed: part.failed.clone(),
                steps: part.steps.clone(),
                sessions: part.sessions.clone(),
                ..*part
            },
        }
    }

    /// The share with response times rounded to the resolution of the live view.
    pub(crate) fn coarse(&self) -> IntervalShare {
        IntervalShare { response: self.response.coarse(), but: self.but.clone() }
    }

    /// Index of its interval, or of the last one in a sum.
    pub(crate) fn index(&self) -> u64 {
        self.but.index
    }

    /// Summary of the agent that this share belongs to.
    pub(crate) fn agent_interval(&self, agent: &str) -> AgentInterval {
        AgentInterval {
            agent: agent.to_owned(),
            is_silent: false,
            completed: self.but.completed,
            errors: self.but.errors,
            p99_ns: self.response.quantile(0.99).map(|t| t.0),
        }
    }

    /// Adds another share of the same interval.
    pub(crate) fn merge(&mut self, other: IntervalShare) {
        self.but.merge(other.but);
        self.response.merge(&other.response);
    }

    /// Converts the merged share of all agents to the interval and its response times.
    pub(crate) fn into_interval(mut self) -> (Interval, Histogram) {
        self.but.response.add(&self.response);
        (self.but.interval(), self.but.response)
    }

    /// Adds an agent's next interval to the sum of the earlier ones. Bounds, operations in flight
    /// and the largest pacing error are those of the last one.
    pub(crate) fn accumulate(&mut self, part: &IntervalShare) {
        self.but.under_way = None;
        self.merge(part.clone());
        self.but.index = part.but.index;
        self.but.start_ns = part.but.start_ns;
        if let (Some(sum), Some(pacing)) = (&mut self.but.pacing, part.but.pacing) {
            sum.max_ns = pacing.max_ns;
        }
    }

    /// Difference of two such sums of one agent.
    pub(crate) fn since(&self, earlier: &IntervalShare) -> IntervalShare {
        let (now, before) = (&self.but, &earlier.but);
        let paced = before.pacing.unwrap_or_default();
        IntervalShare {
            but: IntervalPart {
                attempted: now.attempted.saturating_sub(before.attempted),
                completed: now.completed.saturating_sub(before.completed),
                errors: now.errors.saturating_sub(before.errors),
                messages: now.messages.saturating_sub(before.messages),
                units: now.units.saturating_sub(before.units),
                pacing: now.pacing.map(|pacing| Pacing {
                    count: pacing.count.saturating_sub(paced.count),
                    sum_ns: pacing.sum_ns.saturating_sub(paced.sum_ns),
                    max_ns: pacing.max_ns,
                }),
                failed: failed_since(&now.failed, &before.failed),
                steps: ended_since(&now.steps, &before.steps),
                sessions: ended_since(&now.sessions, &before.sessions),
                ..now.clone()
            },
            response: self.response.since(&earlier.response),
        }
    }
}

fn failed_since(
    now: &BTreeMap<Outcome, EndedCounts>,
    before: &BTreeMap<Outcome, EndedCounts>,
) -> BTreeMap<Outcome, EndedCounts> {
    let since = |(outcome, now): (&Outcome, &EndedCounts)| {
        let before = before.get(outcome).copied().unwrap_or_default();
        (*outcome, now.since(&before))
    };
    now.iter().map(since).collect()
}

fn ended_since(now: &[EndedCounts], before: &[EndedCounts]) -> Vec<EndedCounts> {
    let none = std::iter::repeat(EndedCounts::default());
    let before = before.iter().copied().chain(none);
    now.iter().zip(before).map(|(now, before)| now.since(&before)).collect()
}

/// Intervals by which an agent may be behind before the others are shown without it.
const PATIENCE: u64 = 2;

/// Intervals of all agents together.
#[derive(Debug, Default)]
pub(crate) struct LiveMerge {
    /// Progress of each agent.
    agents: BTreeMap<String, AgentProgress>,
    /// The next interval to be shown.
    next: u64,
    /// Agents with a snapshot that is not shown yet.
    arrived: usize,
    /// The last interval of any snapshot.
    newest: Option<u64>,
}

#[derive(Debug, Default)]
struct AgentProgress {
    /// Snapshots that are not shown yet, in order.
    waiting: VecDeque<IntervalShare>,
    /// What has been shown.
    shown: IntervalShare,
}

impl LiveMerge {
    /// A merge of agents of these names.
    pub(crate) fn new<'a>(agents: impl Iterator<Item = &'a str>) -> LiveMerge {
        LiveMerge {
            agents: agents.map(|a| (a.to_owned(), AgentProgress::default())).collect(),
            ..LiveMerge::default()
        }
    }

    /// Adds a snapshot. Returns the intervals that can be shown now.
    pub(crate) fn add(&mut self, agent: &str, sum: IntervalShare) -> Vec<(Interval, Histogram)> {
        let Some(progress) = self.agents.get_mut(agent) else {
            return Vec::new();
        };
        let newest = progress.waiting.back().map(IntervalShare::index);
        if newest.is_none_or(|newest| newest < sum.index()) && sum.index() >= self.next {
            self.arrived += usize::from(newest.is_none());
            self.newest = self.newest.max(Some(sum.index()));
            progress.waiting.push_back(sum);
        }
        let mut shown = Vec::new();
        while self.is_ready() {
            shown.push(self.take_interval());
        }
        shown
    }

    fn is_ready(&self) -> bool {
        let is_behind = |newest| newest >= self.next + PATIENCE;
        self.arrived >= self.agents.len() || self.newest.is_some_and(is_behind)
    }

    fn take_interval(&mut self) -> (Interval, Histogram) {
        let index = self.next;
        self.next += 1;
        let mut merged: Option<IntervalShare> = None;
        let mut agents = Vec::with_capacity(self.agents.len());
        for (agent, progress) in &mut self.agents {
            let mut latest = None;
            while progress.waiting.front().is_some_and(|part| part.index() <= index) {
                latest = progress.waiting.pop_front();
            }
            let Some(sum) = latest else {
                agents.push(AgentInterval {
                    agent: agent.clone(),
                    is_silent: true,
                    ..AgentInterval::default()
                });
                continue;
            };
            let part = sum.since(&progress.shown);
            agents.push(part.agent_interval(agent));
            progress.shown = sum;
            match &mut merged {
                Some(merged) => merged.merge(part),
                None => merged = Some(part),
            }
        }
        self.arrived = self.agents.values().filter(|agent| !agent.waiting.is_empty()).count();
        let (interval, response) = merged.unwrap_or_default().into_interval();
        (Interval { agents, ..interval }, response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::measure::IntervalPart;
    use knee_load::time::Nanos;

    fn part(index: u64, completed: u64) -> IntervalShare {
        let mut response = Histogram::default();
        response.record_n(Nanos::from_micros(100 + index), completed);
        IntervalShare::new(&IntervalPart {
            index,
            start_ns: index * 1_000,
            end_ns: (index + 1) * 1_000,
            attempted: completed,
            completed,
            response,
            ..IntervalPart::default()
        })
    }

    fn sums(parts: &[IntervalShare]) -> Vec<IntervalShare> {
        let mut sum = IntervalShare::default();
        let sums = parts.iter().map(|part| {
            sum.accumulate(part);
            sum.clone()
        });
        sums.collect()
    }

    #[test]
    fn what_was_lost_is_shown_with_the_next() {
        let parts: Vec<_> = (0..6).map(|k| part(k, 10 + k)).collect();
        let (a, b) = (sums(&parts), sums(&parts));
        let mut merge = LiveMerge::new(["a", "b"].into_iter());
        let mut shown = Vec::new();
        for k in 0..6 {
            shown.extend(merge.add("a", a[k].clone()));
            // The second loses two in the middle.
            if k != 2 && k != 3 {
                shown.extend(merge.add("b", b[k].clone()));
            }
        }
        let completed: Vec<u64> = shown.iter().map(|(i, _)| i.completed).collect();
        assert_eq!(completed, [20, 22, 12, 13, 12 + 13 + 14 + 14, 30]);
        let total: u64 = shown.iter().map(|(_, h)| h.count()).sum();
        assert_eq!(total, 2 * (10 + 11 + 12 + 13 + 14 + 15));
        let silent = |k: usize| shown[k].0.agents.iter().map(|a| a.is_silent).collect::<Vec<_>>();
        assert_eq!((silent(1), silent(2)), (vec![false; 2], vec![false, true]));
        let of_b = &shown[4].0.agents[1];
        assert_eq!((of_b.agent.as_str(), of_b.completed), ("b", 12 + 13 + 14));
        assert_eq!((shown[4].0.start_ns, shown[4].0.end_ns), (4_000, 5_000));
    }

    #[test]
    fn an_agent_that_falls_silent_does_not_stop_the_others() {
        let parts: Vec<_> = (0..5).map(|k| part(k, 10)).collect();
        let a = sums(&parts);
        let mut merge = LiveMerge::new(["a", "b"].into_iter());
        let shown: usize = a.into_iter().map(|sum| merge.add("a", sum).len()).sum();
        assert_eq!(shown, 3, "two behind");
        // A late snapshot is not shown twice.
        assert!(merge.add("b", part(0, 1)).is_empty());
    }
}
