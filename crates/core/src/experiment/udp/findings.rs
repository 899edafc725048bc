//! Findings about trials of datagrams.

mod diagnose;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use diagnose::buffer_covers_ns;
pub use diagnose::{datagram_findings, explained_findings};

use crate::experiment::udp::measure::DropPlace;
use crate::finding::Severity;

/// A finding about datagrams before it is put into words.
#[derive(Clone, Debug, PartialEq)]
pub struct UdpDiagnosis {
    /// The kind of clients that it holds for, by the label of its trials; `None` where there is
    /// only one kind.
    pub at: Option<String>,
    /// What was found, all trials of that kind taken together.
    pub trouble: DatagramTrouble,
    /// Whether its report tells why too.
    pub is_explained: bool,
}

/// What can be the matter with datagrams.
#[derive(Clone, Debug, PartialEq)]
pub enum DatagramTrouble {
    /// The service's receive buffer was full: a place, not a cause.
    ReceiveBufferOverflow {
        /// Datagrams lost there.
        lost: u64,
        /// As a share of those sent, in percent.
        percent: f64,
        /// The buffer in bytes.
        bytes: u64,
        /// How many of these datagrams it holds, where known.
        holds: Option<u64>,
        /// How long it takes to fill at the mean rate of sending, where known.
        covers_ns: Option<f64>,
    },
    /// Datagrams were lost at another place on their way.
    LostAt {
        /// Where.
        place: DropPlace,
        /// How many.
        lost: u64,
        /// As a share of those sent, in percent.
        percent: f64,
        /// What tells of it, with how many are put down to it.
        told: Vec<(String, u64)>,
        /// Whether nobody counted them.
        is_inferred: bool,
        /// What on the service's host may have counted them but could not be read.
        not_read: Vec<String>,
    },
    /// The service received datagrams that it could not count as those of this run.
    Discarded {
        /// How many.
        count: u64,
        /// As a share of those sent, in percent.
        percent: f64,
        /// How many it discarded in all, by reason.
        by_reason: Vec<(String, u64)>,
    },
    /// The kernel refused to send.
    SendErrors {
        /// The most frequent error.
        name: String,
        /// How many were refused, for whatever reason.
        count: u64,
        /// As a share of those intended, in percent.
        percent: f64,
        /// All errors by name.
        by_name: Vec<(String, u64)>,
    },
    /// No counter tells where they went; negative: more came than was sent.
    Unexplained {
        /// How many.
        count: i64,
        /// As a share of those intended, in percent.
        percent: f64,
    },
    /// The service was gone before it could tell what it received.
    ServiceVanished {
        /// Why, in words.
        why: String,
        /// Datagrams of which nobody can tell.
        lost: u64,
    },
    /// More came than the service can work off.
    ServiceSaturated {
        /// Datagrams sent per second.
        offered_per_s: f64,
        /// What the service can do per second: one over its work.
        capacity_per_s: f64,
    },
    /// The senders did not keep their schedule.
    SenderLimited {
        /// Datagrams that they never came to.
        not_attempted: u64,
        /// As a share of those intended, in percent.
        percent: f64,
        /// Datagrams sent per second.
        sent_per_s: f64,
        /// The median lateness, in the trial where it is largest.
        behind_ns: f64,
        /// How many trials there were.
        trials: u32,
        /// Times that a sender waited for room in its send buffer.
        blocked: u64,
    },
    /// Datagrams came out of order.
    Reordering {
        /// How many.
        count: u64,
        /// As a share of those received, in percent.
        percent: f64,
    },
    /// Datagrams came more than once.
    Duplicates {
        /// How many.
        count: u64,
        /// As a share of those received, in percent.
        percent: f64,
    },
    /// The service stood still for longer than its buffer covers.
    ServicePaused {
        /// The longest pause.
        pause_ns: f64,
        /// How long the buffer takes to fill.
        covers_ns: f64,
        /// Times that the service was preempted.
        preempted: u64,
    },
    /// Some losses are put down to counters that others move too.
    HostWideEvidence {
        /// How many losses.
        count: u64,
        /// The places.
        places: Vec<String>,
    },
}

impl DatagramTrouble {
    /// Its stable name.
    pub fn code(&self) -> &'static str {
        match self {
            DatagramTrouble::ReceiveBufferOverflow { .. } => "receive_buffer_overflow",
            DatagramTrouble::LostAt { place, .. } => lost_at_code(*place),
            DatagramTrouble::Discarded { .. } => "datagrams_discarded",
            DatagramTrouble::SendErrors { .. } => "send_errors",
            DatagramTrouble::Unexplained { .. } => "datagrams_unexplained",
            DatagramTrouble::ServiceVanished { .. } => "service_vanished",
            DatagramTrouble::ServiceSaturated { .. } => "service_saturated",
            DatagramTrouble::SenderLimited { .. } => "sender_limited",
            DatagramTrouble::Reordering { .. } => "reordering",
            DatagramTrouble::Duplicates { .. } => "duplicates",
            DatagramTrouble::ServicePaused { .. } => "service_paused",
            DatagramTrouble::HostWideEvidence { .. } => "host_wide_evidence",
        }
    }

    /// How grave it is.
    pub fn severity(&self) -> Severity {
        match self {
            DatagramTrouble::ServiceVanished { .. } => Severity::Error,
            DatagramTrouble::Unexplained { count, .. } if *count < 0 => Severity::Error,
            DatagramTrouble::HostWideEvidence { .. } => Severity::Info,
            _ => Severity::Warning,
        }
    }
}

fn lost_at_code(place: DropPlace) -> &'static str {
    match place {
        DropPlace::SendBuffer => "lost_in_send_buffer",
        DropPlace::Qdisc => "lost_in_qdisc",
        DropPlace::NeighbourQueue => "lost_at_neighbour",
        DropPlace::Device => "lost_at_device",
        DropPlace::Path => "lost_between_hosts",
        DropPlace::Backlog => "lost_in_backlog",
        DropPlace::IpLayer => "lost_in_ip_layer",
        DropPlace::Firewall => "dropped_by_firewall",
        DropPlace::NoSocket => "no_socket",
        DropPlace::Checksum => "checksum_errors",
        DropPlace::ReceiveBuffer => "receive_buffer_overflow",
        DropPlace::UdpMemory => "udp_memory_exhausted",
        DropPlace::Service => "service_vanished",
    }
}

impl UdpDiagnosis {
    /// The numbers it rests on, by name; those that are not finite are not known.
    pub(crate) fn evidence(&self) -> Vec<(&'static str, f64)> {
        let known = |n: Option<f64>| n.unwrap_or(f64::NAN);
        match &self.trouble {
            DatagramTrouble::ReceiveBufferOverflow {
                lost,
                percent,
                bytes,
                holds,
                covers_ns,
            } => vec![
                ("lost", *lost as f64),
                ("percent", *percent),
                ("rcvbuf_bytes", *bytes as f64),
                ("buffer_datagrams", known(holds.map(|n| n as f64))),
                ("buffer_covers_ns", known(*covers_ns)),
            ],
            DatagramTrouble::LostAt {
                lost,
                percent,
                is_inferred,
                ..
            } => vec![
                ("lost", *lost as f64),
                ("percent", *percent),
                ("inferred", f64::from(u8::from(*is_inferred))),
            ],
            DatagramTrouble::SendErrors { count, percent, .. }
            | DatagramTrouble::Discarded { count, percent, .. }
            | DatagramTrouble::Reordering { count, percent }
            | DatagramTrouble::Duplicates { count, percent } => {
                vec![("count", *count as f64), ("percent", *percent)]
            }
            DatagramTrouble::Unexplained { count, percent } => {
                vec![("unexplained", *count as f64), ("percent", *percent)]
            }
            DatagramTrouble::ServiceVanished { lost, .. } => vec![("lost", *lost as f64)],
            DatagramTrouble::ServiceSaturated {
                offered_per_s,
                capacity_per_s,
            } => vec![
                ("offered_per_s", *offered_per_s),
                ("capacity_per_s", *capacity_per_s),
            ],
            DatagramTrouble::SenderLimited {
                not_attempted,
                percent,
                sent_per_s,
                behind_ns,
                blocked,
                ..
            } => vec![
                ("not_attempted", *not_attempted as f64),
                ("percent", *percent),
                ("sent_per_s", *sent_per_s),
                ("behind_p50_ns", *behind_ns),
                ("blocked", *blocked as f64),
            ],
            DatagramTrouble::ServicePaused {
                pause_ns,
                covers_ns,
                preempted,
            } => vec![
                ("pause_ns", *pause_ns),
                ("buffer_covers_ns", *covers_ns),
                ("service_preempted", *preempted as f64),
            ],
            DatagramTrouble::HostWideEvidence { count, .. } => vec![("count", *count as f64)],
        }
    }
}
