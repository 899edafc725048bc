//! Messages within response bodies: how a body is split, which message ends it, and what a stream
//! of them has to meet.
//!
//! Everything here is pure: bytes come in as they arrive, messages go out, in bounded memory.
//!
//! `splitter` splits a body and keeps nothing of it. `reader` reads the bodies of a worker's
//! operations, by the `rules` of each request. `bounds` says which streams are good. The engine
//! hands bodies over beside the readers of sessions; `measure::messages` records when messages came
//! and knows no protocol.
//!
//! Limits: `TEXT_BYTES_MAX` of what is kept to judge a message, with long strings and rows of numbers
//! shortened; `EVENT_BYTES_MAX`, `ERROR_BYTES_MAX`. Beyond them the stream is incomplete.
//!
//! # Words
//!
//! - **Message**: came when its last byte was received. A stream is **whole** if it ended with
//!   its **end message** (`[DONE]`, a text, or a value in JSON), or between two messages where
//!   there is none. Otherwise its outcome is *incomplete*.
//! - **Stream API**: says of each message of a language model's stream whether it has **output**
//!   (a text, reasoning or a call of a tool that is not empty), is an error, ends the stream or
//!   has the number of tokens. A stream with an error in it has the outcome *stream_error*,
//!   whatever else came. Without an API each message is output.
//! - **Time to first message**: first message with output complete − intended time. With a known
//!   API it is the time to first token. All times and gaps are of messages with output; others
//!   are counted apart.
//! - **Gap**: the time between successive messages of one stream. **Time per message**: (last −
//!   first) / (messages − 1), once per stream. **Time per token**: (last − first) / (tokens −
//!   tokens of the first message), once per stream that says how many it has. **Stream time**:
//!   last message − intended time.
//! - **Unit**: what a message counts as, such as tokens.
//! - **Long gap**: at least ten median gaps and 100 ms. Reports and options name it *stall*.
//! - **Shared arrival**: messages of one stream with the same receive timestamp, as of one
//!   segment or TLS record. Their gaps are only known to be small.
//! - **Good stream**: a whole stream that meets every bound of `--slo`.

mod bounds;
mod kept_text;
mod reader;
mod rules;
mod splitter;
mod stream_api;
#[cfg(test)]
mod tests;
mod timed;

pub use bounds::{GAP_BOUNDS_MAX, GapBound, StreamBounds};
pub use reader::{MessageReaders, ReadMessage, StreamEnding, StreamFaults, is_event_stream};
pub use rules::{CountMode, MessageFormat, MessageRules};
pub use splitter::{GRPC_PREFIX, GrpcFraming, MessagePiece, Splitter, put_grpc_message};
pub use stream_api::StreamApi;
pub use timed::TimedMessages;
