//! Servers that send more than anybody needs: memory stays bounded.

use super::super::super::frame::{flag, kind};
use super::rig::*;
use crate::exchange::{ConnectionState, Conversation, OpEvent};
use knee_load::measure::{Outcome, Status};
use knee_load::spec::Http2Limits;

/// Feeds the same bytes so often, with the outbox sent each time or never; the rule that ends it.
fn flood(bytes: &[u8], times: usize, is_sent: bool) -> (Rig, Option<String>) {
    let mut rig = Rig::greeted();
    rig.begin(1, GET);
    rig.events.clear();
    for _ in 0..times {
        rig.feed(bytes);
        assert!(rig.out.bytes().len() < 100_000, "the outbox is bounded");
        if is_sent {
            rig.sent();
        }
        let rule = rig.events().into_iter().find_map(|one| match one {
            OpEvent::Violated(rule) => Some(rule),
            _ => None,
        });
        if rule.is_some() {
            return (rig, rule);
        }
    }
    (rig, None)
}

#[test]
fn floods() {
    let head = headers(1, false, &[(":status", "200")]);
    let ping = f(kind::PING, 0, 0, &[0; 8]);
    let interim = headers(1, false, &[(":status", "102")]);
    let empty = data(1, false, b"");
    let unknown = f(0x77, 0, 0, b"");
    let priority = f(kind::PRIORITY, 0, 9, &[0; 5]);
    let padding = f(kind::DATA, flag::PADDED, 1, &[1, 0]);
    for (name, bytes, is_sent, want) in [
        ("PING, nothing read", ping.clone(), false, Some("over 1,000 PING")),
        ("PING, answers read", ping, true, None),
        ("SETTINGS, nothing read", settings(&[(3, 100)]), false, Some("over 1,000 PING")),
        ("SETTINGS, answers read", settings(&[(4, 9)]), true, None),
        ("interim responses", interim, true, Some("over 100 interim")),
        ("RST_STREAM of what has ended", f(kind::RST_STREAM, 0, 1, &[0; 4]), true, None),
        ("unknown frames", unknown, true, None),
        ("PRIORITY", priority, true, None),
    ] {
        let (rig, rule) = flood(&bytes, 3000, is_sent);
        match want {
            Some(want) => assert!(rule.is_some_and(|rule| rule.contains(want)), "{name}"),
            None => assert_eq!((rule, rig.http2.state()), (None, ConnectionState::Open), "{name}"),
        }
    }
    for (name, bytes, want) in [
        ("empty DATA", empty, Some("over 1,000 empty DATA")),
        ("nothing but padding", padding, Some("over 1,000 empty DATA")),
        ("a byte each", data(1, false, b"x"), None),
    ] {
        let mut rig = Rig::greeted();
        rig.begin(1, GET);
        rig.feed(&head);
        rig.events.clear();
        (0..3000).for_each(|_| rig.feed(&bytes));
        let rules = rig.events();
        let rule = rules.iter().find_map(|one| match one {
            OpEvent::Violated(rule) => Some(rule),
            _ => None,
        });
        match want {
            Some(want) => assert!(rule.is_some_and(|rule| rule.contains(want)), "{name}"),
            None => assert_eq!(rule, None, "{name}"),
        }
    }
}

/// Every response is reset, malformed or cancelled: nothing of it stays.
#[test]
fn streams_leave_nothing() {
    let mut rig = Rig::greeted();
    for n in 0..50_000_u32 {
        let id = 2 * n + 1;
        rig.begin(n, GET);
        match n % 3 {
            0 => rig.feed(&f(kind::RST_STREAM, 0, id, &[0, 0, 0, 8])),
            1 => rig.feed(&data(id, true, b"x")),
            _ => assert!(rig.cancel(n)),
        }
        rig.sent();
        rig.events.clear();
    }
    assert_eq!(rig.capacity().operations, 100);
    let shown = format!("{:?}", rig.http2.streams);
    assert!(shown.len() < 1000, "{shown}");
    assert!(rig.http2.senders.is_empty());
}

/// Late frames of cancelled operations are ignored, but count for the connection's window and the
/// table.
#[test]
fn what_was_given_up_is_passed_over() {
    let mut rig = Rig::greeted();
    rig.begin(1, GET);
    rig.begin(2, GET);
    rig.sent();
    assert!(rig.cancel(1));
    assert_eq!(codes(&rig.sent()), [(kind::RST_STREAM, 1, 8)]);
    rig.events.clear();
    // The block puts content-length: 3 into the table, which the next one refers to.
    let indexing = [&[0x88, 0x5c, 1][..], b"3"].concat();
    let late = [
        f(kind::HEADERS, flag::END_HEADERS, 1, &indexing),
        data(1, true, &[0; 1000]),
        f(kind::HEADERS, flag::END_HEADERS, 3, &[0x88, 0xbe]),
        data(3, true, b"abc"),
    ];
    rig.feed(&late.concat());
    let bytes = (late[2].len() + late[3].len()) as u64;
    let answered = OpEvent::Answered { op: 2, status: Status::Http(200) };
    assert_eq!(rig.events(), [OpEvent::Received { op: 2, bytes }, answered]);
    assert_eq!(rig.http2.core.receive_window, {
        let mut window =
            crate::exchange::http2::connection::ReceiveWindow::new(super::super::WINDOW_LARGE);
        assert!(window.take(1003));
        window
    });
}

/// A server that grants no window: cancelled operations with a body leave nothing.
#[test]
fn bodies_that_nobody_takes() {
    let mut rig = Rig::greeted();
    for op in 0..1000 {
        rig.begin(op, POST);
        rig.sent();
        assert!(rig.cancel(op));
        rig.sent();
    }
    assert!(rig.http2.senders.is_empty());
    assert_eq!(rig.http2.streams.count(), 0);
}

/// Identifiers whose places are taken are left out, so that the connection is closed while there
/// are enough left for any stream that was begun.
#[test]
fn connection_closes_before_identifiers_run_out() {
    let last = |rig: &mut Rig| {
        let mut op = 10;
        while rig.http2.state() == ConnectionState::Open {
            rig.begin(op, GET);
            rig.cancel(op);
            op += 1;
        }
        rig.http2.streams.next() - 2
    };
    let near_the_end = (1 << 31) - 1 - 64;
    let mut rig = Rig::greeted();
    rig.http2.streams.skip_to(near_the_end);
    rig.begin(1, GET);
    assert_eq!(rig.http2.state(), ConnectionState::Open);
    let id = last(&mut rig);
    assert!(((1 << 31) - 64..1 << 31).contains(&id), "{id}");
    assert_eq!(rig.capacity().operations, 0);
    rig.events.clear();
    rig.feed(&ok(near_the_end));
    assert_eq!(end_of(&rig.events(), 1), Some(Ok(200)), "what is open ends well");
}

#[test]
fn room_is_the_lower_limit() {
    let limits = |streams_max| Http2Limits { streams_max, ..Http2Limits::default() };
    for (name, configured, set, want) in [
        ("neither", None, None, (100, false)),
        ("the target's", None, Some(7), (7, true)),
        ("nothing permitted", None, Some(0), (0, true)),
        ("ours", Some(5), Some(7), (5, false)),
        ("more than 100 of ours", Some(500), None, (500, false)),
        ("equal", Some(7), Some(7), (7, false)),
    ] {
        let mut rig = Rig::new(limits(configured));
        let before = rig.capacity();
        assert_eq!(before.operations, configured.unwrap_or(100).min(100), "{name}");
        assert!(!before.is_targets_limit, "{name}");
        let set: Vec<_> = set.map(|n| (3, n)).into_iter().collect();
        rig.feed(&settings(&set));
        let room = rig.capacity();
        assert_eq!((room.operations, room.is_targets_limit), want, "{name}");
    }
    let mut rig = Rig::greeted();
    rig.begin(1, GET);
    rig.begin(2, GET);
    rig.feed(&settings(&[(3, 1)]));
    rig.reconnect();
    assert_eq!(rig.capacity().operations, 1, "what another connection learnt");
    rig.feed(&settings(&[]));
    assert_eq!(rig.capacity().operations, 100, "its own SETTINGS say otherwise");
    let mut rig = Rig::greeted();
    rig.begin(1, GET);
    rig.begin(2, GET);
    rig.feed(&settings(&[(3, 1)]));
    assert_eq!(rig.capacity().operations, 0, "lowered below what is open");
    rig.feed(&[ok(1), ok(3)].concat());
    assert_eq!(rig.capacity().operations, 1);
}

/// What is refused while the limit is not known may be sent again; later ones end as refused.
#[test]
fn refused_before_the_limit_was_known() {
    let refused = |id| f(kind::RST_STREAM, 0, id, &[0, 0, 0, 7]);
    let mut rig = Rig::new(Http2Limits::default());
    rig.begin(1, GET);
    rig.feed(&settings(&[(3, 1)]));
    rig.events.clear();
    rig.feed(&refused(1));
    assert_eq!(rig.events(), [OpEvent::Unprocessed(1)]);
    rig.begin(2, GET);
    rig.events.clear();
    rig.feed(&refused(3));
    assert_eq!(end_of(&rig.events(), 2), Some(Err(Outcome::RefusedStream)));
}
