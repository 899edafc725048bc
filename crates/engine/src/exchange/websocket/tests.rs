use super::*;
use crate::exchange::websocket::frame::{self, put};
use crate::exchange::{EventQueue, Outbox};
use knee_load::spec::{HttpRequest, Pick, Protocol, Url};
use tungstenite::protocol::{Role, WebSocketContext};

/// A connection whose server is the test.
struct Rig {
    socket: WebSocket,
    shared: WebSocketShared,
    out: Outbox,
    events: EventQueue,
    now: Nanos,
}

fn settings(matching: Matching) -> WebSocketSettings {
    WebSocketSettings {
        matching,
        messages_max: 8,
        is_binary: false,
        ping_every: Some(Nanos::from_secs(5)),
        message_bytes_max: 1 << 20,
        subscribes: false,
    }
}

impl Rig {
    fn new(matching: Matching, content: &str) -> Rig {
        Rig::with(matching, content, &[])
    }

    fn with(matching: Matching, content: &str, headers: &[(&str, &str)]) -> Rig {
        let url = Url::parse("ws://h:81/chat").unwrap();
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let content = content.as_bytes().to_vec();
        let request = HttpRequest::new("GET", &url, headers.collect(), content, 1);
        let endpoint = url.endpoint().clone();
        let mut target =
            Target::new(endpoint, vec![request.unwrap()], Pick::InOrder, true).unwrap();
        let settings = settings(matching);
        target.protocol = Protocol::WebSocket(settings);
        let mut shared = WebSocketShared::new(&target, &settings, Nanos::from_secs(2), (1, 0));
        let (mut out, mut events) = (Outbox::default(), EventQueue::default());
        let now = Nanos::from_secs(1);
        let socket = WebSocket::established(&mut CallContext {
            now,
            shared: &mut shared,
            out: &mut out,
            events: &mut events,
        });
        Rig { socket, shared, out, events, now }
    }

    /// The same, upgraded, which sends nothing and takes what the server sends.
    fn subscribed() -> Rig {
        let mut rig = Rig::open(Matching::None, "x");
        rig.shared.settings.subscribes = true;
        rig.shared.epoch_ns = 1_800_000_000_000_000_000;
        rig
    }

    /// The same, upgraded.
    fn open(matching: Matching, content: &str) -> Rig {
        let mut rig = Rig::new(matching, content);
        let answer = rig.answer("");
        assert_eq!(rig.capacity(), 0);
        rig.receive(&answer);
        assert_eq!(rig.told(), [OpEvent::Opened]);
        assert_eq!(rig.capacity(), 8);
        rig
    }

    /// The answer to the handshake, with further lines.
    fn answer(&mut self, lines: &str) -> Vec<u8> {
        let asked = handshake::read_request(&self.sent());
        let handshake::UpgradeRequest::Upgrade(_, answer) = asked else {
            panic!("{asked:?}");
        };
        let answer = String::from_utf8(answer).unwrap();
        answer.replace("\r\n\r\n", &format!("\r\n{lines}\r\n")).into_bytes()
    }

    /// One that offered to compress, upgraded by an answer with these parameters.
    fn compressed(parameters: &str) -> Rig {
        let offer = ("Sec-WebSocket-Extensions", "permessage-deflate");
        let mut rig = Rig::with(Matching::Number, "a {seq} a a a a a a a", &[offer]);
        let line = format!("Sec-WebSocket-Extensions: permessage-deflate{parameters}\r\n");
        let answer = rig.answer(&line);
        rig.receive(&answer);
        assert_eq!(rig.told(), [OpEvent::Opened]);
        rig
    }

    fn call(&mut self) -> (&mut WebSocket, CallContext<'_, WebSocketShared>) {
        let Rig { socket, shared, out, events, now } = self;
        (socket, CallContext { now: *now, shared, out, events })
    }

    fn capacity(&self) -> u32 {
        self.socket.capacity(&self.shared).operations
    }

    fn start(&mut self, op: FlightId) {
        let (socket, mut cx) = self.call();
        socket.start(op, 0.into(), &mut cx);
    }

    fn receive(&mut self, bytes: &[u8]) {
        let (socket, mut cx) = self.call();
        let at = cx.now;
        socket.receive(Received { bytes, at }, &mut cx);
    }

    fn handle_timeout(&mut self) {
        let (socket, mut cx) = self.call();
        socket.handle_timeout(&mut cx);
    }

    /// What the backend gets of the outbox.
    fn sent(&mut self) -> Vec<u8> {
        std::mem::take(self.out.bytes())
    }

    /// The kernel has taken what the backend got.
    fn taken(&mut self) {
        let (socket, mut cx) = self.call();
        socket.sent(&mut cx);
    }

    /// What was told but for bytes and written messages.
    fn told(&mut self) -> Vec<OpEvent> {
        let mut events = std::mem::take(&mut *self.events);
        let is_other = |event: &OpEvent| {
            let of_bytes = matches!(event, OpEvent::Received { .. } | OpEvent::Resized { .. });
            !of_bytes && !matches!(event, OpEvent::Written(_))
        };
        events.retain(is_other);
        events
    }
}

/// The items that a server reads.
fn server_reads(mut bytes: &[u8]) -> Vec<(MessageItem, String)> {
    let mut reader = MessageReader::new(ReaderSide::Server, 1 << 20);
    let mut all = Vec::new();
    while let Some(item) = reader.read(&mut bytes).unwrap() {
        let payload = match item {
            MessageItem::Message { .. } => reader.payload(),
            _ => reader.control(),
        };
        all.push((item, String::from_utf8_lossy(payload).into_owned()));
    }
    all
}

fn text(payload: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, opcode::TEXT, true, None, payload.as_bytes());
    out
}

fn answered(op: FlightId) -> OpEvent {
    OpEvent::Answered { op, status: Status::Message }
}

#[test]
fn farewell_is_sent_once_and_only_when_open() {
    let mut opening = Rig::new(Matching::Number, "x");
    opening.sent();
    let (socket, mut cx) = opening.call();
    socket.close(&mut cx);
    assert!(opening.sent().is_empty());

    let mut rig = Rig::open(Matching::Number, "x");
    for _ in 0..2 {
        let (socket, mut cx) = rig.call();
        socket.close(&mut cx);
    }
    assert_eq!(rig.capacity(), 0);
    let sent = rig.sent();
    let mut server = MessageReader::new(ReaderSide::Server, 100);
    let mut rest = sent.as_slice();
    assert_eq!(server.read(&mut rest), Ok(Some(MessageItem::Close(close_code::NORMAL))));
    assert!(rest.is_empty());
}

#[test]
fn echoes_are_matched_by_number_in_any_order() {
    let mut rig = Rig::open(Matching::Number, "a");
    (0..3).for_each(|op| rig.start(op));
    let sent: Vec<_> = server_reads(&rig.sent()).into_iter().map(|(_, text)| text).collect();
    assert_eq!(sent, ["a knee-0000000000", "a knee-0000000001", "a knee-0000000002"]);
    rig.receive(&text(&format!("you said {}", sent[2])));
    rig.receive(&text("news for all"));
    rig.receive(&text(&sent[0]));
    assert_eq!(rig.told(), [answered(2), answered(0)]);
    assert_eq!(rig.capacity(), 7);
    let (socket, mut cx) = rig.call();
    assert_eq!(socket.cancel(1, &mut cx), AfterCancel::GoesOn);
    rig.receive(&text(&sent[1]));
    assert_eq!(rig.told(), []);
    assert_eq!(rig.socket.state(), ConnectionState::Open);
}

#[test]
fn echoes_in_order_are_whatever_comes_and_no_more() {
    let mut rig = Rig::open(Matching::Order, "a");
    (0..2).for_each(|op| rig.start(op));
    rig.receive(&[text("x"), text("y"), text("z")].concat());
    assert_eq!(rig.told(), [answered(0), answered(1), OpEvent::Unmatched]);
    // A greeting asks for nothing either: the connection goes on.
    assert_eq!(rig.socket.state(), ConnectionState::Open);
    rig.start(2);
    let (socket, mut cx) = rig.call();
    assert_eq!(socket.cancel(2, &mut cx), AfterCancel::Broken);
}

#[test]
fn a_message_without_echo_ends_with_the_kernel() {
    let mut rig = Rig::open(Matching::None, "a");
    let mut ping = Vec::new();
    put(&mut ping, opcode::PING, true, None, b"abc");
    // With and without a frame that is no message before the next one.
    for between in [b"", &ping[..]] {
        rig.start(0);
        rig.handle_timeout();
        assert_eq!(rig.told(), [], "the outbox has it");
        rig.sent();
        rig.receive(between);
        (1..3).for_each(|op| rig.start(op));
        rig.handle_timeout();
        assert_eq!(rig.told(), [], "the backend has it");
        for ended in [&[answered(0)][..], &[answered(1), answered(2)]] {
            rig.taken();
            assert!(rig.socket.poll_timeout() <= rig.now, "in the next pass");
            rig.handle_timeout();
            assert_eq!(rig.told(), ended);
            assert!(rig.socket.poll_timeout() > rig.now + Nanos::from_secs(1));
            rig.sent();
        }
    }
}

#[test]
fn flood_of_pings_to_a_full_outbox_is_answered_once() {
    let mut rig = Rig::open(Matching::Number, "a");
    let (mut ping, mut last) = (Vec::new(), Vec::new());
    put(&mut ping, opcode::PING, true, None, &[b'p'; 125]);
    put(&mut last, opcode::PING, true, None, b"last");
    for _ in 0..100_000 {
        rig.receive(&ping);
    }
    rig.receive(&last);
    assert!(rig.out.bytes().len() < 1024);
    assert_eq!(server_reads(&rig.sent()), [(MessageItem::Pong, "p".repeat(125))]);
    rig.taken();
    assert_eq!(server_reads(&rig.sent()), [(MessageItem::Pong, "last".to_owned())]);
    rig.taken();
    assert_eq!(rig.sent(), b"", "each is answered once");
    // One that comes then is answered at once.
    rig.receive(&ping);
    assert_eq!(server_reads(&rig.sent()), [(MessageItem::Pong, "p".repeat(125))]);
}

#[test]
fn pings_are_answered_and_asked() {
    let mut rig = Rig::open(Matching::Number, "a");
    let mut ping = Vec::new();
    put(&mut ping, opcode::PING, true, None, b"abc");
    rig.receive(&ping);
    assert_eq!(server_reads(&rig.sent()), [(MessageItem::Pong, "abc".to_owned())]);
    rig.now = rig.socket.poll_timeout();
    rig.handle_timeout();
    assert_eq!(server_reads(&rig.sent()), [(MessageItem::Ping, "knee".to_owned())]);
    let mut pong = Vec::new();
    put(&mut pong, opcode::PONG, true, None, b"knee");
    rig.receive(&pong);
    rig.now = rig.socket.poll_timeout();
    rig.handle_timeout();
    assert_eq!(rig.socket.state(), ConnectionState::Open);
    rig.start(4);
    rig.now = rig.socket.poll_timeout();
    rig.handle_timeout();
    assert_eq!(rig.told(), [OpEvent::Failed { op: 4, outcome: Outcome::Timeout }]);
    assert_eq!(rig.socket.state(), ConnectionState::Broken);
}

#[test]
fn a_close_is_answered_and_ends_what_is_under_way() {
    let mut rig = Rig::open(Matching::Number, "a");
    rig.start(0);
    rig.sent();
    let mut close = Vec::new();
    frame::put_close(&mut close, 1011, None);
    rig.receive(&close);
    let status = Status::WebSocketClose(1011);
    assert_eq!(rig.told(), [OpEvent::Answered { op: 0, status }]);
    assert_eq!(server_reads(&rig.sent())[0].0, MessageItem::Close(1011));
    assert_eq!(rig.socket.state(), ConnectionState::Closing);
    let mut cut = Rig::open(Matching::Number, "a");
    cut.start(0);
    let (socket, mut cx) = cut.call();
    socket.ended(StreamEnd::Fin, &mut cx);
    let status = Status::WebSocketClose(1006);
    assert_eq!(cut.told(), [OpEvent::Answered { op: 0, status }]);
}

#[test]
fn a_broken_rule_is_named_and_closes_the_connection() {
    let mut rig = Rig::open(Matching::Number, "a");
    rig.start(0);
    rig.sent();
    rig.receive(b"\x81\x01\xFF");
    let failed = OpEvent::Failed { op: 0, outcome: Outcome::Malformed };
    let violated = OpEvent::Violated(WebSocketViolation::NotUtf8.to_string());
    assert_eq!(rig.told(), [failed, violated]);
    assert_eq!(server_reads(&rig.sent())[0].0, MessageItem::Close(1007));
    assert_eq!(rig.socket.state(), ConnectionState::Broken);
}

#[test]
fn a_server_that_does_not_upgrade_ends_one_operation() {
    for (answer, outcome) in [
        ("HTTP/1.1 503 Busy\r\n\r\n", Outcome::HTTP_5XX),
        ("HTTP/1.1 404 No\r\n\r\n", Outcome::HTTP_4XX),
        ("HTTP/1.1 200 OK\r\n\r\n", Outcome::Malformed),
        ("SSH-2.0", Outcome::Malformed),
    ] {
        let mut rig = Rig::new(Matching::Number, "a");
        rig.receive(answer.as_bytes());
        assert_eq!(rig.told()[0], OpEvent::NotOpened(outcome), "{answer}");
        assert_eq!(rig.socket.state(), ConnectionState::Broken);
    }
    let mut late = Rig::new(Matching::Number, "a");
    late.now = late.socket.poll_timeout();
    late.handle_timeout();
    assert_eq!(late.told(), [OpEvent::NotOpened(Outcome::HandshakeTimeout)]);
    let mut gone = Rig::new(Matching::Number, "a");
    let (socket, mut cx) = gone.call();
    socket.ended(StreamEnd::Fin, &mut cx);
    assert_eq!(gone.told(), [OpEvent::NotOpened(Outcome::Closed)]);
}

#[test]
fn interim_responses_come_before_the_upgrade() {
    for (before, piece) in [(1, 1), (1, 1000), (2, 7), (100, 1000)] {
        let mut rig = Rig::new(Matching::Number, "a");
        let interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(before);
        let answer = [interim, rig.answer(""), text("news")].concat();
        answer.chunks(piece).for_each(|piece| rig.receive(piece));
        assert_eq!(rig.told(), [OpEvent::Opened], "{before} in pieces of {piece}");
        assert_eq!(rig.capacity(), 8);
    }
    let mut endless = Rig::new(Matching::Number, "a");
    endless.receive(&b"HTTP/1.1 100 Continue\r\n\r\n".repeat(101));
    assert_eq!(endless.told()[0], OpEvent::NotOpened(Outcome::Malformed));
    let mut refused = Rig::new(Matching::Number, "a");
    refused.receive(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 403 No\r\n\r\n");
    assert_eq!(refused.told()[0], OpEvent::NotOpened(Outcome::HTTP_4XX));
}

/// A frame as a server compresses it.
fn compressed_frame(deflater: &mut MessageDeflater, payload: &[u8]) -> Vec<u8> {
    let (mut out, mut compressed) = (Vec::new(), Vec::new());
    deflater.deflate(payload, &mut compressed);
    put(&mut out, opcode::TEXT | COMPRESSED, true, None, &compressed);
    out
}

#[test]
fn messages_are_compressed_in_both_directions() {
    for (parameters, client_resets, server_resets) in [
        ("", false, false),
        ("; client_no_context_takeover", true, false),
        ("; server_no_context_takeover", false, true),
        ("; server_no_context_takeover; client_no_context_takeover", true, true),
        ("; server_max_window_bits=9", false, false),
    ] {
        let mut rig = Rig::compressed(parameters);
        let mut server = MessageReader::new(ReaderSide::Server, 1 << 20);
        server.inflate_with(MessageInflater::new(client_resets));
        let mut deflater = MessageDeflater::new(server_resets);
        let mut lengths = Vec::new();
        for op in 0..4 {
            rig.start(op);
            let sent = rig.sent();
            lengths.push(sent.len());
            let item = server.read(&mut &sent[..]);
            assert_eq!(item, Ok(Some(MessageItem::Message { is_text: true })));
            let echo = server.payload().to_vec();
            assert_eq!(echo, format!("a knee-000000000{op} a a a a a a a").into_bytes());
            let mut frame = compressed_frame(&mut deflater, &echo);
            if op == 2 {
                // A message that is not compressed may come between.
                frame = text(std::str::from_utf8(&echo).unwrap());
            }
            frame.chunks(3).for_each(|piece| rig.receive(piece));
            assert_eq!(rig.told(), [answered(op)], "{parameters}");
        }
        assert_eq!(lengths[3] < lengths[0], !client_resets, "{parameters}: {lengths:?}");
    }
}

#[test]
fn fragments_of_a_compressed_message_are_one() {
    let mut rig = Rig::compressed("");
    rig.start(0);
    let mut compressed = Vec::new();
    MessageDeflater::new(false).deflate(b"knee-0000000000, compressed", &mut compressed);
    let (first, second) = compressed.split_at(5);
    let mut frames = Vec::new();
    put(&mut frames, opcode::TEXT | COMPRESSED, false, None, first);
    put(&mut frames, opcode::PING, true, None, b"between");
    put(&mut frames, opcode::CONTINUATION, true, None, second);
    rig.receive(&frames);
    assert_eq!(rig.told(), [answered(0)]);
}

#[test]
fn bits_and_bytes_that_no_compression_has_are_violations() {
    let offered: &[(&[u8], WebSocketViolation)] = &[
        (b"\xC9\x00", WebSocketViolation::ReservedBits),
        (b"\x41\x00\xC0\x00", WebSocketViolation::ReservedBits),
        (b"\xE1\x00", WebSocketViolation::ReservedBits),
        (b"\x91\x00", WebSocketViolation::ReservedBits),
        (b"\xC1\x01\x07", WebSocketViolation::NotDeflate),
        // "\xff", whole, which is no text.
        (b"\xC1\x07\x00\x01\x00\xfe\xff\xff\x00", WebSocketViolation::NotUtf8),
    ];
    for (frame, want) in offered {
        let mut rig = Rig::compressed("");
        rig.receive(frame);
        assert_eq!(rig.told(), [OpEvent::Violated(want.to_string())], "{}", frame.escape_ascii());
        let closed = server_reads(&rig.sent())[0].0;
        assert_eq!(closed, MessageItem::Close(want.close_code()));
    }
    let mut plain = Rig::open(Matching::Number, "a");
    plain.receive(b"\xC1\x00");
    assert_eq!(plain.told(), [OpEvent::Violated(WebSocketViolation::ReservedBits.to_string())]);
}

/// Bytes between a server of another implementation and this client.
#[derive(Default)]
struct Pipe {
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

impl std::io::Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.to_server.is_empty() {
            return Err(std::io::ErrorKind::WouldBlock.into());
        }
        let count = into.len().min(self.to_server.len());
        into[..count].copy_from_slice(&self.to_server[..count]);
        self.to_server.drain(..count);
        Ok(count)
    }
}

impl std::io::Write for Pipe {
    fn write(&mut self, from: &[u8]) -> std::io::Result<usize> {
        self.to_client.extend_from_slice(from);
        Ok(from.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn another_implementation_echoes_every_length() {
    for length in [0, 1, 125, 126, 127, 65_535, 65_536, 200_000] {
        let content = format!("{{seq}}{}", "ä".repeat(length / 2));
        let mut rig = Rig::open(Matching::Number, &content);
        let (mut pipe, mut server) = (Pipe::default(), WebSocketContext::new(Role::Server, None));
        for op in 0..5 {
            rig.start(op);
            pipe.to_server.append(rig.out.bytes());
        }
        for _ in 0..5 {
            let message = server.read(&mut pipe).unwrap();
            assert!(message.is_text());
            server.write(&mut pipe, message).unwrap();
        }
        server.write(&mut pipe, tungstenite::Message::Ping(b"p".to_vec().into())).unwrap();
        server.flush(&mut pipe).unwrap();
        server.close(&mut pipe, None).unwrap();
        let to_client = std::mem::take(&mut pipe.to_client);
        to_client.chunks(1000).for_each(|piece| rig.receive(piece));
        assert_eq!(rig.told(), (0..5).map(answered).collect::<Vec<_>>());
        pipe.to_server.append(rig.out.bytes());
        assert!(server.read(&mut pipe).unwrap().is_pong());
        assert!(server.read(&mut pipe).unwrap().is_close());
    }
}

/// A message of a server that left at this time, in nanoseconds since 1970.
fn stamped(realtime_ns: u64) -> Vec<u8> {
    let mut payload = Vec::new();
    put_time(&mut payload, realtime_ns);
    text(std::str::from_utf8(&payload).unwrap())
}

#[test]
fn messages_that_no_operation_takes_are_bounded() {
    let mut rig = Rig::subscribed();
    let message = stamped(rig.shared.epoch_ns);
    rig.receive(&message.repeat(ARRIVED_MAX));
    assert_eq!(rig.told(), []);
    rig.start(4);
    rig.handle_timeout();
    assert!(matches!(rig.told()[..], [OpEvent::Delivered { op: 4, .. }]));
    rig.receive(&message);
    assert_eq!(rig.told(), []);
    rig.receive(&message);
    assert_eq!(rig.told(), [], "the next operation fails");
    rig.start(5);
    assert_eq!(rig.socket.poll_timeout(), Nanos::ZERO);
    rig.handle_timeout();
    let told = rig.told();
    assert_eq!(told[0], OpEvent::Failed { op: 5, outcome: Outcome::Malformed });
    assert!(matches!(&told[1], OpEvent::Violated(why) if why.contains("over 10000 messages")));
    assert_eq!(rig.socket.state(), ConnectionState::Broken);
}

#[test]
fn time_of_another_day_is_no_time() {
    let mut rig = Rig::subscribed();
    let epoch_ns = rig.shared.epoch_ns;
    rig.start(1);
    for realtime_ns in [0, epoch_ns - TIME_BEFORE_MAX_NS - 1] {
        rig.receive(&stamped(realtime_ns));
        assert_eq!(rig.told(), [], "{realtime_ns}");
    }
    // Nor is one of a clock that is far ahead.
    rig.receive(&stamped(epoch_ns + 3_600_000_000_000));
    assert_eq!(rig.told(), [OpEvent::Unmatched]);
    // The clock of the server is behind.
    rig.receive(&stamped(epoch_ns - 1_000));
    let told = rig.told();
    assert!(matches!(told[..], [OpEvent::Delivered { op: 1, left: Nanos::ZERO, .. }]), "{told:?}");
}
