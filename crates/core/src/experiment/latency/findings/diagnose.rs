//! What the scenarios of `knee latency` say.

use super::{At, Flow, LatencyDiagnosis};
use crate::diagnosis::Diagnosis;
use crate::experiment::latency::analysis::figures::harmonic_mean;
use crate::experiment::latency::analysis::{added_latency_ns, median_ping_ns, median_probe_ns};
use crate::experiment::latency::report::ScenarioRow;
use crate::finding::Finding;
use crate::measure::Direction;
use crate::spec::Level;
use crate::trial::findings::{GENERATOR_DISTORTED, findings_at_levels};
use crate::trial::flows::{FlowReport, FlowsReport};
use crate::trial::report::TrialReport;
use std::collections::BTreeMap;

/// From this much on, added to the median ping, queues are felt: grade C and below, and what
/// bufferbloat.net names as the limit of good (50 to 60 ms).
const BLOATED_NS: u64 = 60_000_000;
/// Pings over TCP and probes over UDP differ from these on, which both have to hold: no grade is
/// narrower.
const DISAGREE_NS: u64 = 5_000_000;
const DISAGREE_FACTOR: f64 = 1.25;
/// Another congestion control shows a queue that is at least so many times as long.
const SHOWN_FACTOR: f64 = 2.0;
/// A flow starves below this share of what it would have if all had the same.
const STARVED_SHARE: f64 = 0.1;
/// Flows are unfair to each other where Jain's index is below this: with two, from 1 : 3 on.
const UNFAIR_INDEX: f64 = 0.8;
/// Directions differ from this factor on.
const ASYMMETRIC_FACTOR: f64 = 2.0;

/// A scenario as findings see it.
#[derive(Clone, Copy, Debug)]
pub struct Scenario<'a> {
    /// It in short.
    pub row: &'a ScenarioRow,
    /// It in full, where it was measured and not read from a text.
    pub trial: Option<&'a TrialReport>,
}

impl<'a> Scenario<'a> {
    fn flows(&self) -> Option<&'a FlowsReport> {
        self.trial?.flows.as_ref()
    }

    fn added_ns(&self) -> u64 {
        added_latency_ns(&[self.row], ScenarioRow::by_ping).unwrap_or(0)
    }

    fn is_bloated(&self) -> bool {
        self.added_ns() >= BLOATED_NS
    }

    fn level(&self) -> Level {
        Level::Flows {
            up: self.row.up,
            down: self.row.down,
        }
    }
}

/// What a person should know about these scenarios. `past` are all trials that count, the idle
/// path's included.
pub fn latency_findings(
    past: &[&TrialReport],
    idle: Option<&TrialReport>,
    scenarios: &[Scenario<'_>],
) -> Vec<Finding> {
    let several = of_congestion(scenarios).len() > 1;
    let view = View {
        idle,
        scenarios,
        several,
    };
    let mut found = view.killed();
    found.extend(view.bloated());
    found.extend(view.probes_disagree());
    found.extend(view.hides_bloat());
    found.extend(view.may_hide_bloat());
    found.extend(view.starved());
    found.extend(view.unfair());
    found.extend(view.asymmetric());
    found.extend(view.not_settled());
    let found = found.into_iter().map(|d| Diagnosis::Latency(d).finding());
    let mut all = distorted(past);
    all.extend(found);
    all
}

/// Of what holds for any trial, that which is about the pinger. A ping that does not come back is
/// no failure here: it is a long latency.
fn distorted(past: &[&TrialReport]) -> Vec<Finding> {
    let mut found = findings_at_levels(past);
    found.retain(|f| f.is(GENERATOR_DISTORTED));
    for f in &mut found {
        f.next_step =
            "repeat on a quieter or larger machine, or with fewer flows: --scenarios 1/1,4/4"
                .into();
    }
    found
}

/// The scenarios by the congestion control that they were asked for.
fn of_congestion<'a>(scenarios: &[Scenario<'a>]) -> BTreeMap<&'a str, Vec<&'a ScenarioRow>> {
    let mut by_name: BTreeMap<&str, Vec<&ScenarioRow>> = BTreeMap::new();
    for scenario in scenarios {
        let name = scenario.row.congestion_control.as_str();
        by_name.entry(name).or_default().push(scenario.row);
    }
    by_name
}

/// All that the findings are made of.
struct View<'a> {
    idle: Option<&'a TrialReport>,
    scenarios: &'a [Scenario<'a>],
    /// Whether scenarios were run with several congestion controls.
    several: bool,
}

impl View<'_> {
    fn at(&self, row: &ScenarioRow) -> At {
        At {
            up: row.up,
            down: row.down,
            congestion_control: match self.several {
                true => row.congestion_control.clone(),
                false => String::new(),
            },
        }
    }

    /// One for each scenario that lost flows: the first of them.
    fn killed(&self) -> Vec<LatencyDiagnosis> {
        let killed = self.scenarios.iter().filter_map(|scenario| {
            let lost = || {
                let flows = scenario.flows()?.flows.iter();
                Some(flows.filter_map(|f| Some((f.lost_at_ns?, f))))
            };
            let (at_ns, first) = lost()?.min_by_key(|(at, _)| *at)?;
            Some(LatencyDiagnosis::FlowKilled {
                at: self.at(scenario.row),
                flow: of(first),
                lost_ns: at_ns as f64,
                why: first.lost_because.clone().unwrap_or_default(),
                others: lost()?.count() - 1,
            })
        });
        killed.collect()
    }

    fn bloated(&self) -> Option<LatencyDiagnosis> {
        let bloated = || self.scenarios.iter().filter(|s| s.is_bloated());
        let worst = bloated().max_by_key(|s| s.added_ns())?;
        let flows = worst.flows();
        let inside = flows.map(|f| [&f.up, &f.down]).into_iter().flatten();
        let inside = inside.flatten().filter(|d| d.inside_ns.count > 0);
        Some(LatencyDiagnosis::Bloated {
            at: self.at(worst.row),
            added_ns: worst.added_ns() as f64,
            idle_ns: self.idle.and_then(median_ping_ns).unwrap_or(0) as f64,
            longest_ns: flows.map_or(f64::NAN, |f| f.latency_ns_max as f64),
            inside_ns: inside
                .filter_map(|d| d.inside_ns.p50)
                .max()
                .map(|ns| ns as f64),
            congestion_control: flows
                .and_then(|f| f.flows.first())
                .map_or(String::new(), |f| f.congestion_control.clone()),
            scenarios: bloated().count(),
            of: self.scenarios.len(),
        })
    }

    /// Where the two kinds differ most.
    fn probes_disagree(&self) -> Option<LatencyDiagnosis> {
        let differing = self.scenarios.iter().filter_map(|scenario| {
            let trial = scenario.trial?;
            let (tcp, udp) = median_ping_ns(trial).zip(median_probe_ns(trial))?;
            let (less, more) = (tcp.min(udp), tcp.max(udp));
            let differ = more - less >= DISAGREE_NS && more as f64 >= DISAGREE_FACTOR * less as f64;
            differ.then_some((more - less, scenario, tcp, udp))
        });
        let (_, worst, tcp, udp) = differing.max_by_key(|(apart, ..)| *apart)?;
        let held_back = worst.flows().map_or(0, |f| f.tcp.held_back);
        Some(LatencyDiagnosis::ProbesDisagree {
            at: self.at(worst.row),
            tcp_ns: tcp as f64,
            udp_ns: udp as f64,
            held_back,
        })
    }

    fn hides_bloat(&self) -> Option<LatencyDiagnosis> {
        let by_name = of_congestion(self.scenarios);
        let added = by_name
            .iter()
            .filter_map(|(name, rows)| Some((*name, added_latency_ns(rows, ScenarioRow::by_ping)?)))
            .filter(|(name, _)| !name.is_empty());
        let (bbr, other): (Vec<_>, Vec<_>) = added.partition(|(name, _)| is_bbr(name));
        let hiding = bbr.into_iter().min_by_key(|(_, ns)| *ns)?;
        let showing = other.into_iter().max_by_key(|(_, ns)| *ns)?;
        let (hidden, shown) = (hiding.1 as f64, showing.1 as f64);
        let is_hidden = hiding.1 < BLOATED_NS && showing.1 >= BLOATED_NS;
        (is_hidden && shown >= SHOWN_FACTOR * hidden).then(|| LatencyDiagnosis::HidesBloat {
            hiding: hiding.0.to_owned(),
            hiding_added_ns: hidden,
            showing: showing.0.to_owned(),
            showing_added_ns: shown,
        })
    }

    /// Only where nobody asked for it: who does knows.
    fn may_hide_bloat(&self) -> Option<LatencyDiagnosis> {
        let rows: Vec<&ScenarioRow> = self.scenarios.iter().map(|s| s.row).collect();
        let asked = rows.iter().any(|row| !row.congestion_control.is_empty());
        let mut flows = self.scenarios.iter().filter_map(Scenario::flows);
        let used = flows.clone().flat_map(|f| &f.flows).next()?;
        let all_bbr = flows.all(|f| f.flows.iter().all(|f| is_bbr(&f.congestion_control)));
        let added_ns = added_latency_ns(&rows, ScenarioRow::by_ping)?;
        (!asked && all_bbr && added_ns < BLOATED_NS).then(|| LatencyDiagnosis::MayHideBloat {
            congestion_control: used.congestion_control.clone(),
            added_ns: added_ns as f64,
        })
    }

    /// A single flow that gets nothing starves too. One that was lost is another finding.
    fn starved(&self) -> Option<LatencyDiagnosis> {
        let directions = self.directions();
        let starved = directions.iter().flat_map(|(row, flows)| {
            let fair = mean(flows);
            let low = flows.iter().filter(move |f| {
                let share = f.goodput_kib_per_s / fair;
                f.lost_at_ns.is_none() && (fair <= 0.0 || share < STARVED_SHARE)
            });
            low.map(move |f| (*row, *f, fair))
        });
        let share = |fair: f64, f: &FlowReport| match fair > 0.0 {
            true => f.goodput_kib_per_s / fair,
            false => 0.0,
        };
        let worst = starved.min_by(|a, b| share(a.2, a.1).total_cmp(&share(b.2, b.1)));
        worst.map(|(row, flow, fair)| LatencyDiagnosis::StarvedFlow {
            at: self.at(row),
            flow: of(flow),
            goodput_kib_per_s: flow.goodput_kib_per_s,
            fair_kib_per_s: fair,
        })
    }

    fn unfair(&self) -> Option<LatencyDiagnosis> {
        let of_row = |row: &ScenarioRow, direction| match direction {
            Direction::Up => row.up_jain_index,
            Direction::Down => row.down_jain_index,
        };
        let directions = self.directions();
        let unfair = directions.iter().filter_map(|(row, flows)| {
            // What a lost flow does to the index is no unfairness.
            let whole = flows.len() > 1 && flows.iter().all(|f| f.lost_at_ns.is_none());
            let index = of_row(row, flows.first()?.direction)?;
            (whole && index < UNFAIR_INDEX).then_some((row, flows, index))
        });
        let (row, flows, jain_index) = unfair.min_by(|a, b| a.2.total_cmp(&b.2))?;
        let goodputs = || flows.iter().map(|f| f.goodput_kib_per_s);
        Some(LatencyDiagnosis::Unfair {
            at: self.at(row),
            direction: flows[0].direction,
            flows: flows.len() as u32,
            jain_index,
            range_kib_per_s: [
                goodputs().fold(f64::INFINITY, f64::min),
                goodputs().fold(0.0, f64::max),
            ],
        })
    }

    /// The flows of each direction of each scenario that has some.
    fn directions(&self) -> Vec<(&ScenarioRow, Vec<&FlowReport>)> {
        let mut directions = Vec::new();
        for scenario in self.scenarios {
            let Some(report) = scenario.flows() else {
                continue;
            };
            for direction in [Direction::Up, Direction::Down] {
                let own = report.flows.iter().filter(|f| f.direction == direction);
                let own: Vec<&FlowReport> = own.collect();
                if !own.is_empty() {
                    directions.push((scenario.row, own));
                }
            }
        }
        directions
    }

    /// Only scenarios that mirror each other are compared, as one upload against 31 downloads is
    /// no measure of either direction. A zero is another finding.
    fn asymmetric(&self) -> Option<LatencyDiagnosis> {
        let rows = || self.scenarios.iter().map(|s| s.row);
        let mirrored = rows().filter_map(|row| {
            let same = |other: &&ScenarioRow| {
                (other.up, other.down, &other.congestion_control)
                    == (row.down, row.up, &row.congestion_control)
            };
            Some((row.up_kib_per_s?, rows().find(same)?.down_kib_per_s?))
        });
        let (ups, downs): (Vec<f64>, Vec<f64>) = mirrored.unzip();
        let (up, down) = (harmonic_mean(&ups)?, harmonic_mean(&downs)?);
        let differ = up.max(down) >= ASYMMETRIC_FACTOR * up.min(down);
        (up > 0.0 && down > 0.0 && differ).then_some(LatencyDiagnosis::Asymmetric {
            up_kib_per_s: up,
            down_kib_per_s: down,
        })
    }

    fn not_settled(&self) -> Option<LatencyDiagnosis> {
        let forced = || self.scenarios.iter().filter(|s| s.row.state == "forced");
        let longest_ns = forced().map(|s| s.row.duration_ns).max()?;
        Some(LatencyDiagnosis::NotSettled {
            at: forced().map(Scenario::level).collect(),
            of: self.scenarios.len(),
            longest_ns: longest_ns as f64,
        })
    }
}

fn of(flow: &FlowReport) -> Flow {
    Flow {
        direction: flow.direction,
        number: flow.number,
    }
}

fn mean(flows: &[&FlowReport]) -> f64 {
    let sum: f64 = flows.iter().map(|f| f.goodput_kib_per_s).sum();
    sum / flows.len().max(1) as f64
}

/// bbr, bbr2, bbr3: they keep to the path's rate, and so its queue short.
fn is_bbr(name: &str) -> bool {
    name.starts_with("bbr")
}
