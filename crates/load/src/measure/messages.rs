//! Messages of streams: when each came, and what that makes of its stream.
//!
//! Knows no protocol. Gaps and rates are of the messages that **came** within the window, whatever
//! stream they belong to. Times of whole streams and the share of good ones are of the operations
//! **intended** within the window, as response times are.

use super::{Completion, Histogram, Window};
use crate::messages::{GAP_BOUNDS_MAX, StreamApi, StreamBounds, StreamFaults, TimedMessages};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A message of an operation, as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamMessage {
    /// Number of the operation among those under way.
    pub stream: u32,
    /// Number of its request.
    pub request: u32,
    /// When the schedule wanted the operation to start.
    pub intended: Nanos,
    /// When the message was complete. Messages that share a receive timestamp have the same.
    pub at: Nanos,
    /// What it counts as; `None` where it has no number.
    pub units: Option<u64>,
    /// Tokens of output of the stream so far; 0 where it does not say.
    pub tokens: u32,
    /// The API of the stream, as far as that is known.
    pub api: StreamApi,
    /// It has output: all others count apart, and no time ends with them.
    pub is_output: bool,
    /// It began in an earlier piece of the stream than it ended in.
    pub is_cut: bool,
}

/// What became of a message of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageEvent {
    /// A message of the response came.
    Came(StreamMessage),
    /// A message of the request left.
    Left {
        /// When the schedule wanted it to leave.
        intended: Nanos,
        /// When it was put out, if nothing held it back.
        at: Nanos,
    },
}

/// What was measured of the messages of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MessagesMeasured {
    /// Messages with output that came within the window.
    pub count: u64,
    /// Messages without output that came within the window.
    pub others: u64,
    /// What all of them count as.
    pub units: u64,
    /// Messages with a number to count as.
    pub numbers: u64,
    /// Messages that share a receive timestamp with another of their stream.
    pub shared: u64,
    /// Groups of messages with one receive timestamp that came at least [`BURST_GAP`] after the
    /// message before.
    pub bursts: u64,
    /// Those of them whose first message had begun before.
    pub cut_bursts: u64,
    /// Streams intended in the window.
    pub streams: u64,
    /// Those of them of a known API.
    pub apis: BTreeMap<StreamApi, u64>,
    /// Whole streams among them.
    pub whole: u64,
    /// Whole streams that meet all bounds.
    pub good: u64,
    /// Whole streams of at least [`BURST_MIN`] messages.
    pub long: u64,
    /// Those of them whose messages came all at once, after [`BURST_GAP`] at least.
    pub at_once: u64,
    /// Times to the first message, with the time waited where none came.
    pub first_message: Histogram,
    /// Gaps between messages.
    pub gap: Histogram,
    /// Times per message of whole streams.
    pub per_message: Histogram,
    /// Times per token of whole streams that say how many they have.
    pub per_token: Histogram,
    /// Stream times of whole streams, with the time waited of those that were cut off.
    pub stream: Histogram,
    /// The longest gap of each stream.
    pub longest_gap: Histogram,
    /// Messages of requests that left within the window, each at a time of its own.
    pub sent: u64,
    /// How late they left.
    pub sent_late: Histogram,
    /// From the intended time of a message to the one that answers it, which is the one of the same
    /// number in its stream.
    pub answer: Histogram,
    /// Whole streams that do not have one message for each that was sent.
    pub unpaired: u64,
    /// Why a stream was not whole, for the first time, in words.
    pub fault: Option<String>,
    /// The text of the first error in a stream.
    pub error: Option<String>,
}

/// The least time before a burst.
pub const BURST_GAP: Nanos = Nanos::from_millis(50);

/// The least number of messages of a burst.
pub const BURST_MIN: u32 = 4;

impl MessagesMeasured {
    /// None yet, with the memory for all times.
    fn ready() -> MessagesMeasured {
        MessagesMeasured {
            first_message: Histogram::ready(),
            gap: Histogram::ready(),
            per_message: Histogram::ready(),
            per_token: Histogram::ready(),
            stream: Histogram::ready(),
            longest_gap: Histogram::ready(),
            sent_late: Histogram::ready(),
            answer: Histogram::ready(),
            ..MessagesMeasured::default()
        }
    }

    /// Takes what was wrong with its streams.
    pub fn set_faults(&mut self, faults: StreamFaults) {
        (self.fault, self.error) = (faults.incomplete, faults.error);
    }

    /// Adds another worker's, exactly.
    pub fn merge(&mut self, other: MessagesMeasured) {
        let counts = [
            (&mut self.count, other.count),
            (&mut self.others, other.others),
            (&mut self.units, other.units),
            (&mut self.numbers, other.numbers),
            (&mut self.shared, other.shared),
            (&mut self.bursts, other.bursts),
            (&mut self.cut_bursts, other.cut_bursts),
            (&mut self.streams, other.streams),
            (&mut self.whole, other.whole),
            (&mut self.good, other.good),
            (&mut self.long, other.long),
            (&mut self.at_once, other.at_once),
            (&mut self.sent, other.sent),
            (&mut self.unpaired, other.unpaired),
        ];
        for (mine, theirs) in counts {
            *mine += theirs;
        }
        self.first_message.merge(&other.first_message);
        self.gap.merge(&other.gap);
        self.per_message.merge(&other.per_message);
        self.per_token.merge(&other.per_token);
        for (api, streams) in other.apis {
            *self.apis.entry(api).or_default() += streams;
        }
        self.stream.merge(&other.stream);
        self.longest_gap.merge(&other.longest_gap);
        self.sent_late.merge(&other.sent_late);
        self.answer.merge(&other.answer);
        self.fault = self.fault.take().or(other.fault);
        self.error = self.error.take().or(other.error);
    }
}

/// Records the messages of one worker. Memory depends on the number of operations under way, and
/// not on that of messages.
#[derive(Debug)]
pub(super) struct MessageRecorder {
    window: Window,
    bounds: Option<StreamBounds>,
    /// Whether an operation is a stream even if no message came, by target.
    targets: Vec<bool>,
    /// The messages that are answered one by one, by request; empty where there are none.
    answered: Vec<Option<TimedMessages>>,
    streams: Vec<StreamState>,
    measured: MessagesMeasured,
}

/// The messages of an operation so far.
#[derive(Clone, Copy, Debug, Default)]
struct StreamState {
    first: Nanos,
    last: Nanos,
    longest_gap: Nanos,
    /// Messages with output.
    messages: u32,
    api: StreamApi,
    /// Tokens of output as of the first message with output, at least 1, and as of the last word.
    first_tokens: u32,
    tokens: u32,
    /// Messages with the time of the last one.
    at_once: u32,
    /// Of the group of these: the first had begun before.
    is_cut: bool,
    /// It came at least [`BURST_GAP`] after the message before.
    is_late: bool,
    has_number: bool,
    /// Messages that are to come; 0 where their number is not known.
    awaited: u32,
    /// A message came before the one that it would answer was to leave.
    is_early: bool,
    /// Gaps that are not below each bound.
    over: [u32; GAP_BOUNDS_MAX],
}

impl MessageRecorder {
    /// A recorder; `targets` are those whose operations are streams in any case.
    pub(super) fn new(
        window: Window,
        bounds: Option<StreamBounds>,
        targets: Vec<bool>,
    ) -> MessageRecorder {
        let streams = Vec::new();
        let has_streams = targets.contains(&true);
        let measured =
            if has_streams { MessagesMeasured::ready() } else { MessagesMeasured::default() };
        MessageRecorder { window, bounds, targets, answered: Vec::new(), streams, measured }
    }

    /// The same recorder for requests that send these messages.
    pub(super) fn answering<'a>(
        mut self,
        timed: impl Iterator<Item = Option<&'a TimedMessages>>,
    ) -> MessageRecorder {
        let timed = timed.map(|timed| timed.filter(|timed| timed.is_answered()).cloned());
        self.answered = timed.collect();
        if self.answered.iter().all(Option::is_none) {
            self.answered.clear();
        }
        self
    }

    /// Records that a message of a request left.
    pub(super) fn on_left(&mut self, intended: Nanos, at: Nanos) {
        if self.window.contains(at) {
            self.measured.sent += 1;
            self.measured.sent_late.record(at - intended);
        }
    }

    /// Records a message. Returns how many messages with output it is and what it counts as, where
    /// it came within the window.
    #[inline]
    pub(super) fn on_message(&mut self, message: &StreamMessage) -> Option<(u64, u64)> {
        let index = message.stream as usize;
        if self.streams.len() <= index {
            self.streams.resize(index + 1, StreamState::default());
        }
        let is_counted = self.window.contains(message.at);
        if message.is_output {
            self.on_output(message, is_counted);
        }
        let stream = &mut self.streams[index];
        stream.has_number |= message.units.is_some();
        stream.api = message.api;
        stream.tokens = stream.tokens.max(message.tokens);
        let units = message.units.unwrap_or(0);
        let outputs = u64::from(message.is_output);
        is_counted.then(|| {
            self.measured.count += outputs;
            self.measured.others += 1 - outputs;
            self.measured.units += units;
            self.measured.numbers += u64::from(message.units.is_some());
            (outputs, units)
        })
    }

    /// Records when a message with output came.
    #[inline]
    fn on_output(&mut self, message: &StreamMessage, is_counted: bool) {
        let stream = &mut self.streams[message.stream as usize];
        if let Some(Some(timed)) = self.answered.get(message.request as usize)
            && let Some(time) = stream.answer_time(message, timed)
            && is_counted
        {
            self.measured.answer.record(time);
        }
        if stream.messages == 0 {
            stream.first = message.at;
            stream.first_tokens = message.tokens.max(1);
            stream.begin_group(message, BURST_GAP <= message.at - message.intended);
        } else {
            let gap = message.at - stream.last;
            if gap == Nanos::ZERO {
                stream.at_once += 1;
                let shared = 1 + u64::from(stream.at_once == 2);
                self.measured.shared += if is_counted { shared } else { 0 };
                if stream.at_once == BURST_MIN && stream.is_late && is_counted {
                    self.measured.bursts += 1;
                    self.measured.cut_bursts += u64::from(stream.is_cut);
                }
            } else {
                stream.begin_group(message, gap >= BURST_GAP);
                stream.longest_gap = stream.longest_gap.max(gap);
            }
            if let Some(bounds) = &self.bounds {
                let pairs = stream.over.iter_mut().zip(&bounds.gaps);
                pairs.for_each(|(over, bound)| {
                    *over += u32::from(bound.is_some_and(|bound| gap >= bound.below));
                });
            }
            if is_counted {
                self.measured.gap.record(gap);
            }
        }
        stream.last = message.at;
        stream.messages += 1;
    }

    /// Counts an operation that is of the window, if it is a stream.
    pub(super) fn count(&mut self, completion: &Completion) {
        if matches!(completion.status, 300..400) {
            return;
        }
        let target = completion.target as usize;
        let is_known = completion.stream != Completion::NO_STREAM;
        if is_known && target < TARGETS_KNOWN_MAX && self.targets.len() <= target {
            self.targets.resize(target + 1, false);
        }
        let is_censored = completion.outcome.is_censored();
        match self.targets.get_mut(target) {
            Some(is_stream) if is_known => *is_stream = true,
            Some(true) if is_censored => {}
            _ if is_known => {}
            _ => return,
        }
        let stream = self.streams.get(completion.stream as usize).copied().unwrap_or_default();
        let measured = &mut self.measured;
        measured.streams += 1;
        if stream.api.is_known() {
            *measured.apis.entry(stream.api).or_default() += 1;
        }
        if stream.messages > 0 {
            measured.first_message.record(stream.first - completion.intended);
        } else if is_censored {
            measured.first_message.record(completion.response_time());
        }
        if stream.messages > 1 {
            measured.longest_gap.record(stream.longest_gap);
        }
        if is_censored {
            measured.stream.record(completion.response_time());
        }
        if !completion.outcome.is_good() || stream.messages == 0 {
            return;
        }
        measured.whole += 1;
        measured.unpaired += u64::from(!stream.is_paired());
        measured.stream.record(stream.last - completion.intended);
        let per_message = stream.per_message();
        if let Some(time) = per_message {
            measured.per_message.record(time);
        }
        if let Some(time) = stream.per_token() {
            measured.per_token.record(time);
        }
        if stream.messages >= BURST_MIN {
            measured.long += 1;
            let waited = stream.first - completion.sent;
            let is_at_once = stream.first == stream.last && waited >= BURST_GAP;
            measured.at_once += u64::from(is_at_once);
        }
        let is_good = self.bounds.is_none_or(|bounds| stream.meets(&bounds, completion.intended));
        measured.good += u64::from(is_good);
    }

    /// An operation has ended: its number may be given to another. Returns what its messages count
    /// as where none had a number.
    pub(super) fn on_end(&mut self, completion: &Completion) -> u64 {
        let Some(stream) = self.streams.get_mut(completion.stream as usize) else {
            return 0;
        };
        let ended = std::mem::take(stream);
        let is_counted = !ended.has_number && self.window.contains(completion.completed);
        let units = if is_counted { u64::from(ended.messages) } else { 0 };
        self.measured.units += units;
        units
    }

    /// Hands what was recorded over; `None` where nothing was a stream.
    pub(super) fn finish(self) -> Option<MessagesMeasured> {
        let measured = &self.measured;
        let has_any = measured.streams > 0 || measured.count > 0 || measured.sent > 0;
        has_any.then_some(self.measured)
    }
}

/// Targets that are remembered as streams.
const TARGETS_KNOWN_MAX: usize = 10_000;

impl StreamState {
    #[inline]
    fn begin_group(&mut self, message: &StreamMessage, is_late: bool) {
        (self.at_once, self.is_cut, self.is_late) = (1, message.is_cut, is_late);
    }

    /// How long the message took that answers the one of its number.
    fn answer_time(&mut self, message: &StreamMessage, timed: &TimedMessages) -> Option<Nanos> {
        self.awaited = timed.count();
        let due = timed.due(message.intended, self.messages);
        self.is_early |= message.at < due;
        (self.messages < timed.count() && message.at >= due).then(|| message.at - due)
    }

    /// Whether it may have one message for each that was sent.
    fn is_paired(&self) -> bool {
        !self.is_early && (self.awaited == 0 || self.awaited == self.messages)
    }

    /// The mean time from message to message.
    fn per_message(&self) -> Option<Nanos> {
        let gaps = u64::from(self.messages).checked_sub(1).filter(|gaps| *gaps > 0)?;
        Some(Nanos((self.last - self.first).0 / gaps))
    }

    /// The mean time from token to token, where the stream says how many it has. What came with the
    /// first message was not waited for.
    fn per_token(&self) -> Option<Nanos> {
        let waited = self.tokens.checked_sub(self.first_tokens).filter(|tokens| *tokens > 0)?;
        (self.messages > 1).then(|| Nanos((self.last - self.first).0 / u64::from(waited)))
    }

    /// Whether it meets all bounds.
    fn meets(&self, bounds: &StreamBounds, intended: Nanos) -> bool {
        let is_below = |bound: Option<Nanos>, time: Nanos| bound.is_none_or(|bound| time < bound);
        let gaps = u64::from(self.messages.saturating_sub(1));
        let mut pairs = bounds.gaps.iter().zip(self.over);
        is_below(bounds.first_message, self.first - intended)
            && is_below(bounds.stream, self.last - intended)
            && self.per_message().is_none_or(|time| is_below(bounds.per_message, time))
            && (self.per_token().or(self.per_message()))
                .is_none_or(|time| is_below(bounds.per_token, time))
            && pairs
                .all(|(bound, over)| bound.is_none_or(|bound| bound.is_met(gaps, u64::from(over))))
    }
}

#[cfg(test)]
mod tests;
