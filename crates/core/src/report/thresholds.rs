//! What a whole report shows of thresholds.

use crate::report::{Conclusion, Report, ThresholdReport};
use crate::threshold::{Judged, Threshold};
use crate::trial::report::{TrialReport, Verdict};
use crate::words::value;

/// Each threshold, and whether it was kept.
pub fn judge(thresholds: &[Threshold], report: &Report) -> Vec<ThresholdReport> {
    let trials = trials_judged(report);
    let judge = |threshold: &Threshold| {
        let lines = match trials.is_empty() {
            true => vec![without_trials(threshold, report)],
            false => trials.iter().map(|trial| threshold.judge(trial)).collect(),
        };
        let mut judged = ThresholdReport {
            expression: threshold.to_string(),
            ..ThresholdReport::default()
        };
        for line in lines {
            match line {
                Judged::Crossed(line) => judged.crossed.push(line),
                Judged::Undecided(line) => judged.undecided.push(line),
                Judged::Kept(line) => judged.kept.push(line),
            }
        }
        judged
    };
    thresholds.iter().map(judge).collect()
}

/// The thresholds that a stored report was to keep: those of `--fail-if` in its spec.
pub fn asked_for(report: &Report) -> Vec<Threshold> {
    let asked = report.spec.get("fail-if").and_then(|v| v.as_array());
    let texts = asked.into_iter().flatten().filter_map(|v| v.as_str());
    texts
        .filter_map(|text| Threshold::parse(text).ok())
        .collect()
}

fn without_trials(threshold: &Threshold, report: &Report) -> Judged {
    match report.verdict {
        Verdict::Invalid if threshold.is_of_verdict() => {
            Judged::Crossed("the result is invalid".to_owned())
        }
        Verdict::Valid if threshold.is_of_verdict() && report.has_measured() => {
            Judged::Kept("the result is valid".to_owned())
        }
        _ => Judged::Undecided(format!("{threshold} is not decided: there is no trial")),
    }
}

/// The trials that stand for the whole experiment: of a sweep the last of its best level, of
/// datagrams all whose clients were as asked for, with nothing changed to explain them, of flows
/// every scenario that has some.
fn trials_judged(report: &Report) -> Vec<&TrialReport> {
    let trials = || report.trials.iter();
    let knee = match &report.conclusion {
        Conclusion::Sweep(sweep) => sweep.levels.iter().find(|level| level.is_knee),
        Conclusion::Udp(udp) => {
            let is_asked = |t: &&TrialReport| udp.laws.iter().any(|law| law.label == t.label);
            return trials().filter(is_asked).collect();
        }
        Conclusion::Latency(_) => return trials().filter(|t| value(t.level) > 0.0).collect(),
        Conclusion::Run(_) | Conclusion::Throttle(_) | Conclusion::Overload(_) => None,
    };
    let at_knee = knee.and_then(|knee| trials().rfind(|t| t.level == knee.level));
    let most = || trials().max_by(|a, b| a.responses_per_s().total_cmp(&b.responses_per_s()));
    at_knee.or_else(most).into_iter().collect()
}
