//! The figures of each agent of a trial, and agents that differ from the others.

use super::evidence::evidence;
use super::validity::{Demand, STALL_NS, broken_clauses};
use crate::words::time;
use knee_load::measure::{AgentMeasured, Trial};
use knee_load::spec::WorkerRange;
use knee_load::stats::sample::batch_means_ci95;

/// The contribution of `agent`, which measured `trial` with the workers of `crew`.
///
/// Whether that alone would be valid is judged by its part of the load. Gaps are no part of that:
/// a schedule that is dealt in turn promises nothing of the gaps of some of its workers.
pub fn agent_measured(agent: &str, crew: WorkerRange, trial: &Trial) -> AgentMeasured {
    let measured = &trial.measurement;
    let mut evidence = evidence(trial);
    evidence.gaps = None;
    evidence.asked = evidence.asked.map(|asked| Demand {
        operations: asked.operations * crew.weight(),
        slack: asked.slack * crew.weight().sqrt(),
    });
    let response = &measured.response;
    let percentile = |q| response.percentile(q).map(|t| t.0);
    let series = &measured.series;
    let means = series.means_ns(0..series.whole_slots(measured.window.length()));
    let window_s = measured.window.length().as_secs_f64();
    AgentMeasured {
        agent: agent.to_owned(),
        share_percent: 100.0 * crew.weight(),
        workers: crew.workers,
        attempted: measured.outcomes.total(),
        completed: measured.outcomes.responses(),
        started_per_s: if window_s > 0.0 {
            measured.started_first() as f64 / window_s
        } else {
            0.0
        },
        p50_ns: percentile(0.5),
        p90_ns: percentile(0.9),
        p99_ns: percentile(0.99),
        mean_ns: (!response.is_empty()).then(|| response.mean_ns()),
        mean_ns_ci95: batch_means_ci95(&means),
        pacing_error_p99_ns: measured.pacing_error.percentile(0.99).map(|t| t.0),
        busiest_worker_percent: trial.generator.busiest_worker_percent,
        steal_percent: trial.generator.steal_percent,
        stall_ns_max: measured.stall_ns_max,
        invalid_because: broken_clauses(&evidence).into_iter().map(|(_, words)| words).collect(),
        ..AgentMeasured::default()
    }
}

/// An agent that is lost: nothing is known of what it measured.
pub fn agent_lost(agent: &str, crew: WorkerRange, because: &str) -> AgentMeasured {
    AgentMeasured {
        agent: agent.to_owned(),
        share_percent: 100.0 * crew.weight(),
        workers: crew.workers,
        lost_because: Some(because.to_owned()),
        ..AgentMeasured::default()
    }
}

/// How an agent did its part of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AgentState<'a> {
    /// As it was to.
    Fine,
    /// Nothing is known of what it measured, for this reason.
    Lost(&'a str),
    /// Its process did not run for this time, in nanoseconds: it was stopped, or its machine was.
    Stopped(u64),
    /// It ran, and distorted its share in this way: its machine is busy, or too small.
    Distorted(&'a str),
}

impl AgentState<'_> {
    /// The state of an agent, in words; empty where it is fine.
    pub fn words(self) -> String {
        match self {
            AgentState::Fine => String::new(),
            AgentState::Lost(why) => format!("lost: {why}"),
            AgentState::Stopped(ns) => format!("stopped: did not run for {}", time(ns as f64)),
            AgentState::Distorted(how) => format!("distorted: {how}"),
        }
    }
}

/// How an agent did its part of a trial.
pub fn agent_state(agent: &AgentMeasured) -> AgentState<'_> {
    match (&agent.lost_because, agent.invalid_because.first()) {
        (Some(why), _) => AgentState::Lost(why),
        (None, _) if agent.stall_ns_max >= STALL_NS => AgentState::Stopped(agent.stall_ns_max),
        (None, Some(how)) => AgentState::Distorted(how),
        (None, None) => AgentState::Fine,
    }
}

/// How far apart agents may have begun: the latest that any began, less the earliest.
pub(super) fn skew_ns_max(agents: &[AgentMeasured]) -> Option<u64> {
    let begun = agents.iter().filter_map(|agent| {
        let late = i64::try_from(agent.begun_late_ns?).ok()?;
        let within = i64::try_from(agent.clock?.uncertainty_ns).ok()?;
        Some((late - within, late + within))
    });
    let begun: Vec<(i64, i64)> = begun.collect();
    let first = begun.iter().map(|b| b.0).min()?;
    let last = begun.iter().map(|b| b.1).max()?;
    u64::try_from(last - first).ok()
}

/// An agent whose figures are not those of the others.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AgentOutlier {
    pub(super) agent: String,
    pub(super) differs: AgentDifference,
}

/// In what it differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AgentDifference {
    /// Its mean response time, and the median of those of the others, in nanoseconds.
    Mean { own_ns: f64, others_ns: f64 },
    /// The share of its operations that failed, and that of all others, in percent.
    Errors { own: f64, others: f64 },
}

impl AgentDifference {
    /// How large the difference is, for a choice among several.
    pub(super) fn weight(&self) -> f64 {
        match self {
            AgentDifference::Mean { own_ns, others_ns } => (own_ns / others_ns).ln().abs(),
            AgentDifference::Errors { own, others } => (own - others).abs(),
        }
    }
}

/// Standard errors by which a mean must differ from the others. With 1,000 agents one in thirty
/// trials exceeds it by chance. …
const CHANCE_Z: f64 = 5.0;
/// … It must also differ by this share, …
const MEAN_SHARE: f64 = 0.2;
/// … and by this time: smaller differences come from the processor that a worker runs on.
const MEAN_NS: f64 = 100_000.0;
/// A share of failures differs by this many percentage points at least.
const ERROR_POINTS: f64 = 1.0;

/// The agent that differs most from the others by more than chance, if any does. It takes three
/// agents to see which one differs.
pub(super) fn outlier(agents: &[AgentMeasured]) -> Option<AgentOutlier> {
    let active: Vec<&AgentMeasured> = agents.iter().filter(|a| a.attempted > 0).collect();
    if active.len() < 3 {
        return None;
    }
    let outliers = active.iter().enumerate().filter_map(|(n, own)| {
        let others = || active.iter().enumerate().filter(move |(m, _)| *m != n).map(|(_, a)| *a);
        let differs = mean_differs(own, others()).or_else(|| errors_differ(own, others()))?;
        Some(AgentOutlier { agent: own.agent.clone(), differs })
    });
    outliers.max_by(|a, b| a.differs.weight().total_cmp(&b.differs.weight()))
}

fn mean_differs<'a>(
    own: &AgentMeasured,
    others: impl Iterator<Item = &'a AgentMeasured>,
) -> Option<AgentDifference> {
    let error = |a: &AgentMeasured| a.mean_ns_ci95.map(|[lo, hi]| (hi - lo) / (2.0 * 1.96));
    let own_ns = own.mean_ns?;
    let mut others: Vec<(f64, f64)> =
        others.filter_map(|a| Some((a.mean_ns?, error(a)?))).collect();
    if others.len() < 2 {
        return None;
    }
    others.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (others_ns, their_error) = others[others.len() / 2];
    let apart = (own_ns - others_ns).abs();
    let chance = CHANCE_Z * error(own)?.hypot(their_error);
    // Unless the others agree among themselves, no single agent differs.
    let spread = others[others.len() - 1].0 - others[0].0;
    let matters = apart > chance.max(MEAN_SHARE * others_ns).max(MEAN_NS) && apart > 2.0 * spread;
    matters.then_some(AgentDifference::Mean { own_ns, others_ns })
}

fn errors_differ<'a>(
    own: &AgentMeasured,
    others: impl Iterator<Item = &'a AgentMeasured>,
) -> Option<AgentDifference> {
    let failed = |a: &AgentMeasured| (a.attempted - a.completed.min(a.attempted)) as f64;
    let (mut failures, mut attempts) = (0.0, 0.0);
    for other in others {
        failures += failed(other);
        attempts += other.attempted as f64;
    }
    let mine = own.attempted as f64;
    let (p, q) = (failed(own) / mine, failures / attempts.max(1.0));
    let pooled = (failed(own) + failures) / (mine + attempts);
    let error = (pooled * (1.0 - pooled) * (1.0 / mine + 1.0 / attempts.max(1.0))).sqrt();
    let matters = p - q > CHANCE_Z * error && 100.0 * (p - q) >= ERROR_POINTS;
    matters.then_some(AgentDifference::Errors { own: 100.0 * p, others: 100.0 * q })
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::measure::AgentClock;

    fn agent(name: &str, mean_us: f64) -> AgentMeasured {
        AgentMeasured {
            agent: name.to_owned(),
            attempted: 1_000,
            completed: 1_000,
            mean_ns: Some(mean_us * 1e3),
            mean_ns_ci95: Some([(mean_us - 10.0) * 1e3, (mean_us + 10.0) * 1e3]),
            ..AgentMeasured::default()
        }
    }

    #[test]
    fn an_agent_on_a_slow_path_is_told_from_chance() {
        let alike = [agent("a", 1000.0), agent("b", 1010.0), agent("c", 990.0)];
        assert_eq!(outlier(&alike), None);
        let mut one = alike.to_vec();
        one.push(agent("slow", 1400.0));
        assert_eq!(outlier(&one).map(|o| o.agent).as_deref(), Some("slow"));
        // As far apart, but each as far from the next: none of them is the other one.
        let spread = [800.0, 1000.0, 1200.0, 1400.0].map(|us| agent("x", us));
        assert_eq!(outlier(&spread), None);
        // Two differ from each other, and nobody knows which is wrong.
        assert_eq!(outlier(&one[2..]), None);
    }

    #[test]
    fn stopped_agent_is_told_from_noisy_and_lost_ones() {
        let mut one = agent("a", 1000.0);
        assert_eq!(agent_state(&one), AgentState::Fine);
        one.stall_ns_max = 99_000_000;
        assert_eq!(agent_state(&one), AgentState::Fine);
        one.invalid_because = vec!["operations started late".to_owned()];
        let noisy = agent_state(&one);
        assert_eq!(noisy.words(), "distorted: operations started late");
        one.stall_ns_max = 3_000_000_000;
        assert_eq!(agent_state(&one).words(), "stopped: did not run for 3 s");
        one.lost_because = Some("no sign of it for 10 s".to_owned());
        assert_eq!(agent_state(&one).words(), "lost: no sign of it for 10 s");
    }

    #[test]
    fn skew_of_agents_adds_lateness_and_clock_uncertainty() {
        let begun = |late, uncertainty_ns| AgentMeasured {
            begun_late_ns: Some(late),
            clock: Some(AgentClock { uncertainty_ns, ..AgentClock::default() }),
            ..AgentMeasured::default()
        };
        let agents = [begun(30_000, 20_000), begun(200_000, 50_000), agent("lost", 1.0)];
        assert_eq!(skew_ns_max(&agents), Some(250_000 - 10_000));
        assert_eq!(skew_ns_max(&agents[2..]), None);
    }

    #[test]
    fn an_agent_whose_operations_fail_is_told() {
        let mut agents = vec![agent("a", 1000.0), agent("b", 1000.0), agent("c", 1000.0)];
        agents[1].completed = 900;
        let differs = outlier(&agents).map(|o| o.differs);
        let [own, others] = [10.0, 0.0];
        assert_eq!(differs, Some(AgentDifference::Errors { own, others }));
        // As many as chance makes of a target that fails for all alike.
        for agent in &mut agents {
            agent.completed = 900;
        }
        agents[0].completed = 885;
        assert_eq!(outlier(&agents), None);
    }
}
