//! Findings about a table of levels.

use crate::diagnosis::Diagnosis;
use crate::experiment::sweep::knee::{DISAGREEMENT, Knee, Reading, Shape, fails, interpolate};
use crate::experiment::sweep::table::{Drift, LevelPoint};
use crate::spec::Level;
use crate::words::value;

/// A level past the knee costs at least this multiple of the response time there.
const COSTLY: f64 = 3.0;
/// … for at most this gain in throughput, a share.
const LITTLE_GAIN: f64 = 0.1;
/// From this share on users without an answer are a finding.
const IDLE_MIN: f64 = 0.1;
/// Failures rise where a level has this share more than the lowest has.
const ERRORS_RISE: f64 = 0.01;

/// What a sweep varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisKind {
    /// Users of a closed loop.
    Vusers,
    /// Operations offered per second.
    Rate,
}

impl AxisKind {
    /// The level of this number.
    pub fn level(self, number: f64) -> Level {
        match self {
            AxisKind::Vusers => Level::Vusers(number as u32),
            AxisKind::Rate => Level::RatePerS(number),
        }
    }
}

/// What a table of users says, given its reading and the number of users that is recommended.
pub fn sweep_diagnoses(
    points: &[LevelPoint],
    reading: &Reading,
    recommended: Option<u32>,
) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    found.extend(shape(&reading.rows, reading, points));
    if let Shape::Bent(knee) = &reading.shape {
        if knee.range.is_none() {
            found.extend(past_knee(&reading.rows, knee, recommended));
        }
        found.extend(disagreement(knee, reading));
    }
    found.extend(errors_rise(AxisKind::Vusers, points));
    found
}

fn shape(points: &[LevelPoint], reading: &Reading, all: &[LevelPoint]) -> Option<Diagnosis> {
    let axis = AxisKind::Vusers;
    let (first, last) = (points.first()?.level, points.last()?.level);
    match reading.shape {
        Shape::OneLevel => Some(Diagnosis::TooFewLevels { axis, level: first }),
        Shape::SaturatedBelow { lowest } => Some(Diagnosis::SaturatedBelowRange {
            axis,
            range: [lowest, last],
            max_throughput_per_s: reading.x_max_per_s,
        }),
        Shape::Rising {
            at_least,
            gain_percent,
            before,
        } => Some(Diagnosis::NotSaturated {
            axis,
            last,
            before,
            gain_percent,
            at_least,
            failing: all
                .iter()
                .find(|p| p.level > last && fails(p))
                .map(|p| p.level),
        }),
        Shape::Unbracketed { at_most } => Some(Diagnosis::KneeNotBracketed {
            at_most,
            lowest: first,
        }),
        Shape::Bent(_) => None,
    }
}

/// Levels above the knee whose measured response time is many times the one there, for little more
/// throughput than the level before them.
fn past_knee(points: &[LevelPoint], knee: &Knee, recommended: Option<u32>) -> Option<Diagnosis> {
    let sound: Vec<LevelPoint> = points.iter().filter(|p| !fails(p)).cloned().collect();
    let at_knee = interpolate(&sound, knee.level, |p| Some(p.response_ns()))?;
    let times = |p: &LevelPoint| p.response_ns() / at_knee;
    let costly = |p: &&LevelPoint| p.level > knee.level && times(p) >= COSTLY;
    let past: Vec<&LevelPoint> = sound.iter().filter(costly).collect();
    let before = sound.iter().rfind(|p| !costly(p))?;
    let most = past.iter().map(|p| p.throughput_per_s).fold(0.0, f64::max);
    let gain = most / before.throughput_per_s - 1.0;
    let all = || past.iter().map(|p| times(p));
    (!past.is_empty() && gain <= LITTLE_GAIN).then(|| Diagnosis::PastKnee {
        at: past
            .iter()
            .map(|p| AxisKind::Vusers.level(p.level))
            .collect(),
        knee: knee.level,
        before: before.level,
        gain_percent: 100.0 * gain,
        times: [
            all().fold(f64::INFINITY, f64::min),
            all().fold(0.0, f64::max),
        ],
        recommended,
    })
}

/// Other methods that put the knee elsewhere, or a measured curve that contradicts the asymptotes.
fn disagreement(knee: &Knee, reading: &Reading) -> Option<Diagnosis> {
    let far = |level: f64| (level / knee.level).max(knee.level / level) > DISAGREEMENT;
    let others: Vec<(&'static str, f64)> =
        [("kneedle", knee.kneedle), ("max_power", knee.max_power)]
            .into_iter()
            .filter_map(|(method, level)| Some((method, level?)))
            .filter(|(_, level)| knee.range.is_some() || far(*level))
            .collect();
    (knee.range.is_some() || !others.is_empty()).then(|| Diagnosis::KneeMethodsDisagree {
        asymptotes: knee.level,
        reached_percent: 100.0 * knee.throughput_per_s / reading.x_max_per_s,
        others,
        range: knee.range,
    })
}

/// What changed from trial to trial with time.
pub(crate) fn drifts(drift: &Drift) -> Diagnosis {
    Diagnosis::DriftsBetweenTrials {
        at: drift.level,
        first_per_s: drift.first_per_s,
        last_per_s: drift.last_per_s,
        apart_s: drift.apart_s,
    }
}

/// Levels of a table measured elsewhere at which throughput times response time accounts for fewer
/// users than there were, beyond the pause that the level with the shortest one permits.
pub(crate) fn idle_users(points: &[LevelPoint]) -> Option<Diagnosis> {
    let idle_ns = |p: &LevelPoint| Some((1e9 * p.level / p.throughput_per_s - p.mean_ns?).max(0.0));
    let rows: Vec<(&LevelPoint, f64)> = points
        .iter()
        .filter_map(|p| Some((p, idle_ns(p)?)))
        .collect();
    let pause_ns = rows.iter().map(|r| r.1).reduce(f64::min)?;
    let idle = |&(p, idle_ns): &(&LevelPoint, f64)| (idle_ns - pause_ns) * p.throughput_per_s / 1e9;
    let found: Vec<&(&LevelPoint, f64)> = rows
        .iter()
        .filter(|r| idle(r) >= 1.0 && idle(r) > IDLE_MIN * r.0.level)
        .collect();
    let worst = found
        .iter()
        .max_by(|a, b| (idle(a) / a.0.level).total_cmp(&(idle(b) / b.0.level)))?;
    Some(Diagnosis::IdleUsers {
        at: found
            .iter()
            .map(|r| AxisKind::Vusers.level(r.0.level))
            .collect(),
        users: worst.0.level,
        active: worst.0.level - idle(worst),
    })
}

/// Throughput significantly below the maximum at the last level.
pub(crate) fn retrograde(axis: AxisKind, reading: &Reading) -> Option<Diagnosis> {
    let last = reading.fallen.as_ref()?;
    Some(Diagnosis::Retrograde {
        axis,
        peak: *reading.plateau.last()?,
        max_throughput_per_s: reading.x_max_per_s,
        last: last.level,
        throughput_per_s: last.throughput_per_s,
    })
}

/// Levels with more failures than the lowest one has.
pub(crate) fn errors_rise(axis: AxisKind, points: &[LevelPoint]) -> Option<Diagnosis> {
    let lowest = points.first()?.error_share;
    let risen = |p: &&LevelPoint| p.error_share > lowest + ERRORS_RISE;
    let risen: Vec<&LevelPoint> = points.iter().filter(risen).collect();
    let worst = risen.iter().map(|p| p.error_share).fold(0.0, f64::max);
    let mut at: Vec<Level> = risen.iter().map(|p| axis.level(p.level)).collect();
    at.sort_by(|a, b| value(*a).total_cmp(&value(*b)));
    (!at.is_empty()).then_some(Diagnosis::ErrorsRise {
        at,
        lowest_percent: 100.0 * lowest,
        percent: 100.0 * worst,
        kind: None,
    })
}
