//! From trials to one row per level.

use super::LevelPoint;
use crate::measure::error_share;
use crate::spec::Level;
use crate::trial::report::{TimesReport, TrialReport, Verdict};
use crate::words::value;

/// Trials of one level that differ by more than this share, with intervals that do not meet, were
/// not made of the same server.
const WARM_UP_SHARE: f64 = 0.05;

/// One row per level, ascending. Repeats of a level are pooled; a trial that is not stationary or
/// not valid counts only where no sound one is, and a slower trial made before the server had
/// warmed up gives way to a later, faster one.
pub fn points(trials: &[TrialReport]) -> Vec<LevelPoint> {
    let mut levels: Vec<Level> = trials.iter().map(|t| t.level).collect();
    levels.sort_by(|a, b| value(*a).total_cmp(&value(*b)));
    levels.dedup();
    levels.into_iter().map(|l| pooled(l, trials)).collect()
}

/// Whether a trial's numbers can be taken as they are.
pub fn is_sound(trial: &TrialReport) -> bool {
    trial.stationary && trial.verdict == Verdict::Valid
}

/// Whether `later`, of the same level, shows a server that was still slower during `earlier`: more
/// throughput by over 5 %, beyond both confidence intervals.
pub fn has_warmed_up(earlier: &TrialReport, later: &TrialReport) -> bool {
    let upper = goodput_ci95(earlier).map_or(earlier.successes_per_s(), |[_, hi]| hi);
    let lower = goodput_ci95(later).map_or(later.successes_per_s(), |[lo, _]| lo);
    later.successes_per_s() > earlier.successes_per_s() * (1.0 + WARM_UP_SHARE) && lower > upper
}

/// 95 % confidence interval of a trial's goodput: that of its throughput, in proportion, or where
/// users do sessions that of those that came to their end.
pub fn goodput_ci95(trial: &TrialReport) -> Option<[f64; 2]> {
    if let Some(sessions) = trial.sessions() {
        return sessions.completed_ci95_per_s;
    }
    let of = trial.throughput_per_s.unwrap_or(0.0).max(f64::MIN_POSITIVE);
    let share = trial.successes_per_s() / of;
    let ci95 = trial.throughput_ci95_per_s?;
    Some(ci95.map(|bound| bound * share))
}

fn pooled(level: Level, trials: &[TrialReport]) -> LevelPoint {
    let all: Vec<&TrialReport> = trials.iter().filter(|t| t.level == level).collect();
    let sound: Vec<&TrialReport> = all.iter().copied().filter(|t| is_sound(t)).collect();
    let used = if sound.is_empty() {
        // The last was run for longer than those before it, or is as good as they are.
        all[all.len() - 1..].to_vec()
    } else {
        warm(&sound)
    };
    let latency = representative(&used);
    let throughput_per_s = throughput_per_s(&used);
    LevelPoint {
        level: value(level),
        throughput_per_s,
        throughput_ci95: interval(&used, throughput_per_s),
        mean_ns: latency.mean.map(|ns| ns as f64),
        p90_ns: latency.p90.map(|ns| ns as f64),
        error_share: weighted(&used)
            .map(|(w, t)| w * error_share(&t.outcomes))
            .sum(),
        latency: Some(latency),
        generator_share: 0.0,
        valid: used.iter().all(|t| t.verdict == Verdict::Valid),
        stationary: used.iter().all(|t| t.stationary),
        trials: used.len(),
        in_rounds: false,
    }
}

/// The trials after the last one that a later one shows to have been made of a colder server.
pub(super) fn warm<'a>(sound: &[&'a TrialReport]) -> Vec<&'a TrialReport> {
    let cold = sound
        .iter()
        .enumerate()
        .filter(|(i, t)| sound[i + 1..].iter().any(|later| has_warmed_up(t, later)))
        .map(|(i, _)| i + 1)
        .next_back();
    sound[cold.unwrap_or(0)..].to_vec()
}

/// The figures of the trial whose 90th percentile is the (lower) median.
fn representative(used: &[&TrialReport]) -> TimesReport {
    let mut times: Vec<&TimesReport> = used.iter().map(|t| &t.response_time_ns).collect();
    times.sort_by_key(|t| t.p90);
    times[(times.len() - 1) / 2].clone()
}

/// The mean of the goodputs, weighted by the length of the windows: what failed is no throughput.
fn throughput_per_s(used: &[&TrialReport]) -> f64 {
    weighted(used).map(|(w, t)| w * t.successes_per_s()).sum()
}

/// The 95 % interval of that mean: the standard error is the larger of what the intervals within
/// the trials imply and what the scatter between them shows, so that trials which disagree widen
/// it.
fn interval(used: &[&TrialReport], mean: f64) -> Option<[f64; 2]> {
    if let [trial] = used {
        return goodput_ci95(trial);
    }
    let halves: Option<Vec<f64>> = weighted(used)
        .map(|(w, t)| goodput_ci95(t).map(|[lo, hi]| w * (hi - lo) / 2.0))
        .collect();
    let within = halves?.iter().map(|h| h * h).sum::<f64>().sqrt();
    let scatter: f64 = weighted(used)
        .map(|(w, t)| w * (t.successes_per_s() - mean).powi(2))
        .sum();
    let between = 1.96 * (scatter / (used.len() as f64 - 1.0)).sqrt();
    let half = within.max(between);
    Some([mean - half, mean + half])
}

/// The trials with their shares of the time.
fn weighted<'a>(used: &'a [&TrialReport]) -> impl Iterator<Item = (f64, &'a TrialReport)> {
    let length = |t: &TrialReport| t.duration_ns.max(1) as f64;
    let sum: f64 = used.iter().map(|t| length(t)).sum();
    used.iter().map(move |t| (length(t) / sum, *t))
}
