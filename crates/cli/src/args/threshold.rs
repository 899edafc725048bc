//! Thresholds: `--fail-if`.

use crate::failure::Failure;
use crate::resolved_options::typed;
use clap::Args;
use knee_core::report::{Report, ThresholdReport, judge_thresholds};
use knee_core::threshold::Threshold;
use knee_core::trial::statistics::{StatisticUnit, threshold_names};
use knee_load::spec::Target;
use knee_scenario::{Scenario, check_part};
use serde::Serialize;

#[derive(Args, Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Output")]
pub struct ThresholdArgs {
    /// Threshold that fails the run (exit code 1), repeatable: 'p99>200ms', 'throughput<5000',
    /// 'errors>0.1%', 'invalid'
    #[arg(long, value_name = "EXPR", value_parser = Threshold::parse, long_help = long_help())]
    #[serde(serialize_with = "typed")]
    fail_if: Vec<Threshold>,

    /// They take the place of those of a scenario.
    #[arg(skip)]
    #[serde(skip)]
    pub replaces_others: bool,
}

fn long_help() -> String {
    format!(
        "Threshold that fails the run (exit code 1), repeatable: 'p99>200ms', 'throughput<5000', \
         'errors>0.1%', 'invalid'\n\n\
         Of times: {} against a time; those of messages have all figures of response times. {} \
         against a rate, {} against a share (0.1%) or a number. Comparisons: > >= < <=. With the \
         name of a step of a scenario, or of a session, before it: 'checkout p99>500ms'. A sweep \
         is judged at the level nearest to its knee, or else at the one with the most throughput.",
        threshold_names(StatisticUnit::Nanoseconds).join(", "),
        threshold_names(StatisticUnit::PerSecond).join(", "),
        threshold_names(StatisticUnit::Count).join(", ")
    )
}

impl ThresholdArgs {
    /// Takes the thresholds of a scenario where none was given. Refuses those of metrics that its
    /// script does not have.
    pub fn fill(&mut self, scenario: &Scenario) -> Result<(), Failure> {
        for threshold in &self.fail_if {
            let Some((name, figure)) = threshold.metric() else { continue };
            let own = name.split('{').next().unwrap_or_default();
            let wrong = match scenario.metrics.iter().find(|(known, _)| known == own) {
                Some((_, figures)) if figures.contains(&figure) => continue,
                Some((_, figures)) => format!("metric {own} has {}", figures.join(", ")),
                None => {
                    let all: Vec<&str> =
                        scenario.metrics.iter().map(|(name, _)| name.as_str()).collect();
                    format!("there is no metric '{own}': expected one of {}", all.join(", "))
                }
            };
            return Err(Failure::argument("--fail-if", format!("'{threshold}': {wrong}")));
        }
        if self.fail_if.is_empty() {
            self.fail_if.clone_from(&scenario.fail_if);
        } else {
            self.replaces_others = !scenario.fail_if.is_empty();
        }
        Ok(())
    }

    /// Refuses thresholds of steps and targets that there are not.
    pub fn check(&self, target: &Target) -> Result<(), Failure> {
        let plan = target.sessions.as_deref();
        let mut all = self.fail_if.iter();
        all.try_for_each(|threshold| check_part(threshold, &target.requests, plan))
            .map_err(|wrong| Failure::argument("--fail-if", wrong))
    }

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

    /// Each threshold, and whether it was kept.
    pub fn judge(&self, report: &Report) -> Vec<ThresholdReport> {
        judge_thresholds(&self.fail_if, report)
    }
}
