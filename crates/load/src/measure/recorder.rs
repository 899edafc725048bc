//! The recorder: what a worker writes down of each operation.
//!
//! Two views of the same operations, which must not be mixed:
//!
//! - *Latencies and outcomes* are of the operations **intended** within the window, however late
//!   they complete. So nothing that was asked for in the window can be lost at its end, and nothing
//!   that was asked for before leaks in. The one exception is an operation that was intended before
//!   the window and is still under way when the window ends. It counts too, as its user waits
//!   through all of the measured time and would not be seen otherwise. This does not bias what the
//!   window is long enough to measure. Operations shorter than it count only if they were intended
//!   in it, and of those that hang, each user has one. Where a number of operations ends the trial,
//!   the end is known only afterwards. An operation of the warm-up that nobody answered is then
//!   kept back. It counts if nothing that was intended in the window ended later.
//! - *Series, intervals and bytes* are of what **happened** within the window, whenever it was
//!   intended: what the warm-up left in flight balances what the end cuts off. A closed loop has
//!   few long operations, where that would be chance: see [`Measurement::smoothed`].
//!
//! For that the caller goes on until the operations intended in the window have ended, or their
//! timeout has. It hands in what is still in flight then as [`Outcome::InFlight`] with `completed`
//! = now, which makes it a censored observation.

use super::Op;
use super::backlog::Backlogs;
use super::interval::IntervalRecorder;
use super::messages::{MessageEvent, MessageRecorder};
use super::series::SeriesRecorder;
use super::targets::StepsRecorder;
use super::timeline::TimelineRecorder;
use super::times::TimesRecorder;
use super::trial::shortest;
use super::{
    Anatomy, Completion, EndedCounts, IntervalMerger, IntervalPart, Measurement, Outcome,
    TargetMeasured, Window,
};
use crate::messages::MessageRules;
use crate::spec::{Target, TrialSpec};
use crate::time::Nanos;

/// The parameters of a recorder.
#[derive(Clone, Copy, Debug)]
pub struct RecorderConfig {
    /// The measured window. Its end may lie far away where operations, not time, end the trial.
    pub window: Window,
    /// Length of an interval.
    pub interval: Nanos,
    /// Open loop: pacing, waits and starts are recorded.
    pub open_loop: bool,
    /// What is started are sessions; their steps come by [`Recorder::on_steps`].
    pub of_sessions: bool,
    /// Most start times that are kept.
    pub starts_max: usize,
    /// Number of targets.
    pub targets: usize,
}

impl RecorderConfig {
    /// For one worker of a trial, of whose start times `starts_max` are kept at the most.
    pub fn of(spec: &TrialSpec, starts_max: usize) -> RecorderConfig {
        RecorderConfig {
            window: Window { start: spec.warmup, end: spec.window_end() },
            interval: spec.interval,
            open_loop: spec.load.is_open_loop(),
            of_sessions: spec.target.sessions.is_some(),
            starts_max,
            targets: spec.target.requests.len(),
        }
    }
}

/// Records one worker's operations. No allocation per operation; `now` never decreases from call
/// to call.
#[derive(Debug)]
pub struct Recorder {
    config: RecorderConfig,
    /// The latest time of any event.
    now: Nanos,
    totals: Measurement,
    times: TimesRecorder,
    backlogs: Backlogs,
    series: SeriesRecorder,
    steps: StepsRecorder,
    /// Sessions that came to their end; `None` where there are none.
    sessions: Option<SeriesRecorder>,
    timeline: TimelineRecorder,
    messages: MessageRecorder,
    parts: IntervalRecorder,
    /// What was intended in the warm-up, ended unanswered in the window, and ended after all that
    /// was intended in the window so far.
    kept_back: Vec<Completion>,
    /// From this response time on an operation is among the slowest.
    slow: Nanos,
    /// The last response that came over a connection.
    last: Option<Arrival>,
}

/// The arrival of a response over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrival {
    at: Nanos,
    connection: u32,
    /// It was counted as sharing this time.
    is_shared: bool,
}

impl Arrival {
    #[inline]
    fn of(completion: &Completion) -> Arrival {
        Arrival { at: completion.completed, connection: completion.connection, is_shared: false }
    }

    /// How many responses are known to share their arrival now that this one has come after `last`,
    /// and were not before.
    #[inline]
    fn shared(mut self, last: &mut Option<Arrival>) -> u64 {
        let with = last.filter(|last| {
            (last.at, last.connection) == (self.at, self.connection)
                && self.connection != Completion::NO_CONNECTION
        });
        self.is_shared = with.is_some();
        *last = Some(self);
        with.map_or(0, |with| 1 + u64::from(!with.is_shared))
    }
}

impl Recorder {
    /// A recorder for one worker.
    pub fn new(config: RecorderConfig) -> Recorder {
        let starts_max = if config.open_loop { config.starts_max } else { 0 };
        let steps = if config.of_sessions { config.targets.max(1) } else { 0 };
        let totals = Measurement {
            window: config.window,
            // Address space only: the memory is taken as it is written.
            starts: Vec::with_capacity(starts_max),
            starts_until: config.window.end,
            targets: TargetMeasured::each(config.targets, config.of_sessions),
            anatomy: Anatomy::with_room(),
            ..Measurement::default()
        };
        Recorder {
            config,
            now: Nanos::ZERO,
            totals,
            times: TimesRecorder::new(config.open_loop),
            backlogs: Backlogs::default(),
            series: SeriesRecorder::new(config.window),
            steps: StepsRecorder::new(steps, config.window),
            sessions: config.of_sessions.then(|| SeriesRecorder::new(config.window)),
            timeline: TimelineRecorder::new(config.window),
            messages: MessageRecorder::new(config.window, None, Vec::new()),
            parts: IntervalRecorder::new(config.window, config.interval),
            kept_back: Vec::new(),
            slow: Nanos::ZERO,
            last: None,
        }
    }

    /// The same recorder for the streams of a target.
    pub fn of_streams(self, target: &Target) -> Recorder {
        let rules = target.requests.iter().map(|request| request.messages.as_deref());
        let streams = rules.map(|rules| rules.is_some_and(MessageRules::always_split));
        let messages =
            MessageRecorder::new(self.config.window, target.stream_bounds, streams.collect());
        let timed = target.requests.iter().map(|request| request.timed.as_deref());
        Recorder { messages: messages.answering(timed), ..self }
    }

    /// Notes a message of an operation under way.
    #[inline]
    pub fn on_message(&mut self, message: &MessageEvent) {
        let message = match message {
            MessageEvent::Came(message) => message,
            MessageEvent::Left { intended, at } => return self.messages.on_left(*intended, *at),
        };
        self.timeline.add_message(message.at);
        if let Some((outputs, units)) = self.messages.on_message(message)
            && let Some(part) = self.parts.at(message.at)
        {
            part.messages += outputs;
            part.units += units;
        }
    }

    /// Notes that an operation was started at `now` (open loop: goes into the gap statistics, which
    /// are of what was started within the window).
    #[inline]
    pub fn on_start(&mut self, op: Op, now: Nanos) {
        if !self.count_start(op, now) || !self.config.open_loop {
            return;
        }
        if self.totals.starts.len() < self.config.starts_max {
            self.totals.starts.push(now);
        } else {
            self.totals.starts_until = self.totals.starts_until.min(now);
        }
    }

    /// Notes that a further attempt of an operation was started at `now`. It is no part of the
    /// schedule, so the gap statistics leave it out.
    #[inline]
    pub fn on_retry(&mut self, op: Op, now: Nanos) {
        self.count_start(op, now);
    }

    #[inline]
    fn count_start(&mut self, op: Op, now: Nanos) -> bool {
        self.now = now;
        if self.config.open_loop {
            self.backlogs.on_start(now, now - op.intended);
        }
        if !self.config.window.contains(now) {
            return false;
        }
        self.totals.started += 1;
        if let Some(part) = self.parts.at(now) {
            part.attempted += u64::from(!self.config.of_sessions);
            if self.config.open_loop {
                let pacing = part.pacing.get_or_insert_default();
                pacing.add(now - op.intended);
            }
        }
        true
    }

    /// Counts steps of sessions that began.
    #[inline]
    pub fn on_steps(&mut self, begun: u64, now: Nanos) {
        if begun > 0
            && self.config.window.contains(now)
            && let Some(part) = self.parts.at(now)
        {
            part.attempted += begun;
        }
    }

    /// Notes that a session ended, whose kind is its target, where in time it ended. It counts
    /// where it succeeded or failed, and its time where it succeeded.
    pub fn on_session(&mut self, ended: &Completion) {
        if self.config.open_loop && ended.outcome != Outcome::Shed {
            self.backlogs.on_end();
        }
        let is_counted = !matches!(ended.outcome, Outcome::InFlight | Outcome::Shed);
        if !is_counted || !self.config.window.contains(ended.completed) {
            return;
        }
        let is_good = ended.outcome.is_good();
        if is_good && let Some(sessions) = &mut self.sessions {
            sessions.add_response(ended.completed, ended.response_time());
        }
        let Some(part) = self.parts.at(ended.completed) else {
            return;
        };
        let kind = ended.target as usize;
        if part.sessions.len() <= kind {
            part.sessions.resize(kind + 1, EndedCounts::default());
        }
        part.sessions[kind].add(is_good, is_good.then(|| ended.response_time()));
    }

    /// Notes an operation that ended. A shed one has `now` as all its times. One still in flight at
    /// the end has `completed` = now.
    #[inline]
    pub fn on_completion(&mut self, completion: &Completion) {
        self.now = completion.picked_up;
        self.timeline.add(completion);
        self.timeline.add_stall(completion.completed, completion.picked_up);
        if self.config.open_loop && !self.config.of_sessions && completion.outcome != Outcome::Shed
        {
            self.backlogs.on_end();
        }
        if self.config.window.contains(completion.intended) {
            self.kept_back.clear();
            self.count(completion);
        } else if completion.intended < self.config.window.start && self.outlasts_window(completion)
        {
            self.totals.carried += 1;
            self.count(completion);
        }
        if completion.outcome.is_censored()
            && completion.intended < self.config.window.end
            && self.outlasts_window(completion)
        {
            self.totals.unanswered.record(completion.response_time());
        } else if self.ends_unanswered_after_warm_up(completion) {
            // Its number is given to another before this counts.
            let stream = Completion::NO_STREAM;
            self.kept_back.push(Completion { stream, ..*completion });
        }
        if self.config.window.contains(completion.completed) {
            self.count_in_time(completion);
        }
        if completion.stream != Completion::NO_STREAM {
            self.end_stream(completion);
        }
        let Window { start, end } = self.config.window;
        let began_before = completion.intended < start && completion.completed > start;
        if began_before {
            self.totals.begun_before += completion.completed.min(end) - start;
        }
    }

    /// Notes that the worker acts `now`, and was late by this for a deadline of its own (woke late,
    /// or was busy). The longest such time counts where it touches the window.
    #[inline]
    pub fn on_stall(&mut self, now: Nanos, late: Nanos) {
        self.timeline.add_stall(now - late, now);
        let window = self.config.window;
        let during_window = now >= window.start && now - late < window.end;
        if during_window && late.0 > self.totals.stall_ns_max {
            self.totals.stall_ns_max = late.0;
        }
    }

    /// Ends the intervals that are over at `now` and hands out the oldest of them; cheap when none
    /// is. After a standstill several are over: ask until there is none.
    #[inline]
    pub fn roll(&mut self, now: Nanos) -> Option<IntervalPart> {
        self.now = now;
        self.parts.roll(now)
    }

    /// Ends all intervals, the current one at `end`, and hands out what [`Recorder::roll`] has
    /// not: for the merger, before [`Recorder::finish`].
    pub fn roll_all(&mut self, end: Nanos) -> Vec<IntervalPart> {
        self.parts.drain(end)
    }

    /// Ends the recording; the window is cut at `end` if that is earlier. All workers of a trial
    /// should be given the same `end`.
    ///
    /// Intervals that were not handed out are put into the measurement: where there is one worker
    /// only, nobody needs to roll.
    pub fn finish(mut self, end: Nanos) -> Measurement {
        let end = end.clamp(self.config.window.start, self.config.window.end);
        if end < self.config.window.end {
            self.count_kept_back();
        }
        let mut merger = IntervalMerger::new(1);
        for part in self.parts.drain(end) {
            merger.add(part);
        }
        let mut measurement = self.totals;
        self.steps.finish(end, &mut measurement.targets);
        self.times.finish(&mut measurement);
        measurement.window.end = end;
        measurement.intervals = merger.finish();
        measurement.series = self.series.finish(end);
        measurement.timeline = self.timeline.finish();
        measurement.messages = self.messages.finish();
        if let Some(sessions) = self.sessions {
            measurement.completed_sessions = sessions.finish(end);
        }
        measurement.cut_starts(end);
        measurement
    }

    /// Whether the operation was under way when the window ended, which is now where what is in
    /// flight is cut off earlier.
    #[inline]
    fn outlasts_window(&self, completion: &Completion) -> bool {
        let cut_off = completion.outcome == Outcome::InFlight;
        completion.completed >= self.config.window.end
            || cut_off && completion.completed > self.config.window.start
    }

    #[inline]
    fn ends_unanswered_after_warm_up(&self, completion: &Completion) -> bool {
        completion.outcome.is_censored()
            && completion.intended < self.config.window.start
            && self.config.window.contains(completion.completed)
    }

    /// The messages of an operation are all that came.
    fn end_stream(&mut self, completion: &Completion) {
        let units = self.messages.on_end(completion);
        if units > 0
            && let Some(part) = self.parts.at(completion.completed)
        {
            part.units += units;
        }
    }

    /// Nothing measured ended after these: their users waited through all of it.
    fn count_kept_back(&mut self) {
        for completion in std::mem::take(&mut self.kept_back) {
            self.totals.carried += 1;
            self.totals.unanswered.record(completion.response_time());
            self.count(&completion);
        }
    }

    /// Outcome and latencies of an operation that is of the window.
    #[inline]
    fn count(&mut self, completion: &Completion) {
        let totals = &mut self.totals;
        totals.outcomes.add(completion.outcome);
        totals.status_codes.add(completion.status);
        if !totals.targets.is_empty() {
            let index = TargetMeasured::index(completion.target, totals.targets.len());
            totals.targets[index].count(completion);
        }
        if completion.outcome == Outcome::Shed {
            return;
        }
        let is_whole = !completion.outcome.is_censored();
        let response = completion.response_time();
        self.messages.count(completion);
        totals.slowest.add(completion, &mut self.slow);
        let stages = completion.stages();
        totals.anatomy.add(response, &stages);
        self.steps.count(completion.target, &stages);
        let was_sent = completion.sent < completion.completed;
        let late = completion.pacing_error();
        let added = self.backlogs.added(completion.started, late);
        self.times.count(completion, &stages, was_sent, added);
        if completion.outcome.is_response() {
            totals.by_kernel += u64::from(completion.by_kernel);
            totals.shared_arrivals += Arrival::of(completion).shared(&mut self.last);
        }
        if is_whole {
            totals.response_min = shortest(totals.response_min, Some(response));
        }
        if was_sent && is_whole {
            let service = completion.service_time();
            totals.service_min = shortest(totals.service_min, Some(service));
        } else if !was_sent && completion.outcome == Outcome::Timeout {
            totals.unsent += 1;
        }
    }

    /// Series, interval and bytes of an operation that ended in the window.
    #[inline]
    fn count_in_time(&mut self, completion: &Completion) {
        let (outcome, completed) = (completion.outcome, completion.completed);
        if outcome == Outcome::InFlight {
            return;
        }
        self.totals.bytes_received += completion.bytes;
        self.totals.bytes_sent += completion.bytes_sent;
        self.totals.answered += u64::from(outcome.is_response());
        let response = completion.response_time();
        if outcome.is_response() || outcome == Outcome::Timeout {
            self.series.add_response(completed, response);
        }
        if outcome.is_response() {
            self.series.add_completed(completed);
        }
        if outcome != Outcome::Shed {
            self.parts.responded(completed, response);
        }
        if let Some(part) = self.parts.at(completed) {
            part.completed += u64::from(outcome.is_response());
            part.errors += u64::from(!outcome.is_response());
            if !outcome.is_good() {
                let time = (outcome != Outcome::Shed).then_some(response);
                part.failed.entry(outcome).or_default().add(false, time);
            }
            self.steps.count_in_time(completion, &mut part.steps);
        }
    }
}

#[cfg(test)]
mod tests;
