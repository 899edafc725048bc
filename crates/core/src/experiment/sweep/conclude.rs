//! What follows from a sweep.

use super::inference::{FAILED_SHARE, Inference};
use super::progress::SweepProgress;
use super::silences::{self, SweepSilences};
use super::{Bound, LevelPlan, SweepSpec, answer, bound, goals, open_loop, rows};
use crate::experiment::sweep::axis::AxisKind;
use crate::experiment::sweep::findings::{self, ERRORS_RISE};
use crate::experiment::sweep::goals::{Goal, GoalLimit};
use crate::experiment::sweep::knee;
use crate::experiment::sweep::knee::{CurveShape, Knee, KneeAnalysis};
use crate::experiment::sweep::models;
use crate::experiment::sweep::report::{
    GoalBounds, ModelFit, RegimeChange, SweepConclusion, SweepSlice,
};
use crate::experiment::sweep::table::{LevelPoint, merged_rows};
use crate::experiment::{Concluded, verdict};
use crate::finding::{Finding, gravest_first};
use crate::trial::findings::{
    ERRORS, FindingContext, OUTAGE, TARGET_QUEUE_GROWS, failure_kind, findings_at_levels,
    with_agents,
};
use crate::trial::report::{TrialReport, Verdict};
use crate::words::value;
use knee_load::measure::{Outcome, error_share};

/// Findings and conclusion of a table of users measured elsewhere, by its rows as slices.
pub fn conclude_table(slices: &[SweepSlice]) -> (Vec<Finding>, SweepConclusion) {
    let inference = Inference::of_slices(slices.to_vec());
    let table = inference.table(&[]);
    let has_rounds = inference.last_round() > 0;
    let rounds = has_rounds.then_some(&inference);
    let mut findings: Vec<Finding> = findings::idle_users(&table).into_iter().collect();
    let input = ConclusionInput { table: &table, rounds, ..ConclusionInput::default() };
    let mut conclusion = conclude_users(&input, &mut findings);
    if has_rounds {
        add_changes_over_time(&inference, &mut conclusion, false, &mut findings);
    } else {
        findings.extend(findings::time_not_separated(table.len()));
    }
    (once_gravest_first(findings), conclusion)
}

/// Findings and conclusion of rows without rounds that have intervals of their own.
#[cfg(test)]
pub(super) fn conclude_points(table: &[LevelPoint]) -> (Vec<Finding>, SweepConclusion) {
    let input = ConclusionInput { table, ..ConclusionInput::default() };
    let mut findings = Vec::new();
    let conclusion = conclude_users(&input, &mut findings);
    (once_gravest_first(findings), conclusion)
}

/// Conclusion of a sweep over users from its slices, and its trials as reported: one for each
/// level.
pub(super) fn users(
    spec: &SweepSpec,
    plan: &LevelPlan<u32>,
    past: &[TrialReport],
) -> (Concluded<SweepConclusion>, Vec<TrialReport>) {
    let (closed, open) = open_loop::split(past);
    let progress = SweepProgress::of(spec, plan, closed);
    let mut inference = Inference::of(spec, closed, &progress.rounds);
    inference.silences.pauses = SweepSilences::of_trials(past).pauses;
    let merged = inference.trials();
    let table = inference.table(&merged);
    let context = FindingContext {
        is_open_loop_known: open_loop::usable(past).is_some(),
        ..FindingContext::default()
    };
    let relevant: Vec<&TrialReport> = merged.iter().chain(failing(&inference)).collect();
    let measured: Vec<&TrialReport> = merged.iter().chain(closed).collect();
    let mut findings = with_agents(&measured, findings_at_levels(&relevant, context));
    findings.retain(|f| !OF_ONE_TRIAL.contains(&f.code.as_str()));
    let input = ConclusionInput {
        table: &table,
        merged: &merged,
        rounds: Some(&inference),
        bounds: &spec.bounds,
        pause_s: spec.pause_s(),
        failure: failure_kind(&relevant),
    };
    let mut conclusion = conclude_users(&input, &mut findings);
    add_changes_over_time(&inference, &mut conclusion, !context.is_open_loop_known, &mut findings);
    let mut conclusion = with_open_loop(open, past, conclusion, &mut findings);
    conclusion.bounds = spec.bounds.iter().map(Bound::reported).collect();
    let concluded =
        Concluded { verdict: verdict(&merged), findings: once_gravest_first(findings), conclusion };
    (concluded, merged.into_iter().chain(open.iter().cloned()).collect())
}

/// Findings that compare times within one trial. Those of a sweep are of its whole timeline.
const OF_ONE_TRIAL: [&str; 3] = ["server_stalled", "pauses", "periodic_pauses"];

/// Slices with failures that are no part of a row. A later slice does not make up for them. The
/// failures of an outage are told with that.
fn failing<'a>(inference: &Inference<'a>) -> impl Iterator<Item = &'a TrialReport> {
    let used: Vec<usize> = inference.rows.iter().flat_map(|r| r.used.clone()).collect();
    let is_hit = |s: &SweepSlice| s.has_mark(silences::OUTAGE);
    let hit: Vec<bool> = inference.slices.iter().map(is_hit).collect();
    let past = inference.past.iter().enumerate();
    past.filter(move |(i, t)| {
        let is_told = used.contains(i) || hit.get(*i).copied().unwrap_or(false);
        !is_told && error_share(&t.outcomes) > FAILED_SHARE
    })
    .map(|(_, t)| t)
}

/// Spread of the residuals, in percent, beyond which the maximum is not determined …
const SPREAD_PERCENT: f64 = 10.0;
/// … unless half its interval is at most this share.
const STILL_KNOWN: f64 = 0.05;

/// Adds what changed with time: outages, pauses, a lasting change, drift, a cycle and the host's
/// speed. `is_hidden`: no open loop shows what users wait in pauses.
fn add_changes_over_time(
    inference: &Inference,
    conclusion: &mut SweepConclusion,
    is_hidden: bool,
    findings: &mut Vec<Finding>,
) {
    conclusion.slices = inference.slices.clone();
    conclusion.host_speed = rows::speed_by_round(&conclusion.slices);
    conclusion.outages = inference.silences.outages.clone();
    conclusion.regime_change = regime_change(inference, conclusion.max_throughput_per_s);
    conclusion.drift_percent = inference.drift.map(|by| 100.0 * by.exp_m1());
    conclusion.cycle = inference.cycle;
    let per_s = [Some(conclusion.max_throughput_per_s), conclusion.max_between_pauses_per_s];
    let per_s = per_s.map(|per_s| per_s.unwrap_or(conclusion.max_throughput_per_s));
    let pauses = conclusion.pauses.as_ref();
    findings.extend(pauses.map(|pauses| findings::pauses(pauses, per_s, is_hidden)));
    let end_ns = inference.slices.last().and_then(|slice| slice.end_ns);
    if let Some(outages) = findings::outages(&conclusion.outages, end_ns) {
        findings.retain(|f| !f.is(OUTAGE));
        findings.push(outages);
    }
    findings.extend(conclusion.regime_change.as_ref().map(findings::regime_change));
    findings.extend(conclusion.drift_percent.map(findings::drifts_over_time));
    findings.extend(conclusion.cycle.as_ref().map(findings::cycles_over_time));
    let varied = findings::host_speed_varied(inference.moved_by_host(&plateau(conclusion)));
    if conclusion.is_undetermined {
        let range = conclusion.varied_per_s.unwrap_or([0.0; 2]);
        let spread_percent = conclusion.spread_percent.unwrap_or(0.0);
        findings.push(findings::throughput_varies(spread_percent, range, varied.is_some()));
    }
    findings.extend(varied);
    if let Some(change) = &conclusion.regime_change {
        conclusion.answer =
            format!("Throughput {}. {}", answer::changed(change), conclusion.answer);
    }
}

/// The lasting change as reported. `None` for a rise that only exploring slices show: the target
/// warmed up.
fn regime_change(inference: &Inference, max_per_s: f64) -> Option<RegimeChange> {
    let change = inference.change?;
    if change.is_explored && change.factor > 1.0 {
        return None;
    }
    let before = inference.max_before_per_s(&change);
    let (before_per_s, after_per_s) = (before.unwrap_or(max_per_s / change.factor), max_per_s);
    let (before, first) = (&inference.slices[change.at - 1], &inference.slices[change.at]);
    let heavier = if value(first.level) > value(before.level) { first } else { before };
    Some(RegimeChange {
        before_per_s,
        after_per_s,
        at_ns: first.begin_ns,
        round: first.round,
        after_level: heavier.level,
    })
}

/// Conclusion of a sweep over rates.
pub(super) fn rates(spec: &SweepSpec, past: &[TrialReport]) -> Concluded<SweepConclusion> {
    let (table, merged): (Vec<LevelPoint>, Vec<TrialReport>) =
        merged_rows(past).into_iter().unzip();
    let relevant = relevant(past);
    let measured: Vec<&TrialReport> = past.iter().collect();
    let mut findings =
        with_agents(&measured, findings_at_levels(&relevant, FindingContext::default()));
    let input = ConclusionInput {
        table: &table,
        merged: &merged,
        rounds: None,
        bounds: &spec.bounds,
        pause_s: None,
        failure: failure_kind(&relevant),
    };
    // The search offers more than the target serves on purpose.
    findings.retain(|f| !f.is(TARGET_QUEUE_GROWS));
    let mut conclusion = conclude_rates(&input, past, &mut findings);
    conclusion.bounds = spec.bounds.iter().map(Bound::reported).collect();
    Concluded { verdict: verdict(past), findings: once_gravest_first(findings), conclusion }
}

/// Adds the trial in open loop to the conclusion.
fn with_open_loop(
    open: &[TrialReport],
    past: &[TrialReport],
    mut conclusion: SweepConclusion,
    findings: &mut Vec<Finding>,
) -> SweepConclusion {
    let valid: Vec<&TrialReport> = open.iter().filter(|t| t.verdict == Verdict::Valid).collect();
    let mut open_findings = findings_at_levels(&valid, FindingContext::default());
    open_findings.retain(|new| {
        let is_known = findings.iter().any(|known| known.code == new.code);
        !is_known && !OF_ONE_TRIAL.contains(&new.code.as_str())
    });
    findings.extend(open_findings);
    conclusion.open_loop = open_loop::figures(past, &conclusion);
    findings.extend(conclusion.open_loop.as_ref().and_then(open_loop::hides));
    conclusion
}

/// Input of a conclusion. A table measured elsewhere sets `table` and `rounds` alone.
#[derive(Default)]
struct ConclusionInput<'a> {
    table: &'a [LevelPoint],
    /// The trial behind each row.
    merged: &'a [TrialReport],
    /// Inference from rounds, for a sweep over users.
    rounds: Option<&'a Inference<'a>>,
    bounds: &'a [Bound],
    /// Mean pause of the users in seconds, where known.
    pause_s: Option<f64>,
    /// The most frequent kind of failure.
    failure: Option<Outcome>,
}

/// The trials that findings are about: not those superseded by a valid one of the same level,
/// unless operations failed in them.
fn relevant(past: &[TrialReport]) -> Vec<&TrialReport> {
    let is_valid = |t: &TrialReport| t.verdict == Verdict::Valid;
    let is_superseded = |t: &TrialReport| {
        let is_better = |o: &TrialReport| o.level == t.level && is_valid(o);
        !is_valid(t) && error_share(&t.outcomes) <= FAILED_SHARE && past.iter().any(is_better)
    };
    past.iter().filter(|t| !is_superseded(t)).collect()
}

fn conclude_users(input: &ConclusionInput, findings: &mut Vec<Finding>) -> SweepConclusion {
    let (axis, table, bounds) = (AxisKind::Vusers, input.table, input.bounds);
    let analysis = match input.rounds {
        Some(rounds) => rounds.analysis(table),
        None => knee::analyse(table),
    };
    let Some(analysis) = analysis else {
        let mut conclusion =
            SweepConclusion { answer: answer::nothing(table), ..SweepConclusion::default() };
        conclusion.pauses = input.rounds.and_then(|rounds| rounds.pauses(0.0));
        conclusion.levels = rows::levels(axis, table, &[], input.merged, &conclusion);
        return conclusion;
    };
    let mut conclusion = SweepConclusion {
        max_throughput_per_s: analysis.x_max_per_s,
        best_within_bound: bound::best(bounds, axis, table),
        models: fitted(&analysis, input.pause_s),
        ..SweepConclusion::default()
    };
    if let CurveShape::Bent(knee) = &analysis.shape {
        add_knee(knee, &mut conclusion);
    }
    recommend(&analysis, &mut conclusion);
    if let Some(rounds) = input.rounds {
        add_intervals(rounds, &analysis, &mut conclusion);
    }
    if let Some(best) = &conclusion.best_within_bound {
        conclusion.recommended_vusers = Some(best.vusers);
    }
    findings.extend(findings::users_findings(
        table,
        &analysis,
        conclusion.recommended_vusers,
        input.failure,
    ));
    findings.extend(findings::retrograde(&analysis, input.rounds.is_some()));
    findings.extend(bound::unreachable(bounds, axis, table));
    conclusion.levels = rows::levels(axis, table, &analysis.rows, input.merged, &conclusion);
    if let Some(inference) = input.rounds {
        findings.extend(findings::confidence(&analysis, inference.last_round() as usize));
        for (level, row) in conclusion.levels.iter_mut().zip(&inference.rows) {
            if row.is_explored {
                level.excluded_because = Some("explored only".to_owned());
            }
        }
    }
    conclusion.varied_per_s = conclusion.is_undetermined.then(|| {
        // Range of the slices' throughput at the levels of the plateau.
        let slices = input.rounds.map_or(&[][..], |rounds| &rounds.slices);
        let counted = slices.iter().filter(|s| s.weight > 0.0 && s.round > 0);
        let plateau = counted.filter(|s| analysis.plateau.contains(&value(s.level)));
        let per_s = plateau.map(|s| s.throughput_per_s).chain([analysis.x_max_per_s]);
        per_s.fold([f64::INFINITY, 0.0], |[least, most], x| [least.min(x), most.max(x)])
    });
    conclusion.answer = answer::users(&analysis, bounds, table, &conclusion);
    conclusion
}

/// Adds the interval of the maximum, whether it is determined, and the fewest users that reach it.
fn add_intervals(rounds: &Inference, analysis: &KneeAnalysis, conclusion: &mut SweepConclusion) {
    let most = analysis.x_max_per_s;
    let half = analysis.x_max_half_width;
    conclusion.spread_percent = rounds.spread.map(|s| 100.0 * s);
    conclusion.max_throughput_ci95_per_s = half.map(|h| [most * (-h).exp(), most * h.exp()]);
    let is_wide = half.is_none_or(|h| h > STILL_KNOWN);
    conclusion.is_undetermined =
        is_wide && conclusion.spread_percent.is_some_and(|s| s > SPREAD_PERCENT);
    let plateau = analysis.plateau_rows();
    let between: Option<Vec<f64>> = plateau.iter().map(|p| p.between_pauses_per_s).collect();
    conclusion.max_between_pauses_per_s =
        between.map(|per_s| knee::weighted_mean(per_s.into_iter(), &knee::weights(&plateau)));
    conclusion.pauses = rounds.pauses(conclusion.max_between_pauses_per_s.unwrap_or(most));
}

/// Recommends the fewest users that were measured with nearly the maximum.
fn recommend(analysis: &KneeAnalysis, conclusion: &mut SweepConclusion) {
    if conclusion.recommended_vusers.is_none() {
        return;
    }
    let reaches = |p: &&LevelPoint| {
        let (nearly, upper) = match p.throughput_ci95 {
            Some([_, upper]) => (answer::NEARLY_MOST, upper),
            None => (answer::NEARLY_MOST_OF_TABLE, p.throughput_per_s),
        };
        let half = analysis.x_max_half_width.unwrap_or(0.0);
        upper >= nearly * analysis.x_max_per_s * (-half).exp()
    };
    let sound = || analysis.rows.iter().filter(|p| !knee::fails(p));
    // Where operations fail at the maximum: the most users without failures.
    let fewest = sound().find(reaches).or_else(|| sound().next_back());
    conclusion.recommended_vusers = fewest.map(|p| p.level as u32);
}

/// The levels with nearly the maximum.
fn plateau(conclusion: &SweepConclusion) -> Vec<f64> {
    let least = answer::NEARLY_MOST * conclusion.max_throughput_per_s;
    let full = conclusion.levels.iter().filter(|l| l.throughput_per_s >= least);
    full.map(|l| value(l.level)).collect()
}

/// The fitted models. A table without a bend determines only the asymptote that it lies on, the
/// ceiling or the rise. Other parameters are removed, however well the curves fit.
fn fitted(analysis: &KneeAnalysis, pause_s: Option<f64>) -> Vec<ModelFit> {
    let mut fits = models::fit_all(&analysis.rows, pause_s);
    let kept = match &analysis.shape {
        CurveShape::Bent(knee) if knee.range.is_none() => return fits,
        CurveShape::SaturatedBelow { .. } => Some("max_throughput_per_s"),
        CurveShape::Rising { .. } => Some("response_time_1_ns"),
        CurveShape::Bent(_) | CurveShape::Unbracketed { .. } | CurveShape::OneLevel => None,
    };
    for fit in &mut fits {
        let kept = kept.filter(|_| fit.name == models::ASYMPTOTIC_BOUNDS);
        fit.parameters.retain(|name, _| Some(name.as_str()) == kept);
    }
    fits
}

fn add_knee(knee: &Knee, conclusion: &mut SweepConclusion) {
    conclusion.throughput_per_user_per_s = Some(knee.x_1_per_s);
    conclusion.knee_alternatives =
        knee.alternatives().map(|(method, level)| (method.to_owned(), level)).collect();
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

fn conclude_rates(
    input: &ConclusionInput,
    past: &[TrialReport],
    findings: &mut Vec<Finding>,
) -> SweepConclusion {
    let (axis, table, bounds) = (AxisKind::Rate, input.table, input.bounds);
    let goal_limits: Vec<(Goal, GoalLimit)> =
        Goal::all(bounds).into_iter().map(|goal| (goal, goals::limit(past, goal))).collect();
    let limit = &goal_limits[0].1;
    let good = knee::usable(table);
    let most = good.iter().map(|p| p.throughput_per_s).fold(0.0, f64::max);
    match (limit.within, limit.outside) {
        (Some(last), None) => findings.push(findings::rate_not_saturated(last)),
        (None, Some(lowest)) => {
            let highest = table.last().map_or(lowest, |p| p.level);
            findings.push(findings::saturated_below(axis, lowest, highest, most));
        }
        _ => {}
    }
    findings.extend(findings::errors_rise(axis, table, input.failure));
    findings.extend(bound::unreachable(bounds, axis, table));
    let up_to = |rate: Option<f64>| -> Vec<LevelPoint> {
        let kept = table.iter();
        let kept = kept.filter(|p| rate.is_some_and(|rate| p.level <= rate));
        kept.cloned().collect()
    };
    let kept = up_to(limit.within);
    // Rows up to the highest rate at which all goals are reached.
    let reached = goal_limits.iter().map(|(_, limit)| limit.within);
    let reached = up_to(reached.reduce(|a, b| a.zip(b).map(|(a, b)| a.min(b))).flatten());
    let at_knee = kept.last();
    let mut conclusion = SweepConclusion {
        max_throughput_per_s: most,
        knee_rate_per_s: limit.within,
        knee_range: limit.within.zip(limit.outside).map(|(lo, hi)| [lo, hi]),
        knee_method: limit.within.map(|_| "growing_queue".to_owned()),
        throughput_at_knee_per_s: at_knee.map(|p| p.throughput_per_s),
        p90_at_knee_ns: at_knee.and_then(|p| p.p90_ns).map(|ns| ns as u64),
        best_within_bound: bound::best(bounds, axis, &reached),
        answer: answer::rate(&kept, &goal_limits, table),
        goals: goal_limits.iter().map(goal_bounds).collect(),
        ..SweepConclusion::default()
    };
    conclusion.levels = rows::levels(axis, table, &good, input.merged, &conclusion);
    conclusion
}

fn goal_bounds((goal, limit): &(Goal, GoalLimit)) -> GoalBounds {
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

/// Sorts the findings. Failures that rise with the load are one finding, not two.
fn once_gravest_first(mut findings: Vec<Finding>) -> Vec<Finding> {
    if findings.iter().any(|f| f.is(ERRORS_RISE)) {
        findings.retain(|f| !f.is(ERRORS));
    }
    gravest_first(&mut findings);
    findings
}
