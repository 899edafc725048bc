//! What a server may do, next to what it may not.

use super::super::super::frame::{flag, kind};
use super::rig::*;
use crate::exchange::{ConnectionState, Exchange, OpEvent, StreamEnd};
use knee_load::measure::Outcome;

const END: u8 = flag::END_STREAM;
const WHOLE: u8 = flag::END_HEADERS;

fn goaway(last: u32, code: u32) -> Vec<u8> {
    let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
    f(kind::GOAWAY, 0, 0, &payload)
}

fn reset(stream: u32, code: u32) -> Vec<u8> {
    f(kind::RST_STREAM, 0, stream, &code.to_be_bytes())
}

/// Operation 1 on stream 1, which the bytes are about, ends so. The events are the same however the
/// bytes are cut, and the connection goes on.
fn check(name: &str, request: usize, bytes: &[u8], end: Result<u16, Outcome>) {
    let mut first = None;
    for piece in [usize::MAX, 1, 5] {
        let mut rig = Rig::greeted();
        rig.begin(1, request);
        rig.begin(2, GET);
        rig.events.clear();
        for piece in bytes.chunks(piece) {
            rig.feed(piece);
        }
        let events = summed(&rig.events());
        assert!(!events.iter().any(|t| matches!(t, OpEvent::Violated(_))), "{name}: {events:?}");
        assert_eq!(end_of(&events, 1), Some(end), "{name}: {events:?}");
        rig.feed(&ok(3));
        assert_eq!(end_of(&rig.events(), 2), Some(Ok(200)), "{name}");
        assert_ne!(rig.http2.state(), ConnectionState::Broken, "{name}");
        assert_eq!(first.get_or_insert(events.clone()), &events, "{name}");
    }
}

#[test]
fn responses_framed_in_any_way() {
    let head = |fields: &[(&str, &str)]| headers(1, false, fields);
    let status = |status| headers(1, false, &[(":status", status)]);
    let padded = f(kind::DATA, flag::PADDED | END, 1, &[2, b'x', 0, 0]);
    let only_padding = f(kind::DATA, flag::PADDED | END, 1, &[2, 0, 0]);
    let priority = [&[0, 0, 0, 0, 1][..], &[0x88]].concat();
    let both = [&[1, 0, 0, 0, 0, 1][..], &[0x88, 0]].concat();
    let length = |n| [(":status", "200"), ("content-length", n)];
    for (name, request, frames, end) in [
        ("without content", GET, vec![ok(1)], Ok(200)),
        (
            "te of trailers alone",
            GET,
            vec![headers(1, true, &[(":status", "200"), ("te", "trailers")])],
            Ok(200),
        ),
        ("with content", GET, vec![status("200"), data(1, true, b"abc")], Ok(200)),
        (
            "ended by empty DATA",
            GET,
            vec![status("200"), data(1, false, b"abc"), data(1, true, b"")],
            Ok(200),
        ),
        ("padded", GET, vec![status("200"), padded], Ok(200)),
        ("padding alone", GET, vec![head(&length("0")), only_padding], Ok(200)),
        (
            "HEADERS with priority",
            GET,
            vec![f(kind::HEADERS, WHOLE | END | flag::PRIORITY, 1, &priority)],
            Ok(200),
        ),
        (
            "HEADERS with padding and priority",
            GET,
            vec![f(kind::HEADERS, WHOLE | END | flag::PRIORITY | flag::PADDED, 1, &both)],
            Ok(200),
        ),
        ("trailers", GET, vec![status("200"), headers(1, true, &[("a", "b")])], Ok(200)),
        (
            "empty trailers",
            GET,
            vec![status("200"), data(1, false, b"x"), headers(1, true, &[])],
            Ok(200),
        ),
    ] {
        check(name, request, &frames.concat(), end);
    }
}

#[test]
fn responses_with_unusual_heads() {
    let head = |fields: &[(&str, &str)]| headers(1, false, fields);
    let status = |status| headers(1, false, &[(":status", status)]);
    let length = |n| [(":status", "200"), ("content-length", n)];
    for (name, request, frames, end) in [
        ("interim ones", GET, vec![status("100"), status("103"), ok(1)], Ok(200)),
        (
            "an interim one with a length",
            GET,
            vec![head(&[(":status", "103"), ("content-length", "7")]), ok(1)],
            Ok(200),
        ),
        (
            "continued",
            GET,
            vec![
                f(kind::HEADERS, END, 1, b""),
                f(kind::CONTINUATION, 0, 1, &[0x88, 0x40, 1]),
                f(kind::CONTINUATION, WHOLE, 1, b"a\x01b"),
            ],
            Ok(200),
        ),
        ("the length announced", GET, vec![head(&length("2")), data(1, true, b"ab")], Ok(200)),
        (
            "the same length twice",
            GET,
            vec![
                head(&[(":status", "200"), ("content-length", "1"), ("content-length", "1")]),
                data(1, true, b"x"),
            ],
            Ok(200),
        ),
        ("a length of HEAD", HEAD, vec![headers(1, true, &length("9"))], Ok(200)),
        ("HEAD ended by empty DATA", HEAD, vec![head(&length("9")), data(1, true, b"")], Ok(200)),
        (
            "304 with a length",
            GET,
            vec![headers(1, true, &[(":status", "304"), ("content-length", "9")])],
            Ok(304),
        ),
        ("204", GET, vec![headers(1, true, &[(":status", "204")])], Ok(204)),
        ("999", GET, vec![headers(1, true, &[(":status", "999")])], Ok(999)),
        (
            "values with blanks and bytes beyond ASCII",
            GET,
            vec![headers(1, true, &[(":status", "200"), ("a", "b \t ä"), ("c", "")])],
            Ok(200),
        ),
        ("an error", GET, vec![headers(1, true, &[(":status", "503")])], Ok(503)),
    ] {
        check(name, request, &frames.concat(), end);
    }
}

#[test]
fn other_frames() {
    let update = |stream: u32, by: u32| f(kind::WINDOW_UPDATE, 0, stream, &by.to_be_bytes());
    let most = (1 << 31) - 1 - 65_535;
    for (name, frames, end) in [
        ("unknown", vec![f(0x77, 0xff, 9, b"abc"), ok(1)], Ok(200)),
        ("unknown, of 16,384 bytes", vec![f(0x77, 0, 0, &[0; 16_384]), ok(1)], Ok(200)),
        ("PRIORITY on any stream", vec![f(kind::PRIORITY, 0, 9, &[0; 5]), ok(1)], Ok(200)),
        ("PRIORITY of 4 bytes on none", vec![f(kind::PRIORITY, 0, 9, &[0; 4]), ok(1)], Ok(200)),
        ("PING answered", vec![f(kind::PING, 1, 0, &[0; 8]), ok(1)], Ok(200)),
        ("SETTINGS that mean nothing", vec![settings(&[(0x99, 1)]), ok(1)], Ok(200)),
        ("ENABLE_PUSH 0", vec![settings(&[(2, 0)]), ok(1)], Ok(200)),
        (
            "the largest values",
            vec![settings(&[(4, (1 << 31) - 1), (5, 0xff_ffff)]), ok(1)],
            Ok(200),
        ),
        ("a window up to 2^31-1", vec![update(0, most), update(1, most), ok(1)], Ok(200)),
        ("WINDOW_UPDATE after the end", vec![ok(1), update(1, 1), update(1, 0)], Ok(200)),
        ("RST_STREAM after the end", vec![ok(1), reset(1, 0), reset(1, 8)], Ok(200)),
        ("PRIORITY after the end", vec![ok(1), f(kind::PRIORITY, 0, 1, &[0; 5])], Ok(200)),
        ("RST_STREAM", vec![reset(1, 8)], Err(Outcome::StreamReset)),
        ("RST_STREAM with NO_ERROR", vec![reset(1, 0)], Err(Outcome::StreamReset)),
        ("RST_STREAM with an unknown code", vec![reset(1, 99)], Err(Outcome::StreamReset)),
        ("refused", vec![reset(1, 7)], Err(Outcome::RefusedStream)),
        (
            "RST_STREAM in the middle",
            vec![headers(1, false, &[(":status", "200")]), data(1, false, b"x"), reset(1, 2)],
            Err(Outcome::StreamReset),
        ),
        ("GOAWAY with all streams", vec![goaway(3, 0), ok(1)], Ok(200)),
        (
            "GOAWAY twice",
            vec![goaway((1 << 31) - 1, 0), goaway(3, 0), goaway(3, 0), ok(1)],
            Ok(200),
        ),
    ] {
        check(name, GET, &frames.concat(), end);
    }
}

/// The header block of the next request, after these SETTINGS, of a connection on which one was
/// sent.
fn block_after(entries: &[(u16, u32)]) -> Vec<u8> {
    let mut rig = Rig::greeted();
    rig.begin(1, GET);
    rig.sent();
    rig.feed(&settings(entries));
    rig.sent();
    rig.begin(2, GET);
    let sent = rig.sent();
    frames(&sent).remove(0).1
}

#[test]
fn least_table_size_on_the_way_is_signalled() {
    // RFC 7541 §4.2: the least, then the last, and what was in the table is sent in full.
    let block = block_after(&[(1, 0), (1, 4_096)]);
    assert!(block.starts_with(&[0x20, 0x3f, 0xe1, 0x1f]), "{block:x?}");
    assert!(block.len() > 10, "{block:x?}");
    let least = block_after(&[(1, 4_096), (1, 0), (1, 30)]);
    assert!(least.starts_with(&[0x20, 0x3e]), "{least:x?}");
    // A size that never changed is not signalled, nor one that only grew.
    for same in [&[][..], &[(1, 4_096)], &[(1, 5_000), (1, 4_096)]] {
        let block = block_after(same);
        assert!(block.iter().all(|byte| byte & 0x80 != 0), "{block:x?}");
    }
}

#[test]
fn goaway_tells_what_was_not_processed() {
    let mut rig = Rig::greeted();
    for op in 1..=3 {
        rig.begin(op, GET);
    }
    rig.events.clear();
    rig.feed(&goaway(3, 0));
    assert_eq!(rig.events(), [OpEvent::Unprocessed(3)]);
    assert_eq!(rig.http2.state(), ConnectionState::Closing);
    assert_eq!(rig.room().operations, 0);
    rig.feed(&[ok(1), ok(5), data(5, true, b"late")].concat());
    let events = rig.events();
    assert_eq!(
        (end_of(&events, 1), events.len()),
        (Some(Ok(200)), 2),
        "the late one means nothing"
    );
    rig.http2.ended(StreamEnd::Fin, &mut rig.events);
    assert_eq!(end_of(&rig.events(), 2), Some(Err(Outcome::Closed)));
}

#[test]
fn goaway_with_an_error_ends_all() {
    let mut rig = Rig::greeted();
    rig.begin(1, GET);
    rig.begin(2, GET);
    rig.events.clear();
    rig.feed(&goaway(1, 11));
    let events = rig.events();
    assert_eq!(end_of(&events, 1), Some(Err(Outcome::StreamReset)));
    assert_eq!(end_of(&events, 2), Some(Err(Outcome::Unprocessed)));
    assert_eq!((events.len(), rig.http2.state()), (3, ConnectionState::Broken));
}

#[test]
fn how_the_server_ended_a_stream_is_told() {
    let say = |code: u32, debug: &[u8]| {
        let payload = [&1_u32.to_be_bytes()[..], &code.to_be_bytes(), debug].concat();
        f(kind::GOAWAY, 0, 0, &payload)
    };
    let long = [b'x'; 5_000];
    let calm = "GOAWAY with ENHANCE_YOUR_CALM";
    for (bytes, words) in [
        (reset(1, 2), Some("RST_STREAM with INTERNAL_ERROR".to_owned())),
        (reset(1, 99), Some("RST_STREAM with error code 99".to_owned())),
        // An outcome of its own says that.
        (reset(1, 7), None),
        (say(11, b""), Some(calm.to_owned())),
        (say(11, b"too_many_pings"), Some(format!("{calm}: too_many_pings"))),
        (say(11, b"\x1b[2Ja\xff\0 "), Some(format!("{calm}: [2Ja\u{fffd}"))),
        (say(11, &long), Some(format!("{calm}: {}", "x".repeat(200)))),
        (goaway(1, 0), None),
    ] {
        let mut rig = Rig::greeted();
        rig.begin(1, GET);
        rig.feed(&bytes);
        let events = rig.events().into_iter();
        let how = events.filter_map(|event| match event {
            OpEvent::Reset(how) => Some(how),
            _ => None,
        });
        assert_eq!(how.collect::<Vec<_>>(), Vec::from_iter(words));
    }
    // Where nothing was under way, nothing was ended.
    let mut rig = Rig::greeted();
    rig.feed(&say(11, b"idle"));
    assert_eq!(rig.events(), []);
}

#[test]
fn the_end_of_the_connection() {
    let mut rig = Rig::greeted();
    for op in 1..=3 {
        rig.begin(op, GET);
    }
    rig.feed(&[ok(1), headers(3, false, &[(":status", "200")])].concat());
    rig.events.clear();
    rig.http2.ended(StreamEnd::Fin, &mut rig.events);
    let failed = |op, outcome| OpEvent::Failed { op, outcome };
    let want = [failed(2, Outcome::Truncated), failed(3, Outcome::Closed)];
    assert_eq!(rig.events(), want);
    // Part of a frame is part of a response.
    let mut rig = Rig::greeted();
    rig.begin(1, GET);
    rig.events.clear();
    rig.feed(&ok(1)[..9]);
    assert_eq!(rig.events(), [OpEvent::Received { op: 1, bytes: 9 }]);
    rig.http2.ended(StreamEnd::Fin, &mut rig.events);
    assert_eq!(rig.events(), [failed(1, Outcome::Truncated)]);
}

#[test]
fn bytes_are_those_of_the_frames_of_a_stream() {
    let mut rig = Rig::greeted();
    rig.begin(7, GET);
    rig.events.clear();
    let response = [
        headers(1, false, &[(":status", "100")]),
        headers(1, false, &[(":status", "200")]),
        data(1, false, &[0; 1000]),
        data(1, true, &[0; 10]),
    ]
    .concat();
    let others = [f(kind::PING, 0, 0, &[0; 8]), f(0x77, 0, 1, &[0; 50])].concat();
    rig.feed(&[response.clone(), others].concat());
    let bytes = response.len() as u64;
    let status = 200;
    assert_eq!(
        rig.events(),
        [OpEvent::Received { op: 7, bytes }, OpEvent::Answered { op: 7, status }]
    );
}
