//! Thresholds: `--fail-if`.

use crate::failure::Failure;
use crate::words::Words;
use clap::Args;
use knee_core::analysis::threshold::Threshold;
use knee_core::analysis::words::value;
use knee_core::report::{Conclusion, Report, ThresholdReport, TrialReport, Verdict};

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct ThresholdArgs {
    /// Exit with 1 where this holds, repeatable: 'p99>200ms', 'throughput<5000', 'errors>0.1%',
    /// 'invalid'
    ///
    /// Of response times: mean, min, p50, p75, p90, p99, p999, max against a time. throughput and
    /// goodput against a rate, errors against a share (0.1%) or a number. Comparisons: > >= < <=.
    /// A sweep is judged at the level nearest to its knee, or else at the one with the most
    /// throughput.
    #[arg(long, value_name = "EXPR", value_parser = Threshold::parse)]
    fail_if: Vec<Threshold>,
}

impl ThresholdArgs {
    /// Refuses all but `invalid`, for a command that measures no response times.
    pub fn refuse_all_but_invalid(&self) -> Result<(), Failure> {
        match self.fail_if.iter().find(|t| !t.is_of_verdict()) {
            None => Ok(()),
            Some(other) => Err(Failure::argument(
                "--fail-if",
                format!("'{other}' needs a target that responds: here there is only 'invalid'"),
            )),
        }
    }

    /// Each threshold, and where it was crossed.
    pub fn judge(&self, report: &Report) -> Vec<ThresholdReport> {
        let trials = judged(report);
        let is_invalid = report.verdict == Verdict::Invalid;
        let judge = |threshold: &Threshold| ThresholdReport {
            expression: threshold.to_string(),
            crossed: match trials.is_empty() {
                true if is_invalid && threshold.is_of_verdict() => {
                    vec!["the result is invalid".to_string()]
                }
                true => Vec::new(),
                false => trials.iter().filter_map(|t| threshold.crossed(t)).collect(),
            },
        };
        self.fail_if.iter().map(judge).collect()
    }

    /// The thresholds in the words of the command line.
    pub fn tell(&self, words: &mut Words) {
        words.put_list("fail-if", self.fail_if.iter().map(ToString::to_string));
    }
}

/// The trials that stand for the whole experiment: of a sweep the last of its best level, of
/// datagrams all whose clients were as asked for, with nothing changed to explain them.
fn judged(report: &Report) -> Vec<&TrialReport> {
    let trials = || report.trials.iter();
    let knee = match &report.conclusion {
        Conclusion::Sweep(sweep) => sweep.levels.iter().find(|level| level.is_knee),
        Conclusion::Udp(udp) => {
            let is_asked = |t: &&TrialReport| udp.laws.iter().any(|law| law.label == t.label);
            return trials().filter(is_asked).collect();
        }
        // Every scenario that has flows; the idle path has none.
        Conclusion::Latency(_) => return trials().filter(|t| value(t.level) > 0.0).collect(),
        Conclusion::Run(_) | Conclusion::Throttle(_) | Conclusion::Overload(_) => None,
    };
    let at_knee = knee.and_then(|knee| trials().rfind(|t| t.level == knee.level));
    let most = || trials().max_by(|a, b| a.responses_per_s().total_cmp(&b.responses_per_s()));
    at_knee.or_else(most).into_iter().collect()
}
