//! How a peer ends a stream over TLS: with `close_notify`, or by a FIN alone.

use super::multiplexed::Letters;
use super::*;
use knee_load::spec::CloseKind;

/// A link that is secured by one byte. A byte of zero is `close_notify`; what follows it is
/// dropped.
#[derive(Default)]
struct Announced {
    is_secured: bool,
    is_ended: bool,
    greets: bool,
}

impl Link for Announced {
    type Shared = ();

    fn new((): &mut ()) -> Result<Announced, String> {
        Ok(Announced { greets: true, ..Announced::default() })
    }

    fn secure(&mut self, wire: &mut &[u8]) -> Result<(), String> {
        *wire = &wire[1..];
        self.is_secured = true;
        Ok(())
    }

    fn is_secured(&self) -> bool {
        self.is_secured
    }

    fn open(&mut self, wire: &[u8], mut take: impl FnMut(&[u8], usize)) -> Result<(), String> {
        let end = wire.iter().position(|byte| *byte == 0);
        let plain = &wire[..end.unwrap_or(wire.len())];
        if !plain.is_empty() && !self.is_ended {
            take(plain, wire.len() - plain.len());
        }
        self.is_ended |= end.is_some();
        Ok(())
    }

    fn is_ended(&self) -> bool {
        self.is_ended
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) {
        wire.extend_from_slice(plain);
    }

    fn has_wire(&self) -> bool {
        self.greets
    }

    fn take_wire(&mut self, into: &mut Vec<u8>) {
        if std::mem::take(&mut self.greets) {
            into.push(b'H');
        }
    }
}

struct Secured<X: Conversation, P: Policy> {
    client: HttpClient<Announced, X, P>,
    io: Remembers,
}

fn http1(connections_max: u32, method: &str) -> Secured<Http1, Pooled> {
    let (config, requests, target) = parts(connections_max, 0, method);
    Secured {
        client: HttpClient::new(
            config,
            Pooled::default(),
            requests,
            Some(()),
            http1::Shared::new(&target),
        ),
        io: Remembers::default(),
    }
}

fn one_each(close: CloseKind) -> Secured<Http1, OnePerOperation> {
    let (config, requests, target) = parts(2, 0, "GET");
    let config = ClientConfig { keep_alive: false, ..config };
    let policy = OnePerOperation::new(close, 100);
    Secured {
        client: HttpClient::new(config, policy, requests, Some(()), http1::Shared::new(&target)),
        io: Remembers::default(),
    }
}

impl<X: Conversation, P: Policy> Secured<X, P> {
    fn start(&mut self, at: u64) {
        let op = Op { intended: Nanos(at), lane: if P::WAITS { Op::ANY_LANE } else { 0 } };
        self.client.start(&mut self.io, op, Nanos(at));
        self.client.flush(&mut self.io, &|| Nanos(at));
    }

    fn event(&mut self, at: u64, slot: u32, event: Event<'_>) {
        let time = EventTime::seen(Nanos(at));
        self.client.on_event(&mut self.io, slot, event, time);
        self.client.flush(&mut self.io, &|| Nanos(at));
    }

    fn receive(&mut self, at: u64, slot: u32, bytes: &[u8]) {
        self.event(at, slot, Event::Received(Piece::of(bytes)));
    }

    /// The connection in this slot is established and secured.
    fn secure(&mut self, at: u64, slot: u32) {
        self.event(at, slot, Event::Connected);
        self.receive(at, slot, b"s");
    }

    fn outcomes(&mut self) -> Vec<Outcome> {
        let completed = std::iter::from_fn(|| self.client.take_completed().copied());
        completed.map(|c| c.outcome).collect()
    }
}

const UNTIL_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nhi";
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";

/// How one operation ends whose server sends these bytes and then only a FIN.
fn ends_with(bytes: &[u8]) -> Vec<Outcome> {
    let mut s = http1(1, "GET");
    s.start(0);
    s.secure(1, 0);
    if !bytes.is_empty() {
        s.receive(2, 0, bytes);
    }
    s.event(3, 0, Event::Ended);
    assert_eq!(s.client.tally().open, 0);
    s.outcomes()
}

#[test]
fn response_without_length_needs_close_notify() {
    let announced = [UNTIL_CLOSE, b"\0"].concat();
    assert_eq!(ends_with(UNTIL_CLOSE), [Outcome::Truncated]);
    assert_eq!(ends_with(&announced), [Outcome::Ok]);
    // Both in one read.
    for (bytes, outcome) in [(UNTIL_CLOSE, Outcome::Truncated), (&announced, Outcome::Ok)] {
        let mut s = http1(1, "GET");
        s.start(0);
        s.secure(1, 0);
        s.event(2, 0, Event::ReceivedLast(Piece::of(bytes)));
        assert_eq!((s.outcomes(), s.client.tally().open), (vec![outcome], 0));
    }
}

#[test]
fn response_with_a_length_needs_no_close_notify() {
    for whole in [OK, OK_CLOSE, CHUNKED] {
        assert_eq!(ends_with(whole), [Outcome::Ok]);
        assert_eq!(ends_with(&[whole, b"\0"].concat()), [Outcome::Ok]);
    }
    for part in [&OK[..OK.len() - 1], &CHUNKED[..CHUNKED.len() - 2]] {
        assert_eq!(ends_with(part), [Outcome::Truncated]);
        assert_eq!(ends_with(&[part, b"\0"].concat()), [Outcome::Truncated]);
        let late = [part, b"\0", &part[part.len() - 1..]].concat();
        assert_eq!(ends_with(&late), [Outcome::Truncated], "what follows");
    }
    assert_eq!(ends_with(b""), [Outcome::Closed]);
    assert_eq!(ends_with(b"\0"), [Outcome::Closed]);
}

#[test]
fn close_notify_sends_the_next_request_elsewhere() {
    for method in ["GET", "POST"] {
        // Before the next request begins, and while one waits.
        for waits in [false, true] {
            let mut s = http1(1, method);
            s.start(0);
            s.secure(1, 0);
            if waits {
                s.start(2);
            }
            s.receive(3, 0, &[OK, b"\0"].concat());
            if !waits {
                s.start(4);
            }
            assert_eq!(s.outcomes(), [Outcome::Ok]);
            assert_eq!(s.client.tally().opened, 2, "{method}");
            s.secure(5, 0);
            s.receive(6, 0, OK);
            assert_eq!(s.outcomes(), [Outcome::Ok], "{method}");
        }
    }
}

#[test]
fn close_notify_on_an_idle_connection_ends_its_use() {
    let mut s = http1(2, "POST");
    s.start(0);
    s.secure(1, 0);
    s.receive(2, 0, OK);
    s.receive(3, 0, b"\0");
    assert!(s.io.closed.is_empty(), "the server closes it");
    s.start(4);
    assert_eq!((s.client.tally().opened, s.io.opened.len()), (2, 2));
    s.event(5, 0, Event::Ended);
    assert_eq!(s.io.closed, [0]);
    s.secure(6, 1);
    s.receive(7, 1, OK);
    assert_eq!(s.outcomes(), [Outcome::Ok, Outcome::Ok]);
}

#[test]
fn server_that_never_closes_after_close_notify_is_left() {
    let mut s = http1(1, "GET");
    s.start(0);
    s.secure(1, 0);
    s.receive(2, 0, &[OK, b"\0"].concat());
    let limit = s.client.next_deadline();
    assert_eq!(limit, Nanos(2) + DRAIN_MAX);
    s.client.expire(&mut s.io, limit);
    assert_eq!((s.io.closed.len(), s.client.tally().open), (1, 0));
}

#[test]
fn close_notify_instead_of_an_answer_is_as_a_fin() {
    for (method, outcomes) in
        [("POST", vec![Outcome::Ok, Outcome::Closed]), ("GET", vec![Outcome::Ok])]
    {
        let mut s = http1(1, method);
        s.start(0);
        s.secure(1, 0);
        s.receive(2, 0, OK);
        s.start(3);
        s.receive(4, 0, b"\0");
        assert_eq!(s.outcomes(), outcomes, "{method}");
        // An idempotent one goes again.
        let goes_again = method == "GET";
        assert_eq!(s.client.tally().opened, 1 + u64::from(goes_again));
    }
}

#[test]
fn close_notify_while_a_request_is_written_closes() {
    let mut s = http1(1, "GET");
    s.start(0);
    s.secure(1, 0);
    s.receive(2, 0, OK);
    assert_eq!(s.outcomes(), [Outcome::Ok]);
    s.io.takes_parts = true;
    s.start(3);
    s.start(4);
    s.receive(5, 0, b"\0");
    assert_eq!(s.io.closed, [0], "the rest of it is not sent");
    s.io.sending.clear();
    s.io.takes_parts = false;
    for at in [6, 8] {
        s.secure(at, 0);
        s.receive(at + 1, 0, &[OK, b"\0"].concat());
    }
    assert_eq!(s.outcomes(), [Outcome::Ok, Outcome::Ok]);
}

/// A request with a body of this length, over a connection that is secured at 1.
fn upload(body_bytes: usize) -> (Secured<Http1, Pooled>, usize) {
    let (config, _, mut target) = parts(1, 0, "POST");
    target.requests[0].body = Body::from(vec![b'x'; body_bytes]);
    let wires = serialise_all(&target);
    let length = wires.length_max();
    let requests = RequestSet::new(&target, wires, 0, rng::stream(1, 1));
    let mut s = Secured {
        client: HttpClient::new(
            config,
            Pooled::default(),
            requests,
            Some(()),
            http1::Shared::new(&target),
        ),
        io: Remembers::default(),
    };
    s.start(0);
    s.secure(1, 0);
    (s, length)
}

#[test]
fn long_request_over_tls_leaves_pass_by_pass_to_its_end() {
    let (mut s, length) = upload(300_000);
    let sent = |s: &Secured<Http1, Pooled>| s.io.owned.iter().skip(1).map(Vec::len).sum::<usize>();
    for at in 2..4 {
        assert_eq!(sent(&s), (at as usize - 1) * (128 << 10));
        assert_eq!(s.client.next_deadline(), Nanos::ZERO, "at {at}");
        s.client.flush(&mut s.io, &|| Nanos(at));
        s.client.expire(&mut s.io, Nanos(at));
        s.client.flush(&mut s.io, &|| Nanos(at));
    }
    assert_eq!((sent(&s), s.client.next_deadline()), (length, Nanos(100)));
    s.receive(9, 0, OK);
    let whole = *s.client.take_completed().unwrap();
    assert_eq!((whole.outcome, whole.written), (Outcome::Ok, Nanos(3)));
    assert_eq!((whole.bytes_sent, s.io.closed.len()), (length as u64, 0));
}

#[test]
fn part_of_a_long_request_is_no_whole_request() {
    // The answer comes early: the rest must not be taken for the next request.
    let (mut s, _) = upload(300_000);
    s.receive(2, 0, OK);
    let early = *s.client.take_completed().unwrap();
    assert_eq!((early.outcome, early.bytes_sent, s.io.closed.len()), (Outcome::Ok, 0, 1));
    // No answer comes.
    let (mut s, _) = upload(300_000);
    s.event(2, 0, Event::Failed(io::Error::from_raw_os_error(libc::ECONNRESET)));
    let failed = *s.client.take_completed().unwrap();
    assert_eq!((failed.outcome, failed.bytes_sent), (Outcome::Reset, 0));
    // The kernel takes a part: an event goes on with the rest.
    let (mut s, _) = upload(300_000);
    s.io.takes_parts = true;
    for at in 2..9 {
        s.client.expire(&mut s.io, Nanos(at));
        s.client.flush(&mut s.io, &|| Nanos(at));
    }
    assert_eq!((s.io.owned.len(), s.client.next_deadline()), (3, Nanos(100)));
}

#[test]
fn operation_with_its_own_connection_needs_close_notify() {
    for (bytes, outcome) in [
        (UNTIL_CLOSE.to_vec(), Outcome::Truncated),
        ([UNTIL_CLOSE, b"\0"].concat(), Outcome::Served),
        (OK.to_vec(), Outcome::Served),
        (b"\0".to_vec(), Outcome::Closed),
    ] {
        for close in [CloseKind::Fin, CloseKind::Rst] {
            let mut s = one_each(close);
            s.start(0);
            s.secure(1, 0);
            s.receive(2, 0, &bytes);
            if s.client.tally().open > 0 {
                s.event(3, 0, Event::Ended);
            }
            assert_eq!((s.outcomes(), s.client.tally().open), (vec![outcome], 0));
        }
    }
}

#[test]
fn close_notify_ends_all_operations_of_a_connection() {
    let (config, requests, _) = parts(1, 0, "GET");
    let config = ClientConfig { streams_max: 2, ..config };
    let mut s: Secured<Letters, Pooled> = Secured {
        client: HttpClient::new(config, Pooled::default(), requests, Some(()), 2),
        io: Remembers::default(),
    };
    (0..3).for_each(|at| s.start(at));
    s.secure(3, 0);
    s.receive(4, 0, b"a\0");
    assert_eq!(s.outcomes(), [Outcome::Ok, Outcome::Truncated]);
    s.secure(5, 0);
    s.receive(6, 0, b"a");
    assert_eq!((s.outcomes(), s.client.tally().opened), (vec![Outcome::Ok], 2));
}
