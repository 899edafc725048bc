//! Broken rules of RFC 9114 and RFC 9204, each with what is told and what it ends.

use super::rig::{Path, Peer, Rig, control, data, frame_of, headers, ok_response, unknown_frame};
use super::*;
use crate::exchange::http3::frame::kind;

/// What a rule ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Stream,
    Connection,
}

/// What a server sends: on its streams of one direction, and as its response.
type Case = (&'static str, Vec<(Vec<u8>, bool)>, Vec<u8>, &'static str, Ends);

fn settings(payload: &[u8]) -> Vec<u8> {
    [&[0][..], &frame_of(kind::SETTINGS, payload)].concat()
}

/// The control stream with this behind its SETTINGS.
fn behind_settings(frame: Vec<u8>) -> Vec<(Vec<u8>, bool)> {
    vec![([control(), frame].concat(), false)]
}

fn on_control(bytes: Vec<u8>) -> Vec<(Vec<u8>, bool)> {
    vec![(bytes, false)]
}

fn with_control(stream: &[u8], ends: bool) -> Vec<(Vec<u8>, bool)> {
    vec![(control(), false), (stream.to_vec(), ends)]
}

fn cases() -> Vec<Case> {
    use Ends::{Connection, Stream};
    let fine = || vec![(control(), false)];
    let head = || headers(&[(":status", "200")]);
    let of_length = |length: &str| headers(&[(":status", "200"), ("content-length", length)]);
    let status = |status: &str| headers(&[(":status", status)]);
    let section = |bytes: &[u8]| frame_of(kind::HEADERS, bytes);
    let regular = |name: &str, value: &str| headers(&[(":status", "200"), (name, value)]);
    vec![
        // Messages
        (
            "no response",
            fine(),
            Vec::new(),
            "a stream ends without a response (RFC 9114 §4.1)",
            Stream,
        ),
        (
            "interim only",
            fine(),
            status("103"),
            "a stream ends without a response (RFC 9114 §4.1)",
            Stream,
        ),
        (
            "DATA first",
            fine(),
            data(b"x"),
            "DATA precedes the header section (RFC 9114 §4.1)",
            Connection,
        ),
        (
            "DATA behind an interim response",
            fine(),
            [status("100"), data(b"x")].concat(),
            "DATA precedes the header section (RFC 9114 §4.1)",
            Connection,
        ),
        (
            "DATA behind trailers",
            fine(),
            [head(), headers(&[("a", "b")]), data(b"x")].concat(),
            "a frame follows the trailers (RFC 9114 §4.1)",
            Connection,
        ),
        (
            "HEADERS behind trailers",
            fine(),
            [head(), headers(&[("a", "b")]), headers(&[("a", "b")])].concat(),
            "a frame follows the trailers (RFC 9114 §4.1)",
            Connection,
        ),
        (
            "short content",
            fine(),
            [of_length("3"), data(b"xx")].concat(),
            "content-length differs from the DATA received (RFC 9114 §4.1.2)",
            Stream,
        ),
        (
            "long content",
            fine(),
            [of_length("3"), data(b"xxxx")].concat(),
            "content-length differs from the DATA received (RFC 9114 §4.1.2)",
            Stream,
        ),
        (
            "content of 204",
            fine(),
            [status("204"), data(b"x")].concat(),
            "a response without content has DATA (RFC 9114 §4.1.2)",
            Stream,
        ),
        (
            "two lengths",
            fine(),
            headers(&[(":status", "200"), ("content-length", "3"), ("content-length", "4")]),
            "content-length is no number, or two differ (RFC 9114 §4.1.2)",
            Stream,
        ),
        (
            "no length",
            fine(),
            of_length("+3"),
            "content-length is no number, or two differ (RFC 9114 §4.1.2)",
            Stream,
        ),
        (
            "upper case",
            fine(),
            regular("Server", "a"),
            "a field name contains an upper-case letter (RFC 9114 §4.2)",
            Stream,
        ),
        (
            "blank in a name",
            fine(),
            regular("a b", "a"),
            "a field name contains an invalid character (RFC 9114 §4.2)",
            Stream,
        ),
        (
            "line end in a value",
            fine(),
            regular("a", "b\r\nc: d"),
            "a field value contains an invalid character (RFC 9114 §4.2)",
            Stream,
        ),
        (
            "field of a connection",
            fine(),
            regular("transfer-encoding", "chunked"),
            "a response has a connection-specific field (RFC 9114 §4.2)",
            Stream,
        ),
        (
            "te",
            fine(),
            regular("te", "gzip"),
            "a response has a connection-specific field (RFC 9114 §4.2)",
            Stream,
        ),
        (
            "no status",
            fine(),
            headers(&[("server", "a")]),
            "a response has no :status (RFC 9114 §4.3.2)",
            Stream,
        ),
        (
            "status of letters",
            fine(),
            status("abc"),
            ":status is not a number from 100 to 999 (RFC 9114 §4.3.2)",
            Stream,
        ),
        (
            "two statuses",
            fine(),
            headers(&[(":status", "200"), (":status", "200")]),
            "a response has more than one :status (RFC 9114 §4.3)",
            Stream,
        ),
        (
            "late status",
            fine(),
            headers(&[("server", "a"), (":status", "200")]),
            "a pseudo-header field follows a regular field (RFC 9114 §4.3)",
            Stream,
        ),
        (
            "unknown pseudo",
            fine(),
            headers(&[(":status", "200"), (":path", "/")]),
            "a response has an undefined pseudo-header field (RFC 9114 §4.3)",
            Stream,
        ),
        (
            "pseudo in trailers",
            fine(),
            [head(), headers(&[(":status", "200")])].concat(),
            "trailers contain a pseudo-header field (RFC 9114 §4.3)",
            Stream,
        ),
        (
            "101",
            fine(),
            status("101"),
            "status 101 does not exist in HTTP/3 (RFC 9114 §4.5)",
            Stream,
        ),
        (
            "interim flood",
            fine(),
            [status("102").repeat(101), head()].concat(),
            "a request has over 100 interim responses (RFC 9114 §10.5)",
            Stream,
        ),
        (
            "large section",
            fine(),
            section(&vec![0; 70_000]),
            "a field section exceeds 64 KiB (RFC 9114 §4.2.2)",
            Stream,
        ),
        (
            "large list",
            fine(),
            section(&[&[0, 0][..], &[0xD9; 2000]].concat()),
            "the header fields exceed 64 KiB (RFC 9114 §4.2.2)",
            Stream,
        ),
        // Frames
        (
            "cut frame",
            fine(),
            [head(), vec![0, 9, b'x']].concat(),
            "a stream ends within a frame (RFC 9114 §7.1)",
            Connection,
        ),
        (
            "cut head of a frame",
            fine(),
            [head(), vec![0x40]].concat(),
            "a stream ends within a frame (RFC 9114 §7.1)",
            Connection,
        ),
        (
            "SETTINGS on a request",
            fine(),
            frame_of(kind::SETTINGS, &[]),
            "a frame of the control stream comes on a request stream (RFC 9114 §7.2.4)",
            Connection,
        ),
        (
            "GOAWAY on a request",
            fine(),
            frame_of(kind::GOAWAY, &[0]),
            "a frame of the control stream comes on a request stream (RFC 9114 §7.2.4)",
            Connection,
        ),
        (
            "PUSH_PROMISE",
            fine(),
            frame_of(kind::PUSH_PROMISE, &[0, 0, 0]),
            "PUSH_PROMISE although push is off (RFC 9114 §7.2.5)",
            Connection,
        ),
        (
            "PING of HTTP/2",
            fine(),
            frame_of(6, &[0; 8]),
            "a frame has a type of HTTP/2 (RFC 9114 §7.2.8)",
            Connection,
        ),
        (
            "idle frames",
            fine(),
            [head(), data(b"").repeat(1001)].concat(),
            "over 1,000 frames in a row without content (RFC 9114 §10.5)",
            Connection,
        ),
        // Streams of the connection
        (
            "no SETTINGS",
            on_control([&[0][..], &frame_of(kind::GOAWAY, &[0])].concat()),
            ok_response(),
            "the control stream does not begin with SETTINGS (RFC 9114 §6.2.1)",
            Connection,
        ),
        (
            "unknown frame first",
            on_control([&[0][..], &unknown_frame()].concat()),
            ok_response(),
            "the control stream does not begin with SETTINGS (RFC 9114 §6.2.1)",
            Connection,
        ),
        (
            "two SETTINGS",
            behind_settings(frame_of(kind::SETTINGS, &[])),
            ok_response(),
            "a second SETTINGS frame (RFC 9114 §7.2.4)",
            Connection,
        ),
        (
            "a setting twice",
            on_control(settings(&[6, 1, 6, 1])),
            ok_response(),
            "a setting comes twice (RFC 9114 §7.2.4)",
            Connection,
        ),
        (
            "setting of HTTP/2",
            on_control(settings(&[4, 1])),
            ok_response(),
            "a setting is one of HTTP/2 (RFC 9114 §7.2.4.1)",
            Connection,
        ),
        (
            "cut setting",
            on_control(settings(&[6])),
            ok_response(),
            "the length of a frame is not that of its content (RFC 9114 §7.1)",
            Connection,
        ),
        (
            "large SETTINGS",
            on_control([&[0][..], &[4], &[0x80, 1, 0x11, 0x70]].concat()),
            ok_response(),
            "a control frame exceeds 64 KiB (RFC 9114 §10.5)",
            Connection,
        ),
        (
            "DATA on the control stream",
            behind_settings(data(b"x")),
            ok_response(),
            "a frame of a message comes on the control stream (RFC 9114 §7.2.1)",
            Connection,
        ),
        (
            "HEADERS on the control stream",
            behind_settings(head()),
            ok_response(),
            "a frame of a message comes on the control stream (RFC 9114 §7.2.1)",
            Connection,
        ),
        (
            "MAX_PUSH_ID",
            behind_settings(frame_of(kind::MAX_PUSH_ID, &[1])),
            ok_response(),
            "the server sends MAX_PUSH_ID (RFC 9114 §7.2.7)",
            Connection,
        ),
        (
            "CANCEL_PUSH",
            behind_settings(frame_of(kind::CANCEL_PUSH, &[1])),
            ok_response(),
            "CANCEL_PUSH names a push that was not promised (RFC 9114 §7.2.3)",
            Connection,
        ),
        (
            "GOAWAY of a stream of the server",
            behind_settings(frame_of(kind::GOAWAY, &[5])),
            ok_response(),
            "GOAWAY names no request stream (RFC 9114 §7.2.6)",
            Connection,
        ),
        (
            "long GOAWAY",
            behind_settings(frame_of(kind::GOAWAY, &[4, 0])),
            ok_response(),
            "the length of a frame is not that of its content (RFC 9114 §7.1)",
            Connection,
        ),
        (
            "rising GOAWAY",
            behind_settings([frame_of(kind::GOAWAY, &[4]), frame_of(kind::GOAWAY, &[8])].concat()),
            ok_response(),
            "GOAWAY names a later stream than the GOAWAY before (RFC 9114 §5.2)",
            Connection,
        ),
        (
            "two control streams",
            with_control(&control(), false),
            ok_response(),
            "a second control stream (RFC 9114 §6.2.1)",
            Connection,
        ),
        (
            "closed control stream",
            vec![(control(), true)],
            ok_response(),
            "the control stream or a QPACK stream was closed (RFC 9114 §6.2.1)",
            Connection,
        ),
        (
            "closed encoder stream",
            with_control(&[2], true),
            ok_response(),
            "the control stream or a QPACK stream was closed (RFC 9114 §6.2.1)",
            Connection,
        ),
        (
            "push stream",
            with_control(&[1, 0], false),
            ok_response(),
            "a push stream although push is off (RFC 9114 §6.2.2)",
            Connection,
        ),
        // QPACK
        (
            "two encoder streams",
            vec![(control(), false), (vec![2], false), (vec![2], false)],
            ok_response(),
            "a second QPACK stream of one type (RFC 9204 §4.2)",
            Connection,
        ),
        (
            "insertion",
            with_control(&[2, 0xC0, 0], false),
            ok_response(),
            "the encoder stream fills a dynamic table whose capacity is 0 (RFC 9204 §3.2.3)",
            Connection,
        ),
        (
            "acknowledgement",
            with_control(&[3, 0x80], false),
            ok_response(),
            "the decoder stream acknowledges entries that were never inserted (RFC 9204 §4.4)",
            Connection,
        ),
        (
            "insert count",
            fine(),
            section(&[2, 0, 0xD9]),
            "a field section needs a dynamic table whose capacity is 0 (RFC 9204 §2.2.3)",
            Connection,
        ),
        (
            "dynamic index",
            fine(),
            section(&[0, 0, 0x80]),
            "a field section needs a dynamic table whose capacity is 0 (RFC 9204 §2.2.3)",
            Connection,
        ),
        (
            "static index",
            fine(),
            section(&[0, 0, 0xFF, 36]),
            "a field section has an index without an entry (RFC 9204 §3.1)",
            Connection,
        ),
        (
            "negative base",
            fine(),
            section(&[0, 0x80]),
            "the base of a field section is below 0 (RFC 9204 §4.5.1.2)",
            Connection,
        ),
        (
            "cut section",
            fine(),
            section(&[0]),
            "a header block ends within a field (RFC 7541 §3.1)",
            Connection,
        ),
    ]
}

#[test]
fn each_broken_rule_is_told_and_ends_what_it_should() {
    for (name, uni, response, want, ends) in cases() {
        let mut rig = Rig::new(Peer { uni, response, ..Peer::default() }, Path::perfect());
        rig.ask(1, 0);
        rig.run_for(Nanos::from_secs(2));
        assert_eq!(rig.violations, [want], "{name}");
        let state = match ends {
            Ends::Stream => ConnectionState::Open,
            Ends::Connection => ConnectionState::Broken,
        };
        assert_eq!(rig.client.state(), state, "{name}");
        // Where the control stream breaks a rule first, no request has begun.
        assert!(rig.failed.iter().all(|outcome| *outcome == Outcome::Malformed), "{name}");
        if ends == Ends::Stream {
            assert_eq!(rig.failed, [Outcome::Malformed], "{name}");
            rig.ask(1, 0);
            rig.run_for(Nanos::from_secs(1));
            assert_eq!(rig.violations.len(), 2, "{name}: the next request is answered so too");
        }
    }
}

#[test]
fn unknown_streams_frames_and_settings_mean_nothing() {
    let uni = vec![
        (
            [&[0][..], &frame_of(kind::SETTINGS, &[0x21, 5, 7, 0, 1, 0x40, 0]), &unknown_frame()]
                .concat(),
            false,
        ),
        (vec![0x21, 1, 2, 3], true),
        (vec![0x40, 0x42], false),
        (vec![2, 0x20], false),
        (vec![3, 0x44], false),
    ];
    let mut rig = Rig::new(Peer { uni, ..Peer::default() }, Path::perfect());
    rig.ask(3, 0);
    rig.run();
    assert_eq!(rig.statuses().len(), 3);
    assert!(rig.violations.is_empty(), "{:?}", rig.violations);
}
