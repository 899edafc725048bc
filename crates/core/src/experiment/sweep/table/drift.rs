//! Whether a target changes from trial to trial with time, whatever the level.

use super::is_sound;
use super::pool::{goodput_ci95, warm};
use crate::spec::Level;
use crate::trial::report::TrialReport;

/// A smaller change over all the trials is no finding.
const CHANGE_MIN: f64 = 0.05;
/// A change counts from this many standard errors on: one trial in a thousand, and some room, as
/// intervals of single trials know nothing of what differs between them.
const Z: f64 = 4.0;
/// Trials of one level differ by this share at the least.
const NOISE_MIN: f64 = 0.01;
/// Standard error of a trial whose interval is not known.
const NOISE_UNKNOWN: f64 = 0.03;
const Z95: f64 = 1.96;

/// A change of throughput with time, told from trials of the same level at different times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// By which share throughput changed from the first trial to the last, on a logarithmic scale.
    pub change: f64,
    /// The level that shows it best.
    pub level: Level,
    /// Throughput there at first.
    pub first_per_s: f64,
    /// Throughput there at last.
    pub last_per_s: f64,
    /// Time between the two, in seconds.
    pub apart_s: f64,
}

struct Seen<'a> {
    trial: &'a TrialReport,
    at_s: f64,
    ln: f64,
    error: f64,
}

/// The trend across trials by their order in time, with each level's own mean removed, so that no
/// trend across levels enters. `None` where none is significant, and where no level was repeated.
pub fn drift_between(past: &[TrialReport]) -> Option<Drift> {
    let (seen, length_s) = in_time(past);
    let mut levels: Vec<Level> = Vec::new();
    for s in &seen {
        if !levels.contains(&s.trial.level) {
            levels.push(s.trial.level);
        }
    }
    let groups: Vec<Vec<&Seen>> = levels
        .iter()
        .map(|level| seen.iter().filter(|s| s.trial.level == *level).collect())
        .filter(|group: &Vec<&Seen>| group.len() >= 2)
        .collect();
    let slope = slope(&groups)?;
    let change = slope * length_s;
    let widest = |g: &&Vec<&Seen>| g[g.len() - 1].at_s - g[0].at_s;
    let best = groups
        .iter()
        .max_by(|a, b| widest(a).total_cmp(&widest(b)))?;
    let (first, last) = (best[0], best[best.len() - 1]);
    let shows = (last.ln - first.ln) * slope > 0.0;
    (change.abs() >= CHANGE_MIN && shows).then_some(Drift {
        change,
        level: first.trial.level,
        first_per_s: first.trial.successes_per_s(),
        last_per_s: last.trial.successes_per_s(),
        apart_s: last.at_s - first.at_s,
    })
}

/// The trials that count with the middles of their windows, and how long all took.
fn in_time(past: &[TrialReport]) -> (Vec<Seen<'_>>, f64) {
    let mut now_s = 0.0;
    let mut seen = Vec::new();
    for trial in past {
        let length_s = trial.duration_ns as f64 / 1e9;
        let at_s = now_s + length_s / 2.0;
        now_s += length_s;
        let sound: Vec<&TrialReport> = past
            .iter()
            .filter(|t| t.level == trial.level && is_sound(t))
            .collect();
        let counts = warm(&sound).iter().any(|t| std::ptr::eq(*t, trial));
        if counts && trial.successes_per_s() > 0.0 {
            let half = goodput_ci95(trial).map(|[lo, hi]| (hi - lo) / 2.0);
            let error = half.map_or(NOISE_UNKNOWN, |h| h / Z95 / trial.successes_per_s());
            seen.push(Seen {
                trial,
                at_s,
                ln: trial.successes_per_s().ln(),
                error: error.max(NOISE_MIN),
            });
        }
    }
    (seen, now_s)
}

/// Change per second, if significant: least squares within levels, with the larger of the errors
/// that the trials' own intervals and their scatter about the line imply.
fn slope(groups: &[Vec<&Seen>]) -> Option<f64> {
    let mean =
        |g: &[&Seen], f: fn(&Seen) -> f64| g.iter().map(|s| f(s)).sum::<f64>() / g.len() as f64;
    let deviations: Vec<(f64, f64, f64)> = groups
        .iter()
        .flat_map(|g| {
            let (at, ln) = (mean(g, |s| s.at_s), mean(g, |s| s.ln));
            g.iter().map(move |s| (s.at_s - at, s.ln - ln, s.error))
        })
        .collect();
    let squares: f64 = deviations.iter().map(|(t, ..)| t * t).sum();
    if squares <= 0.0 {
        return None;
    }
    let slope = deviations.iter().map(|(t, y, _)| t * y).sum::<f64>() / squares;
    let within: f64 = deviations.iter().map(|(t, _, e)| (t * e).powi(2)).sum();
    let freedom = (deviations.len() - groups.len()).saturating_sub(1);
    let scatter: f64 = deviations
        .iter()
        .map(|(t, y, _)| (y - slope * t).powi(2))
        .sum();
    let between = scatter / freedom.max(1) as f64 * squares;
    let error = within.max(between).sqrt() / squares;
    (slope.abs() > Z * error).then_some(slope)
}
