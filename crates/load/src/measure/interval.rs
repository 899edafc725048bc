//! The intervals of the time series that people look at, and how workers' shares become one.

use super::sums::merge_some;
use super::times::RunLengthRecorder;
use super::{AgentInterval, EndedCounts, Histogram, Outcome, Window};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// One interval of the time series, over all workers. Operations count where they completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Begin, from the begin of the window.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Operations started.
    pub attempted: u64,
    /// Operations that completed with a response.
    pub completed: u64,
    /// Operations that ended otherwise.
    pub errors: u64,
    /// Median response time; 0 where nothing completed.
    pub p50_ns: u64,
    /// 90th percentile of response time.
    pub p90_ns: u64,
    /// 95th percentile of response time; 0 in reports from before it was kept.
    #[serde(default)]
    pub p95_ns: u64,
    /// 99th percentile of response time.
    pub p99_ns: u64,
    /// Longest response time.
    pub max_ns: u64,
    /// Mean lateness of the generator (started − intended) over the operations started; open loop
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_error_ns_mean: Option<u64>,
    /// The largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_error_ns_max: Option<u64>,
    /// Messages that came; streams of messages only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// What they count as; streams of messages only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<u64>,
    /// Operations under way at its end, those included that wait for a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u64>,
    /// For how long the oldest of them had been, since its intended time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_ns: Option<u64>,
    /// Datagrams sent; datagrams only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Datagrams sent in the interval that were received at any time; datagrams only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// Datagrams sent in the interval that were not received; datagrams only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// Payload bytes that uploads carried; flows only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_bytes: Option<u64>,
    /// Payload bytes that downloads carried; flows only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_bytes: Option<u64>,
    /// The operations that ended in it without success, by how they ended. Told while the trial
    /// runs, and not kept.
    #[serde(skip)]
    pub failed: BTreeMap<Outcome, EndedCounts>,
    /// What ended of each step, by its number, and of further ones as of
    /// [`super::TARGETS_MAX`]; sessions only. Told and not kept likewise.
    #[serde(skip)]
    pub steps: Vec<EndedCounts>,
    /// What ended of each kind of session, by its number. Told and not kept likewise.
    #[serde(skip)]
    pub sessions: Vec<EndedCounts>,
    /// The contribution of each agent; empty where one process makes the load.
    #[serde(skip)]
    pub agents: Vec<AgentInterval>,
}

impl Interval {
    /// Length in nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// A count of it as a rate, so that a shorter last interval compares with the others. Not a
    /// number where the interval has no length.
    pub fn per_s(&self, n: u64) -> f64 {
        match self.length_ns() {
            0 => f64::NAN,
            length_ns => n as f64 * 1e9 / length_ns as f64,
        }
    }

    /// The interval as reports keep it, without the parts for watchers.
    pub fn kept(self) -> Interval {
        Interval {
            failed: BTreeMap::new(),
            steps: Vec::new(),
            sessions: Vec::new(),
            agents: Vec::new(),
            ..self
        }
    }
}

/// Sees the intervals of a running trial as they end: a progress line, a live view, an exporter.
pub trait IntervalWatcher {
    /// An interval has ended. `response`: the response times of the operations that ended in it,
    /// where they are known one by one.
    fn on_interval(&mut self, interval: &Interval, response: &Histogram);

    /// Something happened that the user should know at once, in a line.
    fn on_note(&mut self, _line: &str) {}
}

/// One worker's share of an interval, or that of several. Parts of the same `index` belong to the
/// same interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IntervalPart {
    /// Which interval: 0 begins with the window.
    pub index: u64,
    /// Begin, from the begin of the window.
    pub start_ns: u64,
    /// End; earlier than a whole interval where the window ended in it.
    pub end_ns: u64,
    /// Operations started.
    pub attempted: u64,
    /// Operations that completed with a response.
    pub completed: u64,
    /// Operations that ended otherwise, shed ones among them.
    pub errors: u64,
    /// Messages of streams that came.
    #[serde(default)]
    pub messages: u64,
    /// What they count as.
    #[serde(default)]
    pub units: u64,
    /// How late the operations were started; `None` in a closed loop, or where none was.
    pub pacing: Option<Pacing>,
    /// Operations under way at its end, where that is known.
    pub under_way: Option<UnderWay>,
    /// Response times of the operations that ended here, shed ones excluded.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub response: Histogram,
    /// Operations that ended without success, by how they ended.
    #[serde(default)]
    pub failed: BTreeMap<Outcome, EndedCounts>,
    /// Counts of each step; empty where none ended.
    pub steps: Vec<EndedCounts>,
    /// Sessions of each kind that ended; empty kinds at the end are left out.
    pub sessions: Vec<EndedCounts>,
}

/// The operations under way at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnderWay {
    /// Operations, those included that wait for a connection.
    pub operations: u64,
    /// For how long the oldest has been, since its intended time.
    pub oldest: Nanos,
}

impl UnderWay {
    /// Adds the operations of another worker.
    fn merge(&mut self, other: UnderWay) {
        self.operations += other.operations;
        self.oldest = self.oldest.max(other.oldest);
    }
}

/// How late the operations of a part of an interval were started: what costs next to nothing to
/// keep of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pacing {
    /// Operations.
    pub count: u64,
    /// Sum of started − intended, in nanoseconds.
    pub sum_ns: u64,
    /// The largest of them.
    pub max_ns: u64,
}

impl Pacing {
    /// Counts one operation.
    #[inline]
    pub fn add(&mut self, error: Nanos) {
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(error.0);
        self.max_ns = self.max_ns.max(error.0);
    }

    fn merge(&mut self, other: Pacing) {
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    fn mean_ns(self) -> u64 {
        self.sum_ns / self.count.max(1)
    }
}

impl IntervalPart {
    /// Adds another share of the same interval, exactly.
    pub fn merge(&mut self, other: IntervalPart) {
        self.end_ns = self.end_ns.max(other.end_ns);
        merge_some(&mut self.under_way, other.under_way, UnderWay::merge);
        self.attempted += other.attempted;
        self.completed += other.completed;
        self.errors += other.errors;
        self.messages += other.messages;
        self.units += other.units;
        merge_some(&mut self.pacing, other.pacing, Pacing::merge);
        self.response.merge(&other.response);
        EndedCounts::merge_by_outcome(&mut self.failed, &other.failed);
        EndedCounts::merge_all(&mut self.steps, &other.steps);
        EndedCounts::merge_all(&mut self.sessions, &other.sessions);
    }

    /// The interval that this is the whole of.
    pub fn interval(&self) -> Interval {
        let quantile = |q| self.response.quantile(q).0;
        Interval {
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            attempted: self.attempted,
            completed: self.completed,
            errors: self.errors,
            messages: Some(self.messages).filter(|n| *n > 0),
            units: Some(self.units).filter(|n| *n > 0),
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p95_ns: quantile(0.95),
            p99_ns: quantile(0.99),
            max_ns: self.response.max().0,
            in_flight: self.under_way.map(|u| u.operations),
            oldest_ns: self.under_way.map(|u| u.oldest.0).filter(|&ns| ns > 0),
            pacing_error_ns_mean: self.pacing.map(Pacing::mean_ns),
            pacing_error_ns_max: self.pacing.map(|p| p.max_ns),
            failed: self.failed.clone(),
            steps: self.steps.clone(),
            sessions: self.sessions.clone(),
            ..Interval::default()
        }
    }
}

/// Makes intervals of the parts of several workers. Each worker's parts come in the order of their
/// index with none left out, as [`super::Recorder::roll`] yields them.
#[derive(Debug)]
pub struct IntervalMerger {
    workers: usize,
    open: BTreeMap<u64, (usize, IntervalPart)>,
    done: Vec<Interval>,
}

impl IntervalMerger {
    /// A merger for `workers` workers (at least 1).
    pub fn new(workers: usize) -> IntervalMerger {
        IntervalMerger { workers: workers.max(1), open: BTreeMap::new(), done: Vec::new() }
    }

    /// Adds one part. The whole interval and the sum of its parts, when it was the last part that
    /// was missing.
    pub fn add(&mut self, part: IntervalPart) -> Option<(Interval, IntervalPart)> {
        let index = part.index;
        let parts = match self.open.remove(&index) {
            None => (1, part),
            Some((n, mut sum)) => {
                sum.merge(part);
                (n + 1, sum)
            }
        };
        if parts.0 < self.workers {
            self.open.insert(index, parts);
            return None;
        }
        let interval = parts.1.interval();
        self.done.push(interval.clone().kept());
        Some((interval, parts.1))
    }

    /// All intervals in order, those included for which not every worker has sent its part: for
    /// [`super::Measurement::intervals`].
    pub fn finish(self) -> Vec<Interval> {
        let mut intervals = self.done;
        intervals.extend(self.open.into_values().map(|(_, p)| p.interval().kept()));
        intervals.sort_by_key(|i| i.start_ns);
        intervals
    }
}

/// One worker's intervals: the current one and those that are over but not yet handed out.
#[derive(Debug)]
pub(super) struct IntervalRecorder {
    window: Window,
    length: Nanos,
    /// End of the current interval, in run time; [`Nanos::MAX`] when the window is over.
    end: Nanos,
    current: Option<IntervalPart>,
    /// The response times of the current interval.
    response: RunLengthRecorder,
    over: VecDeque<IntervalPart>,
}

impl IntervalRecorder {
    pub(super) fn new(window: Window, length: Nanos) -> IntervalRecorder {
        let mut parts = IntervalRecorder {
            window,
            length: length.max(Nanos(1)),
            end: Nanos::MAX,
            current: None,
            response: RunLengthRecorder::default(),
            over: VecDeque::new(),
        };
        if window.length() > Nanos::ZERO {
            parts.open(0);
        }
        parts
    }

    /// The interval of `now`, a time within the window. A time before the current interval counts
    /// as its beginning.
    #[inline]
    pub(super) fn at(&mut self, now: Nanos) -> Option<&mut IntervalPart> {
        if now >= self.end {
            self.advance(now);
        }
        self.current.as_mut()
    }

    /// An operation that ended at `now` had this response time.
    #[inline]
    pub(super) fn responded(&mut self, now: Nanos, response: Nanos) {
        if self.at(now).is_some() {
            self.response.record(response);
        }
    }

    /// The oldest interval that is over at `now` and has not been handed out.
    #[inline]
    pub(super) fn roll(&mut self, now: Nanos) -> Option<IntervalPart> {
        if now >= self.end {
            self.advance(now);
        }
        self.over.pop_front()
    }

    /// All that have not been handed out, the current one cut at `end`.
    pub(super) fn drain(&mut self, end: Nanos) -> Vec<IntervalPart> {
        if end >= self.end {
            self.advance(end);
        }
        if let Some(mut last) = self.current.take() {
            last.response = self.response.take();
            last.end_ns = (end - self.window.start).0.min(last.end_ns);
            if last.end_ns > last.start_ns {
                self.over.push_back(last);
            }
        }
        self.end = Nanos::MAX;
        self.over.drain(..).collect()
    }

    #[cold]
    fn advance(&mut self, now: Nanos) {
        while now >= self.end {
            let Some(mut part) = self.current.take() else {
                return;
            };
            part.response = self.response.take();
            let next = part.index + 1;
            self.over.push_back(part);
            if self.end < self.window.end {
                self.open(next);
            } else {
                self.end = Nanos::MAX;
            }
        }
    }

    fn open(&mut self, index: u64) {
        let start_ns = index.saturating_mul(self.length.0);
        self.end = (self.window.start + Nanos(start_ns) + self.length).min(self.window.end);
        self.current = Some(IntervalPart {
            index,
            start_ns,
            end_ns: (self.end - self.window.start).0,
            ..IntervalPart::default()
        });
    }
}

/// The direction of a flow's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the generator to the service.
    Up,
    /// From the service to the generator.
    Down,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_without_length_has_no_rate() {
        let of = |end_ns| Interval { start_ns: 1_000, end_ns, ..Interval::default() };
        assert!(of(1_000).per_s(7).is_nan());
        assert_eq!(of(1_001_000).per_s(7), 7_000.0);
    }
}
