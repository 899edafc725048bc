//! Messages that leave one after the other, each at a time of its own.

use super::{Http2, Io};
use crate::exchange::OpEvent;
use crate::exchange::http2::requests::Requests;
use knee_load::messages::TimedMessages;
use knee_load::time::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// The streams of a connection whose messages are not all sent.
#[derive(Debug, Default)]
pub(super) struct TimedStreams {
    streams: HashMap<u32, TimedStream>,
    /// When the next message of each is due, and the number of the stream. Streams that have been
    /// closed since are still in it.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
}

/// One of them.
#[derive(Debug)]
struct TimedStream {
    /// Number of the request, which has the messages.
    request: usize,
    /// The intended start of the operation.
    intended: Nanos,
    /// Messages that have become due.
    released: u32,
    /// The message to send, or its rest.
    current: u32,
    /// Bytes of it that are sent.
    sent: usize,
}

/// What a stream may send now.
pub(super) struct DueBytes<'a> {
    /// The rest of a message; empty where none is due.
    pub(super) bytes: &'a [u8],
    /// The stream ends behind it.
    pub(super) is_last: bool,
    /// It is of the first message.
    pub(super) is_first: bool,
}

impl TimedStreams {
    /// A stream sends the messages of a request.
    pub(super) fn begin(&mut self, id: u32, request: usize, intended: Nanos) {
        let stream = TimedStream { request, intended, released: 0, current: 0, sent: 0 };
        self.streams.insert(id, stream);
        self.due.push(Reverse((intended, id)));
    }

    /// A stream is closed.
    pub(super) fn end(&mut self, id: u32) {
        self.streams.remove(&id);
        if self.streams.is_empty() {
            self.due.clear();
        }
    }

    /// Whether any stream has messages of its own times.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// When the next message is due; [`Nanos::MAX`] for none.
    #[inline]
    pub(super) fn next_due(&self) -> Nanos {
        self.due.peek().map_or(Nanos::MAX, |Reverse((due, _))| *due)
    }

    /// Releases a message that is due by `now`. Returns its stream and its intended time.
    fn release(&mut self, now: Nanos, requests: &Requests) -> Option<(u32, Nanos)> {
        loop {
            let &Reverse((due, id)) = self.due.peek().filter(|Reverse((due, _))| *due <= now)?;
            self.due.pop();
            let stream = self.streams.get_mut(&id);
            let timed = stream.and_then(|stream| Some((requests.timed(stream.request)?, stream)));
            let Some((timed, stream)) = timed else {
                continue;
            };
            stream.released += 1;
            if stream.released < timed.count() {
                self.due.push(Reverse((timed.due(stream.intended, stream.released), id)));
            }
            return Some((id, due));
        }
    }

    /// What a stream may send; `None` where it has no messages of their own times.
    pub(super) fn ready<'a>(&self, id: u32, requests: &'a Requests) -> Option<DueBytes<'a>> {
        let stream = self.streams.get(&id)?;
        let timed = requests.timed(stream.request)?;
        let range = timed.range(stream.current);
        let is_due = stream.current < stream.released;
        let bytes = if is_due { &requests.body(stream.request)[range][stream.sent..] } else { &[] };
        Some(DueBytes {
            bytes,
            is_last: is_due && stream.current + 1 == timed.count(),
            is_first: stream.current == 0,
        })
    }

    /// `length` bytes of a stream are sent. Returns whether another message of it is due.
    pub(super) fn sent(&mut self, id: u32, length: usize, requests: &Requests) -> bool {
        let Some(stream) = self.streams.get_mut(&id) else {
            return false;
        };
        stream.sent += length;
        let whole = |timed: &TimedMessages| timed.range(stream.current).len();
        if requests.timed(stream.request).is_some_and(|timed| stream.sent >= whole(timed)) {
            (stream.current, stream.sent) = (stream.current + 1, 0);
        }
        stream.current < stream.released
    }
}

impl Http2 {
    /// Messages whose time has come join those that wait to be sent.
    pub(super) fn release_messages(&mut self, now: Nanos, io: &mut Io) {
        while let Some((id, intended)) = self.timed.release(now, &io.shared.requests) {
            io.events.push(OpEvent::MessageLeft { intended, at: now });
            self.queue(id);
        }
    }
}
