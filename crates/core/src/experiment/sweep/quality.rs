//! Trials that have to be made again, and how long they have to be.

use super::SweepSpec;
use crate::experiment::sweep::knee::{Reading, trials_of_peak_after};
use crate::experiment::sweep::table::is_sound;
use crate::spec::Level;
use crate::trial::findings::queue_grows;
use crate::trial::report::{TrialReport, Verdict};
use crate::words::value;

/// After so many repeats in one sweep, what is left of the target's drift is a finding.
const REPEATS_MAX: usize = 3;
/// Trials that may be spent on telling a fall with the load from one with time.
const PEAK_AGAIN_MAX: usize = 2;

/// A window in which fewer operations than this are expected is made longer, …
const OPERATIONS_MIN: f64 = 100.0;
/// … up to this many times.
const STRETCH_MAX: f64 = 5.0;

/// How many times as long as the base's the window is to be, for so many operations per second; 1
/// where that is not known.
pub(super) fn stretch(spec: &SweepSpec, per_s: Option<f64>) -> u64 {
    let expected = per_s.map(|x| x * spec.base.duration.as_secs_f64());
    expected.map_or(1, |n| {
        (OPERATIONS_MIN / n).ceil().clamp(1.0, STRETCH_MAX) as u64
    })
}

/// A trial to be made again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Repeat {
    /// Its level.
    pub level: Level,
    /// How many times as long as the base's its window is to be.
    pub stretch: u64,
}

/// Whether the last trial is to be made again: once for each level, with double the time where it
/// was not stationary, unless a sound one is there already, and not more than three times in all.
/// An invalid trial says nothing, whatever it seems to show.
pub(super) fn repeat_of_last(spec: &SweepSpec, past: &[TrialReport]) -> Option<Repeat> {
    let last = past.last()?;
    let is_valid = last.verdict == Verdict::Valid;
    let known = past.iter().any(|t| t.level == last.level && is_sound(t));
    if known || (is_valid && (last.completed == 0 || queue_grows(last))) {
        return None;
    }
    let again = |t: &TrialReport, earlier: &[TrialReport]| earlier.iter().any(|e| again_of(e, t));
    let repeats = (0..past.len()).filter(|&i| again(&past[i], &past[..i]));
    if again(last, &past[..past.len() - 1]) || repeats.count() >= REPEATS_MAX {
        return None;
    }
    let longer = if is_valid { 2.0 } else { 1.0 };
    let length = last.duration_ns as f64 / spec.base.duration.0.max(1) as f64;
    let stretch = (longer * length).round().max(1.0) as u64;
    Some(Repeat {
        level: last.level,
        stretch,
    })
}

/// The next of a list of levels: as many as were made already, those made again apart. A level that
/// comes several times is measured several times.
pub(super) fn next_of_list<T: Copy>(
    spec: &SweepSpec,
    list: &[T],
    past: &[TrialReport],
) -> Option<T> {
    let is_planned = |i: &usize| repeat_of_last(spec, &past[..*i]).is_none();
    let made = (0..past.len()).filter(is_planned).count();
    list.get(made).copied()
}

/// The level of the maximum, where a later level seems to have less: measured again after it, it
/// tells whether the load or the time makes the difference. Once, and once more where that trial is
/// not sound.
pub(super) fn peak_again(past: &[TrialReport], reading: &Reading) -> Option<f64> {
    let fallen = reading.fallen.as_ref()?.level;
    let peak = *reading.plateau.last()?;
    let begin = past.iter().position(|t| value(t.level) == fallen)?;
    let later = past[begin + 1..].iter().filter(|t| value(t.level) == peak);
    let known = !trials_of_peak_after(past, &reading.plateau, fallen).is_empty();
    (!known && later.count() < PEAK_AGAIN_MAX).then_some(peak)
}

fn again_of(earlier: &TrialReport, later: &TrialReport) -> bool {
    earlier.level == later.level && !is_sound(earlier)
}
