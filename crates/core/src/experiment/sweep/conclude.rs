//! What follows from a sweep.

use super::course::Course;
use super::infer::Inference;
use super::{Bound, SweepSpec, VuserPlan, answer, beside, bound, goals, levels, pauses, slices};
use crate::experiment::sweep::findings::{self, AxisKind, ERRORS_RISE};
use crate::experiment::sweep::goals::{Goal, Limit};
use crate::experiment::sweep::knee;
use crate::experiment::sweep::knee::{Knee, Reading, Shape};
use crate::experiment::sweep::models;
use crate::experiment::sweep::report::{GoalBounds, ModelFit, RegimeChange, SweepConclusion};
use crate::experiment::sweep::table::{LevelPoint, points};
use crate::experiment::{Concluded, verdict};
use crate::finding::{Finding, gravest_first};
use crate::measure::error_share;
use crate::trial::findings::{
    ERRORS, FindingContext, OUTAGE, TARGET_QUEUE_GROWS, failure_kind, findings_at_levels,
    pauses_found, with_agents,
};
use crate::trial::report::{TrialReport, Verdict};
use crate::words::value;

/// What follows from a table of users measured elsewhere.
pub fn conclude_table(table: &[LevelPoint]) -> (Vec<Finding>, SweepConclusion) {
    let found = [
        findings::idle_users(table),
        findings::time_not_separated(table),
    ];
    let mut found: Vec<Finding> = found.into_iter().flatten().collect();
    let conclusion = of_users(&Basis::of_table(table), &mut found);
    (once_gravest_first(found), conclusion)
}

/// What follows from the slices of a sweep over users, and its trials as reported: one for each
/// level.
pub(super) fn users(
    spec: &SweepSpec,
    plan: &VuserPlan,
    past: &[TrialReport],
) -> (Concluded<SweepConclusion>, Vec<TrialReport>) {
    let (closed, open) = beside::split(past);
    let course = Course::of(spec, plan, closed);
    let inference = Inference::of(spec, closed, &course.rounds);
    let (table, merged): (Vec<LevelPoint>, Vec<TrialReport>) =
        inference.table(true).into_iter().unzip();
    let asked = FindingContext {
        is_open_loop_known: beside::is_known(spec, past),
        ..FindingContext::default()
    };
    let standing: Vec<&TrialReport> = merged.iter().chain(failing(&inference)).collect();
    let all: Vec<&TrialReport> = merged.iter().chain(closed).collect();
    let mut found = with_agents(&all, findings_at_levels(&standing, asked));
    // Both compare times of one trial, which here may be of several slices.
    found.retain(|f| !["server_stalled", "periodic_pauses"].contains(&f.code.as_str()));
    let basis = Basis {
        table: &table,
        past: Some(&merged),
        rounds: Some(&inference),
        bounds: &spec.bounds,
        pause_s: spec.pause_s(),
        failure: failure_kind(&standing),
    };
    let mut conclusion = of_users(&basis, &mut found);
    in_time(spec, &inference, &mut conclusion, &mut found);
    let closed_per_s = conclusion.max_throughput_per_s;
    let closed_per_s = Some(closed_per_s).filter(|_| !asked.is_open_loop_known);
    let periodic = pauses::periodic(closed);
    found.extend(periodic.map(|p| pauses_found("", &p, closed_per_s)));
    let mut conclusion = with_open_loop(open, past, conclusion, &mut found);
    conclusion.bounds = spec.bounds.iter().map(Bound::asked).collect();
    let concluded = Concluded {
        verdict: verdict(&merged),
        findings: once_gravest_first(found),
        conclusion,
    };
    (
        concluded,
        merged.into_iter().chain(open.iter().cloned()).collect(),
    )
}

/// Slices in which operations failed that are no part of a row: evidence that no later slice makes
/// up for.
fn failing<'a>(inference: &Inference<'a>) -> impl Iterator<Item = &'a TrialReport> {
    let used: Vec<usize> = inference.rows.iter().flat_map(|r| r.used.clone()).collect();
    let past = inference.past.iter().enumerate();
    let is_left_out = move |i: usize| !used.contains(&i);
    past.filter(move |(i, t)| is_left_out(*i) && error_share(&t.outcomes) > FAILED_SHARE)
        .map(|(_, t)| t)
}

/// A share of failures that is evidence.
const FAILED_SHARE: f64 = 0.01;
/// From this spread of the residuals on, in percent, the maximum is not determined …
const SPREAD_PERCENT: f64 = 10.0;
/// … unless its interval is half as narrow as this, as a share.
const STILL_KNOWN: f64 = 0.05;

/// Adds what the slices tell of time.
fn in_time(
    spec: &SweepSpec,
    inference: &Inference,
    conclusion: &mut SweepConclusion,
    found: &mut Vec<Finding>,
) {
    conclusion.slices = slices::slices(inference);
    conclusion.host_speed = slices::speed_by_round(&conclusion.slices);
    conclusion.outages = slices::outages(inference);
    conclusion.regime_change = regime_change(spec, inference, conclusion.max_throughput_per_s);
    conclusion.drift_percent = inference.drift.map(|d| 100.0 * d.value.exp_m1());
    let half_percent = conclusion.max_half_width().map_or(0.0, |h| 100.0 * h);
    let own = findings::outages(&conclusion.outages);
    if own.is_some() {
        found.retain(|f| !f.is(OUTAGE));
    }
    found.extend(own);
    found.extend(
        conclusion
            .regime_change
            .as_ref()
            .map(findings::regime_change),
    );
    found.extend(conclusion.drift_percent.map(findings::drifts_over_time));
    let varied = findings::host_speed_varied(&conclusion.host_speed, half_percent);
    if conclusion.is_undetermined {
        let range = conclusion.varied_per_s.unwrap_or([0.0; 2]);
        let spread_percent = conclusion.spread_percent.unwrap_or(0.0);
        found.push(findings::throughput_varies(
            spread_percent,
            range,
            varied.is_some(),
        ));
    }
    found.extend(varied);
    if let Some(change) = &conclusion.regime_change {
        conclusion.answer = answer::with_change(&conclusion.answer, change);
    }
}

/// A lasting change; one that only exploring slices saw is one for the worse, as a target that
/// gets faster at first warms up.
fn regime_change(spec: &SweepSpec, inference: &Inference, max_per_s: f64) -> Option<RegimeChange> {
    let change = inference.change?;
    if change.is_explored && change.factor > 1.0 {
        return None;
    }
    let factor = if change.is_after {
        1.0 / change.factor
    } else {
        change.factor
    };
    let other = inference.other_max_per_s(spec, &change);
    let other = other.unwrap_or(max_per_s * factor);
    let [before_per_s, after_per_s] = if change.is_after {
        [other, max_per_s]
    } else {
        [max_per_s, other]
    };
    let (before, first) = (&inference.past[change.at - 1], &inference.past[change.at]);
    let heavier = if value(first.level) > value(before.level) {
        first
    } else {
        before
    };
    Some(RegimeChange {
        before_per_s,
        after_per_s,
        at_ns: first.slice().map_or(0, |s| s.begin_ns),
        after_level: heavier.level,
    })
}

/// What follows from the trials of a sweep over rates.
pub(super) fn rates(spec: &SweepSpec, past: &[TrialReport]) -> Concluded<SweepConclusion> {
    let table = points(past);
    let standing = standing(past);
    let all: Vec<&TrialReport> = past.iter().collect();
    let mut found = with_agents(
        &all,
        findings_at_levels(&standing, FindingContext::default()),
    );
    let basis = Basis {
        table: &table,
        past: Some(past),
        rounds: None,
        bounds: &spec.bounds,
        pause_s: None,
        failure: failure_kind(&standing),
    };
    // Offering more than is served is how the limit is found, and no news.
    found.retain(|f| !f.is(TARGET_QUEUE_GROWS));
    let mut conclusion = rate(&basis, past, &mut found);
    conclusion.bounds = spec.bounds.iter().map(Bound::asked).collect();
    Concluded {
        verdict: verdict(past),
        findings: once_gravest_first(found),
        conclusion,
    }
}

/// The conclusion with what the open loop beside it shows.
fn with_open_loop(
    open: &[TrialReport],
    past: &[TrialReport],
    mut conclusion: SweepConclusion,
    found: &mut Vec<Finding>,
) -> SweepConclusion {
    let valid: Vec<&TrialReport> = open
        .iter()
        .filter(|t| t.verdict == Verdict::Valid)
        .collect();
    let mut of_open = findings_at_levels(&valid, FindingContext::default());
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
    /// What the rounds say, where it was measured in rounds.
    rounds: Option<&'a Inference<'a>>,
    bounds: &'a [Bound],
    /// The users' mean pause, where known.
    pause_s: Option<f64>,
    /// The most frequent kind of failure.
    failure: Option<&'static str>,
}

impl<'a> Basis<'a> {
    fn of_table(table: &'a [LevelPoint]) -> Basis<'a> {
        Basis {
            table,
            past: None,
            rounds: None,
            bounds: &[],
            pause_s: None,
            failure: None,
        }
    }

    /// The table as read.
    fn read(&self) -> Option<Reading> {
        match self.rounds {
            Some(rounds) => rounds.reading(self.table),
            None => knee::read(self.table),
        }
    }
}

/// The trials that something is said of: not those superseded by a sound one of the same level,
/// unless the target failed in them.
fn standing(past: &[TrialReport]) -> Vec<&TrialReport> {
    let is_valid = |t: &TrialReport| t.verdict == Verdict::Valid;
    let is_superseded = |t: &TrialReport| {
        let is_better = |o: &TrialReport| o.level == t.level && is_valid(o);
        !is_valid(t) && error_share(&t.outcomes) <= FAILED_SHARE && past.iter().any(is_better)
    };
    past.iter().filter(|t| !is_superseded(t)).collect()
}

fn of_users(basis: &Basis, found: &mut Vec<Finding>) -> SweepConclusion {
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
        ..SweepConclusion::default()
    };
    if let Shape::Bent(knee) = &reading.shape {
        describe(knee, &mut conclusion);
    }
    if let Some(rounds) = basis.rounds {
        by_rounds(rounds, &reading, &mut conclusion);
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
    found.extend(findings::retrograde(&reading));
    found.extend(bound::unreachable(bounds, axis, table));
    conclusion.levels = levels::levels(axis, table, &reading.rows, past, &conclusion);
    if let Some(inference) = basis.rounds {
        let last = inference.rounds.iter().copied().max().unwrap_or(0);
        found.extend(findings::confidence(&reading, last as usize));
        for (level, row) in conclusion.levels.iter_mut().zip(&inference.rows) {
            if row.is_explored {
                level.excluded_because = Some("explored only".to_owned());
            }
        }
    }
    conclusion.varied_per_s = conclusion
        .is_undetermined
        .then(|| varied_of(basis, &reading));
    conclusion.answer = answer::users(&reading, bounds, table, &conclusion);
    conclusion
}

/// The least and the most throughput of slices at the level with the most.
fn varied_of(basis: &Basis, reading: &Reading) -> [f64; 2] {
    let top = reading.top();
    let past = basis.rounds.map_or(&[][..], |rounds| rounds.past);
    let here = past.iter().enumerate().filter(|(i, t)| {
        let is_measured = basis.rounds.is_some_and(|r| r.rounds[*i] > 0);
        is_measured && top.is_some_and(|top| top.level == value(t.level))
    });
    here.map(|(_, t)| t.successes_per_s())
        .fold([f64::INFINITY, 0.0], |[least, most], x| {
            [least.min(x), most.max(x)]
        })
}

/// What rounds add: the interval of the maximum, whether it is determined, and the fewest users
/// that reach it.
fn by_rounds(rounds: &Inference, reading: &Reading, conclusion: &mut SweepConclusion) {
    let most = reading.x_max_per_s;
    let half = reading.x_max_half_width;
    conclusion.spread_percent = rounds.spread.map(|s| 100.0 * s);
    conclusion.max_throughput_ci95_per_s = half.map(|h| [most * (-h).exp(), most * h.exp()]);
    let is_wide = half.is_none_or(|h| h > STILL_KNOWN);
    conclusion.is_undetermined = is_wide
        && conclusion
            .spread_percent
            .is_some_and(|s| s > SPREAD_PERCENT);
    if conclusion.recommended_vusers.is_some() {
        let least = answer::NEARLY_MOST * most * (-half.unwrap_or(0.0)).exp();
        let reaches = |p: &&LevelPoint| {
            let upper = p.throughput_ci95.map_or(p.throughput_per_s, |[_, hi]| hi);
            upper >= least && !knee::fails(p)
        };
        let sound = || reading.rows.iter().filter(|p| !knee::fails(p));
        // Where operations fail at the maximum, the most users without failures.
        let fewest = sound().find(reaches).or_else(|| sound().next_back());
        conclusion.recommended_vusers = fewest.map(|p| p.level as u32);
    }
}

/// The models. A table that shows no bend tells only the asymptote that it lies on, which is the
/// ceiling or the rise of the bounds; all other parameters are free, however well the curves fit.
fn fitted(reading: &Reading, pause_s: Option<f64>) -> Vec<ModelFit> {
    let mut fits = models::fit_all(&reading.rows, pause_s);
    let told = match &reading.shape {
        Shape::Bent(knee) if knee.range.is_none() => return fits,
        Shape::SaturatedBelow { .. } => Some("max_throughput_per_s"),
        Shape::Rising { .. } => Some("response_time_1_ns"),
        Shape::Bent(_) | Shape::Unbracketed { .. } | Shape::Untold { .. } | Shape::OneLevel => None,
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
