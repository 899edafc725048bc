//! Waits and holds over loopback. Nothing here depends on how fast the machine is: a wait may end
//! late, never early, and what is counted is counted.

use super::*;
use crate::experiment::throttle::service::{QotdServer, QotdSpec};
use knee_load::experiment::throttle::{Chore, HoldMethod};
use knee_load::spec::{ArrivalLaw, Rate};
use knee_load::throttle::CatchUp;
use std::net::UdpSocket;
use std::time::Duration;

/// Never set.
static RUNS_ON: AtomicBool = AtomicBool::new(false);

fn a_wait(method: WaitMethod) -> WaitSpec {
    WaitSpec {
        method,
        delay: Nanos::from_micros(500),
        duration: Nanos::from_millis(20),
        chore: Chore::None,
        margins: Margins::UNKNOWN,
    }
}

fn a_hold(method: HoldMethod) -> HoldSpec {
    HoldSpec {
        method,
        rate: Rate::per_second(100).unwrap(),
        arrival: ArrivalLaw::Constant,
        catch_up: CatchUp::ALL,
        wait_min: Nanos::ZERO,
        duration: Nanos::from_millis(200),
        chore: Chore::None,
        seed: 1,
        margins: Margins::UNKNOWN,
    }
}

/// Where this machine permits all that is asked for.
fn permitted(method: WaitMethod) -> bool {
    match is_permitted(method) {
        Ok(()) => true,
        Err(line) => {
            assert_eq!(method, WaitMethod::IoUring, "only that is ever forbidden");
            println!("left out: {line}");
            false
        }
    }
}

#[test]
fn no_way_of_waiting_ends_early() {
    for method in WaitMethod::ALL.into_iter().filter(|m| permitted(*m)) {
        let spec = a_wait(method);
        let waits = wait(&spec, &RUNS_ON).unwrap();
        let name = method.name();
        assert_eq!(waits.early, 0, "{name}");
        assert!(waits.samples >= WaitSpec::SAMPLES_MIN, "{name}");
        assert!(waits.samples <= waits.elapsed.0 / spec.delay.0, "{name}");
        assert!(waits.elapsed >= spec.duration, "{name}");
        assert!(waits.lengths.mean >= spec.delay.0 as f64, "{name}");
        assert_eq!(waits.overshoot.count(), waits.samples, "{name}");
        assert!(waits.stolen <= waits.samples && waits.cpu <= waits.elapsed);
        assert_eq!(waits.margin.is_some(), method == WaitMethod::Hybrid);
        assert!(waits.chore.is_empty() && !waits.interrupted, "{name}");
    }
}

#[test]
fn the_fewest_waits_are_made_however_long_they_take() {
    let spec =
        WaitSpec { duration: Nanos(1), delay: Nanos::from_millis(2), ..a_wait(WaitMethod::Sleep) };
    let waits = wait(&spec, &RUNS_ON).unwrap();
    assert_eq!(waits.samples, WaitSpec::SAMPLES_MIN);
}

#[test]
fn a_wait_beyond_the_longest_sleep_is_not_cut_short() {
    let spec = WaitSpec {
        duration: Nanos(1),
        delay: Nanos::from_millis(60),
        ..a_wait(WaitMethod::Hybrid)
    };
    let waits = wait(&spec, &RUNS_ON).unwrap();
    assert_eq!((waits.samples, waits.early), (WaitSpec::SAMPLES_MIN, 0));
}

#[test]
fn a_stop_ends_both_early() {
    let stop = AtomicBool::new(true);
    let waits = wait(&a_wait(WaitMethod::Sleep), &stop).unwrap();
    assert!(waits.interrupted && waits.samples == 0);
    for method in HoldMethod::ALL {
        let holds = hold(&a_hold(method), &stop).unwrap();
        assert!(holds.interrupted && holds.operations == 0);
    }
    // Once an hour: each method is in its first long wait when the stop comes.
    for method in HoldMethod::ALL {
        let stop = AtomicBool::new(false);
        let spec = HoldSpec {
            rate: Rate::new(1, Nanos::from_secs(3_600)).unwrap(),
            duration: Nanos::from_secs(7_200),
            ..a_hold(method)
        };
        let holds = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(20));
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            });
            hold(&spec, &stop).unwrap()
        });
        assert!(holds.interrupted && holds.operations <= 1, "{method:?}");
        assert!(holds.elapsed < Nanos::from_secs(60), "{method:?}");
    }
}

#[test]
fn a_wait_that_the_stop_cut_short_is_no_sample() {
    let stop = AtomicBool::new(false);
    let spec = WaitSpec { delay: Nanos::from_secs(3_600), ..a_wait(WaitMethod::Hybrid) };
    let waits = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(20));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        wait(&spec, &stop).unwrap()
    });
    assert!(waits.interrupted);
    assert_eq!((waits.samples, waits.early), (0, 0));
}

#[test]
fn the_chore_is_done_once_for_each_wait() {
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = sink.local_addr().unwrap().to_string();
    let spec = WaitSpec {
        chore: Chore::Udp(to),
        duration: Nanos::from_millis(5),
        ..a_wait(WaitMethod::SleepMinSlack)
    };
    let waits = wait(&spec, &RUNS_ON).unwrap();
    assert_eq!(waits.chore.count(), waits.samples);
    sink.set_nonblocking(true).unwrap();
    let mut datagrams = 0;
    while let Ok(length) = sink.recv(&mut [0; 128]) {
        assert_eq!(length, 64);
        datagrams += 1;
    }
    // One to see whether anybody is there, one for each wait, and a few waits to warm up.
    let beside = datagrams - waits.samples;
    assert!((2..=4).contains(&beside), "{beside} beside {}", waits.samples);
}

#[test]
fn quotes_are_asked_for_and_counted() {
    let server = QotdServer::start(QotdSpec {
        listen: "127.0.0.1:0".parse().unwrap(),
        ..QotdSpec::default()
    });
    let server = server.unwrap();
    let spec = HoldSpec {
        chore: Chore::Qotd(server.address().to_string()),
        ..a_hold(HoldMethod::Throttle)
    };
    let holds = hold(&spec, &RUNS_ON).unwrap();
    let stats = server.stop();
    assert!(holds.operations > 0 && holds.operating > Nanos::ZERO);
    assert_eq!(stats.answered, stats.datagrams);
    assert!((1..=3).contains(&(stats.answered - holds.operations)), "the pings");
}

#[test]
fn nobody_there_is_told_before_anything_is_measured() {
    // A port that was free just before, on an address of its own.
    let free = UdpSocket::bind("127.1.2.3:0").unwrap().local_addr().unwrap();
    for chore in [Chore::Qotd(free.to_string()), Chore::Udp(free.to_string())] {
        let spec = WaitSpec { chore: chore.clone(), ..a_wait(WaitMethod::Sleep) };
        let line = wait(&spec, &RUNS_ON).unwrap_err().to_string();
        assert!(line.contains(&free.to_string()), "{line}");
        assert!(line.contains("refused"), "{line}");
        let spec = HoldSpec { chore, ..a_hold(HoldMethod::Spin) };
        assert!(matches!(hold(&spec, &RUNS_ON), Err(RunError::Unreachable(_))));
    }
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let spec = WaitSpec {
        chore: Chore::Qotd(silent.local_addr().unwrap().to_string()),
        ..a_wait(WaitMethod::Sleep)
    };
    let line = wait(&spec, &RUNS_ON).unwrap_err().to_string();
    assert!(line.contains("no quote"), "{line}");
    let spec = WaitSpec { chore: Chore::Udp("127.0.0.1".to_owned()), ..a_wait(WaitMethod::Sleep) };
    let line = wait(&spec, &RUNS_ON).unwrap_err().to_string();
    assert!(line.contains("HOST:PORT"), "{line}");
}

#[test]
fn no_method_makes_more_than_the_schedule_has() {
    for method in HoldMethod::ALL {
        let holds = hold(&a_hold(method), &RUNS_ON).unwrap();
        // 100/s for 0.2 s; a machine that stalls makes fewer, and at the least the first.
        assert!((1..=20).contains(&holds.operations), "{method:?}: {holds:?}");
        assert_eq!(holds.error.count(), holds.operations, "{method:?}");
        assert_eq!(holds.early, 0, "{method:?}");
        assert_eq!(holds.gap.count, holds.operations - 1, "{method:?}");
        assert!(holds.last < holds.elapsed, "{method:?}");
        assert!(holds.elapsed >= Nanos::from_millis(200), "{method:?}");
        assert_eq!((holds.skipped, holds.shifted), (0, Nanos::ZERO), "{method:?}");
        assert!(!holds.interrupted, "{method:?}");
    }
}

#[test]
fn those_that_make_up_for_lost_time_make_all_of_them() {
    // Each operation misses its successor's intended time. Methods that keep to the schedule make
    // them back to back, the others also sleep.
    let spec = |method| HoldSpec { chore: Chore::Busy(Nanos::from_millis(11)), ..a_hold(method) };
    for method in [HoldMethod::Throttle, HoldMethod::Spin, HoldMethod::Tick] {
        let holds = hold(&spec(method), &RUNS_ON).unwrap();
        assert!(holds.operations <= 19, "{method:?} has no time for more");
        assert!(holds.operating >= Nanos(holds.operations * 11_000_000));
    }
    let naive = hold(&spec(HoldMethod::NaiveSleep), &RUNS_ON).unwrap();
    assert!(naive.operations <= 10, "11 ms and 10 ms of sleep each");
    let skips = HoldSpec {
        catch_up: CatchUp::Skip,
        chore: Chore::Busy(Nanos::from_millis(25)),
        ..a_hold(HoldMethod::Throttle)
    };
    let holds = hold(&skips, &RUNS_ON).unwrap();
    // On a machine that stalls in the first one, it is the only one.
    assert!(holds.skipped > 0 || holds.operations == 1);
    assert!(holds.operations + holds.skipped <= 20);
}

#[test]
fn grouped_operations_are_counted_as_early() {
    let spec = HoldSpec {
        rate: Rate::per_second(2_000).unwrap(),
        wait_min: Nanos::from_millis(10),
        ..a_hold(HoldMethod::Throttle)
    };
    let holds = hold(&spec, &RUNS_ON).unwrap();
    assert!(holds.early > 0 && holds.operations <= 400);
}

#[test]
fn measured_margins_are_within_bounds_and_never_decrease() {
    for budget_ms in [0, 5, 60] {
        let margins = measure_margins(Nanos::from_millis(budget_ms)).unwrap().by_bucket();
        assert!(margins.is_sorted(), "{margins:?}");
        let bounds = 3_000..=1_000_000;
        assert!(margins.iter().all(|m| bounds.contains(m)), "{margins:?}");
    }
}

fn micros(us: &[u64]) -> Vec<Nanos> {
    us.iter().copied().map(Nanos::from_micros).collect()
}

#[test]
fn margins_never_decrease_and_go_on_to_grow() {
    let margins = margins_from(&micros(&[40, 50, 45, 70])).by_bucket();
    assert_eq!(margins[..5], [40_000, 50_000, 50_000, 70_000, 80_000]);
    assert_eq!(margins[Margins::COUNT - 1], 160_000);
}

#[test]
fn nothing_measured_is_nothing_known() {
    assert_eq!(margins_from(&[]), Margins::UNKNOWN);
    assert_eq!(margins_within(Nanos::ZERO), Margins::UNKNOWN);
    let one = margins_from(&micros(&[70]));
    assert_eq!(one, Margins::of(Nanos::from_micros(70)));
}

#[test]
fn the_covered_share_is_an_order_statistic() {
    assert_eq!(covering((1..=20).map(Nanos).collect()), Nanos(17));
    assert_eq!(covering(vec![Nanos(9)]), Nanos(9));
}
