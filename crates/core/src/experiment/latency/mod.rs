//! `knee latency`: capacity, responsiveness and smoothness of a path under flows.

mod answer;
mod classic;
mod scenarios;
#[cfg(test)]
mod tests;

pub use classic::conclude_classic;
pub use scenarios::{FLOWS_MAX, QUICK, SCENARIOS, SCENARIOS_MAX, parse_scenarios};

use super::verdict::of_pairs;
use super::{Concluded, Experiment, Next};
use crate::analysis::findings::{Scenario, latency_findings};
use crate::analysis::flows::{added_latency_ns, grade_of, median_ping_ns, overall, row};
use crate::report::{
    Conclusion, CongestionRow, LatencyConclusion, ScenarioRow, TrialReport, Verdict,
};
use crate::spec::{FlowTrialSpec, FlowsEnd, Level};
use crate::time::Nanos;

/// What `knee latency` is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyPlan {
    /// What all trials share; label, level, flows, seed and congestion control are set for each.
    pub base: FlowTrialSpec,
    /// Uploads and downloads of each scenario.
    pub scenarios: Vec<(u32, u32)>,
    /// For so long the idle path is looked at first; zero: not at all.
    pub idle: Nanos,
    /// Every scenario is run with each of these, one after the other; `None`: the hosts' default.
    /// None at all is as one `None`.
    pub congestion: Vec<Option<String>>,
}

/// Latency under load as a policy: the idle path, then every scenario in order, with each
/// congestion control. What comes next follows from the plan and the trials alone.
#[derive(Clone, Debug)]
pub struct Latency {
    plan: LatencyPlan,
}

impl Latency {
    /// The experiment that does what `plan` asks for.
    pub fn new(mut plan: LatencyPlan) -> Latency {
        if plan.congestion.is_empty() {
            plan.congestion.push(None);
        }
        Latency { plan }
    }

    /// How many trials there are in all: what a progress line counts.
    pub fn trials(&self) -> usize {
        self.idle_trials() + self.plan.scenarios.len() * self.plan.congestion.len()
    }

    fn idle_trials(&self) -> usize {
        usize::from(self.plan.idle > Nanos::ZERO)
    }

    /// Flows and congestion control of a trial that is a scenario.
    fn scenario(&self, trial: usize) -> Option<((u32, u32), Option<&str>)> {
        let index = trial.checked_sub(self.idle_trials())?;
        let of_one = self.plan.scenarios.len();
        let congestion = self.plan.congestion.get(index.checked_div(of_one)?)?;
        Some((self.plan.scenarios[index % of_one], congestion.as_deref()))
    }

    fn spec(&self, trial: usize) -> Option<FlowTrialSpec> {
        let base = &self.plan.base;
        let idle = trial < self.idle_trials();
        let ((up, down), congestion) = match idle {
            true => ((0, 0), self.plan.congestion[0].as_deref()),
            false => self.scenario(trial)?,
        };
        let several = self.plan.congestion.len() > 1;
        let of = match congestion.filter(|_| several) {
            Some(name) => format!(", {name}"),
            None => String::new(),
        };
        let mut spec = FlowTrialSpec {
            label: match idle {
                true => "idle".to_owned(),
                false => format!("{up} up, {down} down{of}"),
            },
            level: Level::Flows { up, down },
            up,
            down,
            seed: base.seed.wrapping_add(trial as u64),
            ..base.clone()
        };
        spec.sockets.congestion_control = congestion.map(str::to_owned);
        if idle {
            spec.end = FlowsEnd::After(self.plan.idle);
        }
        Some(spec)
    }

    fn rows(&self, past: &[TrialReport]) -> Vec<ScenarioRow> {
        let idle_ns = self.idle(past).and_then(median_ping_ns);
        let each = past.iter().enumerate();
        each.filter_map(|(trial, report)| row(report, idle_ns, self.scenario(trial)?.1))
            .collect()
    }

    fn idle<'a>(&self, past: &'a [TrialReport]) -> Option<&'a TrialReport> {
        past.first().filter(|_| self.idle_trials() > 0)
    }
}

impl Experiment for Latency {
    type Spec = FlowTrialSpec;
    type Trial = TrialReport;

    fn next(&mut self, past: &[TrialReport]) -> Next<FlowTrialSpec> {
        if let Some(reason) = past.last().and_then(gone) {
            return Next::Doomed(reason);
        }
        match self.spec(past.len()) {
            Some(spec) => Next::Run(Box::new(spec)),
            None => Next::Converged,
        }
    }

    fn conclude(&self, past: &[TrialReport]) -> Concluded {
        let rows = self.rows(past);
        let idle = self.idle(past);
        let loaded = &past[past.len().min(self.idle_trials())..];
        let scenarios: Vec<Scenario<'_>> = rows
            .iter()
            .zip(loaded)
            .map(|(row, trial)| Scenario {
                row,
                trial: Some(trial),
            })
            .collect();
        let conclusion = LatencyConclusion {
            min_rtt_ns: idle.and_then(min_rtt_ns),
            idle_ns: idle
                .and_then(|trial| trial.flows.as_ref())
                .map(|flows| flows.tcp.round_trip_ns.clone()),
            ..conclusion(rows.clone(), &self.plan.congestion)
        };
        Concluded {
            verdict: verdict_of(past),
            findings: latency_findings(past, idle, &scenarios),
            conclusion: Conclusion::Latency(LatencyConclusion {
                answer: answer::of(&conclusion),
                ..conclusion
            }),
        }
    }

    fn next_step_if_doomed(&self) -> Option<String> {
        let service = &self.plan.base.service;
        Some(format!(
            "see whether `knee serve bulk` still runs there and nobody else uses it, and try one \
             scenario: knee latency {service} --scenarios 1/0"
        ))
    }
}

/// Why nothing can follow this trial: one that was aborted, unless the service still told at its
/// end what it had spent: then it is there, and a cap on bytes, which the next scenario has again
/// to itself, ended the trial.
pub fn gone(trial: &TrialReport) -> Option<String> {
    let flows = trial.flows.as_ref().filter(|f| f.state == "aborted")?;
    let is_there = flows.cpu_s_per_gib.is_some();
    (!is_there).then(|| format!("{} was aborted: {}", trial.label, flows.reason))
}

/// The overall figures are those of the worst scenario: an invalid one spoils them where its pings
/// took clearly longer than any that can be trusted.
fn verdict_of(past: &[TrialReport]) -> Verdict {
    let longest = |t: &TrialReport| t.flows.as_ref().map_or(0, |f| f.latency_ns_max);
    of_pairs(past.iter().map(|t| (t.verdict, longest(t) as f64)))
}

/// The smallest round trip of any probe on the idle path.
fn min_rtt_ns(idle: &TrialReport) -> Option<u64> {
    let flows = idle.flows.as_ref()?;
    let kinds = [Some(&flows.tcp), flows.udp.as_ref()];
    let some_back = kinds
        .into_iter()
        .flatten()
        .filter(|probes| probes.round_trip_ns.count > probes.lost);
    some_back
        .filter_map(|probes| probes.round_trip_ns.min)
        .min()
}

/// The figures of these scenarios; those of the first congestion control, where there are several.
fn conclusion(rows: Vec<ScenarioRow>, congestion: &[Option<String>]) -> LatencyConclusion {
    let of = |name: &Option<String>| -> Vec<&ScenarioRow> {
        let name = name.as_deref().unwrap_or_default();
        let own = rows.iter().filter(|row| row.congestion_control == name);
        own.collect()
    };
    let first = of(congestion.first().unwrap_or(&None));
    let figures = overall(&first);
    let several = congestion.len() > 1;
    let each = congestion.iter().filter(|_| several);
    LatencyConclusion {
        upload_capacity_kib_per_s: figures.upload_capacity,
        download_capacity_kib_per_s: figures.download_capacity,
        responsiveness_hz: figures.responsiveness_hz,
        smoothness_hz: figures.smoothness_hz,
        grade: grade_of(&first).to_owned(),
        added_latency_ns: added_latency_ns(&first),
        by_congestion_control: each.map(|name| congestion_row(name, &of(name))).collect(),
        scenarios: rows.clone(),
        ..LatencyConclusion::default()
    }
}

fn congestion_row(name: &Option<String>, rows: &[&ScenarioRow]) -> CongestionRow {
    let figures = overall(rows);
    CongestionRow {
        congestion_control: name.clone().unwrap_or_else(|| "default".to_owned()),
        upload_capacity_kib_per_s: figures.upload_capacity,
        download_capacity_kib_per_s: figures.download_capacity,
        responsiveness_hz: figures.responsiveness_hz,
        smoothness_hz: figures.smoothness_hz,
        grade: grade_of(rows).to_owned(),
        added_latency_ns: added_latency_ns(rows),
    }
}
