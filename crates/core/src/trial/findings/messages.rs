//! Findings about streams of messages.

use super::TrialGroup;
use crate::finding::{Finding, Severity, codes};
use crate::trial::messages::MessagesReport;
use crate::trial::report::TrialReport;
use crate::words::{exact, percent, time};
use knee_load::measure::Outcome;

/// Share of the streams with a stall from which on it is a warning.
const STALLED_WARNING_PERCENT: f64 = 1.0;

/// Share of the answers' p99 from which on the lateness of messages is a warning.
const LATE_SHARE: f64 = 0.2;

codes! {
    BUFFERED_STREAM = "buffered_stream":
        cause "Messages came in bursts that an application does not send. Either bursts end in the \
               middle of a message, where a buffer was full. Or all messages of a stream came at \
               once, after a wait. A proxy that buffers responses does this, as nginx does with \
               proxy_buffering on. So does an application that collects its whole response.",
        remedy "Switch buffering off before the application (nginx: proxy_buffering off), or load \
                the application itself. In a response, the header X-Accel-Buffering: no does the \
                same.";

    STREAMS_STALLED = "streams_stalled":
        cause "Streams stalled between two messages, for at least ten median gaps and 100 ms. \
               A batch that takes new requests in, memory that is moved, or a lost segment on the \
               path does this.",
        remedy "Look at what the target did at that time. Offer less, and see whether stalls \
                remain: knee sweep --axis rate --bound gap_p99=TIME.";

    STREAMS_INCOMPLETE = "streams_incomplete":
        cause "Responses were no whole streams of the kind that was expected. The report has the \
               first reason.",
        remedy "Look at a response: curl -N URL. Where streams end without an end message, say so \
                with --end-message ''. Where it is another, give it with --end-message TEXT. Where \
                responses are no streams, give --messages none. Where the streams of their API are \
                something else, give --stream-api none.";

    STREAM_ERRORS = "stream_errors":
        cause "Streams began with a status of success and had an error within. Servers of language \
               models report this way what goes wrong after the first byte. The report has the text \
               of the first.",
        remedy "Look at the target's log, or at a response: curl -N URL. Where such messages are \
                no errors, give --stream-api none.";

    MESSAGES_LATE = "messages_late":
        cause "Messages of open streams left later than they were intended. Their answers are \
               counted from the intended time, so that the delay is in them. The generator was \
               busy or did not run, or calls began late.",
        remedy "Give the generator more processors, or send fewer messages per second. Keep its \
                host free of other work.";

    MESSAGE_COUNT_MISSING = "message_count_missing":
        cause "No message has a number at the place that --message-count names, so that each \
               counts as one.",
        remedy "Look at a message: curl -N URL; ask for usage with stream_options. \
                OpenAI-compatible servers send usage only where the request has \
                \"stream_options\": {\"include_usage\": true}.";
}

pub(super) fn buffered_stream(trials: &TrialGroup) -> Option<Finding> {
    let buffered =
        |t: &TrialReport| t.messages().filter(|messages| messages.bursts.are_buffered()).cloned();
    let (place, messages) = trials.first(buffered)?;
    let bursts = messages.bursts;
    let text = if bursts.at_once > 0 && bursts.at_once * 2 >= bursts.long_streams {
        format!(
            "{place}all messages of a stream came at once in {} of {} streams: something collects \
             them",
            exact(bursts.at_once as f64),
            exact(bursts.long_streams as f64)
        )
    } else {
        format!(
            "{place}messages came in bursts that the application did not send: {} of {} bursts \
             ended in the middle of a message",
            exact(bursts.cut as f64),
            exact(bursts.count as f64)
        )
    };
    Some(BUFFERED_STREAM.warning(
        text,
        [
            ("bursts", bursts.count as f64),
            ("cut_bursts", bursts.cut as f64),
            ("streams_at_once", bursts.at_once as f64),
            ("shared_arrival_percent", messages.shared_arrival_percent),
        ],
        BUFFERED_STREAM.step(),
    ))
}

pub(super) fn streams_stalled(trials: &TrialGroup) -> Option<Finding> {
    let stalled = |t: &TrialReport| {
        let messages = t.messages().filter(|messages| !messages.bursts.are_buffered())?;
        Some((messages.stalls, messages.stalls.longest_ns?))
    };
    let (place, (stalls, longest)) = trials.worst(stalled, |(_, longest)| *longest as f64)?;
    let is_grave = stalls.streams_percent >= STALLED_WARNING_PERCENT;
    Some(STREAMS_STALLED.finding(
        if is_grave { Severity::Warning } else { Severity::Info },
        format!(
            "{place}{} of the streams stalled, the longest for {}",
            percent(stalls.streams_percent),
            time(longest as f64)
        ),
        [
            ("stalls", stalls.count as f64),
            ("longest_ns", longest as f64),
            ("streams_percent", stalls.streams_percent),
        ],
        "look at what the target did at that time, or offer less",
    ))
}

pub(super) fn streams_incomplete(trials: &TrialGroup) -> Option<Finding> {
    let incomplete = |t: &TrialReport| {
        let count = t.outcomes.count(Outcome::Incomplete);
        (count > 0).then(|| (count, t.messages().and_then(|m| m.incomplete_because.clone())))
    };
    let (place, (count, because)) = trials.worst(incomplete, |(count, _)| *count as f64)?;
    let because = because.unwrap_or_else(|| "the first is not known".to_owned());
    let next = if because.contains("without the message") {
        "give the end message of this server with --end-message TEXT, or '' for none"
    } else {
        "look at a response: curl -N URL"
    };
    Some(STREAMS_INCOMPLETE.warning(
        format!("{place}{} responses were no whole streams: {because}", exact(count as f64)),
        [("incomplete", count as f64)],
        next,
    ))
}

pub(super) fn stream_errors(trials: &TrialGroup) -> Option<Finding> {
    let errors = |t: &TrialReport| {
        let count = t.outcomes.count(Outcome::StreamError);
        (count > 0).then(|| (count, t.messages().and_then(|m| m.first_error.clone())))
    };
    let (place, (count, first)) = trials.worst(errors, |(count, _)| *count as f64)?;
    let first = first.unwrap_or_else(|| "the first is not known".to_owned());
    Some(STREAM_ERRORS.warning(
        format!("{place}{} streams had an error within: {first}", exact(count as f64)),
        [("errors", count as f64)],
        STREAM_ERRORS.step(),
    ))
}

pub(super) fn messages_late(trials: &TrialGroup) -> Option<Finding> {
    let late = |t: &TrialReport| {
        let messages = t.messages()?;
        let late = messages.sent.as_ref()?.late_ns.p99?;
        let answer = messages.answer_ns.as_ref()?.p99?;
        (late as f64 > LATE_SHARE * answer as f64).then_some((late, answer))
    };
    let (place, (late, answer)) = trials.worst(late, |(late, _)| *late as f64)?;
    Some(MESSAGES_LATE.warning(
        format!(
            "{place}messages left late, p99 {}, which is in their answers, p99 {}",
            time(late as f64),
            time(answer as f64)
        ),
        [("late_p99_ns", late as f64), ("answer_p99_ns", answer as f64)],
        MESSAGES_LATE.step(),
    ))
}

pub(super) fn message_count_missing(trials: &TrialGroup) -> Option<Finding> {
    let is_missing = |messages: &&MessagesReport| messages.numbers == Some(0) && messages.count > 0;
    let missing = |t: &TrialReport| t.messages().filter(is_missing).map(|m| m.count);
    let (place, count) = trials.first(missing)?;
    Some(MESSAGE_COUNT_MISSING.warning(
        format!(
            "{place}none of {} messages has a number at the place of --message-count: each counts \
             as one",
            exact(count as f64)
        ),
        [("messages", count as f64)],
        MESSAGE_COUNT_MISSING.step(),
    ))
}
