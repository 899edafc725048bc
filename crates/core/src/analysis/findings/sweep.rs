//! Findings about a table of levels.

use super::Diagnosis;
use crate::analysis::knee::{ERROR_SHARE_MAX, Knee, Reading, Shape, usable};
use crate::analysis::table::LevelPoint;
use crate::analysis::words::value;
use crate::spec::Level;

/// A level past the knee costs at least this multiple of the response time there.
const COSTLY: f64 = 3.0;
/// Methods that differ by more than this factor disagree.
const DISAGREEMENT: f64 = 2.0;
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

/// What a table of users says, given its reading.
pub fn sweep_diagnoses(points: &[LevelPoint], reading: &Reading) -> Vec<Diagnosis> {
    let good = usable(points);
    let mut found = Vec::new();
    found.extend(shape(&good, reading, points));
    if let Shape::Bent(knee) = &reading.shape {
        found.extend(past_knee(&good, knee));
        found.extend(disagreements(knee));
    }
    found.extend(retrograde(AxisKind::Vusers, reading));
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
                .find(|p| p.level > last && p.error_share > ERROR_SHARE_MAX)
                .map(|p| p.level),
        }),
        Shape::Unbracketed { at_most } => Some(Diagnosis::KneeNotBracketed {
            at_most,
            lowest: first,
        }),
        Shape::Bent(_) => None,
    }
}

/// Levels above the knee whose response time is many times the one there.
fn past_knee(points: &[LevelPoint], knee: &Knee) -> Option<Diagnosis> {
    // By Little's law, as at any level: the cycle of one user is N/X.
    let at_knee = knee.level / knee.throughput_per_s;
    let times = |p: &LevelPoint| p.level / p.throughput_per_s / at_knee;
    let costly = |p: &&LevelPoint| p.level > knee.level && times(p) >= COSTLY;
    let past: Vec<&LevelPoint> = points.iter().filter(costly).collect();
    let before = points.iter().rfind(|p| !costly(p))?;
    let most = past.iter().map(|p| p.throughput_per_s).fold(0.0, f64::max);
    let all = || past.iter().map(|p| times(p));
    (!past.is_empty()).then(|| Diagnosis::PastKnee {
        at: past
            .iter()
            .map(|p| AxisKind::Vusers.level(p.level))
            .collect(),
        knee: knee.level,
        before: before.level,
        gain_percent: 100.0 * (most / before.throughput_per_s - 1.0),
        times: [
            all().fold(f64::INFINITY, f64::min),
            all().fold(0.0, f64::max),
        ],
    })
}

fn disagreements(knee: &Knee) -> Vec<Diagnosis> {
    [("kneedle", knee.kneedle), ("max_power", knee.max_power)]
        .into_iter()
        .filter_map(|(method, level)| Some((method, level?)))
        .filter(|(_, other)| {
            let factor = (other / knee.level).max(knee.level / other);
            factor > DISAGREEMENT
        })
        .map(|(method, other)| Diagnosis::KneeMethodsDisagree {
            asymptotes: knee.level,
            method,
            other,
        })
        .collect()
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
