//! An agent's share of an interval, or of all intervals so far, as it travels. It has the counts of
//! a histogram, not the histogram, so that a coordinator of many agents can hold it.

use knee_load::measure::{
    AgentInterval, EndedCounts, Histogram, HistogramCounts, Interval, IntervalPart, Outcome, Pacing,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An agent's share of an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct IntervalShare {
    /// All but the response times.
    but: IntervalPart,
    response: HistogramCounts,
}

impl IntervalShare {
    pub(crate) fn of(part: &IntervalPart) -> IntervalShare {
        let response = part.response.as_ref();
        IntervalShare {
            response: response.map(Histogram::counts).unwrap_or_default(),
            // Field by field: a copy of all would copy the histogram too.
            but: IntervalPart {
                index: part.index,
                start_ns: part.start_ns,
                end_ns: part.end_ns,
                attempted: part.attempted,
                completed: part.completed,
                errors: part.errors,
                messages: part.messages,
                units: part.units,
                pacing: part.pacing,
                under_way: part.under_way,
                response: None,
                failed: part.failed.clone(),
                steps: part.steps.clone(),
                sessions: part.sessions.clone(),
            },
        }
    }

    /// The same with times as exact as they are looked at.
    pub(crate) fn coarse(&self) -> IntervalShare {
        IntervalShare { response: self.response.coarse(), but: self.but.clone() }
    }

    /// Which interval it belongs to, or which is the last in it.
    pub(crate) fn index(&self) -> u64 {
        self.but.index
    }

    /// Summary of the agent whose share it is.
    pub(crate) fn of_agent(&self, agent: &str) -> AgentInterval {
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

    /// The interval and its response times, where this share is the whole.
    pub(crate) fn whole(mut self) -> (Interval, Option<Histogram>) {
        if !self.response.is_empty() {
            self.but.response.get_or_insert_default().add(&self.response);
        }
        (self.but.interval(), self.but.response)
    }

    /// Adds an agent's next interval to the sum of those before. Bounds, what is under way and the
    /// largest lateness are those of the last one.
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
