//! Any bytes from the server, however they are cut, mean the same for operations over HTTP/2, and
//! are answered the same. Each operation ends once at most. Nothing panics.

use knee_engine::exchange::http2::{Http2, Http2Shared};
use knee_engine::exchange::{
    CallContext, ConnectionState, Conversation, EventQueue, OpEvent, Outbox, Received, StreamEnd,
};
use knee_load::spec::{HttpRequest, Pick, Target, Url};
use knee_load::time::Nanos;

/// The events, the bytes of the outbox, and the state of the connection afterwards.
type Outcome = (Vec<OpEvent>, Vec<u8>, ConnectionState);

/// The empty SETTINGS that servers begin with.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

const OPERATIONS: u32 = 4;

/// The first byte says whether the server's SETTINGS are there already, and how to cut; the rest is
/// what the server sends.
pub fn check(data: &[u8]) {
    let Some((&choice, stream)) = data.split_first() else {
        return;
    };
    let whole = outcome(stream, choice, |left| left);
    check_order(&whole.0);
    assert_eq!(outcome(stream, choice, |_| 1), whole, "byte by byte");
    let mut state = u32::from(choice) << 8 | 1;
    let piece = |left: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as usize % 24 % left + 1
    };
    assert_eq!(outcome(stream, choice, piece), whole, "in pieces");
}

/// What comes of these bytes; `piece` says how many of those left come at once, at least one.
fn outcome(stream: &[u8], choice: u8, mut piece: impl FnMut(usize) -> usize) -> Outcome {
    let mut shared = Http2Shared::new(&target());
    let (mut out, mut events) = (Outbox::default(), EventQueue::default());
    let at = Nanos::ZERO;
    let mut cx = CallContext { now: at, shared: &mut shared, out: &mut out, events: &mut events };
    let mut http2 = Http2::established(&mut cx);
    if choice & 1 == 1 {
        http2.receive(Received { bytes: SETTINGS, at }, &mut cx);
    }
    for op in 0..OPERATIONS {
        http2.start(op, (op as usize % 3).into(), &mut cx);
    }
    if choice & 2 == 2 {
        http2.cancel(3, &mut cx);
    }
    let mut rest = stream;
    while !rest.is_empty() {
        let (here, after) = rest.split_at(piece(rest.len()));
        http2.receive(Received { bytes: here, at }, &mut cx);
        rest = after;
    }
    let state = http2.state();
    http2.ended(StreamEnd::Fin, &mut cx);
    (summed(std::mem::take(&mut *events)), std::mem::take(out.bytes()), state)
}

fn target() -> Target {
    let url = Url::parse("http://h/").expect("a URL");
    let request = |method: &str, body: &[u8]| {
        HttpRequest::new(method, &url, Vec::new(), body.to_vec(), 1).expect("a request")
    };
    let requests =
        vec![request("GET", b""), request("POST", &[b'b'; 70_000]), request("HEAD", b"")];
    Target::new(url.endpoint().clone(), requests, Pick::InOrder, true).expect("a target")
}

/// All bytes of an operation in one telling, where the first one was.
fn summed(events: Vec<OpEvent>) -> Vec<OpEvent> {
    let mut all: Vec<OpEvent> = Vec::new();
    for one in events {
        let before = all.iter_mut().find_map(|before| match (before, &one) {
            (OpEvent::Received { op, bytes }, OpEvent::Received { op: of, bytes: more })
                if op == of =>
            {
                Some((bytes, *more))
            }
            _ => None,
        });
        match before {
            Some((bytes, more)) => *bytes += more,
            None => all.push(one),
        }
    }
    all
}

fn check_order(events: &[OpEvent]) {
    let mut ended = [false; OPERATIONS as usize];
    for one in events {
        let (op, ends) = match *one {
            OpEvent::Written(op) | OpEvent::Received { op, .. } => (op, false),
            OpEvent::Message(message) => (message.op, false),
            OpEvent::Answered { op, .. }
            | OpEvent::Failed { op, .. }
            | OpEvent::Unprocessed(op) => (op, true),
            OpEvent::Violated(_) | OpEvent::Reset(_) => continue,
            OpEvent::Delivered { .. }
            | OpEvent::MessageLeft { .. }
            | OpEvent::Resized { .. }
            | OpEvent::Opened
            | OpEvent::NotSecured(_)
            | OpEvent::NotOpened(_)
            | OpEvent::Surplus
            | OpEvent::Diverted(_)
            | OpEvent::Exhausted
            | OpEvent::Unmatched => panic!("not of HTTP/2"),
        };
        let ended = &mut ended[op as usize];
        assert!(!*ended, "operation {op} had ended: {events:?}");
        *ended = ends;
    }
}
