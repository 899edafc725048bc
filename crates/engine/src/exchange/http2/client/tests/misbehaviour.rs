//! Servers that break a rule, and how that ends.

use super::super::super::frame::{flag, kind};
use super::rig::*;
use crate::exchange::{ConnectionState, Exchange, OpEvent};
use knee_load::measure::Outcome;

pub(super) const PROTOCOL: u32 = 1;
pub(super) const FLOW: u32 = 3;
const CLOSED: u32 = 5;
pub(super) const SIZE: u32 = 6;
const COMPRESSION: u32 = 9;
const CALM: u32 = 11;

const END: u8 = flag::END_STREAM;
const WHOLE: u8 = flag::END_HEADERS;
const STATUS: &[(&str, &str)] = &[(":status", "200")];

/// A name, the rule's section, the error code sent to the server, and the bytes that the server
/// sends after SETTINGS. Operation 1 is on stream 1 and operation 2 on stream 3, both GET.
pub(super) type Row = (&'static str, &'static str, u32, Vec<u8>);

/// Feeds `bytes` in pieces of this length.
fn run(bytes: &[u8], piece: usize, requests: [usize; 2]) -> Rig {
    let mut rig = Rig::greeted();
    rig.begin(1, requests[0]);
    rig.begin(2, requests[1]);
    rig.out.clear();
    rig.events.clear();
    for piece in bytes.chunks(piece) {
        rig.feed(piece);
    }
    rig
}

fn rule_of(events: &[OpEvent]) -> &str {
    let rules = events.iter().filter_map(|one| match one {
        OpEvent::Violated(rule) => Some(rule.as_str()),
        _ => None,
    });
    let rules: Vec<&str> = rules.collect();
    assert_eq!(rules.len(), 1, "{events:?}");
    rules[0]
}

/// The connection breaks, and both operations fail.
fn check_connection((name, section, code, bytes): Row) {
    for piece in [usize::MAX, 1, 7] {
        let mut rig = run(&bytes, piece, [GET, GET]);
        let events = rig.events();
        let rule = rule_of(&events);
        assert!(rule.ends_with(&format!(" §{section})")), "{name}: {rule}");
        assert_eq!(rig.http2.state(), ConnectionState::Broken, "{name}");
        assert_eq!(end_of(&events, 2), Some(Err(Outcome::Malformed)), "{name}");
        assert!(end_of(&events, 1).is_some(), "{name}");
        let codes = codes(rig.out.bytes());
        assert_eq!(codes.last(), Some(&(kind::GOAWAY, 0, code)), "{name}");
        rig.feed(&ok(3));
        assert_eq!(rig.events(), [], "{name}: nothing more");
    }
}

/// Operation 1 fails alone; operation 2 is answered.
pub(super) fn check_stream((name, section, code, bytes): Row, request: usize) {
    for piece in [usize::MAX, 1, 7] {
        let bytes = [&bytes[..], &ok(3)].concat();
        let mut rig = run(&bytes, piece, [request, GET]);
        let events = rig.events();
        let rule = rule_of(&events);
        assert!(rule.ends_with(&format!(" §{section})")), "{name}: {rule}");
        assert_eq!(end_of(&events, 1), Some(Err(Outcome::Malformed)), "{name}");
        assert_eq!(end_of(&events, 2), Some(Ok(200)), "{name}");
        assert_eq!(rig.http2.state(), ConnectionState::Open, "{name}");
        assert_eq!(codes(rig.out.bytes()), [(kind::RST_STREAM, 1, code)], "{name}");
    }
}

fn goaway(last: u32, code: u32) -> Vec<u8> {
    let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
    f(kind::GOAWAY, 0, 0, &payload)
}

pub(super) fn update(stream: u32, increment: u32) -> Vec<u8> {
    f(kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

fn reset(stream: u32, code: u32) -> Vec<u8> {
    f(kind::RST_STREAM, 0, stream, &code.to_be_bytes())
}

#[test]
fn a_connection_that_does_not_begin_with_settings() {
    for (name, bytes) in [
        ("another frame", f(kind::PING, 0, 0, &[0; 8])),
        ("an acknowledgement", f(kind::SETTINGS, flag::ACK, 0, b"")),
        ("HTTP/1.1", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
        ("a response at once", ok(1)),
    ] {
        let mut rig = Rig::new(Default::default());
        rig.begin(1, GET);
        rig.feed(&bytes);
        let events = rig.events();
        assert!(rule_of(&events).ends_with("§3.4)"), "{name}");
        assert_eq!(end_of(&events, 1), Some(Err(Outcome::Malformed)), "{name}");
    }
}

#[test]
fn settings_that_break_the_connection() {
    let rows: Vec<Row> = vec![
        ("over 16,384 bytes", "4.2", SIZE, f(kind::DATA, 0, 1, &[0; 16_385])),
        ("unknown and too large", "4.2", SIZE, f(0x77, 0, 0, &[0; 16_385])),
        ("SETTINGS of 5 bytes", "6.5", SIZE, f(kind::SETTINGS, 0, 0, &[0; 5])),
        ("SETTINGS on a stream", "5.1.1", PROTOCOL, f(kind::SETTINGS, 0, 1, b"")),
        ("SETTINGS acknowledged at length", "6.5", SIZE, f(kind::SETTINGS, 1, 0, &[0; 6])),
        ("ENABLE_PUSH 2", "6.5.2", PROTOCOL, settings(&[(2, 2)])),
        ("ENABLE_PUSH 1", "6.5.2", PROTOCOL, settings(&[(2, 1)])),
        ("INITIAL_WINDOW_SIZE 2^31", "6.5.2", FLOW, settings(&[(4, 1 << 31)])),
        ("MAX_FRAME_SIZE 16,383", "6.5.2", PROTOCOL, settings(&[(5, 16_383)])),
        ("MAX_FRAME_SIZE 2^24", "6.5.2", PROTOCOL, settings(&[(5, 1 << 24)])),
        (
            "a window raised by SETTINGS",
            "6.9.2",
            FLOW,
            [update(1, 1), settings(&[(4, (1 << 31) - 1)])].concat(),
        ),
    ];
    rows.into_iter().for_each(check_connection);
}

#[test]
fn frames_of_the_wrong_length_or_stream() {
    let rows: Vec<Row> = vec![
        ("PING of 7 bytes", "4.2", SIZE, f(kind::PING, 0, 0, &[0; 7])),
        ("PING of 9 bytes", "4.2", SIZE, f(kind::PING, 0, 0, &[0; 9])),
        ("PING on a stream", "5.1.1", PROTOCOL, f(kind::PING, 0, 1, &[0; 8])),
        ("GOAWAY of 7 bytes", "6.8", SIZE, f(kind::GOAWAY, 0, 0, &[0; 7])),
        ("GOAWAY on a stream", "5.1.1", PROTOCOL, f(kind::GOAWAY, 0, 1, &[0; 8])),
        ("GOAWAY that rises", "6.8", PROTOCOL, [goaway(3, 0), goaway(5, 0)].concat()),
        ("RST_STREAM of 3 bytes", "4.2", SIZE, f(kind::RST_STREAM, 0, 1, &[0; 3])),
        ("RST_STREAM on stream 0", "5.1.1", PROTOCOL, reset(0, 8)),
        ("RST_STREAM on an idle stream", "5.1", PROTOCOL, reset(5, 8)),
        ("RST_STREAM on a stream of its own", "5.1.1", PROTOCOL, reset(2, 8)),
        ("WINDOW_UPDATE of 5 bytes", "4.2", SIZE, f(kind::WINDOW_UPDATE, 0, 1, &[0; 5])),
        ("WINDOW_UPDATE of 0", "6.9", PROTOCOL, update(0, 0)),
        ("WINDOW_UPDATE of 0, reserved bit set", "6.9", PROTOCOL, update(0, 1 << 31)),
        ("the window over 2^31-1", "6.9.1", FLOW, update(0, (1 << 31) - 1)),
        ("WINDOW_UPDATE on an idle stream", "5.1", PROTOCOL, update(5, 1)),
        ("PRIORITY on stream 0", "5.1.1", PROTOCOL, f(kind::PRIORITY, 0, 0, &[0; 5])),
        ("PUSH_PROMISE", "6.6", PROTOCOL, f(kind::PUSH_PROMISE, WHOLE, 1, &[0, 0, 0, 2, 0x82])),
    ];
    rows.into_iter().for_each(check_connection);
}

#[test]
fn streams_that_break_the_connection() {
    let ended = |frames: Vec<u8>| [ok(1), frames].concat();
    let begun = |frames: Vec<u8>| [headers(1, false, STATUS), frames].concat();
    let rows: Vec<Row> = vec![
        ("DATA on stream 0", "5.1.1", PROTOCOL, data(0, true, b"x")),
        ("DATA on an idle stream", "5.1", PROTOCOL, data(5, true, b"x")),
        ("DATA on a stream of its own", "5.1.1", PROTOCOL, data(2, true, b"x")),
        ("DATA after the end", "5.1", CLOSED, ended(data(1, true, b"x"))),
        ("empty DATA after the end", "5.1", CLOSED, ended(data(1, false, b""))),
        ("HEADERS after the end", "5.1", CLOSED, ended(ok(1))),
        ("DATA after RST_STREAM", "5.1", CLOSED, [reset(1, 8), data(1, true, b"x")].concat()),
        ("HEADERS on stream 0", "5.1.1", PROTOCOL, ok(0)),
        ("HEADERS on an idle stream", "5.1", PROTOCOL, ok(5)),
        ("HEADERS on a stream of its own", "5.1.1", PROTOCOL, ok(2)),
        (
            "padding over the payload",
            "6.1",
            PROTOCOL,
            begun(f(kind::DATA, flag::PADDED, 1, &[3, 0, 0])),
        ),
        ("padding without a length", "4.2", SIZE, begun(f(kind::DATA, flag::PADDED, 1, b""))),
        (
            "padding over the block",
            "6.1",
            PROTOCOL,
            f(kind::HEADERS, WHOLE | END | flag::PADDED, 1, &[2, 0x88]),
        ),
        (
            "HEADERS without its padding's length",
            "4.2",
            SIZE,
            f(kind::HEADERS, WHOLE | END | flag::PADDED, 1, b""),
        ),
        (
            "HEADERS without its priority",
            "4.2",
            SIZE,
            f(kind::HEADERS, WHOLE | END | flag::PRIORITY, 1, &[0; 4]),
        ),
        ("CONTINUATION alone", "6.10", PROTOCOL, f(kind::CONTINUATION, WHOLE, 1, &[0x88])),
        (
            "CONTINUATION after a whole block",
            "6.10",
            PROTOCOL,
            ended(f(kind::CONTINUATION, WHOLE, 1, &[0x88])),
        ),
        (
            "a block interrupted by DATA",
            "4.3",
            PROTOCOL,
            [f(kind::HEADERS, 0, 1, &[0x88]), data(1, true, b"")].concat(),
        ),
        (
            "a block interrupted by PING",
            "4.3",
            PROTOCOL,
            [f(kind::HEADERS, 0, 1, &[0x88]), f(kind::PING, 0, 0, &[0; 8])].concat(),
        ),
        (
            "a block interrupted by an unknown frame",
            "4.3",
            PROTOCOL,
            [f(kind::HEADERS, 0, 1, &[0x88]), f(0x77, 0, 1, b"")].concat(),
        ),
        (
            "a block continued on another stream",
            "4.3",
            PROTOCOL,
            [f(kind::HEADERS, 0, 1, &[0x88]), f(kind::CONTINUATION, WHOLE, 3, b"")].concat(),
        ),
    ];
    rows.into_iter().for_each(check_connection);
}

#[test]
fn blocks_that_break_the_connection() {
    let block = |bytes: &[u8]| f(kind::HEADERS, WHOLE | END, 1, bytes);
    let long = |n: usize| super::rig::block(&[("a", "\u{1}".repeat(n).as_str())]);
    let large = {
        // A field of 4,040 bytes by its index, again and again.
        let mut bytes = vec![0x88, 0x40, 1, b'a', 0x7f, 0xc9, 0x1e];
        bytes.extend([b'x'; 4040]);
        bytes.extend([0xbe; 16]);
        bytes
    };
    let mut endless = f(kind::HEADERS, 0, 1, &[0x88]);
    for _ in 0..5 {
        endless.extend(f(kind::CONTINUATION, 0, 1, &long(16_000)));
    }
    let mut empty = f(kind::HEADERS, 0, 1, &[0x88]);
    for _ in 0..128 {
        empty.extend(f(kind::CONTINUATION, 0, 1, b""));
    }
    let rows: Vec<(_, _, _, _, Vec<u8>)> = vec![
        ("an index without an entry", "7541", "2.3.3", COMPRESSION, block(&[0xbe])),
        ("index 0", "7541", "2.3.3", COMPRESSION, block(&[0x80])),
        ("a block that is cut", "7541", "3.1", COMPRESSION, block(&[0x88, 0x40, 1])),
        (
            "a huge integer",
            "7541",
            "5.1",
            COMPRESSION,
            block(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        ),
        ("padding of zeros", "7541", "5.2", COMPRESSION, block(&[0x88, 0, 1, b'a', 0x81, 0])),
        (
            "EOS in a string",
            "7541",
            "5.2",
            COMPRESSION,
            block(&[0x88, 0, 1, b'a', 0x84, 255, 255, 255, 255]),
        ),
        ("a table over 4,096", "7541", "6.3", COMPRESSION, block(&[0x3f, 0xe2, 0x1f, 0x88])),
        ("a change within a block", "7541", "4.2", COMPRESSION, block(&[0x88, 0x20])),
        ("fields over 64 KiB", "9113", "10.5.1", CALM, block(&large)),
        ("a block over 64 KiB", "9113", "10.5.1", CALM, endless),
        ("a block of 129 frames", "9113", "10.5", CALM, empty),
    ];
    for (name, rfc, section, code, bytes) in rows {
        check_connection((name, section, code, bytes.clone()));
        let mut rig = run(&bytes, usize::MAX, [GET, GET]);
        assert!(rule_of(&rig.events()).contains(&format!("(RFC {rfc} ")), "{name}");
    }
}
