//! For each finding the smallest data that trigger it, and the nearest that do not.

use super::{CODES, hold_findings, not_permitted, wait_findings};
use crate::experiment::throttle::tests::{holds, waits};
use crate::finding::{Finding, Severity};
use knee_load::experiment::throttle::HoldMethod::{
    self, NaiveSleep, RelativeSleep, Spin, Throttle, Tick,
};
use knee_load::experiment::throttle::{HoldTrial, WaitMethod, WaitTrial};
use knee_load::spec::{ArrivalLaw, Rate};
use knee_load::time::Nanos;

const MS: Nanos = Nanos::from_millis(1);
const OPERATION: Nanos = Nanos::from_micros(100);

/// Their codes, all of them listed.
fn codes(found: &[Finding]) -> Vec<&str> {
    let is_listed = |f: &&Finding| CODES.iter().any(|code| f.is(*code));
    assert!(found.iter().all(|f| is_listed(&f)), "{found:?}");
    found.iter().map(|f| f.code.as_str()).collect()
}

/// `expected` is found in these waits.
fn check_waits(what: &str, trials: &[WaitTrial], expected: &[&str]) {
    assert_eq!(codes(&wait_findings(trials)), expected, "{what}");
}

/// `expected` is found in these ways to hold a rate.
fn check_holds(what: &str, trials: &[HoldTrial], expected: &[&str]) {
    assert_eq!(codes(&hold_findings(trials)), expected, "{what}");
}

/// The words and the next step of the only finding.
fn only(found: &[Finding]) -> (String, String) {
    assert_eq!(found.len(), 1, "{found:?}");
    (found[0].text.clone(), found[0].next_step.clone())
}

#[test]
fn a_sleep_overshoots_by_more_than_a_hundredth() {
    let sleep = |late| waits(WaitMethod::Sleep, MS, &[late; 100]);
    check_waits("10.1 µs of 1 ms", &[sleep(10_100)], &["sleep_overshoots"]);
    check_waits("9.9 µs of 1 ms", &[sleep(9_900)], &[]);
    let other = waits(WaitMethod::Timerfd, MS, &[60_000; 100]);
    check_waits("another method", &[other], &[]);
    let longer = waits(WaitMethod::Sleep, Nanos::from_millis(20), &[60_000; 100]);
    check_waits("judged at 1 ms", &[longer, sleep(9_900)], &[]);
    let (text, next) = only(&wait_findings(&[sleep(60_000)]));
    assert_eq!(
        text,
        "a sleep of 1 ms takes 1.06 ms on average; a loop of “operate, sleep 1 ms” makes at most \
         943.4/s, not 1,000/s"
    );
    assert!(next.ends_with("knee throttle --rate 1000"), "{next}");
}

#[test]
fn most_of_an_overshoot_may_be_timer_slack() {
    let sleeps = |default, least| {
        [
            waits(WaitMethod::Timerfd, MS, &[default; 100]),
            waits(WaitMethod::Sleep, Nanos::from_secs(1), &[default; 100]),
            waits(WaitMethod::SleepMinSlack, Nanos::from_secs(1), &[least; 100]),
        ]
    };
    let found = ["timer_slack"];
    check_waits("2.5 of 53 µs left", &sleeps(53_000, 2_500), &found);
    check_waits("10.1 µs of slack", &sleeps(12_600, 2_500), &found);
    check_waits("9.9 µs of slack", &sleeps(12_400, 2_500), &[]);
    check_waits("50 of 99 µs left", &sleeps(99_000, 50_000), &[]);
    let mut apart = sleeps(53_000, 2_500);
    apart[2].spec.delay = Nanos::from_secs(2);
    check_waits("different delays", &apart, &[]);
    let (text, next) = only(&wait_findings(&sleeps(53_000, 2_500)));
    assert!(text.ends_with("the median overshoot is 2.5 µs, not 53 µs"), "{text}");
    assert!(next.contains("prctl(PR_SET_TIMERSLACK, 1)"), "{next}");
}

#[test]
fn a_host_steals_more_than_a_hundredth_of_the_samples() {
    let stolen = |n| {
        let mut trial = waits(WaitMethod::Spin, MS, &[40; 100]);
        trial.waits.stolen = n;
        trial
    };
    check_waits("2 of 100", &[stolen(2)], &["host_steals"]);
    check_waits("1 of 100", &[stolen(1)], &[]);
    check_waits("2 of 200", &[stolen(2), stolen(0)], &[]);
    let (text, next) = only(&wait_findings(&[stolen(12)]));
    assert!(text.starts_with("12 % of the waits"), "{text}");
    assert!(!next.is_empty());
}

#[test]
fn waits_end_early_by_method() {
    let early = |method, n| {
        let mut trial = waits(method, MS, &[40; 100]);
        trial.waits.early = n;
        trial
    };
    let found = ["waits_end_early"];
    check_waits("2 of 100", &[early(WaitMethod::Epoll, 2)], &found);
    check_waits("1 of 100", &[early(WaitMethod::Epoll, 1)], &[]);
    let others = [early(WaitMethod::Epoll, 3), early(WaitMethod::Spin, 0)];
    check_waits("3 of 100 of one of two methods", &others, &found);
    let (text, _) = only(&wait_findings(&others));
    assert!(text.starts_with("`epoll` ended 3 % of its waits"), "{text}");
}

#[test]
fn a_method_that_was_left_out_says_what_would_permit_it() {
    let left_out = |method| not_permitted(method, "not permitted here");
    let finding = left_out(WaitMethod::IoUring);
    assert_eq!(finding.severity, Severity::Info);
    assert_eq!(finding.text, "`io_uring` was left out: not permitted here");
    assert!(finding.next_step.contains("kernel.io_uring_disabled=0"));
    assert_eq!(left_out(WaitMethod::Timerfd).next_step, "");
}

/// At 1,000/s, each operation later than the one before by this number of nanoseconds.
fn drifting(method: HoldMethod, ns: u64) -> HoldTrial {
    holds(method, OPERATION, |k| Nanos(k * ns))
}

#[test]
fn a_rate_is_missed_by_more_than_a_thousandth() {
    let found = ["rate_not_held"];
    check_holds("0.11 %", &[drifting(RelativeSleep, 1_100)], &found);
    check_holds("0.09 %", &[drifting(RelativeSleep, 900)], &[]);
    let both = [drifting(NaiveSleep, 1_000_000), drifting(RelativeSleep, 60_000)];
    check_holds("each by itself", &both, &["rate_not_held", "rate_not_held"]);
    let (text, _) = only(&hold_findings(&both[..1]));
    assert_eq!(
        text,
        "`naive-sleep` makes 500/s, not the 1,000/s asked for: each round takes the operation, the \
         sleep and the overshoot of the sleep"
    );
}

#[test]
fn a_method_that_knows_no_schedule_may_miss_another_by_chance() {
    let poisson = |method, ns| {
        let mut trial = drifting(method, ns);
        trial.spec.arrival = ArrivalLaw::Poisson;
        trial
    };
    // 4/√1,000 is 12.6 %, and 0.1 %.
    check_holds("11 %", &[poisson(NaiveSleep, 125_000)], &[]);
    check_holds("14 %", &[poisson(NaiveSleep, 165_000)], &["rate_not_held"]);
    check_holds("of a schedule", &[poisson(Spin, 1_100)], &["rate_not_held"]);
}

#[test]
fn the_throttle_is_to_blame_only_where_it_had_time() {
    let throttle = |operation_us, ns| {
        let operation = Nanos::from_micros(operation_us);
        holds(Throttle, operation, move |k| Nanos(k * ns))
    };
    check_holds("0.09 %", &[throttle(970, 900)], &[]);
    let found = ["throttle_not_held"];
    check_holds("0.11 %, 3 % free", &[throttle(970, 1_100)], &found);
    let long = ["operations_too_long"];
    check_holds("0.11 %, 1 % free", &[throttle(990, 1_100)], &long);
    check_holds("1 % free, but held", &[throttle(990, 0)], &[]);
    let held = [throttle(990, 0), drifting(NaiveSleep, 1_000_000)];
    check_holds("what one holds is possible", &held, &["rate_not_held"]);
    let (text, next) = only(&hold_findings(&[throttle(1_250, 300_000)]));
    assert!(text.starts_with("an operation takes 1.25 ms and the schedule has one every 1 ms"));
    assert!(next.contains("--rate 720,"), "{next}");
    let finding = &hold_findings(&[throttle(100, 100_000)])[0];
    assert_eq!(finding.severity, Severity::Error);
    assert!(finding.text.contains("made 909.1/s of the 1,000/s"), "{}", finding.text);
    assert!(finding.text.contains("take only 10 % of the time"), "{}", finding.text);
}

/// Ten operations at each tick of 10 ms, the last of them just after its intended time.
#[test]
fn a_rate_may_be_held_in_lumps() {
    let tick = |method| holds(method, OPERATION, |k| Nanos::from_millis(9 - k % 10));
    check_holds("tick", &[tick(Tick)], &["held_in_lumps"]);
    let mut throttle = tick(Throttle);
    throttle.spec.wait_min = Nanos::from_millis(10);
    check_holds("a throttle that groups as it is told", &[throttle], &[]);
    let alternating = |ns| holds(Tick, OPERATION, move |k| Nanos(k % 2 * ns));
    // Gaps of 1 ms ± x have a coefficient of variation of x / 1 ms.
    check_holds("a cv of 0.51", &[alternating(510_000)], &["held_in_lumps"]);
    check_holds("a cv of 0.49", &[alternating(490_000)], &[]);
    let mut poisson = tick(Tick);
    poisson.spec.arrival = ArrivalLaw::Poisson;
    check_holds("Poisson gaps vary by themselves", &[poisson], &[]);
}

/// One stall that this number of operations came late by.
fn stalled(method: HoldMethod, operations: u64, late_us: u64) -> HoldTrial {
    let late = move |k| match k {
        500.. if k < 500 + operations => Nanos::from_micros(late_us),
        _ => Nanos::ZERO,
    };
    holds(method, OPERATION, late)
}

#[test]
fn a_throttle_that_was_held_up_now_and_then_says_so() {
    let found = ["throttle_late"];
    check_holds("11 of 1,000 by 1.1 ms", &[stalled(Throttle, 11, 1_100)], &found);
    check_holds("9 of 1,000 by 1.1 ms", &[stalled(Throttle, 9, 1_100)], &[]);
    check_holds("11 of 1,000 by 0.9 ms", &[stalled(Throttle, 11, 900)], &[]);
    check_holds("another", &[stalled(RelativeSleep, 11, 1_100)], &[]);
    let mut grouped = stalled(Throttle, 11, 1_100);
    grouped.spec.wait_min = Nanos::from_millis(10);
    check_holds("groups as it is told", &[grouped], &[]);
    let (text, next) = only(&hold_findings(&[stalled(Throttle, 20, 2_000)]));
    assert!(text.contains("began 2 ms late or more, the latest 2 ms"), "{text}");
    assert!(next.contains("quieter machine"), "{next}");
}

#[test]
fn gaps_that_vary_as_the_throttles_do_are_the_machines() {
    let alternating = |method, ns| holds(method, OPERATION, move |k| Nanos(k % 2 * ns));
    let with = |ns| [alternating(Tick, 600_000), alternating(Throttle, ns)];
    check_holds("the throttle's cv 0.29", &with(290_000), &["held_in_lumps"]);
    check_holds("the throttle's cv 0.31", &with(310_000), &[]);
    let mut grouped = with(310_000);
    grouped[1].spec.wait_min = Nanos::from_millis(10);
    let found = ["held_in_lumps"];
    check_holds("of a throttle that groups", &grouped, &found);
}

#[test]
fn one_operation_more_or_less_is_no_miss() {
    let few = |n: usize, ns: u64| {
        let mut trial = drifting(RelativeSleep, 0);
        trial.spec.rate = Rate::per_second(1_000).expect("a rate");
        trial.holds = knee_load::experiment::throttle::HoldStats::default();
        for k in 0..n as u64 {
            trial.holds.record(Nanos(k * MS.0), Nanos(k * (MS.0 + ns)));
        }
        trial.holds.elapsed = Nanos(n as u64 * (MS.0 + ns));
        trial
    };
    check_holds("nine of ten", &[few(10, 100_000)], &[]);
    check_holds("eight of ten", &[few(10, 150_000)], &["rate_not_held"]);
    check_holds("a single one", &[few(1, 0)], &[]);
}
