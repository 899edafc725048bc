//! Events and answers are the same however the bytes of the server are cut.

use super::super::super::frame::{flag, kind};
use super::rig::*;
use crate::exchange::{ConnectionState, Conversation, OpEvent};
use proptest::prelude::*;

/// Pieces of a conversation on streams 1 to 7, most of them as they should be.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let stream = || prop_oneof![8 => (0_u32..4).prop_map(|n| 2 * n + 1), 1 => 0_u32..12];
    let status = prop_oneof![Just("200"), Just("100"), Just("204"), Just("404"), Just("101")];
    let length = prop_oneof![Just(None), Just(Some("0")), Just(Some("5")), Just(Some("x"))];
    prop_oneof![
        4 => (stream(), any::<bool>(), status, length).prop_map(|(id, end, status, length)| {
            let mut fields = vec![(":status", status)];
            fields.extend(length.map(|length| ("content-length", length)));
            headers(id, end, &fields)
        }),
        4 => (stream(), any::<bool>(), 0_usize..9).prop_map(|(id, end, n)| {
            data(id, end, &vec![0; n])
        }),
        1 => (stream(), 0_u8..4, 1_usize..6).prop_map(|(id, pad, n)| {
            f(kind::DATA, flag::PADDED, id, &[&[pad][..], &vec![0; n]].concat())
        }),
        1 => (stream(), any::<bool>()).prop_map(|(id, end)| headers(id, end, &[("a", "b")])),
        1 => (stream(), 0_usize..4).prop_map(|(id, cut)| {
            let block = [0x88, 0x40, 1, b'a', 1, b'b'];
            let first = f(kind::HEADERS, flag::END_STREAM, id, &block[..cut]);
            [first, f(kind::CONTINUATION, flag::END_HEADERS, id, &block[cut..])].concat()
        }),
        1 => Just(f(kind::PING, 0, 0, b"12345678")),
        1 => (1_u16..7, 0_u32..100_000).prop_map(|setting| settings(&[setting])),
        1 => (stream(), any::<u8>()).prop_map(|(id, by)| {
            f(kind::WINDOW_UPDATE, 0, id, &[0, 0, by, by])
        }),
        1 => (stream(), 0_u8..14).prop_map(|(id, code)| {
            f(kind::RST_STREAM, 0, id, &[0, 0, 0, code])
        }),
        1 => (0_u8..9, 0_u8..2).prop_map(|(last, code)| {
            f(kind::GOAWAY, 0, 0, &[0, 0, 0, last, 0, 0, 0, code])
        }),
        1 => (any::<u8>(), any::<u8>(), stream(), any::<[u8; 3]>())
            .prop_map(|(kind, flags, id, payload)| f(kind, flags, id, &payload)),
    ]
}

/// The events, the answer and the connection's state after these pieces.
fn outcome<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<OpEvent>, Vec<u8>, ConnectionState) {
    let mut rig = Rig::greeted();
    rig.begin(0, GET);
    rig.begin(1, POST);
    rig.begin(2, HEAD);
    rig.begin(3, GET);
    for piece in pieces {
        rig.feed(piece);
    }
    (summed(&rig.events), rig.out.bytes().clone(), rig.http2.state())
}

/// Each operation ends once at most, and says nothing thereafter; its answer follows bytes.
fn check_order(events: &[OpEvent]) {
    let (mut ended, mut received) = ([false; 4], [false; 4]);
    for one in events {
        match *one {
            OpEvent::Written(op) => assert!(!ended[op as usize]),
            OpEvent::Message(message) => assert!(!ended[message.op as usize]),
            OpEvent::Received { op, bytes } => {
                assert!(bytes > 0 && !ended[op as usize]);
                received[op as usize] = true;
            }
            OpEvent::Answered { op, .. } => {
                assert!(received[op as usize]);
                assert!(!std::mem::replace(&mut ended[op as usize], true));
            }
            OpEvent::Failed { op, .. } | OpEvent::Unprocessed(op) => {
                assert!(!std::mem::replace(&mut ended[op as usize], true));
            }
            OpEvent::Violated(_) | OpEvent::Reset(_) => {}
            OpEvent::Delivered { .. }
            | OpEvent::Opened
            | OpEvent::NotOpened(_)
            | OpEvent::Resized { .. }
            | OpEvent::Surplus
            | OpEvent::Diverted(_)
            | OpEvent::Exhausted
            | OpEvent::MessageLeft { .. }
            | OpEvent::NotSecured(_)
            | OpEvent::Unmatched => panic!("not of HTTP/2"),
        }
    }
}

proptest! {
    #[test]
    fn cut_anywhere(pieces in proptest::collection::vec(piece(), 1..20), cuts: Vec<u8>) {
        let bytes = pieces.concat();
        let whole = outcome([&bytes[..]].into_iter());
        check_order(&whole.0);
        let single = outcome(bytes.chunks(1));
        prop_assert_eq!(&single, &whole);
        let mut rest = &bytes[..];
        let mut cut = Vec::new();
        for length in cuts {
            let (piece, after) = rest.split_at(rest.len().min(1 + usize::from(length % 32)));
            (!piece.is_empty()).then(|| cut.push(piece));
            rest = after;
        }
        (!rest.is_empty()).then(|| cut.push(rest));
        prop_assert_eq!(&outcome(cut.into_iter()), &whole);
    }

    #[test]
    fn anything_after_settings(bytes: Vec<u8>) {
        let whole = outcome([&bytes[..]].into_iter().filter(|b| !b.is_empty()));
        check_order(&whole.0);
        prop_assert_eq!(outcome(bytes.chunks(1)), whole);
    }
}
