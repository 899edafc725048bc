//! The messages of one response that is streamed.

use super::batch::{END, StreamKey, put_message};
use super::context::Context;
use super::log::SentMessage;
use knee_load::time::Nanos;

/// A response that is a stream of messages, under way.
#[derive(Debug)]
pub(super) struct LiveStream {
    key: StreamKey,
    /// Its number among the streams of the server.
    number: u32,
    arrival: Nanos,
    /// Messages of it, and those that are sent of a stream that is cut.
    messages: u32,
    until: u32,
    sent: u32,
    /// Messages that were put out and not logged: when each was due.
    unlogged: Vec<Nanos>,
    /// All messages are put out.
    pub(super) is_whole: bool,
}

impl LiveStream {
    /// The stream of a request that arrived at `arrival`; `is_cut`: it ends after half of its
    /// messages. Returns when to ask for messages, unless it waits.
    pub(super) fn begin(
        key: StreamKey,
        arrival: Nanos,
        is_cut: bool,
        context: &mut Context,
    ) -> Option<(LiveStream, Option<Nanos>)> {
        let batch = context.batch.as_mut()?;
        let messages = batch.messages();
        let until = if is_cut { (messages / 2).max(1) } else { messages };
        let number = context.tally.streams as u32;
        context.tally.streams += 1;
        let next = batch.arrive(key, until, arrival);
        let unlogged = Vec::new();
        let stream = LiveStream {
            key,
            number,
            arrival,
            messages,
            until,
            sent: 0,
            unlogged,
            is_whole: false,
        };
        Some((stream, next))
    }

    /// Puts out the messages that are due, each by `put`; with the last one what ends a stream.
    /// Returns when to ask again.
    pub(super) fn take(
        &mut self,
        context: &mut Context,
        mut put: impl FnMut(&[u8]),
    ) -> Option<Nanos> {
        let now = context.read_clock();
        let before = self.unlogged.len();
        let next = context.batch.as_mut()?.take(self.key, now, &mut self.unlogged);
        let mut bytes = Vec::new();
        for _ in before..self.unlogged.len() {
            self.sent += 1;
            bytes.clear();
            put_message(self.sent, self.messages, &mut bytes);
            put(&bytes);
        }
        self.is_whole = self.sent >= self.until;
        if self.is_whole && self.until == self.messages {
            put(END);
        }
        next
    }

    /// All that was put out is on its way to the kernel: adds it, to be logged.
    pub(super) fn put_out(&mut self, messages: &mut Vec<SentMessage>) {
        let (stream, arrival, written) = (self.number, self.arrival, Nanos::ZERO);
        let first = self.sent - self.unlogged.len() as u32;
        let numbered = (first + 1..).zip(self.unlogged.drain(..));
        messages.extend(numbered.map(|(message, due)| SentMessage {
            stream,
            message,
            arrival,
            due,
            written,
        }));
    }
}
