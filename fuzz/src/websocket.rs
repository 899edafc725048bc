//! Bytes from a WebSocket server mean the same however they are cut, and are answered the same.
//! Each operation ends once at most. Nothing panics.

use knee_engine::exchange::websocket::handshake::{UpgradeRequest, read_request};
use knee_engine::exchange::websocket::{WebSocket, WebSocketShared};
use knee_engine::exchange::{
    CallContext, ConnectionState, Conversation, EventQueue, OpEvent, Outbox, Received, StreamEnd,
};
use knee_load::spec::{HttpRequest, Matching, Pick, Protocol, Target, Url, WebSocketSettings};
use knee_load::time::Nanos;

/// Events, bytes to send, and the state thereafter.
type Outcome = (Vec<OpEvent>, Vec<u8>, ConnectionState);

const OPERATIONS: u32 = 4;

/// The first byte says whether the connection is open already, how echoes are matched, and whether
/// messages are compressed; the rest is what the server sends.
pub fn check(data: &[u8]) {
    let Some((&choice, stream)) = data.split_first() else {
        return;
    };
    let whole = outcome(stream, choice, |left| left);
    check_ends(&whole.0);
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
    let settings = WebSocketSettings {
        matching: if choice & 2 == 2 { Matching::Order } else { Matching::Number },
        messages_max: OPERATIONS,
        is_binary: choice & 4 == 4,
        ping_every: None,
        message_bytes_max: 1000,
        subscribes: choice & 8 == 8,
    };
    let at = Nanos::ZERO;
    let target = target(settings, choice & 16 == 16);
    let mut shared = WebSocketShared::new(&target, &settings, at, (1, 0));
    let (mut out, mut events) = (Outbox::default(), EventQueue::default());
    let mut cx = CallContext { now: at, shared: &mut shared, out: &mut out, events: &mut events };
    let mut socket = WebSocket::established(&mut cx);
    if choice & 1 == 1 {
        let asked = std::mem::take(cx.out.bytes());
        let UpgradeRequest::Upgrade(_, mut answer) = read_request(&asked) else {
            panic!("it asks for an upgrade");
        };
        if choice & 16 == 16 {
            answer.truncate(answer.len() - 2);
            answer.extend_from_slice(b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n");
        }
        socket.receive(Received { bytes: &answer, at }, &mut cx);
        (0..OPERATIONS).for_each(|op| socket.start(op, 0.into(), &mut cx));
    }
    let mut rest = stream;
    while !rest.is_empty() {
        let (bytes, after) = rest.split_at(piece(rest.len()));
        socket.receive(Received { bytes, at }, &mut cx);
        rest = after;
    }
    let state = socket.state();
    socket.ended(StreamEnd::Fin, &mut cx);
    // How many bytes of a message came last is up to the cuts.
    events.retain(|event| !matches!(event, OpEvent::Received { .. }));
    for event in events.iter_mut() {
        if let OpEvent::Delivered { bytes, .. } = event {
            *bytes = 0;
        }
    }
    (std::mem::take(&mut *events), std::mem::take(out.bytes()), state)
}

fn target(settings: WebSocketSettings, offers_deflate: bool) -> Target {
    let url = Url::parse("ws://h/").expect("a URL");
    let offer = ("Sec-WebSocket-Extensions".to_owned(), "permessage-deflate".to_owned());
    let headers = offers_deflate.then_some(offer).into_iter().collect();
    let request = HttpRequest::new("GET", &url, headers, b"x {seq}".to_vec(), 1);
    let requests = vec![request.expect("a request")];
    let endpoint = url.endpoint().clone();
    let target = Target::new(endpoint, requests, Pick::InOrder, true).expect("a target");
    Target { protocol: Protocol::WebSocket(settings), ..target }
}

fn check_ends(events: &[OpEvent]) {
    let mut ended = [false; OPERATIONS as usize];
    for one in events {
        let op = match *one {
            OpEvent::Answered { op, .. }
            | OpEvent::Delivered { op, .. }
            | OpEvent::Failed { op, .. } => op,
            OpEvent::Unprocessed(_) | OpEvent::Reset(_) => panic!("not of WebSocket"),
            _ => continue,
        };
        let ended = &mut ended[op as usize];
        assert!(!*ended, "operation {op} had ended: {events:?}");
        *ended = true;
    }
}
