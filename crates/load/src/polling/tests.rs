//! Hosts that wake late in virtual time, and what the policy makes of them.

use super::*;

const GAP: Nanos = Nanos::from_micros(200);

/// A host, and what a worker with one operation every [`GAP`] sees on it.
#[derive(Clone, Copy)]
struct Host {
    /// One operation of this number is late where the worker sleeps, …
    late_one_of: u64,
    /// … and where it polls; 0: none.
    late_polling_one_of: u64,
    /// By how much.
    by: Nanos,
    /// The share of the time in which others have the processor while the worker polls.
    in_the_way: f64,
    /// Of what an operation is late by, the share in which others have the processor.
    contended: f64,
    /// How long it takes to give it a processor that is free.
    to_schedule: Nanos,
    /// The share that operations take up.
    busy: f64,
    response: Nanos,
}

const NOISY: Host = Host {
    late_one_of: 20,
    late_polling_one_of: 0,
    by: Nanos::from_millis(1),
    in_the_way: 0.0,
    contended: 0.1,
    to_schedule: Nanos::from_micros(3),
    busy: 0.1,
    response: Nanos::from_micros(120),
};

const QUIET: Host = Host { by: Nanos::from_micros(10), ..NOISY };

/// A worker on a host.
struct World {
    polling: Polling,
    pace: DelayStats,
    now: Nanos,
    spent: ThreadTime,
    operations: u64,
}

impl World {
    fn new(spare: u32) -> World {
        World {
            polling: Polling::new(0, spare),
            pace: DelayStats::new(spare > 0),
            now: Nanos::ZERO,
            spent: ThreadTime::default(),
            operations: 0,
        }
    }

    fn run(&mut self, host: &Host, time: Nanos) -> &mut World {
        let end = self.now + time;
        let part = |share: f64| Nanos((GAP.0 as f64 * share) as u64);
        while self.now < end {
            self.now += GAP;
            self.operations += 1;
            self.spent.used += part(host.busy);
            let late_one_of = match self.polling.mode() {
                WaitMode::Sleeping => {
                    self.spent.scheduled += 1;
                    self.spent.kept_waiting += host.to_schedule;
                    host.late_one_of
                }
                WaitMode::Polling => {
                    let idle = part(1.0 - host.busy - host.in_the_way);
                    self.spent.used += idle;
                    self.spent.polled += idle;
                    self.spent.kept_waiting += part(host.in_the_way);
                    host.late_polling_one_of
                }
            };
            let is_late = late_one_of > 0 && self.operations.is_multiple_of(late_one_of);
            if is_late {
                let waited = Nanos((host.by.0 as f64 * host.contended) as u64);
                self.spent.kept_waiting += waited;
            }
            let own = if is_late { host.by } else { Nanos(1_000) };
            let due = self.now - own;
            self.pace.responded(due, own, own + host.response);
            if self.polling.is_due(self.now) {
                self.polling.review(self.now, &mut self.pace, self.spent);
            }
        }
        self
    }

    fn share(&self) -> f64 {
        polling_share(self.polling.changes(), Nanos::ZERO, self.now)
    }
}

#[test]
fn a_worker_that_wakes_late_polls_soon_and_nearly_always() {
    let mut world = World::new(1);
    world.run(&NOISY, Nanos::from_secs(60));
    let first = world.polling.changes()[0];
    assert_eq!(first.to, WaitMode::Polling);
    assert!(first.at <= Nanos::from_millis(300), "{first:?}");
    assert!(world.share() > 0.99, "{}", world.share());
}

#[test]
fn a_quiet_host_is_slept_on() {
    let mut world = World::new(1);
    world.run(&QUIET, Nanos::from_secs(60));
    assert_eq!(world.polling.changes(), []);
}

#[test]
fn what_is_late_is_compared_with_the_response() {
    let polls = |host: &Host| {
        let mut world = World::new(1);
        world.run(host, Nanos::from_secs(5));
        world.polling.mode() == WaitMode::Polling
    };
    // Late by 40 µs is nothing beside 20 ms, and much beside 60 µs.
    let by = Nanos::from_micros(40);
    let slow = Nanos::from_millis(20);
    let fast = Nanos::from_micros(60);
    assert!(!polls(&Host { by, response: slow, ..NOISY }));
    assert!(polls(&Host { by, response: fast, ..NOISY }));
    // 1 % of them late is all that the slowest 1 % is made of; 0.1 % is a tenth of it.
    let rare = |one_of, by| Host { late_one_of: one_of, by, ..NOISY };
    assert!(polls(&rare(100, by)));
    assert!(!polls(&rare(1_000, by)));
    assert!(polls(&rare(1_000, Nanos::from_millis(1))));
}

#[test]
fn without_a_processor_to_spare_it_never_polls() {
    let mut world = World::new(0);
    world.run(&NOISY, Nanos::from_secs(20));
    assert_eq!(world.polling.changes(), []);
}

#[test]
fn a_busy_worker_is_late_for_other_reasons() {
    let busy = Host { busy: 0.9, ..NOISY };
    let mut world = World::new(1);
    world.run(&busy, Nanos::from_secs(20));
    assert_eq!(world.polling.changes(), []);
}

#[test]
fn a_worker_that_waits_for_others_has_no_processor_to_spare() {
    let contended = Host { contended: 0.6, ..NOISY };
    let mut world = World::new(1);
    world.run(&contended, Nanos::from_secs(20));
    assert_eq!(world.polling.changes(), []);
}

#[test]
fn time_to_get_a_free_processor_is_no_contention() {
    // One operation in 20 is late by 100 µs: as much as 20 schedulings of 5 µs each.
    let host = Host {
        by: Nanos::from_micros(100),
        to_schedule: Nanos::from_micros(5),
        contended: 0.0,
        ..NOISY
    };
    let mut world = World::new(1);
    world.run(&host, Nanos::from_secs(20));
    assert_eq!(world.polling.mode(), WaitMode::Polling);
}

#[test]
fn a_little_waiting_is_no_contention_however_little_is_late() {
    // 0.5 % of the time, and more than all that operations are late by.
    let host = Host { late_one_of: 100, by: Nanos::from_micros(50), contended: 2.0, ..NOISY };
    let mut world = World::new(1);
    world.run(&host, Nanos::from_secs(5));
    assert_eq!(world.polling.mode(), WaitMode::Polling);
}

#[test]
fn what_a_thread_waited_before_the_load_is_no_contention() {
    let mut world = World::new(1);
    world.spent.kept_waiting = Nanos::from_millis(100);
    world.polling.begin(world.now, world.spent);
    world.run(&NOISY, Nanos::from_secs(1));
    assert_eq!(world.polling.mode(), WaitMode::Polling);
}

#[test]
fn a_single_pause_is_no_reason() {
    let mut world = World::new(1);
    world.run(&QUIET, Nanos::from_secs(2));
    for k in 0..500 {
        let own = Nanos::from_millis(100) - Nanos(k * GAP.0);
        world.pace.responded(world.now - own, own, own + QUIET.response);
    }
    world.run(&QUIET, Nanos::from_secs(2));
    assert_eq!(world.polling.changes(), []);
}

#[test]
fn one_slow_round_of_polling_does_not_end_it() {
    let mut world = World::new(1);
    world.run(&NOISY, Nanos::from_secs(1));
    world.spent.kept_waiting += Nanos::from_millis(15);
    world.run(&NOISY, Nanos::from_secs(20));
    assert_eq!(world.polling.changes().len(), 1);
}

#[test]
fn polling_that_does_not_help_ends_and_is_not_tried_again_soon() {
    let helpless = Host { late_polling_one_of: NOISY.late_one_of, ..NOISY };
    let in_the_way = Host { in_the_way: 0.05, ..NOISY };
    for host in [helpless, in_the_way] {
        let mut world = World::new(1);
        world.run(&host, Nanos::from_secs(50));
        let ways: Vec<WaitMode> = world.polling.changes().iter().map(|c| c.to).collect();
        assert_eq!(ways, [WaitMode::Polling, WaitMode::Sleeping]);
        assert!(world.share() < 0.03, "{}", world.share());
        world.run(&host, Nanos::from_secs(50));
        assert_eq!(world.polling.changes().len(), 4, "once more after a minute");
    }
}

#[test]
fn a_host_that_becomes_quiet_is_slept_on_again() {
    let mut world = World::new(1);
    world.run(&NOISY, Nanos::from_secs(40));
    assert_eq!(world.polling.mode(), WaitMode::Polling);
    world.run(&QUIET, HOLD[0] + HOLD[0]);
    assert_eq!(world.polling.mode(), WaitMode::Sleeping);
    let so_far = world.polling.changes().len();
    world.run(&QUIET, Nanos::from_secs(60));
    assert_eq!(world.polling.changes().len(), so_far);
    // The next time is a first time: it does not last longer for what was before.
    world.run(&NOISY, Nanos::from_secs(3));
    assert_eq!(world.polling.mode(), WaitMode::Polling);
    world.run(&QUIET, HOLD[0]);
    assert_eq!(world.polling.mode(), WaitMode::Sleeping);
}

#[test]
fn few_operations_are_waited_for() {
    let mut world = World::new(1);
    for k in 1..=150_u64 {
        world.now = Nanos(k * 50_000_000);
        let own = Nanos::from_millis(1);
        world.pace.responded(world.now, own, own + own);
        let (now, spent) = (world.now, world.spent);
        world.polling.review(now, &mut world.pace, spent);
        let is_enough = k >= 100;
        assert_eq!(world.polling.mode() == WaitMode::Polling, is_enough, "{k}");
    }
}

#[test]
fn the_share_of_polling_is_of_the_window() {
    let change = |at, to| WaitModeChange { at: Nanos(at), worker: 0, to };
    let share = |changes: &[WaitModeChange]| polling_share(changes, Nanos(100), Nanos(200));
    assert_eq!(share(&[]), 0.0);
    assert_eq!(share(&[change(50, WaitMode::Polling)]), 1.0);
    let twice = [
        change(50, WaitMode::Polling),
        change(110, WaitMode::Sleeping),
        change(150, WaitMode::Polling),
        change(160, WaitMode::Sleeping),
        change(190, WaitMode::Polling),
        change(250, WaitMode::Sleeping),
    ];
    assert_eq!(share(&twice), 0.3);
    assert_eq!(share(&[change(250, WaitMode::Polling)]), 0.0);
}

/// When a worker that uses this share of its processor gives real-time priority up.
fn realtime_until(busy: f64) -> Option<Nanos> {
    let mut world = World::new(0);
    world.polling = world.polling.clone().with_realtime();
    world.run(&Host { busy, ..QUIET }, Nanos::from_secs(1));
    let polling = &world.polling;
    assert_eq!(polling.mode(), WaitMode::Sleeping, "on the target's host");
    let share = polling.realtime_share(Nanos::ZERO, world.now);
    (!polling.is_realtime()).then(|| Nanos::from_secs_f64(share))
}

#[test]
fn real_time_priority_ends_where_it_takes_much_of_a_processor() {
    assert_eq!(realtime_until(0.5), None);
    let until = realtime_until(0.7).unwrap();
    assert!(until <= Nanos::from_millis(110), "{until}");
}
