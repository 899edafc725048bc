//! The margins that a hybrid wait needs on this machine.

use super::at_reference_delay;
use crate::experiment::throttle::report::MarginRow;
use knee_load::experiment::throttle::{Chore, WaitMethod, WaitTrial};
use knee_load::spec::Margins;
use knee_load::time::Nanos;

/// The share of late wake-ups that a margin covers where no hybrid wait was measured: the same that
/// a worker's settles at.
const COVERED: f64 = 0.85;
/// A machine that wakes later than this is stalled, not slow: no margin is longer.
const MARGIN_MAX: Nanos = Nanos::from_millis(1);

/// The margins to begin with on the machine that these waits were measured on. For each length of
/// sleep it is the margin at which a hybrid wait arrived. Otherwise it covers 85 % of the late
/// wake-ups of `sleep-absolute-min-slack`. `None` where neither was measured.
///
/// Lengths between two measured ones are filled in linearly by their power of two, so that they
/// rise or fall as their neighbours do. Those beyond the shortest or the longest take its margin.
pub fn margins_of(trials: &[WaitTrial]) -> Option<Margins> {
    let measured = by_bucket(trials);
    let known: Vec<(usize, u64)> =
        (0..Margins::COUNT).filter_map(|bucket| Some((bucket, measured[bucket]?.0))).collect();
    let (first, last) = (*known.first()?, *known.last()?);
    let filled = std::array::from_fn(|bucket| {
        let below = known.iter().rev().find(|k| k.0 <= bucket).unwrap_or(&first);
        let above = known.iter().find(|k| k.0 >= bucket).unwrap_or(&last);
        let apart = above.0.saturating_sub(below.0).max(1) as f64;
        let share = bucket.saturating_sub(below.0) as f64 / apart;
        let (low, high) = (below.1 as f64, above.1 as f64);
        if bucket >= last.0 { last.1 } else { (low + share * (high - low)).round() as u64 }
    });
    Some(Margins::from_buckets(filled))
}

/// The margin for a deadline 1 ms away; `None` where nothing tells it.
pub fn hybrid_margin(trials: &[WaitTrial]) -> Option<Nanos> {
    let there = trials.iter().filter(|t| t.spec.delay == super::REFERENCE_DELAY);
    let hybrid = at_reference_delay(there.filter(|t| t.spec.method == WaitMethod::Hybrid));
    hybrid.and_then(learnt).or_else(|| Some(margins_of(trials)?.at(super::REFERENCE_DELAY)))
}

/// The margins of those lengths of sleep that were measured, the shortest first.
pub fn margin_rows(trials: &[WaitTrial]) -> Vec<MarginRow> {
    let row = |(bucket, margin): (usize, Option<Nanos>)| {
        Some(MarginRow { sleep_ns: Margins::length_min(bucket).0, margin_ns: margin?.0 })
    };
    by_bucket(trials).into_iter().enumerate().filter_map(row).collect()
}

/// What each length was measured to need; of several delays that fall into one, the most.
fn by_bucket(trials: &[WaitTrial]) -> [Option<Nanos>; Margins::COUNT] {
    let most = |of: &dyn Fn(&WaitTrial) -> Option<Nanos>| {
        let mut margins = [None; Margins::COUNT];
        let plain = trials.iter().filter(|t| t.spec.chore == Chore::None);
        for trial in plain.filter(|t| t.waits.samples > 0) {
            let margin = &mut margins[Margins::bucket(trial.spec.delay)];
            *margin = (*margin).max(of(trial));
        }
        margins
    };
    let (learnt, slept) = (most(&learnt), most(&covering));
    std::array::from_fn(|bucket| learnt[bucket].or(slept[bucket]).map(|m| m.min(MARGIN_MAX)))
}

/// The margin at which a hybrid wait arrived. One that is as long as the delay left nothing to
/// sleep for, so it was never put to the test and is nothing learnt.
fn learnt(trial: &WaitTrial) -> Option<Nanos> {
    let margin = trial.waits.margin?;
    (trial.spec.method == WaitMethod::Hybrid && margin < trial.spec.delay).then_some(margin)
}

/// What covers most of a sleep's late wake-ups.
fn covering(trial: &WaitTrial) -> Option<Nanos> {
    let is_sleep = trial.spec.method == WaitMethod::SleepAbsoluteMinSlack;
    is_sleep.then(|| trial.waits.overshoot.quantile(COVERED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::throttle::tests::waits;

    fn hybrid(delay_us: u64, margin_us: u64) -> WaitTrial {
        let mut trial = waits(WaitMethod::Hybrid, Nanos::from_micros(delay_us), &[100, 100]);
        trial.waits.margin = Some(Nanos::from_micros(margin_us));
        trial
    }

    fn sleeps(delay_us: u64, late_us: u64) -> WaitTrial {
        let late: Vec<u64> = (1..=100).map(|k| k * late_us * 10).collect();
        let method = WaitMethod::SleepAbsoluteMinSlack;
        waits(method, Nanos::from_micros(delay_us), &late)
    }

    #[test]
    fn unmeasured_lengths_lie_between_their_neighbours() {
        let margins = margins_of(&[hybrid(100, 60), hybrid(1_000, 90), hybrid(20_000, 140)])
            .expect("measured");
        let us = margins.by_bucket().map(|ns| ns / 1_000);
        // 100 µs are of bucket 2, 1 ms of bucket 5, 20 ms of bucket 10.
        assert_eq!(us, [60, 60, 60, 70, 80, 90, 100, 110, 120, 130, 140, 140, 140]);
        assert!(margins_of(&[]).is_none());
        let spin = waits(WaitMethod::Spin, Nanos::from_millis(1), &[30, 40]);
        assert!(margins_of(&[spin]).is_none());
    }

    #[test]
    fn what_a_hybrid_wait_learnt_counts_before_what_sleeps_show() {
        let trials = [sleeps(1_000, 100), hybrid(1_000, 77)];
        assert_eq!(hybrid_margin(&trials), Some(Nanos::from_micros(77)));
        let slept = hybrid_margin(&trials[..1]).expect("sleeps");
        assert!(slept.0.abs_diff(85_000) < 100, "85 % of 1 to 100 µs: {slept}");
        assert_eq!(hybrid_margin(&[]), None);
        let rows = margin_rows(&trials);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].sleep_ns, rows[0].margin_ns), (1 << 19, 77_000));
    }

    #[test]
    fn a_margin_that_left_nothing_to_sleep_for_is_nothing_learnt() {
        let trials = [hybrid(50, 120), sleeps(50, 70), hybrid(1_000, 90)];
        let short = margins_of(&trials).expect("measured").at(Nanos::from_micros(50));
        assert!(short.0.abs_diff(59_500) < 100, "85 % of 70 µs: {short}");
        let elsewhere = margins_of(&[hybrid(50, 120), hybrid(1_000, 90)]).expect("measured");
        assert_eq!(elsewhere.at(Nanos::from_micros(50)), Nanos::from_micros(90));
    }

    #[test]
    fn the_margin_at_1_ms_is_filled_in_where_it_was_not_measured() {
        let trials = [hybrid(100, 60), hybrid(10_000, 130)];
        let margin = hybrid_margin(&trials).expect("measured");
        assert_eq!(margin, Nanos::from_micros(90), "3 of 7 powers of two");
    }
}
