//! Servers that fail do so as they were asked to.

use super::*;

fn faulty(faults: Faults) -> World {
    World { faults, ..World::station(4, FIXED) }
}

fn counts(done: &Simulated, outcome: Outcome) -> u64 {
    done.trial.measurement.outcomes.count(outcome)
}

#[test]
fn every_so_manieth_connection_hangs_until_its_timeout() {
    let faults = Faults { hangs_every: 4, ..Faults::default() };
    let done = run(closed(16, Law::ZERO), &faulty(faults), 4);
    // Four of the first sixteen hang; twelve users remain for four workers of 1,000/s each.
    assert!(counts(&done, Outcome::Ok) > 15_000);
    let none = run(closed(3, Law::ZERO), &faulty(faults), 4);
    assert_eq!(none.trial.measurement.outcomes.errors(), 0, "three connect");
}

#[test]
fn what_exceeds_a_rate_is_rejected() {
    let faults = Faults {
        rejects: Some(RejectAbove { per_s: 500.0, burst: 1.0, takes: Nanos::from_micros(100) }),
        ..Faults::default()
    };
    let above = run(open(800, ArrivalLaw::Constant), &faulty(faults), 10);
    let served = counts(&above, Outcome::Ok) as f64 / 10.0;
    assert!((served - 500.0).abs() < 101.0, "{served}");
    assert_eq!(counts(&above, Outcome::Ok) + counts(&above, Outcome::Http5xx), 8_000);
    let below = run(open(400, ArrivalLaw::Constant), &faulty(faults), 10);
    assert_eq!(counts(&below, Outcome::Ok), 4_000);
}

#[test]
fn a_crash_resets_what_is_under_way_and_refuses_the_rest() {
    let faults = Faults { crash_at: Some(secs(3)), ..Faults::default() };
    let done = run(closed(4, Law::ZERO), &faulty(faults), 5);
    assert_eq!(counts(&done, Outcome::Reset), 4, "all four were under way");
    assert!(counts(&done, Outcome::Refused) > 4);
    // From 0.5 s, the end of the warm-up, to 3 s.
    let served = counts(&done, Outcome::Ok);
    assert!((9_990..=10_010).contains(&served), "{served}");
}

#[test]
fn errors_and_contention() {
    let faults = Faults { errors: 0.1, ..Faults::default() };
    let done = run(closed(4, Law::ZERO), &faulty(faults), 5);
    let share = counts(&done, Outcome::Http5xx) as f64 / 20_000.0;
    assert!((share - 0.1).abs() < 0.01, "{share}");

    let contended = World { contention: 0.05, ..World::station(4, FIXED) };
    let few = run(closed(4, Law::ZERO), &contended, 5);
    let many = run(closed(64, Law::ZERO), &contended, 5);
    let per_s = |done: &Simulated| throughput_per_s(&done.trial.measurement);
    assert!(per_s(&many) < per_s(&few) / 2.0, "it falls as load grows");
}

#[test]
fn pauses_come_at_their_period() {
    let pauses = Stall::every(ms(1_150), ms(150), secs(4));
    let begins: Vec<u64> = pauses.iter().map(|stall| stall.at.0 / 1_000_000).collect();
    assert_eq!(begins, [1_000, 2_150, 3_300]);
}
