//! A connection whose server is the test.

use super::super::super::frame::{self, FrameHead, flag, kind};
use super::super::super::hpack::{Indexing, put_field};
use super::super::{Http2, Http2Shared};
use crate::exchange::{EventQueue, Exchange, FlightId, OpEvent, Outbox, Room};
use knee_load::measure::Outcome;
use knee_load::spec::{Http2Limits, HttpRequest, HttpTarget, Pick, Url};

pub(super) const GET: usize = 0;
pub(super) const HEAD: usize = 1;
pub(super) const POST: usize = 2;
/// The bytes of [`POST`]'s body.
pub(super) const BODY_BYTES: usize = 200_000;

/// A client connection with its outbox.
pub(super) struct Rig {
    pub(super) http2: Http2,
    pub(super) shared: Http2Shared,
    pub(super) out: Outbox,
    pub(super) events: EventQueue,
}

impl Rig {
    /// A connection just established, whose first bytes have been sent.
    pub(super) fn new(http2: Http2Limits) -> Rig {
        let url = Url::parse("http://h:81/").unwrap();
        let request = |method, body| HttpRequest::new(method, &url, Vec::new(), body, 1).unwrap();
        let requests = vec![
            request("GET", Vec::new()),
            request("HEAD", Vec::new()),
            request("POST", vec![b'b'; BODY_BYTES]),
        ];
        let endpoint = url.endpoint().clone();
        let mut target = HttpTarget::new(endpoint, requests, Pick::InOrder, true).unwrap();
        target.http2 = http2;
        let mut shared = Http2Shared::new(&target);
        let mut out = Outbox::default();
        let http2 = Http2::established(&mut shared, &mut out);
        assert!(out.bytes().starts_with(frame::PREFACE));
        out.clear();
        Rig { http2, shared, out, events: EventQueue::default() }
    }

    /// The same with the server's empty SETTINGS and its acknowledgement.
    pub(super) fn greeted() -> Rig {
        let mut rig = Rig::new(Http2Limits::default());
        rig.feed(&[settings(&[]), f(kind::SETTINGS, flag::ACK, 0, b"")].concat());
        rig.sent();
        rig
    }

    pub(super) fn room(&self) -> Room {
        self.http2.room(&self.shared)
    }

    /// Another connection of the same worker.
    pub(super) fn reconnect(&mut self) {
        self.out.clear();
        self.http2 = Http2::established(&mut self.shared, &mut self.out);
    }

    pub(super) fn begin(&mut self, op: FlightId, request: usize) {
        assert!(self.room().operations > 0);
        let (shared, out) = (&mut self.shared, &mut self.out);
        self.http2.begin(op, request.into(), shared, out, &mut self.events);
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let (shared, out) = (&mut self.shared, &mut self.out);
        self.http2.feed(bytes, shared, out, &mut self.events);
    }

    /// What was in the outbox is with the kernel; more may be in it now.
    pub(super) fn sent(&mut self) -> Vec<u8> {
        let bytes = std::mem::take(self.out.bytes());
        let (shared, out) = (&mut self.shared, &mut self.out);
        self.http2.sent(shared, out, &mut self.events);
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
        OpEvent::Answered { op: of, status } if *of == op => Some(Ok(*status)),
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
    super::super::super::settings::put(&mut bytes, entries);
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
