//! A call of gRPC is ok where its body is whole messages that are not compressed, and exactly one
//! where the method returns one, however the body is cut. Nothing panics.

use knee_engine::exchange::http2::{Http2, Http2Shared};
use knee_engine::exchange::{
    CallContext, Conversation, EventQueue, OpEvent, Outbox, Received, StreamEnd,
};
use knee_load::measure::Status;
use knee_load::spec::{Http2Limits, HttpRequest, Pick, Protocol, Target, Url};
use knee_load::time::Nanos;

/// The first byte says how the body is cut and whether it ends with its status; the rest is the
/// body.
pub fn check(data: &[u8]) {
    let Some((&choice, body)) = data.split_first() else {
        return;
    };
    // A frame has up to 16 KiB.
    let body = &body[..body.len().min(16_000)];
    let has_status = choice & 1 == 0;
    let messages = messages(body);
    for is_stream in [false, true] {
        let is_whole = messages.is_some_and(|count| is_stream || count == 1);
        for pieces in [1, 2, 3, body.len().max(1)] {
            let is_ok = is_ok(body, pieces, (is_stream, has_status), choice);
            assert_eq!(is_ok, is_whole && has_status, "stream {is_stream}, in {pieces}");
        }
    }
}

/// How many whole messages a body is; `None` where it is anything else.
fn messages(mut body: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !body.is_empty() {
        let (prefix, rest) = body.split_first_chunk::<5>()?;
        let [0, length @ ..] = *prefix else {
            return None;
        };
        body = rest.get(u32::from_be_bytes(length) as usize..)?;
        count += 1;
    }
    Some(count)
}

/// Whether a call is ok that is answered with this body, in frames of as many bytes each.
fn is_ok(body: &[u8], pieces: usize, (is_stream, has_status): (bool, bool), choice: u8) -> bool {
    let mut shared = Http2Shared::new(&target(is_stream));
    let (mut out, mut events) = (Outbox::default(), EventQueue::default());
    let at = Nanos::ZERO;
    let mut cx = CallContext { now: at, shared: &mut shared, out: &mut out, events: &mut events };
    let mut http2 = Http2::established(&mut cx);
    http2.start(0, 0.into(), &mut cx);
    let mut wire = frame(4, 0, 0, b"");
    // :status 200 of the static table, content-type (31 there) as a literal.
    let head = [b"\x88\x0f\x10\x10", &b"application/grpc"[..]].concat();
    wire.extend(frame(1, 4, 1, &head));
    for piece in body.chunks(body.len().div_ceil(pieces).max(1)) {
        if choice & 2 == 2 {
            let padded = [&[2][..], piece, &[0, 0]].concat();
            wire.extend(frame(0, 8, 1, &padded));
        } else {
            wire.extend(frame(0, 0, 1, piece));
        }
    }
    let trailers: &[u8] = if has_status { b"\x00\x0bgrpc-status\x010" } else { b"\x00\x01x\x01y" };
    wire.extend(frame(1, 5, 1, trailers));
    let size = 1 + usize::from(choice >> 2) * 3;
    for bytes in wire.chunks(size) {
        http2.receive(Received { bytes, at }, &mut cx);
    }
    http2.ended(StreamEnd::Fin, &mut cx);
    let ends = events.iter().filter_map(|event| match event {
        OpEvent::Answered { status, .. } => Some(*status == Status::Grpc(0)),
        OpEvent::Failed { .. } => Some(false),
        _ => None,
    });
    let ends: Vec<bool> = ends.collect();
    assert_eq!(ends.len(), 1, "{:?}", *events);
    ends[0]
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn target(is_stream: bool) -> Target {
    let url = Url::parse("grpc://h/a.S/M").expect("a URL");
    let request = HttpRequest::new("POST", &url, Vec::new(), vec![0; 5], 1);
    let mut request = request.expect("a request");
    request.answers_stream = is_stream;
    let endpoint = url.endpoint().clone();
    let target = Target::new(endpoint, vec![request], Pick::InOrder, true).expect("a target");
    Target { protocol: Protocol::Grpc(Http2Limits::default()), ..target }
}
