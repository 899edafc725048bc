//! What the flows' queues do to the latency beside them.

use super::{LatencyDiagnosis, MeasuredScenario, evidence};
use crate::experiment::latency::analysis::{
    BY_PING, added_latency_ns, grade, hz, median_ping_ns, median_probe_ns,
};
use crate::experiment::latency::report::ScenarioRow;
use crate::finding::{Finding, codes};
use crate::words::{estimate, exact, time};
use knee_load::time::Nanos;
use std::collections::BTreeMap;

codes! {
    BLOATED = "bloated":
        cause "Flows add 60 ms or more to the median ping. They fill a long queue at the \
               bottleneck, and all other traffic waits in that queue.",
        remedy "Give the bottleneck a short queue: cake, or fq_codel behind a shaper set \
                slightly below the link's rate. Compare congestion controls with --cc cubic,bbr.";
    PROBES_DISAGREE = "probes_disagree":
        cause "The median ping over TCP and the median probe over UDP differ by at least 5 ms \
               and a quarter. Either TCP adds waits, or a queue on the path treats TCP and UDP \
               differently.",
        remedy "Send fewer pings with --probe-every, and look at the queues of both hosts with \
                `tc -s qdisc`.";
    HIDES_BLOAT = "congestion_control_hides_bloat":
        cause "BBR keeps the queue at the bottleneck short. Other congestion controls, such as \
               cubic, fill it or may fill it, so that latency under BBR does not show the queue.",
        remedy "Compare congestion controls with --cc cubic,bbr. Use the figures of the one that \
                adds more latency.";
}

/// Latency added to the median ping from which queues are felt: grade C and below. bufferbloat.net
/// names 50 to 60 ms as the limit of good.
const BLOATED_NS: u64 = 60_000_000;
/// Pings over TCP and probes over UDP differ from these on, which both have to hold: no grade is
/// narrower.
const DISAGREE_NS: u64 = 5_000_000;
const DISAGREE_FACTOR: f64 = 1.25;
/// Another congestion control shows a queue that is at least this many times as long.
const SHOWN_FACTOR: f64 = 2.0;

impl LatencyDiagnosis<'_> {
    pub(super) fn bloated(&self) -> Option<Finding> {
        let added = |s: &MeasuredScenario<'_>| added_latency_ns(&[&s.row], BY_PING);
        let known = self.scenarios.iter().filter_map(|s| Some((s, added(s)?)));
        let bloated = || known.clone().filter(|(_, added)| *added >= BLOATED_NS);
        let (worst, added_ns) = bloated().max_by_key(|(_, added)| *added)?;
        let flows = worst.flows();
        let longest_ns = flows.map_or(f64::NAN, |f| f.latency_ns_max as f64);
        let idle_ns = self.idle.and_then(median_ping_ns).unwrap_or(0) as f64;
        let directions = flows.map(|f| [&f.up, &f.down]).into_iter().flatten();
        let inside = directions.flatten().map(|d| &d.inside_ns).filter(|times| times.count > 0);
        let inside_ns = inside.filter_map(|times| times.p50).max();
        let inside = inside_ns.map_or(String::new(), |ns| {
            format!("; inside the flows the median byte takes {}", time(ns as f64))
        });
        let is_bbr =
            flows.and_then(|f| f.flows.first()).is_some_and(|f| is_bbr(&f.congestion_control));
        let compare = if is_bbr { "" } else { "; compare congestion controls: --cc cubic,bbr" };
        let scenarios = bloated().count() as f64;
        Some(BLOATED.warning(
            format!(
                "the path is bloated: with {} the median ping takes {} instead of {} (grade {}); \
                 the longest ping takes {} ({} Hz){inside}; {} of {} scenarios are bloated",
                self.name(&worst.row),
                time(idle_ns + added_ns as f64),
                time(idle_ns),
                grade(Nanos(added_ns)),
                time(longest_ns),
                estimate(hz(Nanos(longest_ns as u64))),
                exact(scenarios),
                exact(self.scenarios.len() as f64)
            ),
            evidence(
                &worst.row,
                [
                    ("added_latency_ns", added_ns as f64),
                    ("idle_ns", idle_ns),
                    ("longest_ns", longest_ns),
                    ("responsiveness_hz", 1e9 / longest_ns),
                    ("inside_ns", inside_ns.map_or(f64::NAN, |ns| ns as f64)),
                    ("scenarios", scenarios),
                ],
            ),
            format!(
                "give the bottleneck a short queue, at a rate slightly below the link's: tc qdisc \
                 replace dev IF root cake bandwidth RATE, or fq_codel behind a shaper{compare}"
            ),
        ))
    }

    /// Where the two kinds differ most.
    pub(super) fn probes_disagree(&self) -> Option<Finding> {
        let differing = self.scenarios.iter().filter_map(|scenario| {
            let trial = scenario.trial;
            let (tcp, udp) = median_ping_ns(trial).zip(median_probe_ns(trial))?;
            let (less, more) = (tcp.min(udp), tcp.max(udp));
            let differ = more - less >= DISAGREE_NS && more as f64 >= DISAGREE_FACTOR * less as f64;
            differ.then_some((more - less, scenario, tcp, udp))
        });
        let (_, worst, tcp, udp) = differing.max_by_key(|(apart, ..)| *apart)?;
        let row = &worst.row;
        let held_back = worst.flows().map_or(0, |f| f.tcp.held_back);
        let why = match (tcp > udp, held_back > 0) {
            (true, _) => {
                "TCP adds waits (for lost segments, or in a sending host), or the queue prefers UDP"
            }
            (false, true) => "the times of held-back pings are estimated, or the queue prefers TCP",
            (false, false) => "the queue prefers TCP",
        };
        let held = match held_back {
            0 => String::new(),
            n => format!(
                "; {} pings were not sent, because this host still held earlier ones",
                exact(n as f64)
            ),
        };
        Some(PROBES_DISAGREE.warning(
            format!(
                "with {} the median ping takes {} over TCP and {} over UDP: {why}; the grade is \
                 that of TCP{held}",
                self.name(row),
                time(tcp as f64),
                time(udp as f64)
            ),
            evidence(
                row,
                [("tcp_ns", tcp as f64), ("udp_ns", udp as f64), ("held_back", held_back as f64)],
            ),
            format!(
                "send fewer pings, so that none waits for another, and look at the queues of both \
                 hosts with `tc -s qdisc`: --scenarios {}/{} --probe-every 1s -d 60s",
                row.up, row.down
            ),
        ))
    }

    pub(super) fn hides_bloat(&self) -> Option<Finding> {
        let mut by_name: BTreeMap<&str, Vec<&ScenarioRow>> = BTreeMap::new();
        for MeasuredScenario { row, .. } in self.scenarios {
            by_name.entry(&row.congestion_control).or_default().push(row);
        }
        let added = by_name
            .iter()
            .filter_map(|(name, rows)| Some((*name, added_latency_ns(rows, BY_PING)?)))
            .filter(|(name, _)| !name.is_empty());
        let (bbr, other): (Vec<_>, Vec<_>) = added.partition(|(name, _)| is_bbr(name));
        let (hiding, hidden_ns) = bbr.into_iter().min_by_key(|(_, ns)| *ns)?;
        let (showing, shown_ns) = other.into_iter().max_by_key(|(_, ns)| *ns)?;
        let (hidden, shown) = (hidden_ns as f64, shown_ns as f64);
        let is_hidden = hidden_ns < BLOATED_NS && shown_ns >= BLOATED_NS;
        (is_hidden && shown >= SHOWN_FACTOR * hidden).then(|| {
            HIDES_BLOAT.warning(
                format!(
                    "{hiding} hides how bloated the path is: load adds at most {} to the median \
                     ping with {hiding}, and {} with {showing}; one sender with {showing} delays \
                     all others on the path",
                    time(hidden),
                    time(shown)
                ),
                [("hidden_added_latency_ns", hidden), ("shown_added_latency_ns", shown)],
                format!(
                    "use the figures of {showing} for the path: --cc {showing}; shorten the queue \
                     with cake or fq_codel at the bottleneck"
                ),
            )
        })
    }

    /// Only where nobody asked for it: who does knows.
    pub(super) fn may_hide_bloat(&self) -> Option<Finding> {
        let rows: Vec<&ScenarioRow> = self.scenarios.iter().map(|s| &s.row).collect();
        let is_asked = rows.iter().any(|row| !row.congestion_control.is_empty());
        let flows = self.scenarios.iter().filter_map(MeasuredScenario::flows);
        let mut flows = flows.flat_map(|f| &f.flows).peekable();
        let used = flows.peek()?.congestion_control.clone();
        let all_bbr = flows.all(|f| is_bbr(&f.congestion_control));
        let added_ns = added_latency_ns(&rows, BY_PING)?;
        (!is_asked && all_bbr && added_ns < BLOATED_NS).then(|| {
            HIDES_BLOAT.info(
                format!(
                    "load adds at most {} to the median ping, but all flows used {used}, the \
                     hosts' default; {used} keeps queues short, and other congestion controls, \
                     such as cubic, may fill them",
                    time(added_ns as f64)
                ),
                [("added_latency_ns", added_ns as f64)],
                "compare: --cc cubic,bbr",
            )
        })
    }
}

/// bbr, bbr2, bbr3: they keep to the path's rate, and so its queue short.
fn is_bbr(name: &str) -> bool {
    name.starts_with("bbr")
}
