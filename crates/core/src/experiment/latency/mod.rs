//! `knee latency`: capacity, responsiveness and smoothness of a path under flows.
//!
//! # Words
//!
//! - **Level**: a number of flows of each direction at once, until they have **settled**. Then each
//!   flow's mean payload rate is steady, no ping takes longer than all before, and the mean ping is
//!   shown to be level over the later half. One that ends before is **forced**. Options, reports
//!   and this code name it *scenario*.
//! - **Payload rate** (of a flow): payload received over its lifetime; 0 where it was lost before
//!   the end. Options, reports and this code name it *goodput*. **Capacity**: n times the harmonic
//!   mean of the payload rates of n flows, so that unfairness lowers it and a zero carries.
//! - **Smoothness**: 1 / the longest time in which any flow received nothing. **Responsiveness**:
//!   1 / the longest ping. Both in Hz.
//! - **Inside** (a flow): latency from the sender's write to the receiver's read. **Beside** the
//!   flows: latency of pings and probes with connections of their own.
//! - **Held back** (a ping): due and not sent, as this host still held earlier pings of the
//!   connection. It would have measured their wait too. An answer waits likewise at the service,
//!   which reports for how long. The pings around it stand for it: quantiles and mean of pings
//!   count each as often as pings were due nearer to it than to another. So they are of the
//!   measured time, as those of UDP probes are.
//! - **Bufferbloat**: latency added by queues that load fills. It is graded by what the worst
//!   level adds to the median ping of the idle path. (Gettys and Nichols, 2011; steps:
//!   DSLReports)
//! - **Jain's index**: fairness of the payload rates of n flows, from 1/n (one has all) to 1.
//!   (Jain, Chiu, Hawe, 1984)

pub mod analysis;
mod answer;
mod classic;
mod conclusion;
mod distorted;
pub mod findings;
pub mod report;
#[cfg(test)]
mod tests;

pub use classic::{Classic, conclude_classic, parse_classic};
pub use knee_load::experiment::latency::{
    FLOWS_MAX, QUICK, SCENARIOS, SCENARIOS_MAX, parse_scenarios,
};

use super::{Concluded, Experiment, NextTrial};
use crate::experiment::latency::analysis::{BY_PROBE, added_latency_ns, overall, path_grade, row};
use crate::experiment::latency::distorted::ScenarioAttempts;
use crate::experiment::latency::findings::{MeasuredScenario, latency_findings};
use crate::experiment::latency::report::{CongestionRow, LatencyConclusion, ScenarioRow};
use crate::trial::report::{TrialReport, Verdict};
use knee_load::experiment::latency::{LatencyTrialSpec, ScenarioEnd};
use knee_load::spec::Level;
use knee_load::time::Nanos;

/// What `knee latency` is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyPlan {
    /// What all trials share; label, level, flows, seed and congestion control are set for each.
    pub base: LatencyTrialSpec,
    /// Uploads and downloads of each scenario.
    pub scenarios: Vec<(u32, u32)>,
    /// Time for which the idle path is measured first; zero: not at all.
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
    /// The idle path, if it is measured, and the scenarios; each trial sets its seed.
    steps: Vec<LatencyTrialSpec>,
}

impl Latency {
    /// The experiment that does what `plan` asks for.
    pub fn new(mut plan: LatencyPlan) -> Latency {
        if plan.congestion.is_empty() {
            plan.congestion.push(None);
        }
        let step = |label: String, up, down, congestion: &Option<String>| {
            let level = Level::Flows { up, down };
            let mut spec = LatencyTrialSpec { label, level, up, down, ..plan.base.clone() };
            spec.sockets.congestion_control.clone_from(congestion);
            spec
        };
        let mut steps = Vec::new();
        if plan.idle > Nanos::ZERO {
            let idle = step("idle".to_owned(), 0, 0, &plan.congestion[0]);
            steps.push(LatencyTrialSpec { end: ScenarioEnd::After(plan.idle), ..idle });
        }
        let several = plan.congestion.len() > 1;
        for congestion in &plan.congestion {
            let suffix = match congestion {
                Some(name) if several => format!(", {name}"),
                _ => String::new(),
            };
            for &(up, down) in &plan.scenarios {
                steps.push(step(format!("{up} up, {down} down{suffix}"), up, down, congestion));
            }
        }
        Latency { plan, steps }
    }

    /// How many steps there are in all, the idle path's included: what a progress line counts.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }
}

impl Experiment for Latency {
    type Spec = LatencyTrialSpec;
    type Trial = TrialReport;
    type Conclusion = LatencyConclusion;

    fn next(&mut self, past: &[TrialReport]) -> NextTrial<LatencyTrialSpec> {
        if let Some(reason) = past.last().and_then(gone) {
            return NextTrial::Doomed(reason);
        }
        let attempts = ScenarioAttempts::of(past);
        let step = attempts.counting.len() - usize::from(attempts.is_to_repeat);
        self.steps.get(step).map_or(NextTrial::Converged, |spec| {
            let seed = spec.seed.wrapping_add(past.len() as u64);
            NextTrial::Run(Box::new(LatencyTrialSpec { seed, ..spec.clone() }))
        })
    }

    fn conclude(&self, past: &[TrialReport]) -> Concluded<LatencyConclusion> {
        let attempts = ScenarioAttempts::of(past);
        let counting: Vec<&TrialReport> = attempts.counting.iter().map(|&t| &past[t]).collect();
        let idle = counting.first().copied().filter(|_| self.plan.idle > Nanos::ZERO);
        let steps = attempts.counting.iter().zip(&self.steps);
        let scenarios = steps.filter_map(|(&number, step)| {
            let trial = &past[number];
            let row = row(trial, idle, step.sockets.congestion_control.as_deref())?;
            Some(MeasuredScenario { row: ScenarioRow { trial: Some(number), ..row }, trial })
        });
        let scenarios: Vec<MeasuredScenario<'_>> = scenarios.collect();
        let mut findings = latency_findings(&counting, idle, &scenarios);
        let rows = scenarios.into_iter().map(|scenario| scenario.row).collect();
        let mut conclusion = LatencyConclusion {
            min_rtt_ns: idle.and_then(min_rtt_ns),
            idle_ns: idle
                .and_then(|trial| trial.flows())
                .map(|flows| flows.tcp.round_trip_ns.clone()),
            ..conclusion(rows, &self.plan.congestion)
        };
        // The overall figures are of the first congestion control; empty: the hosts' default.
        let first = self.plan.congestion.iter().flatten().next().map_or("", String::as_str);
        distorted::mark_distorted(&mut conclusion, idle, first);
        findings.extend(distorted::rests_on_distorted(&conclusion, &counting));
        findings.extend(attempts.run_again(past));
        conclusion.answer = answer::in_words(&conclusion);
        Concluded {
            // Every scenario is part of a mean, or may be the worst. Findings say which figures are
            // not affected.
            verdict: if counting.iter().any(|t| t.verdict == Verdict::Invalid) {
                Verdict::Invalid
            } else {
                Verdict::Valid
            },
            findings,
            conclusion,
        }
    }

    fn next_step_if_doomed(&self) -> Option<String> {
        let service = &self.plan.base.service;
        Some(format!(
            "see whether `knee serve latency` still runs there and nobody else uses it, and try \
             one scenario: knee latency {service} --scenarios 1/0"
        ))
    }
}

/// Why nothing can follow this trial; only an aborted one can be the last. If the service still
/// reported at its end, it is alive and a cap on bytes ended the trial. The next scenario has that
/// cap again to itself.
pub fn gone(trial: &TrialReport) -> Option<String> {
    let flows = trial.flows().filter(|flows| flows.is_aborted())?;
    let is_there = flows.cpu_s_per_gib.is_some();
    (!is_there).then(|| format!("{} was aborted: {}", trial.label, flows.reason))
}

/// The smallest round trip of any probe on the idle path.
fn min_rtt_ns(idle: &TrialReport) -> Option<u64> {
    let flows = idle.flows()?;
    let kinds = [Some(&flows.tcp), flows.udp.as_ref()];
    kinds
        .into_iter()
        .flatten()
        .filter(|probes| probes.round_trip_ns.count > probes.lost)
        .filter_map(|probes| probes.round_trip_ns.min)
        .min()
}

/// The figures of these scenarios; those of the first congestion control, where there are several.
fn conclusion(rows: Vec<ScenarioRow>, congestion: &[Option<String>]) -> LatencyConclusion {
    let rows_with = |name: &Option<String>| -> Vec<&ScenarioRow> {
        let name = name.as_deref().unwrap_or_default();
        rows.iter().filter(|row| row.congestion_control == name).collect()
    };
    let first = rows_with(congestion.first().unwrap_or(&None));
    let compared = congestion.iter().filter(|_| congestion.len() > 1).map(|name| CongestionRow {
        congestion_control: name.clone().unwrap_or_else(|| "default".to_owned()),
        path: overall(&rows_with(name)),
    });
    LatencyConclusion {
        path: overall(&first),
        udp_grade: path_grade(&first, BY_PROBE).to_owned(),
        udp_added_latency_ns: added_latency_ns(&first, BY_PROBE),
        by_congestion_control: compared.collect(),
        scenarios: rows.clone(),
        ..LatencyConclusion::default()
    }
}
