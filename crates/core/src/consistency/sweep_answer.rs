//! What contradicts what in a sweep: each statement held against the numbers beside it.

use crate::experiment::sweep::report::{SweepConclusion, SweepLevel};
use crate::finding::Finding;
use crate::trial::report::TrialReport;
use crate::words::{number, value};

/// Rounding apart.
const NEARLY: f64 = 1.001;

/// The contradictions between these findings, this conclusion and these trials, in words.
pub fn contradictions(
    findings: &[Finding],
    c: &SweepConclusion,
    trials: &[TrialReport],
) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(of_maximum(c));
    found.extend(of_knee(c));
    found.extend(of_failures(c, trials));
    for finding in findings {
        found.extend(of_finding(finding, c));
    }
    found
}

fn used(c: &SweepConclusion) -> impl Iterator<Item = &SweepLevel> + Clone {
    c.levels.iter().filter(|l| l.excluded_because.is_none())
}

fn of_maximum(c: &SweepConclusion) -> Vec<String> {
    let mut found = Vec::new();
    let most = used(c).map(|l| l.throughput_per_s).fold(0.0, f64::max);
    let top = used(c).max_by(|a, b| a.throughput_per_s.total_cmp(&b.throughput_per_s));
    let half = top
        .and_then(|l| l.throughput_ci95_per_s)
        .map_or(0.0, |[lo, hi]| hi - lo);
    if c.max_throughput_per_s > most * NEARLY {
        found.push(format!(
            "maximum {} above the table's {most}",
            c.max_throughput_per_s
        ));
    }
    if c.max_throughput_per_s < 0.97 * (most - half) {
        found.push(format!(
            "maximum {} far below {most}",
            c.max_throughput_per_s
        ));
    }
    if c.answer.starts_with("At most") && !c.answer.contains(&number(c.max_throughput_per_s)) {
        found.push(format!(
            "maximum {} but: {}",
            c.max_throughput_per_s, c.answer
        ));
    }
    found
}

fn of_knee(c: &SweepConclusion) -> Vec<String> {
    let mut found = Vec::new();
    let mut claim = |is_true: bool, text: &str| {
        if !is_true {
            found.push(text.to_owned());
        }
    };
    if let Some([lo, hi]) = c.knee_range {
        claim(lo <= hi, "a range from high to low");
        claim(c.knee_vusers.is_none(), "a knee beside a range");
    }
    if let Some(knee) = c.knee_vusers {
        let at_knee = c.throughput_at_knee_per_s.unwrap_or(0.0);
        claim(
            at_knee >= 0.69 * c.max_throughput_per_s,
            "the knee is far below the maximum",
        );
        let inside = |[lo, hi]: [f64; 2]| lo <= knee && knee <= hi;
        claim(
            c.knee_ci95.is_none_or(inside),
            "a knee outside of its interval",
        );
        let rows = || used(c).map(|l| (value(l.level), l.throughput_per_s));
        let below = rows().filter(|r| r.0 <= knee).last();
        let above = rows().find(|r| r.0 >= knee);
        if let (Some((_, a)), Some((_, b))) = (below, above) {
            let between = at_knee * NEARLY >= a.min(b) && at_knee <= a.max(b) * NEARLY;
            claim(
                between,
                "throughput at the knee is not between its neighbours'",
            );
        }
        if c.best_within_bound.is_none() {
            let rounded = knee.round().max(1.0) as u32;
            claim(
                c.recommended_vusers == Some(rounded),
                "recommended is not the knee",
            );
        }
    }
    if let Some(best) = &c.best_within_bound {
        claim(
            best.rate_per_s.is_some() || c.recommended_vusers == Some(best.vusers),
            "recommended is not the best within the bound",
        );
    }
    if let (Some(within), Some([lo, hi])) = (c.knee_rate_per_s, c.knee_range) {
        claim(
            lo == within && hi > within,
            "the range does not begin at the rate served",
        );
    }
    found
}

/// What failed is no throughput.
fn of_failures(c: &SweepConclusion, trials: &[TrialReport]) -> Vec<String> {
    let mut found = Vec::new();
    for level in &c.levels {
        let here = trials.iter().filter(|t| t.level == level.level);
        let per_s = here.map(|t| t.successes_per_s()).reduce(f64::max);
        if per_s.is_some_and(|most| level.throughput_per_s > most * NEARLY) {
            found.push(format!("{:?} has more than any of its trials", level.level));
        }
    }
    found
}

fn of_finding(finding: &Finding, c: &SweepConclusion) -> Vec<String> {
    let evidence = |name: &str| finding.evidence.get(name).copied().unwrap_or(f64::NAN);
    let (is_sound, what) = match finding.code.as_str() {
        "past_knee" => {
            let means = || used(c).filter_map(|l| l.mean_ns).map(|ns| ns as f64);
            let low = means().fold(f64::INFINITY, f64::min);
            let ratio = means().fold(0.0, f64::max) / low;
            let times = evidence("response_time_ratio_max");
            let borne_out = low.is_infinite() || times <= ratio * 1.01;
            (borne_out && evidence("gain_percent") <= 10.1, "past_knee")
        }
        "not_saturated" => (c.knee_vusers.is_none(), "not saturated, and a knee"),
        "saturated_below_range" => (c.knee_vusers.is_none(), "saturated below, and a knee"),
        "retrograde" => (
            evidence("throughput_per_s") < evidence("max_throughput_per_s"),
            "retrograde without a fall",
        ),
        "knee_methods_disagree" => (
            evidence("knee_at_least").is_nan() == c.knee_range.is_none(),
            "a range in the finding or in the conclusion alone",
        ),
        _ => (true, ""),
    };
    let is_finite = finding.evidence.values().all(|v| v.is_finite());
    let mut found = Vec::new();
    if !is_sound {
        found.push(format!("{what}: {} {:?}", finding.text, finding.evidence));
    }
    if !is_finite || finding.text.is_empty() || finding.next_step.is_empty() {
        found.push(format!("{}: not whole", finding.code));
    }
    found
}
