use super::*;
use hickory_proto::op::Message;
use knee_engine::exchange::dns::{check_answer, put_query};
use knee_load::spec::{DnsQuestion, DnsSettings};
use proptest::prelude::*;

fn query(name: &str, kind: &str) -> Vec<u8> {
    let mut query = Vec::new();
    put_query(
        &DnsQuestion::parse(name.as_bytes(), kind).unwrap(),
        &DnsSettings::default(),
        &mut query,
    );
    query[..2].copy_from_slice(&[7, 9]);
    query
}

/// A query with an OPT record that permits answers of `limit` bytes, and has an option.
fn with_opt(mut query: Vec<u8>, limit: u16) -> Vec<u8> {
    query[11] += 1;
    query.extend_from_slice(&[0, 0, 41]);
    query.extend_from_slice(&limit.to_be_bytes());
    query.extend_from_slice(&[0, 0, 0, 0, 0, 4, 0, 10, 0, 0]);
    query
}

/// The answer of a zone with `records` addresses, which is checked to be whole.
fn ask(records: u8, query: &[u8], over: Transport) -> (ZoneAnswer, DnsHeader, Vec<u8>) {
    let mut out = b"before".to_vec();
    let answer = Zone { records }.answer(query, over, &mut out).expect("an answer");
    let message = out.split_off(6);
    let header = DnsHeader::read(&message).unwrap();
    assert_eq!(check_answer(&message, &header), Ok(header.rcode), "{message:?}");
    assert_eq!((header.is_answer, header.is_truncated), (true, answer.is_truncated));
    assert_eq!(header.rcode, answer.rcode as u16);
    let read = Message::from_vec(&message).unwrap();
    assert_eq!(read.answers.len(), usize::from(header.counts[1]), "{read}");
    assert_eq!(read.edns.is_some(), header.counts[3] > 0, "{read}");
    (answer, header, message)
}

#[test]
fn names_and_types_have_what_the_zone_says() {
    for (name, kind, rcode, counts) in [
        ("www.example.com", "A", Rcode::Noerror, [1, 3, 0, 0]),
        ("a.b.EXAMPLE.com", "AAAA", Rcode::Noerror, [1, 3, 0, 0]),
        ("example.com", "ANY", Rcode::Noerror, [1, 3, 0, 0]),
        ("example.com", "SOA", Rcode::Noerror, [1, 1, 0, 0]),
        ("example.com", "NS", Rcode::Noerror, [1, 1, 0, 0]),
        ("www.example.com", "NS", Rcode::Noerror, [1, 0, 1, 0]),
        ("www.example.com", "TXT", Rcode::Noerror, [1, 0, 1, 0]),
        ("www.example.org", "A", Rcode::Nxdomain, [1, 0, 0, 0]),
        ("wwwexample.com", "A", Rcode::Nxdomain, [1, 0, 0, 0]),
        ("com", "A", Rcode::Nxdomain, [1, 0, 0, 0]),
        (".", "NS", Rcode::Nxdomain, [1, 0, 0, 0]),
    ] {
        let query = query(name, kind);
        let (answer, header, message) = ask(3, &query, Transport::Udp);
        assert_eq!((answer.rcode, header.counts), (rcode, counts), "{name} {kind}");
        // Id, opcode and RD are those of the query, and AA is set; the question is repeated.
        assert_eq!(message[..3], [7, 9, 0x85], "{name} {kind}");
        assert_eq!(message[12..query.len()], query[12..], "{name} {kind}");
    }
}

#[test]
fn what_does_not_fit_is_truncated_over_udp_alone() {
    let plain = query("www.example.com", "A");
    // 33 bytes of header and question, 16 of each record, 11 of OPT.
    for (records, query, is_truncated) in [
        (29, plain.clone(), false),
        (30, plain.clone(), true),
        (29, with_opt(plain.clone(), 0), false),
        (30, with_opt(plain.clone(), 512), true),
        (74, with_opt(plain.clone(), 1232), false),
        (75, with_opt(plain.clone(), 1232), true),
        (75, with_opt(plain.clone(), 4096), true),
    ] {
        let (answer, header, message) = ask(records, &query, Transport::Udp);
        assert_eq!(answer.is_truncated, is_truncated, "{records}");
        let answers = if is_truncated { 0 } else { records };
        let has_opt = u16::from(query[11] > 0);
        assert_eq!(header.counts, [1, answers.into(), 0, has_opt], "{records}");
        assert!(message.len() <= if has_opt > 0 { 1232 } else { 512 });
        let (answer, header, _) = ask(records, &query, Transport::Tcp);
        assert!(!answer.is_truncated);
        assert_eq!(header.counts, [1, records.into(), 0, has_opt]);
    }
}

#[test]
fn what_is_no_question_is_said() {
    let plain = query("www.example.com", "A");
    let change = |at: usize, to: u8| {
        let mut changed = plain.clone();
        changed[at] = to;
        changed
    };
    let end = plain.len();
    let two_opts = with_opt(with_opt(plain.clone(), 512), 512);
    let pointer = [&plain[..12], &[0xC0, 12, 0, 1, 0, 1]].concat();
    for (what, query, rcode) in [
        ("another opcode", change(2, 0x29), Rcode::Notimp),
        ("two questions", change(5, 2), Rcode::Formerr),
        ("a record as an answer", change(7, 1), Rcode::Formerr),
        ("cut short", plain[..end - 1].to_vec(), Rcode::Formerr),
        ("a header alone", plain[..12].to_vec(), Rcode::Formerr),
        ("bytes behind it", [&plain[..], b"x"].concat(), Rcode::Formerr),
        ("a pointer for a name", pointer, Rcode::Formerr),
        ("two OPT records", two_opts, Rcode::Formerr),
        ("another class", change(end - 1, 3), Rcode::Refused),
    ] {
        assert_eq!(ask(1, &query, Transport::Udp).0.rcode, rcode, "{what}");
    }
    for no_query in [change(2, 0x81), plain[..11].to_vec(), Vec::new()] {
        let mut out = Vec::new();
        let answer = Zone { records: 1 }.answer(&no_query, Transport::Udp, &mut out);
        assert_eq!((answer, out.len()), (None, 0));
    }
}

proptest! {
    #[test]
    fn any_query_has_a_whole_answer_that_fits(
        changes in prop::collection::vec((0_usize..60, any::<u8>()), 0..6),
        noise in prop::collection::vec(any::<u8>(), 0..80),
        records in 1_u8..=250,
        is_noise: bool,
    ) {
        let mut query = with_opt(query("www.example.com", "A"), 1232);
        for (at, to) in changes {
            if let Some(byte) = query.get_mut(at) {
                *byte = to;
            }
        }
        let query = if is_noise { noise } else { query };
        let mut out = Vec::new();
        if let Some(answer) = (Zone { records }).answer(&query, Transport::Udp, &mut out) {
            let header = DnsHeader::read(&out).unwrap();
            prop_assert_eq!(check_answer(&out, &header), Ok(header.rcode));
            prop_assert!(out.len() <= 1232);
            prop_assert_eq!(header.rcode, answer.rcode as u16);
        }
    }
}
