//! Conducts a run: intervals for the watcher, settling, limits, the end.

use super::flow_run::FlowRun;
use super::pinger::{PingerControl, PingerEvent};
use super::wire::{LatencyRequest, LatencyServiceRecord};
use crate::control::ServiceLost;
use crate::sys::clock;
use knee_load::experiment::latency::settling::{PingsSoFar, Settling};
use knee_load::experiment::latency::{LatencyTrialSpec, ScenarioEnd, ScenarioEnded};
use knee_load::measure::{Histogram, Interval, IntervalWatcher};
use knee_load::time::Nanos;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Interval of looking at the run.
const GLANCE: Duration = Duration::from_millis(5);

/// Time before the end at which the request to end is sent, so that both ends stop at the same
/// time. More where the path takes longer.
const END_LEAD: Nanos = Nanos::from_millis(10);
const END_LEAD_MAX: Nanos = Nanos::from_secs(1);

/// Time limit of the service's record after the end.
const RECORD_PATIENCE: Nanos = Nanos::from_secs(60);

/// The same after an interrupt.
const INTERRUPTED_PATIENCE: Nanos = Nanos::from_millis(70);

/// An ended interval is shown once the service has reported its uploads, or after this number of
/// further ones.
const SHOWN_AFTER: usize = 3;

/// Bytes that each upload had carried by a time, as the service reported.
pub(super) type UploadProgress = (Nanos, Vec<u64>);

/// Result of a run.
#[derive(Debug)]
pub(super) struct ConductedRun {
    pub(super) ended: ScenarioEnded,
    pub(super) elapsed: Nanos,
    pub(super) interrupted: bool,
    pub(super) record: Option<LatencyServiceRecord>,
    pub(super) progress: Vec<UploadProgress>,
}

/// State of a run.
pub(super) struct Conductor<'a> {
    spec: &'a LatencyTrialSpec,
    flow_run: Arc<FlowRun>,
    pinger_control: Arc<PingerControl>,
    limit: Nanos,
    settling: Option<(Settling, Nanos)>,
    /// Windows that are over: their end, bytes of downloads, and pings.
    windows: VecDeque<(Nanos, Vec<u64>, PingsSoFar)>,
    window_end: Nanos,
    pings: PingsSoFar,
    current: (Interval, Histogram),
    /// Intervals that have ended and are not yet shown.
    ended_intervals: VecDeque<(Interval, Histogram)>,
    /// Pings sent so far.
    sent: u64,
    /// Bytes of downloads at the beginning of the current interval.
    down_before: u64,
    progress: Vec<UploadProgress>,
    end: Option<(Nanos, ScenarioEnded)>,
    interrupted: bool,
    record: Option<LatencyServiceRecord>,
    is_lost: bool,
}

impl<'a> Conductor<'a> {
    pub(super) fn new(
        spec: &'a LatencyTrialSpec,
        flow_run: Arc<FlowRun>,
        pinger_control: Arc<PingerControl>,
    ) -> Self {
        let (limit, settling) = match spec.end {
            ScenarioEnd::After(length) => (length, None),
            ScenarioEnd::Settled { settle, limit } => {
                let window = settle.window.max(Nanos(1));
                (limit, Some((Settling::new(settle), window)))
            }
        };
        let window_end = settling.as_ref().map_or(Nanos::MAX, |s| s.1);
        Conductor {
            current: (first(spec.interval), Histogram::ready()),
            spec,
            flow_run,
            pinger_control,
            limit,
            settling,
            windows: VecDeque::new(),
            window_end,
            pings: PingsSoFar::default(),
            ended_intervals: VecDeque::new(),
            sent: 0,
            down_before: 0,
            progress: Vec::new(),
            end: None,
            interrupted: false,
            record: None,
            is_lost: false,
        }
    }

    /// Conducts the run until the record has come, or cannot come.
    pub(super) fn conduct(
        mut self,
        news: &Receiver<PingerEvent>,
        observer: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> ConductedRun {
        loop {
            match news.recv_timeout(GLANCE) {
                Ok(one) => self.handle(one),
                Err(RecvTimeoutError::Timeout) => {}
                // The pinger has ended: all its events have been handled.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = self.flow_run.since(clock::monotonic_ns());
            self.end_intervals(now);
            self.show_intervals(observer, false);
            if self.end.is_none() {
                self.check_end(now, stop);
            } else if self.is_over(now, stop) {
                break;
            }
        }
        self.pinger_control.halt();
        // Until the pinger ends: what it sent in that time belongs to the last interval.
        for one in news {
            self.handle(one);
        }
        let now = self.flow_run.since(clock::monotonic_ns());
        let gone = || ScenarioEnded::Aborted("the pinger has ended".to_owned());
        let (elapsed, ended) = self.end.take().unwrap_or_else(|| (now, gone()));
        self.cut_last_interval(elapsed);
        self.show_intervals(observer, true);
        ConductedRun {
            ended,
            elapsed,
            interrupted: self.interrupted,
            record: self.record,
            progress: self.progress,
        }
    }

    fn handle(&mut self, news: PingerEvent) {
        match news {
            PingerEvent::Sent => {
                self.sent += 1;
                self.current.0.attempted += 1;
            }
            PingerEvent::Back(round_trip) => {
                self.current.0.completed += 1;
                self.pings.add(round_trip);
                self.current.1.record(round_trip);
            }
            PingerEvent::Progress(at, bytes) => self.progress.push((at, bytes)),
            PingerEvent::Over(reason) => self.finish(Nanos::ZERO, ScenarioEnded::Aborted(reason)),
            PingerEvent::Record(record) => self.record = Some(*record),
            PingerEvent::Lost(lost) => {
                self.is_lost = true;
                let why = match lost {
                    ServiceLost::Because(why) => format!("the service {why}"),
                    ServiceLost::Interrupted => "interrupted".to_owned(),
                };
                // A run that was to end well is aborted without the service's record.
                match &mut self.end {
                    Some((_, how))
                        if self.record.is_none() && !matches!(how, ScenarioEnded::Aborted(_)) =>
                    {
                        *how = ScenarioEnded::Aborted(why);
                    }
                    _ => self.finish(Nanos::ZERO, ScenarioEnded::Aborted(why)),
                }
            }
        }
    }

    /// Sets the end to `lead` from now, unless it is set already.
    fn finish(&mut self, lead: Nanos, how: ScenarioEnded) {
        if self.end.is_some() {
            return;
        }
        let now_ns = clock::monotonic_ns();
        let at = (self.flow_run.since(now_ns) + lead).min(self.limit);
        self.end_at(at, how);
    }

    fn end_at(&mut self, at: Nanos, how: ScenarioEnded) {
        let at_ns = self.flow_run.origin_ns + at.0;
        self.flow_run.end_ns.fetch_min(at_ns, Ordering::Relaxed);
        self.pinger_control.end_ns.fetch_min(at_ns, Ordering::Relaxed);
        let at_ns = at_ns.wrapping_add(self.flow_run.ahead_ns);
        self.pinger_control.send(LatencyRequest::End { at_ns });
        self.end = Some((at, how));
    }

    /// Decides whether the run ends now, and how.
    fn check_end(&mut self, now: Nanos, stop: &AtomicBool) {
        if stop.load(Ordering::Relaxed) {
            self.interrupted = true;
            let why = "interrupted".to_owned();
            return self.finish(Nanos::ZERO, ScenarioEnded::Aborted(why));
        }
        if now >= self.limit {
            return self.end_at(self.limit, ScenarioEnded::Forced);
        }
        let carried = || self.flow_run.carried_in_all();
        if let Some(max) = self.spec.bytes_max.filter(|&max| carried() >= max) {
            let why = format!("all flows together have carried {max} bytes");
            return self.finish(END_LEAD, ScenarioEnded::Aborted(why));
        }
        if self.has_settled() {
            let longest = Nanos(self.pinger_control.longest_ns.load(Ordering::Relaxed));
            let lead = (longest + END_LEAD).min(END_LEAD_MAX);
            self.finish(lead, ScenarioEnded::Settled);
        }
    }

    /// Judges the windows whose uploads and downloads are known.
    fn has_settled(&mut self) -> bool {
        let Some((settling, _)) = &mut self.settling else {
            return false;
        };
        while let Some((at, down, pings)) = self.windows.front() {
            let mut bytes = Vec::new();
            if self.spec.up > 0 {
                let Ok(index) = self.progress.binary_search_by_key(at, |p| p.0) else {
                    return false;
                };
                bytes.extend(&self.progress[index].1);
            }
            bytes.extend(down);
            for (index, lost) in self.flow_run.lost.iter().enumerate() {
                if lost.load(Ordering::Relaxed) {
                    settling.on_flow_lost(index);
                }
            }
            let (at, pings) = (*at, *pings);
            self.windows.pop_front();
            if settling.on_window(&bytes, at, pings) {
                return true;
            }
        }
        false
    }

    fn is_over(&self, now: Nanos, stop: &AtomicBool) -> bool {
        let end = self.end.as_ref().map_or(Nanos::MAX, |e| e.0);
        let patience = if self.interrupted || stop.load(Ordering::Relaxed) {
            INTERRUPTED_PATIENCE
        } else {
            RECORD_PATIENCE
        };
        // After the record the pinger ends by itself, once the last UDP probes have come.
        now >= end && (self.is_lost || now - end > patience)
    }

    /// Ends the intervals and windows that are over.
    fn end_intervals(&mut self, now: Nanos) {
        let end = self.end.as_ref().map_or(self.limit, |e| e.0);
        while now.0 >= self.current.0.end_ns && self.current.0.end_ns < end.0 {
            self.close_interval();
        }
        while now >= self.window_end && self.window_end <= end && self.end.is_none() {
            let down = self.downloaded();
            let longest = Nanos(self.pinger_control.longest_ns.load(Ordering::Relaxed));
            let pings = PingsSoFar { longest, ..self.pings };
            self.windows.push_back((self.window_end, down, pings));
            let window = self.settling.as_ref().map_or(Nanos::MAX, |s| s.1);
            self.window_end += window;
        }
    }

    /// Bytes of each download so far.
    fn downloaded(&self) -> Vec<u64> {
        self.flow_run.carried(self.spec.up as usize..self.spec.flows() as usize)
    }

    fn close_interval(&mut self) {
        let down: u64 = self.downloaded().iter().sum();
        let before = std::mem::replace(&mut self.down_before, down);
        let mut next = first(self.spec.interval);
        next.start_ns = self.current.0.end_ns;
        next.end_ns = next.start_ns.saturating_add(self.spec.interval.0.max(1));
        let next = (next, Histogram::ready());
        let (mut ended, response) = std::mem::replace(&mut self.current, next);
        let quantile = |q| response.quantile(q).0;
        ended.p50_ns = quantile(0.5);
        ended.p90_ns = quantile(0.9);
        ended.p95_ns = quantile(0.95);
        ended.p99_ns = quantile(0.99);
        ended.max_ns = response.max().0;
        ended.down_bytes = (self.spec.down > 0).then(|| down - before);
        self.ended_intervals.push_back((ended, response));
    }

    /// Cuts the last interval at the end.
    fn cut_last_interval(&mut self, end: Nanos) {
        self.current.0.errors = self.sent.saturating_sub(self.pings.answered);
        if self.current.0.start_ns < end.0 {
            self.current.0.end_ns = self.current.0.end_ns.min(end.0);
            self.close_interval();
        }
    }

    /// Shows ended intervals in order, once their uploads are known; `all`: without waiting.
    fn show_intervals(&mut self, observer: &mut dyn IntervalWatcher, all: bool) {
        while let Some((interval, _)) = self.ended_intervals.front() {
            let up = self.uploaded(interval);
            let patient = self.ended_intervals.len() <= SHOWN_AFTER;
            if self.spec.up > 0 && up.is_none() && patient && !all {
                return;
            }
            if let Some((mut interval, response)) = self.ended_intervals.pop_front() {
                interval.up_bytes = up;
                observer.on_interval(&interval, &response);
            }
        }
    }

    /// Bytes of uploads in an interval, if the service has reported them.
    fn uploaded(&self, interval: &Interval) -> Option<u64> {
        let at = |ns: u64| {
            if ns == 0 {
                return Some(0);
            }
            let index = self.progress.binary_search_by_key(&Nanos(ns), |p| p.0).ok()?;
            Some(self.progress[index].1.iter().sum::<u64>())
        };
        let (before, after) = (at(interval.start_ns)?, at(interval.end_ns)?);
        Some(after.saturating_sub(before))
    }
}

fn first(length: Nanos) -> Interval {
    Interval { end_ns: length.0.max(1), ..Interval::default() }
}
