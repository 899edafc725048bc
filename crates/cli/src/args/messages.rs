//! Responses that are streams of messages.

use super::choice::{Choices, one_of, word_of};
use super::first_given;
use super::values::parse_positive;
use crate::resolved_options::{Typed, typed};
use clap::Args;
use knee_load::messages::{CountMode, MessageFormat, MessageRules, StreamBounds};
use knee_load::spec::{ParseError, Target};
use knee_load::time::Nanos;
use serde::Serialize;
use serde_json::Value;

const FORMATS: Choices<MessageFormat> = &MessageFormat::NAMES;

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Target")]
pub struct MessageArgs {
    /// How responses are split into messages [default: sse for text/event-stream]
    ///
    /// sse: server-sent events. ndjson: lines of JSON. lines: lines of text, without empty ones.
    /// chunks: chunks of the transfer coding, or DATA frames of HTTP/2. none: no messages.
    #[arg(long, value_name = "FORMAT", value_parser = one_of(FORMATS), hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    messages: Option<MessageFormat>,

    /// JSON Pointer of the number that a message counts as, such as /usage/completion_tokens
    ///
    /// The numbers of a stream are added, and a message without one counts for nothing. A stream
    /// without any number has its messages counted, each as one. Where each number is the
    /// count of the stream so far, write last:POINTER.
    #[arg(long, value_name = "POINTER", value_parser = parse_count, hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    message_count: Option<MessageCount>,

    /// End message of a stream, not counted; '' for none. Of sse by default that of OpenAI
    ///
    /// With this option or with --messages sse, a stream without it is incomplete.
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    end_message: Option<String>,

    /// Longest time without a message
    #[arg(long, value_name = "TIME", value_parser = parse_positive, hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    message_timeout: Option<Nanos>,

    /// What a stream has to meet to count in goodput: 'first_message<500ms, gap_p95<50ms'
    ///
    /// Of each stream by itself: first_message, from the intended time; gap_p50 or another
    /// percentile, and gap_max; per_message; stream, up to the last message. A stream that is not
    /// whole is never good.
    #[arg(long, value_name = "BOUNDS", value_parser = StreamBounds::parse, hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    slo: Option<StreamBounds>,
}

/// The place of the number that a message counts as.
#[derive(Clone, Debug)]
struct MessageCount {
    mode: CountMode,
    pointer: String,
}

fn parse_count(text: &str) -> Result<MessageCount, ParseError> {
    let (mode, pointer) = MessageRules::parse_count(text)?;
    Ok(MessageCount { mode, pointer })
}

impl MessageArgs {
    /// The option that is up to each request, if any is given.
    pub fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.messages.is_some(), "--messages"),
            (self.message_count.is_some(), "--message-count"),
            (self.end_message.is_some(), "--end-message"),
            (self.message_timeout.is_some(), "--message-timeout"),
        ])
    }

    /// The same target with rules for the messages of its responses.
    pub fn apply(&self, mut target: Target) -> Target {
        target.stream_bounds = self.slo;
        if self.given().is_none() {
            return target;
        }
        let count = self.message_count.as_ref();
        let rules = MessageRules {
            format: self.messages,
            count: count.map(|count| count.pointer.clone()),
            count_mode: count.map_or(CountMode::Each, |count| count.mode),
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

impl Typed for MessageFormat {
    fn typed(&self) -> Value {
        word_of(FORMATS, *self).into()
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

impl Typed for StreamBounds {
    fn typed(&self) -> Value {
        self.to_string().into()
    }
}
