mod oracle;

use super::*;
use crate::exchange::dns::DnsViolation;
use crate::exchange::{EventQueue, Outbox};
use knee_load::spec::{HttpRequest, Pick, Protocol, Url};
use knee_load::time::Nanos;
use proptest::prelude::*;

/// One connection, with the questions of `paths`.
struct Bench {
    shared: DnsShared,
    out: Outbox,
    events: EventQueue,
    dns: Option<Dns>,
    /// Whether the last start took the last id.
    has_run_out: bool,
}

impl Bench {
    fn new(over_tcp: bool, queries_max: u32, paths: &[&str]) -> Bench {
        let settings = DnsSettings { over_tcp, queries_max, ..DnsSettings::default() };
        let url = |path: &&str| Url::parse(&format!("dns://h{path}")).unwrap();
        let request =
            |path| HttpRequest::new("GET", &url(path), Vec::new(), Vec::new(), 1).unwrap();
        let requests = paths.iter().map(request).collect();
        let endpoint = url(&paths[0]).endpoint().clone();
        let mut target = Target::new(endpoint, requests, Pick::InOrder, true).unwrap();
        target.protocol = Protocol::Dns(settings);
        let mut bench = Bench {
            shared: DnsShared::new(&target, &settings, (1, 0)),
            out: Outbox::default(),
            events: EventQueue::default(),
            dns: None,
            has_run_out: false,
        };
        bench.dns = Some(bench.call(|_, cx| Dns::established(cx)));
        bench
    }

    fn call<T>(
        &mut self,
        act: impl FnOnce(Option<&mut Dns>, &mut CallContext<'_, DnsShared>) -> T,
    ) -> T {
        let (shared, out, events) = (&mut self.shared, &mut self.out, &mut self.events);
        act(self.dns.as_mut(), &mut CallContext { now: Nanos(1), shared, out, events })
    }

    /// Starts an operation and returns its query.
    fn start(&mut self, op: FlightId, request: usize) -> Vec<u8> {
        self.call(|dns, cx| dns.unwrap().start(op, request.into(), cx));
        let bytes = std::mem::take(self.out.bytes());
        self.has_run_out = self.events.drain(..).any(|event| event == OpEvent::Exhausted);
        let (border, query) = SocketKind::Datagram.first_of(&bytes);
        assert_eq!(border + query.len(), bytes.len());
        query.to_vec()
    }

    /// What follows from received bytes.
    fn receive(&mut self, bytes: &[u8]) -> Vec<OpEvent> {
        self.call(|dns, cx| dns.unwrap().receive(Received { bytes, at: Nanos(2) }, cx));
        self.events.drain(..).collect()
    }

    fn cancel(&mut self, op: FlightId) {
        self.call(|dns, cx| assert_eq!(dns.unwrap().cancel(op, cx), AfterCancel::GoesOn));
    }

    fn room(&self) -> u32 {
        self.dns.as_ref().unwrap().capacity(&self.shared).operations
    }
}

/// An answer to a query: one address, with a pointer for its name.
fn answer(query: &[u8], rcode: u8) -> Vec<u8> {
    let mut answer = query.to_vec();
    (answer[2], answer[3], answer[7]) = (0x81, 0x80 | rcode, 1);
    answer.extend_from_slice(&[0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
    answer
}

fn is_answered(events: &[OpEvent], op: FlightId, status: Status) -> bool {
    events.contains(&OpEvent::Answered { op, status })
}

const ASKED: [&str; 2] = ["/www.example.com?type=A", "/example.com?type=MX"];

#[test]
fn answers_in_any_order_find_their_queries() {
    let mut b = Bench::new(false, 10, &ASKED);
    let queries: Vec<Vec<u8>> = (0..10).map(|op| b.start(op, op as usize % 2)).collect();
    assert_eq!(b.room(), 0);
    for op in [3, 0, 9, 5, 1, 2, 8, 7, 6, 4] {
        let events = b.receive(&answer(&queries[op], 0));
        assert!(is_answered(&events, op as u32, Status::Dns(0)), "{events:?}");
    }
    assert_eq!(b.room(), 10);
}

#[test]
fn what_differs_in_id_name_or_type_matches_nothing() {
    let mut b = Bench::new(false, 10, &ASKED);
    let query = b.start(7, 0);
    let right = answer(&query, 0);
    let change = |at: usize, to: u8| {
        let mut changed = right.clone();
        changed[at] = to;
        changed
    };
    let end = query.len();
    for (name, message) in [
        ("another id", change(1, right[1].wrapping_add(1))),
        ("a query", change(2, 1)),
        ("another name", change(14, b'x')),
        ("another type", change(end - 3, 28)),
        ("another opcode", change(2, 0x81 | 4 << 3)),
        ("no question", change(5, 0)),
        ("a header cut short", right[..11].to_vec()),
        ("nothing", Vec::new()),
    ] {
        assert_eq!(b.receive(&message), [OpEvent::Unmatched], "{name}");
    }
    let folded = change(14, b'W');
    assert!(is_answered(&b.receive(&folded), 7, Status::Dns(0)), "names have no case");
    assert_eq!(b.receive(&right), [OpEvent::Unmatched], "a second answer");
}

#[test]
fn response_codes_truncation_and_faults_are_told_apart() {
    let mut b = Bench::new(false, 10, &ASKED);
    let query = b.start(1, 0);
    assert!(is_answered(&b.receive(&answer(&query, 3)), 1, Status::Dns(3)));
    let query = b.start(2, 0);
    let mut truncated = answer(&query, 0);
    truncated[2] |= 2;
    truncated.truncate(query.len());
    assert!(b.receive(&truncated).contains(&OpEvent::Diverted(2)));
    let query = b.start(3, 0);
    // A server that cannot read the question leaves it out.
    let bare = [query[0], query[1], 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    assert!(is_answered(&b.receive(&bare), 3, Status::Dns(1)));
    for (cut, rule) in [(1, "ends within"), (3, "ends within")] {
        let query = b.start(4, 0);
        let whole = answer(&query, 0);
        let events = b.receive(&whole[..whole.len() - cut]);
        assert!(matches!(&events[2], OpEvent::Violated(why) if why.contains(rule)), "{events:?}");
    }
    let query = b.start(5, 0);
    let events = b.receive(&[&answer(&query, 0)[..], b"x"].concat());
    assert_eq!(events[1], OpEvent::Failed { op: 5, outcome: Outcome::Malformed });
}

/// RFC 6891 §6.1.3.
#[test]
fn the_upper_bits_of_a_response_code_stand_in_the_record_of_edns() {
    for (low, high, whole) in [(0, 0, 0), (0, 1, 16), (7, 1, 23), (3, 0, 3), (0, 255, 4080)] {
        let mut b = Bench::new(false, 10, &ASKED);
        let mut message = answer(&b.start(1, 0), low);
        message[11] = 1;
        message.extend_from_slice(&[0, 0, 41, 4, 208, high, 0, 0, 0, 0, 0]);
        assert!(is_answered(&b.receive(&message), 1, Status::Dns(whole)), "{low} {high}");
    }
}

#[test]
fn an_answer_truncated_over_tcp_is_a_failure() {
    let mut b = Bench::new(true, 10, &ASKED);
    let mut truncated = b.start(2, 0);
    truncated[2] = 0x82;
    assert!(is_answered(&b.receive(&behind_length(&truncated)), 2, Status::DnsTruncated));
}

#[test]
fn a_late_answer_is_not_taken_for_the_next_querys() {
    let mut b = Bench::new(false, 10, &ASKED);
    let late = b.start(1, 0);
    b.cancel(1);
    let next = b.start(2, 0);
    assert_eq!(b.receive(&answer(&late, 0)), [OpEvent::Unmatched]);
    assert!(is_answered(&b.receive(&answer(&next, 0)), 2, Status::Dns(0)));
}

#[test]
fn each_id_is_used_once_at_a_time() {
    let mut b = Bench::new(false, DnsSettings::QUERIES_MAX, &ASKED);
    let mut ids = std::collections::HashSet::new();
    for op in 0..DnsSettings::QUERIES_MAX - 1 {
        ids.insert(*b.start(op, 0).first_chunk::<2>().unwrap());
        assert!(!b.has_run_out, "{op}");
    }
    ids.insert(*b.start(DnsSettings::QUERIES_MAX, 0).first_chunk().unwrap());
    assert_eq!((ids.len(), b.room(), b.has_run_out), (IDS, 0, true));
    b.cancel(77);
    b.cancel(40_000);
    assert_eq!(b.room(), 2);
    b.start(70_000, 0);
    b.start(70_001, 0);
    assert_eq!(b.room(), 0);
}

#[test]
fn the_end_of_a_stream_ends_what_is_under_way() {
    let mut b = Bench::new(true, 10, &ASKED);
    b.start(1, 0);
    b.call(|dns, cx| dns.unwrap().ended(StreamEnd::Fin, cx));
    let closed = OpEvent::Failed { op: 1, outcome: Outcome::Closed };
    assert_eq!(b.events.drain(..).collect::<Vec<_>>(), [closed]);
    assert_eq!(b.room(), 0);
}

proptest! {
    #[test]
    fn a_stream_may_be_split_anywhere(
        sizes in prop::collection::vec(1_usize..40, 1..200),
        queries in 1_u32..20,
    ) {
        let mut b = Bench::new(true, 100, &ASKED);
        let mut stream = Vec::new();
        for op in 0..queries {
            let query = b.start(op, op as usize % 2);
            stream.extend_from_slice(&behind_length(&answer(&query, 0)));
        }
        let mut rest = &stream[..];
        let mut events = Vec::new();
        for size in sizes.into_iter().cycle() {
            let (piece, others) = rest.split_at(size.min(rest.len()));
            events.extend(b.receive(piece));
            rest = others;
            if rest.is_empty() {
                break;
            }
        }
        for op in 0..queries {
            prop_assert!(is_answered(&events, op, Status::Dns(0)));
        }
        prop_assert_eq!(events.len(), 2 * queries as usize);
    }

    #[test]
    fn any_bytes_leave_the_books_in_order(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..20),
        over_tcp: bool,
    ) {
        let mut b = Bench::new(over_tcp, 3, &ASKED);
        for op in 0..3 {
            b.start(op, 0);
        }
        let mut ended = 0;
        for piece in &pieces {
            let events = b.receive(piece);
            ended += events
                .iter()
                .filter(|e| {
                    use OpEvent::{Answered, Diverted, Failed};
                    matches!(e, Answered { .. } | Diverted(_) | Failed { .. })
                })
                .count();
        }
        prop_assert_eq!(b.room() as usize, ended);
    }
}

#[test]
fn names_are_filled_in_each_time() {
    let mut b = Bench::new(false, 10, &["/.example.com?type=A"]);
    b.shared.open[0] = vec![Cut::Text(b"/".to_vec()), Cut::Hole(0)];
    b.shared.open[0].push(Cut::Text(b".example.com?type=A".to_vec()));
    let mut start = |op, value: &str| {
        let mut fills = Fills::new();
        fills.push(value.as_bytes());
        let request = RequestRef { number: 0, fills: &fills, intended: Nanos::ZERO };
        b.call(|dns, cx| dns.unwrap().start(op, request, cx));
        b.events.clear();
        SocketKind::Datagram.first_of(&std::mem::take(b.out.bytes())).1.to_vec()
    };
    let queries = [start(1, "a"), start(2, "bc")];
    assert!(queries[1].windows(4).any(|bytes| bytes == b"\x02bc\x07"));
    assert!(start(3, "d.").is_empty(), "no name: nothing is sent");
    let mut wrong = answer(&queries[0], 0);
    wrong[13] = b'x';
    assert_eq!(b.receive(&wrong), [OpEvent::Unmatched]);
    for (op, query) in (1..).zip(&queries) {
        assert!(is_answered(&b.receive(&answer(query, 0)), op, Status::Dns(0)));
    }
    assert_eq!(b.dns.as_ref().unwrap().poll_timeout(), Nanos::ZERO);
    b.call(|dns, cx| dns.unwrap().handle_timeout(cx));
    let failed = OpEvent::Failed { op: 3, outcome: Outcome::UnfitValue };
    assert_eq!(b.events.drain(..).collect::<Vec<_>>(), [failed]);
    assert_eq!(b.room(), 10);
}

/// An answer with one record of this name, type and data.
fn with_record(query: &[u8], name: &[u8], kind: u8, data: &[u8]) -> Vec<u8> {
    let mut answer = query.to_vec();
    (answer[2], answer[3], answer[7]) = (0x81, 0x80, 1);
    answer.extend_from_slice(name);
    answer.extend_from_slice(&[0, kind, 0, 1, 0, 0, 0, 60, 0, data.len() as u8]);
    answer.extend_from_slice(data);
    answer
}

#[test]
fn names_end_and_data_fit_their_types() {
    use DnsViolation::{Data, Label, Name, Pointer, Short};
    const ADDRESS: &[u8] = &[192, 0, 2, 1];
    const POINTER: &[u8] = &[0xC0, 12];
    let query_bytes = Bench::new(false, 10, &ASKED).start(7, 0).len() as u8;
    // Where the record and its data begin.
    let (at, data) = (query_bytes, query_bytes + 12);
    let long: Vec<u8> = [&[63; 64][..]; 4].concat();
    let soa = [POINTER, &[1, b'h'], POINTER, &[0; 20]].concat();
    for (name, of, kind, data, want) in [
        ("the question", POINTER, 1, ADDRESS, Ok(())),
        ("a part of the question", &[0xC0, 16], 1, ADDRESS, Ok(())),
        ("a label and the question", &[1, b'a', 0xC0, 12], 1, ADDRESS, Ok(())),
        ("the root", &[0], 1, ADDRESS, Ok(())),
        ("itself", &[0xC0, at], 1, ADDRESS, Err(Pointer)),
        ("itself behind a label", &[1, b'a', 0xC0, at], 1, ADDRESS, Err(Pointer)),
        ("what follows", &[0xC0, at + 2], 1, ADDRESS, Err(Pointer)),
        ("the header", &[0xC0, 4], 1, ADDRESS, Err(Pointer)),
        ("beyond the message", &[0xFF, 0xFF], 1, ADDRESS, Err(Pointer)),
        ("a label of another type", &[0x80, 1], 1, ADDRESS, Err(Label)),
        ("too many labels", &[&long[..], &[0]].concat(), 1, ADDRESS, Err(Name)),
        ("an address of three bytes", POINTER, 1, &ADDRESS[..3], Err(Data)),
        ("an address of no bytes", POINTER, 1, &[], Err(Data)),
        ("an address of version 6", POINTER, 28, &[0; 16], Ok(())),
        ("one cut", POINTER, 28, &[0; 15], Err(Data)),
        ("an alias", POINTER, 5, &[3, b'w', b'w', b'w', 0xC0, 16], Ok(())),
        ("an alias that points to itself", POINTER, 5, &[0xC0, data], Err(Pointer)),
        ("an alias that is cut", POINTER, 5, &[3, b'w'], Err(Short)),
        ("an alias with more behind it", POINTER, 5, &[0, 0], Err(Data)),
        ("a mail server", POINTER, 15, &[0, 1, 0xC0, 12], Ok(())),
        ("a mail server without a name", POINTER, 15, &[0, 1], Err(Short)),
        ("a start of authority", POINTER, 6, &soa, Ok(())),
        ("one cut short", POINTER, 6, &soa[..soa.len() - 1], Err(Data)),
        ("any data of another type", POINTER, 16, &[9], Ok(())),
    ] {
        let mut b = Bench::new(false, 10, &ASKED);
        let message = with_record(&b.start(7, 0), of, kind, data);
        let header = DnsHeader::read(&message).unwrap();
        assert_eq!(check_answer(&message, &header).map(drop), want, "{name}");
        let is_ok = is_answered(&b.receive(&message), 7, Status::Dns(0));
        assert_eq!(is_ok, want.is_ok(), "{name}");
    }
}
