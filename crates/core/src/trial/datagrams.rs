//! What a trial of datagrams shows beyond any other.

use crate::trial::report::QuantilesReport;
use knee_load::stats::gaps::Dispersion;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where each datagram went: `intended` = `not_attempted` + `send_errors` + all of `lost` +
/// `received` + `discarded` + `unexplained`, always.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LedgerReport {
    /// Datagrams that should have been sent.
    pub intended: u64,
    /// Datagrams that the sender did not attempt.
    pub not_attempted: u64,
    /// Datagrams that the kernel refused.
    pub send_errors: u64,
    /// Datagrams lost on the way, by place; places without losses are left out.
    pub lost: BTreeMap<String, u64>,
    /// Distinct datagrams that the service received.
    pub received: u64,
    /// Datagrams that reached the service but were not counted.
    pub discarded: u64,
    /// The rest. Negative where more came than can have been sent.
    pub unexplained: i64,
    /// The evidence of each loss.
    #[serde(default)]
    pub evidence: Vec<LossEvidence>,
}

impl LedgerReport {
    /// Datagrams that the kernel took.
    pub fn sent(&self) -> u64 {
        self.intended.saturating_sub(self.not_attempted + self.send_errors)
    }
}

/// The evidence that datagrams were lost at a place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LossEvidence {
    /// Name of the place.
    pub place: String,
    /// The value of the counter.
    pub counted: u64,
    /// Number of missing datagrams that are attributed to it.
    pub attributed: u64,
    /// The counter.
    pub source: String,
    /// Whether it counts for the whole host and not for our socket alone.
    pub host_wide: bool,
    /// Whether nobody counted them and they are put there as no other place is left.
    #[serde(default)]
    pub inferred: bool,
}

/// Figures of a trial of datagrams beside its ledger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatagramReport {
    /// Datagrams sent per second.
    pub sent_per_s: f64,
    /// Datagrams received per second.
    pub received_per_s: f64,
    /// Datagrams sent but not received, per second.
    pub dropped_per_s: f64,
    /// Datagrams sent but not received, in percent of those sent.
    pub loss_percent: f64,
    /// The loss, in percent, that the times of sending have through a receive buffer of this room
    /// and a server of this fixed work. It is a simulation of G/D/1/K with Linux's rule of giving
    /// room back. Times are simulated where those of a Poisson schedule were not all kept. Absent
    /// where work or room are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theory_loss_percent: Option<f64>,
    /// Datagrams that came again.
    pub duplicates: u64,
    /// Datagrams that came out of order.
    pub reordered: u64,
    /// Send errors by name.
    #[serde(default)]
    pub send_errors: BTreeMap<String, u64>,
    /// Discards by reason.
    #[serde(default)]
    pub discarded: BTreeMap<String, u64>,
    /// Times that a sender had to wait for room in its send buffer.
    pub blocked: u64,
    /// Arrival − send.
    pub one_way_delay_ns: QuantilesReport,
    /// How well the clocks of both hosts are known to agree; 0 on one host.
    pub clock_uncertainty_ns: u64,
    /// Index of dispersion of the counts of *arrivals*.
    pub arrival_dispersion: Dispersion,
    /// Dispersion at more time scales, for the plot.
    #[serde(default)]
    pub dispersion_by_scale: Vec<DispersionAt>,
    /// Coefficient of variation of the gaps between arrivals.
    pub arrival_gap_cv: Option<f64>,
    /// The most arrivals in any millisecond.
    pub burst_max: u64,
    /// Milliseconds by their number of arrivals (the index), for the plot.
    #[serde(default)]
    pub arrivals_per_ms: Vec<u64>,
    /// The service's receive buffer in bytes.
    pub rcvbuf_bytes: u64,
    /// Number of these datagrams that it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_datagrams: Option<u64>,
    /// The work that a full buffer holds: its datagrams times the mean work of each, where both
    /// are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_work_ns: Option<u64>,
    /// The service's mean work per datagram, where it does any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_work_ns: Option<u64>,
    /// Why the service could not tell what it received, in words; absent where it could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_lost: Option<String>,
    /// What on the service's host may count drops but could not be read, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_read: Vec<String>,
    /// The longest time in which the service neither received nor waited.
    pub service_pause_ns_max: u64,
    /// Times that the service was preempted.
    pub service_preempted: u64,
    /// Times that it was given a processor; 0: not known.
    #[serde(default)]
    pub service_scheduled: u64,
    /// Share of the time in which the service was ready but others had its processor, in percent.
    pub service_waiting_percent: f64,
    /// Share of a core that the service used, in percent.
    pub service_cpu_percent: f64,
    /// Least and most datagrams received of any one client.
    pub by_client: [u64; 2],
}

/// Dispersion of arrivals at one time scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DispersionAt {
    /// Length of the bins.
    pub scale_ns: u64,
    /// Variance over mean of the counts per bin.
    pub index: f64,
}
