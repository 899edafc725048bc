//! Bytes from a DNS server over TCP mean the same however they are cut. Each operation ends once at
//! most. Nothing panics.

use knee_engine::exchange::dns::{Dns, DnsShared};
use knee_engine::exchange::{
    CallContext, Conversation, EventQueue, OpEvent, Outbox, Received, StreamEnd,
};
use knee_load::spec::{DnsSettings, HttpRequest, Pick, Protocol, Target, Url};
use knee_load::time::Nanos;

const OPERATIONS: u32 = 4;

/// Messages, each behind its length in one byte. Their ids count from that of the first query.
pub fn check(data: &[u8]) {
    let whole = outcome(data, |left| left);
    check_ends(&whole);
    assert_eq!(outcome(data, |_| 1), whole, "byte by byte");
    let mut state = data.len() as u32 | 1;
    let piece = |left: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as usize % 24 % left + 1
    };
    assert_eq!(outcome(data, piece), whole, "in pieces");
    datagrams(data);
}

/// What comes of these bytes; `piece` says how many of those left come at once, at least one.
fn outcome(data: &[u8], mut piece: impl FnMut(usize) -> usize) -> Vec<OpEvent> {
    let (mut shared, at) = (shared(true), Nanos::ZERO);
    let (mut out, mut events) = (Outbox::default(), EventQueue::default());
    let mut cx = CallContext { now: at, shared: &mut shared, out: &mut out, events: &mut events };
    let mut dns = Dns::established(&mut cx);
    (0..OPERATIONS).for_each(|op| dns.start(op, 0.into(), &mut cx));
    let first = first_id(cx.out);
    let mut stream = Vec::new();
    for message in messages(data, first) {
        stream.extend_from_slice(&(message.len() as u16).to_be_bytes());
        stream.extend_from_slice(&message);
    }
    let mut rest = &stream[..];
    while !rest.is_empty() {
        let (bytes, after) = rest.split_at(piece(rest.len()));
        dns.receive(Received { bytes, at }, &mut cx);
        rest = after;
    }
    dns.ended(StreamEnd::Fin, &mut cx);
    std::mem::take(&mut *events)
}

/// The same as datagrams.
fn datagrams(data: &[u8]) {
    let (mut shared, at) = (shared(false), Nanos::ZERO);
    let (mut out, mut events) = (Outbox::default(), EventQueue::default());
    let mut cx = CallContext { now: at, shared: &mut shared, out: &mut out, events: &mut events };
    let mut dns = Dns::established(&mut cx);
    (0..OPERATIONS).for_each(|op| dns.start(op, 0.into(), &mut cx));
    let first = first_id(cx.out);
    for message in messages(data, first) {
        dns.receive(Received { bytes: &message, at }, &mut cx);
    }
    check_ends(&events);
}

fn first_id(out: &mut Outbox) -> u16 {
    u16::from_be_bytes([out.bytes()[2], out.bytes()[3]])
}

fn messages(data: &[u8], first: u16) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut rest = data;
    while let Some((&length, after)) = rest.split_first() {
        let (message, after) = after.split_at(after.len().min(length.into()));
        let mut message = message.to_vec();
        if let [high, low, ..] = &mut message[..] {
            let id = u16::from_be_bytes([*high, *low]).wrapping_add(first);
            [*high, *low] = id.to_be_bytes();
        }
        messages.push(message);
        rest = after;
    }
    messages
}

fn shared(over_tcp: bool) -> DnsShared {
    let settings = DnsSettings { over_tcp, queries_max: OPERATIONS, ..DnsSettings::default() };
    let url = Url::parse("dns://h/a.b?type=A").expect("a URL");
    let request = HttpRequest::new("GET", &url, Vec::new(), Vec::new(), 1);
    let requests = vec![request.expect("a request")];
    let endpoint = url.endpoint().clone();
    let target = Target::new(endpoint, requests, Pick::InOrder, true).expect("a target");
    let target = Target { protocol: Protocol::Dns(settings), ..target };
    DnsShared::new(&target, &settings, (1, 0))
}

fn check_ends(events: &[OpEvent]) {
    let mut ended = [false; OPERATIONS as usize];
    for one in events {
        let (OpEvent::Answered { op, .. } | OpEvent::Failed { op, .. } | OpEvent::Diverted(op)) =
            *one
        else {
            continue;
        };
        let ended = &mut ended[op as usize];
        assert!(!*ended, "operation {op} had ended: {events:?}");
        *ended = true;
    }
}
