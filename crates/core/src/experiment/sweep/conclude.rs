//! What follows from a sweep.

use super::{Axis, Bound, SweepSpec, answer, beside, bound, goals, levels};
use crate::experiment::sweep::findings::{self, AxisKind, ERRORS_RISE};
use crate::experiment::sweep::goals::{Goal, Limit};
use crate::experiment::sweep::knee;
use crate::experiment::sweep::knee::{Knee, Reading, Shape};
use crate::experiment::sweep::models;
use crate::experiment::sweep::report::{GoalBounds, ModelFit, SweepConclusion};
use crate::experiment::sweep::table::{
    Drift, LevelPoint, drift_between, has_warmed_up, is_sound, points,
};
use crate::finding::{Finding, gravest_first};
use crate::measure::error_share;
use crate::spec::Level;
use crate::trial::findings::{
    Asked, ERRORS, TARGET_QUEUE_GROWS, failure_kind, findings_at_levels, with_agents,
};
use crate::trial::report::{TrialReport, Verdict};

/// What follows from a table of users measured elsewhere.
pub fn conclude_table(table: &[LevelPoint]) -> (Vec<Finding>, SweepConclusion) {
    let found = [
        findings::idle_users(table),
        findings::time_not_separated(table),
    ];
    let mut found: Vec<Finding> = found.into_iter().flatten().collect();
    let conclusion = users(&Basis::of_table(table), &mut found);
    (once_gravest_first(found), conclusion)
}

/// What follows from the trials of a sweep.
pub(super) fn conclude(spec: &SweepSpec, past: &[TrialReport]) -> (Vec<Finding>, SweepConclusion) {
    let counted = match spec.axis {
        Axis::Vusers(_) => beside::split(past).0,
        Axis::Rate(_) => past,
    };
    let table = points(counted);
    let standing = standing(counted);
    let asked = Asked {
        is_open_loop_known: beside::is_known(spec, past),
        ..Asked::default()
    };
    let all: Vec<&TrialReport> = past.iter().collect();
    let mut found = with_agents(&all, findings_at_levels(&standing, asked));
    found.extend(warmed_up(counted));
    let basis = Basis {
        table: &table,
        past: Some(counted),
        bounds: &spec.bounds,
        pause_s: spec.pause_s(),
        drift: drift_between(counted),
        failure: failure_kind(&standing),
    };
    found.extend(basis.drift.as_ref().map(findings::drifts));
    let mut conclusion = match spec.axis {
        Axis::Vusers(_) => {
            let conclusion = users(&basis, &mut found);
            with_open_loop(past, conclusion, &mut found)
        }
        Axis::Rate(_) => {
            // Offering more than is served is how the limit is found, and no news.
            found.retain(|f| !f.is(TARGET_QUEUE_GROWS));
            rate(&basis, past, &mut found)
        }
    };
    conclusion.bounds = spec.bounds.iter().map(Bound::asked).collect();
    (once_gravest_first(found), conclusion)
}

/// The conclusion with what the open loop beside it shows.
fn with_open_loop(
    past: &[TrialReport],
    mut conclusion: SweepConclusion,
    found: &mut Vec<Finding>,
) -> SweepConclusion {
    let (_, open) = beside::split(past);
    let valid: Vec<&TrialReport> = open
        .iter()
        .filter(|t| t.verdict == Verdict::Valid)
        .collect();
    let mut of_open = findings_at_levels(&valid, Asked::default());
    of_open.retain(|new| found.iter().all(|known| known.code != new.code));
    found.extend(of_open);
    conclusion.open_loop = beside::figures(past, &conclusion);
    found.extend(conclusion.open_loop.as_ref().and_then(beside::hides));
    conclusion
}

/// What a conclusion rests on.
struct Basis<'a> {
    table: &'a [LevelPoint],
    /// The trials that the table is of; `None` where others measured it.
    past: Option<&'a [TrialReport]>,
    bounds: &'a [Bound],
    /// The users' mean pause, where known.
    pause_s: Option<f64>,
    drift: Option<Drift>,
    /// The most frequent kind of failure.
    failure: Option<&'static str>,
}

impl<'a> Basis<'a> {
    fn of_table(table: &'a [LevelPoint]) -> Basis<'a> {
        Basis {
            table,
            past: None,
            bounds: &[],
            pause_s: None,
            drift: None,
            failure: None,
        }
    }

    /// The table as read, its intervals as wide as the target's drift makes them.
    fn read(&self) -> Option<Reading> {
        let mut reading = knee::read(self.table)?;
        if let Some(drift) = &self.drift {
            reading.widen(drift.change.abs());
        }
        Some(reading)
    }

    /// A fall beyond the maximum that the load makes: one that a later trial of the peak confirms,
    /// where there are trials.
    fn retrograde(&self, axis: AxisKind, reading: &Reading) -> Option<Finding> {
        let last = reading.fallen.as_ref()?;
        let confirms = |past| knee::is_confirmed(past, &reading.plateau, last);
        let is_of_load = self.past.is_none_or(confirms);
        findings::retrograde(axis, reading).filter(|_| is_of_load)
    }
}

/// A share of failures that no other trial of the same level makes up for.
const FAILED_SHARE: f64 = 0.01;

/// The trials that something is said of: not those superseded by a sound one of the same level,
/// unless the target failed in them.
fn standing(past: &[TrialReport]) -> Vec<&TrialReport> {
    let is_superseded = |t: &TrialReport| {
        let is_better = |o: &TrialReport| o.level == t.level && is_sound(o);
        !is_sound(t) && error_share(&t.outcomes) <= FAILED_SHARE && past.iter().any(is_better)
    };
    past.iter().filter(|t| !is_superseded(t)).collect()
}

fn warmed_up(past: &[TrialReport]) -> Option<Finding> {
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
    let at: Vec<Level> = pairs.iter().map(|(t, _)| t.level).collect();
    let (first_per_s, later_per_s) = (first.successes_per_s(), later.successes_per_s());
    Some(findings::warmed_up(&at, first_per_s, later_per_s))
}

fn users(basis: &Basis, found: &mut Vec<Finding>) -> SweepConclusion {
    let (axis, table, bounds) = (AxisKind::Vusers, basis.table, basis.bounds);
    let past = basis.past.unwrap_or_default();
    let Some(reading) = basis.read() else {
        let mut conclusion = SweepConclusion {
            answer: answer::nothing(table),
            ..SweepConclusion::default()
        };
        conclusion.levels = levels::levels(axis, table, &[], past, &conclusion);
        return conclusion;
    };
    let mut conclusion = SweepConclusion {
        max_throughput_per_s: reading.x_max_per_s,
        best_within_bound: bound::best(bounds, axis, table),
        models: fitted(&reading, basis.pause_s),
        answer: answer::users(&reading, bounds, table),
        ..SweepConclusion::default()
    };
    if let Shape::Bent(knee) = &reading.shape {
        describe(knee, &mut conclusion);
    }
    if let Some(best) = &conclusion.best_within_bound {
        conclusion.recommended_vusers = Some(best.vusers);
    }
    found.extend(findings::users_findings(
        table,
        &reading,
        conclusion.recommended_vusers,
        basis.failure,
    ));
    found.extend(basis.retrograde(axis, &reading));
    found.extend(bound::unreachable(bounds, axis, table));
    if basis.past.is_some() {
        found.extend(findings::confidence(&reading, past.len()));
    }
    conclusion.levels = levels::levels(axis, table, &reading.rows, past, &conclusion);
    conclusion
}

/// The models. A table that shows no bend tells only the asymptote that it lies on, which is the
/// ceiling or the rise of the bounds; all other parameters are free, however well the curves fit.
fn fitted(reading: &Reading, pause_s: Option<f64>) -> Vec<ModelFit> {
    let mut fits = models::fit_all(&reading.rows, pause_s);
    let told = match &reading.shape {
        Shape::Bent(knee) if knee.range.is_none() => return fits,
        Shape::SaturatedBelow { .. } => Some("max_throughput_per_s"),
        Shape::Rising { .. } => Some("response_time_1_ns"),
        Shape::Bent(_) | Shape::Unbracketed { .. } | Shape::OneLevel => None,
    };
    for fit in &mut fits {
        let is_told = |name: &str| Some(name) == told && fit.name == models::ASYMPTOTIC_BOUNDS;
        fit.parameters.retain(|name, _| is_told(name));
    }
    fits
}

fn describe(knee: &Knee, conclusion: &mut SweepConclusion) {
    let others = [("kneedle", knee.kneedle), ("max_power", knee.max_power)];
    conclusion.throughput_per_user_per_s = Some(knee.x_1_per_s);
    conclusion.knee_alternatives = others
        .into_iter()
        .filter_map(|(name, level)| Some((name.to_owned(), level?)))
        .collect();
    if knee.range.is_some() {
        conclusion.knee_range = knee.range;
        let asymptotes = ("asymptotes".to_owned(), knee.level);
        conclusion.knee_alternatives.extend([asymptotes]);
        return;
    }
    conclusion.knee_vusers = Some(knee.level);
    conclusion.knee_ci95 = knee.ci95;
    conclusion.knee_method = Some("asymptotes".to_owned());
    conclusion.throughput_at_knee_per_s = Some(knee.throughput_per_s);
    conclusion.p90_at_knee_ns = knee.p90_ns.map(|ns| ns.round() as u64);
    conclusion.recommended_vusers = Some(knee.level.round().max(1.0) as u32);
}

fn rate(basis: &Basis, past: &[TrialReport], found: &mut Vec<Finding>) -> SweepConclusion {
    let (axis, table, bounds) = (AxisKind::Rate, basis.table, basis.bounds);
    let of_goals = Goal::all(bounds);
    let of_goals: Vec<(Goal, Limit)> = of_goals
        .into_iter()
        .map(|goal| (goal, goals::limit(past, goal)))
        .collect();
    let limit = &of_goals[0].1;
    let good = knee::usable(table);
    let most = good.iter().map(|p| p.throughput_per_s).fold(0.0, f64::max);
    match (limit.within, limit.outside) {
        (Some(last), None) => found.push(findings::rate_not_saturated(last)),
        (None, Some(lowest)) => {
            let range = [lowest, table.last().map_or(lowest, |p| p.level)];
            found.push(findings::saturated_below(axis, range, most));
        }
        _ => {}
    }
    let reading = basis.read();
    found.extend(reading.and_then(|r| basis.retrograde(axis, &r)));
    found.extend(findings::errors_rise(axis, table, basis.failure));
    found.extend(bound::unreachable(bounds, axis, table));
    let up_to = |rate: Option<f64>| -> Vec<LevelPoint> {
        let kept = table.iter();
        let kept = kept.filter(|p| rate.is_some_and(|rate| p.level <= rate));
        kept.cloned().collect()
    };
    let kept = up_to(limit.within);
    // What all goals are reached with.
    let reached = of_goals.iter().map(|(_, limit)| limit.within);
    let reached = up_to(
        reached
            .reduce(|a, b| a.zip(b).map(|(a, b)| a.min(b)))
            .flatten(),
    );
    let at_knee = kept.last();
    let mut conclusion = SweepConclusion {
        max_throughput_per_s: most,
        knee_rate_per_s: limit.within,
        knee_range: limit.within.zip(limit.outside).map(|(lo, hi)| [lo, hi]),
        knee_method: limit.within.map(|_| "growing_queue".to_owned()),
        throughput_at_knee_per_s: at_knee.map(|p| p.throughput_per_s),
        p90_at_knee_ns: at_knee.and_then(|p| p.p90_ns).map(|ns| ns as u64),
        best_within_bound: bound::best(bounds, axis, &reached),
        answer: answer::rate(&kept, &of_goals, table),
        goals: of_goals.iter().map(goal_bounds).collect(),
        ..SweepConclusion::default()
    };
    conclusion.levels = levels::levels(axis, table, &good, past, &conclusion);
    conclusion
}

fn goal_bounds((goal, limit): &(Goal, Limit)) -> GoalBounds {
    GoalBounds {
        goal: match goal {
            Goal::NoLoss => "no_loss".to_owned(),
            Goal::Within(bound) => bound.to_string(),
        },
        lower_per_s: limit.within,
        upper_per_s: limit.outside,
        undecided_per_s: limit.unknown.clone(),
    }
}

/// Failures that rise with the load are one finding, not two.
fn once_gravest_first(mut found: Vec<Finding>) -> Vec<Finding> {
    if found.iter().any(|f| f.is(ERRORS_RISE)) {
        found.retain(|f| !f.is(ERRORS));
    }
    gravest_first(&mut found);
    found
}
