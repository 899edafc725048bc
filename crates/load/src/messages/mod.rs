//! Messages within response bodies: how a body is split, which message ends it, and what a stream
//! of them has to meet.
//!
//! Everything here is pure: bytes come in as they arrive, messages go out, in bounded memory.

mod bounds;
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
