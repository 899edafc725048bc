//! What the senders themselves explain.

use super::super::{ExplainSpec, UdpExplain};
use super::{CROWD, Who, asked, check, losers, standing};
use crate::experiment::udp::analysis::tests::spec;
use crate::experiment::udp::tests::fake::{TrialBehaviour, run, yields};
use knee_load::experiment::udp::{ClientWait, UdpTrialSpec};
use knee_load::law::Law;
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

/// How the wake-ups of 128 clients end as an explanation, in a world that says what is lost.
fn wakeups(second: ClientWait, world: impl Fn(&UdpTrialSpec) -> TrialBehaviour) -> &'static str {
    let second = spec(128, second, Nanos::from_secs(1));
    let mut experiment = UdpExplain::new(ExplainSpec { second, ..asked(&[0, 1]) });
    let (_, conclusion) = run(&mut experiment, |spec| match spec.clients {
        64 => TrialBehaviour { lost: 0.0, ..TrialBehaviour::default() },
        _ => world(spec),
    });
    standing(&conclusion, "synchronised_wakeups")
}

fn loses(lost: f64) -> TrialBehaviour {
    TrialBehaviour { lost, ..TrialBehaviour::default() }
}

#[test]
fn clients_wake_together() {
    let tick = || ClientWait::Tick(Nanos::from_millis(10));
    let fixed = ClientWait::Sleep(Law::Fixed(Nanos::from_millis(1)));
    let crowd = |spec: &UdpTrialSpec| spec.clients == 128;
    let together = move |spec: &UdpTrialSpec| crowd(spec) && !spec.unsynchronised;
    let if_any = |any: bool| loses(if any { 0.02 } else { 0.0 });
    // The replay has no crowd before the service, so it shows nothing about wake-ups.
    assert_eq!(wakeups(tick(), |spec| if_any(together(spec))), "supported");
    assert_eq!(wakeups(fixed, |spec| if_any(together(spec))), "supported");
    assert_eq!(wakeups(tick(), |spec| if_any(crowd(spec))), "ruled_out");
    let half = |spec: &UdpTrialSpec| {
        if together(spec) { loses(0.02) } else { loses(if crowd(spec) { 0.0099 } else { 0.0 }) }
    };
    assert_eq!(wakeups(tick(), half), "supported");
    let slower = |spec: &UdpTrialSpec| TrialBehaviour {
        sent_per_s: if spec.unsynchronised { 9_000.0 } else { 10_000.0 },
        ..if_any(together(spec))
    };
    assert_eq!(wakeups(tick(), slower), "undecided", "the rate fell too");
    assert_eq!(wakeups(ClientWait::Yield, |spec| if_any(crowd(spec))), "ruled_out");
}

#[test]
fn timer_slack_joins_wakeups() {
    let random = || ClientWait::Sleep(Law::Exp(Nanos::from_micros(200)));
    let lost = |any: bool| loses(if any { 0.02 } else { 0.0 });
    let slack = |spec: &UdpTrialSpec| {
        assert!(spec.unsynchronised || spec.wait == ClientWait::Yield, "they begin apart");
        lost(spec.clients == 128 && spec.timer_slack > Nanos(1))
    };
    assert_eq!(wakeups(random(), slack), "supported");
    assert_eq!(wakeups(random(), |spec| lost(spec.clients == 128)), "ruled_out");
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
