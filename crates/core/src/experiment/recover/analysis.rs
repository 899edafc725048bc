//! Whether a service is back, from its series of intervals, and whether it serves on steps down
//! what it served on steps up.

use super::report::{HysteresisStep, RecoverPhase, RecoverQueue, RecoveryVerdict};
use super::{RecoverPhases, RecoverSpec};
use crate::trial::attempts::AttemptsInterval;
use crate::trial::report::TrialReport;
use knee_load::measure::{Outcome, SentinelSample};
use knee_load::sentinel::QueueTrend;
use knee_load::spec::{Rate, SentinelSpec};
use knee_load::stats::sample::{mean, variance};
use knee_load::time::Nanos;

/// Share of the requests that has to be served before the trigger.
const CARRIED_SHARE: f64 = 0.98;
/// Standard deviations below the mean goodput of the time before that chance explains.
const GOODPUT_SIGMAS: f64 = 4.0;
/// Least share of that goodput by which an interval may be below it.
const GOODPUT_SHARE: f64 = 0.05;
/// How many times the longest p99 of the time before an interval may have, …
const P99_TIMES: f64 = 2.0;
/// … or how much more, where that was short.
const P99_MORE: Nanos = Nanos::from_millis(5);
/// Least number of intervals at the end that show that the service is back.
const BACK_MIN: usize = 3;
/// Most intervals with slow responses of a service that is back, as a share of all since.
const SLOW_SHARE: f64 = 0.2;
/// Below this share of the goodput of the time before, a service still fails.
const STUCK_SHARE: f64 = 0.9;

/// Phases and sentinels of a trial with a trigger.
#[derive(Clone, Copy, Debug)]
pub(super) struct TriggerPlan {
    pub(super) phases: RecoverPhases,
    pub(super) sentinel: SentinelSpec,
}

/// What a trial shows of recovery.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RecoveryAnalysis {
    /// `None`: the base load was not carried, or an end of the trial is missing.
    pub(super) verdict: Option<RecoveryVerdict>,
    pub(super) is_carried: bool,
    pub(super) recovery: Option<Nanos>,
    /// How long the service was measured after the trigger.
    pub(super) measured_for: Nanos,
    pub(super) base: RecoverPhase,
    pub(super) after: RecoverPhase,
    pub(super) queue: Option<RecoverQueue>,
    pub(super) by_goodput: Option<String>,
    pub(super) goodput_at_least_per_s: f64,
    pub(super) p99_at_most_ns: Option<u64>,
    pub(super) amplification: Option<f64>,
    pub(super) failed_requests: u64,
    /// Share of the requests served before the trigger, in percent.
    pub(super) carried_percent: f64,
}

/// An interval of a trial.
#[derive(Clone, Copy, Debug)]
struct Sample {
    start: Nanos,
    end: Nanos,
    offered: u64,
    attempted: u64,
    good: u64,
    good_per_s: f64,
    p99_ns: Option<u64>,
}

/// Analyses a trial; `None` where it has no requests or no interval before the trigger.
/// `rise`: how many times the base load is offered after the trigger.
pub(super) fn analyse(
    trial: &TrialReport,
    plan: &TriggerPlan,
    rise: f64,
) -> Option<RecoveryAnalysis> {
    let samples = samples(trial)?;
    let TriggerPlan { phases, sentinel } = *plan;
    let trigger_ends = phases.before + phases.trigger;
    let before: Vec<Sample> = samples.iter().filter(|s| s.end <= phases.before).copied().collect();
    let after: Vec<Sample> = samples.iter().filter(|s| s.start >= trigger_ends).copied().collect();
    if before.is_empty() {
        return None;
    }
    let sum = |part: &[Sample], count: fn(&Sample) -> u64| part.iter().map(count).sum::<u64>();
    let offered = sum(&before, |s| s.offered).max(1) as f64;
    let carried = sum(&before, |s| s.good) as f64 / offered;
    let is_carried = carried >= CARRIED_SHARE;
    let bounds = BackBounds::of(&before, rise);
    let back = back_from(&after, &bounds);
    let tail = tail_from(&after, back.unwrap_or(0));
    let (base, ended) = (phase(&before), phase(tail));
    let sentinels = &trial.requests()?.sentinels;
    let trend = QueueTrend::of(sentinels, &sentinel, Nanos(trial.duration_ns));
    let is_served = ended.goodput_per_s >= STUCK_SHARE * rise * base.goodput_per_s;
    let (verdict, why_goodput) = if !is_carried || after.len() < BACK_MIN {
        (None, None)
    } else if back.is_some() {
        (Some(RecoveryVerdict::Recovered), None)
    } else if sum(tail, |s| s.good) == 0 && refuses(trial) {
        (Some(RecoveryVerdict::Crashed), None)
    } else {
        // Why goodput decides where a wait is not the length of a queue.
        let why = match trend {
            _ if is_served_beside_queue(sentinels, plan, &after) => Some(NOT_IN_ORDER),
            QueueTrend::Unseen => Some("its queue was not measured"),
            QueueTrend::OutOfOrder => Some(NOT_IN_ORDER),
            QueueTrend::Calm { .. } => Some("new connections wait in no queue"),
            QueueTrend::Falls(_) | QueueTrend::Stays { .. } | QueueTrend::Unknown { .. } => None,
        };
        let verdict = match (why, trend) {
            (None, QueueTrend::Falls(_)) => Some(RecoveryVerdict::Recovering),
            _ if is_served => Some(RecoveryVerdict::Degraded),
            (None, QueueTrend::Stays { .. }) => Some(RecoveryVerdict::Stuck),
            (None, _) => None,
            (Some(_), _) => verdict_by_goodput(&after, sentinel.from, base.goodput_per_s),
        };
        (verdict, why.filter(|_| !is_served))
    };
    // Back in the first interval that shows it: at once, as far as can be seen.
    let back = back.map(|index| if index == 0 { trigger_ends } else { after[index].start });
    let until = back.unwrap_or(Nanos::MAX);
    // Of all intervals: what failed did so whether or not the generator was late.
    let meanwhile = |i: &&AttemptsInterval| (phases.before.0..until.0).contains(&i.start_ns);
    let failed = trial.requests()?.intervals.iter().filter(meanwhile).map(|i| i.failed);
    let tail_offered = sum(tail, |s| s.offered);
    Some(RecoveryAnalysis {
        verdict,
        is_carried,
        // Without a base load that was carried, bounds of it say nothing.
        recovery: back.filter(|_| verdict.is_some()).map(|back| back - trigger_ends),
        measured_for: Nanos(trial.duration_ns) - trigger_ends,
        base,
        after: ended,
        queue: queue_report(trend).filter(|_| back.is_none() && why_goodput.is_none()),
        by_goodput: why_goodput.map(str::to_owned),
        goodput_at_least_per_s: bounds.goodput_per_s,
        p99_at_most_ns: bounds.p99_ns,
        amplification: (tail_offered > 0)
            .then(|| sum(tail, |s| s.attempted) as f64 / tail_offered as f64),
        failed_requests: failed.sum(),
        carried_percent: 100.0 * carried.min(1.0),
    })
}

const NOT_IN_ORDER: &str = "requests are not served first come, first served";

fn queue_report(trend: QueueTrend) -> Option<RecoverQueue> {
    match trend {
        QueueTrend::Unseen | QueueTrend::OutOfOrder | QueueTrend::Calm { .. } => None,
        QueueTrend::Falls(queue) => Some(RecoverQueue {
            wait_ns: queue.wait.0,
            falls_s_per_s: queue.falls_s_per_s,
            back_in_ns: Some(queue.back_in.0),
        }),
        QueueTrend::Stays { wait } | QueueTrend::Unknown { wait } => (wait > Nanos::ZERO)
            .then(|| RecoverQueue { wait_ns: wait.0, ..RecoverQueue::default() }),
    }
}

/// Least intervals in which users were served while a sentinel waited too long for that, …
const BESIDE_MIN: usize = 3;
/// … with this share of what was offered in each.
const BESIDE_SHARE: f64 = 0.3;

/// Whether users are served while a sentinel waits for longer than all attempts of a user take: a
/// server that serves each connection by itself.
fn is_served_beside_queue(
    sentinels: &[SentinelSample],
    plan: &TriggerPlan,
    after: &[Sample],
) -> bool {
    let TriggerPlan { phases, sentinel } = plan;
    let too_long = Nanos(2 * (sentinel.from - phases.before - phases.trigger).0);
    let waited = sentinels.iter().filter(|s| s.wait() >= too_long);
    let during = waited.filter_map(|s| {
        after.iter().find(|sample| sample.start <= s.began() && s.began() < sample.end)
    });
    let is_served = during.map(|s| s.good as f64 >= BESIDE_SHARE * s.offered as f64);
    let is_served: Vec<bool> = is_served.collect();
    let served = is_served.iter().filter(|served| **served).count();
    served >= BESIDE_MIN && 2 * served >= is_served.len()
}

/// Time without a rise of goodput after which a service is stuck.
const STUCK_FOR: Nanos = Nanos::from_secs(10);

/// Verdict on a service that is not back, from whether its goodput rises between the halves of the
/// time since `from`.
fn verdict_by_goodput(after: &[Sample], from: Nanos, base_per_s: f64) -> Option<RecoveryVerdict> {
    let since: Vec<f64> = after.iter().filter(|s| s.start >= from).map(|s| s.good_per_s).collect();
    let (early, late) = since.split_at(since.len() / 2);
    let seen_for = after.last().map_or(Nanos::ZERO, |last| last.end - from);
    if early.is_empty() {
        return None;
    }
    let error = (variance(early) / early.len() as f64 + variance(late) / late.len() as f64).sqrt();
    let least = (GOODPUT_SIGMAS * error).max(GOODPUT_SHARE * base_per_s);
    if mean(late) - mean(early) > least {
        return Some(RecoveryVerdict::Recovering);
    }
    (seen_for >= STUCK_FOR).then_some(RecoveryVerdict::Stuck)
}

/// The end of the time after the trigger: its last quarter, but nothing before this index.
fn tail_from(after: &[Sample], index: usize) -> &[Sample] {
    &after[index.max(after.len() - after.len().div_ceil(4))..]
}

/// Lateness of a start from which on a stall of the generator has changed what is around it.
const STALLED: Nanos = Nanos::from_millis(50);

/// The whole intervals of a trial that no stall of the generator touched.
fn samples(trial: &TrialReport) -> Option<Vec<Sample>> {
    let requests = trial.requests()?;
    let length = requests.intervals.first()?.end_ns;
    let late = trial.intervals.iter().filter_map(|i| Some((i, i.pacing_error_ns_max?)));
    let late = late.filter(|(_, late_ns)| *late_ns >= STALLED.0);
    let stalls: Vec<[u64; 2]> =
        late.map(|(i, late_ns)| [i.start_ns.saturating_sub(late_ns), i.end_ns]).collect();
    let is_touched = |i: &AttemptsInterval| {
        stalls.iter().any(|[begin, end]| i.start_ns < *end && *begin < i.end_ns)
    };
    let whole = requests.intervals.iter();
    let whole = whole.filter(|i| i.end_ns - i.start_ns >= length && !is_touched(i));
    let samples = whole.map(|i| {
        let times = trial.intervals.iter().find(|times| times.start_ns == i.start_ns);
        Sample {
            start: Nanos(i.start_ns),
            end: Nanos(i.end_ns),
            offered: i.offered,
            attempted: i.attempted,
            good: i.good,
            good_per_s: i.per_s(i.good),
            p99_ns: times.map(|times| times.p99_ns).filter(|&ns| ns > 0),
        }
    });
    Some(samples.collect())
}

/// Bounds within which the service is as it was.
#[derive(Clone, Copy, Debug)]
struct BackBounds {
    goodput_per_s: f64,
    p99_ns: Option<u64>,
}

impl BackBounds {
    fn of(before: &[Sample], rise: f64) -> BackBounds {
        let goodputs: Vec<f64> = before.iter().map(|s| s.good_per_s).collect();
        let middle = mean(&goodputs);
        let below = (GOODPUT_SIGMAS * variance(&goodputs).sqrt()).max(GOODPUT_SHARE * middle);
        let longest = before.iter().filter_map(|s| s.p99_ns).max();
        BackBounds {
            goodput_per_s: rise * (middle - below).max(0.0),
            p99_ns: longest.map(|ns| ((ns as f64 * P99_TIMES) as u64).max(ns + P99_MORE.0)),
        }
    }

    fn is_served(&self, good_per_s: f64) -> bool {
        good_per_s >= self.goodput_per_s
    }

    fn is_quick(&self, p99_ns: Option<u64>) -> bool {
        match (p99_ns, self.p99_ns) {
            (Some(ns), Some(most)) => ns <= most,
            (None, Some(_)) => false,
            (_, None) => true,
        }
    }
}

/// The first interval from which on the service is back to the end. A single interval with too
/// little goodput between others that have enough is chance. So are a few in which responses were
/// slow: a neighbour on the host may have made them so. The figures of the end are within the
/// bounds, too.
fn back_from(after: &[Sample], bounds: &BackBounds) -> Option<usize> {
    let is_served: Vec<bool> = after.iter().map(|s| bounds.is_served(s.good_per_s)).collect();
    let at = |index: usize| is_served.get(index).copied().unwrap_or(false);
    let is_fine = |index: usize| at(index) || (index > 0 && at(index - 1) && at(index + 1));
    let worst = (0..after.len()).rev().find(|&index| !is_fine(index));
    let served_from = worst.map_or(0, |worst| worst + 1);
    let is_quick = |s: &Sample| bounds.is_quick(s.p99_ns);
    let slow = |from: usize| after[from..].iter().filter(|s| !is_quick(s)).count();
    let is_back = |from: &usize| {
        let rest = after.len() - from;
        let begins_well = after[*from..].iter().take(BACK_MIN).all(is_quick);
        let end = after.len() - (rest / 4).max(BACK_MIN);
        let ended = phase(tail_from(after, *from));
        begins_well
            && slow(*from) as f64 <= (SLOW_SHARE * rest as f64).max(1.0)
            && 3 * slow(end) <= after.len() - end
            && bounds.is_served(ended.goodput_per_s)
            && bounds.is_quick(ended.p99_ns)
    };
    let last = after.len().checked_sub(BACK_MIN)?;
    (served_from..=last).find(is_back)
}

fn phase(samples: &[Sample]) -> RecoverPhase {
    let goodputs: Vec<f64> = samples.iter().map(|s| s.good_per_s).collect();
    let mut times: Vec<u64> = samples.iter().filter_map(|s| s.p99_ns).collect();
    times.sort_unstable();
    RecoverPhase {
        goodput_per_s: if goodputs.is_empty() { 0.0 } else { mean(&goodputs) },
        p99_ns: times.get(times.len() / 2).copied(),
    }
}

/// Whether connections are refused rather than requests left unanswered.
fn refuses(trial: &TrialReport) -> bool {
    let count = |outcomes: &[Outcome]| -> u64 {
        outcomes.iter().map(|&outcome| trial.outcomes.count(outcome)).sum()
    };
    let refused = count(&[Outcome::Refused, Outcome::Unreachable, Outcome::ConnectTimeout]);
    refused > 0 && refused >= count(&[Outcome::Timeout, Outcome::ResponseTimeout])
}

/// Steps on the way up.
const STEPS_UP: usize = 8;
/// From this share of the lowest load on it counts as served.
const LOWEST_SERVED_SHARE: f64 = 0.9;
/// The lowest step, as a share of the base load.
const LOWEST_SHARE: f64 = 0.5;

/// The rates, up to the trigger and down again.
pub(super) fn hysteresis_rates(spec: &RecoverSpec) -> Vec<Rate> {
    let (low, high) = (LOWEST_SHARE * spec.rate.per_s(), spec.trigger.rate().per_s());
    let part = |index: usize| low + (high - low) * index as f64 / (STEPS_UP - 1) as f64;
    let up = (0..STEPS_UP).filter_map(|index| Rate::from_f64(part(index)));
    let up: Vec<Rate> = up.collect();
    let down: Vec<Rate> = up.iter().rev().skip(1).copied().collect();
    up.into_iter().chain(down).collect()
}

/// Goodput at each rate on both ways: the mean of the later half of a step.
pub(super) fn measured_steps(spec: &RecoverSpec, trial: &TrialReport) -> Vec<HysteresisStep> {
    let (Some(requests), Some(length)) = (trial.requests(), spec.hysteresis) else {
        return Vec::new();
    };
    let rates = hysteresis_rates(spec);
    let goodput = |step: usize| {
        let begin = length.0 * step as u64;
        let (from, to) = (begin + length.0 / 2, begin + length.0);
        let within = requests.intervals.iter().filter(|i| i.start_ns >= from && i.end_ns <= to);
        let per_s: Vec<f64> = within.map(|i| i.per_s(i.good)).collect();
        (!per_s.is_empty()).then(|| mean(&per_s))
    };
    let up = rates.iter().take(STEPS_UP).enumerate();
    let rows = up.map(|(index, rate)| HysteresisStep {
        offered_per_s: rate.per_s(),
        goodput_up_per_s: goodput(index),
        // The highest step is the begin of the way down.
        goodput_down_per_s: goodput(2 * (STEPS_UP - 1) - index),
    });
    rows.collect()
}

/// Whether the lowest load was served before it rose: else the service had not rested.
pub(super) fn is_first_carried(steps: &[HysteresisStep]) -> bool {
    let first = steps.first().map(|step| (step.offered_per_s, step.goodput_up_per_s));
    !matches!(first, Some((offered, Some(good))) if good < LOWEST_SERVED_SHARE * offered)
}

/// The area between the two ways in percent of the one under the way up; `None` of fewer than two
/// steps.
pub(super) fn area_percent(steps: &[HysteresisStep]) -> Option<f64> {
    let known = steps.iter().filter_map(|step| {
        Some((step.offered_per_s, step.goodput_up_per_s?, step.goodput_down_per_s?))
    });
    let known: Vec<(f64, f64, f64)> = known.collect();
    let mut areas = (0.0, 0.0);
    for pair in known.windows(2) {
        let [(from, up, down), (to, next_up, next_down)] = [pair[0], pair[1]];
        areas.0 += (to - from) * ((up - down) + (next_up - next_down)) / 2.0;
        areas.1 += (to - from) * (up + next_up) / 2.0;
    }
    (areas.1 > 0.0).then(|| 100.0 * areas.0 / areas.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: BackBounds = BackBounds { goodput_per_s: 95.0, p99_ns: Some(10) };

    /// Intervals of a second: `.` as before, `s` slow, `f` with failures, and the second from
    /// which on the service is back.
    fn back(intervals: &str) -> Option<u64> {
        let sample = |(second, kind): (u64, char)| Sample {
            start: Nanos::from_secs(second),
            end: Nanos::from_secs(second + 1),
            offered: 100,
            attempted: 100,
            good: 100,
            good_per_s: if kind == 'f' { 50.0 } else { 100.0 },
            p99_ns: Some(if kind == 's' { 20 } else { 5 }),
        };
        let samples: Vec<Sample> = (0..).zip(intervals.chars()).map(sample).collect();
        back_from(&samples, &BOUNDS).map(|index| index as u64)
    }

    #[test]
    fn back_is_for_good_but_for_chance() {
        for (intervals, expected) in [
            ("..........", Some(0)),
            ("fff.......", Some(3)),
            ("ff..f.....", Some(2)),
            // Twice in a row is no chance.
            ("f...ff....", Some(6)),
            ("fsss......", Some(4)),
            // A neighbour slows the host down for two seconds of a minute.
            ("s....................................ss...............", Some(1)),
            // Slow again and again.
            ("s..s..s..s..s..s..", None),
            ("......ssss", None),
            ("........ff", None),
            ("ffffffffff", None),
            (".......sss", None),
            ("..", None),
        ] {
            assert_eq!(back(intervals), expected, "{intervals}");
        }
    }
}
