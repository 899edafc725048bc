//! A connection whose server is the test.

use super::super::super::frame::{self, FrameHead, flag, kind};
use super::super::super::hpack::{Indexing, put_field};
use super::super::{Http2, Http2Shared};
use crate::exchange::{
    AfterCancel, CallContext, Capacity, Conversation, EventQueue, FlightId, OpEvent, Outbox,
    Received, StreamEnd,
};
use knee_load::measure::Outcome;
use knee_load::messages::TimedMessages;
use knee_load::spec::{
    Http2Limits, HttpRequest, HttpSettings, HttpVersion, Pick, Protocol, Target, Url,
};
use knee_load::time::Nanos;

pub(super) const GET: usize = 0;
pub(super) const HEAD: usize = 1;
pub(super) const POST: usize = 2;
/// A request of five messages that leave 10 ms apart: `aaaaa`, `bb`, and these again.
pub(super) const TIMED: usize = 3;
/// The bytes of [`POST`]'s body.
pub(super) const BODY_BYTES: usize = 200_000;

/// A client connection with its outbox.
pub(super) struct Rig {
    pub(super) http2: Http2,
    pub(super) shared: Http2Shared,
    pub(super) out: Outbox,
    pub(super) events: EventQueue,
    pub(super) now: Nanos,
}

impl Rig {
    /// A connection just established, whose first bytes have been sent.
    pub(super) fn new(http2: Http2Limits) -> Rig {
        let version = HttpVersion::Http2;
        Rig::speaking(Protocol::Http(HttpSettings { version, http2 }))
    }

    /// The same for calls of gRPC: [`GET`] returns one message, [`POST`] a stream.
    pub(super) fn of_calls() -> Rig {
        let mut rig = Rig::speaking(Protocol::Grpc(Http2Limits::default()));
        rig.feed(&[settings(&[]), f(kind::SETTINGS, flag::ACK, 0, b"")].concat());
        rig.sent();
        rig
    }

    fn speaking(protocol: Protocol) -> Rig {
        let url = Url::parse("http://h:81/").unwrap();
        let request = |method, body| HttpRequest::new(method, &url, Vec::new(), body, 1).unwrap();
        let mut post = request("POST", vec![b'b'; BODY_BYTES]);
        post.answers_stream = true;
        let mut timed = request("POST", b"aaaaabb".to_vec());
        let every = Nanos::from_millis(10);
        timed.timed = TimedMessages::new(vec![5, 7], 5, every, true).map(Box::new);
        let requests = vec![request("GET", Vec::new()), request("HEAD", Vec::new()), post, timed];
        let endpoint = url.endpoint().clone();
        let mut target = Target::new(endpoint, requests, Pick::InOrder, true).unwrap();
        target.protocol = protocol;
        let mut shared = Http2Shared::new(&target);
        let (mut out, mut events) = (Outbox::default(), EventQueue::default());
        let http2 = Http2::established(&mut CallContext {
            now: Nanos::ZERO,
            shared: &mut shared,
            out: &mut out,
            events: &mut events,
        });
        assert!(out.bytes().starts_with(frame::PREFACE));
        out.clear();
        Rig { http2, shared, out, events, now: Nanos::ZERO }
    }

    /// The same with the server's empty SETTINGS and its acknowledgement.
    pub(super) fn greeted() -> Rig {
        let mut rig = Rig::new(Http2Limits::default());
        rig.feed(&[settings(&[]), f(kind::SETTINGS, flag::ACK, 0, b"")].concat());
        rig.sent();
        rig
    }

    pub(super) fn capacity(&self) -> Capacity {
        self.http2.capacity(&self.shared)
    }

    /// The connection, and what its calls change beside it.
    fn call(&mut self) -> (&mut Http2, CallContext<'_, Http2Shared>) {
        let Rig { http2, shared, out, events, now } = self;
        (http2, CallContext { now: *now, shared, out, events })
    }

    /// Another connection of the same worker.
    pub(super) fn reconnect(&mut self) {
        self.out.clear();
        self.http2 = Http2::established(&mut self.call().1);
    }

    pub(super) fn begin(&mut self, op: FlightId, request: usize) {
        assert!(self.capacity().operations > 0);
        let (http2, mut cx) = self.call();
        http2.start(op, request.into(), &mut cx);
    }

    /// Whether the connection wants to be called at this time, and is.
    pub(super) fn wakes_at(&mut self, now: Nanos) -> bool {
        self.now = now;
        let is_time = self.http2.poll_timeout() == now;
        let (http2, mut cx) = self.call();
        http2.handle_timeout(&mut cx);
        is_time
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let (http2, mut cx) = self.call();
        http2.receive(Received { bytes, at: Nanos::ZERO }, &mut cx);
    }

    /// Whether the connection goes on without this operation.
    pub(super) fn cancel(&mut self, op: FlightId) -> bool {
        let (http2, mut cx) = self.call();
        http2.cancel(op, &mut cx) == AfterCancel::GoesOn
    }

    /// The server ends its side.
    pub(super) fn ended(&mut self, end: StreamEnd) {
        let (http2, mut cx) = self.call();
        http2.ended(end, &mut cx);
    }

    /// What was in the outbox is with the kernel; more may be in it now.
    pub(super) fn sent(&mut self) -> Vec<u8> {
        let bytes = std::mem::take(self.out.bytes());
        let (http2, mut cx) = self.call();
        http2.sent(&mut cx);
        bytes
    }

    /// What was told, in order.
    pub(super) fn events(&mut self) -> Vec<OpEvent> {
        std::mem::take(&mut *self.events)
    }
}

/// The frames that `bytes` are.
pub(super) fn frames(bytes: &[u8]) -> Vec<(FrameHead, Vec<u8>)> {
    let (mut rest, mut all) = (bytes, Vec::new());
    while let Some((head, after)) = FrameHead::read(rest) {
        let (payload, next) = after.split_at(head.length as usize);
        all.push((head, payload.to_vec()));
        rest = next;
    }
    assert!(rest.is_empty(), "a frame that is cut");
    all
}

/// The codes of the frames of a kind on a stream: `(kind, stream, code)` of RST_STREAM and GOAWAY.
pub(super) fn codes(bytes: &[u8]) -> Vec<(u8, u32, u32)> {
    let all = frames(bytes).into_iter();
    all.filter_map(|(head, payload)| match head.kind {
        kind::RST_STREAM => {
            let code = payload[..4].try_into().unwrap();
            Some((head.kind, head.stream, u32::from_be_bytes(code)))
        }
        kind::GOAWAY => {
            let code = payload[4..8].try_into().unwrap();
            Some((head.kind, head.stream, u32::from_be_bytes(code)))
        }
        _ => None,
    })
    .collect()
}

/// What was told of each operation, the bytes of several tellings in a row added up, and the rules
/// that were broken.
pub(super) fn summed(events: &[OpEvent]) -> Vec<OpEvent> {
    let mut all: Vec<OpEvent> = Vec::new();
    for one in events {
        if let OpEvent::Received { op, bytes } = one {
            let before = all.iter_mut().find_map(|t| match t {
                OpEvent::Received { op: of, bytes } if of == op => Some(bytes),
                _ => None,
            });
            if let Some(before) = before {
                *before += bytes;
                continue;
            }
        }
        all.push(one.clone());
    }
    all
}

/// How an operation ended.
pub(super) fn end_of(events: &[OpEvent], op: FlightId) -> Option<Result<u16, Outcome>> {
    events.iter().find_map(|one| match one {
        OpEvent::Answered { op: of, status } if *of == op => Some(Ok(status.code())),
        OpEvent::Failed { op: of, outcome } if *of == op => Some(Err(*outcome)),
        OpEvent::Unprocessed(of) if *of == op => Some(Err(Outcome::Unprocessed)),
        _ => None,
    })
}

/// A frame.
pub(super) fn f(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::put(&mut bytes, kind, flags, stream, payload);
    bytes
}

pub(super) fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    super::super::super::connection::put_settings(&mut bytes, entries);
    bytes
}

/// A header block that leaves the table as it is.
pub(super) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        put_field(&mut bytes, name.as_bytes(), value.as_bytes(), Indexing::Without);
    }
    bytes
}

/// HEADERS with these fields.
pub(super) fn headers(stream: u32, end: bool, fields: &[(&str, &str)]) -> Vec<u8> {
    let end = if end { flag::END_STREAM } else { 0 };
    f(kind::HEADERS, flag::END_HEADERS | end, stream, &block(fields))
}

pub(super) fn data(stream: u32, end: bool, content: &[u8]) -> Vec<u8> {
    let end = if end { flag::END_STREAM } else { 0 };
    f(kind::DATA, end, stream, content)
}

pub(super) fn ok(stream: u32) -> Vec<u8> {
    headers(stream, true, &[(":status", "200")])
}
