use super::*;
use proptest::prelude::*;

const MS: Nanos = Nanos::from_millis(1);

fn settle(windows: u32) -> Settle {
    Settle {
        tolerance: 0.05,
        window: Nanos::from_millis(100),
        windows,
    }
}

/// The number of windows after which it has settled, of at most 1,000.
fn settles_after(
    rule: &mut Settling,
    received: impl Fn(u64) -> Vec<u64>,
    longest: impl Fn(u64) -> Nanos,
) -> Option<u64> {
    (1..=1_000).find(|&window| {
        let at = Nanos::from_millis(100 * window);
        rule.on_window(&received(window), at, longest(window))
    })
}

#[test]
fn steady_flows_settle_after_the_windows_that_are_to_agree() {
    for windows in [1, 2, 5, 9] {
        let mut rule = Settling::new(settle(windows));
        let after = settles_after(&mut rule, |w| vec![w * 1_000, w * 7], |_| MS);
        assert_eq!(after, Some(u64::from(windows) + 1));
    }
}

#[test]
fn no_windows_count_as_one() {
    let mut rule = Settling::new(settle(0));
    assert_eq!(settles_after(&mut rule, |w| vec![w], |_| MS), Some(2));
}

#[test]
fn a_new_longest_latency_begins_the_windows_anew() {
    let mut rule = Settling::new(settle(3));
    let longest = |w| if w < 6 { MS } else { MS + MS };
    let after = |from: u64| {
        let mut rule = Settling::new(settle(3));
        settles_after(&mut rule, |w| vec![w], move |w| Nanos(w.min(from)))
    };
    assert_eq!(settles_after(&mut rule, |w| vec![w], longest), Some(4));
    assert_eq!(after(1), Some(4));
    assert_eq!(after(6), Some(9), "the last new one came in window 6");
}

#[test]
fn the_longest_of_each_window_does_as_well_as_the_longest_so_far() {
    let of_window = |w: u64| [9, 1, 5, 3, 8, 2, 2, 2][(w as usize - 1).min(7)];
    let so_far = |_| 9;
    let run = |longest: &dyn Fn(u64) -> u64| {
        let mut rule = Settling::new(settle(4));
        settles_after(&mut rule, |w| vec![w], |w| Nanos(longest(w)))
    };
    assert_eq!(run(&of_window), run(&so_far));
}

#[test]
fn a_flow_that_speeds_up_is_waited_for() {
    // From 1 to 10 per window after the tenth: its mean at window n is 10 - 90/n from then on, and
    // moves by no more than 5 % over 4 windows where 90·4/(n·(n-4)) <= 0.05·(10 - 90/n).
    let received = |w: u64| vec![w.min(10) + 10 * w.saturating_sub(10)];
    let mut rule = Settling::new(settle(4));
    let settled = (1..=1_000)
        .filter(|&w| rule.on_window(&received(w), Nanos(100 * w), MS))
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
    assert_eq!(told, 13);
    assert!(
        kept > 80,
        "its mean falls by a twentieth over 5 windows until window 100: {kept}"
    );
}

#[test]
fn a_flow_that_never_moved_is_steady_beside_one_that_does() {
    let mut rule = Settling::new(settle(3));
    assert_eq!(settles_after(&mut rule, |w| vec![0, w], |_| MS), Some(4));
}

#[test]
fn a_standstill_of_all_flows_never_settles() {
    let never = settles_after(&mut Settling::new(settle(3)), |_| vec![0, 0], |_| MS);
    assert_eq!(never, None);
    // One that moved for a while and then got nothing any more.
    let mut rule = Settling::new(settle(3));
    let stopped = (5..=2_000).any(|w| rule.on_window(&[4_000], Nanos(100 * w), MS));
    assert!(!stopped);
}

#[test]
fn without_flows_or_with_all_lost_only_the_latency_counts() {
    let idle = settles_after(&mut Settling::new(settle(3)), |_| vec![], |_| MS);
    assert_eq!(idle, Some(4));
    let mut rule = Settling::new(settle(3));
    rule.on_flow_lost(0);
    assert_eq!(settles_after(&mut rule, |_| vec![5], |_| MS), Some(4));
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
        prop_assert_eq!(after, Some(u64::from(windows) + 1));
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
            if rule.on_window(&sums, Nanos(at), Nanos(latency)) {
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
                rule.on_window(&[sum], Nanos((index as u64 + 1) * 1_000), MS)
            })
        };
        let (strict, lax) = (with(tolerance), with(tolerance * 2.0));
        prop_assert!(strict.is_none() || lax.is_some_and(|l| Some(l) <= strict));
    }
}
