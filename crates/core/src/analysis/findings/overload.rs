//! Findings about load beyond capacity.

mod diagnose;
#[cfg(test)]
mod tests;
mod words;

pub use diagnose::overload_findings;
pub(crate) use words::ports_remedy;

use crate::report::Severity;
use crate::spec::{CloseKind, Level};

/// A finding of `knee overload` before it is put into words. Of several levels it tells of the
/// worst.
#[derive(Clone, Debug, PartialEq)]
pub enum OverloadDiagnosis {
    /// Simple clients never offered more than is served; what came after them did.
    SimpleClientsFlatten {
        /// The most clients.
        clients: u32,
        /// The most first SYNs per second that any number of them sent.
        most_per_s: f64,
        /// What is served at the most, per second.
        capacity_per_s: f64,
        /// The most that was offered without them, per second.
        pressed_per_s: f64,
    },
    /// The server serves less the more is offered.
    ThroughputFalls {
        /// What is served at the most, per second.
        capacity_per_s: f64,
        /// What is served at the level where that is least.
        served_per_s: f64,
        /// 95 % confidence interval of it.
        served_ci95_per_s: [f64; 2],
        /// What is offered there.
        offered_per_s: f64,
    },
    /// The server serves as much however much is offered.
    ThroughputFlat {
        /// What is served at the most, per second.
        capacity_per_s: f64,
        /// What is served where the most is offered.
        served_per_s: f64,
        /// 95 % confidence interval of it, where known.
        served_ci95_per_s: Option<[f64; 2]>,
        /// The most that is offered.
        offered_per_s: f64,
    },
    /// SYNs were sent again: what arrives is more than what is started.
    SynRetransmissions {
        /// Where.
        at: Level,
        /// SYNs that came again, per second.
        repeated_per_s: f64,
        /// First SYNs per second.
        first_per_s: f64,
        /// T.
        patience_ns: f64,
    },
    /// T is so long that an unanswered SYN is sent again before it ends.
    PatienceTooLong {
        /// T.
        patience_ns: f64,
    },
    /// Connections that are established here and were never taken in there.
    Ghosts {
        /// Where.
        at: Level,
        /// How many.
        count: u64,
        /// As a share of the attempts, in percent.
        percent: f64,
    },
    /// No local port was left.
    PortsExhausted {
        /// Where.
        at: Level,
        /// Attempts that found none.
        count: u64,
        /// As a share of the attempts, in percent.
        percent: f64,
        /// How connections are closed.
        close: CloseKind,
    },
    /// No descriptor was left.
    DescriptorsExhausted {
        /// Where.
        at: Level,
        /// Attempts that found none.
        count: u64,
        /// As a share of the attempts, in percent.
        percent: f64,
    },
    /// The generator did not start what the descriptors, or the schedule, stand for.
    GeneratorLimitsSynRate {
        /// Where first.
        at: Level,
        /// Starts per second there.
        started_per_s: f64,
        /// Starts per second that were due.
        due_per_s: f64,
        /// What the busiest worker used of its core, polling apart.
        busy_percent: f64,
        /// The highest rate at which it kept up, where it did.
        kept_per_s: Option<f64>,
    },
    /// What was captured at the server is not what was started here.
    CapturesDisagree {
        /// Where.
        at: Level,
        /// First SYNs captured per second.
        captured_per_s: f64,
        /// SYNs started per second.
        started_per_s: f64,
        /// By how much they differ, in percent.
        percent: f64,
        /// Packets that the capture lost.
        capture_lost: u64,
    },
    /// Connections are refused.
    RefusesConnections {
        /// Where.
        at: Level,
        /// How many.
        count: u64,
        /// As a share of the attempts, in percent.
        percent: f64,
    },
    /// Connections are reset.
    Resets {
        /// Where.
        at: Level,
        /// How many.
        count: u64,
        /// As a share of the attempts, in percent.
        percent: f64,
        /// What is served there, per second.
        served_per_s: f64,
    },
    /// Connections are made, or at least asked for, and none of them ever got a response.
    NeverAccepts {
        /// All attempts.
        attempts: u64,
        /// Those among them that were established here.
        established: u64,
    },
    /// The server's kernel answers SYNs with cookies.
    SyncookiesActive {
        /// Where.
        at: Level,
        /// SYNs so answered, of the whole host.
        sent: u64,
    },
    /// An automatic choice of descriptors ended below the factor asked for.
    FactorNotReached {
        /// The most that was offered, per second.
        offered_per_s: f64,
        /// What is served at the most, per second.
        capacity_per_s: f64,
        /// How many times it was to be.
        wanted: f64,
    },
}

impl OverloadDiagnosis {
    pub(super) fn code(&self) -> &'static str {
        match self {
            OverloadDiagnosis::SimpleClientsFlatten { .. } => "simple_clients_flatten",
            OverloadDiagnosis::ThroughputFalls { .. } => "throughput_falls_under_overload",
            OverloadDiagnosis::ThroughputFlat { .. } => "throughput_flat_under_overload",
            OverloadDiagnosis::SynRetransmissions { .. } => "syn_retransmissions",
            OverloadDiagnosis::PatienceTooLong { .. } => "patience_too_long",
            OverloadDiagnosis::Ghosts { .. } => "ghosts",
            OverloadDiagnosis::PortsExhausted { .. } => "ports_exhausted",
            OverloadDiagnosis::DescriptorsExhausted { .. } => "descriptors_exhausted",
            OverloadDiagnosis::GeneratorLimitsSynRate { .. } => "generator_limits_syn_rate",
            OverloadDiagnosis::CapturesDisagree { .. } => "captures_disagree",
            OverloadDiagnosis::RefusesConnections { .. } => "refuses_connections",
            OverloadDiagnosis::Resets { .. } => "resets",
            OverloadDiagnosis::NeverAccepts { .. } => "never_accepts",
            OverloadDiagnosis::SyncookiesActive { .. } => "syncookies_active",
            OverloadDiagnosis::FactorNotReached { .. } => "factor_not_reached",
        }
    }

    pub(super) fn severity(&self) -> Severity {
        match self {
            OverloadDiagnosis::PortsExhausted { .. }
            | OverloadDiagnosis::DescriptorsExhausted { .. } => Severity::Error,
            OverloadDiagnosis::SimpleClientsFlatten { .. }
            | OverloadDiagnosis::ThroughputFlat { .. }
            | OverloadDiagnosis::Ghosts { .. }
            | OverloadDiagnosis::FactorNotReached { .. } => Severity::Info,
            // Clients that wait as long as they have to send again: that is how they are.
            OverloadDiagnosis::SynRetransmissions {
                at: Level::Clients(_),
                ..
            } => Severity::Info,
            _ => Severity::Warning,
        }
    }
}
