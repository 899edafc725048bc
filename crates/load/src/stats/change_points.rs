//! Where the level of a series changes, by E-divisive for one variable. (Matteson and James, JASA
//! 109, 2014: nonparametric analysis of multiple change points.)
//!
//! The energy distance between what lies before and after a place is greatest where the
//! distribution changes. Whether it is greater than chance makes it is found by permuting the
//! values. As MongoDB and Apache Otava do it, each place that was found is judged again once all
//! are known, between its neighbours.

use crate::rng::{self, Rng};

/// The fewest values between two changes.
pub const SEGMENT_MIN: usize = 3;

/// The probability of a change found by chance in a series without any.
pub const ALPHA: f64 = 0.02;

/// Permutations for each place.
const PERMUTATIONS: usize = 399;

/// The most values that are searched: the time grows with their square.
pub const VALUES_MAX: usize = 1_000;

/// Places at which the level of a series changes: the number of the first value after each change,
/// in order. Chance finds one in a series without changes with a probability of about `alpha`.
/// The same series gives the same places.
pub fn change_points(values: &[f64], alpha: f64) -> Vec<usize> {
    let mut rng = rng::stream(values.len() as u64, rng::CHANGE_POINTS);
    let mut found = Vec::new();
    let mut parts = Vec::from([(0, values.len())]);
    while let Some((from, to)) = parts.pop() {
        let part = &values[from..to];
        if let Some((at, _)) = best(part)
            && p_value(part, &mut rng) <= alpha
        {
            found.push(from + at);
            parts.extend([(from, from + at), (from + at, to)]);
        }
    }
    found.sort_unstable();
    without_chance(values, alpha, found, &mut rng)
}

/// The places that are still no chance between their neighbours, the weakest left out first.
fn without_chance(values: &[f64], alpha: f64, mut found: Vec<usize>, rng: &mut Rng) -> Vec<usize> {
    loop {
        let judged = (0..found.len()).map(|number| {
            let from = number.checked_sub(1).map_or(0, |before| found[before]);
            let to = found.get(number + 1).map_or(values.len(), |after| *after);
            let part = &values[from..to];
            (split_p_value(part, found[number] - from, rng), number)
        });
        match judged.max_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((p, number)) if p > alpha => drop(found.remove(number)),
            _ => return found,
        }
    }
}

/// The place with the greatest distance, and that distance; `None` where there is no room for two
/// segments.
fn best(values: &[f64]) -> Option<(usize, f64)> {
    let splits = distances(values);
    let last = values.len().checked_sub(SEGMENT_MIN)?;
    let splits = splits.into_iter().enumerate().take(last + 1).skip(SEGMENT_MIN);
    splits.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// For each place, the energy distance of the values before it and from it on, scaled by how many
/// they are.
fn distances(values: &[f64]) -> Vec<f64> {
    let count = values.len();
    let (mut before, mut across, mut after) = (0.0, 0.0, 0.0);
    for (number, a) in values.iter().enumerate() {
        after += values[number + 1..].iter().map(|b| (a - b).abs()).sum::<f64>();
    }
    let mut distances = vec![0.0; count + 1];
    for at in 1..count {
        // The value before `at` moves from the one side to the other.
        let moved = values[at - 1];
        let to_before: f64 = values[..at - 1].iter().map(|b| (moved - b).abs()).sum();
        let to_after: f64 = values[at..].iter().map(|b| (moved - b).abs()).sum();
        before += to_before;
        after -= to_after;
        across += to_after - to_before;
        let (m, n) = (at as f64, (count - at) as f64);
        let pairs = |of: f64| (of * (of - 1.0)).max(1.0);
        let within = |sum: f64, of: f64| 2.0 * sum / pairs(of);
        let energy = 2.0 * across / (m * n) - within(before, m) - within(after, n);
        distances[at] = energy * m * n / (m + n);
    }
    distances
}

/// How probable it is that values in a random order have a place with as great a distance.
fn p_value(values: &[f64], rng: &mut Rng) -> f64 {
    let greatest = |values: &[f64]| best(values).map_or(0.0, |(_, distance)| distance);
    of_permutations(values, rng, greatest)
}

/// The same for this one place.
fn split_p_value(values: &[f64], at: usize, rng: &mut Rng) -> f64 {
    of_permutations(values, rng, |values| distances(values)[at])
}

fn of_permutations(values: &[f64], rng: &mut Rng, of: impl Fn(&[f64]) -> f64) -> f64 {
    let own = of(values);
    let mut shuffled = values.to_vec();
    let mut as_great = 1;
    for _ in 0..PERMUTATIONS {
        rng::shuffle(&mut shuffled, rng);
        as_great += u32::from(of(&shuffled) >= own);
    }
    f64::from(as_great) / (PERMUTATIONS + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history of runs, and where it changes.
    struct History {
        values: Vec<f64>,
        changes: Vec<usize>,
    }

    /// A history of 30 to 110 runs, logarithms of a figure. Two of three have one to three changes
    /// of 4 to 20 %. They vary by 1 to 4 % from run to run, some with outliers, some with runs that
    /// resemble their neighbours.
    fn history(number: u64) -> History {
        let mut rng = rng::stream(number, 1);
        let mut draw = |low: f64, high: f64| low + (high - low) * rng::unit(&mut rng);
        let length = draw(30.0, 110.0) as usize;
        let noise = draw(0.01, 0.04);
        let (has_outliers, resembles) = (number % 4 == 1, if number % 5 == 2 { 0.3 } else { 0.0 });
        let count = if number.is_multiple_of(3) { 0 } else { 1 + number as usize / 3 % 3 };
        let changes: Vec<usize> = (1..=count).map(|n| length * n / (count + 1)).collect();
        let (mut level, mut before, mut values) = (0.0, 0.0, Vec::new());
        for at in 0..length {
            if changes.contains(&at) {
                let size = draw(0.04, 0.2);
                level += if draw(0.0, 1.0) < 0.5 { -size } else { size };
            }
            // The sum of twelve is nearly normal.
            let normal: f64 = (0..12).map(|_| draw(-0.5, 0.5)).sum();
            before = resembles * before + noise * normal;
            let outlier = if has_outliers && draw(0.0, 1.0) < 0.03 { draw(0.1, 0.4) } else { 0.0 };
            values.push(level + before + outlier);
        }
        History { values, changes }
    }

    /// Changes that were found within two runs, and places found where none is.
    fn score(found: &[usize], changes: &[usize]) -> (usize, usize) {
        let is_near = |a: usize, b: usize| a.abs_diff(b) <= 2;
        let hits = changes.iter().filter(|&&c| found.iter().any(|&f| is_near(f, c))).count();
        let alarms = found.iter().filter(|&&f| !changes.iter().any(|&c| is_near(f, c))).count();
        (hits, alarms)
    }

    /// Apache Otava 0.8.0 with its defaults (windows of 50, p < 0.001) finds 72 of these 78
    /// changes, with 15 false ones.
    #[test]
    fn changes_are_found_as_by_otava_with_half_the_false_ones() {
        let (mut hits, mut alarms, mut changes) = (0, 0, 0);
        for history in (0..60).map(history) {
            let found = change_points(&history.values, ALPHA);
            let (found, wrong) = score(&found, &history.changes);
            hits += found;
            alarms += wrong;
            changes += history.changes.len();
        }
        assert_eq!(changes, 78);
        assert!(hits >= 72 && alarms <= 8, "{hits} found, {alarms} false");
    }

    #[test]
    fn series_that_are_short_or_all_alike_have_no_changes() {
        for values in [&[][..], &[1.0], &[1.0, 2.0, 1.0, 9.0, 9.0], &[3.0; 40]] {
            assert_eq!(change_points(values, ALPHA), [0; 0], "{values:?}");
        }
        let step: Vec<f64> = (0..40).map(|at| if at < 25 { 1.0 } else { 2.0 }).collect();
        assert_eq!(change_points(&step, ALPHA), [25]);
        // Three of the latest runs are enough where the others agree.
        let recent = (0..30).map(|at| f64::from(at % 3) * 0.01 + f64::from(at / 27));
        let recent: Vec<f64> = recent.collect();
        assert_eq!(change_points(&recent, ALPHA), [27]);
    }
}
