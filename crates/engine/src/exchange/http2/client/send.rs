//! Requests onto the connection, and messages of a request that leave one after the other, each at
//! a time of its own.

use super::super::call::CallResponseState;
use super::super::connection::{ReceiveWindow, SendWindow};
use super::super::frame::{self, FrameHead, HEAD_BYTES, flag, kind};
use super::super::streams::Stream;
use super::{Http2, Io};
use crate::exchange::http2::requests::Requests;
use crate::exchange::{FlightId, OpEvent, RequestRef};
use knee_load::messages::TimedMessages;
use knee_load::time::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Bodies are put into the outbox up to this many bytes; more once those are with the kernel.
const OUTBOX_BYTES_MAX: usize = 64 << 10;

/// The largest DATA frame, so that those who send take turns.
const DATA_BYTES_MAX: usize = 16 << 10;

impl Http2 {
    /// Opens a stream and asks.
    #[inline]
    pub(super) fn open_stream(
        &mut self,
        op: FlightId,
        request: RequestRef<'_>,
        now: Nanos,
        io: &mut Io,
    ) {
        let number = request.number;
        let filled = io.shared.requests.filled_body(request);
        let body_bytes = match &filled {
            Some(body) => body.len(),
            None => io.shared.requests.body(number).len(),
        };
        let has_body = body_bytes > 0;
        let stream = Stream {
            id: 0,
            op,
            request: number as u32,
            status: 0,
            call: CallResponseState::default(),
            interims: 0,
            is_head: match request.fills.made() {
                Some(made) => made.method == "HEAD",
                None => io.shared.requests.is_head(number),
            },
            is_bare: false,
            has_begun: false,
            is_sending: has_body,
            is_queued: false,
            sent: 0,
            left: None,
            send_window: SendWindow::new(self.core.peer.window),
            receive_window: ReceiveWindow::new(io.shared.window()),
        };
        let id = self.streams.open(stream);
        self.put_head(id, request, body_bytes, io);
        if let Some(body) = filled.filter(|_| has_body) {
            self.bodies.push((id, body));
        }
        if io.shared.requests.timed(number).is_some() {
            self.timed.begin(id, number, request.intended);
            self.release_messages(now, io);
            self.send_bodies(io);
        } else if has_body {
            self.queue(id);
            self.send_bodies(io);
        } else {
            io.events.push(OpEvent::Written(op));
        }
    }

    /// Puts the request's header section into the outbox.
    #[inline]
    fn put_head(&mut self, id: u32, request: RequestRef<'_>, body_bytes: usize, io: &mut Io) {
        let at = io.out.len();
        io.out.extend_from_slice(&[0; HEAD_BYTES]);
        let shared = &mut io.shared;
        if let Some(made) = request.fills.made() {
            self.blocks.put_made(made, io.out);
        } else if shared.requests.is_filled(request.number) {
            let fills = (request.fills, body_bytes);
            self.blocks.put_filled(request.number, fills, &shared.requests, io.out);
        } else {
            self.blocks.put(request.number, &shared.requests, io.out)
        }
        let length = io.out.len() - at - HEAD_BYTES;
        if length > self.core.peer.frame_bytes as usize {
            io.shared.block.clear();
            io.shared.block.extend_from_slice(&io.out[at + HEAD_BYTES..]);
            io.out.truncate(at);
            let block = &io.shared.block;
            let is_last = body_bytes == 0;
            return frame::put_headers(io.out, id, is_last, block, self.core.peer.frame_bytes);
        }
        let end = if body_bytes > 0 { 0 } else { flag::END_STREAM };
        let head = FrameHead {
            length: length as u32,
            kind: kind::HEADERS,
            flags: flag::END_HEADERS | end,
            stream: id,
        };
        io.out[at..at + HEAD_BYTES].copy_from_slice(&head.bytes());
    }

    /// What was filled for a stream is of no use any more.
    #[inline]
    pub(super) fn drop_body(&mut self, id: u32) {
        if !self.bodies.is_empty() {
            self.bodies.retain(|(of, _)| *of != id);
        }
        if !self.timed.is_empty() {
            self.timed.end(id);
        }
    }

    /// A stream with a body may send, if its window permits.
    pub(super) fn queue(&mut self, id: u32) {
        if let Some(stream) = self.streams.get(id)
            && stream.is_sending
            && !stream.is_queued
            && stream.send_window.left() > 0
        {
            stream.is_queued = true;
            self.senders.push_back(id);
        }
    }

    /// Puts as much of the bodies into the outbox as windows and its bound permit, in turn.
    #[inline]
    pub(super) fn send_bodies(&mut self, io: &mut Io) {
        if !self.senders.is_empty() {
            self.send_queued(io);
        }
    }

    fn send_queued(&mut self, io: &mut Io) {
        while io.out.len() < OUTBOX_BYTES_MAX
            && self.core.send_window.left() > 0
            && let Some(id) = self.senders.pop_front()
        {
            let Some(stream) = self.streams.get(id) else {
                continue;
            };
            let requests = &io.shared.requests;
            let timed = self.timed.ready(id, requests);
            let is_timed = timed.is_some();
            let DueBytes { bytes, is_last, is_first } = timed.unwrap_or_else(|| {
                let filled = self.bodies.iter().find(|(of, _)| *of == id);
                let whole = requests.body(stream.request as usize);
                let body = filled.map_or(whole, |(_, body)| body);
                DueBytes { bytes: &body[stream.sent..], is_last: true, is_first: true }
            });
            let permitted = stream.send_window.left().min(self.core.send_window.left());
            let length = bytes.len().min(permitted).min(DATA_BYTES_MAX);
            let is_all = length == bytes.len();
            let is_end = is_all && is_last;
            if length > 0 {
                let end = if is_end { flag::END_STREAM } else { 0 };
                frame::put(io.out, kind::DATA, end, id, &bytes[..length]);
            }
            stream.sent += length;
            stream.send_window.take(length);
            self.core.send_window.take(length);
            let has_more = if is_timed {
                length > 0 && self.timed.sent(id, length, requests)
            } else {
                !is_all
            };
            stream.is_sending = !is_end;
            stream.is_queued = has_more && stream.send_window.left() > 0;
            // Of messages with times of their own, the request counts as written with the first.
            if is_all && is_first && length > 0 {
                io.events.push(OpEvent::Written(stream.op));
            }
            if stream.is_queued {
                self.senders.push_back(id);
            }
            if is_end {
                self.drop_body(id);
            }
        }
    }
}

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
