//! WebSocket without sockets (RFC 6455): messages to frames, frames to messages, both handshakes.
//!
//! The client of a load and the reference server share this code.

mod client;
pub mod frame;
pub mod handshake;
mod messages;
mod violation;

pub use client::{WebSocket, WebSocketShared};
pub use frame::{MessageItem, MessageReader, ReaderSide};
pub use messages::{put_time, time_in};
pub use violation::WebSocketViolation;
