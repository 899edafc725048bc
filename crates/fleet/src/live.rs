//! What a running trial looks like, from snapshots that may be lost.
//!
//! A snapshot has the sums of all intervals up to its own, so that the next one makes good for a
//! lost one: what was in that is shown an interval later. None of it is in the report, which is
//! made of what the agents deliver.

use crate::part::Part;
use knee_core::measure::{Histogram, Interval};
use std::collections::{BTreeMap, VecDeque};

/// An interval is shown without those who are this many behind.
const PATIENCE: u64 = 2;

/// Intervals of all agents together.
#[derive(Debug, Default)]
pub(crate) struct LiveMerge {
    /// How many agents there are.
    agents: usize,
    seen: BTreeMap<String, Seen>,
    /// The next interval to be shown.
    next: u64,
}

#[derive(Debug, Default)]
struct Seen {
    /// Snapshots that are not shown yet, in order.
    waiting: VecDeque<Part>,
    /// What has been shown.
    shown: Part,
}

impl LiveMerge {
    pub(crate) fn new(agents: usize) -> LiveMerge {
        LiveMerge {
            agents,
            ..LiveMerge::default()
        }
    }

    /// Takes a snapshot; the intervals that can be shown now.
    pub(crate) fn add(&mut self, agent: &str, sum: Part) -> Vec<(Interval, Option<Histogram>)> {
        let seen = self.seen.entry(agent.to_owned()).or_default();
        let is_newer = seen
            .waiting
            .back()
            .is_none_or(|last| last.index() < sum.index());
        if is_newer && sum.index() >= self.next {
            seen.waiting.push_back(sum);
        }
        let mut shown = Vec::new();
        while let Some(interval) = self.ready().then(|| self.show()) {
            shown.push(interval);
        }
        shown
    }

    fn ready(&self) -> bool {
        let newest = |seen: &Seen| seen.waiting.back().map(Part::index);
        let all = self.seen.values().filter_map(newest);
        let here = all.clone().filter(|&index| index >= self.next).count();
        here >= self.agents
            || all
                .max()
                .is_some_and(|newest| newest >= self.next + PATIENCE)
    }

    fn show(&mut self) -> (Interval, Option<Histogram>) {
        let index = self.next;
        self.next += 1;
        let mut merged: Option<Part> = None;
        for seen in self.seen.values_mut() {
            let mut latest = None;
            while seen
                .waiting
                .front()
                .is_some_and(|part| part.index() <= index)
            {
                latest = seen.waiting.pop_front();
            }
            let Some(sum) = latest else {
                continue;
            };
            let part = sum.since(&seen.shown);
            seen.shown = sum;
            match &mut merged {
                Some(merged) => merged.merge(part),
                None => merged = Some(part),
            }
        }
        merged.unwrap_or_default().whole()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_core::measure::IntervalPart;
    use knee_core::time::Nanos;

    fn part(index: u64, completed: u64) -> Part {
        let mut response = Histogram::default();
        response.record_n(Nanos::from_micros(100 + index), completed);
        Part::of(&IntervalPart {
            index,
            start_ns: index * 1_000,
            end_ns: (index + 1) * 1_000,
            attempted: completed,
            completed,
            response: Some(response),
            ..IntervalPart::default()
        })
    }

    fn sums(parts: &[Part]) -> Vec<Part> {
        let mut sum = Part::default();
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
        let mut merge = LiveMerge::new(2);
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
        let total: u64 = shown
            .iter()
            .filter_map(|(_, h)| h.as_ref())
            .map(Histogram::count)
            .sum();
        assert_eq!(total, 2 * (10 + 11 + 12 + 13 + 14 + 15));
        assert_eq!((shown[4].0.start_ns, shown[4].0.end_ns), (4_000, 5_000));
    }

    #[test]
    fn an_agent_that_falls_silent_does_not_stop_the_others() {
        let parts: Vec<_> = (0..5).map(|k| part(k, 10)).collect();
        let a = sums(&parts);
        let mut merge = LiveMerge::new(2);
        let shown: usize = a.into_iter().map(|sum| merge.add("a", sum).len()).sum();
        assert_eq!(shown, 3, "two behind");
        // And what comes late is not shown twice.
        assert!(merge.add("b", part(0, 1)).is_empty());
    }
}
