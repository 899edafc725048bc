//! What a sweep states, each statement against the rows beside it: the maximum, the knee and where
//! it is, what is recommended, what failed, and the findings.

use super::{Contradictions, Statements};
use crate::experiment::sweep::report::{SweepConclusion, SweepLevel};
use crate::finding::Finding;
use crate::words::{number, value};

/// Rounding and the mean of several trials apart.
const NEARLY: f64 = 1.001;
/// A maximum is no further below the most of the levels, but for the noise of that.
const FAR_BELOW: f64 = 0.97;
/// What the asymptotes leave at the knee of the worst that is fitted.
const AT_KNEE_SHARE: f64 = 0.69;
/// In percent: what is past the knee gains no more.
const PAST_KNEE_GAIN: f64 = 10.1;

pub(super) fn check(said: Statements<'_>, of: &SweepConclusion, found: &mut Contradictions) {
    maximum(of, found);
    if let Some(knee) = of.knee_vusers {
        at_knee(knee, of, found);
    }
    place_of_knee(of, found);
    failures(said, of, found);
    for finding in said.findings {
        statement(finding, of, found);
    }
}

fn used(of: &SweepConclusion) -> impl Iterator<Item = &SweepLevel> + Clone {
    of.levels.iter().filter(|l| l.excluded_because.is_none())
}

fn maximum(of: &SweepConclusion, found: &mut Contradictions) {
    let top = used(of).max_by(|a, b| a.throughput_per_s.total_cmp(&b.throughput_per_s));
    let Some(top) = top else { return };
    let noise = top.throughput_ci95_per_s.map_or(0.0, |[lo, hi]| hi - lo);
    let max = of.max_throughput_per_s;
    found.unless(max >= FAR_BELOW * (top.throughput_per_s - noise), || {
        format!(
            "the maximum is {max}/s, and a level has {}/s",
            top.throughput_per_s
        )
    });
    let is_told = of.answer.starts_with("At most");
    found.unless(!is_told || of.answer.contains(&number(max)), || {
        format!("the maximum is {max}/s, and the answer: {}", of.answer)
    });
}

fn at_knee(knee: f64, of: &SweepConclusion, found: &mut Contradictions) {
    let at_knee = of.throughput_at_knee_per_s.unwrap_or(0.0);
    let max = of.max_throughput_per_s;
    found.unless(at_knee >= AT_KNEE_SHARE * max, || {
        format!("{at_knee}/s at the knee is far below the maximum of {max}/s")
    });
    let rows = || used(of).map(|l| (value(l.level), l.throughput_per_s));
    let below = rows().filter(|row| row.0 <= knee).last();
    let above = rows().find(|row| row.0 >= knee);
    if let (Some((_, a)), Some((_, b))) = (below, above) {
        let is_between = at_knee * NEARLY >= a.min(b).min(max) && at_knee <= a.max(b) * NEARLY;
        found.unless(is_between, || {
            format!("{at_knee}/s at the knee, and {a}/s and {b}/s beside it")
        });
    }
    if of.best_within_bound.is_none() {
        let rounded = knee.round().max(1.0) as u32;
        found.unless(of.recommended_vusers == Some(rounded), || {
            format!(
                "{:?} users are recommended, and the knee is at {knee}",
                of.recommended_vusers
            )
        });
    }
}

fn place_of_knee(of: &SweepConclusion, found: &mut Contradictions) {
    if let Some([lo, hi]) = of.knee_range {
        found.unless(lo <= hi, || format!("the knee is between {lo} and {hi}"));
        found.unless(of.knee_vusers.is_none(), || {
            format!("a knee at {:?} beside a range", of.knee_vusers)
        });
        if let Some(served) = of.knee_rate_per_s {
            found.unless(lo == served && hi > served, || {
                format!("the range from {lo} to {hi} does not begin at {served}/s")
            });
        }
    }
    if let Some(best) = &of.best_within_bound {
        let is_it = best.rate_per_s.is_some() || of.recommended_vusers == Some(best.vusers);
        found.unless(is_it, || {
            "recommended is not the best within the bound".to_owned()
        });
    }
}

/// What failed is no throughput.
fn failures(said: Statements<'_>, of: &SweepConclusion, found: &mut Contradictions) {
    for level in &of.levels {
        let here = said.trials.iter().filter(|t| t.level == level.level);
        let most = here.map(|t| t.successes_per_s()).reduce(f64::max);
        let of_trials = most.is_none_or(|most| level.throughput_per_s <= most * NEARLY);
        found.unless(of_trials, || {
            format!("{:?} has more than any of its trials", level.level)
        });
    }
}

fn statement(finding: &Finding, of: &SweepConclusion, found: &mut Contradictions) {
    let evidence = |name: &str| finding.evidence.get(name).copied().unwrap_or(f64::NAN);
    let agrees = match finding.code.as_str() {
        "past_knee" => {
            let means = || used(of).filter_map(|l| l.mean_ns).map(|ns| ns as f64);
            let low = means().fold(f64::INFINITY, f64::min);
            let ratio = means().fold(0.0, f64::max) / low;
            let is_borne_out =
                low.is_infinite() || evidence("response_time_ratio_max") <= ratio * 1.01;
            is_borne_out && evidence("gain_percent") <= PAST_KNEE_GAIN
        }
        "not_saturated" | "saturated_below_range" => of.knee_vusers.is_none(),
        "retrograde" => evidence("throughput_per_s") < evidence("max_throughput_per_s"),
        "knee_methods_disagree" => evidence("knee_at_least").is_nan() == of.knee_range.is_none(),
        _ => true,
    };
    found.unless(agrees, || {
        format!("{}: {} {:?}", finding.code, finding.text, finding.evidence)
    });
    let is_whole = !finding.text.is_empty() && finding.evidence.values().all(|v| v.is_finite());
    found.unless(is_whole, || {
        format!("{}: {:?} is not whole", finding.code, finding.evidence)
    });
}
