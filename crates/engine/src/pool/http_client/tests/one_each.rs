//! A connection for each operation.

use super::*;
use crate::sys::socket::TcpPhase;
use knee_load::spec::CloseKind;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
const OK_KEEP: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

struct Bench {
    client: HttpClient<Tls, Http1, OnePerOperation>,
    io: Remembers,
}

fn bench(close: CloseKind) -> Bench {
    let (config, requests, target) = parts(2, 0, "GET");
    let config = ClientConfig { keep_alive: false, ..config };
    let policy = OnePerOperation::new(close, 100);
    let exchange = http1::Shared::new(&target);
    Bench {
        client: HttpClient::new(config, policy, requests, None, exchange),
        io: Remembers { state: Some(phase(TcpPhase::Connecting)), ..Remembers::default() },
    }
}

fn phase(phase: TcpPhase) -> TcpState {
    TcpState { phase, is_acknowledged: false }
}

impl Remembers {
    fn closed(&self) -> Vec<(u32, Close)> {
        let slots = self.closed.iter().copied();
        slots.zip(self.how.iter().copied()).collect()
    }
}

impl Bench {
    /// Starts an operation of this lane.
    fn start(&mut self, at: u64, lane: u32) {
        let intended = Nanos(at);
        let op = Op { intended, lane };
        self.client.start(&mut self.io, op, Nanos(at));
    }

    fn event(&mut self, at: u64, slot: u32, event: Event<'_>) {
        self.client.on_event(&mut self.io, slot, event, EventTime::seen(Nanos(at)));
    }

    fn expire(&mut self, at: u64) {
        self.client.expire(&mut self.io, Nanos(at));
    }

    /// The outcome of what has ended since the last call; at most one.
    fn ended(&mut self) -> Option<Outcome> {
        let ended = self.client.take_completed().map(|c| c.outcome);
        assert!(self.client.take_completed().is_none());
        ended
    }
}

#[test]
fn a_connect_in_time_is_told_of_and_served() {
    for (close, response, closes) in [
        (CloseKind::Rst, OK, Some(Close::Reset)),
        // The server said that it will close: it is left to.
        (CloseKind::Fin, OK, None),
        (CloseKind::Fin, OK_KEEP, Some(Close::Orderly)),
    ] {
        let mut b = bench(close);
        b.start(10, 7);
        assert_eq!(b.client.next_deadline(), Nanos(40));
        b.event(39, 0, Event::Connected);
        assert_eq!(b.client.take_established(), Some(7));
        assert_eq!((b.io.sent.len(), b.client.next_deadline()), (1, Nanos(110)));
        b.event(50, 0, Event::Received(Piece::of(&response[..9])));
        b.event(60, 0, Event::Received(Piece::of(&response[9..])));
        assert_eq!(b.ended(), Some(Outcome::Served));
        assert_eq!(b.io.how.first().copied(), closes);
        b.event(61, 0, Event::Ended);
        let how = closes.unwrap_or(Close::Orderly);
        assert_eq!(b.io.closed(), [(0, how)]);
        assert_eq!(b.client.next_deadline(), Nanos::MAX);
        assert_eq!((b.client.tally().open, b.client.tally().in_flight), (0, 0));
    }
}

#[test]
fn a_server_that_has_closed_with_its_response_is_not_waited_for() {
    for (close, response, served) in [
        (CloseKind::Fin, OK, Outcome::Served),
        (CloseKind::Rst, OK, Outcome::Served),
        (CloseKind::Fin, OK_KEEP, Outcome::Served),
        (CloseKind::Fin, &OK[..9], Outcome::Truncated),
    ] {
        let mut b = bench(close);
        b.start(10, 0);
        b.event(20, 0, Event::Connected);
        b.event(30, 0, Event::ReceivedLast(Piece::of(response)));
        assert_eq!(b.ended(), Some(served));
        assert_eq!(b.io.closed.len(), 1, "closed once, before another is opened");
        assert_eq!((b.client.tally().open, b.client.tally().in_flight), (0, 0));
        assert_eq!(b.client.next_deadline(), Nanos::MAX);
    }
}

#[test]
fn a_response_that_says_no_is_not_served() {
    for (status, outcome) in [
        ("204 No Content", Outcome::Served),
        ("404 Not Found", Outcome::HTTP_4XX),
        ("503 Service Unavailable", Outcome::HTTP_5XX),
    ] {
        let mut b = bench(CloseKind::Rst);
        b.start(10, 0);
        b.event(20, 0, Event::Connected);
        let response = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        b.event(30, 0, Event::Received(Piece::of(response.as_bytes())));
        assert_eq!(b.ended(), Some(outcome), "{status}");
    }
}

#[test]
fn a_server_that_does_not_close_as_it_said_is_not_waited_for() {
    let mut b = bench(CloseKind::Fin);
    b.start(0, 0);
    b.event(1, 0, Event::Connected);
    b.event(2, 0, Event::Received(Piece::of(OK)));
    b.expire(2 + DRAIN_MAX.0);
    assert_eq!(b.io.closed(), [(0, Close::Orderly)]);
}

#[test]
fn a_connect_ends_at_its_time_in_what_the_kernel_knows_of_it() {
    let mut b = bench(CloseKind::Rst);
    b.start(0, 0);
    b.expire(29);
    assert_eq!(b.ended(), None);
    b.expire(30);
    assert_eq!(b.ended(), Some(Outcome::ConnectTimeout));
    // There is nothing to reset.
    assert_eq!(b.io.closed(), [(0, Close::Orderly)]);

    b.start(40, 0);
    b.io.state = Some(phase(TcpPhase::Established));
    b.expire(70);
    assert_eq!(b.ended(), Some(Outcome::Late));
    assert_eq!(b.io.closed()[1], (0, Close::Reset));

    b.start(80, 0);
    b.event(110, 0, Event::Connected);
    assert_eq!(b.ended(), Some(Outcome::Late));
    assert_eq!(b.client.take_established(), None);

    b.start(120, 0);
    b.io.state = Some(phase(TcpPhase::Closed));
    b.expire(150);
    assert_eq!(b.ended(), None, "how it failed is still to be told");
    let refused = io::Error::from_raw_os_error(libc::ECONNREFUSED);
    b.event(151, 0, Event::Failed(refused));
    assert_eq!(b.ended(), Some(Outcome::Refused));
}

#[test]
fn missing_response_without_acknowledgement_is_a_ghost() {
    for (is_acknowledged, outcome) in [(false, Outcome::Ghost), (true, Outcome::ResponseTimeout)] {
        let mut b = bench(CloseKind::Fin);
        b.start(0, 0);
        b.event(5, 0, Event::Connected);
        b.io.state = Some(TcpState { phase: TcpPhase::Established, is_acknowledged });
        b.expire(99);
        assert_eq!(b.ended(), None);
        b.expire(100);
        assert_eq!(b.ended(), Some(outcome));
        assert_eq!(b.io.closed(), [(0, Close::Orderly)]);
    }
}

#[test]
fn what_fails_at_once_says_what_was_missing() {
    for (code, outcome) in [
        (libc::EADDRNOTAVAIL, Outcome::PortExhausted),
        (libc::EMFILE, Outcome::DescriptorExhausted),
        (libc::ENFILE, Outcome::DescriptorExhausted),
        (libc::ENOBUFS, Outcome::NoResources),
        (libc::ECONNREFUSED, Outcome::Refused),
        (libc::ENETUNREACH, Outcome::Unreachable),
    ] {
        let mut b = bench(CloseKind::Fin);
        b.io.open_error = Some(code);
        b.start(0, 0);
        assert_eq!(b.ended(), Some(outcome));
        assert_eq!(b.client.tally().in_flight, 0);
    }
    let mut b = bench(CloseKind::Fin);
    (0..3).for_each(|lane| b.start(0, lane));
    assert_eq!(b.ended(), Some(Outcome::DescriptorExhausted), "two slots");
}

#[test]
fn a_connection_that_breaks_off_has_its_own_outcome() {
    let reset = || Event::Failed(io::Error::from_raw_os_error(libc::ECONNRESET));
    let cases: [(&[u8], Event<'_>, Outcome); 4] = [
        (b"", reset(), Outcome::Reset),
        (b"", Event::Ended, Outcome::Closed),
        (&OK[..20], Event::Ended, Outcome::Truncated),
        (b"", Event::Received(Piece::of(b"220 mail\r\n\r\n")), Outcome::Malformed),
    ];
    for (bytes, event, outcome) in cases {
        let mut b = bench(CloseKind::Fin);
        b.start(0, 0);
        b.event(1, 0, Event::Connected);
        if !bytes.is_empty() {
            b.event(2, 0, Event::Received(Piece::of(bytes)));
        }
        b.event(3, 0, event);
        assert_eq!(b.ended(), Some(outcome));
        assert_eq!(b.client.tally().open, 0);
    }
}

#[test]
fn what_is_under_way_at_the_end_is_in_flight() {
    let mut b = bench(CloseKind::Fin);
    b.start(0, 0);
    b.start(1, 1);
    b.event(2, 0, Event::Connected);
    b.client.abandon(Nanos(9));
    let ended = std::iter::from_fn(|| b.client.take_completed().copied());
    assert!(ended.map(|c| c.outcome).eq([Outcome::InFlight; 2]));
    assert_eq!(b.client.tally().in_flight, 0);
}

#[test]
fn small_requests_need_no_nodelay() {
    let to = RawAddress::new(&Address::Tcp("127.0.0.1:1".parse().unwrap())).unwrap();
    let has_nodelay = |bytes_max, leaves_at_once| {
        let next = NextAddress { number: 0, to: &to, from: None };
        OnePerOperation::new(CloseKind::Fin, bytes_max).opening(next, leaves_at_once).nodelay
    };
    assert!(!has_nodelay(500, true));
    assert!(has_nodelay(501, true));
    assert!(has_nodelay(1, false), "it writes more than its request");
}

#[test]
fn a_connect_has_its_whole_time_whatever_the_operation_has_left() {
    let mut b = bench(CloseKind::Fin);
    let op = Op { intended: Nanos(0), lane: 3 };
    // Its response is overdue before its connection is opened.
    b.client.start(&mut b.io, op, Nanos(110));
    assert_eq!((b.ended(), b.client.next_deadline()), (None, Nanos(140)));
    b.event(139, 0, Event::Connected);
    assert_eq!(b.client.take_established(), Some(3));
    b.expire(139);
    assert_eq!(b.ended(), Some(Outcome::Ghost));
}

#[test]
fn a_connection_that_drains_keeps_its_descriptor() {
    let mut b = bench(CloseKind::Fin);
    for slot in 0..2 {
        b.start(10, slot);
        b.event(11, slot, Event::Connected);
        b.event(12, slot, Event::Received(Piece::of(OK)));
        assert_eq!(b.ended(), Some(Outcome::Served));
    }
    b.start(20, 2);
    assert_eq!(b.ended(), Some(Outcome::DescriptorExhausted));
    assert_eq!(b.io.closed(), []);
}
