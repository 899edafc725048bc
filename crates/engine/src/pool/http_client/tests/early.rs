//! Requests that go out with the handshake, over a link where each byte is a message.

use super::*;

/// The handshake's messages. `h`: it goes on; `t`: it is over, and what was sent early was taken.
/// `r`: it is over, and that was refused; `w`: it fails. What the link sends begins with a letter
/// for its kind.
struct Lettered {
    stage: Stage,
    early: Vec<u8>,
    out: Vec<u8>,
}

#[derive(PartialEq)]
enum Stage {
    Begun,
    Answered,
    Taken,
    Refused,
}

impl Link for Lettered {
    type Shared = ();

    fn new((): &mut ()) -> Result<Lettered, String> {
        Ok(Lettered { stage: Stage::Begun, early: Vec::new(), out: b"H".to_vec() })
    }

    fn secure(&mut self, wire: &mut &[u8]) -> Result<(), String> {
        let letter = wire[0];
        *wire = &wire[1..];
        self.stage = match letter {
            b'h' => {
                self.out.push(b'C');
                Stage::Answered
            }
            b't' => Stage::Taken,
            b'r' => Stage::Refused,
            _ => return Err("it is wrong".to_owned()),
        };
        if self.is_secured() {
            self.out.push(b'F');
        }
        if self.stage == Stage::Refused && !self.early.is_empty() {
            self.out.push(b'A');
            self.out.append(&mut self.early);
        }
        Ok(())
    }

    fn is_secured(&self) -> bool {
        matches!(self.stage, Stage::Taken | Stage::Refused)
    }

    fn takes_early(&self) -> bool {
        self.stage == Stage::Begun
    }

    fn is_early_taken(&self) -> bool {
        self.stage == Stage::Taken && !self.early.is_empty()
    }

    fn open(&mut self, wire: &[u8], mut take: impl FnMut(&[u8], usize)) -> Result<(), String> {
        take(wire, 0);
        Ok(())
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) {
        if self.takes_early() {
            self.early.extend_from_slice(plain);
        }
        wire.push(if self.is_secured() { b'D' } else { b'E' });
        wire.extend_from_slice(plain);
    }

    fn has_wire(&self) -> bool {
        !self.out.is_empty()
    }

    fn take_wire(&mut self, into: &mut Vec<u8>) {
        into.append(&mut self.out);
    }
}

struct Early<X: Conversation> {
    client: HttpClient<Lettered, X>,
    io: Remembers,
}

fn http1(method: &str) -> Early<Http1> {
    let (config, requests, target) = parts(1, 0, method);
    Early {
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

/// Up to four operations share a connection.
fn letters() -> Early<multiplexed::Letters> {
    let (config, requests, _) = parts(1, 0, "GET");
    let config = ClientConfig { streams_max: 4, ..config };
    Early {
        client: HttpClient::new(config, Pooled::default(), requests, Some(()), 4),
        io: Remembers::default(),
    }
}

impl<X: Conversation> Early<X> {
    fn start(&mut self, at: u64) {
        let op = Op { intended: Nanos(at), lane: Op::ANY_LANE };
        self.client.start(&mut self.io, op, Nanos(at));
    }

    fn event(&mut self, at: u64, event: Event<'_>) {
        let time = EventTime::seen(Nanos(at));
        self.client.on_event(&mut self.io, 0, event, time);
        self.client.flush(&mut self.io, &|| Nanos(at));
    }

    fn receive(&mut self, at: u64, bytes: &[u8]) {
        self.event(at, Event::Received(Piece::of(bytes)));
    }

    /// All that was sent since the last call.
    fn sent(&mut self) -> String {
        let all: Vec<String> = std::mem::take(&mut self.io.owned)
            .into_iter()
            .map(|bytes| String::from_utf8(bytes).unwrap())
            .collect();
        all.join("|")
    }

    fn ended(&mut self) -> Vec<Completion> {
        std::iter::from_fn(|| self.client.take_completed().copied()).collect()
    }

    fn outcomes(&mut self) -> Vec<Outcome> {
        self.ended().iter().map(|c| c.outcome).collect()
    }
}

/// When it was connected, secured, granted, sent and written.
fn times(of: &Completion) -> [u64; 5] {
    [of.connected, of.secured, of.granted, of.sent, of.written].map(|at| at.0)
}

/// A request as it is sent.
fn get() -> String {
    let (_, requests, _) = parts(1, 0, "GET");
    String::from_utf8(requests.piece(0, 0).to_vec()).unwrap()
}

#[test]
fn a_request_goes_out_with_the_handshake_and_waits_for_none() {
    let mut e = http1("GET");
    e.start(1);
    e.event(5, Event::Connected);
    assert_eq!(e.sent(), format!("HE{}", get()));
    e.receive(6, b"h");
    e.receive(9, &[b"t", OK].concat());
    assert_eq!(e.sent(), "C|F");
    let [ended] = &e.ended()[..] else {
        panic!("one has ended");
    };
    assert_eq!(times(ended), [5, 5, 5, 5, 5]);
    assert_eq!((ended.outcome, ended.first_byte), (Outcome::Ok, Nanos(9)));
    assert_eq!(ended.bytes_sent, get().len() as u64);
    // The connection is kept as any other.
    e.start(20);
    e.receive(30, OK);
    assert_eq!(e.sent(), format!("D{}", get()));
    assert_eq!(times(&e.ended()[0]), [20, 20, 20, 20, 20]);
    assert_eq!(e.client.tally().opened, 1);
}

#[test]
fn one_that_was_refused_waits_for_the_handshake() {
    let mut e = http1("GET");
    e.start(1);
    e.event(5, Event::Connected);
    e.receive(9, b"r");
    assert_eq!(e.sent(), format!("HE{0}|FA{0}", get()));
    e.receive(12, OK);
    let ended = e.ended();
    assert_eq!(times(&ended[0]), [5, 9, 9, 9, 9]);
    assert_eq!(ended[0].bytes_sent, get().len() as u64);
}

#[test]
fn requests_share_a_connection_that_one_of_them_went_out_with() {
    for (answer, at, wire) in [(b't', 5, "HEPr|F"), (b'r', 9, "HEPr|FAPr")] {
        let mut e = letters();
        e.start(1);
        e.start(2);
        e.event(5, Event::Connected);
        e.start(6);
        e.receive(9, &[answer]);
        // Those that came later waited until it was secured.
        assert_eq!(e.sent(), format!("{wire}|Drr"));
        e.receive(12, b"aaa");
        let mut ended = e.ended();
        ended.sort_by_key(|c| c.intended);
        assert_eq!(times(&ended[0]), [5, at, at, at, at]);
        assert_eq!(times(&ended[1]), [5, 9, 9, 9, 9]);
        assert_eq!(times(&ended[2])[2..], [9, 9, 9]);
    }
}

#[test]
fn what_changes_something_waits_for_the_handshake() {
    let mut e = http1("POST");
    e.start(1);
    e.event(5, Event::Connected);
    assert_eq!(e.sent(), "H");
    e.receive(9, b"t");
    assert!(e.sent().starts_with("FDPOST / HTTP/1.1\r\n"));
    e.receive(12, OK);
    assert_eq!(times(&e.ended()[0]), [5, 9, 9, 9, 9]);
}

#[test]
fn handshake_answer_and_request_go_out_in_one_write() {
    let mut e = http1("POST");
    e.start(1);
    e.event(5, Event::Connected);
    e.receive(9, b"hht");
    let sent = e.sent();
    assert!(sent.starts_with("H|CCFDPOST / HTTP/1.1\r\n"), "{sent}");
}

#[test]
fn a_handshake_that_fails_is_named_though_the_request_went_out() {
    let begun = || {
        let mut e = http1("GET");
        e.start(1);
        e.event(5, Event::Connected);
        e
    };
    let mut e = begun();
    e.receive(9, b"w");
    assert_eq!(e.outcomes(), [Outcome::HandshakeFailed]);
    let mut e = begun();
    e.event(9, Event::Ended);
    assert_eq!(e.outcomes(), [Outcome::HandshakeFailed]);
    let events = e.client.finish(Nanos::ZERO).handshakes;
    assert_eq!(events.failed_because.as_deref(), Some(crate::link::HUNG_UP));
    let mut e = begun();
    let reset = io::Error::from_raw_os_error(libc::ECONNRESET);
    e.event(9, Event::Failed(reset));
    assert_eq!(e.outcomes(), [Outcome::Reset]);
    // The limit of the handshake is 30, that of the operation 100.
    let mut e = begun();
    assert_eq!(e.client.oldest_intended(), Some(Nanos(1)));
    e.client.expire(&mut e.io, Nanos(31));
    assert_eq!(e.outcomes(), [Outcome::HandshakeTimeout]);
    assert_eq!(e.io.closed, [0]);
    let mut e = begun();
    e.client.abandon(Nanos(20));
    assert_eq!(e.outcomes(), [Outcome::InFlight]);
}

#[test]
fn timeout_during_handshake_closes_connection() {
    let (config, requests, _) = parts(1, 0, "GET");
    let config = ClientConfig { connect_timeout: Nanos(500), ..config };
    let mut e = Early::<multiplexed::Letters> {
        client: HttpClient::new(config, Pooled::default(), requests, Some(()), 4),
        io: Remembers::default(),
    };
    e.start(1);
    e.event(5, Event::Connected);
    e.client.expire(&mut e.io, Nanos(101));
    assert_eq!(e.outcomes(), [Outcome::Timeout]);
    assert_eq!(e.io.closed, [0]);
    assert_eq!(e.client.tally().open, 0);
}

#[test]
fn partly_sent_request_is_written_once_the_kernel_has_it() {
    let mut e = http1("GET");
    e.io.takes_parts = true;
    e.start(1);
    e.event(5, Event::Connected);
    e.io.sending.clear();
    e.event(7, Event::Written);
    // What ends the handshake is still on its way when the answer is there.
    e.receive(9, &[b"t", OK].concat());
    let ended = e.ended();
    assert_eq!(times(&ended[0]), [5, 5, 5, 5, 7]);
    assert_eq!(ended[0].bytes_sent, get().len() as u64);
    assert_eq!(e.io.closed, [0; 0], "the connection is kept");
}
