//! Connections that carry several operations, with an exchange where each byte is a message.

use super::*;
use crate::exchange::{
    AfterCancel, CallContext, Capacity, ConnectionState, FlightId, OpEvent, Received, RequestRef,
    StreamEnd,
};
use knee_load::both_ends::{Sample, Sampled};
use knee_load::measure::Status;
use std::collections::VecDeque;

/// Answers come in the order of the requests. `a`: the oldest is answered; `u`: it was not
/// processed; `g`: no other may begin; `w`: the rules are broken. `k`: three bytes are to be sent,
/// each once the kernel has the one before.
#[derive(Default)]
pub(super) struct Letters {
    under_way: VecDeque<FlightId>,
    state: ConnectionState,
    permitted: u32,
    kept: u32,
}

impl Conversation for Letters {
    /// How many operations the target permits at once.
    type Shared = u32;

    const LEAVES_AT_ONCE: bool = false;

    fn established(cx: &mut CallContext<'_, u32>) -> Letters {
        cx.out.bytes().push(b'P');
        Letters { permitted: *cx.shared, ..Letters::default() }
    }

    fn capacity(&self, _: &u32) -> Capacity {
        let under_way = self.under_way.len() as u32;
        Capacity {
            operations: match self.state {
                ConnectionState::Open => self.permitted - under_way,
                _ => 0,
            },
            is_targets_limit: true,
        }
    }

    fn start(&mut self, op: FlightId, _: RequestRef<'_>, cx: &mut CallContext<'_, u32>) {
        assert!(self.capacity(&0).operations > 0, "there is room");
        self.under_way.push_back(op);
        cx.out.bytes().push(b'r');
        cx.events.push(OpEvent::Written(op));
    }

    fn receive(&mut self, input: Received<'_>, cx: &mut CallContext<'_, u32>) {
        let events = &mut cx.events;
        for byte in input.bytes {
            match byte {
                b'g' => self.state = ConnectionState::Closing,
                b'k' => {
                    cx.out.bytes().push(b'k');
                    self.kept += 2;
                }
                b'w' => {
                    self.state = ConnectionState::Broken;
                    let failed = self
                        .under_way
                        .drain(..)
                        .map(|op| OpEvent::Failed { op, outcome: Outcome::Malformed });
                    events.extend(failed);
                    events.push(OpEvent::Violated("a rule".to_owned()));
                }
                _ => {
                    let op = self.under_way.pop_front().expect("it was asked");
                    events.push(OpEvent::Received { op, bytes: 1 });
                    events.push(match byte {
                        b'a' => OpEvent::Answered { op, status: Status::Http(200) },
                        _ => OpEvent::Unprocessed(op),
                    });
                }
            }
        }
    }

    fn sent(&mut self, cx: &mut CallContext<'_, u32>) {
        if self.kept > 0 {
            self.kept -= 1;
            cx.out.bytes().push(b'k');
        }
    }

    fn ended(&mut self, end: StreamEnd, cx: &mut CallContext<'_, u32>) {
        self.state = end.state_after(self.state);
        let closed =
            self.under_way.drain(..).map(|op| OpEvent::Failed { op, outcome: Outcome::Truncated });
        cx.events.extend(closed);
    }

    fn cancel(&mut self, op: FlightId, cx: &mut CallContext<'_, u32>) -> AfterCancel {
        self.under_way.retain(|other| *other != op);
        cx.out.bytes().push(b'x');
        AfterCancel::GoesOn
    }

    fn state(&self) -> ConnectionState {
        self.state
    }
}

struct Shared {
    client: HttpClient<Tls, Letters>,
    io: Remembers,
}

/// Up to `connections_max` connections that carry `permitted` operations at once each.
fn shared(connections_max: u32, permitted: u32) -> Shared {
    let (config, requests, _) = parts(connections_max, 0, "GET");
    let config = ClientConfig { streams_max: permitted, ..config };
    Shared {
        client: HttpClient::new(config, Pooled::default(), requests, None, permitted),
        io: Remembers::default(),
    }
}

impl Shared {
    fn start(&mut self, at: u64) {
        let op = Op { intended: Nanos(at), lane: Op::ANY_LANE };
        self.client.start(&mut self.io, op, Nanos(at));
    }

    fn event(&mut self, at: u64, slot: u32, event: Event<'_>) {
        let time = EventTime::seen(Nanos(at));
        self.client.on_event(&mut self.io, slot, event, time);
        self.flush(at);
    }

    fn letters(&mut self, at: u64, slot: u32, letters: &[u8]) {
        self.event(at, slot, Event::Received(Piece::of(letters)));
    }

    fn flush(&mut self, at: u64) {
        self.client.flush(&mut self.io, &|| Nanos(at));
    }

    fn ended(&mut self) -> Vec<Completion> {
        let ended = std::iter::from_fn(|| self.client.take_completed().copied());
        let mut ended = Vec::from_iter(ended);
        ended.sort_by_key(|c| (c.completed, c.intended));
        ended
    }

    fn outcomes(&mut self) -> Vec<Outcome> {
        self.ended().iter().map(|c| c.outcome).collect()
    }
}

#[test]
fn what_is_due_goes_out_in_one_write() {
    let mut s = shared(1, 8);
    for _ in 0..3 {
        s.start(1);
    }
    s.event(2, 0, Event::Connected);
    assert_eq!(s.io.owned, [b"Prrr"]);
    s.start(3);
    s.start(3);
    assert_eq!(s.io.owned.len(), 1, "not before all that is due has begun");
    s.flush(4);
    assert_eq!(s.io.owned[1], b"rr");
    s.letters(9, 0, b"aaaaa");
    let times = s.ended();
    let times: Vec<_> =
        times.iter().map(|c| (c.started.0, c.granted.0, c.written.0, c.completed.0)).collect();
    let early = (1, 2, 2, 9);
    assert_eq!(times, [early, early, early, (3, 3, 4, 9), (3, 3, 4, 9)]);
}

#[test]
fn operation_beyond_the_streams_waits_and_names_the_limit() {
    let mut s = shared(1, 2);
    for at in [1, 1, 5] {
        s.start(at);
        s.event(2, 0, Event::Connected);
    }
    s.letters(20, 0, b"a");
    s.letters(30, 0, b"aa");
    let waited = s.ended().pop().unwrap();
    assert_eq!((waited.intended, waited.placed), (Nanos(5), Nanos(5)));
    assert_eq!((waited.secured, waited.granted), (Nanos(5), Nanos(20)));
    assert!(waited.is_targets_limit);
    assert_eq!(s.io.opened, [0]);
}

#[test]
fn the_connection_that_carries_fewest_gets_the_next() {
    let mut s = shared(2, 9);
    s.start(0);
    s.start(0);
    for slot in [0, 1] {
        s.event(1, slot, Event::Connected);
    }
    for _ in 0..4 {
        s.start(2);
    }
    s.flush(2);
    assert_eq!(s.io.owned[2..], [b"rr", b"rr"]);
    s.letters(3, 1, b"aaa");
    s.start(4);
    s.start(4);
    s.start(4);
    s.flush(4);
    assert_eq!(s.io.owned.last().map(Vec::len), Some(3), "all on the other");
    assert_eq!(s.io.opened, [0, 1]);
}

#[test]
fn a_timeout_ends_one_operation_and_not_its_connection() {
    let mut s = shared(1, 9);
    s.start(0);
    s.event(1, 0, Event::Connected);
    s.start(50);
    s.client.expire(&mut s.io, Nanos(100));
    s.flush(100);
    assert_eq!(s.outcomes(), [Outcome::Timeout]);
    assert_eq!(s.io.owned.last().unwrap(), b"rx");
    s.letters(110, 0, b"a");
    assert_eq!(s.outcomes(), [Outcome::Ok]);
    assert!(s.io.closed.is_empty());
}

#[test]
fn unprocessed_operation_goes_again_at_most_three_times() {
    let mut s = shared(1, 9);
    s.start(0);
    s.event(1, 0, Event::Connected);
    s.start(2);
    s.flush(2);
    s.letters(3, 0, b"gua");
    assert_eq!(s.outcomes(), [Outcome::Ok], "the other ended where it was");
    assert_eq!(s.io.opened, [0, 0], "and nothing new began there");
    s.event(4, 0, Event::Connected);
    s.letters(5, 0, b"u");
    s.letters(6, 0, b"u");
    assert_eq!(s.outcomes(), [], "it goes again");
    s.letters(7, 0, b"u");
    assert_eq!(s.outcomes(), [Outcome::Unprocessed]);
}

/// On a connection that stays open, with the deadline that it had.
#[test]
fn refused_operation_goes_again_at_once() {
    let mut s = shared(1, 1);
    s.start(0);
    s.event(1, 0, Event::Connected);
    s.start(2);
    s.letters(3, 0, b"u");
    assert_eq!(s.client.next_deadline(), Nanos(100), "each has a deadline");
    s.letters(4, 0, b"a");
    s.letters(5, 0, b"a");
    assert_eq!(s.outcomes(), [Outcome::Ok; 2]);
    assert_eq!(s.io.opened, [0], "over the same connection");

    let mut s = shared(1, 1);
    s.start(0);
    s.event(1, 0, Event::Connected);
    s.letters(3, 0, b"u");
    s.client.expire(&mut s.io, Nanos(100));
    assert_eq!(s.outcomes(), [Outcome::Timeout], "as none comes");
}

/// A connection whose sending fails is closed once, and its successor is not closed.
#[test]
fn connection_that_cannot_send_is_replaced_once() {
    let mut s = shared(1, 1);
    s.start(0);
    s.start(0);
    s.io.send_error = Some(libc::ENOBUFS);
    s.event(1, 0, Event::Connected);
    assert_eq!(s.outcomes(), [Outcome::NoResources]);
    s.io.send_error = None;
    assert_eq!(s.io.opened, [0, 0], "the other has a connection of its own");
    s.event(2, 0, Event::Connected);
    s.letters(3, 0, b"a");
    assert_eq!(s.outcomes(), [Outcome::Ok]);
}

#[test]
fn repeated_request_waits_for_the_limit() {
    let mut s = shared(1, 9);
    // One request in 50 ns; the driver takes for the first of an operation.
    let limit = RateLimit::part_of(2e7, 1);
    s.client = s.client.within(Some(limit.clone()));
    assert!(limit.take(Nanos::ZERO));
    s.start(0);
    s.event(1, 0, Event::Connected);
    s.letters(3, 0, b"u");
    assert_eq!((s.outcomes(), s.io.opened.len()), (vec![], 1));
    assert_eq!(s.client.next_due(), Nanos(50));
    s.client.expire(&mut s.io, Nanos(49));
    assert_eq!(limit.used().started, 1);
    s.client.expire(&mut s.io, Nanos(50));
    assert_eq!(limit.used().started, 2);
    s.client.abandon(Nanos(60));
    assert_eq!((s.outcomes(), s.client.tally().in_flight), (vec![Outcome::InFlight], 0));
}

#[test]
fn the_end_of_a_connection_ends_all_that_it_carries() {
    for (event, outcome) in [
        (Event::Ended, Outcome::Truncated),
        (Event::Received(Piece::of(b"w")), Outcome::Malformed),
        (Event::Failed(io::Error::from_raw_os_error(libc::ECONNRESET)), Outcome::Reset),
    ] {
        let mut s = shared(1, 2);
        s.start(0);
        s.event(1, 0, Event::Connected);
        s.start(2);
        s.start(3);
        s.event(4, 0, event);
        assert_eq!(s.outcomes(), [outcome; 2]);
        assert_eq!(s.io.closed, [0]);
        s.event(5, 0, Event::Connected);
        s.letters(6, 0, b"a");
        assert_eq!(s.outcomes(), [Outcome::Ok], "what waited has a new one");
        assert_eq!(s.client.tally().in_flight, 0);
    }
}

#[test]
fn what_waits_for_the_kernel_leaves_pass_by_pass() {
    let mut s = shared(1, 9);
    s.start(0);
    s.event(1, 0, Event::Connected);
    s.letters(2, 0, b"k");
    for at in 3..6 {
        assert_eq!(s.io.owned.concat(), [&b"Pr"[..], &b"kkk"[..at - 2]].concat());
        assert_eq!(s.client.next_deadline() == Nanos::ZERO, at < 5, "at {at}");
        s.flush(at as u64);
        s.client.expire(&mut s.io, Nanos(at as u64));
        s.flush(at as u64);
    }
    assert_eq!(s.io.owned.len(), 4);
    // Nothing goes on over the connection that has its slot next.
    s.letters(6, 0, b"k");
    s.event(6, 0, Event::Ended);
    let sent = s.io.owned.len();
    s.start(7);
    s.client.expire(&mut s.io, Nanos(8));
    s.flush(8);
    assert_eq!((s.io.opened.len(), s.io.owned.len()), (2, sent));
}

#[test]
fn payload_that_is_reported_goes_on_with_the_report() {
    let mut s = shared(1, 9);
    s.io.reports = true;
    s.start(0);
    s.event(1, 0, Event::Connected);
    s.letters(2, 0, b"k");
    for (at, sent) in (3..).zip([&b"Pr"[..], b"kk", b"k"]) {
        s.client.expire(&mut s.io, Nanos(at));
        s.flush(at);
        assert_eq!(s.io.owned.last().unwrap(), sent);
        assert_eq!(s.client.next_deadline(), Nanos(100), "only the report goes on");
        s.io.reporting.clear();
        s.event(at, 0, Event::Written);
    }
    assert_eq!(s.io.owned.len(), 3);
}

/// Where the operations lie that were followed: the end of the request, begin and end of the
/// response.
fn places(s: &mut Shared) -> Vec<[u64; 3]> {
    let sampled = Sampled::of(s.client.finish(Nanos::ZERO).offset_recorder.into_iter().collect());
    let of = |s: &Sample| [s.request_end, s.response_begin, s.response_end];
    sampled.samples.iter().map(of).collect()
}

#[test]
fn operations_that_share_a_connection_are_found_in_its_streams() {
    let mut s = shared(2, 9);
    s.client = s.client.followed(Some(1));
    s.start(0);
    s.start(0);
    s.event(1, 0, Event::Connected);
    s.event(1, 1, Event::Connected);
    s.start(2);
    s.start(2);
    s.flush(2);
    // In step on the one, `g` belonging to none of its operations; on the other one by one.
    s.letters(3, 0, b"aga");
    s.letters(4, 1, b"a");
    s.letters(5, 1, b"a");
    assert_eq!(s.outcomes(), [Outcome::Ok; 4]);
    let expected = [[2, 0, 1], [3, 1, 2], [2, 0, 1], [3, 1, 2]];
    assert_eq!(places(&mut s), expected);
}

#[test]
fn request_ends_where_it_was_handed_over() {
    let mut s = shared(1, 9);
    s.client = s.client.followed(Some(1));
    s.io.takes_parts = true;
    s.start(0);
    s.event(1, 0, Event::Connected);
    // The first is on its way; the others wait in the outbox until it is with the kernel.
    s.start(2);
    s.start(2);
    s.flush(2);
    (s.io.takes_parts, s.io.sending) = (false, Vec::new());
    s.event(7, 0, Event::Written);
    s.letters(9, 0, b"aaa");
    let written: Vec<_> = s.ended().iter().map(|c| (c.sent.0, c.written.0)).collect();
    assert_eq!(written, [(1, 7), (7, 7), (7, 7)]);
    assert_eq!(places(&mut s), [[2, 0, 1], [4, 1, 2], [4, 2, 3]]);
}

#[test]
fn a_connection_that_is_not_followed_leaves_no_sample() {
    let mut s = shared(2, 9);
    s.client = s.client.followed(Some(2));
    s.start(0);
    s.event(1, 0, Event::Connected);
    s.letters(9, 0, b"a");
    assert_eq!(places(&mut s).len(), 1);
    let mut s = shared(2, 9);
    s.client = s.client.followed(Some(1 << 14));
    s.start(0);
    s.event(1, 0, Event::Connected);
    s.letters(9, 0, b"a");
    assert_eq!(places(&mut s), [[0; 3]; 0]);
}

#[test]
fn server_that_does_not_read_costs_bounded_memory() {
    let mut s = shared(1, 8);
    assert!(s.client.unread_max > UNREAD_BYTES_MAX);
    s.client.unread_max = 40;
    s.start(1);
    s.io.takes_parts = true;
    s.event(2, 0, Event::Connected);
    // Each answer makes room for a request, which the server asks for without reading it.
    for at in 3..42 {
        s.letters(at, 0, b"a");
        s.start(at);
        s.flush(at);
    }
    assert!(s.io.closed.is_empty(), "{} bytes wait", 39);
    s.letters(50, 0, b"a");
    s.start(50);
    s.start(50);
    s.flush(50);
    assert_eq!(s.io.closed, [0]);
    let last = s.outcomes().pop();
    assert_eq!(last, Some(Outcome::OtherError));
    let why = s.client.finish(Nanos(60)).violation;
    assert!(why.is_some_and(|why| why.contains("wait for the target to read")));
}
