//! The generator and its host.

use super::{known, one};
use crate::experiment::overload::analysis::{
    OverloadPoint, OverloadSetting, OverloadSummary, times,
};
use crate::experiment::overload::preflight::ports_remedy;
use crate::finding::{Finding, codes};
use crate::trial::findings::QUIETER;
use crate::trial::report::{TrialReport, Verdict};
use crate::words::{exact, levels, number, percent};
use knee_load::measure::Outcome;
use knee_load::spec::{CloseKind, Level};

codes! {
    PORTS_EXHAUSTED = "ports_exhausted":
        cause "Attempts found no free local port. Each connection holds a port until it ends, \
               and for a minute more in TIME_WAIT where the generator closes first. Over datagrams \
               each socket holds one.",
        remedy "Use more source addresses with --source, close with --close rst, or enlarge \
                net.ipv4.ip_local_port_range.";
    DESCRIPTORS_EXHAUSTED = "descriptors_exhausted":
        cause "Attempts found no free descriptor. The process has reached its limit of open \
               files.",
        remedy "Raise the limit with `ulimit -n`, or use fewer descriptors with a shorter T.";
    LIMITS_SYN_RATE = "generator_limits_syn_rate":
        cause "The generator did not start all attempts that were due, or a worker used its \
               whole core. What the server does beyond that rate is not known.",
        remedy "Add workers with -t, or a second host.";
    FACTOR_NOT_REACHED = "factor_not_reached":
        cause "knee chose the numbers of descriptors, and offered less than the multiple of the \
               capacity that was asked for. The limit of descriptors was reached first.",
        remedy "Raise the limit with `ulimit -n`, or use a shorter T.";
    LEVELS_LEFT_OUT = "levels_left_out":
        cause "The generator distorted some levels. The conclusion rests on the other levels and \
               is valid without them.",
        remedy "Repeat on a quieter or larger machine if you need the levels that are left out.";
}

/// An automatic choice came near enough to its factor at this share of it.
const FACTOR_SHARE: f64 = 0.9;

pub(super) fn ports_exhausted(
    summary: &OverloadSummary,
    setting: &OverloadSetting,
) -> Option<Finding> {
    let (p, count, share) = lacking(summary, Outcome::PortExhausted)?;
    Some(PORTS_EXHAUSTED.error(
        format!(
            "{} attempts with {} ({}) found no local port: {}",
            exact(count),
            one(p.level),
            percent(share),
            match setting.close {
                Some(CloseKind::Fin) => {
                    "a connection holds one until it ends, and for a minute more if this side \
                     closes first"
                }
                Some(CloseKind::Rst) => "a connection holds one until it ends",
                None => "each request holds one until it ends",
            }
        ),
        [("count", count), ("percent", share)],
        ports_remedy(setting.close),
    ))
}

pub(super) fn descriptors_exhausted(summary: &OverloadSummary) -> Option<Finding> {
    let (p, count, share) = lacking(summary, Outcome::DescriptorExhausted)?;
    Some(DESCRIPTORS_EXHAUSTED.error(
        format!(
            "{} attempts with {} ({}) found no descriptor: this process has reached its limit of \
             open files",
            exact(count),
            one(p.level),
            percent(share)
        ),
        [("count", count), ("percent", share)],
        "raise the limit (ulimit -Hn and -n), or use fewer descriptors with a shorter T: \
         --descriptors, --connect-timeout",
    ))
}

/// The trial with the largest share of attempts that lacked this, if any did; also their number and
/// the share in percent.
fn lacking(summary: &OverloadSummary, what: Outcome) -> Option<(&OverloadPoint, f64, f64)> {
    let worst = summary.points.iter().max_by(|a, b| a.percent(what).total_cmp(&b.percent(what)))?;
    let share = worst.percent(what);
    (share > 0.0).then(|| (worst, worst.row.outcomes.count(what) as f64, share))
}

pub(super) fn limits_syn_rate(summary: &OverloadSummary, verdict: Verdict) -> Option<Finding> {
    let limited = || summary.pressing().filter(|p| p.is_limited());
    let first = limited().min_by(|a, b| a.due_per_s.total_cmp(&b.due_per_s))?;
    let kept = summary.generator_limit_per_s;
    let kept_up = kept.map_or(String::new(), |kept| format!("; it kept up at {}/s", number(kept)));
    let is_left_out = limited().all(|p| !p.is_valid);
    let left_out = match verdict {
        Verdict::Valid if is_left_out => "; the conclusion leaves such levels out",
        _ => "",
    };
    let started = number(first.attempts_per_s);
    let started = if first.fell_behind {
        format!("{started}/s of {}/s", number(first.due_per_s))
    } else {
        format!("{started}/s, all that was due")
    };
    Some(LIMITS_SYN_RATE.warning(
        format!(
            "from {} on the generator is the limit: it started {started}, and its busiest \
             worker used {} of a core{kept_up}{left_out}",
            one(first.level),
            percent(first.busy_percent)
        ),
        [
            ("started_per_s", first.attempts_per_s),
            ("due_per_s", first.due_per_s),
            ("busiest_worker_percent", first.busy_percent),
            ("kept_per_s", known(kept)),
        ],
        "read levels beyond that rate as “at least”; add workers (-t) or a second host, and \
         compare one process with two to see which side is the limit",
    ))
}

pub(super) fn factor_not_reached(
    trials: &[TrialReport],
    summary: &OverloadSummary,
    setting: &OverloadSetting,
) -> Option<Finding> {
    let wanted = setting.wanted_factor?;
    let offered_per_s = summary.most_offered_per_s()?;
    let capacity_per_s = summary.capacity_per_s;
    let below = offered_per_s < FACTOR_SHARE * wanted * capacity_per_s;
    // Three levels at least: one that was interrupted has not ended where it was to.
    let is_whole = trials.len() >= 3 && summary.pressing().count() >= 2;
    (below && is_whole).then(|| {
        FACTOR_NOT_REACHED.info(
            format!(
                "only {}/s were offered, {} times the capacity instead of {} times: no more \
                 descriptors were available",
                number(offered_per_s),
                times(offered_per_s, capacity_per_s),
                exact(wanted)
            ),
            [
                ("offered_per_s", offered_per_s),
                ("capacity_per_s", capacity_per_s),
                ("times_capacity", offered_per_s / capacity_per_s),
                ("times_wanted", wanted),
            ],
            "raise the limit (ulimit -Hn and -n), or halve T, which doubles what the same \
             descriptors offer: --connect-timeout",
        )
    })
}

/// Levels that a valid conclusion does without.
pub(super) fn left_out(rest: &[&TrialReport], level_count: usize) -> Option<Finding> {
    let invalid = || rest.iter().filter(|t| t.verdict == Verdict::Invalid);
    let at: Vec<Level> = invalid().map(|t| t.level).collect();
    let mut clauses: Vec<&str> = Vec::new();
    for clause in invalid().flat_map(|t| &t.invalid_because) {
        if clauses.len() < 2 && !clauses.contains(&clause.as_str()) {
            clauses.push(clause);
        }
    }
    (!at.is_empty()).then(|| {
        LEVELS_LEFT_OUT.warning(
            format!(
                "the conclusion leaves out {} of {level_count} levels ({}): {}",
                at.len(),
                levels(&at),
                clauses.join("; ")
            ),
            [("levels_left_out", at.len() as f64), ("levels", level_count as f64)],
            QUIETER,
        )
    })
}
