use super::super::http_client::Pooled;
use super::super::http_client::tests::{Remembers, parts};
use super::*;
use crate::exchange::TargetConversation;
use crate::exchange::dns::{Dns, DnsShared};
use crate::reactor::{Piece, WireRequests};
use crate::sys::socket::SocketKind;
use knee_load::measure::Outcome;
use knee_load::spec::DnsSettings;

/// A client over UDP from one source port, whose queries time out after 100 ns.
struct Bench {
    client: DivertingClient<Dns, Pooled>,
    io: Remembers,
}

impl Bench {
    /// The port is open: slot 0 over UDP. What is truncated goes over TCP, in slot 1.
    fn new() -> Bench {
        let (config, requests, mut target) = parts(1, 0, "GET");
        target.requests[0].path = "/a.b?type=A".to_owned();
        let udp = DnsSettings { queries_max: 100, ..DnsSettings::default() };
        let tcp = udp.after_truncation().unwrap();
        let kinds = [udp, tcp].map(|settings| {
            let wire = WireRequests::new(Dns::wire_requests(&settings, &target));
            (requests.serialised_as(wire), DnsShared::new(&target, &settings, (1, 0)))
        });
        let config = ClientConfig { keeps_all_open: true, streams_max: 100, ..config };
        let mut bench = Bench {
            client: DivertingClient::new(config, Pooled::default(), kinds),
            io: Remembers::default(),
        };
        bench.client.expire(&mut bench.io, Nanos(1));
        bench.event(1, 0, Event::Connected);
        bench
    }

    fn event(&mut self, at: u64, slot: u32, event: Event<'_>) {
        self.client.on_event(&mut self.io, slot, event, EventTime::seen(Nanos(at)));
        self.client.flush(&mut self.io, &|| Nanos(at));
    }

    /// Starts an operation, and returns its query.
    fn start(&mut self, at: u64) -> Vec<u8> {
        let op = Op { intended: Nanos(at), lane: Op::ANY_LANE };
        self.client.start(&mut self.io, op, Nanos(at));
        self.client.flush(&mut self.io, &|| Nanos(at));
        self.last_query()
    }

    fn last_query(&self) -> Vec<u8> {
        self.io.owned.last().unwrap()[2..].to_vec()
    }

    fn receive(&mut self, at: u64, slot: u32, bytes: &[u8]) {
        self.event(at, slot, Event::Received(Piece::of(bytes)));
    }

    fn expire(&mut self, at: u64) {
        self.client.expire(&mut self.io, Nanos(at));
        self.client.flush(&mut self.io, &|| Nanos(at));
    }

    fn completed(&mut self) -> Option<Completion> {
        self.client.take_completed().copied()
    }
}

/// An answer without records, with these flags in its third byte.
fn answer(query: &[u8], flags: u8) -> Vec<u8> {
    let mut answer = query.to_vec();
    answer[2] = flags;
    answer
}

const WHOLE: u8 = 0x80;
const TRUNCATED: u8 = 0x82;

fn behind_length(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes(), message].concat()
}

#[test]
fn a_truncated_answer_goes_on_over_tcp_as_one_operation() {
    let mut b = Bench::new();
    let query = b.start(5);
    b.receive(9, 0, &answer(&query, TRUNCATED));
    assert_eq!((b.completed(), b.client.tally().in_flight), (None, 1));
    assert_eq!(b.io.kinds, [SocketKind::Datagram, SocketKind::Stream]);
    assert_eq!(b.client.oldest_intended(), Some(Nanos(5)));
    b.event(12, 1, Event::Connected);
    let again = b.last_query();
    assert_eq!(again[2..], query[2..], "the same but for its id");
    let whole = behind_length(&answer(&again, WHOLE));
    b.receive(20, 1, &whole[..1]);
    b.receive(23, 1, &whole[1..]);
    let all = b.completed().expect("it has ended");
    assert_eq!(all.outcome, Outcome::Ok);
    assert_eq!([all.intended, all.sent, all.completed], [5, 5, 23].map(Nanos));
    let length = query.len() as u64;
    assert_eq!([all.bytes, all.bytes_sent], [2 * length + 2; 2]);
    let tally = b.client.tally();
    assert_eq!((tally.in_flight, tally.diverted, tally.opened), (0, 1, 2));
    // The connection is kept for the next.
    let query = b.start(30);
    b.receive(31, 0, &answer(&query, TRUNCATED));
    assert_eq!((b.io.opened.len(), b.io.sent.last().unwrap().0), (2, 1));
}

#[test]
fn whole_answers_open_no_further_connection() {
    let mut b = Bench::new();
    let query = b.start(5);
    b.receive(9, 0, &answer(&query, WHOLE));
    assert_eq!(b.completed().map(|c| (c.outcome, c.completed)), Some((Outcome::Ok, Nanos(9))));
    assert_eq!((b.io.opened.len(), b.client.tally().diverted), (1, 0));
}

#[test]
fn the_time_limit_counts_from_the_intended_time() {
    let mut b = Bench::new();
    let query = b.start(5);
    b.receive(80, 0, &answer(&query, TRUNCATED));
    b.event(90, 1, Event::Connected);
    assert_eq!(b.client.next_deadline(), Nanos(105));
    b.expire(105);
    let all = b.completed().expect("it has ended");
    assert_eq!(
        (all.outcome, all.intended, all.completed),
        (Outcome::Timeout, Nanos(5), Nanos(105))
    );
    assert_eq!(b.client.tally().in_flight, 0);
}

#[test]
fn operations_end_as_they_do_over_tcp() {
    let mut b = Bench::new();
    for at in [5, 6] {
        let query = b.start(at);
        b.receive(at, 0, &answer(&query, TRUNCATED));
    }
    b.event(9, 1, Event::Failed(std::io::Error::from_raw_os_error(libc::ECONNREFUSED)));
    let refused = b.completed().expect("the one that opened it has ended");
    assert_eq!((refused.outcome, refused.intended), (Outcome::Refused, Nanos(5)));
    // The other opens it anew, and is truncated there as well.
    b.event(12, 1, Event::Connected);
    let again = b.last_query();
    b.receive(15, 1, &behind_length(&answer(&again, TRUNCATED)));
    let truncated = b.completed().expect("it has ended");
    assert_eq!(truncated.outcome.name(), "dns_truncated");
    // The end of the run finds one in each of the two.
    let query = b.start(20);
    b.receive(21, 0, &answer(&query, TRUNCATED));
    b.start(22);
    b.client.abandon(Nanos(30));
    let mut ends: Vec<_> = std::iter::from_fn(|| b.completed()).collect();
    ends.sort_by_key(|end| end.intended);
    let ends: Vec<_> = ends.iter().map(|end| (end.outcome, end.intended.0)).collect();
    assert_eq!(ends, [(Outcome::InFlight, 20), (Outcome::InFlight, 22)]);
}
