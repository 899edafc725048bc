//! Messages as `hickory-proto` reads and writes them.

use super::*;
use crate::exchange::dns::put_query;
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, MX, NS, SOA, TXT};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};

/// A name of any labels that fits.
fn labels() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 1..=50), 0..=4)
}

fn name() -> impl Strategy<Value = Name> {
    const KNOWN: [&str; 5] =
        ["www.example.com.", "example.com.", "ns1.example.com.", "example.net.", "."];
    prop::sample::select(&KNOWN[..]).prop_map(|name| Name::from_ascii(name).unwrap())
}

fn data() -> impl Strategy<Value = RData> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(|ip| RData::A(A(ip.into()))),
        any::<[u8; 16]>().prop_map(|ip| RData::AAAA(AAAA(ip.into()))),
        name().prop_map(|name| RData::CNAME(CNAME(name))),
        name().prop_map(|name| RData::NS(NS(name))),
        (any::<u16>(), name()).prop_map(|(first, name)| RData::MX(MX::new(first, name))),
        name().prop_map(|name| RData::SOA(SOA::new(name.clone(), name, 1, 2, 3, 4, 5))),
        prop::collection::vec("[a-z]{0,100}", 1..3).prop_map(|text| RData::TXT(TXT::new(text))),
    ]
}

fn records(most: usize) -> impl Strategy<Value = Vec<Record>> {
    let record = (name(), any::<u32>(), data());
    let record = record.prop_map(|(name, ttl, data)| Record::from_rdata(name, ttl, data));
    prop::collection::vec(record, 0..most)
}

/// An answer without id and question.
fn answer() -> impl Strategy<Value = Message> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), 0_u8..=15);
    (flags, records(20), records(4), records(4)).prop_map(
        |((is_truncated, is_authority, has_edns, rcode), answers, authorities, additionals)| {
            let mut message = Message::response(0, OpCode::Query);
            message.metadata.truncation = is_truncated;
            message.metadata.authoritative = is_authority;
            message.metadata.response_code = ResponseCode::from_low(rcode);
            message.edns = has_edns.then(Edns::new);
            message.add_answers(answers);
            message.add_authorities(authorities);
            message.add_additionals(additionals);
            message
        },
    )
}

proptest! {
    #[test]
    fn queries_are_read_as_they_are_meant(
        labels in labels(),
        kind: u16,
        edns_bytes: Option<u16>,
        dnssec: bool,
        no_recursion: bool,
    ) {
        let mut wire = Vec::new();
        for label in &labels {
            wire.push(label.len() as u8);
            wire.extend_from_slice(label);
        }
        wire.push(0);
        let mut query = Vec::new();
        let settings =
            DnsSettings { edns_bytes, dnssec, no_recursion, ..DnsSettings::default() };
        put_query(&DnsQuestion { name: wire, kind }, &settings, &mut query);
        let read = Message::from_vec(&query).unwrap();
        prop_assert_eq!(read.metadata.message_type, MessageType::Query);
        prop_assert!(read.metadata.recursion_desired != no_recursion && !read.metadata.truncation);
        prop_assert_eq!(read.edns.is_some(), dnssec || edns_bytes.is_some());
        if let Some(edns) = &read.edns {
            // Less than 512 means 512 (RFC 6891 §6.2.3).
            prop_assert_eq!(edns.max_payload(), edns_bytes.unwrap_or(1232).max(512));
            prop_assert_eq!((edns.version(), edns.flags().dnssec_ok), (0, dnssec));
        }
        let [asked] = &read.queries[..] else {
            return Err(TestCaseError::fail("one question"));
        };
        let their: Vec<&[u8]> = asked.name().iter().collect();
        prop_assert_eq!(their, labels);
        prop_assert_eq!(u16::from(asked.query_type()), kind);
        prop_assert_eq!(asked.query_class(), DNSClass::IN);
        if edns_bytes.is_none_or(|bytes| bytes >= 512) {
            prop_assert_eq!(read.to_vec().unwrap(), query);
        }
    }

    #[test]
    fn answers_mean_to_both_the_same(
        mut message in answer(),
        change in 0_u8..8,
        over_tcp: bool,
        cut: prop::sample::Index,
    ) {
        let mut b = Bench::new(over_tcp, 10, &ASKED);
        let asked = b.start(7, 0);
        let ours = Message::from_vec(&asked).unwrap();
        let other = |name: &str, kind| Query::query(Name::from_ascii(name).unwrap(), kind);
        message.metadata.id = ours.metadata.id ^ u16::from(change == 0);
        message.add_query(match change {
            1 => other("www.example.com.", RecordType::AAAA),
            2 => other("www.example.net.", RecordType::A),
            3 => other("WWW.Example.COM.", RecordType::A),
            _ => ours.queries[0].clone(),
        });
        let bytes = message.to_vec().unwrap();
        let read = Message::from_vec(&bytes).unwrap();
        let is_ours = read.metadata.id == ours.metadata.id && read.queries == ours.queries;
        prop_assert_eq!(is_ours, change > 2, "a name has no case for them");
        let status = Status::Dns(read.metadata.response_code.low().into());
        let want = match (is_ours, read.metadata.truncation) {
            (false, _) => OpEvent::Unmatched,
            (true, false) => OpEvent::Answered { op: 7, status },
            (true, true) if over_tcp => OpEvent::Answered { op: 7, status: Status::DnsTruncated },
            (true, true) => OpEvent::Diverted(7),
        };
        let framed = if over_tcp { behind_length(&bytes) } else { bytes.clone() };
        prop_assert_eq!(b.receive(&framed).pop(), Some(want));

        // No part of it is whole to anyone.
        let part = &bytes[..cut.index(bytes.len())];
        prop_assert!(Message::from_vec(part).is_err());
        let header = DnsHeader::read(part);
        prop_assert!(header.is_none_or(|header| check_answer(part, &header).is_err()));
    }

    #[test]
    fn what_they_can_read_is_whole_to_us(
        message in answer(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = message.to_vec().unwrap();
        for (at, to) in changes {
            let at = at.index(bytes.len());
            bytes[at] = to;
        }
        let header = DnsHeader::read(&bytes).unwrap();
        if Message::from_vec(&bytes).is_ok() {
            // They leave unread what follows the last record, permit records without data, as
            // updates have them (RFC 2136), and pointers into the header.
            let ours = check_answer(&bytes, &header);
            let is_whole = ours.is_ok()
                || matches!(
                    ours,
                    Err(DnsViolation::Surplus | DnsViolation::Data | DnsViolation::Pointer)
                );
            prop_assert!(is_whole, "{ours:?}");
        }
    }
}
