//! `knee run`: one load, in one trial or several repeats.

mod conclusion;
mod repeats;
pub mod report;
use super::{Concluded, Experiment, Next, verdict};
use crate::experiment::run::report::RunConclusion;
use crate::measure::error_share;
use crate::rng;
use crate::spec::TrialSpec;
use crate::trial::findings::{FindingContext, findings_at_levels, trial_findings, with_agents};
use crate::trial::report::TrialReport;

/// One load, its findings, its figures.
#[derive(Clone, Debug)]
pub struct SingleRun {
    spec: TrialSpec,
    repeats: usize,
}

impl SingleRun {
    /// The experiment that runs just this.
    pub fn new(spec: TrialSpec) -> SingleRun {
        SingleRun { spec, repeats: 1 }
    }

    /// The same, made so often.
    pub fn repeated(self, repeats: u32) -> SingleRun {
        SingleRun {
            repeats: repeats.max(1) as usize,
            ..self
        }
    }
}

/// The rate asked for, where less was served than chance accounts for.
fn asked_in_vain(trial: &TrialReport) -> Option<f64> {
    let asked_per_s = trial.offered.asked_per_s?;
    let chance = CHANCE_SIGMAS / (trial.attempted.max(1) as f64).sqrt();
    let kept_up = trial.responses_per_s() >= asked_per_s * (KEPT_UP_SHARE - chance);
    (!kept_up).then_some(asked_per_s)
}

/// What is in flight at the ends of a window accounts for less than what this leaves.
const KEPT_UP_SHARE: f64 = 0.98;
/// Random arrivals may be fewer by this many standard deviations.
const CHANCE_SIGMAS: f64 = 4.0;

impl Experiment for SingleRun {
    type Spec = TrialSpec;
    type Trial = TrialReport;
    type Conclusion = RunConclusion;

    fn next(&mut self, past: &[TrialReport]) -> Next<TrialSpec> {
        if past.len() >= self.repeats {
            return Next::Converged;
        }
        let mut spec = self.spec.clone();
        if !past.is_empty() {
            spec.seed = rng::of_trial(spec.seed, past.len());
        }
        Next::Run(Box::new(spec))
    }

    fn conclude(&self, past: &[TrialReport]) -> Concluded<RunConclusion> {
        let conclusion = past.last().map(|last| {
            let repeats = repeats::repeated(past);
            let figure = |name: &str| repeats.iter().find(|f| f.metric == name).map(|f| f.value);
            let time = |name: &str, of_last: Option<u64>| {
                let repeated = figure(name).map(|ns| ns.round() as u64);
                repeated.or(of_last)
            };
            let times = &last.response_time_ns;
            let ended: u64 = past.iter().map(|t| t.attempted).sum();
            let failed = past.iter();
            let failed = failed.map(|t| error_share(&t.outcomes) * t.attempted as f64);
            RunConclusion {
                throughput_per_s: figure("throughput_per_s").or(last.throughput_per_s),
                asked_per_s: past.iter().find_map(asked_in_vain),
                p50_ns: time("p50_ns", times.p50),
                p95_ns: time("p95_ns", times.p95),
                p99_ns: time("p99_ns", times.p99),
                error_percent: match past.len() {
                    1 => 100.0 * error_share(&last.outcomes),
                    _ => 100.0 * failed.sum::<f64>() / ended.max(1) as f64,
                },
                repeats,
            }
        });
        let all: Vec<&TrialReport> = past.iter().collect();
        let findings = match past {
            [] => Vec::new(),
            [only] => trial_findings(only),
            _ => with_agents(&all, findings_at_levels(&all, FindingContext::default())),
        };
        Concluded {
            verdict: verdict(past),
            findings,
            conclusion: conclusion.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
