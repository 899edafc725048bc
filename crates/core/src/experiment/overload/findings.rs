//! Findings about load beyond capacity.

mod diagnose;
mod evidence;
mod remedy;
#[cfg(test)]
mod tests;
mod words;

pub use diagnose::overload_findings;
pub(crate) use remedy::ports_remedy;

use crate::experiment::overload::analysis::{Accepts, Stop, Why};
use crate::finding::Severity;
use crate::measure::Outcome;
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
        /// 95 % confidence interval of it, where known.
        served_ci95_per_s: Option<[f64; 2]>,
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
    /// The server served, and then did not.
    Stopped(Stop),
    /// Connects are not answered.
    Unanswered {
        /// Where the largest share is.
        at: Level,
        /// How many.
        count: u64,
        /// As a share of the attempts, in percent.
        percent: f64,
        /// Why.
        why: Why,
        /// First SYNs that reached the server per second, as counted.
        arrived_per_s: f64,
        /// SYNs that its listening sockets dropped, where somebody counted.
        listen_drops: Option<u64>,
        /// Its accept queue at the most, and how many it may hold, where somebody looked.
        queue: Option<(u32, u32)>,
    },
    /// Attempts end otherwise than in a response that says yes.
    Fails {
        /// How.
        how: Outcome,
        /// Where the largest share of them does.
        at: Level,
        /// How many.
        count: u64,
        /// As a share of the attempts, or of the established connections, in percent.
        percent: f64,
        /// What is served there, per second.
        served_per_s: f64,
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
        /// Whether the conclusion leaves such levels out, and stands.
        is_left_out: bool,
    },
    /// The conclusion leaves levels out, as the generator distorted them, and stands on the others.
    LevelsLeftOut {
        /// Which.
        at: Vec<Level>,
        /// How many there are in all.
        of: usize,
        /// What makes them invalid.
        clauses: Vec<String>,
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
    /// Connections are made, and none of them ever got a response.
    NeverAnswers {
        /// All attempts.
        attempts: u64,
        /// Those among them that were established here.
        established: u64,
        /// Whether it takes them out of its accept queue.
        accepts: Accepts,
        /// Its accept queue at the most, and how many it may hold, where somebody looked.
        queue: Option<(u32, u32)>,
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
    pub(crate) fn code(&self) -> &'static str {
        match self {
            OverloadDiagnosis::SimpleClientsFlatten { .. } => "simple_clients_flatten",
            OverloadDiagnosis::ThroughputFalls { .. } => "throughput_falls_under_overload",
            OverloadDiagnosis::ThroughputFlat { .. } => "throughput_flat_under_overload",
            OverloadDiagnosis::SynRetransmissions { .. } => "syn_retransmissions",
            OverloadDiagnosis::Stopped(stop) if stop.again.is_some() => "outage",
            OverloadDiagnosis::Stopped(stop) if stop.has_crashed() => "server_crashed",
            OverloadDiagnosis::Stopped(_) => "server_stopped",
            OverloadDiagnosis::Unanswered { why, .. } => match why {
                Why::QueueFull => "accept_queue_full",
                Why::DroppedThere | Why::DroppedBefore | Why::Silent => "no_syn_ack",
                Why::Unknown => "connects_unanswered",
            },
            OverloadDiagnosis::Fails { how, .. } => failure_code(*how),
            OverloadDiagnosis::LevelsLeftOut { .. } => "levels_left_out",
            OverloadDiagnosis::PortsExhausted { .. } => "ports_exhausted",
            OverloadDiagnosis::DescriptorsExhausted { .. } => "descriptors_exhausted",
            OverloadDiagnosis::GeneratorLimitsSynRate { .. } => "generator_limits_syn_rate",
            OverloadDiagnosis::CapturesDisagree { .. } => "captures_disagree",
            OverloadDiagnosis::NeverAnswers {
                accepts: Accepts::No,
                ..
            } => "never_accepts",
            OverloadDiagnosis::NeverAnswers { .. } => "never_answers",
            OverloadDiagnosis::SyncookiesActive { .. } => "syncookies_active",
            OverloadDiagnosis::FactorNotReached { .. } => "factor_not_reached",
        }
    }

    pub(crate) fn severity(&self) -> Severity {
        match self {
            OverloadDiagnosis::PortsExhausted { .. }
            | OverloadDiagnosis::DescriptorsExhausted { .. }
            | OverloadDiagnosis::Stopped(_)
            | OverloadDiagnosis::NeverAnswers { .. } => Severity::Error,
            OverloadDiagnosis::SimpleClientsFlatten { .. }
            | OverloadDiagnosis::ThroughputFlat { .. }
            | OverloadDiagnosis::Unanswered {
                why: Why::QueueFull | Why::Unknown,
                ..
            }
            | OverloadDiagnosis::Fails {
                how: Outcome::Ghost | Outcome::Late,
                ..
            }
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

/// The code of attempts that end so.
fn failure_code(how: Outcome) -> &'static str {
    match how {
        Outcome::Refused => "refuses_connections",
        Outcome::Reset => "resets",
        Outcome::Ghost => "ghosts",
        Outcome::Closed => "accepted_and_closed",
        Outcome::Truncated => "truncated_responses",
        Outcome::Malformed => "malformed_responses",
        Outcome::Http4xx | Outcome::Http5xx => "error_responses",
        Outcome::ResponseTimeout => "response_timeouts",
        Outcome::Unreachable => "host_unreachable",
        Outcome::Late => "established_late",
        _ => "other_failures",
    }
}
