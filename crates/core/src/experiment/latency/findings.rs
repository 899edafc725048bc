//! Findings about flows and the latency under them.

mod diagnose;
#[cfg(test)]
mod tests;
mod words;

pub use diagnose::{Scenario, latency_findings};

use crate::finding::Severity;
use crate::measure::Direction;
use crate::spec::Level;

/// A finding of `knee latency` before it is put into words. Of several scenarios it tells of the
/// worst.
#[derive(Clone, Debug, PartialEq)]
pub enum LatencyDiagnosis {
    /// Load makes queues that everybody waits in.
    Bloated {
        /// Where most.
        at: At,
        /// What the median ping takes more than on the idle path.
        added_ns: f64,
        /// The median ping of the idle path.
        idle_ns: f64,
        /// The longest ping there.
        longest_ns: f64,
        /// The median time from a sender's write to its receiver's read, in the slower direction,
        /// where it is known.
        inside_ns: Option<f64>,
        /// The congestion control of the flows there, as far as known.
        congestion_control: String,
        /// Scenarios that are bloated.
        scenarios: usize,
        /// Of so many.
        of: usize,
    },
    /// Pings over TCP and probes over UDP take different times beside the same flows.
    ProbesDisagree {
        /// Where most.
        at: At,
        /// The median ping.
        tcp_ns: f64,
        /// The median probe.
        udp_ns: f64,
        /// Pings that were not sent, as this host still held earlier ones.
        held_back: u64,
    },
    /// Some of the overall figures rest on trials that the generator distorted.
    RestsOnDistorted {
        /// The figures that do, in words.
        resting: Vec<&'static str>,
        /// Those that do not.
        standing: Vec<&'static str>,
        /// Trials that were distorted, the idle path's included.
        trials: usize,
        /// Of so many.
        of: usize,
    },
    /// Scenarios were run again, as the first run of each was distorted.
    RunAgain {
        /// Which; no flows at all is the idle path.
        at: Vec<Level>,
        /// How many of the second runs were distorted too.
        in_vain: usize,
    },
    /// A flow gets next to nothing beside others.
    StarvedFlow {
        /// Where.
        at: At,
        /// Which.
        flow: Flow,
        /// Its goodput in KiB/s.
        goodput_kib_per_s: f64,
        /// The mean goodput of that direction's flows in KiB/s.
        fair_kib_per_s: f64,
    },
    /// Flows of one direction get much more than others.
    Unfair {
        /// Where most.
        at: At,
        /// Of these flows.
        direction: Direction,
        /// How many there are.
        flows: u32,
        /// Jain's index.
        jain_index: f64,
        /// The smallest and the largest goodput in KiB/s.
        range_kib_per_s: [f64; 2],
    },
    /// A flow ended before its time.
    FlowKilled {
        /// Where.
        at: At,
        /// The first that did.
        flow: Flow,
        /// When.
        lost_ns: f64,
        /// Why.
        why: String,
        /// How many others of that scenario did too.
        others: usize,
    },
    /// One direction carries much more than the other.
    Asymmetric {
        /// Capacity of the uploads in KiB/s, over scenarios that mirror each other.
        up_kib_per_s: f64,
        /// Capacity of the downloads in KiB/s, over the same scenarios.
        down_kib_per_s: f64,
    },
    /// One congestion control keeps a queue short that another fills.
    HidesBloat {
        /// The one that hides it.
        hiding: String,
        /// What it adds to the median ping at the most.
        hiding_added_ns: f64,
        /// The one that shows it.
        showing: String,
        /// What that adds.
        showing_added_ns: f64,
    },
    /// The path is not bloated, but only with a congestion control that may hide that it is.
    MayHideBloat {
        /// The hosts' default.
        congestion_control: String,
        /// What it adds to the median ping at the most.
        added_ns: f64,
    },
    /// Scenarios were ended by force.
    NotSettled {
        /// Which.
        at: Vec<Level>,
        /// Of so many.
        of: usize,
        /// How long the longest of them took.
        longest_ns: f64,
    },
    /// The overall figures of a text are not what its scenarios give.
    RecomputedDiffers {
        /// Which figure, such as `upload capacity`.
        figure: &'static str,
        /// As printed.
        printed: f64,
        /// As its scenarios give it, unless rounded.
        recomputed: f64,
        /// In which unit.
        unit: &'static str,
        /// Whether the rounding of the scenarios' figures explains it.
        is_rounding: bool,
    },
}

/// A scenario, with the congestion control where several were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// Uploads.
    pub up: u32,
    /// Downloads.
    pub down: u32,
    /// The congestion control asked for; empty: none, or only one.
    pub congestion_control: String,
}

/// A flow of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Which way.
    pub direction: Direction,
    /// Which of that direction, from 0.
    pub number: u32,
}

impl LatencyDiagnosis {
    pub(crate) fn code(&self) -> &'static str {
        match self {
            LatencyDiagnosis::Bloated { .. } => "bloated",
            LatencyDiagnosis::ProbesDisagree { .. } => "probes_disagree",
            LatencyDiagnosis::RestsOnDistorted { .. } => "rests_on_distorted",
            LatencyDiagnosis::RunAgain { .. } => "run_again",
            LatencyDiagnosis::StarvedFlow { .. } => "starved_flow",
            LatencyDiagnosis::Unfair { .. } => "unfair",
            LatencyDiagnosis::FlowKilled { .. } => "flow_killed",
            LatencyDiagnosis::Asymmetric { .. } => "asymmetric",
            LatencyDiagnosis::HidesBloat { .. } | LatencyDiagnosis::MayHideBloat { .. } => {
                "congestion_control_hides_bloat"
            }
            LatencyDiagnosis::NotSettled { .. } => "not_settled",
            LatencyDiagnosis::RecomputedDiffers { .. } => "recomputed_differs",
        }
    }

    pub(crate) fn severity(&self) -> Severity {
        match self {
            LatencyDiagnosis::Asymmetric { .. }
            | LatencyDiagnosis::MayHideBloat { .. }
            | LatencyDiagnosis::RunAgain { .. }
            | LatencyDiagnosis::RecomputedDiffers {
                is_rounding: true, ..
            } => Severity::Info,
            _ => Severity::Warning,
        }
    }
}
