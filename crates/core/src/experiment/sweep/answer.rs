//! The conclusion of a sweep in a few sentences.

use super::Bound;
use super::bound;
use super::goals::{Goal, GoalLimit};
use crate::experiment::sweep::knee::{CurveShape, Knee, KneeAnalysis, fails, outlasts};
use crate::experiment::sweep::report::{BestWithinBound, RegimeChange, SweepConclusion};
use crate::experiment::sweep::table::LevelPoint;
use crate::words::{
    between_users, estimate, exact, levels, list, number, percent, ratio, time, users as n_users,
};

/// Ratio of response times at equal throughput that is worth a sentence.
const LONGER_MIN: f64 = 2.0;
/// Share within which throughputs equal the maximum.
const SAME_SHARE: f64 = 0.03;

/// Answer without a conclusion.
pub(super) fn nothing(table: &[LevelPoint]) -> String {
    let times = table.iter().filter(|p| outlasts(p)).filter_map(|p| p.mean_ns);
    if table.is_empty() {
        "Nothing was measured.".to_owned()
    } else if let Some(mean_ns) = times.reduce(f64::max) {
        format!(
            "No level is known: no response came within the time of a measurement. An operation \
             takes {}; measure longer: --duration {}s.",
            time(mean_ns),
            (TIMES_LONGER * mean_ns / 1e9).ceil()
        )
    } else {
        "No level was served: at every one of them all operations failed.".to_owned()
    }
}

/// Operations of a user that make a measurement.
const TIMES_LONGER: f64 = 10.0;

/// Share of the maximum that a level's interval has to reach to be as good.
pub(super) const NEARLY_MOST: f64 = 0.98;
/// Share of the maximum that the throughput of a level without an interval has to reach.
pub(super) const NEARLY_MOST_OF_TABLE: f64 = 0.95;

/// A lasting change, in a sentence without its begin: `changed for good …`, `improved for good …`.
pub(super) fn changed(change: &RegimeChange) -> String {
    let way = if change.after_per_s > change.before_per_s { "improved" } else { "changed" };
    format!(
        "{way} for good {}, during or after {}: {}/s before, {}/s after",
        time_or_round(change.at_ns, change.round),
        levels(&[change.after_level]),
        number(change.before_per_s),
        number(change.after_per_s)
    )
}

/// A time of the sweep; its round if a table does not state the time.
pub(super) fn time_or_round(at_ns: Option<u64>, round: u32) -> String {
    match at_ns {
        Some(ns) => format!("{} into the sweep", time(ns as f64)),
        None => format!("in round {round}"),
    }
}

/// An interval whose ends differ by this factor is left out: that of two rounds may be any width.
const USELESS_FACTOR: f64 = 10.0;

/// Answer of a sweep over users.
pub(super) fn users(
    analysis: &KneeAnalysis,
    bounds: &[Bound],
    table: &[LevelPoint],
    conclusion: &SweepConclusion,
) -> String {
    let ci95 = conclusion.max_throughput_ci95_per_s.filter(|[lo, hi]| *hi < USELESS_FACTOR * lo);
    // One pause alone is not worth a word beside the throughput.
    let has_pauses = conclusion.pauses.as_ref().is_some_and(|pauses| pauses.count > 1);
    let between = conclusion
        .max_between_pauses_per_s
        .filter(|_| has_pauses)
        .map_or(String::new(), |x| format!("; {}/s between its pauses", number(x)));
    let most = match ci95 {
        Some([lo, hi]) => {
            let most = number(analysis.x_max_per_s);
            format!("{most}/s ({}–{}{between})", number(lo), number(hi))
        }
        None if between.is_empty() => format!("{}/s", number(analysis.x_max_per_s)),
        None => format!("{}/s ({})", number(analysis.x_max_per_s), &between[2..]),
    };
    let mut sentences = Vec::new();
    if let Some([least, most]) = conclusion.varied_per_s {
        sentences.push(format!(
            "Throughput at the same level varied between {} and {}/s: the maximum is not \
             determined within 5 %.",
            number(least),
            number(most)
        ));
    }
    sentences.push(match &analysis.shape {
        CurveShape::Bent(knee) => bent(&most, knee, &analysis.rows),
        CurveShape::SaturatedBelow { lowest } if analysis.fallen.is_some() => {
            format!("About {most}; the knee is below {}.", n_users(*lowest))
        }
        CurveShape::SaturatedBelow { lowest } => {
            format!("Every level serves the same {most}: the knee is below {}.", n_users(*lowest))
        }
        CurveShape::Rising { at_least, .. } => {
            let beyond = at_least.map_or(String::new(), |n| {
                format!("; the knee is at {} or beyond", n_users(n.round()))
            });
            format!("Throughput still rises at the last level, {most}{beyond}.")
        }
        CurveShape::Unbracketed { at_most } => format!(
            "About {most}; the knee is at {} or below, under the levels measured.",
            n_users(at_most.round())
        ),
        CurveShape::OneLevel => one_level(&most, analysis, table),
    });
    sentences.extend(falls(analysis));
    sentences.extend(failing(table));
    sentences.extend(same_for_less(analysis));
    sentences.extend(within_bound(bounds, conclusion.best_within_bound.as_ref(), table));
    sentences.join(" ")
}

/// A single level counts; at others operations fail or nothing is served.
fn one_level(most: &str, analysis: &KneeAnalysis, table: &[LevelPoint]) -> String {
    let level = analysis.rows.first().map_or(0.0, |p| p.level);
    let users = n_users(level);
    if table.iter().any(|p| p.level != level) {
        format!("{most} at {users}, the one level that is served whole; that shows no knee.")
    } else {
        format!("{most} at the one level measured, {users}; that shows no knee.")
    }
}

/// The fall of throughput beyond its maximum.
fn falls(analysis: &KneeAnalysis) -> Option<String> {
    let fall = analysis.fallen.as_ref()?;
    let [before, after] = fall.per_s;
    Some(if fall.is_step {
        format!(
            "Throughput falls by {} at {} and more, to {}/s.",
            percent(100.0 * (1.0 - after / before)),
            n_users(fall.from),
            number(after)
        )
    } else {
        format!(
            "Throughput peaks at {} and falls to {}/s at {}.",
            n_users(fall.peak),
            number(fall.last.throughput_per_s),
            exact(fall.last.level)
        )
    })
}

/// The first level from which on all levels have failures. Few failures, and those at levels in
/// between, are left to findings.
fn failing(rows: &[LevelPoint]) -> Option<String> {
    let clean = rows.iter().rposition(|p| p.error_share <= 0.0);
    let failing = &rows[clean.map_or(0, |i| i + 1)..];
    let first = failing.iter().find(|_| failing.iter().any(fails))?;
    let worst = failing
        .iter()
        .max_by(|a, b| a.error_share.total_cmp(&b.error_share))
        .filter(|worst| worst.error_share > MORE * first.error_share);
    let more = worst.map_or(String::new(), |worst| {
        let share = percent(100.0 * worst.error_share);
        format!(", {share} at {}", exact(worst.level))
    });
    Some(format!(
        "From {} on operations fail ({} of them there{more}); only those that succeed count.",
        n_users(first.level),
        percent(100.0 * first.error_share)
    ))
}

/// Factor over the first level's share of failures from which the worst one is stated too.
const MORE: f64 = 1.5;

/// Answer of a sweep over rates.
pub(super) fn rate(
    kept: &[LevelPoint],
    goal_limits: &[(Goal, GoalLimit)],
    table: &[LevelPoint],
) -> String {
    let limit = &goal_limits[0].1;
    let most = table.iter().filter(|p| p.valid);
    let most = most.map(|p| p.throughput_per_s).fold(0.0, f64::max);
    let at = |level: f64| table.iter().find(|p| p.level == level);
    let because = |level: f64| match at(level).filter(|p| fails(p)) {
        Some(p) => format!(" ({} of the operations fail)", percent(100.0 * p.error_share)),
        None => String::new(),
    };
    let capacity = limit
        .capacity_per_s
        .map_or(String::new(), |c| format!(" Offered more, the target serves {}/s.", number(c)));
    let p90 = at_p90(kept.last().and_then(|p| p.p90_ns));
    let mut sentences = vec![match (limit.within, limit.outside) {
        (Some(within), Some(above)) => format!(
            "Up to {}/s are served without a growing queue{p90}; {}/s are not{}.{capacity}",
            exact(within),
            exact(above),
            because(above)
        ),
        (Some(within), None) => format!(
            "Every rate measured is served, up to {}/s{p90}; the limit lies beyond it.",
            exact(within)
        ),
        (None, Some(lowest)) => format!(
            "No rate is served without a growing queue, not even {}/s{}; the target serves at \
             most {}/s.",
            exact(lowest),
            because(lowest),
            number(most)
        ),
        (None, None) if table.is_empty() => "Nothing was measured.".to_owned(),
        (None, None) => format!(
            "No rate could be measured: no trial at {} was decided, the generator or the host \
             distorted each of them.",
            rates(&limit.unknown)
        ),
    }];
    if limit.within.is_some() && !limit.unknown.is_empty() {
        sentences.push(format!("Whether {} can be served was not decided.", rates(&limit.unknown)));
    }
    sentences.extend(goal_limits.iter().filter_map(|(goal, limit)| match goal {
        Goal::NoLoss => None,
        Goal::Within(bound) => Some(within(&bound.to_string(), limit, table)),
    }));
    sentences.join(" ")
}

/// `100/s, 400/s and 1,600/s`
fn rates(per_s: &[f64]) -> String {
    list(&per_s.iter().map(|r| format!("{}/s", exact(*r))).collect::<Vec<String>>())
}

/// The rate up to which a bound is kept.
fn within(text: &str, limit: &GoalLimit, table: &[LevelPoint]) -> String {
    let p90 = |rate: f64| table.iter().find(|p| p.level == rate).and_then(|p| p.p90_ns);
    match (limit.within, limit.outside) {
        (Some(kept), Some(broken)) => format!(
            "{text} is kept up to {}/s{} and broken at {}/s.",
            exact(kept),
            at_p90(p90(kept)),
            exact(broken)
        ),
        (Some(kept), None) => format!(
            "{text} is kept up to {}/s{}, the highest rate decided.",
            exact(kept),
            at_p90(p90(kept))
        ),
        (None, Some(broken)) => {
            format!("No rate keeps {text}: it is broken at {}/s.", exact(broken))
        }
        (None, None) => format!("Whether any rate keeps {text} was not decided."),
    }
}

/// Half the width of the knee's interval, as a logarithm, from which its rounds hide the bend: a
/// factor of two.
const ROUNDS_DIFFER: f64 = std::f64::consts::LN_2;

fn bent(most: &str, knee: &Knee, rows: &[LevelPoint]) -> String {
    if let Some([lo, hi]) = knee.range {
        let differ = knee.half_width.is_some_and(|half| half > ROUNDS_DIFFER);
        let why =
            if differ { "the rounds differ too much" } else { "throughput bends too gradually" };
        return format!(
            "About {most}; the knee is {}: {why} for a single number.",
            between_users(lo, hi)
        );
    }
    let range = knee
        .ci95
        .map_or(String::new(), |[lo, hi]| format!(" ({} to {})", estimate(lo), estimate(hi)));
    let per_s = |level: f64| {
        let row = rows.iter().find(|p| p.level == level);
        row.map_or(String::new(), |p| format!("{}/s", number(p.throughput_per_s)))
    };
    let [below, above] = knee.around;
    if below < above {
        let [at_below, at_above] = [per_s(below), per_s(above)];
        return format!(
            "About {most}; the knee is at {}{range}, between the levels {} and {}, which serve \
             {at_below} and {at_above}.",
            n_users(knee.level),
            exact(below),
            exact(above)
        );
    }
    let is_level = exact(below) == estimate(knee.level);
    let place = if is_level { "there".to_owned() } else { format!("at {}", n_users(below)) };
    format!(
        "About {most}; the knee is at {}{range}, with {}/s {place}{}.",
        n_users(knee.level),
        number(knee.throughput_per_s),
        at_p90(knee.p90_ns)
    )
}

fn at_p90(ns: Option<f64>) -> String {
    ns.map_or(String::new(), |ns| format!(" at a p90 of {}", time(ns)))
}

/// The same throughput with fewer users, which answers sooner.
fn same_for_less(analysis: &KneeAnalysis) -> Option<String> {
    let is_same = |p: &&LevelPoint| {
        analysis.plateau.contains(&p.level)
            && !fails(p)
            && (p.throughput_per_s / analysis.x_max_per_s - 1.0).abs() <= SAME_SHARE
    };
    let fewest = analysis.rows.iter().find(is_same)?;
    let most = analysis.rows.iter().rfind(is_same)?;
    let longer = most.response_ns() / fewest.response_ns();
    (longer >= LONGER_MIN).then(|| {
        format!(
            "The same maximum throughput, reached with {} instead of {}, answers about {} times \
             faster.",
            n_users(fewest.level),
            exact(most.level),
            ratio(longer)
        )
    })
}

fn within_bound(
    bounds: &[Bound],
    best: Option<&BestWithinBound>,
    table: &[LevelPoint],
) -> Option<String> {
    if bounds.is_empty() {
        return None;
    }
    let text = bound::text(bounds);
    let Some(best) = best else {
        return Some(format!("No level keeps {text}."));
    };
    let limit = match bound::crossing(bounds, table) {
        // Response time does not rise with the load there.
        Some([_, outside]) if outside < f64::from(best.vusers) => {
            format!("; it is broken at {} already", n_users(outside))
        }
        Some([within, outside]) => {
            format!("; it is kept up to {} and broken at {}", n_users(within), n_users(outside))
        }
        None => String::new(),
    };
    let doubt = if best.confident { "" } else { ", though not for certain" };
    let p90 = at_p90(best.p90_ns.map(|ns| ns as f64));
    Some(format!(
        "Within {text} the most is {}/s, with {}{p90}{doubt}{limit}.",
        number(best.throughput_per_s),
        n_users(f64::from(best.vusers)),
    ))
}
