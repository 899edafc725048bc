use super::*;
use crate::rng::{self, Rng};
use crate::series::normal;
use proptest::prelude::*;

const MS: Nanos = Nanos::from_millis(1);
/// Windows that are judged at the least.
const JUDGED: u64 = (BATCHES * WINDOWS_PER_BATCH) as u64;

fn settle(windows: u32) -> Settle {
    Settle { tolerance: 0.05, window: Nanos::from_millis(100), windows }
}

/// The number of windows after which it has settled, of at most 1,000.
fn settles_after(
    rule: &mut Settling,
    received: impl Fn(u64) -> Vec<u64>,
    longest: impl Fn(u64) -> Nanos,
) -> Option<u64> {
    (1..=1_000).find(|&window| {
        let at = Nanos::from_millis(100 * window);
        rule.on_window(&received(window), at, level(window, longest(window)))
    })
}

/// Pings of 1 ms, one in each window, and this longest ping of all.
fn level(windows: u64, longest: Nanos) -> PingsSoFar {
    PingsSoFar { answered: windows, round_trips: Nanos(windows * MS.0), longest }
}

#[test]
fn steady_flows_settle_after_the_windows_that_are_to_agree() {
    for windows in [1, 5, 15, 19] {
        let mut rule = Settling::new(settle(windows));
        let after = settles_after(&mut rule, |w| vec![w * 1_000, w * 7], |_| MS);
        assert_eq!(after, Some(JUDGED.max(u64::from(windows) + 1)));
    }
}

#[test]
fn no_windows_count_as_one() {
    let mut rule = Settling::new(settle(0));
    assert_eq!(settles_after(&mut rule, |w| vec![w], |_| MS), Some(JUDGED));
}

#[test]
fn a_new_longest_ping_begins_the_windows_anew() {
    let after = |last: u64| {
        let mut rule = Settling::new(settle(3));
        settles_after(&mut rule, |w| vec![w], |w| Nanos(w.min(last)))
    };
    assert_eq!(after(1), Some(JUDGED));
    assert_eq!(after(JUDGED - 3), Some(JUDGED));
    assert_eq!(after(20), Some(23), "the last new one came in window 20");
}

#[test]
fn a_flow_that_speeds_up_is_waited_for() {
    // From 1 to 10 per window after the tenth. Its mean at window n is 10 - 90/n from then on. It
    // moves by no more than 5 % over 4 windows where 90·4/(n·(n-4)) <= 0.05·(10 - 90/n).
    let received = |w: u64| vec![w.min(10) + 10 * w.saturating_sub(10)];
    let mut rule = Settling::new(settle(4));
    let settled = (1..=1_000)
        .filter(|&w| rule.on_window(&received(w), Nanos(100 * w), level(w, MS)))
        .collect::<Vec<_>>();
    let first_after = settled.iter().find(|&&w| w > 14);
    let expected = (15..).find(|&n| {
        let (n, mean) = (n as f64, |n: f64| 10.0 - 90.0 / n);
        mean(n) - mean(n - 4.0) <= 0.05 * mean(n)
    });
    assert_eq!(first_after.copied(), expected);
}

#[test]
fn a_lost_flow_keeps_nothing_from_settling() {
    let received = |w: u64| vec![w * 100, w.min(8) * 100];
    let early = |w: u64| if w < 8 { Nanos(w) } else { Nanos(8) };
    let mut kept = Settling::new(settle(5));
    let mut told = kept.clone();
    told.on_flow_lost(1);
    let (kept, told) = (
        settles_after(&mut kept, received, early).expect("settles at last"),
        settles_after(&mut told, received, early).expect("settles"),
    );
    assert_eq!(told, JUDGED);
    assert!(kept > 80, "its mean falls by a twentieth over 5 windows until window 100: {kept}");
}

#[test]
fn a_flow_that_never_moved_is_steady_beside_one_that_does() {
    let mut rule = Settling::new(settle(3));
    assert_eq!(settles_after(&mut rule, |w| vec![0, w], |_| MS), Some(JUDGED));
}

#[test]
fn a_standstill_of_all_flows_never_settles() {
    let never = settles_after(&mut Settling::new(settle(3)), |_| vec![0, 0], |_| MS);
    assert_eq!(never, None);
    // One that moved for a while and then got nothing any more.
    let mut rule = Settling::new(settle(3));
    let stopped = (5..=2_000).any(|w| rule.on_window(&[4_000], Nanos(100 * w), level(w, MS)));
    assert!(!stopped);
}

#[test]
fn without_flows_or_with_all_lost_only_the_latency_counts() {
    let idle = settles_after(&mut Settling::new(settle(3)), |_| vec![], |_| MS);
    assert_eq!(idle, Some(JUDGED));
    let mut rule = Settling::new(settle(3));
    rule.on_flow_lost(0);
    assert_eq!(settles_after(&mut rule, |_| vec![5], |_| MS), Some(JUDGED));
}

proptest! {
    /// Steady rates settle as soon as may be, whatever they are.
    #[test]
    fn any_steady_rates_settle(
        rates in prop::collection::vec(0..1_u64 << 40, 1..33),
        windows in 1_u32..20,
    ) {
        prop_assume!(rates.iter().any(|&r| r > 0));
        let mut rule = Settling::new(settle(windows));
        let received = |w: u64| rates.iter().map(|r| r * w).collect();
        let after = settles_after(&mut rule, received, |_| MS);
        prop_assert_eq!(after, Some(JUDGED.max(u64::from(windows) + 1)));
    }

    /// Whenever it says that it has settled, the rule holds by its letter.
    #[test]
    fn what_settled_was_steady(
        steps in prop::collection::vec((0_u64..2_000, 0_u64..2_000, 0_u64..50), 1..120),
        windows in 1_u32..8,
    ) {
        let mut rule = Settling::new(settle(windows));
        let (mut sums, mut longest) = ([0_u64; 2], 0);
        let mut means: Vec<([f64; 2], u64)> = Vec::new();
        for (index, (a, b, latency)) in steps.into_iter().enumerate() {
            sums = [sums[0] + a, sums[1] + b];
            longest = longest.max(latency);
            let at = (index as u64 + 1) * 1_000;
            means.push((sums.map(|s| s as f64 / at as f64), longest));
            if rule.on_window(&sums, Nanos(at), level(index as u64 + 1, Nanos(longest))) {
                let last = &means[means.len() - windows as usize - 1..];
                let (now, most) = last[last.len() - 1];
                for (then, longest) in last {
                    prop_assert_eq!(*longest, most);
                    for flow in 0..2 {
                        let by = (then[flow] - now[flow]).abs();
                        prop_assert!(by <= 0.05 * now[flow] + 1e-12);
                    }
                }
            }
        }
    }

    /// To ask for more tolerance never takes longer.
    #[test]
    fn more_tolerance_settles_no_later(
        steps in prop::collection::vec(1_u64..2_000, 1..120),
        tolerance in 0.0_f64..0.5,
    ) {
        let with = |tolerance| {
            let mut rule = Settling::new(Settle { tolerance, ..settle(4) });
            let mut sum = 0;
            steps.iter().enumerate().position(|(index, step)| {
                sum += step;
                let windows = index as u64 + 1;
                rule.on_window(&[sum], Nanos(windows * 1_000), level(windows, MS))
            })
        };
        let (strict, lax) = (with(tolerance), with(tolerance * 2.0));
        prop_assert!(strict.is_none() || lax.is_some_and(|l| Some(l) <= strict));
    }
}

/// A queue in virtual time: 25 pings in each window of 250 ms. Noise is a share of the delay and
/// correlated from one window to the next, as flows' windows are.
struct Queue {
    delay_ms: Box<dyn Fn(f64) -> f64>,
    noise: f64,
    correlation: f64,
}

/// Long enough for a user to wait, in windows: 60 s.
const PATIENCE: u64 = 240;

impl Queue {
    /// When it passes for settled, in seconds.
    fn settles(&self, rng: &mut Rng) -> Option<f64> {
        let mut rule = Settling::new(Settle::default());
        let (mut pings, mut state) = (PingsSoFar::default(), normal(rng));
        (1..=PATIENCE).map(|w| w as f64 / 4.0).find(|&at_s| {
            let fresh = (1.0 - self.correlation.powi(2)).sqrt() * normal(rng);
            state = self.correlation * state + fresh;
            for ping in 0..25 {
                let at = at_s - 0.25 + f64::from(ping) / 100.0;
                let noise = 1.0 + self.noise * state + 0.1 * normal(rng);
                let ms = (self.delay_ms)(at) * noise.clamp(0.2, 3.0);
                pings.add(Nanos((ms * 1e6) as u64));
            }
            // What the longest ping does is another part of the rule.
            let pings = PingsSoFar { longest: MS, ..pings };
            rule.on_window(&[(at_s * 1e6) as u64], Nanos((at_s * 1e9) as u64), pings)
        })
    }
}

fn within(rng: &mut Rng, from: f64, to: f64) -> f64 {
    from + (to - from) * rng::unit(rng)
}

/// The share of 1,000 random queues that are said to have settled.
fn settled_share(queue: impl Fn(&mut Rng) -> Queue, counts: impl Fn(f64, &Queue) -> bool) -> f64 {
    let settled = (0..1_000_u64).filter(|&seed| {
        let mut rng = rng::stream(seed, 7);
        let queue = queue(&mut rng);
        let at_s = queue.settles(&mut rng);
        at_s.is_some_and(|at_s| counts(at_s, &queue))
    });
    settled.count() as f64 / 1_000.0
}

/// Climbs by 0.3 to 2 times its first value in each second. The overshoot before is higher than all
/// that follows for the first second or two.
fn climbing(rng: &mut Rng, overshoots: bool) -> Queue {
    let from_ms = within(rng, 20.0, 100.0);
    let per_s = from_ms * within(rng, 0.3, 2.0);
    let over_s = if overshoots { within(rng, 0.5, 2.0) } else { 0.0 };
    Queue {
        delay_ms: Box::new(move |at| {
            if at < over_s { from_ms + per_s * PATIENCE as f64 } else { from_ms + per_s * at }
        }),
        noise: within(rng, 0.0, 0.3),
        correlation: within(rng, 0.0, 0.8),
    }
}

/// At most 2 % of such queues pass for settled within a minute.
#[test]
fn a_climbing_queue_does_not_settle() {
    for overshoots in [false, true] {
        let share = settled_share(|rng| climbing(rng, overshoots), |_, _| true);
        assert!(share <= 0.025, "overshoots: {overshoots}: {share}");
    }
}

/// A queue that fills and stays full, of up to 400 ms.
fn filling(rng: &mut Rng) -> Queue {
    let (full_ms, fills_s) = (within(rng, 1.0, 400.0), within(rng, 0.2, 2.0));
    Queue {
        delay_ms: Box::new(move |at| full_ms * (1.0 - (-at / fills_s).exp())),
        noise: within(rng, 0.0, 0.2),
        correlation: within(rng, 0.0, 0.5),
    }
}

#[test]
fn a_queue_that_fills_settles_once_it_is_full() {
    let share = settled_share(filling, |_, _| true);
    assert!(share >= 0.98, "{share}");
    let empty = settled_share(filling, |at_s, queue| {
        (queue.delay_ms)(at_s) < 0.8 * (queue.delay_ms)(1e9) - 5.0
    });
    assert!(empty <= 0.02, "{empty}");
}

/// The sawtooth of flows that shrink their windows by 10 to 50 % at a loss.
#[test]
fn an_oscillating_queue_settles() {
    let queue = |rng: &mut Rng| {
        let (period_s, least) = (within(rng, 0.3, 6.0), within(rng, 0.5, 0.9));
        let (full_ms, begins) = (within(rng, 10.0, 400.0), rng::unit(rng));
        Queue {
            delay_ms: Box::new(move |at| {
                let phase = (at / period_s + begins).fract();
                full_ms * (least + (1.0 - least) * phase)
            }),
            noise: within(rng, 0.0, 0.2),
            correlation: within(rng, 0.0, 0.5),
        }
    };
    let share = settled_share(queue, |_, _| true);
    assert!(share >= 0.95, "{share}");
}
