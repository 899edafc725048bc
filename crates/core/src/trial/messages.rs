//! What a trial says of its streams of messages.

use super::times::times_report;
use crate::trial::figure::TimesReport;
use knee_load::measure::{Histogram, MessagesMeasured, Trial};
use knee_load::messages::MessageRules;
use knee_load::spec::Protocol;
use knee_load::stats::correlation::Correlation;
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The share of good streams that `--slo` asks for, in percent.
pub const GOOD_STREAMS_PERCENT: f64 = 99.0;

/// The messages of a trial. Counts, rates and gaps are of the messages that came within the window,
/// the other times of the streams intended in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MessagesReport {
    /// Messages with output.
    pub count: u64,
    /// Messages without output, such as signs of life and counts of tokens; absent without any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub others: u64,
    /// What all of them count as.
    pub units: u64,
    /// Messages per second.
    pub per_s: f64,
    /// Counted units per second.
    pub units_per_s: f64,
    /// Streams.
    pub streams: u64,
    /// Those of them of a known API, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub apis: BTreeMap<String, u64>,
    /// Whether that API was asked for; otherwise it was found by the first messages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub api_is_asked: bool,
    /// Whether no stream is of a known API, where that was to be found: each message counts as
    /// output.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub api_is_unknown: bool,
    /// Whole streams.
    pub whole: u64,
    /// Whole streams that meet all bounds; `None` without bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good: Option<u64>,
    /// Whole streams that meet all bounds, in percent of the streams; `None` without bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good_percent: Option<f64>,
    /// Time from the intended time to the first message; where none came, the time waited.
    pub first_message_ns: TimesReport,
    /// Gaps between messages of one stream.
    pub gap_ns: TimesReport,
    /// Mean time from message to message, once per stream.
    pub per_message_ns: TimesReport,
    /// Mean time from token to token, once per stream that says how many tokens it has; absent
    /// where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_token_ns: Option<TimesReport>,
    /// Time from the intended time to the last message.
    pub stream_ns: TimesReport,
    /// Time from the intended time of a message to the one that answers it; `None` where streams
    /// have not one answer for each message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_ns: Option<TimesReport>,
    /// Messages that left at times of their own; `None` where requests are sent at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentReport>,
    /// Gaps of at least ten medians and 100 ms.
    pub stalls: StallsReport,
    /// Share of the messages that came with another of their stream. Their gaps are only known to
    /// be small.
    pub shared_arrival_percent: f64,
    /// Messages that come in bursts.
    #[serde(default, skip_serializing_if = "BurstsReport::is_none")]
    pub bursts: BurstsReport,
    /// Messages with a number at the place of the count; absent where none is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<u64>,
    /// Why a response was no whole stream, for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete_because: Option<String>,
    /// The text of the first error within a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Messages of requests that left at times of their own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SentReport {
    /// Their number within the window.
    pub count: u64,
    /// Messages per second.
    pub per_s: f64,
    /// How late they left.
    pub late_ns: TimesReport,
}

/// Gaps that are far longer than others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallsReport {
    /// Their number.
    pub count: u64,
    /// The longest; `None` without any.
    pub longest_ns: Option<u64>,
    /// Share of the streams with one.
    pub streams_percent: f64,
}

/// Groups of messages that came at once after a pause of 50 ms or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BurstsReport {
    /// Groups of at least four messages.
    pub count: u64,
    /// Those of them that begin with the rest of a message that had begun before the pause.
    pub cut: u64,
    /// Whole streams of at least four messages.
    pub long_streams: u64,
    /// Those of them whose messages came all at once, after a wait of 50 ms or more.
    pub at_once: u64,
}

impl BurstsReport {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.count == 0 && self.at_once == 0
    }
}

/// A kind of times of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimesOf {
    /// Response times.
    #[default]
    Response,
    /// Times to the first message.
    FirstMessage,
    /// Gaps between messages.
    Gap,
    /// Times per message.
    PerMessage,
    /// Times per token.
    PerToken,
    /// Stream times.
    Stream,
    /// Times from message to answer.
    Answer,
}

impl TimesOf {
    /// All kinds but response times: key and title.
    pub const MESSAGES: [(TimesOf, &'static str, &'static str); 6] = [
        (TimesOf::FirstMessage, "first_message", "time to first message"),
        (TimesOf::Gap, "gap", "gap between messages"),
        (TimesOf::PerMessage, "per_message", "time per message"),
        (TimesOf::PerToken, "per_token", "time per token"),
        (TimesOf::Stream, "stream", "stream time"),
        (TimesOf::Answer, "answer", "time to the answer of a message"),
    ];

    /// Key in names of figures.
    pub fn key(self) -> &'static str {
        TimesOf::MESSAGES.iter().find(|(of, ..)| *of == self).map_or("", |(_, key, _)| key)
    }

    /// These times of a trial; `None` where there are none.
    pub fn of<'a>(
        self,
        response: &'a TimesReport,
        messages: Option<&'a MessagesReport>,
    ) -> Option<&'a TimesReport> {
        Some(match self {
            TimesOf::Response => response,
            TimesOf::FirstMessage => &messages?.first_message_ns,
            TimesOf::Gap => &messages?.gap_ns,
            TimesOf::PerMessage => &messages?.per_message_ns,
            TimesOf::PerToken => messages?.per_token_ns.as_ref()?,
            TimesOf::Stream => &messages?.stream_ns,
            TimesOf::Answer => messages?.answer_ns.as_ref()?,
        })
    }
}

/// The least stall.
const STALL_MIN: Nanos = Nanos::from_millis(100);

/// A stall is at least this multiple of the median gap.
const STALL_MEDIANS: u64 = 10;

/// The messages of a trial, as reported; `None` where no response was split into any.
pub(super) fn messages_report(
    trial: &Trial,
    correlation: Option<Correlation>,
) -> Option<MessagesReport> {
    let measured = trial.measurement.messages.as_ref()?;
    let window_s = trial.measurement.window.length().as_secs_f64();
    let per_s = |count: u64| if window_s > 0.0 { count as f64 / window_s } else { 0.0 };
    let percent = |n: u64, whole: u64| n as f64 * 100.0 / whole.max(1) as f64;
    let rules = || trial.spec.target.requests.iter().filter_map(|r| r.messages.as_deref());
    let mut counts = rules().filter_map(|rules| rules.count.as_ref());
    let per_token = &measured.per_token;
    let target = &trial.spec.target;
    let mut of_requests = target.requests.iter().map(|request| request.messages.as_deref());
    let seeks_api =
        matches!(target.protocol, Protocol::Http(_)) && of_requests.any(MessageRules::seek_api);
    Some(MessagesReport {
        count: measured.count,
        others: measured.others,
        units: measured.units,
        per_s: per_s(measured.count),
        units_per_s: per_s(measured.units),
        streams: measured.streams,
        apis: measured.apis.iter().map(|(api, &n)| (api.name().to_owned(), n)).collect(),
        api_is_asked: rules().any(|rules| rules.api.is_known()),
        api_is_unknown: measured.count > 0 && measured.apis.is_empty() && seeks_api,
        whole: measured.whole,
        good: trial.spec.target.stream_bounds.map(|_| measured.good),
        good_percent: (trial.spec.target.stream_bounds)
            .map(|_| percent(measured.good, measured.streams)),
        first_message_ns: times_report(&measured.first_message, correlation),
        gap_ns: times_report(&measured.gap, None),
        per_message_ns: times_report(&measured.per_message, correlation),
        per_token_ns: (per_token.count() > 0).then(|| times_report(per_token, correlation)),
        stream_ns: times_report(&measured.stream, correlation),
        answer_ns: (measured.answer.count() > 0 && measured.unpaired == 0)
            .then(|| times_report(&measured.answer, None)),
        sent: (measured.sent > 0).then(|| SentReport {
            count: measured.sent,
            per_s: per_s(measured.sent),
            late_ns: times_report(&measured.sent_late, None),
        }),
        stalls: stalls(measured),
        shared_arrival_percent: percent(measured.shared, measured.count),
        bursts: BurstsReport {
            count: measured.bursts,
            cut: measured.cut_bursts,
            long_streams: measured.long,
            at_once: measured.at_once,
        },
        numbers: counts.next().map(|_| measured.numbers),
        incomplete_because: measured.fault.clone(),
        first_error: measured.error.clone(),
    })
}

fn stalls(measured: &MessagesMeasured) -> StallsReport {
    let median = measured.gap.quantile(0.5);
    let least = STALL_MIN.max(Nanos(STALL_MEDIANS * median.0));
    let count = |histogram: &Histogram| {
        histogram.iter_recorded().filter(|(gap, _)| *gap >= least).map(|(_, n)| n).sum::<u64>()
    };
    let stalls = count(&measured.gap);
    let streams = count(&measured.longest_gap);
    StallsReport {
        count: stalls,
        longest_ns: (stalls > 0).then(|| measured.gap.max().0),
        streams_percent: streams as f64 * 100.0 / measured.streams.max(1) as f64,
    }
}

impl BurstsReport {
    /// Share of the bursts from which on they count as another's work.
    const SHARE: f64 = 0.5;

    /// The least number of bursts or streams that show it.
    const LEAST: u64 = 5;

    /// Whether something between the application and this host collects messages. Then bursts are
    /// cut where no application ends its writes, or streams come all at once after a wait.
    pub fn are_buffered(&self) -> bool {
        let is_most =
            |n: u64, whole: u64| n >= Self::LEAST && n as f64 >= Self::SHARE * whole as f64;
        is_most(self.cut, self.count) || is_most(self.at_once, self.long_streams)
    }
}
