//! The conclusion of `knee sweep` as a report sees it, and its checks for contradictions.

use super::findings::codes;
use super::report::{OpenLoopComparison, SweepConclusion, SweepLevel};
use super::silences::OUTAGE;
use crate::consistency::{CheckedReport, ConsistencyCheck, at_most};
use crate::experiment::{Answer, most_responses, values};
use crate::finding::{Code, Finding};
use crate::trial::report::TrialReport;
use crate::words::{number, value};
use knee_load::measure::Outcomes;
use knee_load::spec::Level;
use serde_json::Value;

/// A maximum that is fitted over several levels may exceed each of them by this factor.
const FITTED: f64 = 1.05;
/// Least maximum as a share of the highest level, apart from the noise of that.
const FAR_BELOW: f64 = 0.97;
/// Tolerance for rounding and for means of several trials.
const NEARLY: f64 = 1.001;
/// Least throughput at the knee, as a share of the maximum.
const AT_KNEE_SHARE: f64 = 0.69;
/// Largest gain past the knee, in percent.
const PAST_KNEE_GAIN_PERCENT: f64 = 10.1;

impl Answer for SweepConclusion {
    fn codes() -> Vec<Code> {
        codes()
    }

    fn cut_short(&mut self, _trial: &TrialReport, words: String) {
        self.answer = words;
    }

    fn rows(&self) -> usize {
        self.levels.len()
    }

    fn table(&self) -> serde_json::Result<Vec<Value>> {
        values(&self.levels)
    }

    /// The last trial at the knee, or that with the most responses.
    fn judged<'a>(&self, trials: &'a [TrialReport]) -> Vec<&'a TrialReport> {
        let knee = self.levels.iter().find(|level| level.is_knee);
        let at_knee = knee.and_then(|knee| trials.iter().rfind(|t| t.level == knee.level));
        at_knee.or_else(|| most_responses(trials)).into_iter().collect()
    }

    fn left_out(&self, level: Level) -> Outcomes {
        let mut sum = Outcomes::default();
        self.slices
            .iter()
            .filter(|s| s.level == level && s.weight <= 0.0 && s.has_mark(OUTAGE))
            .filter_map(|slice| slice.outcomes.as_ref())
            .for_each(|outcomes| sum.merge(outcomes));
        sum
    }

    fn meets_bounds(&self, _trials: &[TrialReport]) -> bool {
        let reaches_goals = || self.goals.iter().all(|goal| goal.lower_per_s.is_some());
        let has_level = self.best_within_bound.is_some();
        !self.bounds.is_empty() && (has_level || !self.goals.is_empty() && reaches_goals())
    }

    fn check(&self, report: CheckedReport<'_>, check: &mut ConsistencyCheck) {
        levels(report, self, check);
        maximum(self, check);
        in_time(self, check);
        knee(self, check);
        range(self, check);
        goals(self, check);
        within_bound(self, check);
        recommended(self, check);
        for finding in report.findings {
            statement(finding, self, check);
        }
    }
}

fn counted(sweep: &SweepConclusion) -> impl Iterator<Item = &SweepLevel> {
    sweep.levels.iter().filter(|l| l.excluded_because.is_none())
}

fn levels(report: CheckedReport<'_>, sweep: &SweepConclusion, check: &mut ConsistencyCheck) {
    for pair in sweep.levels.windows(2) {
        check.require(value(pair[0].level) < value(pair[1].level), || {
            format!("level {} before {}", value(pair[0].level), value(pair[1].level))
        });
    }
    for level in &sweep.levels {
        let name = format!("level {}", value(level.level));
        check.interval(&name, Some(level.throughput_per_s), level.throughput_ci95_per_s);
        check.ascending(
            &name,
            &[
                ("p50", level.p50_ns),
                ("p90", level.p90_ns),
                ("p95", level.p95_ns),
                ("p99", level.p99_ns),
            ],
        );
        // Failures are no throughput.
        let trials = report.trials.iter().filter(|t| t.level == level.level);
        let most = trials.map(|t| t.successes_per_s()).reduce(f64::max);
        // A row of slices has the target's pauses at their share of the whole time, and no outage.
        let is_reached = most.is_none_or(|most| level.throughput_per_s <= most * NEARLY);
        check.require(is_reached || !sweep.slices.is_empty(), || {
            format!("{:?} has more than any of its trials", level.level)
        });
    }
    let marked = sweep.levels.iter().filter(|l| l.is_knee).count();
    check.require(marked <= 1, || format!("{marked} levels are the knee"));
}

/// Statements about time agree with the slices.
fn in_time(sweep: &SweepConclusion, check: &mut ConsistencyCheck) {
    let max = sweep.max_throughput_per_s;
    check.interval("the maximum", Some(max), sweep.max_throughput_ci95_per_s);
    if let Some(change) = &sweep.regime_change {
        let sides = [change.before_per_s, change.after_per_s];
        check.require(sides.contains(&max), || {
            format!("the maximum is {max}/s, and throughput changed between {sides:?}")
        });
        for side in sides {
            let is_told = sweep.answer.contains(&number(side));
            check.require(is_told, || format!("{side}/s is not in: {}", sweep.answer));
        }
    }
    for outage in &sweep.outages {
        let is_marked = sweep.slices.iter().any(|s| {
            let is_within = |at_ns: u64| {
                let ends = s.load_begin_ns.zip(s.end_ns).map(|(begin, end)| [begin, end]);
                ends.is_none_or(|[begin, end]| begin <= at_ns && at_ns <= end)
            };
            s.marks.iter().any(|m| m == "outage") && outage.begin_ns.is_none_or(is_within)
        });
        check.require(is_marked, || format!("no slice shows {outage:?}"));
    }
    let weights = sweep.slices.iter().all(|s| (0.0..=1.0).contains(&s.weight));
    check.require(weights, || "a slice weighs less than 0 or more than 1".to_owned());
}

fn maximum(sweep: &SweepConclusion, check: &mut ConsistencyCheck) {
    let top = counted(sweep).max_by(|a, b| a.throughput_per_s.total_cmp(&b.throughput_per_s));
    let Some(top) = top else { return };
    let (max, most) = (sweep.max_throughput_per_s, top.throughput_per_s);
    check.require(at_most(max, most * FITTED), || {
        format!("the maximum is {max}/s, and no level has more than {most}/s")
    });
    let noise = top.throughput_ci95_per_s.map_or(0.0, |[lo, hi]| hi - lo);
    let upper = sweep.max_throughput_ci95_per_s.map_or(max, |[_, hi]| hi.max(max));
    check.require(upper >= FAR_BELOW * (most - noise), || {
        format!("the maximum is {max}/s, and a level has {most}/s")
    });
    // An answer with a knee of users states the maximum.
    let of_users = sweep.knee_vusers.is_some() || sweep.knee_range.is_some();
    let is_told = of_users && sweep.knee_rate_per_s.is_none() && !sweep.answer.is_empty();
    check.require(!is_told || sweep.answer.contains(&number(max)), || {
        format!("the maximum is {max}/s, and the answer: {}", sweep.answer)
    });
}

fn knee(sweep: &SweepConclusion, check: &mut ConsistencyCheck) {
    check.interval("the knee", sweep.knee_vusers, sweep.knee_ci95);
    let Some(at_knee) = sweep.throughput_at_knee_per_s else {
        return check
            .require(sweep.knee_vusers.is_none(), || "a knee without its throughput".to_owned());
    };
    let max = sweep.max_throughput_per_s;
    let is_known = sweep.knee_vusers.is_some() || sweep.knee_rate_per_s.is_some();
    check.require(is_known, || format!("{at_knee}/s at a knee that is not known"));
    let most = sweep.max_throughput_ci95_per_s.map_or(max, |[_, hi]| hi).max(max * FITTED);
    check.require(at_most(at_knee, most), || {
        format!("{at_knee}/s at the knee, and {max}/s at the most")
    });
    let Some(knee) = sweep.knee_vusers else { return };
    check.require(at_knee >= AT_KNEE_SHARE * max, || {
        format!("{at_knee}/s at the knee is far below the maximum of {max}/s")
    });
    let rows = || counted(sweep).map(|l| (value(l.level), l.throughput_per_s));
    let below = rows().filter(|row| row.0 <= knee).last();
    let above = rows().find(|row| row.0 >= knee);
    if let (Some((_, a)), Some((_, b))) = (below, above) {
        let is_between = at_knee * NEARLY >= a.min(b).min(max) && at_knee <= a.max(b) * NEARLY;
        check.require(is_between, || {
            format!("{at_knee}/s at the knee, and {a}/s and {b}/s beside it")
        });
    }
}

fn range(sweep: &SweepConclusion, check: &mut ConsistencyCheck) {
    let Some([lo, hi]) = sweep.knee_range else {
        return;
    };
    check.require(lo <= hi, || format!("the knee is between {lo} and {hi}"));
    check.require(sweep.knee_vusers.is_none(), || {
        format!("a knee at {:?} beside a range", sweep.knee_vusers)
    });
    if let Some(served) = sweep.knee_rate_per_s {
        check.require(lo == served && hi > served, || {
            format!("the range from {lo} to {hi} does not begin at {served}/s")
        });
    }
}

/// Bounds of each goal are rates of the table, in order. Those of the first goal are the knee's.
fn goals(sweep: &SweepConclusion, check: &mut ConsistencyCheck) {
    let is_listed = |per_s: f64| sweep.levels.iter().any(|l| value(l.level) == per_s);
    for goal in &sweep.goals {
        let (lower, upper) = (goal.lower_per_s, goal.upper_per_s);
        let is_in_order = lower.zip(upper).is_none_or(|(lo, hi)| lo < hi);
        check.require(is_in_order, || format!("{}: {lower:?} to {upper:?}", goal.goal));
        for per_s in lower.iter().chain(&upper).chain(&goal.undecided_per_s) {
            check.require(is_listed(*per_s), || format!("{}: {per_s}/s is no level", goal.goal));
        }
    }
    if let Some(no_loss) = sweep.goals.first() {
        check.require(no_loss.lower_per_s == sweep.knee_rate_per_s, || {
            format!("{no_loss:?}, and a knee at {:?}/s", sweep.knee_rate_per_s)
        });
    }
}

fn within_bound(sweep: &SweepConclusion, check: &mut ConsistencyCheck) {
    let Some(best) = &sweep.best_within_bound else {
        return;
    };
    let level = sweep.levels.iter().find(|l| l.is_best_within_bound);
    let Some(level) = level else {
        check.require(false, || "the best level within the bound is not listed".into());
        return;
    };
    check.require(best.p90_ns.is_none() || best.p90_ns == level.p90_ns, || {
        format!("p90 {:?} ns, and {:?} in its level", best.p90_ns, level.p90_ns)
    });
    for bound in &sweep.bounds {
        let figure = match bound.metric.as_str() {
            "mean" => level.mean_ns,
            "p50" => level.p50_ns,
            "p90" => level.p90_ns,
            "p95" => level.p95_ns,
            "p99" => level.p99_ns,
            _ => None,
        };
        check.require(figure.is_none_or(|ns| ns <= bound.limit_ns), || {
            format!("{} is {figure:?} ns, over its bound", bound.metric)
        });
    }
}

/// The recommendation is the best level within the bound, or another that was measured.
fn recommended(sweep: &SweepConclusion, check: &mut ConsistencyCheck) {
    if let Some(best) = &sweep.best_within_bound {
        let is_it = best.rate_per_s.is_some() || sweep.recommended_vusers == Some(best.vusers);
        check.require(is_it, || "recommended is not the best within the bound".to_owned());
    } else {
        let is_counted = |n: u32| counted(sweep).any(|l| value(l.level) == f64::from(n));
        check.require(sweep.recommended_vusers.is_none_or(is_counted), || {
            format!("{:?} users are recommended, and not measured", sweep.recommended_vusers)
        });
    }
}

fn statement(finding: &Finding, sweep: &SweepConclusion, check: &mut ConsistencyCheck) {
    let evidence = |name: &str| finding.evidence.get(name).copied().unwrap_or(f64::NAN);
    let agrees = match finding.code.as_str() {
        "past_knee" => {
            let means = || counted(sweep).filter_map(|l| l.mean_ns).map(|ns| ns as f64);
            let low = means().fold(f64::INFINITY, f64::min);
            let ratio = means().fold(0.0, f64::max) / low;
            let is_borne_out =
                low.is_infinite() || evidence("response_time_ratio_max") <= ratio * 1.01;
            is_borne_out && evidence("gain_percent") <= PAST_KNEE_GAIN_PERCENT
        }
        "closed_loop_hides_pauses" => {
            let differs = |o: &OpenLoopComparison| o.p99_ns > o.closed_p99_ns;
            sweep.open_loop.as_ref().is_some_and(differs)
        }
        "not_saturated" | "saturated_below_range" => sweep.knee_vusers.is_none(),
        "retrograde" => evidence("throughput_per_s") < evidence("max_throughput_per_s"),
        "knee_methods_disagree" => evidence("knee_at_least").is_nan() == sweep.knee_range.is_none(),
        _ => true,
    };
    check.require(agrees, || format!("{}: {} {:?}", finding.code, finding.text, finding.evidence));
}
