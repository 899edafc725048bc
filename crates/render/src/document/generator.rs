//! The load generator in a trial: its cost, its waiting, its kernel counters, and how well it kept
//! to its schedule. Each agent of a fleet has a row.

use super::line::{Ink, Line};
use super::table::{Table, TableOf};
use super::{Block, Document, Fact, fact};
use crate::number::{
    MISSING, bytes, count, estimate, known, number, percent, plural, rate, signed_count, time,
    time_short,
};
use knee_core::trial::agents::{AgentState, agent_state};
use knee_core::trial::offered::OfferedReport;
use knee_core::trial::report::{GeneratorReport, TrialReport};
use knee_core::trial::times::QuantilesReport;
use knee_core::trial::waiting::WaitReport;
use knee_load::measure::AgentMeasured;
use knee_load::spec::WaitPolicy;
use knee_load::stats::gaps::Dispersion;
use std::cmp::Reverse;

/// The least share of time without a processor that is shown, in percent.
const WAITING_SHOWN_PERCENT: f64 = 1.0;

/// Adds the cost of the load, and the kernel counters that changed.
pub(super) fn show(doc: &mut Document, t: &TrialReport) {
    let workers = plural(u64::from(t.generator.workers), "worker");
    doc.section("Generator", format!("{workers}, {}", t.generator.backend));
    doc.facts(generator_facts(&t.generator));
    if !t.kernel.is_empty() {
        let counters = plural(t.kernel.len() as u64, "counter");
        let rows: Vec<(&String, &i64)> = t.kernel.iter().collect();
        let mut table = TableOf::new(&rows);
        table.left("", |(name, _)| name.as_str());
        table.right("", |(_, n)| signed_count(**n));
        let table = Block::Table("Kernel counters".to_owned(), table.done());
        let title = format!("Kernel: {counters} that moved");
        doc.push(Block::Folded(title, vec![table]));
    }
}

fn generator_facts(g: &GeneratorReport) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(per_million) = g.cpu_s_per_million_ops {
        let mut text = format!("{} s", estimate(per_million));
        if let Some(user) = g.cpu_user_s_per_million_ops {
            text += &format!(", of it user {} s", estimate(user));
        }
        facts.push(fact("CPU per million operations", text));
    }
    let (user, system) = (estimate(g.cpu_user_s), estimate(g.cpu_system_s));
    facts.push(fact("CPU", format!("{user} s user, {system} s system")));
    facts.push(fact("busiest worker", busiest(g)));
    facts.extend(g.wait.as_ref().map(|w| fact("waiting", waiting(w))));
    facts.extend(g.woken_by_target_per_s.map(|woken| {
        let words = format!("{}/s, by the target on this host", estimate(woken));
        fact("woken from sleep", words)
    }));
    facts.push(fact("stolen by the host", known(g.steal_percent, percent)));
    facts.push(fact("peak memory", bytes(g.peak_rss_bytes)));
    facts
}

fn busiest(g: &GeneratorReport) -> String {
    let mut text = format!("{} of a core", percent(g.busiest_worker_percent));
    if g.busiest_worker_spin_percent > 0.0 {
        let spin = percent(g.busiest_worker_spin_percent);
        text += &format!(", {spin} polling for deadlines");
    }
    if g.busiest_worker_waiting_percent >= WAITING_SHOWN_PERCENT {
        let waiting = percent(g.busiest_worker_waiting_percent);
        text += &format!("; others had it for {waiting}");
    }
    text
}

/// The way of waiting, and the lateness of wake-ups.
fn waiting(wait: &WaitReport) -> String {
    let mut text = match wait.policy {
        WaitPolicy::Auto if wait.polling_percent > 0.0 => format!(
            "auto: polled all the time for {} of the trial ({})",
            percent(wait.polling_percent),
            plural(wait.changes.len() as u64, "change")
        ),
        WaitPolicy::Auto => "auto: slept, then polled".to_owned(),
        WaitPolicy::Hybrid => "hybrid".to_owned(),
        WaitPolicy::Sleep => "sleep".to_owned(),
        WaitPolicy::Spin => "spin".to_owned(),
    };
    if wait.realtime_percent > 0.0 {
        let share = percent(wait.realtime_percent);
        text += &format!("; real-time priority for {share}");
    }
    let late = &wait.lateness_ns;
    if let (Some(p50), Some(p99)) = (late.p50, late.p99) {
        let [p50, p99] = [p50, p99].map(time);
        text += &format!("; wake-ups late: p50 {p50}, p99 {p99}");
    }
    text
}

/// Pacing error, if there was a schedule.
pub(super) fn pacing_facts(o: &OfferedReport) -> Option<Fact> {
    let is_paced = o.asked_per_s.is_some() || o.pacing_error_ns.max > Some(0);
    is_paced.then(|| fact("pacing error", quantiles(&o.pacing_error_ns)))
}

/// The longest stall, if any.
pub(super) fn stall_facts(o: &OfferedReport) -> Option<Fact> {
    (o.stall_ns_max > 0).then(|| fact("longest stall", time_short(o.stall_ns_max)))
}

/// Statistics of the gaps between starts or arrivals.
pub(super) fn gap_facts(o: &OfferedReport) -> Vec<Fact> {
    let mut facts = Vec::new();
    let cv = o.gap_cv.map(|cv| format!("coefficient of variation {}", number(cv)));
    let asked_cv = o.recorded.as_ref().and_then(|recorded| recorded.gap_cv);
    let asked_cv = asked_cv.map(|cv| format!("asked {}", number(cv)));
    let ks = o.ks_p_value.map(|p| format!("Kolmogorov-Smirnov p {}", number(p)));
    let gaps: Vec<String> = cv.into_iter().chain(asked_cv).chain(ks).collect();
    if !gaps.is_empty() {
        facts.push(fact("gaps", gaps.join(", ")));
    }
    let asked = o.recorded.as_ref().map(|recorded| &recorded.dispersion);
    for (name, dispersion) in [("dispersion", o.dispersion.as_ref()), ("dispersion asked", asked)] {
        let Dispersion { ms1, ms10, ms100, s1 } = dispersion.cloned().unwrap_or_default();
        let scales = [("1 ms", ms1), ("10 ms", ms10), ("100 ms", ms100), ("1 s", s1)];
        let known = scales.into_iter().filter_map(|(t, d)| Some(format!("{} in {t}", number(d?))));
        let known: Vec<String> = known.collect();
        if !known.is_empty() {
            facts.push(fact(name, known.join(", ")));
        }
    }
    facts
}

/// The percentiles in a line.
pub(super) fn quantiles(q: &QuantilesReport) -> String {
    let named = [("p50", q.p50), ("p99", q.p99), ("p99.9", q.p999), ("max", q.max)];
    named.map(|(name, ns)| format!("{name} {}", known(ns, time_short))).join(", ")
}

/// Largest number of agents that are all shown. Of more, those that did not do their part, …
const AGENTS_SHOWN: usize = 12;
/// … up to this many, …
const OFF_SHOWN: usize = 50;
/// … and this many of the slowest and of the fastest of the others.
const EXTREMES_SHOWN: usize = 4;

/// Adds the agents of a trial that a fleet made. `label` names the trial among several.
pub(super) fn show_agents(doc: &mut Document, trial: &TrialReport, label: &str) {
    let Some(http) = trial.http().filter(|http| !http.agents.is_empty()) else {
        return;
    };
    let agents = &http.agents;
    let number = plural(agents.len() as u64, "agent");
    let mut remark = match label {
        "" => format!("{number} made the load together"),
        label => format!("{label} made by {number}"),
    };
    if let Some(skew_ns) = http.agents_skew_ns_max {
        remark += &format!(", begun within {} of each other", time_short(skew_ns));
    }
    doc.section("Agents", remark);
    let is_ahead =
        |a: &&AgentMeasured| a.clock.is_some_and(|c| c.agrees_with_chrony == Some(false));
    let ahead: Vec<&str> = agents.iter().filter(is_ahead).map(|a| a.agent.as_str()).collect();
    if let Some(first) = ahead.first() {
        let who = match ahead.len() {
            1..=AGENTS_SHOWN => ahead.join(", "),
            n => format!("{first} and {} other agents", n - 1),
        };
        doc.note(format!(
            "The time of day of {who} is further from the coordinator's than chrony permits. The \
             beginning does not depend on it."
        ));
    }
    let (fine, off): (Vec<&AgentMeasured>, Vec<_>) =
        agents.iter().partition(|a| agent_state(a) == AgentState::Fine);
    if agents.len() <= AGENTS_SHOWN {
        doc.table("Agents", agents_table(&[off, fine].concat()));
        return;
    }
    if !off.is_empty() {
        let shown = &off[..off.len().min(OFF_SHOWN)];
        doc.table("Agents that did not do their part", agents_table(shown));
    }
    let mut by_p99 = fine;
    by_p99.sort_by_key(|a| Reverse(a.p99_ns));
    let extremes = by_p99.len().min(EXTREMES_SHOWN);
    doc.table("The slowest", agents_table(&by_p99[..extremes]));
    doc.table("The fastest", agents_table(&by_p99[by_p99.len() - extremes..]));
    doc.note(format!("The JSON has all {}.", count(agents.len() as u64)));
}

/// Adds the agents of the trial with the highest throughput, and each agent of the other trials
/// that was lost, stopped or distorted its share.
pub(super) fn show_agents_of_levels(doc: &mut Document, trials: &[TrialReport]) {
    let throughput = |trial: &&TrialReport| trial.responses_per_s();
    let busiest = trials.iter();
    if let Some(trial) = busiest.max_by(|a, b| throughput(a).total_cmp(&throughput(b))) {
        show_agents(doc, trial, &trial.label);
    }
    let rows = trials.iter().flat_map(|trial| {
        let agents = trial.http().map(|http| http.agents.as_slice());
        agents.unwrap_or_default().iter().map(move |a| (trial, a))
    });
    let rows = rows.filter(|(_, a)| agent_state(a) != AgentState::Fine);
    let rows: Vec<(&TrialReport, &AgentMeasured)> = rows.collect();
    if rows.is_empty() {
        return;
    }
    let shown = &rows[..rows.len().min(OFF_SHOWN)];
    let mut table = TableOf::new(shown);
    table.left("level", |(trial, _)| trial.label.as_str());
    table.left("agent", |(_, agent)| agent.agent.as_str());
    table.left("state", |(_, agent)| state_line(agent));
    doc.table("Agents that did not do their part", table.done());
    if shown.len() < rows.len() {
        doc.note(format!("The JSON has all {}.", count(rows.len() as u64)));
    }
}

fn agents_table(agents: &[&AgentMeasured]) -> Table {
    // Nothing is known of a lost agent.
    fn unless_lost(agent: &AgentMeasured, figure: impl Fn() -> String) -> String {
        match agent.lost_because {
            Some(_) => MISSING.to_owned(),
            None => figure(),
        }
    }
    let mut table = TableOf::new(agents);
    table.left("", |a| a.agent.as_str());
    table.right("share", |a| percent(a.share_percent));
    table.right("workers", |a| count(a.workers.into()));
    table.right("started", |a| unless_lost(a, || rate(a.started_per_s)));
    table.right("errors", |a| match a.attempted - a.completed.min(a.attempted) {
        0 => Line::plain(unless_lost(a, || count(0))),
        n => Line::of(Ink::Bad, count(n)),
    });
    let time = |a: &AgentMeasured, ns| unless_lost(a, || known(ns, time_short));
    table.right("p50", |a| time(a, a.p50_ns));
    table.right("p99", |a| time(a, a.p99_ns));
    table.right("started late, p99", |a| time(a, a.pacing_error_p99_ns));
    table.right("busiest core", |a| unless_lost(a, || percent(a.busiest_worker_percent)));
    let within = |ns: u64| format!("± {}", time_short(ns));
    table.right("began within", |a| known(a.clock, |clock| within(clock.uncertainty_ns)));
    table.left("", |a| state_line(a));
    table.done()
}

fn state_line(agent: &AgentMeasured) -> Line {
    let state = agent_state(agent);
    let ink = match state {
        AgentState::Fine => return Line::default(),
        AgentState::Lost(_) | AgentState::Stopped(_) => Ink::Bad,
        AgentState::Distorted(_) => Ink::Warn,
    };
    Line::of(ink, state.words())
}
