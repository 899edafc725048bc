//! The client over a backend that only remembers what it was told.

mod early;
mod multiplexed;
mod one_each;
mod remembers;
mod secured;

pub(in crate::pool) use remembers::Remembers;

use super::*;
use crate::addresses::{AddressBook, NextAddress};
use crate::exchange::http1::{self, Http1};
use crate::link::Tls;
use crate::pool::requests::serialise_all;
use crate::reactor::{Close, Piece};
use crate::sys::socket::{Address, RawAddress, TcpState};
use knee_load::rng;
use knee_load::spec::{Body, Endpoint, HttpRequest, Pick, Target};
use std::io;
use std::sync::Arc;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const OK_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

struct Bench {
    client: HttpClient<Tls, Http1>,
    io: Remembers,
}

/// What a client is made of.
pub(in crate::pool) fn parts(
    connections_max: u32,
    lanes: u32,
    method: &str,
) -> (ClientConfig, RequestSet, Target) {
    let request = HttpRequest {
        method: method.to_owned(),
        path: "/".to_owned(),
        host: "h".to_owned(),
        headers: Vec::new(),
        body: Body::default(),
        weight: 1,
        holes: Vec::new(),
        messages: None,
        timed: None,
        answers_stream: false,
    };
    let target = Target {
        further: Vec::new(),
        endpoint: Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: 1 },
        requests: vec![request],
        pick: Pick::InOrder,
        keep_alive: true,
        protocol: Default::default(),
        connections_max: None,
        tls: None,
        proxy: None,
        route: Default::default(),
        sessions: None,
        recording: None,
        stream_bounds: None,
    };
    let address = RawAddress::new(&Address::Tcp("127.0.0.1:1".parse().unwrap())).unwrap();
    let config = ClientConfig {
        addresses: AddressTurn::new(&Arc::new(AddressBook::of(address)), 0),
        tunnel: None,
        first_slot: 0,
        keep_alive: true,
        connections_max,
        lanes,
        streams_max: 1,
        keeps_all_open: false,
        timeout: Nanos(100),
        connect_timeout: Nanos(30),
    };
    let requests = RequestSet::new(&target, serialise_all(&target), 0, rng::stream(1, 1));
    (config, requests, target)
}

fn bench(connections_max: u32, lanes: u32, method: &str) -> Bench {
    let (config, requests, target) = parts(connections_max, lanes, method);
    Bench {
        client: HttpClient::new(
            config,
            Pooled::default(),
            requests,
            None,
            http1::Shared::new(&target),
        ),
        io: Remembers::default(),
    }
}

impl Bench {
    fn start(&mut self, at: u64) {
        self.start_lane(at, Op::ANY_LANE);
    }

    fn start_lane(&mut self, at: u64, lane: u32) {
        self.client.start(&mut self.io, Op { intended: Nanos(at), lane }, Nanos(at));
    }

    fn event(&mut self, at: u64, slot: u32, event: Event<'_>) {
        self.client.on_event(&mut self.io, slot, event, EventTime::seen(Nanos(at)));
    }

    /// The outcomes of what has ended since the last call, with their response times.
    fn ended(&mut self) -> Vec<(Outcome, u64)> {
        let completed = std::iter::from_fn(|| self.client.take_completed().copied());
        completed.map(|c| (c.outcome, c.response_time().0)).collect()
    }
}

#[test]
fn a_connection_is_kept_and_used_again() {
    let mut b = bench(2, 0, "GET");
    b.start(10);
    b.event(15, 0, Event::Connected);
    b.event(18, 0, Event::Received(Piece::of(&OK[..20])));
    b.event(20, 0, Event::Received(Piece::of(&OK[20..])));
    let completion = *b.client.take_completed().unwrap();
    assert_eq!(completion.connection_wait(), Nanos(5), "the connect is a wait");
    assert_eq!(completion.service_time(), Nanos(5));
    assert_eq!((completion.first_byte, completion.bytes), (Nanos(18), OK.len() as u64));
    b.start(30);
    assert_eq!((b.io.opened.len(), b.io.sent.len()), (1, 2));
    b.start(31);
    assert_eq!(b.io.opened, [0, 1], "none is idle, and one more is permitted");
}

#[test]
fn beyond_the_most_connections_operations_wait_in_order() {
    let mut b = bench(1, 0, "GET");
    b.start(10);
    b.event(10, 0, Event::Connected);
    b.start(11);
    b.start(12);
    assert_eq!(b.io.sent.len(), 1);
    b.event(20, 0, Event::Received(Piece::of(OK)));
    b.event(30, 0, Event::Received(Piece::of(OK)));
    b.event(40, 0, Event::Received(Piece::of(OK)));
    let all = std::iter::from_fn(|| b.client.take_completed().copied()).collect::<Vec<_>>();
    let mut waits: Vec<_> = all.iter().map(|c| (c.intended.0, c.connection_wait().0)).collect();
    waits.sort_unstable();
    assert_eq!(waits, [(10, 0), (11, 9), (12, 18)]);
    assert_eq!(b.client.tally(), Tally { opened: 1, open: 1, open_max: 1, ..Tally::default() });
}

#[test]
fn a_lane_keeps_its_own_connection_even_while_another_is_idle() {
    let mut b = bench(2, 2, "GET");
    b.start_lane(1, 0);
    b.event(2, 0, Event::Connected);
    b.event(3, 0, Event::Received(Piece::of(OK)));
    b.start_lane(4, 1);
    assert_eq!(b.io.opened, [0, 1]);
    b.start_lane(5, 0);
    assert_eq!(b.io.sent.last(), Some(&(0, 0)));
}

#[test]
fn timeouts_count_from_the_intended_time_in_every_state() {
    let mut b = bench(1, 0, "GET");
    b.start(10);
    b.start(20);
    assert_eq!(b.client.next_deadline(), Nanos(40), "the connect has 30");
    b.event(15, 0, Event::Connected);
    assert_eq!(b.client.next_deadline(), Nanos(110));
    b.client.expire(&mut b.io, Nanos(109));
    assert_eq!(b.ended(), []);
    b.client.expire(&mut b.io, Nanos(110));
    assert_eq!(b.ended(), [(Outcome::Timeout, 100)]);
    assert_eq!(b.io.closed, [0], "its answer may still come: the connection is of no use");
    assert_eq!(b.io.opened, [0], "the other has 10 left, and 100 were not enough");
    assert_eq!(b.client.next_deadline(), Nanos(120));
    b.client.expire(&mut b.io, Nanos(120));
    assert_eq!(b.ended(), [(Outcome::Timeout, 100)]);
    assert_eq!(b.io.opened, [0]);
}

#[test]
fn a_connect_without_an_answer_is_a_connect_timeout() {
    let mut b = bench(1, 0, "GET");
    b.start(10);
    b.client.expire(&mut b.io, Nanos(40));
    assert_eq!(b.ended(), [(Outcome::ConnectTimeout, 30)]);
    assert_eq!(b.client.tally().in_flight, 0);
}

#[test]
fn what_the_end_of_a_connection_means() {
    let first = |event: Event<'_>| {
        let mut b = bench(1, 0, "GET");
        b.start(0);
        b.event(1, 0, Event::Connected);
        b.event(2, 0, event);
        if b.io.closed.is_empty() {
            b.event(3, 0, Event::Ended);
        }
        b.ended().first().map(|e| e.0)
    };
    let failed = |code| first(Event::Failed(io::Error::from_raw_os_error(code)));
    assert_eq!(first(Event::Ended), Some(Outcome::Closed), "before a byte");
    assert_eq!(
        first(Event::Received(Piece::of(&OK[..30]))),
        Some(Outcome::Truncated),
        "in the middle"
    );
    assert_eq!(
        first(Event::Received(Piece::of(b"HTTP/1.0 200 OK\r\n\r\nall"))),
        Some(Outcome::Ok),
        "as a frame"
    );
    assert_eq!(first(Event::Received(Piece::of(b"SSH-2.0\r\n\r\n"))), Some(Outcome::Malformed));
    assert_eq!(failed(libc::ECONNRESET), Some(Outcome::Reset));
}

#[test]
fn a_connection_that_fails_to_open_is_told_at_once() {
    for (code, outcome) in [
        (libc::ECONNREFUSED, Outcome::Refused),
        (libc::EMFILE, Outcome::NoResources),
        (libc::EADDRNOTAVAIL, Outcome::NoResources),
        (libc::ENETUNREACH, Outcome::Unreachable),
        (libc::EACCES, Outcome::OtherError),
    ] {
        let mut b = bench(1, 0, "GET");
        b.io.open_error = Some(code);
        b.start(5);
        assert_eq!(b.ended(), [(outcome, 0)]);
        assert_eq!(b.client.tally(), Tally::default());
    }
}

/// Uses a connection once, then starts another operation on it and ends it without an answer.
fn end_of_a_used_connection(method: &str, event: Event<'_>) -> Bench {
    let mut b = bench(1, 0, method);
    b.start(0);
    b.event(1, 0, Event::Connected);
    b.event(2, 0, Event::Received(Piece::of(b"HTTP/1.1 204 No Content\r\n\r\n")));
    assert_eq!(b.ended().len(), 1);
    b.start(10);
    b.event(12, 0, event);
    b
}

#[test]
fn an_idle_connection_closed_as_the_request_left_is_no_error() {
    let mut b = end_of_a_used_connection("GET", Event::Ended);
    assert_eq!(b.ended(), [], "it goes again");
    b.event(13, 0, Event::Connected);
    b.event(14, 0, Event::Ended);
    assert_eq!(b.ended(), [(Outcome::Closed, 4)], "but only once");
}

#[test]
fn nothing_is_repeated_that_is_not_idempotent_or_was_reset() {
    assert_eq!(end_of_a_used_connection("POST", Event::Ended).ended(), [(Outcome::Closed, 2)]);
    let reset = Event::Failed(io::Error::from_raw_os_error(libc::ECONNRESET));
    assert_eq!(end_of_a_used_connection("GET", reset).ended(), [(Outcome::Reset, 2)]);
}

#[test]
fn an_idle_connection_that_ends_is_forgotten() {
    let mut b = bench(3, 0, "GET");
    for slot in 0..3 {
        b.start(1);
        b.event(1, slot, Event::Connected);
    }
    for slot in 0..3 {
        b.event(2, slot, Event::Received(Piece::of(OK)));
    }
    b.event(3, 0, Event::Ended);
    b.start(4);
    b.start(4);
    assert_eq!(b.io.opened.len(), 3, "two of them are still idle");
    b.start(4);
    assert_eq!(b.io.opened.len(), 4);
}

#[test]
fn a_server_that_says_close_closes_first() {
    let mut b = bench(1, 1, "GET");
    b.start_lane(1, 0);
    b.event(1, 0, Event::Connected);
    b.event(2, 0, Event::Received(Piece::of(OK_CLOSE)));
    assert_eq!((b.ended().len(), b.io.closed.len()), (1, 0), "it is left to the server");
    b.start_lane(3, 0);
    assert_eq!(b.io.opened, [0, 1], "the lane does not wait for that");
    b.event(4, 0, Event::Ended);
    assert_eq!(b.io.closed, [0]);
    let drained = Nanos(1) + DRAIN_MAX;
    let mut b = bench(1, 0, "GET");
    b.start(0);
    b.event(0, 0, Event::Connected);
    b.event(1, 0, Event::Received(Piece::of(OK_CLOSE)));
    b.client.expire(&mut b.io, drained);
    assert_eq!(b.io.closed, [0], "and not waited for for ever");
}

#[test]
fn bytes_with_the_end_close_only_their_own_connection() {
    // The response says close, or does not, or is none: the connection is gone in each case.
    for (bytes, outcome) in [
        (OK_CLOSE, Outcome::Ok),
        (OK, Outcome::Ok),
        (&OK[..20], Outcome::Truncated),
        (b"SSH-2.0\r\n\r\n", Outcome::Malformed),
    ] {
        let mut b = bench(1, 0, "GET");
        b.start(0);
        b.event(1, 0, Event::Connected);
        // Waits for the one connection that may be open.
        b.start(2);
        b.event(3, 0, Event::ReceivedLast(Piece::of(bytes)));
        assert_eq!(b.ended().first().map(|e| e.0), Some(outcome));
        assert_eq!((b.io.closed.as_slice(), b.client.tally().open), (&[0][..], 1));
        b.event(4, 0, Event::Connected);
        b.event(5, 0, Event::Received(Piece::of(OK)));
        assert_eq!(b.ended(), [(Outcome::Ok, 3)], "the new one lives");
    }
}

#[test]
fn a_server_that_says_close_and_does_not_throttles_nobody() {
    let mut b = bench(1, 0, "GET");
    for k in 0..5 {
        b.start(10 * k);
        b.event(10 * k + 1, 0, Event::Connected);
        b.event(10 * k + 2, 0, Event::Received(Piece::of(OK_CLOSE)));
    }
    assert_eq!(b.ended(), [(Outcome::Ok, 2); 5]);
    assert_eq!(b.io.closed, [0; 4], "the one that waits gives up its place");
    assert_eq!(b.client.tally().open, 1);
}

#[test]
fn what_is_under_way_at_the_end_is_told() {
    let mut b = bench(2, 0, "GET");
    b.start(0);
    b.event(1, 0, Event::Connected);
    b.start(2);
    b.start(3);
    b.client.abandon(Nanos(10));
    let mut ended = b.ended();
    ended.sort_by_key(|e| e.1);
    assert_eq!(ended, [7, 8, 10].map(|waited| (Outcome::InFlight, waited)));
}

/// A server that takes `service` for each request, over `connections_max` connections; 1 operation
/// for each unit of time up to `until`. How many connections were opened, and what ended how.
fn starved(connections_max: u32, service: u64, until: u64) -> (Bench, Vec<(Outcome, u64)>) {
    let mut b = bench(connections_max, 0, "GET");
    let mut answers = std::collections::VecDeque::new();
    let mut ended = Vec::new();
    let (mut opened, mut sent, mut closed) = (0, 0, 0);
    for now in 0..until + 200 {
        b.client.expire(&mut b.io, Nanos(now));
        if now < until {
            b.start(now);
        }
        for slot in b.io.closed.split_off(closed) {
            b.io.closed.push(slot);
            closed += 1;
            answers.retain(|&(_, of)| of != slot);
        }
        while answers.front().is_some_and(|&(at, _)| at <= now) {
            let (_, slot): (u64, u32) = answers.pop_front().expect("there is one");
            b.event(now, slot, Event::Received(Piece::of(OK)));
        }
        for slot in b.io.opened.split_off(opened) {
            b.io.opened.push(slot);
            opened += 1;
            b.event(now, slot, Event::Connected);
        }
        for (slot, _) in b.io.sent.split_off(sent) {
            b.io.sent.push((slot, 0));
            sent += 1;
            answers.push_back((now + service, slot));
        }
        ended.extend(b.ended());
    }
    (b, ended)
}

#[test]
fn a_pool_that_is_too_small_serves_what_it_can() {
    let (b, ended) = starved(4, 30, 3_000);
    let ok = ended.iter().filter(|(o, _)| *o == Outcome::Ok).count();
    // 4 connections that are busy for 30 each.
    assert!((400..=415).contains(&ok), "{ok}");
    assert_eq!(b.io.opened.len(), 4, "no connection is lost");
    assert_eq!(ended.len(), 3_000);
    let late = ended.iter().filter(|(o, _)| *o == Outcome::Timeout);
    assert!(late.clone().all(|&(_, waited)| waited == 100), "each has its whole time");
    assert_eq!(late.count() + ok, 3_000);
}

#[test]
fn what_waits_in_vain_is_not_sent_in_its_last_moment() {
    // The server takes longer than the timeout: only what has all its time is sent.
    let (b, ended) = starved(4, 150, 3_000);
    assert!(ended.iter().all(|(o, _)| *o == Outcome::Timeout));
    assert!(b.io.opened.len() <= 4 * 31, "{}", b.io.opened.len());
}

#[test]
fn a_line_whose_time_is_over_ends_at_once_and_opens_nothing() {
    let mut b = bench(2, 0, "GET");
    for _ in 0..10_000 {
        b.start(0);
    }
    b.client.expire(&mut b.io, Nanos(500));
    assert_eq!(b.ended().len(), 10_000);
    assert_eq!(b.io.opened.len(), 2);
    // Nor is anything opened for what the generator came to only after its time was over.
    b.client.start(&mut b.io, Op { intended: Nanos(300), lane: Op::ANY_LANE }, Nanos(600));
    assert_eq!(b.ended(), [(Outcome::Timeout, 300)]);
    assert_eq!(b.io.opened.len(), 2);
}

#[test]
fn surplus_ends_the_connection_and_not_the_response() {
    // With the response, and after it.
    let whole = [OK, b"xyz"].concat();
    for pieces in [vec![&whole[..]], vec![OK, b"xyz"], vec![OK, b"x", b"yz"]] {
        let mut b = bench(1, 0, "GET");
        b.start(0);
        b.event(1, 0, Event::Connected);
        for piece in pieces {
            if b.io.closed.is_empty() {
                b.event(2, 0, Event::Received(Piece::of(piece)));
            }
        }
        assert_eq!(b.ended(), [(Outcome::Ok, 2)]);
        assert_eq!((b.io.closed.len(), b.client.tally().surplus), (1, 1));
        b.start(3);
        assert_eq!(b.io.opened.len(), 2);
    }
}

#[test]
fn empty_lines_and_an_unrequested_408_are_no_surplus() {
    for pieces in [vec![&b"\r\n"[..]], vec![b"\r", b"\n"], vec![b"\r\n\r", b"\n"]] {
        let mut b = bench(1, 0, "GET");
        b.start(0);
        b.event(1, 0, Event::Connected);
        b.event(2, 0, Event::Received(Piece::of(OK)));
        b.event(2, 0, Event::Received(Piece::of(pieces[0])));
        b.start(3);
        // The rest comes before the next response.
        for piece in &pieces[1..] {
            b.event(4, 0, Event::Received(Piece::of(piece)));
        }
        b.event(5, 0, Event::Received(Piece::of(OK)));
        assert_eq!(b.ended().len(), 2);
        assert_eq!((b.io.closed.len(), b.client.tally().surplus), (0, 0));
    }
    let mut b = bench(1, 0, "GET");
    b.start(0);
    b.event(1, 0, Event::Connected);
    b.event(2, 0, Event::Received(Piece::of(OK)));
    b.event(3, 0, Event::Received(Piece::of(b"HTTP/1.1 408 Request Timeout\r\n\r\n")));
    assert_eq!((b.io.closed.len(), b.client.tally().surplus), (1, 0));
}

#[test]
fn a_response_before_the_body_was_sent_ends_the_connection() {
    for response in [OK, OK_CLOSE] {
        let mut b = bench(1, 0, "POST");
        b.start(0);
        b.event(1, 0, Event::Connected);
        b.io.sending.push(0);
        b.event(2, 0, Event::Received(Piece::of(response)));
        assert_eq!(b.ended(), [(Outcome::Ok, 2)]);
        assert_eq!(b.io.closed, [0], "nothing may follow half a body");
        b.start(3);
        assert_eq!((b.io.opened.len(), b.io.sent.len()), (2, 1));
    }
}
