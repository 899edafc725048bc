//! What the messages of a response are, by request.

use super::StreamApi;
use crate::quantity::ParseError;
use crate::session::json::parse_pointer;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// How a body is split into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageFormat {
    /// Server-sent events (WHATWG HTML §9.2): a message is an event with data.
    Sse,
    /// Lines of JSON, each ended by a newline.
    Ndjson,
    /// Lines of any text; empty ones are none.
    Lines,
    /// Elements of a JSON array; a body that is one object is one message.
    Array,
    /// Chunks of the transfer coding, or DATA frames.
    Chunks,
    /// Messages of gRPC, each after its length.
    Grpc,
    /// A body is no messages.
    None,
}

impl MessageFormat {
    /// All formats that can be asked for, with their names.
    pub const NAMES: [(&'static str, MessageFormat); 6] = [
        ("sse", MessageFormat::Sse),
        ("ndjson", MessageFormat::Ndjson),
        ("array", MessageFormat::Array),
        ("lines", MessageFormat::Lines),
        ("chunks", MessageFormat::Chunks),
        ("none", MessageFormat::None),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let mut all = MessageFormat::NAMES.iter();
        all.find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    /// Whether its messages may be of the API of a language model.
    pub(crate) fn may_be_of_api(self) -> bool {
        matches!(self, MessageFormat::Sse | MessageFormat::Ndjson | MessageFormat::Array)
    }

    /// The format that a content type names, of a stream of an API.
    pub(crate) fn of_content_type(value: &[u8]) -> Option<MessageFormat> {
        let essence = value.split(|byte| *byte == b';').next().unwrap_or_default();
        let essence = essence.trim_ascii();
        let is = |name: &str| essence.eq_ignore_ascii_case(name.as_bytes());
        if is("text/event-stream") {
            return Some(MessageFormat::Sse);
        }
        let lines = ["application/x-ndjson", "application/ndjson", "application/jsonl"];
        lines.iter().any(|name| is(name)).then_some(MessageFormat::Ndjson)
    }
}

/// How the numbers at a pointer add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountMode {
    /// Each is the count of its own message.
    #[default]
    Each,
    /// Each is the count of its stream so far: the last one holds.
    Last,
}

/// Rules for the messages of the responses to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRules {
    /// How a body is split; `None`: as server-sent events where the content type says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<MessageFormat>,
    /// The JSON Pointer of the number that a message counts as; `None`: each counts as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<String>,
    /// How these numbers add up.
    #[serde(default)]
    pub count_mode: CountMode,
    /// The API whose streams are read.
    #[serde(default)]
    pub api: StreamApi,
    /// The message that ends a stream: its text, or a JSON Pointer with the value there, such as
    /// `/done=true`; empty: none does. `None`: that of the API, `[DONE]` of server-sent events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// The longest time without a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Nanos>,
}

impl MessageRules {
    /// The end message of a stream of server-sent events by default.
    pub const SSE_END: &'static str = "[DONE]";

    /// The prefix of a pointer to counts of the stream so far.
    const LAST: &'static str = "last:";

    /// The end message of a stream of this format; empty: none.
    pub fn end_of(&self, format: MessageFormat) -> &str {
        match (&self.end, format) {
            (Some(end), _) => end,
            (None, MessageFormat::Sse) => MessageRules::SSE_END,
            (None, _) => "",
        }
    }

    /// Whether a stream of no known API is incomplete without its end message: where the format or
    /// the message was asked for. A response that only says `text/event-stream` may be of any
    /// server.
    pub fn needs_end(&self) -> bool {
        self.end.is_some() || self.format.is_some()
    }

    /// Whether the API of streams by these rules, or by those by default, is found by their first
    /// messages.
    pub fn seek_api(rules: Option<&MessageRules>) -> bool {
        rules.is_none_or(|rules| {
            rules.api == StreamApi::Auto && rules.format.is_none_or(MessageFormat::may_be_of_api)
        })
    }

    /// Whether responses are split whatever they say of themselves.
    pub fn always_split(&self) -> bool {
        match self.format {
            Some(format) => format != MessageFormat::None,
            None => self.api.rules().is_some(),
        }
    }

    /// Reads an end message.
    ///
    /// # Errors
    /// A pointer with a value that is no JSON Pointer.
    pub fn parse_end(text: &str) -> Result<String, ParseError> {
        if let Some((pointer, _)) = MessageRules::end_value(text) {
            parse_pointer(pointer)?;
        }
        Ok(text.to_owned())
    }

    /// The pointer and the value of an end message that is written as these: `/done=true`.
    pub(crate) fn end_value(text: &str) -> Option<(&str, &str)> {
        text.split_once('=').filter(|_| text.starts_with('/'))
    }

    /// Reads the place of counts: `/usage/completion_tokens`, or `last:/usage/completion_tokens`.
    ///
    /// # Errors
    /// Not a JSON Pointer.
    pub fn parse_count(text: &str) -> Result<(CountMode, String), ParseError> {
        let (mode, pointer) = match text.strip_prefix(MessageRules::LAST) {
            Some(pointer) => (CountMode::Last, pointer),
            None => (CountMode::Each, text),
        };
        Ok((mode, parse_pointer(pointer)?))
    }

    /// The place of counts as it is written.
    pub fn written_count(&self) -> Option<String> {
        let pointer = self.count.as_ref()?;
        Some(match self.count_mode {
            CountMode::Each => pointer.clone(),
            CountMode::Last => format!("{}{pointer}", MessageRules::LAST),
        })
    }
}
