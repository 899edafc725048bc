//! Flow control both ways, and requests in several frames.

use super::super::super::frame::{FrameHead, flag, kind};
use super::rig::*;
use crate::exchange::OpEvent;
use knee_load::spec::Http2Limits;

fn update(stream: u32, increment: u32) -> Vec<u8> {
    f(kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

/// The sum of all DATA of a stream, and whether it ended.
fn sent_data(all: &[(FrameHead, Vec<u8>)], id: u32) -> (usize, bool) {
    let of = all.iter().filter(|(head, _)| head.kind == kind::DATA && head.stream == id);
    of.fold((0, false), |(sum, ended), (head, payload)| {
        assert!(!ended && payload.iter().all(|b| *b == b'b') && payload.len() <= 16_384);
        (sum + payload.len(), head.has(flag::END_STREAM))
    })
}

#[test]
fn a_body_waits_for_the_outbox_and_for_both_windows() {
    let mut rig = Rig::greeted();
    rig.feed(&[update(0, 100_000), settings(&[(4, 150_000)])].concat());
    rig.sent();
    rig.begin(1, POST);
    let mut sum = 0;
    for want in [65_536, 65_536, 150_000 - 131_072, 0] {
        let (sent, ended) = sent_data(&frames(&rig.sent()), 1);
        assert_eq!((sent, ended), (want, false), "after {sum}");
        sum += sent;
    }
    rig.feed(&update(1, 100_000));
    let rest = 165_535 - 150_000;
    assert_eq!(sent_data(&frames(&rig.sent()), 1), (rest, false), "the connection's window");
    assert_eq!(rig.events(), []);
    rig.feed(&update(0, 1));
    assert_eq!(sent_data(&frames(&rig.sent()), 1), (1, false));
    rig.feed(&update(0, 1 << 20));
    assert_eq!(sent_data(&frames(&rig.sent()), 1), (BODY_BYTES - 165_536, true));
    assert_eq!(rig.events(), [OpEvent::Written(1)], "with the last byte");
}

#[test]
fn a_window_below_zero() {
    let mut rig = Rig::greeted();
    rig.feed(&update(0, 1 << 20));
    rig.begin(1, POST);
    assert_eq!(sent_data(&frames(&rig.sent()), 1).0, 65_535);
    rig.feed(&settings(&[(4, 0)]));
    rig.feed(&update(1, 65_535));
    assert_eq!(sent_data(&frames(&rig.sent()), 1).0, 0, "at 0 again");
    rig.feed(&update(1, 5));
    assert_eq!(sent_data(&frames(&rig.sent()), 1).0, 5);
    rig.feed(&settings(&[(4, 7)]));
    assert_eq!(sent_data(&frames(&rig.sent()), 1).0, 7);
}

#[test]
fn bodies_take_turns() {
    let mut rig = Rig::greeted();
    rig.feed(&[update(0, 1 << 20), settings(&[(4, 1 << 20)])].concat());
    rig.sent();
    for op in 1..=3 {
        rig.begin(op, POST);
    }
    let mut sums = [0; 3];
    while rig.events.len() < 3 {
        let all = frames(&rig.sent());
        for (n, sum) in sums.iter_mut().enumerate() {
            *sum += sent_data(&all, 2 * n as u32 + 1).0;
        }
        // The first had a start of 64 KiB.
        let ahead = sums.iter().max().unwrap() - sums.iter().min().unwrap();
        assert!(ahead <= 5 * 16_384, "{sums:?}");
    }
    rig.sent();
    assert_eq!(rig.events().len(), 3);
}

#[test]
fn answered_before_all_was_sent() {
    let mut rig = Rig::greeted();
    rig.begin(1, POST);
    rig.sent();
    rig.feed(&[ok(1), f(kind::RST_STREAM, 0, 1, &[0; 4])].concat());
    let events = rig.events();
    assert_eq!(events.last(), Some(&OpEvent::Answered { op: 1, status: 200 }));
    assert_eq!(codes(&rig.sent()), [(kind::RST_STREAM, 1, 8)]);
    rig.feed(&update(0, 1 << 20));
    assert!(rig.sent().is_empty(), "nothing more of it");
}

#[test]
fn windows_for_responses() {
    let window = |bytes| Http2Limits { window_bytes: Some(bytes), ..Http2Limits::default() };
    for (bytes, piece, want) in [
        (10, 4, vec![8, 8]),
        (10, 5, vec![5, 5, 5]),
        (1, 1, vec![1, 1, 1]),
        (100_000, 16_384, vec![65_536]),
    ] {
        let mut rig = Rig::new(window(bytes));
        rig.feed(&settings(&[]));
        rig.begin(1, GET);
        rig.feed(&headers(1, false, &[(":status", "200")]));
        rig.sent();
        let count = want.iter().sum::<u32>() / piece;
        for _ in 0..count {
            rig.feed(&data(1, false, &vec![0; piece as usize]));
        }
        let updates = frames(&rig.sent()).into_iter().map(|(head, payload)| {
            assert_eq!((head.kind, head.stream), (kind::WINDOW_UPDATE, 1));
            u32::from_be_bytes(payload.try_into().unwrap())
        });
        assert_eq!(updates.collect::<Vec<_>>(), want, "{piece} of {bytes}");
        rig.feed(&data(1, true, &vec![0; piece as usize]));
        assert!(rig.sent().is_empty(), "nothing for a stream that has ended");
    }
    let mut rig = Rig::new(window(10));
    rig.feed(&settings(&[]));
    rig.begin(1, GET);
    rig.sent();
    rig.feed(&headers(1, false, &[(":status", "200")]));
    rig.events.clear();
    rig.feed(&data(1, false, &[0; 11]));
    let Some(OpEvent::Violated(rule)) = rig.events.last() else {
        panic!("{:?}", rig.events);
    };
    assert!(rule.ends_with("§6.9.1)"), "{rule}");
    assert_eq!(codes(&rig.sent()), [(kind::RST_STREAM, 1, 3)]);
}

/// More than half a connection's window, in DATA of 16 KiB.
#[test]
fn the_window_of_the_connection_is_filled_up_in_time() {
    let mut rig = Rig::greeted();
    rig.begin(1, GET);
    rig.feed(&headers(1, false, &[(":status", "200")]));
    rig.sent();
    let frame = data(1, false, &[0; 16_384]);
    let (mut of_stream, mut of_connection) = (0_u64, 0_u64);
    for _ in 0..100_000 {
        rig.feed(&frame);
        for (head, payload) in frames(&rig.sent()) {
            assert_eq!(head.kind, kind::WINDOW_UPDATE);
            let by = u64::from(u32::from_be_bytes(payload.try_into().unwrap()));
            match head.stream {
                0 => of_connection += by,
                _ => of_stream += by,
            }
        }
    }
    assert!(of_stream > 1 << 30 && of_connection > 1 << 30);
}
