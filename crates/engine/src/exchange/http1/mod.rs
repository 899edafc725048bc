//! HTTP/1.1 without sockets (RFC 9110, RFC 9112): requests to bytes, bytes to responses. A
//! connection carries one operation at a time.
//!
//! Nothing here reads, writes, waits or knows the time, so the same code runs over epoll, io_uring,
//! a test's byte slice and a fuzzer.
//!
//! **Surplus** is bytes that come after a whole response and before the next request. The response
//! counts as it is, the connection is closed, and a finding reports it. Bytes that come once the
//! next request is sent are taken for its response. Empty lines between responses mean nothing.
//!
//! Limits: `HEAD_BYTES_MAX`, `SIZE_LINE_BYTES_MAX` and `TRAILER_BYTES_MAX` of `framing`, beyond which a
//! response is malformed, and `INTERIMS_MAX`.

mod framing;
mod request;
mod response;

use crate::exchange::{
    AfterCancel, CallContext, Capacity, ConnectionState, Conversation, EventQueue, FlightId,
    OpEvent, Received, RequestRef, StreamEnd, TargetConversation, WorkerSetup,
};
use crate::reactor::WireRequest;
use framing::Connection;
pub use framing::{HEAD_BYTES_MAX, HEADERS_MAX, HeadCache};
use knee_load::measure::{Outcome, Status};
use knee_load::spec::{HttpSettings, Target};
pub use request::serialise;
use request::{MadeForm, RequestForm, Segment, put_filled, segments};
pub(super) use request::{put_decimal, wire_requests};
use response::count_empty;
pub use response::{Eof, Http1Violation, Progress, ResponseParser};

/// One connection that speaks HTTP/1.1.
#[derive(Default)]
pub struct Http1 {
    parser: ResponseParser,
    /// The operation under way.
    op: Option<FlightId>,
    /// Its request asks for another protocol.
    asks_upgrade: bool,
    /// Its request says that no other follows: none may (RFC 9112 §9.6).
    asks_close: bool,
    state: ConnectionState,
    /// Bytes of empty lines that came since the last response.
    empty_bytes: u16,
}

/// State shared by all HTTP/1.1 connections of one thread.
pub struct Shared {
    /// Whether a request is a HEAD, whose response has no body.
    heads: Box<[bool]>,
    /// Whether a request asks for another protocol.
    upgrades: Box<[bool]>,
    /// Whether a request asks that the connection is closed.
    closes: Box<[bool]>,
    /// The requests that have holes.
    filled: Box<[Option<Vec<Segment>>]>,
    /// How requests that are made at run time leave, by their servers.
    forms: Box<[MadeForm]>,
    cache: HeadCache,
}

impl Shared {
    /// For the requests of `target`.
    pub fn new(target: &Target) -> Shared {
        Shared {
            heads: target.requests.iter().map(|r| r.method == "HEAD").collect(),
            upgrades: (target.requests.iter())
                .map(|request| request.has_header("upgrade"))
                .collect(),
            closes: target.requests.iter().map(|r| asks_close(&r.headers)).collect(),
            filled: (target.requests.iter().enumerate())
                .map(|(n, request)| {
                    let has_holes = !request.holes.is_empty();
                    has_holes.then(|| segments(request, RequestForm::of(target, n)))
                })
                .collect(),
            forms: MadeForm::of(target),
            cache: HeadCache::default(),
        }
    }
}

impl TargetConversation for Http1 {
    type Settings = HttpSettings;

    fn shared(_: &HttpSettings, worker: &WorkerSetup<'_>) -> Shared {
        Shared::new(worker.target)
    }

    fn wire_requests(_: &HttpSettings, target: &Target) -> Vec<WireRequest> {
        wire_requests(target)
    }

    /// A server of HTTP/1.1 says nothing before the first request.
    fn is_open(&self) -> bool {
        true
    }
}

impl Conversation for Http1 {
    type Shared = Shared;

    const LEAVES_AT_ONCE: bool = true;

    fn established(_: &mut CallContext<'_, Shared>) -> Http1 {
        Http1::default()
    }

    #[inline]
    fn capacity(&self, _: &Shared) -> Capacity {
        let is_free = self.op.is_none() && self.state == ConnectionState::Open;
        Capacity { operations: u32::from(is_free), is_targets_limit: false }
    }

    #[inline]
    fn start(&mut self, op: FlightId, request: RequestRef<'_>, cx: &mut CallContext<'_, Shared>) {
        let CallContext { shared, out, .. } = cx;
        self.op = Some(op);
        self.empty_bytes = 0;
        if let Some(made) = request.fills.made() {
            self.asks_upgrade = false;
            self.asks_close = asks_close(&made.headers);
            self.parser.begin(made.method == "HEAD");
            return shared.forms[usize::from(made.server)].put(made, out.bytes());
        }
        self.asks_upgrade = shared.upgrades[request.number];
        self.asks_close = shared.closes[request.number];
        self.parser.begin(shared.heads[request.number]);
        match &shared.filled[request.number] {
            None => out.put_request(request.number),
            Some(segments) => put_filled(segments, request.fills, out.bytes()),
        }
    }

    #[inline]
    fn receive(&mut self, Received { bytes, .. }: Received<'_>, cx: &mut CallContext<'_, Shared>) {
        let CallContext { shared, events, .. } = cx;
        let Some(op) = self.op else {
            return self.on_unasked(bytes, events);
        };
        events.push(OpEvent::Received { op, bytes: bytes.len() as u64 });
        let cache = &mut shared.cache;
        let mut progress = match events.sink(op) {
            None => self.parser.feed(bytes, cache),
            Some(mut sink) => self.parser.feed_into(bytes, cache, &mut sink),
        };
        if let Progress::Events { used, coding } = progress {
            events.open_events(op, coding);
            progress = match events.sink(op) {
                None => self.parser.feed_body(&bytes[used..], &mut ()),
                Some(mut sink) => self.parser.feed_body(&bytes[used..], &mut sink),
            };
        }
        match progress {
            Progress::NeedMore | Progress::Events { .. } => {}
            Progress::Malformed(violation) => self.refuse(op, &rule(violation, bytes), events),
            Progress::Done { status: 101, .. } if !self.asks_upgrade => {
                self.refuse(op, &Http1Violation::Switching.to_string(), events);
            }
            Progress::Done { status, keep_alive, surplus } => {
                self.op = None;
                if !keep_alive || self.asks_close {
                    self.state = ConnectionState::Closing;
                }
                if !only_empty_lines(&bytes[bytes.len() - surplus..]) {
                    // What came after the answer must not be taken for the next one.
                    self.state = ConnectionState::Broken;
                    events.push(OpEvent::Surplus);
                }
                if let Some(mut sink) = events.sink(op) {
                    sink.end();
                }
                events.push(OpEvent::Answered { op, status: Status::Http(status) });
            }
        }
    }

    fn ended(&mut self, end: StreamEnd, cx: &mut CallContext<'_, Shared>) {
        self.state = end.state_after(self.state);
        let Some(op) = self.op.take() else {
            return;
        };
        if let Some(mut sink) = cx.events.sink(op) {
            sink.end();
        }
        let failed = |outcome| OpEvent::Failed { op, outcome };
        cx.events.push(match self.parser.at_eof() {
            Eof::Done { status } if end != StreamEnd::Cut => {
                OpEvent::Answered { op, status: Status::Http(status) }
            }
            // Only the end of the stream delimits the body, and that is not the server's word.
            Eof::Done { .. } | Eof::Truncated => failed(Outcome::Truncated),
            Eof::Closed => failed(Outcome::Closed),
        });
    }

    fn cancel(&mut self, _: FlightId, _: &mut CallContext<'_, Shared>) -> AfterCancel {
        // Its answer may still come, and would be taken for the next one's.
        self.state = ConnectionState::Broken;
        AfterCancel::Broken
    }

    #[inline]
    fn state(&self) -> ConnectionState {
        self.state
    }
}

impl Http1 {
    /// The operation fails as its response breaks a rule.
    #[cold]
    fn refuse(&mut self, op: FlightId, rule: &str, events: &mut EventQueue) {
        self.op = None;
        self.state = ConnectionState::Broken;
        events.push(OpEvent::Violated(rule.to_owned()));
        let outcome = Outcome::Malformed;
        events.push(OpEvent::Failed { op, outcome });
    }

    /// Bytes on a connection that nobody uses. They may come with a response, after it or in
    /// pieces: that response stays what it was. The connection is closed, as the server is out of
    /// step. Empty lines mean nothing, and 408 is how some servers announce that they close.
    fn on_unasked(&mut self, bytes: &[u8], events: &mut EventQueue) {
        if only_empty_lines(bytes)
            && let Some(count) = count_empty(self.empty_bytes, bytes.len())
        {
            self.empty_bytes = count;
            return;
        }
        self.state = ConnectionState::Broken;
        let closes = bytes.starts_with(b"HTTP/1.") && bytes.get(8..12) == Some(b" 408");
        if !closes {
            events.push(OpEvent::Surplus);
        }
    }
}

/// Whether a request with these headers asks that the connection is closed.
fn asks_close(headers: &[(String, String)]) -> bool {
    let mut options = Connection::default();
    let is_connection = |name: &str| name.eq_ignore_ascii_case("connection");
    let values = headers.iter().filter(|(name, _)| is_connection(name));
    values.for_each(|(_, value)| options.read(value.as_bytes()));
    options.close
}

/// The rule that was broken, in words. A server that speaks TLS answers with an alert (RFC 8446
/// §5.1).
fn rule(violation: Http1Violation, bytes: &[u8]) -> String {
    match violation {
        Http1Violation::NotHttp if bytes.starts_with(&[0x15, 0x03]) => {
            "the answer is in TLS: use https://".to_owned()
        }
        other => other.to_string(),
    }
}

fn only_empty_lines(bytes: &[u8]) -> bool {
    bytes.iter().all(|b| matches!(b, b'\r' | b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Outbox;
    use knee_load::spec::{HttpRequest, Pick, Url};
    use knee_load::time::Nanos;

    /// The events of a request with these headers whose response is `bytes`, and the connection's
    /// state.
    fn events(headers: &[(&str, &str)], bytes: &[u8]) -> (Vec<OpEvent>, ConnectionState) {
        let url = Url::parse("http://h/").unwrap();
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| ((*name).into(), (*value).into()));
        let request = HttpRequest::new("GET", &url, headers.collect(), Vec::new(), 1).unwrap();
        let endpoint = url.endpoint().clone();
        let target = Target::new(endpoint, vec![request], Pick::InOrder, true).unwrap();
        let mut shared = Shared::new(&target);
        let (mut out, mut tell) = (Outbox::default(), EventQueue::default());
        let (now, shared) = (Nanos::ZERO, &mut shared);
        let mut cx = CallContext { now, shared, out: &mut out, events: &mut tell };
        let mut http1 = Http1::established(&mut cx);
        http1.start(7, 0.into(), &mut cx);
        for bytes in bytes.chunks(1) {
            http1.receive(Received { bytes, at: now }, &mut cx);
        }
        tell.retain(|event| !matches!(event, OpEvent::Received { .. }));
        (std::mem::take(&mut *tell), http1.state())
    }

    #[test]
    fn other_protocol_is_malformed_unless_asked_for() {
        let switching = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
        let (op, outcome) = (7, Outcome::Malformed);
        let rule = OpEvent::Violated(Http1Violation::Switching.to_string());
        let refused = vec![rule, OpEvent::Failed { op, outcome }];
        assert_eq!(events(&[], switching), (refused.clone(), ConnectionState::Broken));
        assert_eq!(events(&[("Connection", "x")], switching).0, refused);
        let answered = vec![OpEvent::Answered { op, status: Status::Http(101) }];
        let request = events(&[("UPGRADE", "x"), ("Connection", "upgrade")], switching);
        assert_eq!(request, (answered, ConnectionState::Closing));
        // The other interim responses only announce the final one.
        let early = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 x\r\n\r\n";
        let answered = vec![OpEvent::Answered { op, status: Status::Http(204) }];
        assert_eq!(events(&[], early), (answered, ConnectionState::Open));
    }

    #[test]
    fn connections_are_used_until_one_end_says_close() {
        let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        for (headers, state) in [
            (&[][..], ConnectionState::Open),
            (&[("Connection", "close")], ConnectionState::Closing),
            (&[("connection", "X, Close")], ConnectionState::Closing),
            (&[("Connection", "x"), ("Connection", "close")], ConnectionState::Closing),
            (&[("Connection", "keep-alive")], ConnectionState::Open),
            (&[("Connection", "closed")], ConnectionState::Open),
            (&[("Proxy-Connection", "close")], ConnectionState::Open),
        ] {
            let (answered, ended) = events(headers, ok);
            assert_eq!((answered.len(), ended), (1, state), "{headers:?}");
        }
    }

    #[test]
    fn an_answer_in_tls_is_told_from_any_other_that_is_no_http() {
        let alert = [0x15, 0x03, 0x03, 0, 2, 2, 70];
        assert!(rule(Http1Violation::NotHttp, &alert).contains("https://"));
        for other in [&b"SSH-2.0\r\n"[..], b"\x15", b""] {
            assert_eq!(rule(Http1Violation::NotHttp, other), Http1Violation::NotHttp.to_string());
        }
        assert_eq!(rule(Http1Violation::Status, &alert), Http1Violation::Status.to_string());
    }
}
