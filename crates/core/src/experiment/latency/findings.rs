//! Findings about flows and the latency under them: what becomes of single flows, and of the two
//! directions. Of several scenarios they are about the worst.

mod queues;
#[cfg(test)]
mod tests;

use super::report::ScenarioRow;
use super::{classic, distorted};
use crate::experiment::latency::analysis::harmonic_mean;
use crate::finding::{Code, Finding, codes};
use crate::trial::detail::{FlowReport, FlowsReport};
use crate::trial::findings::{FindingContext, GENERATOR_DISTORTED, findings_at_levels};
use crate::trial::report::TrialReport;
use crate::words::{exact, levels, number, percent, time};
use knee_load::measure::Direction;
use knee_load::spec::Level;

/// All kinds of findings of `knee latency`.
pub(super) fn codes() -> Vec<Code> {
    [CODES, queues::CODES, classic::CODES, distorted::CODES].concat()
}

/// A scenario with the trial that counts.
#[derive(Clone, Debug)]
pub(super) struct MeasuredScenario<'a> {
    pub row: ScenarioRow,
    pub trial: &'a TrialReport,
}

impl<'a> MeasuredScenario<'a> {
    fn flows(&self) -> Option<&'a FlowsReport> {
        self.trial.flows()
    }
}

/// What a person should know about these scenarios. `past` are all trials that count, the idle
/// path's included.
pub(super) fn latency_findings(
    past: &[&TrialReport],
    idle: Option<&TrialReport>,
    scenarios: &[MeasuredScenario<'_>],
) -> Vec<Finding> {
    let diagnosis = LatencyDiagnosis { idle, scenarios };
    let mut findings = distorted(past);
    findings.extend(diagnosis.killed());
    findings.extend(diagnosis.bloated());
    findings.extend(diagnosis.probes_disagree());
    findings.extend(diagnosis.hides_bloat());
    findings.extend(diagnosis.may_hide_bloat());
    findings.extend(diagnosis.starved());
    findings.extend(diagnosis.unfair());
    findings.extend(diagnosis.asymmetric());
    findings.extend(diagnosis.not_settled());
    findings
}

/// The findings of any trial that are about the pinger, with the options that matter to it. A ping
/// that does not come back is no failure here: it is a long latency.
fn distorted(past: &[&TrialReport]) -> Vec<Finding> {
    let context = FindingContext {
        lighter: ", or with fewer flows: --scenarios 1/1,4/4",
        ..FindingContext::default()
    };
    let mut findings = findings_at_levels(past, context);
    findings.retain(|f| f.is(GENERATOR_DISTORTED));
    findings
}

/// Input of the findings.
struct LatencyDiagnosis<'a> {
    idle: Option<&'a TrialReport>,
    scenarios: &'a [MeasuredScenario<'a>],
}

impl LatencyDiagnosis<'_> {
    /// `1 upload and 31 downloads (cubic)`: the congestion control where there are several.
    fn name(&self, row: &ScenarioRow) -> String {
        let flows = row.flows_in_words();
        let congestion = &row.congestion_control;
        let several = || self.scenarios.iter().any(|s| s.row.congestion_control != *congestion);
        if !congestion.is_empty() && several() { format!("{flows} ({congestion})") } else { flows }
    }
}

/// Evidence for a finding about one scenario: its flows, and more.
fn evidence<const N: usize>(
    row: &ScenarioRow,
    more: [(&'static str, f64); N],
) -> impl IntoIterator<Item = (&'static str, f64)> {
    [("up", f64::from(row.up)), ("down", f64::from(row.down))].into_iter().chain(more)
}

fn noun(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "upload",
        Direction::Down => "download",
    }
}

codes! {
    FLOW_KILLED = "flow_killed":
        cause "A TCP flow ended before its scenario did, for example with a reset. A firewall, a \
               NAT or the service closed its connection.",
        remedy "Find out what closed the connection, then repeat the scenario. Until then the \
                capacity of that direction and flow smoothness are 0.";
    STARVED_FLOW = "starved_flow":
        cause "A flow gets less than a tenth of the mean of its direction, or nothing at all. \
               The bottleneck or the congestion controls share the path badly.",
        remedy "Check with a longer run whether it lasts. A queue per flow at the bottleneck \
                (cake or fq_codel) shares evenly.";
    UNFAIR = "unfair":
        cause "Flows of one direction get very different goodput: Jain's index is below 0.8. \
               Flows that start later or lose more segments often get less.",
        remedy "Check with a longer run whether it lasts. A queue per flow at the bottleneck \
                (cake or fq_codel) shares evenly.";
    ASYMMETRIC = "asymmetric":
        cause "One direction carries at least twice as much as the other, in scenarios that \
               mirror each other. Many access links are built like this.",
        remedy "Nothing is wrong. Compare each direction only with itself.";
    NOT_SETTLED = "not_settled":
        cause "The goodput or the latency of some scenarios still changed when their time was \
               over. With many flows, long round trips or long queues it takes longer to settle.",
        remedy "Leave --duration out or raise --scenario-limit. --settle accepts a larger change \
                of goodput.";
}

/// A time within which most scenarios settle, in seconds.
const SETTLES_WITHIN_S: f64 = 60.0;

/// A flow starves below this share of what it would have if all had the same.
const STARVED_SHARE: f64 = 0.1;
/// Flows are unfair to each other where Jain's index is below this: with two, from 1 : 3 on.
const UNFAIR_INDEX: f64 = 0.8;
/// Directions differ from this factor on.
const ASYMMETRIC_FACTOR: f64 = 2.0;

/// Whether its flows were carried to the end that they were to have, and measured.
fn is_clean(row: &ScenarioRow) -> bool {
    row.state != "aborted" && !row.distorted && row.flows.iter().all(|flow| flow.lost.is_empty())
}

impl LatencyDiagnosis<'_> {
    /// One for each scenario that lost flows: the first of them.
    fn killed(&self) -> Vec<Finding> {
        let killed = self.scenarios.iter().filter_map(|scenario| {
            let lost = || {
                let flows = scenario.flows()?.flows.iter();
                Some(flows.filter_map(|f| Some((f.lost_at_ns?, f))))
            };
            let (lost_ns, first) = lost()?.min_by_key(|(at, _)| *at)?;
            let lost_flows = lost()?.count();
            let others = match lost_flows - 1 {
                0 => String::new(),
                1 => "; 1 more flow was lost later".to_owned(),
                n => format!("; {} more flows were lost later", exact(n as f64)),
            };
            let row = &scenario.row;
            Some(FLOW_KILLED.warning(
                format!(
                    "{} of {} was lost after {}: {}{others}; a lost flow counts as 0, so that {} \
                     capacity and flow smoothness are 0 over all scenarios",
                    name(first),
                    self.name(row),
                    time(lost_ns as f64),
                    first.lost_because.as_deref().unwrap_or_default(),
                    noun(first.direction)
                ),
                evidence(
                    row,
                    [
                        ("flow", f64::from(first.number)),
                        ("lost_at_ns", lost_ns as f64),
                        ("flows_lost", lost_flows as f64),
                    ],
                ),
                format!(
                    "find out what ended it, such as a limit of a firewall or NAT, or a stopped \
                     service; then repeat: --scenarios {}/{}",
                    row.up, row.down
                ),
            ))
        });
        killed.collect()
    }

    /// A single flow that gets nothing starves too. One that was lost is another finding.
    fn starved(&self) -> Option<Finding> {
        let directions = self.directions();
        let starved = directions.iter().flat_map(|(row, flows)| {
            let fair = mean(flows);
            let share = move |f: &FlowReport| {
                if fair > 0.0 { f.goodput_kib_per_s / fair } else { 0.0 }
            };
            flows
                .iter()
                .filter(move |f| f.lost_at_ns.is_none() && share(f) < STARVED_SHARE)
                .map(move |f| (*row, *f, fair, share(f)))
        });
        let (row, flow, fair, share) = starved.min_by(|a, b| a.3.total_cmp(&b.3))?;
        let goodput = flow.goodput_kib_per_s;
        let (name, at) = (name(flow), self.name(row));
        Some(STARVED_FLOW.warning(
            if fair > 0.0 {
                format!(
                    "{name} of {at} starves: it gets {} KiB/s, {} of its direction's mean of {} \
                     KiB/s",
                    number(goodput),
                    percent(100.0 * share),
                    number(fair)
                )
            } else {
                format!(
                    "{name} of {at} carried no data ({} KiB/s), which makes capacity and \
                     smoothness 0",
                    number(goodput)
                )
            },
            evidence(
                row,
                [
                    ("flow", f64::from(flow.number)),
                    ("goodput_kib_per_s", goodput),
                    ("fair_kib_per_s", fair),
                ],
            ),
            share_evenly(row),
        ))
    }

    fn unfair(&self) -> Option<Finding> {
        let directions = self.directions();
        let unfair = directions.iter().filter_map(|(row, flows)| {
            // What a lost flow does to the index is no unfairness.
            let whole = flows.len() > 1 && flows.iter().all(|f| f.lost_at_ns.is_none());
            let index = match flows.first()?.direction {
                Direction::Up => row.up_jain_index,
                Direction::Down => row.down_jain_index,
            }?;
            (whole && index < UNFAIR_INDEX).then_some((row, flows, index))
        });
        let (row, flows, jain_index) = unfair.min_by(|a, b| a.2.total_cmp(&b.2))?;
        let goodputs = || flows.iter().map(|f| f.goodput_kib_per_s);
        let least = goodputs().fold(f64::INFINITY, f64::min);
        let most = goodputs().fold(0.0, f64::max);
        Some(UNFAIR.warning(
            format!(
                "with {} the {}s share the path unfairly: each gets {} to {} KiB/s; Jain's index \
                 is {} (1 is fair, {} is one flow alone)",
                self.name(row),
                noun(flows[0].direction),
                number(least),
                number(most),
                number(jain_index),
                number(1.0 / flows.len() as f64)
            ),
            evidence(
                row,
                [("jain_index", jain_index), ("least_kib_per_s", least), ("most_kib_per_s", most)],
            ),
            share_evenly(row),
        ))
    }

    /// The flows of each direction of each scenario that has some.
    fn directions(&self) -> Vec<(&ScenarioRow, Vec<&FlowReport>)> {
        let mut directions = Vec::new();
        for scenario in self.scenarios {
            let Some(report) = scenario.flows().filter(|flows| flows.has_begun()) else {
                continue;
            };
            for direction in [Direction::Up, Direction::Down] {
                let flows: Vec<&FlowReport> =
                    report.flows.iter().filter(|f| f.direction == direction).collect();
                if !flows.is_empty() {
                    directions.push((&scenario.row, flows));
                }
            }
        }
        directions
    }

    /// Only scenarios that mirror each other are compared, as one upload against 31 downloads is
    /// no measure of either direction. A zero is another finding.
    fn asymmetric(&self) -> Option<Finding> {
        let clean = || self.scenarios.iter().map(|s| &s.row).filter(|row| is_clean(row));
        // Acknowledgements of one direction share the other with its flows.
        let is_one_way = |row: &&ScenarioRow| row.up == 0 || row.down == 0;
        let has_both = clean().any(|row| row.down == 0) && clean().any(|row| row.up == 0);
        let rows = || clean().filter(|row| !has_both || is_one_way(row));
        let mirrored = rows().filter_map(|row| {
            let same = |other: &&ScenarioRow| {
                (other.up, other.down, &other.congestion_control)
                    == (row.down, row.up, &row.congestion_control)
            };
            Some((row.up_kib_per_s?, rows().find(same)?.down_kib_per_s?))
        });
        let (ups, downs): (Vec<f64>, Vec<f64>) = mirrored.unzip();
        let (up, down) = (harmonic_mean(&ups)?, harmonic_mean(&downs)?);
        let factor = up.max(down) / up.min(down);
        let (more, less) =
            if up > down { ("uploads", "downloads") } else { ("downloads", "uploads") };
        (up > 0.0 && down > 0.0 && factor >= ASYMMETRIC_FACTOR).then(|| {
            ASYMMETRIC.info(
                format!(
                    "the path is asymmetric: {more} carry {} times as much as {less}, {} KiB/s up \
                     and {} KiB/s down in scenarios that mirror each other",
                    number((factor * 10.0).round() / 10.0),
                    number(up),
                    number(down)
                ),
                [("up_kib_per_s", up), ("down_kib_per_s", down)],
                "",
            )
        })
    }

    fn not_settled(&self) -> Option<Finding> {
        let forced = || self.scenarios.iter().map(|s| &s.row).filter(|row| row.state == "forced");
        let longest_ns = forced().map(|row| row.duration_ns).max()? as f64;
        let flows = |row: &ScenarioRow| Level::Flows { up: row.up, down: row.down };
        let at: Vec<Level> = forced().map(flows).collect();
        let first: Vec<String> =
            forced().take(4).map(|row| format!("{}/{}", row.up, row.down)).collect();
        let scenario_count = self.scenarios.len() as f64;
        Some(NOT_SETTLED.warning(
            format!(
                "{} of {} scenarios had not settled when their time was over (the longest took \
                 {}): {}; the figures of a longer run may differ",
                exact(at.len() as f64),
                exact(scenario_count),
                time(longest_ns),
                levels(&at)
            ),
            [
                ("not_settled", at.len() as f64),
                ("scenarios", scenario_count),
                ("longest_ns", longest_ns),
            ],
            format!(
                "give them time to settle, without --duration: --scenarios {} --scenario-limit {}s",
                first.join(","),
                (2e-9 * longest_ns).ceil().max(SETTLES_WITHIN_S)
            ),
        ))
    }
}

fn share_evenly(row: &ScenarioRow) -> String {
    format!(
        "check whether it lasts: --scenarios {}/{} -d 60s; to share evenly, use a queue per flow \
         at the bottleneck: cake or fq_codel",
        row.up, row.down
    )
}

/// `upload 3`, counted from 0 as in the tables.
fn name(flow: &FlowReport) -> String {
    format!("{} {}", noun(flow.direction), flow.number)
}

fn mean(flows: &[&FlowReport]) -> f64 {
    let sum: f64 = flows.iter().map(|f| f.goodput_kib_per_s).sum();
    sum / flows.len().max(1) as f64
}
