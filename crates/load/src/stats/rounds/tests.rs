use super::*;
use crate::rng;
use crate::series::normal;

/// A whole design with these levels, rounds that differ, and normal residuals.
fn design(levels: &[f64], rounds: usize, sd: f64, rng: &mut rng::Rng) -> Vec<BlockCell> {
    let mut cells = Vec::new();
    for round in 0..rounds {
        let of_round = 0.2 * normal(rng);
        for (level, value) in levels.iter().enumerate() {
            let value = value + of_round + sd * normal(rng);
            cells.push(BlockCell { level, round, value });
        }
    }
    cells
}

const LEVELS: [f64; 6] = [0.0, 0.7, 1.3, 1.9, 2.0, 2.0];

/// Differences of levels are covered in 93 % of designs at least, whatever is done to some cells.
fn covered(spoil: impl Fn(&mut Vec<BlockCell>, &mut rng::Rng)) -> f64 {
    let mut rng = rng::stream(11, 0);
    let mut hits = 0;
    for _ in 0..400 {
        let mut cells = design(&LEVELS, 6, 0.03, &mut rng);
        spoil(&mut cells, &mut rng);
        let fit = fit(&cells, LEVELS.len(), 6).expect("cells are left");
        let [lo, hi] = fit.difference(0, 4).expect("both are there").ci95();
        hits += usize::from(lo <= 2.0 && 2.0 <= hi);
    }
    f64::from(hits as u32) / 400.0
}

#[test]
fn differences_of_levels_are_covered() {
    let share = covered(|_, _| {});
    assert!(share >= 0.93, "{share}");
}

#[test]
fn single_bad_cells_do_not_move_the_levels() {
    let share = covered(|cells, rng| {
        for _ in 0..2 {
            let bad = (rng::unit(rng) * cells.len() as f64) as usize;
            cells[bad].value -= 0.4;
        }
    });
    assert!(share >= 0.93, "{share}");
}

#[test]
fn missing_cells_leave_the_others_as_they_are() {
    let share = covered(|cells, rng| {
        for _ in 0..5 {
            cells.swap_remove((rng::unit(rng) * cells.len() as f64) as usize);
        }
    });
    assert!(share >= 0.92, "{share}");
}

#[test]
fn a_bad_cell_loses_its_weight() {
    let mut cells = design(&LEVELS, 5, 0.01, &mut rng::stream(3, 0));
    cells[9].value -= 0.5;
    let fit = fit(&cells, LEVELS.len(), 5).unwrap();
    assert!(fit.weights[9] < 0.1, "{:?}", fit.weights);
    assert!((fit.residuals[9] + 0.5).abs() < 0.05);
    let others = fit.weights.iter().filter(|w| **w > 0.5).count();
    assert!(others >= cells.len() - 3, "{:?}", fit.weights);
}

#[test]
fn a_slow_round_is_an_effect_of_the_round() {
    let mut cells = design(&LEVELS, 5, 0.01, &mut rng::stream(4, 0));
    let slow = cells.iter_mut().filter(|c| c.round == 2);
    slow.for_each(|c| c.value -= 1.0);
    let fit = fit(&cells, LEVELS.len(), 5).unwrap();
    assert!(fit.rounds[2].unwrap() < -0.5, "{:?}", fit.rounds);
    assert!(fit.spread < 0.02, "{}", fit.spread);
}

#[test]
fn nothing_is_fitted_without_freedom() {
    let cell = |level, round| BlockCell { level, round, value: 1.0 };
    assert!(fit(&[], 0, 0).is_none());
    assert!(fit(&[cell(0, 0), cell(1, 0)], 2, 1).is_none());
    let several = [cell(0, 0), cell(1, 0), cell(0, 1), cell(1, 1)];
    assert_eq!(fit(&several, 2, 2).unwrap().freedom, 1);
}

/// Whether the interval leaves out zero.
fn is_significant(estimate: &Estimate) -> bool {
    estimate.value.abs() > estimate.half_width
}

#[test]
fn a_trend_has_the_size_of_the_whole_rise() {
    let rising: Vec<(f64, f64)> = (0..8).map(|i| (f64::from(i), 0.1 * f64::from(i))).collect();
    let found = trend(&rising).unwrap();
    assert!((found.value - 0.7).abs() < 1e-9 && is_significant(&found));
    let flat = [(0.0, 0.1), (1.0, -0.1), (2.0, 0.1), (3.0, -0.1)];
    assert!(!is_significant(&trend(&flat).unwrap()));
    assert!(trend(&flat[..2]).is_none());
}

/// Of a mean it is Student's interval.
#[test]
fn jackknife_of_a_mean_covers_it() {
    let mut rng = rng::stream(5, 0);
    let mut covered = 0;
    for _ in 0..1_000 {
        let values: Vec<f64> = (0..5).map(|_| normal(&mut rng)).collect();
        let mean = |without: Option<usize>| {
            let kept = (0..5).filter(|i| Some(*i) != without).map(|i| values[i]);
            Some(kept.sum::<f64>() / if without.is_some() { 4.0 } else { 5.0 })
        };
        let [lo, hi] = jackknife(5, mean).expect("five groups").ci95();
        covered += usize::from(lo <= 0.0 && 0.0 <= hi);
    }
    assert!((930..=970).contains(&covered), "{covered} of 1,000");
    assert_eq!(jackknife(2, |_| Some(1.0)), None);
}

/// On a host that stalls, slices of one level may differ by orders of magnitude.
#[test]
fn intervals_of_few_wild_cells_are_numbers_as_powers() {
    let cell = |level, round, value| BlockCell { level, round, value };
    let cells = [cell(0, 0, 7.0), cell(0, 1, 0.0), cell(1, 0, 0.0), cell(1, 1, 700.0)];
    let fit = fit(&cells, 2, 2).unwrap();
    let wild = fit.difference(0, 1).unwrap();
    assert_eq!(wild.half_width, HALF_WIDTH_MAX);
    assert!([0, 1].iter().all(|&level| fit.level(level).unwrap().half_width.exp().is_finite()));
}
