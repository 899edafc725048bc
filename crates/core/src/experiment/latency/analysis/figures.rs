//! The definitions of capacity, responsiveness, smoothness, fairness and the grade.

use crate::time::Nanos;

/// Bytes in a KiB.
pub(super) const KIB: f64 = 1_024.0;

/// The harmonic mean n / Σ(1/x); 0 where one of them is not above 0, which so carries; `None` of
/// none.
pub fn harmonic_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    if values.iter().any(|&x| x <= 0.0) {
        return Some(0.0);
    }
    let inverse: f64 = values.iter().map(|x| 1.0 / x).sum();
    Some(values.len() as f64 / inverse)
}

/// The capacity that n flows of one direction show: n times the harmonic mean of their goodputs,
/// in the unit of these. It is their sum where all are the same, less the more they differ, and 0
/// where one got nothing.
pub fn capacity(goodputs: &[f64]) -> f64 {
    goodputs.len() as f64 * harmonic_mean(goodputs).unwrap_or(0.0)
}

/// Jain's index of fairness, (Σx)² / (n·Σx²): 1 where all get the same, 1/n where one gets all
/// (Jain, Chiu, Hawe, DEC-TR-301, 1984). 1 where nobody gets anything: that is fair.
pub fn jain_index(goodputs: &[f64]) -> f64 {
    let sum: f64 = goodputs.iter().sum();
    let squares: f64 = goodputs.iter().map(|x| x * x).sum();
    match squares > 0.0 {
        true => sum * sum / (goodputs.len() as f64 * squares),
        false => 1.0,
    }
}

/// A longest time as a frequency: how often per second what takes so long can be had.
pub fn hz(longest: Nanos) -> f64 {
    1e9 / longest.0.max(1) as f64
}

/// The grade of bufferbloat by added latency: `A+` below 5 ms, `A` below 30 ms, `B` below 60 ms,
/// `C` below 200 ms, `D` below 400 ms, else `F`; there is no `E`. These are the steps of the
/// DSLReports speed test (<https://www.dslreports.com/faq/17930>), which other tests took over.
/// That one grades the mean of what a download and an upload add; here it is what the worst
/// scenario adds to the median, as a mean hides a direction behind the other.
pub fn grade(added: Nanos) -> &'static str {
    const STEPS_MS: [(u64, &str); 5] = [(5, "A+"), (30, "A"), (60, "B"), (200, "C"), (400, "D")];
    let step = STEPS_MS
        .iter()
        .find(|(ms, _)| added < Nanos::from_millis(*ms));
    step.map_or("F", |(_, grade)| grade)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn capacity_is_n_times_the_harmonic_mean() {
        assert_eq!(capacity(&[]), 0.0);
        assert_eq!(capacity(&[300.0]), 300.0);
        assert_eq!(capacity(&[100.0; 4]), 400.0);
        // 2 · 2/(1/100 + 1/300)
        assert!((capacity(&[100.0, 300.0]) - 300.0).abs() < 1e-9);
        assert_eq!(capacity(&[100.0, 0.0, 300.0]), 0.0);
        assert_eq!(harmonic_mean(&[]), None);
    }

    #[test]
    fn jains_index_is_one_over_n_where_one_flow_gets_all() {
        assert_eq!(jain_index(&[5.0; 7]), 1.0);
        assert!((jain_index(&[5.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        assert!((jain_index(&[1.0, 3.0]) - 16.0 / 20.0).abs() < 1e-12);
        assert_eq!(jain_index(&[0.0, 0.0]), 1.0);
    }

    #[test]
    fn a_gap_of_334_ms_is_2_hz() {
        let smoothness = hz(Nanos::from_millis(334));
        assert!((smoothness - 2.994).abs() < 0.001, "{smoothness}");
        assert_eq!(smoothness.floor(), 2.0);
        assert!(hz(Nanos::ZERO).is_finite());
    }

    #[test]
    fn grades_begin_at_their_limits() {
        for (ms, expected) in [
            (0, "A+"),
            (4, "A+"),
            (5, "A"),
            (29, "A"),
            (30, "B"),
            (60, "C"),
            (199, "C"),
            (200, "D"),
            (399, "D"),
            (400, "F"),
            (9_000, "F"),
        ] {
            assert_eq!(grade(Nanos::from_millis(ms)), expected, "{ms} ms");
        }
    }

    proptest! {
        #[test]
        fn unfairness_only_ever_lowers_capacity(
            goodputs in prop::collection::vec(0.1_f64..1e9, 1..33),
        ) {
            let sum: f64 = goodputs.iter().sum();
            prop_assert!(capacity(&goodputs) <= sum * (1.0 + 1e-9));
            let index = jain_index(&goodputs);
            prop_assert!(index <= 1.0 + 1e-9 && index >= 1.0 / goodputs.len() as f64 - 1e-9);
        }
    }
}
