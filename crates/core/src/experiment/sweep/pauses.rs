//! Periodic pauses of the target, found from all slices of a sweep.
//!
//! A slice is often shorter than the period, but all slices share one clock. The pauses have a
//! period if nearly all are at its multiples, and nearly every multiple within a slice has one.

use crate::trial::report::{PausesReport, TrialReport, Verdict};
use knee_load::stats::rounds::median;
use std::f64::consts::TAU;

/// Least number of pauses.
const PAUSES_MIN: usize = 6;
/// Most pauses that are used, the first ones.
const PAUSES_MAX: usize = 200;
/// Length of the mean of all phases, as unit vectors, from which they are one phase.
const IN_PHASE: f64 = 0.93;
/// Largest distance of a pause from its expected time, as a share of the period.
const OFF: f64 = 0.15;
/// Distance from a slice's ends within which a pause is not expected, as a share of the period.
const MARGIN: f64 = 0.05;
/// Steps between two frequencies for the exact period.
const FINE_STEPS: i32 = 20;
/// Least share of the expected pauses that exist, and of the pauses that were expected.
const THERE: f64 = 0.8;
/// Largest share of a period that a pause takes.
const PAUSED_SHARE: f64 = 0.5;
/// Longest and shortest period as shares of the whole time.
const PERIODS: [f64; 2] = [0.25, 0.002];
/// Step of the frequency, as the shift of phases over the whole time in turns.
const STEP: f64 = 0.1;

/// Pauses and slices, in seconds from the begin of the sweep.
struct PauseTimes {
    pauses: Vec<f64>,
    length: f64,
    windows: Vec<[f64; 2]>,
}

/// Period, length and number of the pauses; `None` without a period.
pub(super) fn periodic(slices: &[TrialReport]) -> Option<PausesReport> {
    let seen = PauseTimes::of(slices);
    let (first, last) = (*seen.pauses.first()?, *seen.pauses.last()?);
    if seen.pauses.len() < PAUSES_MIN || last <= first {
        return None;
    }
    let span = last - first;
    let shortest = (seen.length / PAUSED_SHARE).max(PERIODS[1] * span);
    let from = 1.0 / (PERIODS[0] * span);
    let tried = ((1.0 / shortest - from) * span / STEP).max(0.0) as usize;
    let frequency = |i: usize| from + i as f64 * STEP / span;
    let strength = |i: usize| seen.phase(1.0 / frequency(i)).0;
    // Parts of the period fit as well, so the longest one is searched first.
    let mut i = 0;
    while i < tried {
        if strength(i) >= IN_PHASE {
            while i + 1 < tried && strength(i + 1) > strength(i) {
                i += 1;
            }
            let period = seen.exact(frequency(i), STEP / span);
            if seen.has_period(period) {
                return Some(seen.report(period));
            }
        }
        i += 1;
    }
    None
}

impl PauseTimes {
    fn of(slices: &[TrialReport]) -> PauseTimes {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let mut seen = PauseTimes { pauses: Vec::new(), length: 0.0, windows: Vec::new() };
        let mut lengths = Vec::new();
        for trial in slices.iter().filter(|t| t.verdict == Verdict::Valid) {
            let Some(slice) = trial.slice() else { continue };
            let begin = seconds(slice.begin_ns);
            seen.windows.push([begin, begin + seconds(trial.duration_ns)]);
            for pause in slice.pauses_within(trial.duration_ns) {
                seen.pauses.push(begin + seconds(pause[0]));
                lengths.push(seconds(pause[1] - pause[0]));
            }
        }
        seen.pauses.truncate(PAUSES_MAX);
        seen.length = median(lengths.into_iter());
        seen
    }

    /// Agreement of the pauses in their phase, 0 to 1, and the phase in seconds.
    fn phase(&self, period: f64) -> (f64, f64) {
        let turns = self.pauses.iter().map(|t| TAU * t / period);
        let (x, y) = turns.fold((0.0, 0.0), |(x, y), a| (x + a.cos(), y + a.sin()));
        let strength = f64::hypot(x, y) / self.pauses.len() as f64;
        (strength, y.atan2(x) / TAU * period)
    }

    /// Period with the best agreement within a step of this frequency.
    fn exact(&self, frequency: f64, step: f64) -> f64 {
        let near = (-FINE_STEPS..=FINE_STEPS).map(|k| {
            let share = f64::from(k) / f64::from(FINE_STEPS);
            1.0 / (frequency + share * step)
        });
        let best = near.max_by(|a, b| self.phase(*a).0.total_cmp(&self.phase(*b).0));
        best.unwrap_or(1.0 / frequency)
    }

    /// Whether nearly every multiple of the period within a slice has a pause, and nearly every
    /// pause is at one.
    fn has_period(&self, period: f64) -> bool {
        let (_, phase) = self.phase(period);
        let last = self.pauses.last().copied().unwrap_or(0.0);
        let is_there = |t: f64| self.pauses.iter().any(|p| (p - t).abs() <= OFF * period);
        let is_seen = |t: f64| {
            let [begin, end] = [t - MARGIN * period, t + self.length + MARGIN * period];
            self.windows.iter().any(|w| w[0] <= begin && end <= w[1])
        };
        let multiples = (0..).map(|k| phase + f64::from(k) * period);
        let expected: Vec<f64> =
            multiples.take_while(|&t| t <= last + OFF * period).filter(|&t| is_seen(t)).collect();
        let there = expected.iter().filter(|&&t| is_there(t)).count();
        let off = |t: &&f64| ((*t - phase) / period - ((*t - phase) / period).round()).abs();
        let regular = self.pauses.iter().filter(|t| off(t) <= OFF).count();
        expected.len() >= PAUSES_MIN / 2
            && there as f64 >= THERE * expected.len() as f64
            && regular as f64 >= THERE * self.pauses.len() as f64
    }

    fn report(&self, period: f64) -> PausesReport {
        let ns = |seconds: f64| (seconds * 1e9).round() as u64;
        PausesReport {
            count: self.pauses.len() as u64,
            period_ns: Some(ns(period)),
            length_ns: ns(self.length),
            percent: 100.0 * self.length / period,
            times_ns: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::sweep::tests::fake::{base, blank};
    use crate::trial::slice::Slice;
    use knee_load::spec::Level;

    /// Slices of 400 ms, 650 ms apart, of a target that pauses for 100 ms at these times.
    fn slices(pauses: &[f64]) -> Vec<TrialReport> {
        let begins = (0..24).map(|i| 0.65 * f64::from(i));
        let slice = |begin: f64| {
            let is_within = |p: &&f64| **p > begin && **p + 0.1 < begin + 0.4;
            let pause = pauses.iter().find(is_within).map(|p| p - begin);
            let mut trial = blank(Level::Vusers(4), &base(1));
            trial.duration_ns = 400_000_000;
            trial.set_slice(Some(Slice::at(begin, pause.map(|p| [p, p + 0.1]))));
            trial
        };
        begins.map(slice).collect()
    }

    #[test]
    fn pauses_of_different_slices_tell_their_period() {
        for period in [0.45, 0.7, 1.0] {
            let pauses: Vec<f64> = (0..40).map(|k| 0.1 + period * f64::from(k)).collect();
            let found = periodic(&slices(&pauses)).unwrap_or_else(|| panic!("{period}"));
            let error = found.period_ns.unwrap() as f64 / 1e9 / period - 1.0;
            assert!(error.abs() < 0.03, "{period}: {found:?}");
        }
    }

    #[test]
    fn pauses_without_a_period_are_not_periodic() {
        let mut rng = knee_load::rng::stream(1, 7);
        let falsely = (0..200).filter(|_| {
            let mut at = 0.0;
            let pauses: Vec<f64> = (0..40)
                .map(|_| {
                    at += 0.2 + knee_load::rng::exp1(&mut rng) * 0.4;
                    at
                })
                .collect();
            periodic(&slices(&pauses)).is_some()
        });
        let count = falsely.count();
        assert!(count <= 2, "{count} of 200");
    }
}
