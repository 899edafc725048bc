//! Responses that break a rule: they fail alone, and the connection goes on.

use super::super::super::frame::{flag, kind};
use super::misbehaviour::{FLOW, PROTOCOL, Row, SIZE, check_stream, update};
use super::rig::*;

const END: u8 = flag::END_STREAM;
const WHOLE: u8 = flag::END_HEADERS;
const STATUS: &[(&str, &str)] = &[(":status", "200")];

#[test]
fn pseudo_header_fields_of_responses() {
    let one = |fields: &[(&str, &str)]| headers(1, true, fields);
    let with = |name: &str, value: &str| headers(1, true, &[(":status", "200"), (name, value)]);
    let rows: Vec<Row> = vec![
        ("no :status", "8.3.2", PROTOCOL, one(&[("a", "b")])),
        ("an empty block", "8.3.2", PROTOCOL, f(kind::HEADERS, WHOLE | END, 1, b"")),
        ("two :status", "8.3", PROTOCOL, with(":status", "200")),
        (":status of two digits", "8.3.2", PROTOCOL, one(&[(":status", "20")])),
        (":status below 100", "8.3.2", PROTOCOL, one(&[(":status", "099")])),
        (":status with a sign", "8.3.2", PROTOCOL, one(&[(":status", "+20")])),
        (":status with a phrase", "8.3.2", PROTOCOL, one(&[(":status", "200 OK")])),
        ("status 101", "8.6", PROTOCOL, headers(1, false, &[(":status", "101")])),
        ("100 that ends the stream", "8.1", PROTOCOL, one(&[(":status", "100")])),
        ("a pseudo-header field of requests", "8.3", PROTOCOL, with(":path", "/")),
        ("an unknown pseudo-header field", "8.3", PROTOCOL, with(":x", "")),
        ("a pseudo-header field too late", "8.3", PROTOCOL, one(&[("a", "b"), (":status", "200")])),
    ];
    for row in rows {
        check_stream(row, GET);
    }
}

#[test]
fn fields_that_responses_may_not_have() {
    let with = |name: &str, value: &str| headers(1, true, &[(":status", "200"), (name, value)]);
    let rows: Vec<Row> = vec![
        ("a name in upper case", "8.2.1", PROTOCOL, with("Server", "x")),
        ("a name with a blank", "8.2.1", PROTOCOL, with("a b", "x")),
        ("a name with a colon", "8.2.1", PROTOCOL, with("a:b", "x")),
        ("a name beyond ASCII", "8.2.1", PROTOCOL, with("ä", "x")),
        ("an empty name", "8.2.1", PROTOCOL, with("", "x")),
        ("a value with LF", "8.2.1", PROTOCOL, with("a", "b\nc")),
        ("a value with CR", "8.2.1", PROTOCOL, with("a", "b\rc")),
        ("a value with NUL", "8.2.1", PROTOCOL, with("a", "b\0c")),
        ("a value that begins with a blank", "8.2.1", PROTOCOL, with("a", " b")),
        ("a value that ends with a tab", "8.2.1", PROTOCOL, with("a", "b\t")),
        ("connection", "8.2.2", PROTOCOL, with("connection", "close")),
        ("keep-alive", "8.2.2", PROTOCOL, with("keep-alive", "5")),
        ("proxy-connection", "8.2.2", PROTOCOL, with("proxy-connection", "x")),
        ("transfer-encoding", "8.2.2", PROTOCOL, with("transfer-encoding", "chunked")),
        ("upgrade", "8.2.2", PROTOCOL, with("upgrade", "h2c")),
        ("te", "8.2.2", PROTOCOL, with("te", "trailers, deflate")),
        ("te in capitals", "8.2.2", PROTOCOL, with("te", "TRAILERS")),
        ("te of nothing", "8.2.2", PROTOCOL, with("te", "")),
        (
            "te of an interim response",
            "8.2.2",
            PROTOCOL,
            headers(1, false, &[(":status", "103"), ("te", "gzip")]),
        ),
        (
            "te among trailers",
            "8.2.2",
            PROTOCOL,
            [headers(1, false, STATUS), headers(1, true, &[("te", "gzip")])].concat(),
        ),
    ];
    for row in rows {
        check_stream(row, GET);
    }
}

#[test]
fn content_of_another_length() {
    let one = |fields: &[(&str, &str)]| headers(1, true, fields);
    let with = |name: &str, value: &str| headers(1, true, &[(":status", "200"), (name, value)]);
    let sized = |length| headers(1, false, &[(":status", "200"), ("content-length", length)]);
    let rows: Vec<Row> = vec![
        ("a length that is no number", "8.1.1", PROTOCOL, with("content-length", "+0")),
        (
            "a length beyond 64 bits",
            "8.1.1",
            PROTOCOL,
            with("content-length", "99999999999999999999"),
        ),
        (
            "two lengths",
            "8.1.1",
            PROTOCOL,
            one(&[(":status", "200"), ("content-length", "0"), ("content-length", "1")]),
        ),
        ("a length and no content", "8.1.1", PROTOCOL, with("content-length", "1")),
        ("too little", "8.1.1", PROTOCOL, [sized("3"), data(1, true, b"ab")].concat()),
        ("too much", "8.1.1", PROTOCOL, [sized("1"), data(1, true, b"ab")].concat()),
        ("too much, going on", "8.1.1", PROTOCOL, [sized("1"), data(1, false, b"ab")].concat()),
        (
            "too little before trailers",
            "8.1.1",
            PROTOCOL,
            [sized("3"), data(1, false, b"ab"), headers(1, true, &[("a", "b")])].concat(),
        ),
        ("DATA before HEADERS", "8.1", PROTOCOL, data(1, true, b"x")),
        (
            "DATA after 100",
            "8.1",
            PROTOCOL,
            [headers(1, false, &[(":status", "100")]), data(1, false, b"x")].concat(),
        ),
    ];
    for row in rows {
        check_stream(row, GET);
    }
}

#[test]
fn sections_and_frames_out_of_place() {
    let open = || headers(1, false, STATUS);
    let rows: Vec<Row> = vec![
        (
            "content of 204",
            "8.1.1",
            PROTOCOL,
            [headers(1, false, &[(":status", "204")]), data(1, true, b"x")].concat(),
        ),
        (
            "content of 304",
            "8.1.1",
            PROTOCOL,
            [headers(1, false, &[(":status", "304")]), data(1, true, b"x")].concat(),
        ),
        ("a second final response", "8.1", PROTOCOL, [open(), open()].concat()),
        (
            "100 after the final response",
            "8.1",
            PROTOCOL,
            [open(), headers(1, false, &[(":status", "100")])].concat(),
        ),
        (
            "trailers that do not end the stream",
            "8.1",
            PROTOCOL,
            [open(), headers(1, false, &[("a", "b")])].concat(),
        ),
        (":status among trailers", "8.1", PROTOCOL, [open(), ok(1)].concat()),
        (
            ":path among trailers",
            "8.1",
            PROTOCOL,
            [open(), headers(1, true, &[(":path", "/")])].concat(),
        ),
        (
            "upper case among trailers",
            "8.2.1",
            PROTOCOL,
            [open(), headers(1, true, &[("A", "b")])].concat(),
        ),
        ("WINDOW_UPDATE of 0 on a stream", "6.9", PROTOCOL, update(1, 0)),
        ("a stream's window over 2^31-1", "6.9.1", FLOW, update(1, (1 << 31) - 1)),
        ("PRIORITY of 4 bytes", "4.2", SIZE, f(kind::PRIORITY, 0, 1, &[0; 4])),
    ];
    for row in rows {
        check_stream(row, GET);
    }
    let content = [headers(1, false, STATUS), data(1, true, b"x")].concat();
    check_stream(("content of HEAD", "8.1.1", PROTOCOL, content), HEAD);
}
