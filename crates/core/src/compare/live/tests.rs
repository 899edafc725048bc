//! Rounds of two targets in virtual time.

use super::{LiveSide, ROUNDS_MIN, compare_live, is_b_first, is_known};
use crate::compare::report::{Comparison, ComparisonVerdict};
use crate::experiment::sweep::tests::fake::{Fake, base};
use crate::trial::report::{TrialReport, Verdict};
use knee_load::rng;

/// Slices of two targets of one user. The host is up to three times as slow in some rounds as in
/// others, and `share` is what B serves of what A does.
fn slices(rounds: usize, share: f64, seed: u64) -> [Vec<TrialReport>; 2] {
    let mut rng = rng::stream(seed, 3);
    let mut sides = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let host = 0.5 + rng::unit(&mut rng);
        for (side, share) in sides.iter_mut().zip([1.0, share]) {
            let chance = 1.0 + 0.03 * (rng::unit(&mut rng) - 0.5);
            let per_s = 1_000.0 * host * share * chance;
            side.push(Fake::new(move |_| per_s).run(&base(seed)));
        }
    }
    sides
}

fn side(name: &str, slices: Vec<TrialReport>) -> LiveSide {
    LiveSide {
        target: format!("http://{name}/"),
        started_at: "2026-05-04T09:30:00Z".to_owned(),
        slices,
    }
}

fn compared([a, b]: [Vec<TrialReport>; 2]) -> Comparison {
    compare_live(&side("a", a), &side("b", b), "1").expect("rounds")
}

#[test]
fn a_difference_within_rounds_shows_through_a_changing_host() {
    for seed in 0..20 {
        let comparison = compared(slices(10, 0.9, seed));
        assert_eq!(comparison.verdict, ComparisonVerdict::Worse, "{seed}");
        let throughput = &comparison.rows[0];
        let [lo, hi] = throughput.ratio_ci95.expect("known");
        assert!(lo < 0.92 && hi > 0.88 && hi - lo < 0.06, "{throughput:?}");
        assert_eq!(comparison.a.runs[0].target, "http://a/");
        assert_eq!(comparison.b.runs[0].target, "http://b/");
    }
}

#[test]
fn equals_are_rarely_called_different() {
    let is_found = |seed: &u64| {
        let comparison = compared(slices(10, 1.0, *seed));
        comparison.rows.iter().any(|row| row.significant)
    };
    let found = (0..200).filter(is_found).count();
    assert!(found <= 20, "{found} of 200");
}

#[test]
fn rounds_go_on_until_the_difference_is_known() {
    let [a, b] = slices(ROUNDS_MIN, 0.9, 1);
    assert!(is_known(&a, &b));
    assert!(!is_known(&a[..7], &b[..7]), "at least 8 rounds");
    let noisy = |sides: [Vec<TrialReport>; 2]| {
        sides.map(|side| {
            let factor = |i: usize| if i.is_multiple_of(2) { 0.7 } else { 1.0 };
            let slower = side.into_iter().enumerate().map(|(i, mut t)| {
                t.throughput_per_s = t.throughput_per_s.map(|x| x * factor(i));
                t
            });
            slower.collect::<Vec<_>>()
        })
    };
    let [a, _] = noisy(slices(ROUNDS_MIN, 0.9, 1));
    assert!(!is_known(&a, &b), "A varies within rounds");
}

#[test]
fn invalid_slices_are_named_and_left_out() {
    let [mut a, b] = slices(10, 1.0, 2);
    a[3].verdict = Verdict::Invalid;
    let comparison = compared([a, b]);
    assert!(comparison.warnings[0].contains("1 of 10 slices of A"));
    assert!(!comparison.has_invalid);
    assert!(compare_live(&side("a", vec![]), &side("b", vec![]), "1").is_err());
}

#[test]
fn either_target_begins_a_round() {
    let first = (0..200).filter(|&round| is_b_first(1, round)).count();
    assert!((70..=130).contains(&first), "{first} of 200");
}
