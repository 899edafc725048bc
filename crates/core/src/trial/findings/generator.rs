//! Findings about the generator, and about a fleet's agents.

use super::TrialGroup;
use crate::finding::{Code, Finding, codes};
use crate::trial::agents::{AgentDifference, AgentState, agent_state, outlier};
use crate::trial::report::{TrialReport, Verdict};
use crate::trial::validity::{Clause, STALL_NS};
use crate::words::{number, percent, time, users};
use knee_load::spec::Level;

/// Little's law says nothing about a window with fewer operations per user than this: those that
/// straddle its ends are too large a part.
const LAW_OPERATIONS: f64 = 20.0;
/// A pause may overshoot by this share of itself, or by this many nanoseconds.
const PAUSE_SHARE: f64 = 0.05;
const PAUSE_NS: f64 = 50_000.0;

codes! {
    GENERATOR_LIMITED = "generator_limited":
        cause "A worker of the generator was busy for 95 % of the time, and the load had to wait \
               for it. The throughput is a lower bound: the target can do at least this.",
        remedy "Give the generator more cores with --threads, run it on another machine than the \
                target, or ask for less.";

    RATE_MAX_REACHED = "rate_max_reached":
        cause "The agents have --rate-max, and more than 1 % of the operations had to wait for \
               it. The throughput is that of the limit, not of the target.",
        remedy "Ask for less: fewer --vusers, a think time, or a --rate below the limit. To offer \
                more, add agents, or start them with a higher --rate-max.";

    GENERATOR_DISTORTED = "generator_distorted":
        cause "The generator did not offer the load that was asked for: it fell behind, stopped, \
               or did not keep the arrival process. The figures are of another load.",
        remedy "Repeat on a quieter or larger machine, or offer less.";

    GENERATOR_STALLED = "generator_stalled":
        cause "The generator did nothing for 100 ms or longer: its process was stopped, or its \
               machine was paused or overloaded. That is a small part of the trial, so the load \
               was the one asked for. In an open loop the operations that were due meanwhile \
               started late and together, and the report has a range for each percentile that \
               they may have changed. In a closed loop the users did nothing meanwhile.",
        remedy "Find what stopped the process: a suspended virtual machine, a quota of processor \
                time in its container, or other programs. A longer trial makes the stall a \
                smaller part of it.";

    FIGURES_UNDETERMINED = "figures_undetermined":
        cause "The generator's own delays may have changed these times by more than 10 % and \
               20 µs. The report has a range in the place of each. All other figures are \
               determined.",
        remedy "Give the generator a processor of its own with taskset, or run it on another \
                machine.";

    GENERATOR_WOKEN = "generator_woken":
        cause "The target is on the generator's host. The generator sleeps between responses, and \
               the target's kernel calls wake it for each of them. That takes the target's time: \
               some microseconds per wake-up on a virtual machine, less on a physical one. A \
               generator that does not sleep can measure a higher throughput.",
        remedy "Give the generator a processor of its own with taskset, and let it poll with \
                --threads 1 --wait spin. Or run it on another host.";

    LITTLES_LAW_VIOLATION = "littles_law_violation":
        cause "In a closed loop the number of users equals throughput times the time of a cycle. \
               Here they differ by more than 2.5 %, so a figure is wrong or the run is too short.",
        remedy "Repeat it for longer: --duration 60s; until the two agree, trust neither the \
                throughput nor the response times of this load.";

    THINK_DEVIATION = "think_deviation":
        cause "Users paused longer than --think asked for, because the generator woke up late.",
        remedy "Wait more precisely: --wait spin, or use fewer users per core.";

    GENERATOR_POLLED = "generator_polled":
        cause "The generator's processor slept, and woke late. The generator's own delay was 10 % \
               or more of the slowest 1 % of the response times, of the median, or of a user's \
               cycle. This process may use another processor, so the generator stopped sleeping. \
               That makes its results more exact.",
        remedy "Nothing is wrong. Use --wait hybrid where the processor is needed for something \
                else.";
    FLEET_INCOMPLETE = "fleet_incomplete":
        cause "An agent of the fleet did not deliver what it measured: it ended, was cut off, or \
               its host failed. Its share of the load is in no figure, and the trial is INVALID.",
        remedy "See why it ended, then repeat; if it was only cut off: knee fleet collect. An \
                agent that was cut off keeps its result, and delivers it once it is back.";

    AGENT_STOPPED = "agent_stopped":
        cause "The process of an agent did not run for 100 ms or longer: it was stopped, or its \
               machine was. Its share of the load was not offered in that time.",
        remedy "Find what stopped its process or its machine, then repeat. It may be SIGSTOP, a \
                suspended virtual machine, or a quota of processor time in its container. An agent \
                that is only slow has another remark in its row.";

    AGENTS_DIFFER = "agents_differ":
        cause "One agent of the fleet measured other response times, or more failures, than the \
               others, by more than chance. Its path to the target is slower, its host is busy, \
               or the target answers it from another place.",
        remedy "Look at its path and its host; leave it out with --agents and compare.";

    RESULTS_KEPT = "results_kept":
        cause "JetStream did not store the result of an agent. The coordinator fetched it from \
               the agent, so nothing is missing. A result is lost, though, if its agent ends \
               before that.",
        remedy "Make room in JetStream: knee fleet clear, or raise max_file_store of nats-server. \
                The account may have limits of its own.";
}

/// Where the generator limits the load, the throughput is a bound of what the target can do.
fn busy_percent(t: &TrialReport) -> Option<(f64, u32)> {
    let g = &t.generator;
    let busy = g.busiest_worker_percent - g.busiest_worker_spin_percent;
    (!t.throughput_is.is_determined()).then_some((busy, g.workers))
}

pub(super) fn generator_limited(trials: &TrialGroup) -> Option<Finding> {
    let (place, (busy, workers)) = trials.worst(busy_percent, |b| b.0)?;
    Some(GENERATOR_LIMITED.warning(
        format!(
            "{place}the generator was the limit: its busiest worker was busy for {} of the time. \
             The target can do at least what was measured",
            percent(busy)
        ),
        [("busiest_worker_percent", busy), ("workers", f64::from(workers))],
        format!(
            "give it more cores: --threads {} where as many are idle, or run it on another machine \
             than the server",
            workers + 1
        ),
    ))
}

pub(super) fn rate_max_reached(trials: &TrialGroup) -> Option<Finding> {
    let limited = |t: &TrialReport| {
        let mut clauses = t.clauses();
        let (_, words) = clauses.find(|(clause, _)| *clause == Some(Clause::RateLimited))?;
        Some((words.to_owned(), t.offered.achieved_per_s))
    };
    let (place, (words, started_per_s)) =
        trials.worst(limited, |(_, started_per_s)| *started_per_s)?;
    Some(RATE_MAX_REACHED.error(
        format!("{place}{words}"),
        [("started_per_s", started_per_s)],
        "ask for less than the limit, add agents, or start them with a higher --rate-max",
    ))
}

/// The next step for a generator that other processes disturb.
pub(crate) const QUIETER: &str = "repeat on a quieter or larger machine";

/// The clauses of INVALID, but for those that a finding of their own reports.
fn distortions(t: &TrialReport) -> Option<Vec<String>> {
    let (limits, others): (Vec<_>, Vec<_>) = t
        .clauses()
        .partition(|(clause, _)| matches!(clause, Some(Clause::AgentLost | Clause::RateLimited)));
    let are_all_reported = others.is_empty() && !limits.is_empty();
    let is_distorted = t.verdict == Verdict::Invalid && !are_all_reported;
    is_distorted.then(|| others.into_iter().map(|(_, text)| text.to_owned()).collect())
}

pub(super) fn generator_distorted(trials: &TrialGroup) -> Option<Finding> {
    let (place, by_trial) = trials.results(distortions)?;
    let mut clauses: Vec<String> = Vec::new();
    for clause in by_trial.into_iter().flatten() {
        if !clauses.contains(&clause) {
            clauses.push(clause);
        }
    }
    Some(distorted(&place, &clauses, trials.context.lighter))
}

/// The generator distorted the load in these ways. `lighter` ends the next step: `, or …` with the
/// options that ask less of the generator, or nothing where there are none.
pub(crate) fn distorted(place: &str, clauses: &[String], lighter: &str) -> Finding {
    GENERATOR_DISTORTED.error(
        format!("{place}the generator distorted the load: {}", clauses.join("; ")),
        [("clauses", clauses.len() as f64)],
        format!("{QUIETER}{lighter}"),
    )
}

pub(super) fn figures_undetermined(trials: &TrialGroup) -> Option<Finding> {
    let undetermined = |t: &TrialReport| {
        let times = &t.response_time_ns;
        let because = &times.ranges.values().next()?.because;
        Some((times.undetermined().collect::<Vec<_>>().join(", "), because.clone()))
    };
    let (place, (names, because)) = trials.first(undetermined)?;
    Some(FIGURES_UNDETERMINED.warning(
        format!("{place}known as a range only: {names}; {because}"),
        [],
        FIGURES_UNDETERMINED.step(),
    ))
}

pub(super) fn generator_stalled(trials: &TrialGroup) -> Option<Finding> {
    let stalled = |t: &TrialReport| {
        let late_ns = match t.level {
            Level::Vusers(_) => t.offered.stall_ns_max,
            _ => t.offered.pacing_error_ns.max?,
        };
        (late_ns >= STALL_NS && !t.breaks(Clause::Stalled)).then_some((late_ns, t.duration_ns))
    };
    let (place, (late_ns, window_ns)) = trials.worst(stalled, |(late_ns, _)| *late_ns as f64)?;
    let share = 100.0 * late_ns as f64 / window_ns.max(1) as f64;
    Some(GENERATOR_STALLED.warning(
        format!(
            "{place}the generator stalled for {}, {} of the time",
            time(late_ns as f64),
            percent(share)
        ),
        [("stalled_ns", late_ns as f64), ("stalled_percent", share)],
        QUIETER,
    ))
}

/// Least number of users that keep a worker busy if the target answers at once. A worker that
/// sleeps nevertheless is woken for each response.
const WOKEN_USERS: u32 = 16;
/// Wake-ups per response, and per second, that are worth a word.
const WOKEN_PER_RESPONSE: f64 = 0.1;
const WOKEN_PER_S: f64 = 5_000.0;

pub(super) fn generator_woken(trials: &TrialGroup) -> Option<Finding> {
    let woken = |t: &TrialReport| {
        let per_s = t.generator.woken_by_target_per_s?;
        let has_users = matches!(t.level, Level::Vusers(users) if users >= WOKEN_USERS);
        let per_response = per_s / t.throughput_per_s?;
        let is_much = per_s >= WOKEN_PER_S && per_response >= WOKEN_PER_RESPONSE;
        (has_users && is_much).then_some((per_s, per_response))
    };
    let (place, (per_s, per_response)) = trials.worst(woken, |woken| woken.0)?;
    Some(GENERATOR_WOKEN.info(
        format!(
            "{place}the target, which is on this host, woke the generator {} times per second, {} \
             times per response. That takes the target's time: throughput may be higher with a \
             generator that polls",
            number(per_s),
            number(per_response)
        ),
        [("woken_by_target_per_s", per_s), ("woken_per_response", per_response)],
        "compare with a generator that polls: --threads 1 --wait spin, on a processor that taskset \
         keeps for it",
    ))
}

pub(super) fn littles_law(trials: &TrialGroup) -> Option<Finding> {
    let violated = |t: &TrialReport| {
        let http = t.http()?;
        let law = http.littles_law.as_ref().filter(|law| !law.ok)?;
        // Users who hang are in N and not in X·R: that is a finding of its own.
        let counts = http.silence.hung == 0 && t.completed as f64 >= LAW_OPERATIONS * law.n;
        counts.then(|| law.clone())
    };
    let (place, law) = trials.first(violated)?;
    let apart = law.deviation_percent.abs();
    Some(LITTLES_LAW_VIOLATION.error(
        format!(
            "{place}the numbers contradict each other: {} were running, but throughput times \
             response time accounts for {} ({} apart)",
            users(law.n),
            number(law.x_times_r),
            percent(apart)
        ),
        [("n", law.n), ("x_times_r", law.x_times_r), ("deviation_percent", apart)],
        LITTLES_LAW_VIOLATION.step(),
    ))
}

pub(super) fn generator_polled(trials: &TrialGroup) -> Option<Finding> {
    let polled = |t: &TrialReport| {
        let wait = t.generator.wait.clone()?;
        (wait.polling_percent > 0.0).then_some(wait)
    };
    let (place, wait) = trials.worst(polled, |wait| wait.polling_percent)?;
    let late_ns = wait.lateness_ns.p99.or(wait.lateness_ns.max);
    let because = late_ns.map_or(String::new(), |ns| {
        format!(", because its sleeps ended late (p99 {})", time(ns as f64))
    });
    let share = percent(wait.polling_percent);
    let mut evidence = vec![
        ("polling_percent", wait.polling_percent),
        ("spun_percent", wait.spun_percent),
        ("changes", wait.changes.len() as f64),
    ];
    evidence.extend(late_ns.map(|ns| ("lateness_p99_ns", ns as f64)));
    Some(GENERATOR_POLLED.info(
        format!("{place}the generator polled all the time for {share} of the trial{because}"),
        evidence,
        "nothing, or use --wait hybrid where the processor is needed for something else",
    ))
}

/// The pause asked for follows from Little's law as reported, Z = X·(R + Z)/X − R; how far it
/// overshot is the pacing error, started − intended.
fn overshoot(t: &TrialReport) -> Option<[f64; 2]> {
    let law = t.http()?.littles_law.as_ref()?;
    let cycle_ns = 1e9 * law.x_times_r / t.throughput_per_s?;
    let asked_ns = cycle_ns - t.response_time_ns.mean? as f64;
    let overshoot_ns = t.offered.pacing_error_ns.p50? as f64;
    let deviates = overshoot_ns > PAUSE_NS && overshoot_ns > PAUSE_SHARE * asked_ns;
    (deviates && asked_ns > 0.01 * cycle_ns).then_some([asked_ns, overshoot_ns])
}

pub(super) fn think_deviation(trials: &TrialGroup) -> Option<Finding> {
    let (place, [asked_ns, overshoot_ns]) = trials.first(overshoot)?;
    Some(THINK_DEVIATION.warning(
        format!(
            "{place}users paused {} where {} were asked for",
            time(asked_ns + overshoot_ns),
            time(asked_ns)
        ),
        [("asked_ns", asked_ns), ("overshoot_ns", overshoot_ns)],
        THINK_DEVIATION.step(),
    ))
}

/// Codes of the state of an agent, which do not depend on its trial.
pub(super) const STATE_CODES: &[Code] = &[AGENT_STOPPED, RESULTS_KEPT];

pub(super) fn fleet_incomplete(trials: &TrialGroup) -> Option<Finding> {
    let lost = |t: &TrialReport| {
        let agents = &t.http()?.agents;
        let mut lost = agents.iter().filter_map(|a| Some((a, a.lost_because.as_ref()?)));
        let (first, because) = lost.next()?;
        Some((first.agent.clone(), because.clone(), 1 + lost.count(), agents.len()))
    };
    let (place, (agent, because, lost, agents)) = trials.worst(lost, |l| l.2 as f64)?;
    let others = match lost {
        1 => String::new(),
        n => format!(", and {} other agents", n - 1),
    };
    Some(FLEET_INCOMPLETE.error(
        format!(
            "{place}agent {agent} is lost{others}: {because}. The figures are those of the other \
             agents"
        ),
        [("lost", lost as f64), ("agents", agents as f64)],
        FLEET_INCOMPLETE.step(),
    ))
}

pub(super) fn agent_stopped(trials: &TrialGroup) -> Option<Finding> {
    let stopped = |t: &TrialReport| {
        let agents = t.http()?.agents.iter();
        let states = agents.filter_map(|a| match agent_state(a) {
            AgentState::Stopped(ns) => Some((a.agent.clone(), ns)),
            _ => None,
        });
        states.max_by_key(|(_, ns)| *ns)
    };
    let (place, (agent, ns)) = trials.worst(stopped, |(_, ns)| *ns as f64)?;
    Some(AGENT_STOPPED.warning(
        format!("{place}agent {agent} was stopped: it did not run for {}", time(ns as f64)),
        [("stopped_ns", ns as f64)],
        AGENT_STOPPED.step(),
    ))
}

pub(super) fn results_kept(trials: &TrialGroup) -> Option<Finding> {
    let kept = |t: &TrialReport| {
        let agents = &t.http()?.agents;
        let mut kept = agents.iter().filter_map(|a| Some((a, a.kept_because.as_ref()?)));
        let (first, because) = kept.next()?;
        Some((first.agent.clone(), because.clone(), 1 + kept.count()))
    };
    let (place, (agent, because, count)) = trials.worst(kept, |k| k.2 as f64)?;
    Some(RESULTS_KEPT.warning(
        format!("{place}the result of agent {agent} was fetched from it: {because}"),
        [("agents", count as f64)],
        RESULTS_KEPT.step(),
    ))
}

pub(super) fn agents_differ(trials: &TrialGroup) -> Option<Finding> {
    let (place, outlier) =
        trials.worst(|t| outlier(&t.http()?.agents), |outlier| outlier.differs.weight())?;
    let (what, evidence) = match outlier.differs {
        AgentDifference::Mean { own_ns, others_ns } => (
            format!(
                "its mean response time is {}, that of the others {}",
                time(own_ns),
                time(others_ns)
            ),
            [("own_mean_ns", own_ns), ("others_mean_ns", others_ns)],
        ),
        AgentDifference::Errors { own, others } => (
            format!(
                "{} of its operations failed, {} of the others'",
                percent(own),
                percent(others)
            ),
            [("own_error_percent", own), ("others_error_percent", others)],
        ),
    };
    Some(AGENTS_DIFFER.warning(
        format!("{place}agent {} differs from the others: {what}", outlier.agent),
        evidence,
        AGENTS_DIFFER.step(),
    ))
}
