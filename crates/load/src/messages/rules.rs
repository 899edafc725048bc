//! What the messages of a response are, by request.

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
    /// Chunks of the transfer coding, or DATA frames.
    Chunks,
    /// Messages of gRPC, each after its length.
    Grpc,
    /// A body is no messages.
    None,
}

impl MessageFormat {
    /// All formats that can be asked for, with their names.
    pub const NAMES: [(&'static str, MessageFormat); 5] = [
        ("sse", MessageFormat::Sse),
        ("ndjson", MessageFormat::Ndjson),
        ("lines", MessageFormat::Lines),
        ("chunks", MessageFormat::Chunks),
        ("none", MessageFormat::None),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let mut all = MessageFormat::NAMES.iter();
        all.find(|(_, format)| *format == self).map_or("", |(name, _)| name)
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
    /// The message that ends a stream; empty: none does. `None`: `[DONE]` of server-sent events.
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

    /// Whether a stream without its end message is incomplete: where the format or the message was
    /// asked for. A response that only says `text/event-stream` may be of any server.
    pub fn needs_end(&self) -> bool {
        self.end.is_some() || self.format.is_some()
    }

    /// Whether responses are split whatever they say of themselves.
    pub fn always_split(&self) -> bool {
        !matches!(self.format, None | Some(MessageFormat::None))
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
