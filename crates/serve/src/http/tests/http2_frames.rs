//! The server over HTTP/2, frame by frame: what it permits, and what it does not.

use super::*;
use knee_engine::exchange::http2::frame::{self, FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use knee_engine::exchange::http2::hpack::Encoder;
use knee_engine::exchange::http2::{ErrorCode, connection};

const FIELDS: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")];

/// A client that may do what it likes.
struct Client {
    stream: TcpStream,
    encoder: Encoder,
    out: Vec<u8>,
}

impl Client {
    /// One that has yet to send its preface and its settings.
    fn new(server: &HttpServer) -> Client {
        let mut out = PREFACE.to_vec();
        connection::put_settings(&mut out, &[]);
        Client { stream: connect(server), encoder: Encoder::default(), out }
    }

    fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            self.encoder.encode(name.as_bytes(), value.as_bytes(), &mut block);
        }
        block
    }

    fn headers(&mut self, id: u32, ends: bool, fields: &[(&str, &str)]) -> &mut Client {
        let block = self.block(fields);
        frame::put_headers(&mut self.out, id, ends, &block, 16_384);
        self
    }

    fn frame(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) -> &mut Client {
        frame::put(&mut self.out, kind, flags, id, payload);
        self
    }

    fn send(&mut self) {
        let out = std::mem::take(&mut self.out);
        self.stream.write_all(&out).unwrap();
    }

    /// The next frame; `None` at the end.
    fn next(&mut self) -> Option<(FrameHead, Vec<u8>)> {
        let mut head = [0; HEAD_BYTES];
        self.stream.read_exact(&mut head).ok()?;
        let (head, _) = FrameHead::read(&head).unwrap();
        let mut payload = vec![0; head.length as usize];
        self.stream.read_exact(&mut payload).ok()?;
        Some((head, payload))
    }

    /// The payload of the next frame of this kind, all others passed over.
    fn await_kind(&mut self, kind: u8) -> Option<(FrameHead, Vec<u8>)> {
        loop {
            let next = self.next()?;
            if next.0.kind == kind {
                return Some(next);
            }
        }
    }

    /// All bytes of the body of the stream, which has to end well.
    fn body(&mut self, id: u32) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let (head, payload) = self.next().expect("the rest of the response");
            assert!(head.kind != kind::RST_STREAM && head.kind != kind::GOAWAY);
            if head.stream == id && head.kind == kind::DATA {
                body.extend(payload);
                if head.has(flag::END_STREAM) {
                    return body;
                }
            }
        }
    }
}

fn code(payload: &[u8]) -> ErrorCode {
    let (_, code) = payload.split_last_chunk::<4>().unwrap();
    ErrorCode(u32::from_be_bytes(*code))
}

#[test]
fn a_request_may_be_split_at_any_byte() {
    let server = start(spec()).unwrap();
    let whole = Client::new(&server).headers(1, true, &FIELDS).out.clone();
    for cut in 1..whole.len() {
        let mut client = Client::new(&server);
        client.stream.write_all(&whole[..cut]).unwrap();
        if cut % 8 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        client.stream.write_all(&whole[cut..]).unwrap();
        assert_eq!(client.body(1).len(), 100, "cut at {cut}");
    }
    let stats = server.stop();
    assert_eq!(stats.responses, whole.len() as u64 - 1);
    assert!(stats.errors.is_empty(), "{:?}", stats.errors);
}

#[test]
fn what_is_unusual_but_permitted() {
    let server = start(spec()).unwrap();
    let mut client = Client::new(&server);
    // PING, an unknown frame, PRIORITY, padding, trailers, a block in pieces, an empty DATA frame.
    client.frame(kind::PING, 0, 0, b"01234567");
    client.frame(0xfa, 0xff, 77, b"whatever");
    client.frame(kind::PRIORITY, 0, 9, &[0, 0, 0, 0, 1]);
    let mut padded = vec![3, 0, 0, 0, 0, 7];
    padded.extend(client.block(&FIELDS));
    padded.extend([0; 3]);
    let flags = flag::PADDED | flag::PRIORITY | flag::END_HEADERS;
    client.frame(kind::HEADERS, flags, 1, &padded);
    client.frame(kind::DATA, flag::PADDED, 1, b"\x02abc\0\0");
    client.frame(kind::DATA, 0, 1, b"");
    client.headers(1, true, &[("x-checksum", "7")]);
    let block = client.block(&FIELDS);
    client.frame(kind::HEADERS, flag::END_STREAM, 3, &block[..1]);
    client.frame(kind::CONTINUATION, 0, 3, &block[1..2]);
    client.frame(kind::CONTINUATION, flag::END_HEADERS, 3, &block[2..]);
    client.send();
    let (head, payload) = client.await_kind(kind::PING).unwrap();
    assert!(head.has(flag::ACK) && payload == b"01234567");
    assert_eq!(client.body(1).len(), 100);
    assert_eq!(client.body(3).len(), 100);
    let expect = [("expect", "100-continue"), ("content-length", "2")];
    client.headers(5, false, &[&FIELDS[..], &expect].concat());
    client.send();
    let (head, _) = client.await_kind(kind::HEADERS).unwrap();
    assert!(head.stream == 5 && !head.has(flag::END_STREAM), "{head:?}");
    client.frame(kind::DATA, flag::END_STREAM, 5, b"ab").send();
    assert_eq!(client.body(5).len(), 100);
    let stats = server.stop();
    assert_eq!((stats.requests, stats.responses), (3, 3));
    assert!(stats.errors.is_empty(), "{:?}", stats.errors);
}

#[test]
fn windows_hold_bodies_back_and_streams_take_turns() {
    let server = start(HttpServerSpec { body_size: 30_000, ..spec() }).unwrap();
    let mut client = Client::new(&server);
    client.out = PREFACE.to_vec();
    connection::put_settings(&mut client.out, &[(connection::id::INITIAL_WINDOW_SIZE, 10)]);
    client.headers(1, true, &FIELDS).headers(3, true, &FIELDS);
    client.send();
    for _ in 0..2 {
        let (head, payload) = client.await_kind(kind::DATA).unwrap();
        assert!(payload.len() == 10 && !head.has(flag::END_STREAM));
    }
    // A larger window for all, by settings; then for one alone.
    connection::put_settings(&mut client.out, &[(connection::id::INITIAL_WINDOW_SIZE, 20_000)]);
    client.send();
    let mut order = Vec::new();
    for _ in 0..4 {
        let (head, payload) = client.await_kind(kind::DATA).unwrap();
        order.push((head.stream, payload.len()));
    }
    order.sort_unstable();
    assert_eq!(order, [(1, 3_606), (1, 16_384), (3, 3_606), (3, 16_384)]);
    frame::put_window_update(&mut client.out, 3, 10_000);
    client.send();
    assert_eq!(client.body(3).len(), 10_000);
    client.frame(kind::RST_STREAM, 0, 1, &8_u32.to_be_bytes()).send();
    client.headers(5, true, &FIELDS).send();
    frame::put_window_update(&mut client.out, 5, 10_000);
    frame::put_window_update(&mut client.out, 0, 20_000);
    client.send();
    assert_eq!(client.body(5).len(), 30_000);
    let stats = server.stop();
    assert_eq!((stats.requests, stats.responses), (3, 2));
    assert_eq!(stats.http2.unwrap().reset_by_clients, 1);
}

#[test]
fn streams_beyond_the_limit_are_refused_alone() {
    let streams_max = 2;
    let spec = HttpServerSpec { streams_max, ..with_station(4, 50) };
    let server = start(spec).unwrap();
    let mut client = Client::new(&server);
    for id in [1, 3, 5] {
        client.headers(id, true, &FIELDS);
    }
    client.send();
    let (head, payload) = client.await_kind(kind::RST_STREAM).unwrap();
    assert_eq!((head.stream, code(&payload)), (5, ErrorCode::REFUSED_STREAM));
    assert_eq!((client.body(1).len(), client.body(3).len()), (100, 100));
    let stats = server.stop();
    assert_eq!((stats.requests, stats.http2.unwrap().refused), (2, 1));
}

#[test]
fn a_stream_that_breaks_a_rule_ends_alone() {
    let server = start(spec()).unwrap();
    let mut client = Client::new(&server);
    client.headers(1, true, &FIELDS[1..]);
    client.headers(3, true, &[&FIELDS[..], &[("content-length", "4")]].concat());
    client.headers(5, false, &FIELDS).headers(5, false, &[("x", "y")]);
    client.headers(7, false, &FIELDS);
    frame::put_window_update(&mut client.out, 7, 0);
    client.headers(9, true, &FIELDS);
    client.send();
    for id in [1, 3, 5, 7] {
        let (head, payload) = client.await_kind(kind::RST_STREAM).unwrap();
        assert_eq!((head.stream, code(&payload)), (id, ErrorCode::PROTOCOL_ERROR));
    }
    assert_eq!(client.body(9).len(), 100);
    let stats = server.stop();
    assert_eq!((stats.requests, stats.errors["malformed"]), (1, 4));
}

#[test]
fn a_connection_that_breaks_a_rule_is_told_which_and_closed() {
    let server = start(spec()).unwrap();
    let (protocol, size) = (ErrorCode::PROTOCOL_ERROR, ErrorCode::FRAME_SIZE_ERROR);
    let cases: [(u8, u8, u32, &[u8], ErrorCode); 15] = [
        (kind::DATA, 0, 0, b"", protocol),
        (kind::DATA, 0, 1, b"", protocol),
        (kind::HEADERS, 0, 2, b"", protocol),
        (kind::HEADERS, flag::END_HEADERS, 1, b"\xff\xff\xff", ErrorCode::COMPRESSION_ERROR),
        (kind::HEADERS, flag::PADDED, 1, b"\x09abc", protocol),
        (kind::PRIORITY, 0, 1, b"", size),
        (kind::RST_STREAM, 0, 1, &[0; 4], protocol),
        (kind::SETTINGS, 0, 0, &[0; 5], size),
        (kind::SETTINGS, 0, 1, &[], protocol),
        (kind::SETTINGS, 0, 0, &[0, 4, 0xff, 0, 0, 0], ErrorCode::FLOW_CONTROL_ERROR),
        (kind::PUSH_PROMISE, 0, 1, &[0; 4], protocol),
        (kind::PING, 0, 0, &[0; 7], size),
        (kind::GOAWAY, 0, 0, &[0; 7], size),
        (kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff], ErrorCode::FLOW_CONTROL_ERROR),
        (kind::CONTINUATION, 0, 1, b"", protocol),
    ];
    for (kind, flags, id, payload, expected) in cases {
        let mut client = Client::new(&server);
        client.frame(kind, flags, id, payload).send();
        let (_, told) = client.await_kind(kind::GOAWAY).expect("it is told");
        let told = u32::from_be_bytes(told[4..8].try_into().unwrap());
        assert_eq!(ErrorCode(told), expected, "kind {kind}, {payload:?}");
        client.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.next(), None, "it is closed");
    }
    let stats = server.stop();
    assert_eq!(stats.errors["malformed"], cases.len() as u64);
    assert_eq!(stats.requests, 0);
}

#[test]
fn what_begins_as_http2_and_is_none_is_neither() {
    let server = start(spec()).unwrap();
    let mut stream = connect(&server);
    stream.write_all(&PREFACE[..20]).unwrap();
    stream.write_all(b"XX\r\n\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(read_to_end(&mut stream).starts_with(b"HTTP/1.1 505 "));
    let mut cut = connect(&server);
    cut.write_all(&PREFACE[..20]).unwrap();
    cut.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut cut), b"");
    let stats = server.stop();
    assert_eq!((stats.errors["version"], stats.errors["incomplete"]), (1, 1));
    assert_eq!(stats.http2, None);
}

#[test]
fn a_client_that_ends_early_still_gets_what_it_asked_for() {
    let server = start(with_station(1, 20)).unwrap();
    let mut client = Client::new(&server);
    client.headers(1, true, &FIELDS).headers(3, false, &FIELDS);
    client.send();
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.body(1).len(), 100);
    assert_eq!(client.next(), None);
    let stats = server.stop();
    assert_eq!((stats.requests, stats.responses), (1, 1));
    assert_eq!(stats.errors["incomplete"], 1);
}

#[test]
fn endless_pings_of_a_client_that_does_not_read_stay_unread() {
    let server = start(spec()).unwrap();
    let mut client = Client::new(&server);
    client.send();
    client.stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut pings = Vec::new();
    (0..10_000).for_each(|_| frame::put(&mut pings, kind::PING, 0, 0, &[7; 8]));
    // The buffers of both sockets fill up, then nothing more is taken.
    let mut taken = 0;
    while client.stream.write_all(&pings).is_ok() {
        taken += pings.len();
        assert!(taken < 200 << 20, "all of it is kept somewhere");
    }
    let mut other = connect(&server);
    get_ok(&mut other);
    drop(client);
    assert_eq!(server.stop().responses, 1);
}

#[test]
fn client_that_does_not_read_its_messages_loses_its_call() {
    let reflect = |_: &[u8]| None;
    let server = start(HttpServerSpec { reflect: Some(reflect), ..spec() }).unwrap();
    let mut client = Client::new(&server);
    let talk = FIELDS.map(|(name, value)| match name {
        ":method" => (name, "POST"),
        ":path" => (name, "/knee.Echo/Talk"),
        _ => (name, value),
    });
    client.headers(1, false, &talk).send();
    // A message of 16,000 bytes, of which the windows let a few come back.
    let mut message = vec![0, 0, 0, 0x3E, 0x80, 0x0a, 0xfd, 0x7c];
    message.resize(5 + 16_000, b'x');
    for _ in 0..2 * (16 << 20) / message.len() {
        client.frame(kind::DATA, 0, 1, &message).send();
    }
    let (head, payload) = client.await_kind(kind::RST_STREAM).unwrap();
    assert_eq!((head.stream, code(&payload)), (1, ErrorCode::ENHANCE_YOUR_CALM));
    // Others go on.
    client.frame(kind::PING, 0, 0, b"01234567").send();
    assert!(client.await_kind(kind::PING).is_some());
}
