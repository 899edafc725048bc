//! The client over a backend that only remembers what it was told.

use super::*;
use crate::pool::requests::serialise_all;
use crate::reactor::{Payload, Piece, Sink};
use crate::sys::socket::{Address, TcpState};
use knee_core::rng;
use knee_core::spec::{Body, Endpoint, HttpRequest, HttpTarget, Pick};

/// Remembers; says of each connection what it was told to, and fails to open where told to.
struct Remembers {
    opened: Vec<(u32, bool)>,
    sent: Vec<u32>,
    closed: Vec<(u32, Close)>,
    open_error: Option<i32>,
    state: Option<TcpState>,
}

impl Backend for Remembers {
    const NAME: &'static str = "none";

    fn open(&mut self, slot: u32, opening: Opening<'_>) -> io::Result<()> {
        if let Some(code) = self.open_error {
            return Err(io::Error::from_raw_os_error(code));
        }
        self.opened.push((slot, opening.from.is_some()));
        Ok(())
    }

    fn tcp_state(&self, _: u32) -> Option<TcpState> {
        self.state
    }

    fn send(&mut self, slot: u32, _: Payload) -> io::Result<()> {
        self.sent.push(slot);
        Ok(())
    }

    fn is_sending(&self, _: u32) -> bool {
        false
    }

    fn close(&mut self, slot: u32, how: Close) {
        self.closed.push((slot, how));
    }

    fn poll<S: Sink<Self>>(&mut self, _: Nanos, _: &mut S) -> io::Result<usize> {
        Ok(0)
    }
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
const OK_KEEP: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

struct Bench {
    client: ConnectClient<crate::link::Clear>,
    io: Remembers,
}

fn bench(close: CloseKind) -> Bench {
    let request = HttpRequest {
        method: "GET".to_owned(),
        path: "/".to_owned(),
        host: "h".to_owned(),
        headers: Vec::new(),
        body: Body::default(),
        weight: 1,
        holes: Vec::new(),
    };
    let target = HttpTarget {
        endpoint: Endpoint::Tcp {
            host: "127.0.0.1".to_owned(),
            port: 1,
        },
        requests: vec![request],
        pick: Pick::InOrder,
        keep_alive: false,
        version: Default::default(),
        http2: Default::default(),
        tls: None,
        sessions: None,
    };
    let address = Address::Tcp("127.0.0.1:1".parse().unwrap());
    let config = ConnectConfig {
        address: RawAddress::new(&address).unwrap(),
        sources: Vec::new(),
        slots: 2,
        patience: Nanos(30),
        timeout: Nanos(100),
        close,
        request_bytes_max: 100,
    };
    let requests = RequestSet::new(&target, serialise_all(&target), 0, rng::stream(1, 1));
    Bench {
        client: ConnectClient::new(config, requests, ()),
        io: Remembers {
            opened: Vec::new(),
            sent: Vec::new(),
            closed: Vec::new(),
            open_error: None,
            state: Some(phase(TcpPhase::Connecting)),
        },
    }
}

fn phase(phase: TcpPhase) -> TcpState {
    TcpState {
        phase,
        is_acknowledged: false,
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
        self.client
            .on_event(&mut self.io, slot, event, EventTime::seen(Nanos(at)));
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
        assert_eq!(b.io.closed.first().map(|c| c.1), closes);
        b.event(61, 0, Event::Ended);
        let how = closes.unwrap_or(Close::Orderly);
        assert_eq!(b.io.closed, [(0, how)]);
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
        assert_eq!(
            b.io.closed.len(),
            1,
            "closed once, before another is opened"
        );
        assert_eq!((b.client.tally().open, b.client.tally().in_flight), (0, 0));
        assert_eq!(b.client.next_deadline(), Nanos::MAX);
    }
}

#[test]
fn a_response_that_says_no_is_not_served() {
    for (status, outcome) in [
        ("204 No Content", Outcome::Served),
        ("404 Not Found", Outcome::Http4xx),
        ("503 Service Unavailable", Outcome::Http5xx),
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
    assert_eq!(b.io.closed, [(0, Close::Orderly)]);
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
    assert_eq!(b.io.closed, [(0, Close::Orderly)]);

    b.start(40, 0);
    b.io.state = Some(phase(TcpPhase::Established));
    b.expire(70);
    assert_eq!(b.ended(), Some(Outcome::Late));
    assert_eq!(b.io.closed[1], (0, Close::Reset));

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
fn a_response_that_does_not_come_is_a_ghost_where_nothing_was_acknowledged() {
    for (is_acknowledged, outcome) in [(false, Outcome::Ghost), (true, Outcome::ResponseTimeout)] {
        let mut b = bench(CloseKind::Fin);
        b.start(0, 0);
        b.event(5, 0, Event::Connected);
        b.io.state = Some(TcpState {
            phase: TcpPhase::Established,
            is_acknowledged,
        });
        b.expire(99);
        assert_eq!(b.ended(), None);
        b.expire(100);
        assert_eq!(b.ended(), Some(outcome));
        assert_eq!(b.io.closed, [(0, Close::Orderly)]);
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
        (
            b"",
            Event::Received(Piece::of(b"220 mail\r\n\r\n")),
            Outcome::Malformed,
        ),
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
    let ended = std::iter::from_fn(|| b.client.take_completed());
    assert!(ended.map(|c| c.outcome).eq([Outcome::InFlight; 2]));
    assert_eq!(b.client.tally().in_flight, 0);
}
