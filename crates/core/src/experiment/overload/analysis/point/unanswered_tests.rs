use super::*;
use crate::experiment::overload::tests::trials::{SETTING, report};
use crate::measure::Observed;
use crate::spec::Level;

/// 1,000 connects without an answer, and so many established ones.
fn point(established: u64, see: impl FnOnce(&mut Observed)) -> OverloadPoint {
    let ends = [
        (Outcome::ConnectTimeout, 1_000),
        (Outcome::ResponseTimeout, established),
    ];
    let mut trial = report(Level::Descriptors(50), &ends);
    see(trial.as_http_mut().observed.as_mut().expect("captured"));
    OverloadPoint::of(&trial, &SETTING).expect("an overload")
}

fn unseen(established: u64) -> OverloadPoint {
    point(established, |o| o.elapsed_ns = 0)
}

#[test]
fn unanswered_connects_by_the_evidence() {
    let drops = |n: i64| {
        move |o: &mut Observed| {
            o.kernel.insert("TcpExtListenDrops".to_owned(), n);
        }
    };
    assert_eq!(
        point(129, drops(500)).why_unanswered(),
        UnansweredCause::QueueFull
    );
    assert_eq!(
        point(129, drops(499)).why_unanswered(),
        UnansweredCause::DroppedThere
    );
    let full = |o: &mut Observed| {
        (o.accept_queue_max, o.accept_queue_limit) = (Some(129), Some(128));
    };
    assert_eq!(
        point(129, full).why_unanswered(),
        UnansweredCause::QueueFull
    );
    let both = |o: &mut Observed| {
        full(o);
        drops(10)(o);
    };
    assert_eq!(
        point(129, both).why_unanswered(),
        UnansweredCause::DroppedThere
    );
    let few = |o: &mut Observed| o.first_syns = 499;
    assert_eq!(
        point(0, few).why_unanswered(),
        UnansweredCause::DroppedBefore
    );
    assert_eq!(
        point(0, |o| o.first_syns = 500).why_unanswered(),
        UnansweredCause::DroppedThere
    );
    assert_eq!(unseen(0).why_unanswered(), UnansweredCause::Silent);
    assert_eq!(unseen(1).why_unanswered(), UnansweredCause::Unknown);
}

#[test]
fn a_silent_server_accepts_if_its_queue_is_empty() {
    let queue = |most: u32| {
        move |o: &mut Observed| {
            (o.accept_queue_max, o.accept_queue_limit) = (Some(most), Some(4_096));
        }
    };
    assert_eq!(point(500, queue(49)).accepts(), AcceptState::Yes);
    assert_eq!(point(500, queue(50)).accepts(), AcceptState::No);
    assert_eq!(
        point(8_194, queue(4_096)).accepts(),
        AcceptState::No,
        "full"
    );
    assert_eq!(
        point(8_195, queue(4_096)).accepts(),
        AcceptState::Yes,
        "full, but it moves"
    );
    assert_eq!(unseen(500).accepts(), AcceptState::Unknown);
}
