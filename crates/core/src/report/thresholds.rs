//! What a whole report shows of thresholds.

use crate::report::{Report, ThresholdReport};
use crate::threshold::{Judged, Threshold};
use crate::trial::report::Verdict;

/// Each threshold, and whether it was kept.
pub fn judge(thresholds: &[Threshold], report: &Report) -> Vec<ThresholdReport> {
    let trials = report.conclusion.answer().judged(&report.trials);
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
                Judged::Undetermined(line) => judged.undetermined.push(line),
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
