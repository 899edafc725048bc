//! What the receiving side explains.

use super::{CROWD, check, losers};
use crate::experiment::udp::tests::fake::TrialBehaviour;
use knee_load::time::Nanos;

#[test]
fn a_place_is_told_by_the_ledger() {
    let name = "receive_buffer";
    check("all there", name, losers(CROWD), "supported");
    let uncounted = |who| TrialBehaviour { is_counted: false, ..losers(CROWD)(who) };
    check("none there", name, uncounted, "ruled_out");
}

#[test]
fn a_pause_is_held_against_the_buffer() {
    let name = "receiver_pauses";
    // 100 datagrams at 10,000/s fill it in 10 ms.
    let pause = |ms, buffer| {
        move |who| TrialBehaviour { pause: Nanos::from_millis(ms), buffer, ..losers(CROWD)(who) }
    };
    check("11 ms", name, pause(11, Some(100)), "supported");
    check("10 ms", name, pause(10, Some(100)), "ruled_out");
    check("who knows", name, pause(11, None), "undecided");
}
