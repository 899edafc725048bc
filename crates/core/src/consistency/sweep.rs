//! The answer of a sweep against its own levels.

use super::{Contradictions, Statements, at_most};
use crate::experiment::sweep::report::{OpenLoopBeside, SweepConclusion, SweepLevel};
use crate::finding::Finding;
use crate::spec::Level;

/// A maximum that is fitted over several levels may exceed each of them by this factor.
const FITTED: f64 = 1.05;
/// At the knee a closed system without variance has all of its maximum, and one of exponential
/// service with one worker about half.
const AT_KNEE_SHARE: f64 = 0.4;
/// What is past the knee gains a few per cent, or it is not past it.
const PAST_KNEE_GAIN_PERCENT: f64 = 25.0;

pub(super) fn check(said: Statements<'_>, of: &SweepConclusion, found: &mut Contradictions) {
    levels(of, found);
    maximum(of, found);
    knee(of, found);
    within_bound(of, found);
    recommended(of, found);
    let hides = |f: &&Finding| f.code == "closed_loop_hides_pauses";
    for finding in said.findings.iter().filter(hides) {
        let differs = |o: &OpenLoopBeside| o.p99_ns > o.closed_p99_ns;
        found.unless(of.open_loop.as_ref().is_some_and(differs), || {
            format!("the open loop shows no more: {}", finding.text)
        });
    }
    for finding in said.findings.iter().filter(|f| f.code == "past_knee") {
        let gain = finding.evidence.get("gain_percent").copied().unwrap_or(0.0);
        found.unless(gain <= PAST_KNEE_GAIN_PERCENT, || {
            format!("past the knee there is {gain} % more: {}", finding.text)
        });
    }
}

fn size(level: Level) -> f64 {
    match level {
        Level::Vusers(n) => f64::from(n),
        Level::RatePerS(per_s) => per_s,
        _ => 0.0,
    }
}

fn counted(of: &SweepConclusion) -> impl Iterator<Item = &SweepLevel> {
    of.levels.iter().filter(|l| l.excluded_because.is_none())
}

fn levels(of: &SweepConclusion, found: &mut Contradictions) {
    for pair in of.levels.windows(2) {
        found.unless(size(pair[0].level) < size(pair[1].level), || {
            format!(
                "level {} before {}",
                size(pair[0].level),
                size(pair[1].level)
            )
        });
    }
    for level in &of.levels {
        let name = format!("level {}", size(level.level));
        found.interval(
            &name,
            Some(level.throughput_per_s),
            level.throughput_ci95_per_s,
        );
        found.ascending(
            &name,
            &[
                ("p50", level.p50_ns),
                ("p90", level.p90_ns),
                ("p95", level.p95_ns),
                ("p99", level.p99_ns),
            ],
        );
    }
    let marked = of.levels.iter().filter(|l| l.is_knee).count();
    found.unless(marked <= 1, || format!("{marked} levels are the knee"));
}

fn maximum(of: &SweepConclusion, found: &mut Contradictions) {
    let most = counted(of).map(|l| l.throughput_per_s).reduce(f64::max);
    let Some(most) = most else { return };
    let max = of.max_throughput_per_s;
    found.unless(at_most(max, most * FITTED), || {
        format!("the maximum is {max}/s, and no level has more than {most}/s")
    });
}

fn knee(of: &SweepConclusion, found: &mut Contradictions) {
    found.interval("the knee", of.knee_vusers, of.knee_ci95);
    let Some(at_knee) = of.throughput_at_knee_per_s else {
        return;
    };
    let max = of.max_throughput_per_s;
    let is_known = of.knee_vusers.is_some() || of.knee_rate_per_s.is_some();
    found.unless(is_known, || {
        format!("{at_knee}/s at a knee that is not known")
    });
    found.unless(
        at_most(at_knee, max * FITTED) && at_knee >= max * AT_KNEE_SHARE,
        || format!("{at_knee}/s at the knee, and {max}/s at the most"),
    );
}

fn within_bound(of: &SweepConclusion, found: &mut Contradictions) {
    let Some(best) = &of.best_within_bound else {
        return;
    };
    let level = of.levels.iter().find(|l| l.is_best_within_bound);
    let Some(level) = level else {
        found.unless(false, || {
            "the best level within the bound is not listed".into()
        });
        return;
    };
    found.unless(best.p90_ns.is_none() || best.p90_ns == level.p90_ns, || {
        format!(
            "p90 {:?} ns, and {:?} in its level",
            best.p90_ns, level.p90_ns
        )
    });
    for bound in &of.bounds {
        let figure = match bound.metric.as_str() {
            "mean" => level.mean_ns,
            "p50" => level.p50_ns,
            "p90" => level.p90_ns,
            "p95" => level.p95_ns,
            "p99" => level.p99_ns,
            _ => None,
        };
        found.unless(figure.is_none_or(|ns| ns <= bound.limit_ns), || {
            format!("{} is {figure:?} ns, over its bound", bound.metric)
        });
    }
}

fn recommended(of: &SweepConclusion, found: &mut Contradictions) {
    let (Some(users), Some([_, most])) = (of.recommended_vusers, of.knee_ci95) else {
        return;
    };
    // The next measured level at or beyond the knee may be far from it.
    let next = counted(of).map(|l| size(l.level)).find(|&n| n >= most);
    let limit = next.unwrap_or(most).max(most.ceil());
    let within_bound = of.best_within_bound.as_ref().map(|best| best.vusers);
    found.unless(
        f64::from(users) <= limit || within_bound == Some(users),
        || format!("{users} users are recommended, and the knee is at {most} at the most"),
    );
}
