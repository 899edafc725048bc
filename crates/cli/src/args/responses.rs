//! Responses: what is expected of them, and streams of messages.

use super::first_given;
use super::values::{Choices, one_of, parse_positive, word_of};
use crate::failure::Failure;
use crate::resolved_options::{Typed, displayed, typed};
use clap::Args;
use knee_load::messages::{CountMode, MessageFormat, MessageRules, StreamApi, StreamBounds};
use knee_load::quantity::{Rate, parse_rate};
use knee_load::spec::{ParseError, Protocol, Target};
use knee_load::time::Nanos;
use knee_scenario::{Expected, parse_status};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// As many redirections as curl follows.
const REDIRECTS: u32 = 50;

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Target")]
pub struct ExpectArgs {
    /// Statuses that count as success, repeatable: 200, 2xx, 200-204 [default: below 400]
    #[arg(long, value_name = "STATUS", value_parser = parse_status, hide_short_help = true)]
    #[arg(conflicts_with = "targets")]
    #[serde(serialize_with = "typed")]
    expect_status: Vec<(u16, u16)>,

    /// A text that each response's body has to contain
    #[arg(long, value_name = "TEXT", hide_short_help = true, conflicts_with = "targets")]
    expect_body: Option<String>,

    /// Follow up to 50 redirections to the same server. Each of them is an operation
    #[arg(short = 'L', long, hide_short_help = true, conflicts_with = "targets")]
    location: bool,
}

impl ExpectArgs {
    /// The option, if any is given.
    pub fn given(&self) -> Option<&'static str> {
        first_given(&[
            (!self.expect_status.is_empty(), "--expect-status"),
            (self.expect_body.is_some(), "--expect-body"),
            (self.location, "--location"),
        ])
    }

    /// The same target with what is expected of its only request.
    pub fn apply(&self, mut target: Target) -> Result<Target, Failure> {
        let of_http =
            [(!self.expect_status.is_empty(), "--expect-status"), (self.location, "--location")];
        if let (Protocol::WebSocket(_), Some(option)) = (&target.protocol, first_given(&of_http)) {
            return Err(Failure::argument(option, "a message of WebSocket has no status"));
        }
        let expected = Expected {
            status: self.expect_status.clone(),
            body: self.expect_body.clone(),
            redirects: if self.location { REDIRECTS } else { 0 },
        };
        if !expected.is_nothing()
            && let Some(request) = target.requests.first()
        {
            let (requests, plan) = expected.of(request.clone());
            target.requests = requests;
            target.sessions = Some(Arc::new(plan));
        }
        Ok(target)
    }

    /// Refuses them for an experiment that reads no response.
    pub fn refuse(&self, why: &str) -> Result<(), Failure> {
        match self.given() {
            Some(option) => Err(Failure::argument(option, why)),
            None => Ok(()),
        }
    }
}

/// A range of statuses: `200`, `200-204`.
impl Typed for (u16, u16) {
    fn typed(&self) -> Value {
        let (low, high) = self;
        if low == high { low.to_string().into() } else { format!("{low}-{high}").into() }
    }
}

const FORMATS: Choices<MessageFormat> = &MessageFormat::NAMES;

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Streams")]
pub struct MessageArgs {
    /// How responses are split into messages [default: sse for text/event-stream]
    ///
    /// sse: server-sent events. ndjson: lines of JSON. array: elements of a JSON array. lines: lines
    /// of text, without empty ones. chunks: chunks of the transfer coding, or DATA frames of HTTP/2. none: no messages. A number
    /// is of gRPC: how many messages each call sends, of a method that takes a stream. They are
    /// those of --body, from the first one again after the last.
    #[arg(long, value_name = "FORMAT|N", value_parser = parse_messages, hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    messages: Option<MessagesAsked>,

    /// Messages per second within each call of gRPC [default: all leave together]
    ///
    /// The first leaves with its call, each further one at a time of its own. An answer is counted
    /// from the intended time of the message with its number in the stream.
    #[arg(long, value_name = "RATE", value_parser = parse_rate, hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    message_rate: Option<Rate>,

    /// JSON Pointer of the number that a message counts as, such as /usage/completion_tokens
    ///
    /// The numbers of a stream are added, and a message without one counts for nothing. A stream
    /// without any number has its messages counted, each as one. Where each number is the
    /// count of the stream so far, write last:POINTER.
    #[arg(long, value_name = "POINTER", value_parser = parse_count, hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    message_count: Option<MessageCount>,

    /// API of a language model whose streams are read [default: auto, by the first messages]
    ///
    /// It says which messages have output (text, reasoning, a call of a tool), are errors, end the
    /// stream or have the number of tokens. Times are of messages with output, others are counted
    /// apart. A stream with an error ends as stream_error. none: each message is output.
    #[arg(long, value_name = "API", value_parser = one_of(APIS), hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    stream_api: Option<StreamApi>,

    /// End message of a stream: its text, or /POINTER=VALUE of JSON such as /done=true; '' for none
    ///
    /// It is not counted. By default it is that of the API, and for sse the text DONE in brackets.
    /// With this option or with --messages sse, a stream without it is incomplete.
    #[arg(long, value_name = "TEXT", value_parser = MessageRules::parse_end, hide_short_help = true)]
    end_message: Option<String>,

    /// Longest time without a message
    #[arg(long, value_name = "TIME", value_parser = parse_positive, hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    message_timeout: Option<Nanos>,

    /// What a stream has to meet to count in goodput: 'first_message<500ms, gap_p95<50ms'
    ///
    /// Of each stream by itself: first_message, from the intended time; gap_p50 or another
    /// percentile, and gap_max; per_message; per_token, which is per_message where a stream does not
    /// say how many it has; stream, up to the last message. A stream that is not whole or has an
    /// error is never good.
    #[arg(long, value_name = "BOUNDS", value_parser = StreamBounds::parse, hide_short_help = true)]
    #[serde(serialize_with = "displayed")]
    slo: Option<StreamBounds>,
}

/// What is asked of messages.
#[derive(Clone, Copy, Debug, PartialEq)]
enum MessagesAsked {
    /// How a response is split into messages.
    Format(MessageFormat),
    /// How many messages a request has.
    Number(u32),
}

fn parse_messages(text: &str) -> Result<MessagesAsked, ParseError> {
    if let Some((_, format)) = FORMATS.iter().find(|(name, _)| *name == text) {
        return Ok(MessagesAsked::Format(*format));
    }
    let number = text.parse().ok().filter(|number| *number > 0);
    number.map(MessagesAsked::Number).ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
        let wanted = format!("{}, or a number from 1 to {}", names.join(", "), u32::MAX);
        ParseError(format!("expected {wanted}"))
    })
}

/// The messages that each call of gRPC sends.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallMessages {
    /// Their number; `None`: those of the body, each once.
    pub number: Option<u32>,
    /// How many leave per second; `None`: all at once.
    pub rate: Option<Rate>,
}

/// The place of the number that a message counts as.
#[derive(Clone, Debug)]
struct MessageCount {
    mode: CountMode,
    pointer: String,
}

const APIS: Choices<StreamApi> = &StreamApi::NAMES;

fn parse_count(text: &str) -> Result<MessageCount, ParseError> {
    let (mode, pointer) = MessageRules::parse_count(text)?;
    Ok(MessageCount { mode, pointer })
}

impl MessageArgs {
    /// The option that is up to each request, if any is given.
    pub fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.format().is_some(), "--messages"),
            (self.message_count.is_some(), "--message-count"),
            (self.stream_api.is_some(), "--stream-api"),
            (self.end_message.is_some(), "--end-message"),
            (self.message_timeout.is_some(), "--message-timeout"),
        ])
    }

    /// An option on the messages that a call of gRPC sends, if any is given.
    pub fn given_of_calls(&self) -> Option<&'static str> {
        let calls = self.calls();
        first_given(&[
            (calls.number.is_some(), "--messages"),
            (calls.rate.is_some(), "--message-rate"),
        ])
    }

    /// The messages that a call of gRPC sends.
    pub fn calls(&self) -> CallMessages {
        let number = match self.messages {
            Some(MessagesAsked::Number(number)) => Some(number),
            _ => None,
        };
        CallMessages { number, rate: self.message_rate }
    }

    fn format(&self) -> Option<MessageFormat> {
        match self.messages {
            Some(MessagesAsked::Format(format)) => Some(format),
            _ => None,
        }
    }

    /// The same target with rules for the messages of its responses.
    pub fn apply(&self, mut target: Target) -> Target {
        target.stream_bounds = self.slo;
        if self.given().is_none() {
            return target;
        }
        let count = self.message_count.as_ref();
        let rules = MessageRules {
            format: self.format(),
            count: count.map(|count| count.pointer.clone()),
            count_mode: count.map_or(CountMode::Each, |count| count.mode),
            api: self.stream_api.unwrap_or_default(),
            end: self.end_message.clone(),
            timeout: self.message_timeout,
        };
        for request in &mut target.requests {
            request.messages = Some(Box::new(rules.clone()));
        }
        target
    }

    /// The same target, a scenario's, whose steps have their own rules.
    pub fn apply_bounds(&self, target: Target) -> Target {
        Target { stream_bounds: self.slo, ..target }
    }
}

impl Typed for MessagesAsked {
    fn typed(&self) -> Value {
        match self {
            MessagesAsked::Format(format) => word_of(FORMATS, *format).into(),
            MessagesAsked::Number(number) => number.to_string().into(),
        }
    }
}

impl Typed for StreamApi {
    fn typed(&self) -> Value {
        word_of(APIS, *self).into()
    }
}

impl Typed for MessageCount {
    fn typed(&self) -> Value {
        let rules = MessageRules {
            count: Some(self.pointer.clone()),
            count_mode: self.mode,
            ..MessageRules::default()
        };
        rules.written_count().into()
    }
}
