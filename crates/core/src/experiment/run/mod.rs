//! `knee run`: one load, in one trial or several repeats.

#[cfg(test)]
mod tests;

use super::{Answer, Concluded, Experiment, NextTrial, verdict};
use crate::trial::figure::{Figure, RateCertainty};
use crate::trial::findings::{FindingContext, findings_at_levels, trial_findings, with_agents};
use crate::trial::messages::GOOD_STREAMS_PERCENT;
use crate::trial::report::{TrialReport, Verdict};
use crate::trial::statistics::{Compared, StatisticUnit, TrialStatistic, compared_in};
use knee_load::measure::error_share;
use knee_load::rng;
use knee_load::spec::TrialSpec;
use knee_load::stats::rounds::{BlockCell, fit};
use serde::{Deserialize, Serialize};

/// Policy of `knee run`: the same load once, or `repeats` times.
#[derive(Clone, Debug)]
pub struct SingleRun {
    spec: TrialSpec,
    repeats: usize,
}

impl SingleRun {
    /// The experiment of one trial.
    pub fn new(spec: TrialSpec) -> SingleRun {
        SingleRun { spec, repeats: 1 }
    }

    /// Sets the number of repeats.
    pub fn repeated(self, repeats: u32) -> SingleRun {
        SingleRun { repeats: repeats.max(1) as usize, ..self }
    }
}

/// The intended rate, unless the target kept up with it but for chance.
fn missed_rate(trial: &TrialReport) -> Option<f64> {
    let asked_per_s = trial.offered.asked_per_s?;
    let chance = CHANCE_SIGMAS / (trial.attempted.max(1) as f64).sqrt();
    let kept_up = trial.responses_per_s() >= asked_per_s * (KEPT_UP_SHARE - chance);
    (!kept_up).then_some(asked_per_s)
}

/// Share of the intended rate that counts as kept up. The rest may be in flight at the ends of the
/// window.
const KEPT_UP_SHARE: f64 = 0.98;
/// Standard deviations by which random arrivals may be fewer.
const CHANCE_SIGMAS: f64 = 4.0;

impl Experiment for SingleRun {
    type Spec = TrialSpec;
    type Trial = TrialReport;
    type Conclusion = RunConclusion;

    fn next(&mut self, past: &[TrialReport]) -> NextTrial<TrialSpec> {
        if past.len() >= self.repeats {
            return NextTrial::Converged;
        }
        let mut spec = self.spec.clone();
        if !past.is_empty() {
            spec.seed = rng::of_trial(spec.seed, past.len());
        }
        NextTrial::Run(Box::new(spec))
    }

    fn conclude(&self, past: &[TrialReport]) -> Concluded<RunConclusion> {
        let conclusion = past.last().map(|last| {
            let repeats = repeated_figures(past);
            let figure = |name: &str| repeats.iter().find(|f| f.metric == name).map(|f| f.value);
            let time = |name: &str, last_ns: Option<u64>| {
                figure(name).map(|ns| ns.round() as u64).or(last_ns)
            };
            let times = &last.response_time_ns;
            let ended: u64 = past.iter().map(|t| t.attempted).sum();
            let failed: f64 =
                past.iter().map(|t| error_share(&t.outcomes) * t.attempted as f64).sum();
            RunConclusion {
                throughput_per_s: figure("throughput_per_s").or(last.throughput_per_s),
                throughput_is: past.iter().map(|t| t.throughput_is).max().unwrap_or_default(),
                asked_per_s: past.iter().find_map(missed_rate),
                p50_ns: time("p50_ns", times.p50),
                p95_ns: time("p95_ns", times.p95),
                p99_ns: time("p99_ns", times.p99),
                error_percent: match past.len() {
                    1 => 100.0 * error_share(&last.outcomes),
                    _ => 100.0 * failed / ended.max(1) as f64,
                },
                repeats,
            }
        });
        let trials: Vec<&TrialReport> = past.iter().collect();
        let findings = match past {
            [] => Vec::new(),
            [only] => trial_findings(only),
            _ => with_agents(&trials, findings_at_levels(&trials, FindingContext::default())),
        };
        Concluded { verdict: verdict(past), findings, conclusion: conclusion.unwrap_or_default() }
    }
}

/// Figures of repeats of the same load, with intervals from the spread between repeats. Empty below
/// two VALID repeats.
fn repeated_figures(trials: &[TrialReport]) -> Vec<RepeatedFigure> {
    let valid = || trials.iter().filter(|t| t.verdict == Verdict::Valid);
    let figure = |row: &TrialStatistic| {
        // A rate without an upper bound was achieved.
        let exact = valid().filter_map(|t| match row.value(t) {
            Figure::Exactly(value) | Figure::Within(value, None) => Some(value),
            Figure::Within(_, Some(_)) | Figure::Absent => None,
        });
        let cells: Vec<BlockCell> = exact
            .filter(|v| *v > 0.0)
            .map(|v| BlockCell { level: 0, round: 0, value: v.ln() })
            .collect();
        let fit = fit(&cells, 1, 1)?;
        let estimate = fit.level(0)?;
        Some(RepeatedFigure {
            metric: row.key.to_owned(),
            repeats: cells.len() as u32,
            value: estimate.value.exp(),
            ci95: estimate.ci95().map(f64::exp),
            spread_percent: 100.0 * fit.spread,
        })
    };
    compared_in(Compared::Load)
        .filter(|row| row.unit != StatisticUnit::Percent)
        .filter_map(figure)
        .collect()
}

impl Answer for RunConclusion {
    /// All repeats: each has to meet the thresholds.
    fn judged<'a>(&self, trials: &'a [TrialReport]) -> Vec<&'a TrialReport> {
        trials.iter().collect()
    }

    fn meets_bounds(&self, trials: &[TrialReport]) -> bool {
        let good = |t: &TrialReport| t.messages().and_then(|messages| messages.good_percent);
        let is_met =
            |t: &TrialReport| good(t).is_some_and(|percent| percent >= GOOD_STREAMS_PERCENT);
        !trials.is_empty() && trials.iter().all(is_met)
    }

    fn cut_short(&mut self, trial: &TrialReport, _words: String) {
        self.throughput_per_s = trial.throughput_per_s;
        self.p50_ns = trial.response_time_ns.p50;
        self.p95_ns = trial.response_time_ns.p95;
        self.p99_ns = trial.response_time_ns.p99;
        self.error_percent = without_response_percent(trial);
    }
}

/// Share of operations that ended without a response, in percent, from the intervals: those alone
/// are known of a trial that did not end.
fn without_response_percent(trial: &TrialReport) -> f64 {
    let failed: u64 = trial.intervals.iter().map(|i| i.errors).sum();
    match trial.completed + failed {
        0 => 0.0,
        ended => 100.0 * failed as f64 / ended as f64,
    }
}

/// Conclusion of `knee run`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunConclusion {
    /// Responses per second; `None` without any.
    pub throughput_per_s: Option<f64>,
    /// Whether that is a bound, as the generator was the limit.
    #[serde(default, skip_serializing_if = "RateCertainty::is_determined")]
    pub throughput_is: RateCertainty,
    /// Intended operations per second, if the target did not keep up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_per_s: Option<f64>,
    /// Median response time; `None` without observations.
    pub p50_ns: Option<u64>,
    /// 95th percentile of response time; as the others, `None` with too few observations.
    pub p95_ns: Option<u64>,
    /// 99th percentile of response time.
    pub p99_ns: Option<u64>,
    /// Share of operations that were not successful, in percent.
    pub error_percent: f64,
    /// `--repeat`: the figures with intervals from the spread between repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<RepeatedFigure>,
}

/// A figure of a run that was repeated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RepeatedFigure {
    /// `throughput_per_s`, `p50_ns`, `p90_ns`, `p95_ns`, `p99_ns`.
    pub metric: String,
    /// Number of repeats with it: those that are VALID.
    pub repeats: u32,
    /// Geometric mean, with less weight for outlying repeats.
    pub value: f64,
    /// 95 % confidence interval, by Student's law.
    pub ci95: [f64; 2],
    /// Standard deviation between repeats, in percent.
    pub spread_percent: f64,
}
