//! The words, the numbers and the next steps of findings about flows.

use super::{At, Flow, LatencyDiagnosis};
use crate::experiment::latency::analysis::figures::{grade, hz};
use crate::measure::Direction;
use crate::time::Nanos;
use crate::words::{estimate, exact, levels, list, number, percent, time};

impl LatencyDiagnosis {
    pub(crate) fn text(&self) -> String {
        self.latency_text()
            .or_else(|| self.trust_text())
            .or_else(|| self.flows_text())
            .or_else(|| self.figures_text())
            .unwrap_or_default()
    }

    /// Of queues.
    fn latency_text(&self) -> Option<String> {
        let text = match self {
            LatencyDiagnosis::Bloated {
                at,
                added_ns,
                idle_ns,
                longest_ns,
                inside_ns,
                scenarios,
                of,
                ..
            } => {
                let inside = inside_ns.map_or(String::new(), |ns| {
                    format!("; inside the flows a byte takes {} (median)", time(ns))
                });
                let hz = hz(Nanos(*longest_ns as u64));
                format!(
                    "the path is bloated: with {} the median ping beside the flows takes {} \
                     instead of {} (grade {}), the longest {}, which is {} Hz{inside}; {} of {} \
                     scenarios fill a queue like that",
                    at.words(),
                    time(idle_ns + added_ns),
                    time(*idle_ns),
                    grade(Nanos(*added_ns as u64)),
                    time(*longest_ns),
                    estimate(hz),
                    exact(*scenarios as f64),
                    exact(*of as f64)
                )
            }
            LatencyDiagnosis::HidesBloat {
                hiding,
                hiding_added_ns,
                showing,
                showing_added_ns,
            } => format!(
                "{hiding} hides how bloated the path is: with it load adds at most {} to the \
                 median ping, with {showing} {}; whoever else sends over this path decides for \
                 all of them",
                time(*hiding_added_ns),
                time(*showing_added_ns)
            ),
            LatencyDiagnosis::MayHideBloat {
                congestion_control,
                added_ns,
            } => format!(
                "load adds at most {} to the median ping, but all flows used {congestion_control}, \
                 the hosts' default, which keeps queues short: others, such as cubic, may fill \
                 them",
                time(*added_ns)
            ),
            _ => return None,
        };
        Some(text)
    }

    /// Of what the figures rest on.
    fn trust_text(&self) -> Option<String> {
        let text = match self {
            LatencyDiagnosis::ProbesDisagree {
                at,
                tcp_ns,
                udp_ns,
                held_back,
            } => {
                let held = match held_back {
                    0 => String::new(),
                    n => format!(
                        "; this host still held earlier pings when {} were due, so these were not \
                         sent",
                        exact(*n as f64)
                    ),
                };
                let why = why_probes_differ(tcp_ns > udp_ns, *held_back > 0);
                format!(
                    "with {} the median ping takes {} over TCP and {} over UDP: {why}; the grade \
                     is that of TCP{held}",
                    at.words(),
                    time(*tcp_ns),
                    time(*udp_ns)
                )
            }
            LatencyDiagnosis::RestsOnDistorted {
                resting,
                standing,
                trials,
                of,
            } => {
                let words = |names: &[&str]| {
                    list(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>())
                };
                let still = match standing.len() {
                    0 => "no overall figure stands".to_owned(),
                    1 => format!("{} still stands", words(standing)),
                    _ => format!("{} still stand", words(standing)),
                };
                format!(
                    "{} of {} trials are INVALID: {} cannot be trusted; {still}",
                    exact(*trials as f64),
                    exact(*of as f64),
                    words(resting)
                )
            }
            LatencyDiagnosis::RunAgain { at, in_vain } => {
                let then = match (in_vain, at.len()) {
                    (0, _) => "the second run of each is valid and counts".to_owned(),
                    (n, all) => format!(
                        "the second run of each counts; {} of {} are INVALID too",
                        exact(*n as f64),
                        exact(all as f64)
                    ),
                };
                format!(
                    "{} ran twice, as the first run was INVALID: {then}",
                    levels(at)
                )
            }
            _ => return None,
        };
        Some(text)
    }

    /// Of single flows.
    fn flows_text(&self) -> Option<String> {
        let text = match self {
            LatencyDiagnosis::StarvedFlow {
                at,
                flow,
                goodput_kib_per_s,
                fair_kib_per_s,
            } => {
                let (flow, at) = (flow.words(), at.words());
                let goodput = number(*goodput_kib_per_s);
                if *fair_kib_per_s <= 0.0 {
                    format!(
                        "{flow} of {at} never got a byte through ({goodput} KiB/s): capacity and \
                         smoothness are 0 with it, on purpose"
                    )
                } else {
                    format!(
                        "{flow} of {at} starves: {goodput} KiB/s, {} of the {} KiB/s that its \
                         direction's flows have on average",
                        percent(100.0 * goodput_kib_per_s / fair_kib_per_s),
                        number(*fair_kib_per_s)
                    )
                }
            }
            LatencyDiagnosis::Unfair {
                at,
                direction,
                flows,
                jain_index,
                range_kib_per_s: [least, most],
            } => format!(
                "flows are unfair to each other: with {} the {}s get from {} to {} KiB/s each, \
                 Jain's index {} (1 is fair, {} one flow alone)",
                at.words(),
                noun(*direction),
                number(*least),
                number(*most),
                number(*jain_index),
                number(1.0 / f64::from(*flows))
            ),
            LatencyDiagnosis::FlowKilled {
                at,
                flow,
                lost_ns,
                why,
                others,
            } => {
                let others = match others {
                    0 => String::new(),
                    1 => ", and one more later".to_owned(),
                    n => format!(", and {} more later", exact(*n as f64)),
                };
                format!(
                    "{} of {} was lost after {}: {why}{others}; it counts as zero, so that \
                     {} capacity and flow smoothness are 0 over all scenarios",
                    flow.words(),
                    at.words(),
                    time(*lost_ns),
                    noun(flow.direction)
                )
            }
            _ => return None,
        };
        Some(text)
    }

    /// Of figures over scenarios.
    fn figures_text(&self) -> Option<String> {
        let text = match self {
            LatencyDiagnosis::Asymmetric {
                up_kib_per_s,
                down_kib_per_s,
            } => {
                let (more, less, factor) = match up_kib_per_s > down_kib_per_s {
                    true => ("uploads", "downloads", up_kib_per_s / down_kib_per_s),
                    false => ("downloads", "uploads", down_kib_per_s / up_kib_per_s),
                };
                format!(
                    "the path is asymmetric: {more} carry {} times what {less} do, {} KiB/s up \
                     and {} KiB/s down over scenarios that mirror each other",
                    number((factor * 10.0).round() / 10.0),
                    number(*up_kib_per_s),
                    number(*down_kib_per_s)
                )
            }
            LatencyDiagnosis::NotSettled { at, of, longest_ns } => format!(
                "{} of {} scenarios had not settled when their time was over (at the most {}): \
                 {}; their figures are of flows that still changed",
                exact(at.len() as f64),
                exact(*of as f64),
                time(*longest_ns),
                levels(at)
            ),
            LatencyDiagnosis::RecomputedDiffers {
                figure,
                printed,
                recomputed,
                unit,
                is_rounding,
            } => format!(
                "the text prints {} {unit} as {figure}, its scenarios give {} {unit}{}",
                exact(*printed),
                tenths(*recomputed),
                match is_rounding {
                    true => ": it was made of figures that were not rounded yet",
                    false => ": it is not of these scenarios, or not by this definition",
                }
            ),
            _ => return None,
        };
        Some(text)
    }

    /// The numbers it rests on, by name; those that are not finite are not known.
    pub(crate) fn evidence(&self) -> Vec<(&'static str, f64)> {
        self.queue_evidence()
            .or_else(|| self.flow_evidence())
            .unwrap_or_default()
    }

    fn queue_evidence(&self) -> Option<Vec<(&'static str, f64)>> {
        let numbers = match self {
            LatencyDiagnosis::Bloated {
                at,
                added_ns,
                idle_ns,
                longest_ns,
                inside_ns,
                scenarios,
                ..
            } => at.evidence(&[
                ("added_latency_ns", *added_ns),
                ("idle_ns", *idle_ns),
                ("longest_ns", *longest_ns),
                ("responsiveness_hz", 1e9 / longest_ns),
                ("inside_ns", inside_ns.unwrap_or(f64::NAN)),
                ("scenarios", *scenarios as f64),
            ]),
            LatencyDiagnosis::HidesBloat {
                hiding_added_ns,
                showing_added_ns,
                ..
            } => vec![
                ("hidden_added_latency_ns", *hiding_added_ns),
                ("shown_added_latency_ns", *showing_added_ns),
            ],
            LatencyDiagnosis::MayHideBloat { added_ns, .. } => {
                vec![("added_latency_ns", *added_ns)]
            }
            LatencyDiagnosis::ProbesDisagree {
                at,
                tcp_ns,
                udp_ns,
                held_back,
            } => at.evidence(&[
                ("tcp_ns", *tcp_ns),
                ("udp_ns", *udp_ns),
                ("held_back", *held_back as f64),
            ]),
            LatencyDiagnosis::RestsOnDistorted {
                resting,
                standing,
                trials,
                of,
            } => vec![
                ("distorted_trials", *trials as f64),
                ("trials", *of as f64),
                ("distorted_figures", resting.len() as f64),
                ("standing_figures", standing.len() as f64),
            ],
            LatencyDiagnosis::RunAgain { at, in_vain } => {
                vec![("run_again", at.len() as f64), ("in_vain", *in_vain as f64)]
            }
            _ => return None,
        };
        Some(numbers)
    }

    fn flow_evidence(&self) -> Option<Vec<(&'static str, f64)>> {
        let numbers = match self {
            LatencyDiagnosis::StarvedFlow {
                at,
                flow,
                goodput_kib_per_s,
                fair_kib_per_s,
            } => at.evidence(&[
                ("flow", f64::from(flow.number)),
                ("goodput_kib_per_s", *goodput_kib_per_s),
                ("fair_kib_per_s", *fair_kib_per_s),
            ]),
            LatencyDiagnosis::Unfair {
                at,
                jain_index,
                range_kib_per_s: [least, most],
                ..
            } => at.evidence(&[
                ("jain_index", *jain_index),
                ("least_kib_per_s", *least),
                ("most_kib_per_s", *most),
            ]),
            LatencyDiagnosis::FlowKilled {
                at,
                flow,
                lost_ns,
                others,
                ..
            } => at.evidence(&[
                ("flow", f64::from(flow.number)),
                ("lost_at_ns", *lost_ns),
                ("flows_lost", *others as f64 + 1.0),
            ]),
            LatencyDiagnosis::Asymmetric {
                up_kib_per_s,
                down_kib_per_s,
            } => vec![
                ("up_kib_per_s", *up_kib_per_s),
                ("down_kib_per_s", *down_kib_per_s),
            ],
            LatencyDiagnosis::NotSettled { at, of, longest_ns } => vec![
                ("not_settled", at.len() as f64),
                ("scenarios", *of as f64),
                ("longest_ns", *longest_ns),
            ],
            LatencyDiagnosis::RecomputedDiffers {
                printed,
                recomputed,
                ..
            } => vec![("printed", *printed), ("recomputed", *recomputed)],
            _ => return None,
        };
        Some(numbers)
    }

    pub(crate) fn next_step(&self) -> String {
        match self {
            LatencyDiagnosis::Bloated {
                congestion_control, ..
            } => {
                let compare = match congestion_control.starts_with("bbr") {
                    true => "",
                    false => "; see what another sender would do: --cc cubic,bbr",
                };
                format!(
                    "give the bottleneck a queue that stays short, at a rate a little below the \
                     link's: tc qdisc replace dev IF root cake bandwidth RATE, or fq_codel behind \
                     a shaper{compare}"
                )
            }
            LatencyDiagnosis::HidesBloat { showing, .. } => format!(
                "take the figures of {showing} for the path, and shorten its queue (cake or \
                 fq_codel at the bottleneck): --cc {showing}"
            ),
            LatencyDiagnosis::MayHideBloat { .. } => "compare: --cc cubic,bbr".into(),
            LatencyDiagnosis::ProbesDisagree { at, .. } => format!(
                "send pings more seldom, so that no ping waits for another, and look at the queues \
                 of both hosts with `tc -s qdisc`: --scenarios {}/{} --probe-every 1s -d 60s",
                at.up, at.down
            ),
            LatencyDiagnosis::RestsOnDistorted { .. } | LatencyDiagnosis::RunAgain { .. } => {
                String::new()
            }
            LatencyDiagnosis::StarvedFlow { at, .. } | LatencyDiagnosis::Unfair { at, .. } => {
                format!(
                    "see whether it lasts: --scenarios {0}/{1} -d 60s; a queue per flow at the \
                     bottleneck shares evenly: cake or fq_codel",
                    at.up, at.down
                )
            }
            LatencyDiagnosis::FlowKilled { at, .. } => format!(
                "find out who ended it (a firewall's or translator's limit, a service that was \
                 stopped), then repeat: --scenarios {}/{}",
                at.up, at.down
            ),
            LatencyDiagnosis::NotSettled { at, longest_ns, .. } => {
                let scenarios: Vec<String> = at.iter().take(4).map(|l| levels(&[*l])).collect();
                let names = scenarios.iter().filter_map(|s| s.split(' ').next());
                format!(
                    "give them longer, or be content with less: --scenarios {} --scenario-limit \
                     {}s, or --settle 10%",
                    names.collect::<Vec<_>>().join(","),
                    (2e-9 * longest_ns).ceil().max(1.0)
                )
            }
            LatencyDiagnosis::Asymmetric { .. } | LatencyDiagnosis::RecomputedDiffers { .. } => {
                String::new()
            }
        }
    }
}

impl At {
    /// How many flows there were, and what else is known.
    fn evidence(&self, more: &[(&'static str, f64)]) -> Vec<(&'static str, f64)> {
        let flows = [("up", f64::from(self.up)), ("down", f64::from(self.down))];
        [&flows, more].concat()
    }

    /// `1 upload and 31 downloads (cubic)`.
    fn words(&self) -> String {
        let of = |n: u32, noun: &str| match n {
            0 => None,
            1 => Some(format!("1 {noun}")),
            n => Some(format!("{n} {noun}s")),
        };
        let flows: Vec<String> = [of(self.up, "upload"), of(self.down, "download")]
            .into_iter()
            .flatten()
            .collect();
        match self.congestion_control.as_str() {
            "" => list(&flows),
            name => format!("{} ({name})", list(&flows)),
        }
    }
}

impl Flow {
    /// `upload 3`, counted from 0 as in the tables.
    fn words(&self) -> String {
        format!("{} {}", noun(self.direction), self.number)
    }
}

fn why_probes_differ(is_tcp_longer: bool, has_held_back: bool) -> &'static str {
    match (is_tcp_longer, has_held_back) {
        (true, _) => {
            "TCP adds waits of its own (losses, limits of a sending host), or the queue prefers UDP"
        }
        (false, true) => {
            "how long held-back pings would have taken is estimated, or the queue prefers TCP"
        }
        (false, false) => "the queue prefers TCP",
    }
}

fn noun(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "upload",
        Direction::Down => "download",
    }
}

/// With one digit after the point, so that a rounding shows.
fn tenths(value: f64) -> String {
    let whole = exact(value.floor());
    let tenth = ((value - value.floor()) * 10.0).floor();
    format!("{whole}.{tenth:.0}")
}
