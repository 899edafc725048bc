//! Messages that leave at times of their own.

use super::super::super::frame::{flag, kind};
use super::rig::*;
use crate::exchange::{Conversation, OpEvent};
use knee_load::measure::Status;
use knee_load::time::Nanos;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// What was sent of the stream: its content, and whether it ended.
fn sent(rig: &mut Rig) -> (String, bool) {
    let all = frames(&rig.sent());
    let data = all.iter().filter(|(head, _)| head.kind == kind::DATA);
    data.fold((String::new(), false), |(text, ended), (head, payload)| {
        assert!(!ended, "nothing follows the end");
        (text + &String::from_utf8_lossy(payload), head.has(flag::END_STREAM))
    })
}

fn left(intended: u64, at: u64) -> OpEvent {
    OpEvent::MessageLeft { intended: MS(intended), at: MS(at) }
}

fn text(text: &str, is_end: bool) -> (String, bool) {
    (text.to_owned(), is_end)
}

#[test]
fn each_message_leaves_when_it_is_due() {
    let mut rig = Rig::greeted();
    rig.begin(1, TIMED);
    assert_eq!(sent(&mut rig), text("aaaaa", false));
    assert_eq!(rig.events(), [left(0, 0), OpEvent::Written(1)], "written with the first");
    for (at, content) in [(10, "bb"), (20, "aaaaa"), (30, "bb")] {
        assert!(rig.wakes_at(MS(at)));
        assert_eq!(sent(&mut rig), text(content, false), "at {at} ms");
        assert_eq!(rig.events(), [left(at, at)]);
    }
    assert!(rig.wakes_at(MS(40)));
    assert_eq!(sent(&mut rig), text("aaaaa", true));
    assert_eq!(rig.http2.poll_timeout(), Nanos::MAX);
    rig.feed(&ok(1));
    let answered = OpEvent::Answered { op: 1, status: Status::Http(200) };
    assert_eq!(rig.events().last(), Some(&answered));
}

#[test]
fn late_messages_leave_together_and_say_how_late() {
    let mut rig = Rig::greeted();
    rig.now = MS(25);
    rig.begin(1, TIMED);
    assert_eq!(sent(&mut rig), text("aaaaabbaaaaa", false));
    let events = rig.events();
    assert_eq!(events, [left(0, 25), left(10, 25), left(20, 25), OpEvent::Written(1)]);
    assert!(!rig.wakes_at(MS(99)));
    assert_eq!(sent(&mut rig), text("bbaaaaa", true));
    assert_eq!(rig.events(), [left(30, 99), left(40, 99)]);
}

#[test]
fn messages_wait_for_the_window_piece_by_piece() {
    let mut rig = Rig::greeted();
    rig.feed(&settings(&[(4, 3)]));
    rig.sent();
    rig.begin(1, TIMED);
    assert!(rig.wakes_at(MS(10)));
    assert_eq!(sent(&mut rig), text("aaa", false));
    assert_eq!(rig.events(), [left(0, 0), left(10, 10)]);
    for (content, more) in [("a", 1), ("a", 1), ("b", 1), ("b", 3), ("", 3)] {
        rig.feed(&f(kind::WINDOW_UPDATE, 0, 1, &u32::to_be_bytes(more)));
        assert_eq!(sent(&mut rig).0.get(..1).unwrap_or(""), content);
    }
    rig.wakes_at(MS(40));
    assert_eq!(sent(&mut rig), text("aaaaa", false));
    rig.feed(&f(kind::WINDOW_UPDATE, 0, 1, &u32::to_be_bytes(9)));
    assert_eq!(sent(&mut rig), text("bbaaaaa", true));
}

#[test]
fn what_is_cancelled_or_answered_sends_nothing_more() {
    let mut rig = Rig::greeted();
    for end in 0..2 {
        let op = end + 1;
        rig.now = Nanos::ZERO;
        rig.begin(op, TIMED);
        rig.sent();
        match end {
            0 => assert!(rig.cancel(op)),
            _ => rig.feed(&ok(3)),
        }
        rig.sent();
        rig.events();
        rig.wakes_at(MS(50));
        assert_eq!(sent(&mut rig), text("", false));
        assert_eq!(rig.events(), []);
        assert_eq!(rig.http2.poll_timeout(), Nanos::MAX);
    }
}
