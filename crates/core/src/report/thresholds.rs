//! Thresholds as reported, and what a whole report shows of them.

use super::Report;
use crate::threshold::{Threshold, ThresholdJudgement};
use crate::trial::report::Verdict;
use serde::{Deserialize, Serialize};

/// A threshold that was asked for with `--fail-if`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThresholdReport {
    /// As it was asked for: `p99>200ms`.
    pub expression: String,
    /// Where it was crossed, in words, one line for each trial; empty where it was kept.
    pub crossed: Vec<String>,
    /// Where it could not be judged, and why, one line for each trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<String>,
    /// Figures that are known only as a range, as the generator may have changed them, where the
    /// range leaves both possible. One line for each trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undetermined: Vec<String>,
    /// Where it was kept, with the figure, one line for each trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
}

impl ThresholdReport {
    /// Whether it was kept wherever it was judged, and judged at all.
    pub fn is_kept(&self) -> bool {
        self.failures().next().is_none()
    }

    /// Why it was not kept, one line for each trial.
    pub fn failures(&self) -> impl Iterator<Item = &String> {
        let all = [&self.crossed, &self.undecided, &self.undetermined];
        all.into_iter().flatten()
    }
}

/// Each threshold, and whether it was kept.
pub fn judge(thresholds: &[Threshold], report: &Report) -> Vec<ThresholdReport> {
    let trials = report.conclusion.answer().judged(&report.trials);
    let judge = |threshold: &Threshold| {
        let lines = if trials.is_empty() {
            vec![without_trials(threshold, report)]
        } else {
            trials.iter().map(|trial| threshold.judge(trial)).collect()
        };
        let mut judged =
            ThresholdReport { expression: threshold.to_string(), ..ThresholdReport::default() };
        for line in lines {
            match line {
                ThresholdJudgement::Crossed(line) => judged.crossed.push(line),
                ThresholdJudgement::Undecided(line) => judged.undecided.push(line),
                ThresholdJudgement::Undetermined(line) => judged.undetermined.push(line),
                ThresholdJudgement::Kept(line) => judged.kept.push(line),
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
    texts.filter_map(|text| Threshold::parse(text).ok()).collect()
}

fn without_trials(threshold: &Threshold, report: &Report) -> ThresholdJudgement {
    match report.verdict {
        Verdict::Invalid if threshold.is_of_verdict() => {
            ThresholdJudgement::Crossed("the result is invalid".to_owned())
        }
        Verdict::Valid if threshold.is_of_verdict() && report.has_measured() => {
            ThresholdJudgement::Kept("the result is valid".to_owned())
        }
        _ => {
            ThresholdJudgement::Undecided(format!("{threshold} is not decided: there is no trial"))
        }
    }
}
