//! Findings about failures and idle users.

use super::AxisKind;
use crate::experiment::sweep::table::LevelPoint;
use crate::finding::{Code, Finding, Severity};
use crate::trial::findings::FIND_THE_FAILURES;
use crate::words::{levels, number, percent, users, value};
use knee_load::spec::Level;
use knee_load::stats::sample::share_interval;

/// Share of idle users that is a finding.
const IDLE_MIN: f64 = 0.1;
/// Rise of the failures from the lowest to the highest level, as a share, beyond the binomial
/// intervals of both.
const ERRORS_RISE_SHARE: f64 = 0.01;

pub(in crate::experiment::sweep) const ERRORS_RISE: Code = Code {
    name: "errors_rise",
    cause: "Failures grow with the load: the target rejects or loses what it cannot serve.",
    remedy: "Find the level at which failures begin, and read them by kind in `outcomes`.",
};

/// Levels with more failures than the lowest one has; `failure` is their most frequent kind.
pub(in crate::experiment::sweep) fn errors_rise(
    axis: AxisKind,
    points: &[LevelPoint],
    failure: Option<&str>,
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
    let mut at: Vec<Level> = risen.iter().map(|p| axis.level(p.level)).collect();
    at.sort_by(|a, b| value(*a).total_cmp(&value(*b)));
    let kind = failure.map_or(String::new(), |kind| format!(", most of them with `{kind}`"));
    (!at.is_empty()).then(|| {
        ERRORS_RISE.finding(
            Severity::Warning,
            format!(
                "failures rise with the load: {} of the operations at the lowest level, up to {} \
                 at {}{kind}",
                percent(100.0 * lowest),
                percent(100.0 * worst),
                levels(&at)
            ),
            [("lowest_level_error_percent", 100.0 * lowest), ("error_percent", 100.0 * worst)],
            FIND_THE_FAILURES,
        )
    })
}

pub(super) const IDLE_USERS: Code = Code {
    name: "idle_users",
    cause: "Throughput times response time accounts for fewer users than the table says there \
            were. The others paused, or had no connection or no response.",
    remedy: "Count the connections that the server accepted, and the requests without a response.",
};

/// Levels of a table at which throughput times response time accounts for fewer users than there
/// were. The pause of the level with the shortest one is allowed for.
pub(in crate::experiment::sweep) fn idle_users(points: &[LevelPoint]) -> Option<Finding> {
    let idle_ns = |p: &LevelPoint| Some((1e9 * p.level / p.throughput_per_s - p.mean_ns?).max(0.0));
    let rows: Vec<(&LevelPoint, f64)> =
        points.iter().filter_map(|p| Some((p, idle_ns(p)?))).collect();
    let pause_ns = rows.iter().map(|r| r.1).reduce(f64::min)?;
    let idle = |&(p, idle_ns): &(&LevelPoint, f64)| (idle_ns - pause_ns) * p.throughput_per_s / 1e9;
    let found: Vec<&(&LevelPoint, f64)> =
        rows.iter().filter(|r| idle(r) >= 1.0 && idle(r) > IDLE_MIN * r.0.level).collect();
    let worst =
        found.iter().max_by(|a, b| (idle(a) / a.0.level).total_cmp(&(idle(b) / b.0.level)))?;
    let at: Vec<Level> = found.iter().map(|r| AxisKind::Vusers.level(r.0.level)).collect();
    let (all, active) = (worst.0.level, worst.0.level - idle(worst));
    Some(IDLE_USERS.finding(
        Severity::Warning,
        format!(
            "at {}: throughput times mean response time accounts for {} of {}; the others paused, \
             or had no connection or no response",
            levels(&at),
            number(active),
            users(all)
        ),
        [("users", all), ("active", active)],
        "count the connections that the server accepted, and the requests without a response",
    ))
}
