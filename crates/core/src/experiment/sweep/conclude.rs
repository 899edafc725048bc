//! What follows from a sweep.

use super::{Axis, Bound, SweepSpec, answer, bound, levels, rates};
use crate::analysis::findings::{
    AxisKind, Diagnosis, errors_rise, grouped, retrograde, sweep_diagnoses,
};
use crate::analysis::knee::{self, Knee, Reading, Shape};
use crate::analysis::models;
use crate::analysis::table::{LevelPoint, has_warmed_up, is_sound, points};
use crate::report::{Finding, ModelFit, SweepConclusion, TrialReport};
use std::collections::BTreeMap;

/// Half the width of the confidence intervals that is aimed at, in percent.
const CONFIDENCE_PERCENT: f64 = 2.0;

/// What follows from a table of users measured elsewhere.
pub fn conclude_table(table: &[LevelPoint]) -> (Vec<Finding>, SweepConclusion) {
    let mut diagnoses = Vec::new();
    let mut conclusion = users(&[], table, &mut diagnoses);
    conclusion.levels = levels::levels(AxisKind::Vusers, table, &[], &conclusion);
    (findings(diagnoses), conclusion)
}

/// What follows from the trials of a sweep.
pub fn conclude(spec: &SweepSpec, past: &[TrialReport]) -> (Vec<Finding>, SweepConclusion) {
    let table = points(past);
    let mut diagnoses = grouped(&standing(past));
    diagnoses.extend(warmed_up(past));
    let (axis, mut conclusion) = match spec.axis {
        Axis::Vusers(_) => {
            diagnoses.extend(confidence(&table, past.len()));
            (
                AxisKind::Vusers,
                users(&spec.bounds, &table, &mut diagnoses),
            )
        }
        Axis::Rate(_) => {
            // Offering more than is served is how the limit is found, and no news.
            diagnoses.retain(|d| !matches!(d, Diagnosis::TargetQueueGrows { .. }));
            let conclusion = rate(&spec.bounds, &table, past, &mut diagnoses);
            (AxisKind::Rate, conclusion)
        }
    };
    conclusion.levels = levels::levels(axis, &table, past, &conclusion);
    conclusion.bounds = spec.bounds.iter().map(Bound::asked).collect();
    (findings(diagnoses), conclusion)
}

/// The trials that the numbers rest on: not those superseded by a sound one of the same level.
fn standing(past: &[TrialReport]) -> Vec<&TrialReport> {
    past.iter()
        .filter(|t| is_sound(t) || !past.iter().any(|o| o.level == t.level && is_sound(o)))
        .collect()
}

fn warmed_up(past: &[TrialReport]) -> Option<Diagnosis> {
    let pairs: Vec<(&TrialReport, &TrialReport)> = past
        .iter()
        .enumerate()
        .filter(|(_, t)| is_sound(t))
        .filter_map(|(i, t)| {
            let warm = |o: &&TrialReport| o.level == t.level && is_sound(o) && has_warmed_up(t, o);
            Some((t, past[i + 1..].iter().rfind(warm)?))
        })
        .collect();
    let (first, later) = pairs.first()?;
    Some(Diagnosis::WarmedUp {
        at: pairs.iter().map(|(t, _)| t.level).collect(),
        first_per_s: first.responses_per_s(),
        later_per_s: later.responses_per_s(),
    })
}

fn users(
    bounds: &[Bound],
    table: &[LevelPoint],
    diagnoses: &mut Vec<Diagnosis>,
) -> SweepConclusion {
    let Some(reading) = knee::read(table) else {
        return SweepConclusion {
            answer: answer::nothing(table),
            ..SweepConclusion::default()
        };
    };
    diagnoses.extend(sweep_diagnoses(table, &reading));
    diagnoses.extend(bound::unreachable(bounds, AxisKind::Vusers, table));
    let good = knee::usable(table);
    let best = bound::best(bounds, AxisKind::Vusers, table);
    let mut conclusion = SweepConclusion {
        max_throughput_per_s: reading.x_max_per_s,
        best_within_bound: best,
        models: fitted(&good, &reading),
        answer: answer::users(&good, &reading, bounds, table),
        ..SweepConclusion::default()
    };
    if let Shape::Bent(knee) = &reading.shape {
        describe(knee, &mut conclusion);
    }
    if let Some(best) = &conclusion.best_within_bound {
        conclusion.recommended_vusers = Some(best.vusers);
    }
    conclusion
}

/// The models. A table that shows no bend tells only the asymptote that it lies on, which is the
/// ceiling or the rise of the bounds; all other parameters are free, however well the curves fit.
fn fitted(good: &[LevelPoint], reading: &Reading) -> Vec<ModelFit> {
    let told = match reading.shape {
        Shape::Bent(_) => return models::fit_all(good),
        Shape::SaturatedBelow { .. } => Some("max_throughput_per_s"),
        Shape::Rising { .. } => Some("response_time_1_ns"),
        Shape::Unbracketed { .. } | Shape::OneLevel => None,
    };
    let mut fits = models::fit_all(good);
    for fit in &mut fits {
        let is_told = |name: &str| Some(name) == told && fit.name == models::ASYMPTOTIC_BOUNDS;
        fit.parameters.retain(|name, _| is_told(name));
    }
    fits
}

fn describe(knee: &Knee, conclusion: &mut SweepConclusion) {
    let others = [("kneedle", knee.kneedle), ("max_power", knee.max_power)];
    let alternatives: BTreeMap<String, f64> = others
        .into_iter()
        .filter_map(|(name, level)| Some((name.to_owned(), level?)))
        .collect();
    conclusion.knee_vusers = Some(knee.level);
    conclusion.throughput_per_user_per_s = Some(knee.x_1_per_s);
    conclusion.knee_ci95 = knee.ci95;
    conclusion.knee_method = Some("asymptotes".to_owned());
    conclusion.knee_alternatives = alternatives;
    conclusion.throughput_at_knee_per_s = Some(knee.throughput_per_s);
    conclusion.p90_at_knee_ns = knee.p90_ns.map(|ns| ns.round() as u64);
    conclusion.recommended_vusers = Some(knee.level.round().max(1.0) as u32);
}

fn rate(
    bounds: &[Bound],
    table: &[LevelPoint],
    past: &[TrialReport],
    diagnoses: &mut Vec<Diagnosis>,
) -> SweepConclusion {
    let axis = AxisKind::Rate;
    let served = rates::served_bracket(past);
    let good = knee::usable(table);
    let most = good.iter().map(|p| p.throughput_per_s).fold(0.0, f64::max);
    match (served.within, served.outside) {
        (Some(last), None) => diagnoses.push(Diagnosis::NotSaturated {
            axis,
            last,
            before: table
                .iter()
                .rfind(|p| p.level < last)
                .map_or(last, |p| p.level),
            gain_percent: 0.0,
            at_least: None,
            failing: None,
        }),
        (None, Some(lowest)) => diagnoses.push(Diagnosis::SaturatedBelowRange {
            axis,
            range: [lowest, table.last().map_or(lowest, |p| p.level)],
            max_throughput_per_s: most,
        }),
        _ => {}
    }
    let reading = knee::read(table);
    diagnoses.extend(reading.as_ref().and_then(|r| retrograde(axis, r)));
    diagnoses.extend(errors_rise(axis, table));
    diagnoses.extend(bound::unreachable(bounds, axis, table));
    let kept: Vec<LevelPoint> = table
        .iter()
        .filter(|p| served.within.is_some_and(|limit| p.level <= limit))
        .cloned()
        .collect();
    let at_knee = kept.last();
    SweepConclusion {
        max_throughput_per_s: most,
        knee_rate_per_s: served.within,
        knee_method: served.within.map(|_| "growing_queue".to_owned()),
        throughput_at_knee_per_s: at_knee.map(|p| p.throughput_per_s),
        p90_at_knee_ns: at_knee.and_then(|p| p.p90_ns).map(|ns| ns as u64),
        best_within_bound: bound::best(bounds, axis, &kept),
        answer: answer::rate(&kept, served, most, bounds),
        ..SweepConclusion::default()
    }
}

/// Whether the intervals that the answer rests on are wide, or missing.
fn confidence(table: &[LevelPoint], trials: usize) -> Option<Diagnosis> {
    let Reading {
        x_max_half_width,
        shape: Shape::Bent(knee),
        ..
    } = knee::read(table)?
    else {
        return None;
    };
    let percent = |half: Option<f64>| half.map(|h| 100.0 * h);
    let (throughput_percent, knee_percent) = (percent(x_max_half_width), percent(knee.half_width));
    let narrow = |p: Option<f64>| p.is_some_and(|p| p <= CONFIDENCE_PERCENT);
    let reached = narrow(throughput_percent) && narrow(knee_percent);
    (!reached).then_some(Diagnosis::ConfidenceNotReached {
        throughput_percent,
        knee_percent,
        trials,
    })
}

fn findings(mut diagnoses: Vec<Diagnosis>) -> Vec<Finding> {
    merge_failures(&mut diagnoses);
    let mut findings: Vec<Finding> = diagnoses.iter().map(Diagnosis::finding).collect();
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    findings
}

/// Failures that rise with the load are one finding, which takes over the kind from the other.
fn merge_failures(diagnoses: &mut Vec<Diagnosis>) {
    let most_frequent = diagnoses.iter().find_map(|d| match d {
        Diagnosis::Errors { kind, .. } => Some(*kind),
        _ => None,
    });
    let mut rise = false;
    for diagnosis in diagnoses.iter_mut() {
        if let Diagnosis::ErrorsRise { kind, .. } = diagnosis {
            (*kind, rise) = (most_frequent, true);
        }
    }
    diagnoses.retain(|d| !(rise && matches!(d, Diagnosis::Errors { .. })));
}
