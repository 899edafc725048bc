//! What the senders themselves explain.

use super::super::UdpExplain;
use super::{ALL, CROWD, Who, asked, check, losers, standing};
use crate::experiment::udp::tests::fake::{TrialBehaviour, run, yields};
use knee_load::experiment::udp::UdpTrialSpec;
use knee_load::time::Nanos;

#[test]
fn sending_takes_the_rate() {
    // 128 clients that wait 200 µs would send 640,000/s.
    let at = |sent_per_s| move |_: Who| TrialBehaviour { sent_per_s, ..TrialBehaviour::default() };
    let name = "per_send_overhead";
    check("0.89 of it", name, at(569_000.0), "supported");
    check("0.92 of it", name, at(590_000.0), "undecided");
    check("0.96 of it", name, at(615_000.0), "ruled_out");
    let mut spec = asked(&[]);
    spec.second = yields(128);
    let (_, conclusion) = run(&mut UdpExplain::new(spec), |_| TrialBehaviour::default());
    assert_eq!(standing(&conclusion, name), "undecided", "nobody waits");
}

/// Clients that send this number at once.
fn bursts(burst: u64, losing: &'static [Who]) -> impl Fn(Who) -> TrialBehaviour {
    move |who| TrialBehaviour { burst, ..losers(losing)(who) }
}

#[test]
fn clients_wake_together() {
    let name = "synchronised_wakeups";
    let replayed = ALL;
    // Bursts of 100 every 10 ms: at 1 ms the index is 90.
    check("bursts", name, bursts(100, replayed), "supported");
    check("no bursts", name, bursts(1, replayed), "ruled_out");
    check("the replay loses nothing", name, bursts(100, CROWD), "ruled_out");
    let even = &[Who::Sleeping, Who::Apart, Who::Replaying, Who::ReplayingApart, Who::Evenly];
    check("nor do bursts matter", name, bursts(100, even), "undecided");
    let mut spec = asked(&[]);
    spec.second = yields(128);
    let world = |spec: &UdpTrialSpec| TrialBehaviour {
        burst: 100,
        lost: if spec.clients == 128 { 0.02 } else { 0.0 },
        ..TrialBehaviour::default()
    };
    let (_, conclusion) = run(&mut UdpExplain::new(spec), world);
    assert_eq!(standing(&conclusion, name), "ruled_out", "nobody sleeps");
}

#[test]
fn poisson_alone() {
    let name = "poisson_variance";
    let variance = &[Who::Sleeping, Who::Apart, Who::Replaying, Who::Poisson];
    check("Poisson loses, even does not", name, losers(variance), "supported");
    check("Poisson loses nothing", name, losers(CROWD), "ruled_out");
    let all = &[Who::Sleeping, Who::Apart, Who::Replaying, Who::Poisson, Who::Evenly];
    check("all lose", name, losers(all), "ruled_out");
    check("all lose", "offered_beyond_capacity", losers(all), "supported");
    check("even does not", "offered_beyond_capacity", losers(variance), "ruled_out");
    let uses = |cpu, waiting| move |who| TrialBehaviour { cpu, waiting, ..losers(all)(who) };
    check("busy", "offered_beyond_capacity", uses(0.5, 0.45), "supported");
    check("time left", "offered_beyond_capacity", uses(0.5, 0.44), "ruled_out");
    let works =
        |us| move |who| TrialBehaviour { work: Nanos::from_micros(us), ..losers(CROWD)(who) };
    check("101 % of its time", "offered_beyond_capacity", works(101), "supported");
    check("all its time", "offered_beyond_capacity", works(100), "ruled_out");
    let little = |who| TrialBehaviour {
        lost: match who {
            Who::Sleeping => 0.02,
            Who::Evenly | Who::Poisson => 0.006,
            _ => 0.0,
        },
        ..TrialBehaviour::default()
    };
    check("a third is left", name, little, "undecided");
    check("a third is left", "offered_beyond_capacity", little, "undecided");
}

#[test]
fn senders_drop_or_block() {
    let name = "sender_drops_or_blocks";
    let sends = |blocked, refused| {
        move |_: Who| TrialBehaviour { blocked, refused, ..TrialBehaviour::default() }
    };
    check("1 % waits", name, sends(0.0101, 0.0), "supported");
    check("1 % is refused", name, sends(0.0, 0.0101), "supported");
    check("0.5 % waits", name, sends(0.005, 0.0), "undecided");
    check("all free", name, sends(0.0, 0.0), "ruled_out");
}
