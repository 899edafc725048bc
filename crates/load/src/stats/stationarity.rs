//! Steady state: whether a series has one, and when it begins.

use super::course::{Course, TimedValue, course};
use super::rounds::TrendLine;
use super::sample::{autocorrelation, batch_means, inflation, mean, variance};

/// Slots per batch of MSER-5.
const BATCH: usize = 5;
/// Standard errors by which the mean of a transient differs from the rest, at least. The value is
/// high, as the cut was chosen for the largest difference.
const TRANSIENT_Z: f64 = 4.0;
/// … and the least difference as a share of the mean of the rest.
const TRANSIENT_SHARE: f64 = 0.02;
/// Batches of a series, which leaves little correlation between them.
const BATCHES: usize = 40;
/// Least batches; a shorter series passes.
const BATCHES_MIN: usize = 10;
/// Least standard errors of a drift or a shift. By simulation (see the tests) it keeps false alarms
/// below 2 % up to the correlation of an M/M/1 queue at 90 % load.
const DRIFT_Z: f64 = 3.5;

/// Least share of the variance that a step or a cycle explains. Chance and correlation leave less:
/// see the tests of false alarms.
const COURSE_SHARE: f64 = 0.85;
/// Least size of a step, and of a cycle from its least to its most, as a share of the mean.
const COURSE_RANGE: f64 = 0.1;
/// Operations that a batch has more or less in a course, at least.
const GRAINS: f64 = 2.0;
/// Least share of a series on either side of a step.
const STEP_SIDE: f64 = 0.15;

/// Change of throughput over the window, as a share of the mean, that matters.
pub const THROUGHPUT_SHARE: f64 = 0.02;
/// The same for response time, which is noisier and magnifies changes of the load.
pub const RESPONSE_SHARE: f64 = 0.10;

/// Number of slots of the initial transient, by MSER-5 (White, Simulation 69, 1997). The cut, in
/// batches of five slots, is where the standard error of the mean of the rest is least. Less than
/// two fifths: what lasts longer is no start. None unless the cut part differs from the rest beyond noise
/// and autocorrelation.
pub fn transient_slots(series: &[f64]) -> usize {
    let batches: Vec<f64> = series.chunks_exact(BATCH).map(mean).collect();
    let n = batches.len();
    let most = 2 * n / 5;
    let marginal_error = |cut: usize| {
        let rest = &batches[cut..];
        variance(rest) * (rest.len() - 1) as f64 / (rest.len() as f64).powi(2)
    };
    let best = (0..=most.min(n.saturating_sub(BATCHES_MIN)))
        .min_by(|&a, &b| marginal_error(a).total_cmp(&marginal_error(b)));
    match best {
        Some(cut) if cut > 0 && cut < most && differs(&batches[..cut], &batches[cut..]) => {
            cut * BATCH
        }
        _ => 0,
    }
}

fn differs(cut: &[f64], rest: &[f64]) -> bool {
    let gap = (mean(cut) - mean(rest)).abs();
    let spread = variance(rest) * inflation(autocorrelation(rest), rest.len());
    let error = (spread / cut.len() as f64 + spread / rest.len() as f64).sqrt();
    gap > TRANSIENT_Z * error && gap > TRANSIENT_SHARE * mean(rest).abs()
}

/// Whether a series neither drifts nor jumps. Its trend, and the largest difference between the
/// means of its thirds, are within noise and autocorrelation or below the share `matters` of the
/// mean. See also [`has_course`].
pub fn is_stationary(series: &[f64], matters: f64) -> bool {
    let batches = batch_means(series, BATCHES);
    if batches.len() < BATCHES_MIN {
        return true;
    }
    let floor = matters * mean(&batches).abs();
    !drifts(&batches, floor) && !shifts(&batches, floor)
}

/// Whether a step or a cycle is nearly all of the variance of a series. Such a change is a long
/// correlation too, which hides it from tests that allow for that. Of a series that is too short for
/// the beats of a server with fixed times to even out, it says nothing.
///
/// `grain` is what one operation more or less makes of a value; 0 where values are means. Of a
/// regular schedule the numbers in batches differ by one, which looks like a cycle.
pub fn has_course(series: &[f64], grain: f64) -> bool {
    let batches = batch_means(series, BATCHES);
    let n = batches.len();
    if n < BATCHES_MIN {
        return false;
    }
    let size = (series.len() / n) as f64;
    let mean = mean(&batches);
    let values = batches.iter().enumerate().map(|(i, batch)| TimedValue {
        level: 0,
        at: i as f64,
        value: batch / mean,
    });
    let values: Vec<TimedValue> = values.collect();
    let side = (n as f64 * STEP_SIDE) as usize;
    let fitted = course(&values, |at| (side..n - side).contains(&at));
    let range = match fitted.course {
        Course::Constant | Course::Drift { .. } => 0.0,
        Course::Step { by, .. } => by.abs(),
        Course::Cycle { amplitude, .. } => 2.0 * amplitude,
    };
    range > COURSE_RANGE.max(GRAINS * grain / size / mean) && fitted.explained > COURSE_SHARE
}

/// Least squares; the residuals tell the noise and its correlation.
fn drifts(batches: &[f64], floor: f64) -> bool {
    let points: Vec<(f64, f64)> = (0..).map(f64::from).zip(batches.iter().copied()).collect();
    let line = TrendLine::through(&points);
    let residuals: Vec<f64> = points.iter().map(|p| line.residual(p)).collect();
    let error = (noise(&residuals, 2) / line.sxx).sqrt();
    let slope = line.slope.abs();
    slope * batches.len() as f64 > floor && slope > DRIFT_Z * error
}

fn shifts(batches: &[f64], floor: f64) -> bool {
    let thirds: Vec<&[f64]> = batches.chunks(batches.len().div_ceil(3)).collect();
    let residuals: Vec<f64> =
        thirds.iter().flat_map(|third| third.iter().map(|x| x - mean(third))).collect();
    let noise = noise(&residuals, thirds.len());
    let exceeds = |a: &[f64], b: &[f64]| {
        let gap = (mean(a) - mean(b)).abs();
        let error = (noise / a.len() as f64 + noise / b.len() as f64).sqrt();
        gap > floor && gap > DRIFT_Z * error
    };
    (0..thirds.len()).any(|i| (0..i).any(|j| exceeds(thirds[i], thirds[j])))
}

/// The variance of residuals after fitting this number of `parameters`, inflated for their
/// correlation.
fn noise(residuals: &[f64], parameters: usize) -> f64 {
    let n = residuals.len();
    let degrees = (n - parameters).max(1) as f64;
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    // Every parameter fitted takes about 1/n from the autocorrelation.
    let r = autocorrelation(residuals) + parameters as f64 / n as f64;
    squares / degrees * inflation(r, n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;
    use crate::series::{autoregression, mm1, normal};

    const RUNS: u64 = 200;
    const SLOTS: usize = 400;

    fn flagged(series: impl Fn(u64) -> Vec<f64>, matters: f64) -> f64 {
        let alarms = (0..RUNS).map(&series);
        let alarms =
            alarms.filter(|series| !is_stationary(series, matters) || has_course(series, 0.0));
        alarms.count() as f64 / RUNS as f64
    }

    /// Throughput and mean response time per slot.
    fn slots(served: &[(f64, f64)], seconds: f64) -> (Vec<f64>, Vec<f64>) {
        let (mut counts, mut sums) = (vec![0.0; SLOTS], vec![0.0; SLOTS]);
        for &(at, response) in served {
            let slot = (at / seconds * SLOTS as f64) as usize;
            if slot < SLOTS {
                counts[slot] += 1.0;
                sums[slot] += response;
            }
        }
        let means = sums.iter().zip(&counts).filter(|(_, n)| **n > 0.0);
        let means = means.map(|(s, n)| s / n).collect();
        (counts, means)
    }

    #[test]
    fn false_alarms_stay_below_two_percent() {
        let series = |s, phi| autoregression(&mut rng::stream(s, 1), SLOTS, phi, 10.0);
        for phi in [0.0, 0.5, 0.8, 0.9, 0.95] {
            let share = flagged(|seed| series(seed, phi), THROUGHPUT_SHARE);
            assert!(share <= 0.02, "autocorrelation {phi}: {share}");
            let cut = (0..RUNS).filter(|&seed| transient_slots(&series(seed, phi)) > 0);
            assert!(cut.count() <= 4, "autocorrelation {phi}");
        }
        for rho in [0.5, 0.8, 0.9] {
            let queue = |s| mm1(&mut rng::stream(s, 2), 1_000.0 * rho, 1_000.0, 10.0);
            let throughput = flagged(|s| slots(&queue(s), 10.0).0, THROUGHPUT_SHARE);
            let response = flagged(|s| slots(&queue(s), 10.0).1, RESPONSE_SHARE);
            assert!(throughput <= 0.02, "load {rho}: {throughput}");
            assert!(response <= 0.02, "load {rho}: {response}");
        }
        assert!(is_stationary(&[5.0; SLOTS], THROUGHPUT_SHARE));
        assert!(is_stationary(&[0.0; SLOTS], THROUGHPUT_SHARE));
    }

    #[test]
    fn a_queue_that_grows_is_caught_by_its_response_times() {
        for rho in [1.2, 2.0] {
            let queue = |s| mm1(&mut rng::stream(s, 2), 1_000.0 * rho, 1_000.0, 10.0);
            let share = flagged(|s| slots(&queue(s), 10.0).1, RESPONSE_SHARE);
            assert!(share >= 0.99, "load {rho}: {share}");
        }
    }

    #[test]
    fn drifts_and_shifts_are_caught_and_small_ones_let_pass() {
        let noisy = |seed, sd: f64, shape: &dyn Fn(f64) -> f64| -> Vec<f64> {
            let mut rng = rng::stream(seed, 3);
            let at = |i: usize| shape(i as f64 / SLOTS as f64);
            (0..SLOTS).map(|i| at(i) + sd * normal(&mut rng)).collect()
        };
        // what, its shape over the window, whether it is to be caught
        type Shape = fn(f64) -> f64;
        let cases: [(&str, Shape, bool); 11] = [
            ("a drift of 10 %", |t| 100.0 + 10.0 * t, true),
            ("a drift down of 10 %", |t| 100.0 - 10.0 * t, true),
            ("a step of 10 % near the end", |t| 100.0 + if t > 0.7 { 10.0 } else { 0.0 }, true),
            ("a hump of 20 %", |t| 100.0 + if (t - 0.5).abs() < 0.2 { 20.0 } else { 0.0 }, true),
            ("a step to the double", |t| if t < 0.62 { 100.0 } else { 200.0 }, true),
            ("a step to the half", |t| if t < 0.5 { 100.0 } else { 50.0 }, true),
            ("a step of 30 %", |t| if t < 0.62 { 100.0 } else { 130.0 }, true),
            ("a cycle", |t| 100.0 + 40.0 * (t * 2.4 * std::f64::consts::TAU).sin(), true),
            ("many cycles", |t| 100.0 + 10.0 * (t * 7.7 * std::f64::consts::TAU).sin(), true),
            ("a drift of 1 %", |t| 100.0 + t, false),
            ("a step of 1 %", |t| 100.0 + if t > 0.5 { 1.0 } else { 0.0 }, false),
        ];
        for (what, shape, caught) in cases {
            for seed in 0..20 {
                let series = noisy(seed, 1.0, &shape);
                let found = !is_stationary(&series, THROUGHPUT_SHARE) || has_course(&series, 0.0);
                assert_eq!(found, caught, "{what}");
            }
        }
    }

    #[test]
    fn a_warm_up_within_the_window_is_cut_and_no_more() {
        for (slow_slots, shape) in [(40, "step"), (100, "step"), (80, "ramp")] {
            let mut rng = rng::stream(7, 4);
            let series: Vec<f64> = (0..SLOTS)
                .map(|i| match shape {
                    _ if i >= slow_slots => 100.0,
                    "step" => 50.0,
                    _ => 50.0 + 50.0 * i as f64 / slow_slots as f64,
                })
                .map(|level| level + normal(&mut rng))
                .collect();
            let cut = transient_slots(&series);
            assert!(cut.abs_diff(slow_slots) <= 10, "{shape} of {slow_slots}: {cut}");
            assert!(is_stationary(&series[cut..], THROUGHPUT_SHARE));
        }
        let all_slow: Vec<f64> = (0..SLOTS).map(|i| i as f64).collect();
        assert!(transient_slots(&all_slow) < 2 * SLOTS / 5);
        assert!(!is_stationary(&all_slow[transient_slots(&all_slow)..], THROUGHPUT_SHARE));
        // Half of the time is no start.
        let half: Vec<f64> = (0..SLOTS).map(|i| if i < SLOTS / 2 { 50.0 } else { 100.0 }).collect();
        assert_eq!(transient_slots(&half), 0);
        assert!(has_course(&half, 0.0));
    }

    /// 50 operations per second in slots of 32 ms: 2, 1, 2, 1, 2 and so on, and 9 or 10 in a batch.
    #[test]
    fn the_beat_of_a_schedule_with_its_slots_is_no_course() {
        for per_s in [25, 50, 66, 100, 200] {
            let slots = (0..250).map(|slot| {
                let up_to = |ms: u64| (ms * per_s).div_ceil(1_000);
                (up_to((slot + 1) * 32) - up_to(slot * 32)) as f64
            });
            let slots: Vec<f64> = slots.collect();
            assert!(!has_course(&slots, 1.0) && is_stationary(&slots, THROUGHPUT_SHARE), "{per_s}");
            let doubled: Vec<f64> = slots
                .iter()
                .enumerate()
                .map(|(i, n)| n * if i < 120 { 1.0 } else { 2.0 })
                .collect();
            assert!(has_course(&doubled, 1.0), "{per_s}");
        }
    }
}
