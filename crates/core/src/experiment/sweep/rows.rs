//! The rows of a sweep as reported: levels and slices with their marks, and the host's speed.

use super::silences::STALLED;
use crate::experiment::sweep::axis::AxisKind;
use crate::experiment::sweep::knee::{fails, outlasts};
use crate::experiment::sweep::report::{SweepConclusion, SweepLevel, SweepSlice};
use crate::experiment::sweep::table::LevelPoint;
use crate::trial::report::{TrialReport, Verdict};
use crate::trial::silence::Silence;
use crate::words::value;
use knee_load::measure::error_share;
use knee_load::spec::Level;
use knee_load::stats::rounds::median;

/// Share of failures above the usual of the level that is marked.
const MORE_FAIL: f64 = 0.01;
/// Share of the host's processor time that was stolen, and share of the time in which the busiest
/// worker waited for a processor, that disturb a slice.
const STEAL_PERCENT: f64 = 5.0;
const WAITING_PERCENT: f64 = 20.0;
/// The shorter of a time and a share of the slice for which a stall of the generator disturbs it.
const STALL_NS: u64 = 100_000_000;
const STALL_SHARE: f64 = 0.1;
/// Speed of the host below which it disturbs a slice.
const SLOW: f64 = 0.75;
/// Use of the busiest worker from which processor time per operation shows the host's speed. Below
/// it a slower target costs more as well: the generator sleeps and wakes more often.
const BUSY_PERCENT: f64 = 50.0;

/// One reported level for each row of `table`, with figures of the merged trials and the marks of
/// the conclusion. The conclusion rests on the rows `used`.
pub(super) fn levels(
    axis: AxisKind,
    table: &[LevelPoint],
    used: &[LevelPoint],
    merged: &[TrialReport],
    conclusion: &SweepConclusion,
) -> Vec<SweepLevel> {
    let knee = conclusion.knee_vusers.or(conclusion.knee_rate_per_s);
    let nearest = knee.and_then(|knee| {
        let distance = |p: &LevelPoint| (p.level / knee).ln().abs();
        table.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).map(|p| p.level)
    });
    let best = conclusion.best_within_bound.as_ref();
    let best = best.map(|b| b.rate_per_s.unwrap_or(f64::from(b.vusers)));
    let row = |p: &LevelPoint| {
        let level = axis.level(p.level);
        let trial = merged.iter().find(|t| t.level == level);
        let times = p.latency.as_ref().filter(|times| times.count > 0);
        SweepLevel {
            level,
            trials: p.trials as u32,
            throughput_per_s: p.throughput_per_s,
            throughput_ci95_per_s: p.throughput_ci95,
            mean_ns: p.mean_ns.map(|ns| ns.round() as u64),
            p50_ns: times.and_then(|times| times.p50),
            p90_ns: p.p90_ns.map(|ns| ns.round() as u64),
            p95_ns: times.and_then(|times| times.p95),
            p99_ns: times.and_then(|times| times.p99),
            errors: trial.map(|t| t.outcomes.errors()),
            busiest_worker_percent: trial.map(|t| t.generator.busiest_worker_percent),
            cpu_us_per_op: trial.and_then(|t| t.generator.cpu_s_per_million_ops),
            littles_law_deviation_percent: trial
                .and_then(|t| t.http()?.littles_law.as_ref())
                .map(|law| law.deviation_percent),
            between_pauses_per_s: p.between_pauses_per_s,
            excluded_because: excluded_because(p, used),
            is_knee: nearest == Some(p.level),
            is_best_within_bound: best == Some(p.level),
        }
    };
    table.iter().map(row).collect()
}

fn excluded_because(p: &LevelPoint, used: &[LevelPoint]) -> Option<String> {
    let reason = if used.iter().any(|u| u.level == p.level) {
        return None;
    } else if outlasts(p) {
        "no response within its time"
    } else if p.throughput_per_s <= 0.0 {
        "nothing answered"
    } else if fails(p) {
        "failures"
    } else {
        "invalid"
    };
    Some(reason.to_owned())
}

/// Throughput of a slice. If most operations take longer than the slice, it is computed from the
/// mean response time and the pause of the users, unless the target was silent.
pub(super) fn served_per_s(trial: &TrialReport, pause_s: Option<f64>) -> f64 {
    let is_silent = trial.slice().is_some_and(|s| s.silences.iter().any(Silence::is_of_target));
    let shows_all = is_silent || trial.sessions().is_some();
    let times = &trial.response_time_ns;
    let outlasts = !shows_all && times.p50.is_some_and(|ns| ns > trial.duration_ns);
    match times.mean.filter(|_| outlasts) {
        Some(ns) => {
            let cycle_s = ns as f64 / 1e9 + pause_s.unwrap_or(0.0);
            value(trial.level) / cycle_s * trial.outcomes.good_share()
        }
        None => trial.successes_per_s(),
    }
}

/// Trials as slices of these rounds, in the order in which they were measured. Round 0 explored.
pub(super) fn slices(
    past: &[TrialReport],
    rounds: &[u32],
    pause_s: Option<f64>,
) -> Vec<SweepSlice> {
    let row = |(trial, &round): (&TrialReport, &u32)| {
        let times = &trial.response_time_ns;
        let same = past.iter().filter(|t| t.level == trial.level);
        let usual_failures = median(same.map(|t| error_share(&t.outcomes)));
        let marks = [
            (round == 0, EXPLORED),
            (error_share(&trial.outcomes) > usual_failures + MORE_FAIL, "errors"),
            (trial.verdict == Verdict::Invalid, INVALID),
        ];
        let marks = marks.into_iter().filter(|mark| mark.0).map(|mark| mark.1);
        let slice = trial.slice();
        SweepSlice {
            round,
            level: trial.level,
            begin_ns: slice.map(|slice| slice.begin_ns),
            load_begin_ns: slice.map(|slice| slice.load_begin_ns),
            end_ns: slice.map(|slice| slice.end_ns),
            duration_ns: Some(trial.duration_ns),
            throughput_per_s: served_per_s(trial, pause_s),
            mean_ns: times.mean,
            p90_ns: times.p90,
            errors: trial.outcomes.errors(),
            outcomes: (trial.outcomes.errors() > 0).then(|| trial.outcomes.clone()),
            cpu_us_per_op: trial.generator.cpu_us_per_op(),
            host_speed: None,
            weight: 1.0,
            outage_ns: None,
            pauses_ns: Vec::new(),
            marks: marks.chain(disturbances(trial)).map(str::to_owned).collect(),
        }
    };
    let mut slices: Vec<SweepSlice> = past.iter().zip(rounds).map(row).collect();
    let speeds = host_speeds(&slices);
    for ((slice, speed), trial) in slices.iter_mut().zip(speeds).zip(past) {
        slice.host_speed = speed;
        let is_busy = trial.generator.busiest_worker_percent >= BUSY_PERCENT;
        if speed.is_some_and(|speed| speed < SLOW) && is_busy {
            slice.marks.push(SLOW_HOST.to_owned());
        }
    }
    slices
}

/// Marks of slices that explored, that are invalid, and whose host was disturbed.
const EXPLORED: &str = "explored";
pub(super) const INVALID: &str = "invalid";
const STOLEN: &str = "stolen";
const WAITED: &str = "waited";
const SLOW_HOST: &str = "slow_host";

/// Marks of a trial whose generator or host was disturbed. What a slice measured of the target is
/// no such mark.
pub(super) fn disturbances(trial: &TrialReport) -> impl Iterator<Item = &'static str> {
    let generator = &trial.generator;
    let stall_ns = trial.offered.stall_ns_max;
    let long_ns = STALL_NS.min((trial.duration_ns as f64 * STALL_SHARE) as u64);
    let of_generator = trial.slice().is_some_and(|slice| {
        let window = slice.begin_ns..slice.begin_ns + trial.duration_ns;
        slice
            .silences
            .iter()
            .any(|s| s.of_generator && s.begin_ns < window.end && window.start < s.end_ns)
    });
    let marks = [
        (stall_ns >= long_ns && stall_ns > 0 || of_generator, STALLED),
        (generator.steal_percent.unwrap_or(0.0) >= STEAL_PERCENT, STOLEN),
        (generator.busiest_worker_waiting_percent >= WAITING_PERCENT, WAITED),
    ];
    marks.into_iter().filter(|mark| mark.0).map(|mark| mark.1)
}

/// Whether a slice has marks of a disturbed generator or host.
pub(super) fn is_disturbed(slice: &SweepSlice) -> bool {
    [STALLED, STOLEN, WAITED, SLOW_HOST].iter().any(|mark| slice.has_mark(mark))
}

/// Speed of the host in each slice: the median processor time per operation of the level, divided
/// by that of the slice.
fn host_speeds(slices: &[SweepSlice]) -> Vec<Option<f64>> {
    let usual = |level: Level| {
        let at_level = slices.iter().filter(|s| s.round > 0 && s.level == level);
        median(at_level.filter_map(|s| s.cpu_us_per_op))
    };
    let speed = |s: &SweepSlice| Some(usual(s.level) / s.cpu_us_per_op?);
    slices.iter().map(|s| speed(s).filter(|speed| s.round > 0 && *speed > 0.0)).collect()
}

/// Speed of the host by round; 1 is the median.
pub(super) fn speed_by_round(slices: &[SweepSlice]) -> Vec<f64> {
    let last = slices.iter().map(|s| s.round).max().unwrap_or(0);
    let speed = |round: u32| {
        let in_round = slices.iter().filter(|s| s.round == round);
        median(in_round.filter_map(|s| s.host_speed))
    };
    let speeds: Vec<f64> = (1..=last).map(speed).collect();
    let is_known = !speeds.is_empty() && speeds.iter().all(|s| *s > 0.0);
    if is_known { speeds } else { Vec::new() }
}
