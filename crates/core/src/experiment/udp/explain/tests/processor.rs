//! A service that is kept from its processor.

use super::{ALL, Who, check, explain, kept, standing};
use crate::experiment::udp::tests::fake::TrialBehaviour;

pub(super) const WAITS: &str = "service_waits_for_processor";

const PREEMPTED: &str = "woken_clients_preempt_service";

/// How the two explanations of a service that is kept from its processor end.
fn check_both(what: &str, world: impl Fn(Who) -> TrialBehaviour + Copy, expected: [&str; 2]) {
    let conclusion = explain(world);
    let ended = [WAITS, PREEMPTED].map(|name| standing(&conclusion, name));
    assert_eq!(ended, expected, "{what}: {conclusion:#?}");
}

#[test]
fn a_crowd_has_the_processor() {
    let [supported, ruled_out, undecided] = ["supported", "ruled_out", "undecided"];
    let crowd = &[Who::Sleeping];
    let world = kept;
    // 90 % of the time, and 5 preemptions a second of at most 1 ms each: 0.5 %.
    check_both("it waits", &world(0.9, 5, crowd), [supported, ruled_out]);
    check_both("just", &world(0.01, 4, crowd), [supported, ruled_out]);
    // 600 of them can be 60 % of the time, which is more than half of what it waited.
    check_both("it is preempted", &world(0.9, 600, crowd), [ruled_out, supported]);
    check_both("preempted alone", &world(0.0, 10, crowd), [ruled_out, supported]);
    check_both("little of either", &world(0.005, 0, crowd), [undecided; 2]);
    check_both("it never waited", &world(0.0009, 0, crowd), [ruled_out; 2]);
    check_both("nothing helps", &world(0.3, 99, ALL), [ruled_out; 2]);
    let replay = &[Who::Sleeping, Who::Replaying, Who::RealTime];
    check_both("priority does not", &world(0.3, 99, replay), [undecided; 2]);
}

/// The same service, which is given its processor so often a second.
#[test]
fn turns_tell_preemption_from_waiting() {
    let turns =
        |turns| move |who| TrialBehaviour { turns, ..kept(0.9, 600, &[Who::Sleeping])(who) };
    check_both("each turn", turns(1_200), ["ruled_out", "supported"]);
    check_both("few turns", turns(6_000), ["supported", "undecided"]);
    check_both("fewer", turns(6_010), ["supported", "ruled_out"]);
}

#[test]
fn a_replay_that_loses_more_tells_nothing() {
    let more = |times: f64| {
        move |who| TrialBehaviour {
            lost: if who == Who::Replaying { 0.02 * times } else { 0.02 },
            ..kept(0.3, 99, ALL)(who)
        }
    };
    check("twice as much", WAITS, more(2.0), "ruled_out");
    check("more than that", WAITS, more(2.1), "undecided");
}
