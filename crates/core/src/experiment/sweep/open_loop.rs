//! One trial in open loop beside a sweep over users. While a target pauses, the users of a closed
//! loop send nothing, so that few of their operations wait. In an open loop all arrivals during a
//! pause wait.

use super::progress::elapsed_s;
use super::{SweepSpec, rates};
use crate::experiment::sweep::report::{OpenLoopComparison, SweepConclusion, SweepLevel};
use crate::finding::{Finding, codes};
use crate::trial::findings::queue_grows;
use crate::trial::report::{TrialReport, Verdict};
use crate::trial::silence::Silence;
use crate::words::{exact, levels, percent, time, value};
use knee_load::spec::{Level, Rate, TrialSpec};
use knee_load::stats::sample::mean;

/// Offered rate as a share of the maximum.
const OFFERED_SHARE: f64 = 0.9;
/// Ratio of the 99th percentiles from which the closed loop hides the pauses.
const HIDES_FACTOR: f64 = 2.0;
/// Share of the budget that all of the sweep takes at the most.
const OVER_BUDGET: f64 = 1.2;
/// An invalid trial is repeated once.
const TRIALS_MAX: usize = 2;
/// Slices with a pause that call for a trial in open loop.
const PAUSES_MIN: usize = 3;
/// Rate from which rates are whole numbers.
const WHOLE_FROM: f64 = 10.0;

/// The trials of users, and those in open loop that follow them.
pub(super) fn split(past: &[TrialReport]) -> (&[TrialReport], &[TrialReport]) {
    let is_open = |t: &TrialReport| matches!(t.level, Level::RatePerS(_));
    past.split_at(past.iter().position(is_open).unwrap_or(past.len()))
}

/// The trial in open loop that these trials call for, if any.
pub(super) fn next(spec: &SweepSpec, past: &[TrialReport]) -> Option<TrialSpec> {
    let (closed, open) = split(past);
    let is_known = open.iter().any(|t| t.verdict == Verdict::Valid);
    let has_room = open.len() < TRIALS_MAX;
    let paused_ns = |t: &TrialReport| -> u64 {
        let silences = t.slice().map_or(&[][..], |slice| &slice.silences);
        let pauses = silences.iter().filter(|s| s.is_of_target() && !s.is_outage());
        pauses.map(Silence::length_ns).sum()
    };
    let has_pauses = closed.iter().filter(|t| paused_ns(t) > 0).count() >= PAUSES_MIN;
    if is_known || !has_room || !has_pauses {
        return None;
    }
    let per_s = match open.first() {
        Some(trial) => value(trial.level),
        None => {
            let most = |is_used: fn(u64) -> bool| {
                let at = |level: Level| {
                    let trials =
                        closed.iter().filter(|t| t.level == level && is_used(paused_ns(t)));
                    mean(&trials.map(|t| t.successes_per_s()).collect::<Vec<f64>>())
                };
                closed.iter().map(|t| at(t.level)).fold(0.0, f64::max)
            };
            let paused_s = closed.iter().map(paused_ns).sum::<u64>() as f64 / 1e9;
            let unpaused = 1.0 - paused_s / elapsed_s(closed).max(f64::MIN_POSITIVE);
            // Slices are too short to meet pauses alike: those without are between them.
            let between = most(|paused_ns| paused_ns == 0) * unpaused.clamp(0.0, 1.0);
            let sustained = if between > 0.0 { between } else { most(|_| true) };
            let per_s = OFFERED_SHARE * sustained;
            if per_s >= WHOLE_FROM { per_s.floor() } else { per_s }
        }
    };
    let rate = Rate::from_f64(per_s)?;
    let trial = rates::beside(spec, rate, past.len());
    let end_s = elapsed_s(past) + (trial.warmup + trial.duration).as_secs_f64();
    (end_s <= OVER_BUDGET * spec.budget.as_secs_f64()).then_some(trial)
}

/// The trial in open loop, if there is a usable one.
pub(super) fn usable(past: &[TrialReport]) -> Option<&TrialReport> {
    let (_, open) = split(past);
    open.iter().find(|t| t.verdict == Verdict::Valid && !queue_grows(t))
}

/// Figures of both loops; `None` if one is unknown.
pub(super) fn figures(
    past: &[TrialReport],
    conclusion: &SweepConclusion,
) -> Option<OpenLoopComparison> {
    let trial = usable(past)?;
    let closed = compared(conclusion)?;
    let rate_per_s = value(trial.level);
    Some(OpenLoopComparison {
        rate_per_s,
        percent_of_maximum: 100.0 * rate_per_s / conclusion.max_throughput_per_s,
        p99_ns: trial.response_time_ns.p99?,
        vusers: value(closed.level) as u32,
        closed_p99_ns: closed.p99_ns?,
    })
}

codes! {
    CLOSED_LOOP_HIDES_PAUSES = "closed_loop_hides_pauses":
        cause "The target pauses. During a pause the users of a closed loop send nothing, so few \
               of their operations wait. In an open loop requests go on arriving and wait.",
        remedy "For response times of users who come on their own use knee sweep --axis rate, or \
                knee run --rate.";
}

/// The finding that the closed loop hides the pauses, if the figures differ enough.
pub(super) fn hides(figures: &OpenLoopComparison) -> Option<Finding> {
    let (open_ns, closed_ns) = (figures.p99_ns as f64, figures.closed_p99_ns as f64);
    (open_ns >= HIDES_FACTOR * closed_ns).then(|| {
        CLOSED_LOOP_HIDES_PAUSES.warning(
            format!(
                "the p99 is {} with {} in a closed loop and {} at {}/s in an open loop, {} of the \
                 maximum. During a pause the users of a closed loop send nothing, while in an open \
                 loop requests go on arriving and wait",
                time(closed_ns),
                levels(&[Level::Vusers(figures.vusers)]),
                time(open_ns),
                exact(figures.rate_per_s),
                percent(figures.percent_of_maximum)
            ),
            [
                ("closed_p99_ns", closed_ns),
                ("open_p99_ns", open_ns),
                ("rate_per_s", figures.rate_per_s),
                ("percent_of_maximum", figures.percent_of_maximum),
            ],
            CLOSED_LOOP_HIDES_PAUSES.step(),
        )
    })
}

/// The row of the closed loop to compare: that of the knee, otherwise that with the most
/// throughput.
fn compared(conclusion: &SweepConclusion) -> Option<&SweepLevel> {
    let used = || conclusion.levels.iter().filter(|l| l.excluded_because.is_none());
    let most = || used().max_by(|a, b| a.throughput_per_s.total_cmp(&b.throughput_per_s));
    used().find(|l| l.is_knee).or_else(most)
}
