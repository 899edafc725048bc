//! Findings of a sweep: its whole list, and those about failures and idle users.

mod time;
mod uncertainty;

use crate::experiment::sweep::axis::AxisKind;
use crate::experiment::sweep::knee::{
    CurveShape, Knee, KneeAnalysis, ThroughputFall, fails, interpolate,
};
use crate::experiment::sweep::table::LevelPoint;
use crate::experiment::sweep::{bound, open_loop};
use crate::finding::{Code, Finding, codes};
use crate::trial::findings::FIND_THE_FAILURES;
use crate::words::{estimate, exact, levels, number, percent, ratio, users};
use knee_load::measure::Outcome;
use knee_load::spec::Level;
use knee_load::stats::sample::share_interval;
pub(crate) use time::host_speed_differs;
pub(super) use time::{
    cycles_over_time, drifts_over_time, host_speed_varied, outages, pauses, regime_change,
    throughput_varies,
};
use uncertainty::disagreement;
pub(super) use uncertainty::{confidence, time_not_separated};

/// Multiple of the response time at the knee from which a level is past it, …
const COSTLY: f64 = 3.0;
/// … for at most this gain of throughput, as a share.
const LITTLE_GAIN: f64 = 0.1;

/// All kinds of findings of a sweep.
pub(super) fn codes() -> Vec<Code> {
    [open_loop::CODES, bound::CODES, CODES, uncertainty::CODES, time::CODES].concat()
}

/// What a table of users shows, given its analysis and the number of users that is recommended.
pub fn users_findings(
    points: &[LevelPoint],
    analysis: &KneeAnalysis,
    recommended: Option<u32>,
    failure: Option<Outcome>,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = shape(analysis, points).into_iter().collect();
    if let CurveShape::Bent(knee) = &analysis.shape {
        if knee.range.is_none() {
            findings.extend(past_knee(&analysis.rows, knee, recommended));
        }
        findings.extend(disagreement(knee, analysis));
    }
    findings.extend(errors_rise(AxisKind::Vusers, points, failure));
    findings
}

codes! {
    TOO_FEW_LEVELS = "too_few_levels":
        cause "One level alone shows no knee: nothing is known of how throughput goes with the \
               load.",
        remedy "Let the levels be found: --vusers auto. Or give several.";
    SATURATED_BELOW_RANGE = "saturated_below_range":
        cause "Every level measured is already past saturation: more load brings no more \
               throughput, so the knee lies below the lowest level.",
        remedy "Start at a lower level.";
    NOT_SATURATED = "not_saturated":
        cause "Throughput still rises at the highest level measured, so neither the maximum nor \
               the knee was reached.",
        remedy "Go on to higher levels.";
    KNEE_NOT_BRACKETED = "knee_not_bracketed":
        cause "Throughput already bends at the lowest level, so only an upper bound of the knee is \
               known.",
        remedy "Start at one user.";
    PAST_KNEE = "past_knee":
        cause "Levels beyond the knee cost many times its response time for little or no more \
               throughput: their users wait in a queue.",
        remedy "Use the recommended number of users.";
    RETROGRADE = "retrograde":
        cause "Throughput falls significantly beyond its maximum: more load makes the server do \
               less, as contention for locks or memory, or retries, make it.",
        remedy "Keep the load at or below the maximum, and look for what the users contend for.";
    ERRORS_RISE = "errors_rise":
        cause "Failures grow with the load: the target rejects or loses what it cannot serve.",
        remedy "Find the level at which failures begin, and read them by kind in `outcomes`.";
    IDLE_USERS = "idle_users":
        cause "Throughput times response time accounts for fewer users than the table says there \
               were. The others paused, or had no connection or no response.",
        remedy "Count the connections that the server accepted, and the requests without a \
                response.";
}

fn shape(analysis: &KneeAnalysis, points: &[LevelPoint]) -> Option<Finding> {
    let (first, last) = (analysis.rows.first()?.level, analysis.rows.last()?.level);
    match analysis.shape {
        CurveShape::OneLevel => Some(TOO_FEW_LEVELS.warning(
            format!("a single level, {}, shows no knee", users(first)),
            [("level", first)],
            TOO_FEW_LEVELS.step(),
        )),
        // A peak at the lowest level is not past saturation: `retrograde` says what it is.
        CurveShape::SaturatedBelow { .. } if analysis.fallen.is_some() => None,
        CurveShape::SaturatedBelow { lowest } => {
            Some(saturated_below(AxisKind::Vusers, lowest, last, analysis.x_max_per_s))
        }
        CurveShape::Rising { at_least, gain_percent, before } => {
            let failing = points.iter().find(|p| p.level > last && fails(p));
            Some(users_not_saturated(
                before,
                last,
                gain_percent,
                at_least,
                failing.map(|p| p.level),
            ))
        }
        CurveShape::Unbracketed { at_most } => Some(knee_not_bracketed(at_most, first)),
        CurveShape::Bent(_) => None,
    }
}

/// Every level from `lowest` to `highest` is past saturation.
pub(super) fn saturated_below(
    axis: AxisKind,
    lowest: f64,
    highest: f64,
    max_throughput_per_s: f64,
) -> Finding {
    let start = match axis {
        AxisKind::Vusers => "1",
        AxisKind::Rate => "a hundredth of it",
    };
    SATURATED_BELOW_RANGE.warning(
        format!(
            "every level is past saturation: the knee is below {}; start at {start}",
            axis.amount(lowest)
        ),
        [
            ("lowest_level", lowest),
            ("highest_level", highest),
            ("max_throughput_per_s", max_throughput_per_s),
        ],
        axis.lower_levels(lowest),
    )
}

/// Throughput still rises at the last level. `at_least` is a lower bound of the knee; `failing` is
/// a level beyond with failures, if they ended the rise.
fn users_not_saturated(
    before: f64,
    last: f64,
    gain_percent: f64,
    at_least: Option<f64>,
    failing: Option<f64>,
) -> Finding {
    let served =
        failing.map_or(String::new(), |n| format!(" before operations fail at {}", users(n)));
    let knee = at_least.map_or("the knee lies beyond".to_owned(), |n| {
        format!("the knee is at {} or beyond", users(n.round()))
    });
    NOT_SATURATED.warning(
        format!(
            "throughput still rises at the last level{served}, {} ({} over {}): {knee}",
            users(last),
            percent(gain_percent),
            exact(before)
        ),
        [
            ("last_level", last),
            ("gain_percent", gain_percent),
            ("knee_at_least", at_least.unwrap_or(f64::NAN)),
        ],
        match failing {
            Some(failing) => format!(
                "find what fails between the two: --vusers 1,{last},{},{failing}",
                (last * failing).sqrt().round()
            ),
            None => AxisKind::Vusers.higher_levels(last),
        },
    )
}

/// The highest rate is served.
pub(super) fn rate_not_saturated(last: f64) -> Finding {
    NOT_SATURATED.warning(
        format!(
            "the highest rate, {}/s, is still served without a growing queue: the limit lies \
             beyond it",
            exact(last)
        ),
        [("last_level", last), ("gain_percent", 0.0)],
        AxisKind::Rate.higher_levels(last),
    )
}

fn knee_not_bracketed(at_most: f64, lowest: f64) -> Finding {
    KNEE_NOT_BRACKETED.warning(
        format!(
            "throughput already bends at the lowest level, {}: the knee is at most {} users",
            users(lowest),
            estimate(at_most)
        ),
        [("knee_at_most", at_most), ("lowest_level", lowest)],
        AxisKind::Vusers.lower_levels(lowest),
    )
}

/// Levels above the knee with many times its response time, for little more throughput than the
/// level before them.
fn past_knee(points: &[LevelPoint], knee: &Knee, recommended: Option<u32>) -> Option<Finding> {
    // Where responses were timed, N/X of a level whose times are not determined is no response
    // time: the generator's delay is in it.
    let is_timed = points.iter().any(|p| p.mean_ns.is_some());
    let counts = |p: &&LevelPoint| !fails(p) && (p.mean_ns.is_some() || !is_timed);
    let sound: Vec<LevelPoint> = points.iter().filter(counts).cloned().collect();
    let at_knee = interpolate(&sound, knee.level, |p| Some(p.response_ns()))?;
    let times = |p: &LevelPoint| p.response_ns() / at_knee;
    let costly = |p: &&LevelPoint| p.level > knee.level && times(p) >= COSTLY;
    let past: Vec<&LevelPoint> = sound.iter().filter(costly).collect();
    let before = sound.iter().rfind(|p| !costly(p))?;
    let most = past.iter().map(|p| p.throughput_per_s).fold(0.0, f64::max);
    let gain = most / before.throughput_per_s - 1.0;
    let first = past.first().filter(|_| gain <= LITTLE_GAIN)?;
    let at: Vec<Level> = past.iter().map(|p| AxisKind::Vusers.level(p.level)).collect();
    let ratios = || past.iter().map(|p| times(p));
    let [least, longest] = [ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max)];
    let gained = match 100.0 * gain {
        less if less <= -5.0 => "less throughput".to_owned(),
        more if more <= 0.05 => "no more throughput".to_owned(),
        more => format!("at most {} more throughput", percent(more)),
    };
    let span = match [ratio(least), ratio(longest)] {
        [lo, hi] if lo == hi => lo,
        [lo, hi] => format!("{lo} to {hi}"),
    };
    Some(PAST_KNEE.info(
        format!(
            "{} are past the knee of {}: {gained} than {}, and responses take {span} times as long \
             as at the knee",
            levels(&at),
            estimate(knee.level),
            exact(before.level),
        ),
        [
            ("knee", knee.level),
            ("first_level", first.level),
            ("gain_percent", 100.0 * gain),
            ("response_time_ratio_min", least),
            ("response_time_ratio_max", longest),
        ],
        format!(
            "use fewer users: --vusers {}",
            recommended.map_or(knee.level.round().max(1.0), f64::from)
        ),
    ))
}

/// Throughput falls significantly beyond its maximum.
pub(super) fn retrograde(analysis: &KneeAnalysis, has_rounds: bool) -> Option<Finding> {
    let fall = analysis.fallen.as_ref()?;
    let &ThroughputFall { peak, ref last, per_s: [before, after], .. } = fall;
    let text = if fall.is_step {
        format!(
            "throughput falls by {} at {} and more: from {}/s to {}/s",
            percent(100.0 * (1.0 - after / before)),
            users(fall.from),
            number(before),
            number(after)
        )
    } else {
        format!(
            "throughput falls beyond {}: {}/s at {}, {} less than the most, {}/s",
            users(peak),
            number(last.throughput_per_s),
            users(last.level),
            percent(100.0 * (1.0 - last.throughput_per_s / before)),
            number(before)
        )
    };
    let doubt =
        if has_rounds { "" } else { ". Without rounds, time and level cannot be told apart" };
    Some(RETROGRADE.warning(
        format!("{text}{doubt}"),
        [
            ("peak_level", peak),
            ("from_level", fall.from),
            ("fall_percent", 100.0 * (1.0 - after / before)),
            ("max_throughput_per_s", before),
            ("last_level", last.level),
            ("throughput_per_s", last.throughput_per_s),
        ],
        format!(
            "keep the load at or below {}, and look for what more users contend for (locks, \
             memory, retries)",
            users(peak)
        ),
    ))
}

/// Share of idle users that is a finding.
const IDLE_MIN: f64 = 0.1;
/// Rise of the failures from the lowest to the highest level, as a share, beyond the binomial
/// intervals of both.
const ERRORS_RISE_SHARE: f64 = 0.01;

/// Levels with more failures than the lowest one has; `failure` is their most frequent kind.
pub(in crate::experiment::sweep) fn errors_rise(
    axis: AxisKind,
    points: &[LevelPoint],
    failure: Option<Outcome>,
) -> Option<Finding> {
    let (first, last) = (points.first()?, points.last()?);
    let lowest = first.error_share;
    // One comparison with each other level.
    let probability = 0.05 / (points.len() as f64 - 1.0).max(1.0);
    let interval = |p: &LevelPoint| share_interval(p.error_share, p.operations, probability);
    let risen = |p: &&LevelPoint| {
        p.error_share > lowest + ERRORS_RISE_SHARE && interval(p)[0] > interval(first)[1]
    };
    let risen: Vec<&LevelPoint> = points.iter().filter(risen).collect();
    // Failures at levels in the middle alone do not rise with the load.
    risen.iter().find(|p| p.level == last.level)?;
    let worst = risen.iter().map(|p| p.error_share).fold(0.0, f64::max);
    let at: Vec<Level> = risen.iter().map(|p| axis.level(p.level)).collect();
    let kind = failure.map(|kind| format!(", most of them: {}", kind.label())).unwrap_or_default();
    Some(ERRORS_RISE.warning(
        format!(
            "failures rise with the load: {} of the operations at the lowest level, up to {} at \
             {}{kind}",
            percent(100.0 * lowest),
            percent(100.0 * worst),
            levels(&at)
        ),
        [("lowest_level_error_percent", 100.0 * lowest), ("error_percent", 100.0 * worst)],
        FIND_THE_FAILURES,
    ))
}

/// Levels of a table at which throughput times response time accounts for fewer users than there
/// were. The pause of the level with the shortest one is allowed for.
pub(in crate::experiment::sweep) fn idle_users(points: &[LevelPoint]) -> Option<Finding> {
    let idle_ns = |p: &LevelPoint| Some((1e9 * p.level / p.throughput_per_s - p.mean_ns?).max(0.0));
    let rows: Vec<(&LevelPoint, f64)> =
        points.iter().filter_map(|p| Some((p, idle_ns(p)?))).collect();
    let pause_ns = rows.iter().map(|r| r.1).reduce(f64::min)?;
    let idle = |&(p, idle_ns): &(&LevelPoint, f64)| (idle_ns - pause_ns) * p.throughput_per_s / 1e9;
    let with_idle: Vec<&(&LevelPoint, f64)> =
        rows.iter().filter(|r| idle(r) >= 1.0 && idle(r) > IDLE_MIN * r.0.level).collect();
    let worst =
        with_idle.iter().max_by(|a, b| (idle(a) / a.0.level).total_cmp(&(idle(b) / b.0.level)))?;
    let at: Vec<Level> = with_idle.iter().map(|r| AxisKind::Vusers.level(r.0.level)).collect();
    let (whole, active) = (worst.0.level, worst.0.level - idle(worst));
    Some(IDLE_USERS.warning(
        format!(
            "at {}: throughput times mean response time accounts for {} of {}; the others paused, \
             or had no connection or no response",
            levels(&at),
            number(active),
            users(whole)
        ),
        [("users", whole), ("active", active)],
        IDLE_USERS.step(),
    ))
}
