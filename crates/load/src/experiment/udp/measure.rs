//! What was measured of datagrams: by those who sent them and by the service that counted them.

use crate::experiment::udp::spec::{ServiceMode, UdpTrialSpec};
use crate::law::Law;
use crate::measure::{GeneratorUse, Histogram};
use crate::names::names;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One trial of datagrams as the engine ran it. Times are since the run began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UdpTrial {
    /// The specification of the trial.
    pub spec: UdpTrialSpec,
    /// What the senders did.
    pub sent: UdpSent,
    /// What the service saw; `None` where it vanished before it could tell.
    pub received: Option<UdpReceived>,
    /// Why the service could not tell, in words.
    pub service_lost: Option<String>,
    /// What the service is.
    pub service: ServiceFacts,
    /// Counters of the sending host that moved, by name (see [`DropCounter`] for the drops).
    pub kernel: BTreeMap<String, i64>,
    /// Drops that kernels counted during the trial, on either host. Those of the quiet time before
    /// it, scaled to its length, are taken off. A counter that did not move may be left out. Those
    /// of the service's host are known where its kernel is, or where one of them is listed.
    pub drops: Vec<DropCounter>,
    /// What on the service's host may count drops but could not be read, in words.
    #[serde(default)]
    pub not_read: Vec<String>,
    /// Resources that the generator used.
    pub generator: GeneratorUse,
    /// The user ended it early.
    pub interrupted: bool,
}

/// What the senders of a trial did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UdpSent {
    /// Datagrams that should have been sent: the schedule's times, or what clients that know no
    /// schedule tried.
    pub intended: u64,
    /// Intended datagrams that the sender did not attempt, as its time was over.
    pub not_attempted: u64,
    /// Those that the kernel took.
    pub sent: u64,
    /// Those that it refused, by the name of the error (`EAGAIN`, `ENOBUFS`, `EMSGSIZE`,
    /// `ECONNREFUSED`, …).
    pub send_errors: BTreeMap<String, u64>,
    /// Times that a sender was blocked or had to wait as the socket's send buffer was full.
    pub blocked: u64,
    /// sent − intended of scheduled datagrams.
    pub pacing_error: Histogram,
    /// When datagrams were sent, ascending, complete up to `starts_until`.
    pub starts: Vec<Nanos>,
    /// Up to when `starts` is complete.
    pub starts_until: Nanos,
    /// Datagrams sent in each interval.
    pub by_interval: Vec<u64>,
    /// Echoes that came back, by their round-trip time: received − sent.
    pub round_trip: Histogram,
    /// Echoes that came more than once or were not of this run.
    pub stray_replies: u64,
    /// The longest time by which a sender woke late or was busy past a deadline.
    pub stall_ns_max: u64,
    /// From the beginning of the run, when all clients begin, to the end of sending.
    pub elapsed: Nanos,
    /// Time in which the processors that the clients are bound to were busy, with any work, summed
    /// over them. `None`: they are bound to none, or it is not known.
    #[serde(default)]
    pub processors_busy: Option<Nanos>,
}

/// What the service saw of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UdpReceived {
    /// Distinct datagrams of this run.
    pub received: u64,
    /// Datagrams that came again.
    pub duplicates: u64,
    /// Distinct datagrams that came after one that their client sent later (RFC 4737 §3:
    /// reordered if the number is below the next expected).
    pub reordered: u64,
    /// Datagrams that reached the service but were not counted, by reason (`not_of_this_run`,
    /// `malformed`).
    pub discarded: BTreeMap<String, u64>,
    /// Distinct datagrams by the interval in which they were *sent*, so that a late one counts
    /// where its loss would.
    pub by_interval: Vec<u64>,
    /// Datagrams received of each client.
    pub by_client: Vec<u64>,
    /// Arrival − send, on the sender's clock.
    pub one_way_delay: Histogram,
    /// When they arrived (the kernel's receive timestamps), ascending, on the sender's clock.
    pub arrivals: Vec<Nanos>,
    /// Up to when `arrivals` is complete.
    pub arrivals_until: Nanos,
    /// Datagrams dropped at the service's socket, by SO_MEMINFO (socket(7)): receive buffer full,
    /// no memory, or a wrong checksum.
    pub socket_drops: u64,
    /// Replies sent (echo).
    pub replies: u64,
    /// The longest time in which the service neither received nor waited: its own pause.
    pub pause_ns_max: u64,
    /// Processor time of the service's thread.
    pub cpu: Nanos,
    /// How long that and what follows were measured: from the origin until the service knew that
    /// nothing more would come; zero: the time of sending.
    #[serde(default)]
    pub over: Nanos,
    /// Time in which the service's thread was ready but others had its processor.
    pub kept_waiting: Nanos,
    /// Times that the service's thread was preempted (involuntary context switches).
    pub preempted: u64,
    /// Times that it was given a processor, after a wait in the run queue or without one; 0: not
    /// known.
    #[serde(default)]
    pub scheduled: u64,
}

/// What a service is, as it tells when a session begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceFacts {
    /// Whether it runs on the sender's host (same boot), so that both have one clock.
    pub same_host: bool,
    /// Whether it is in the sender's network namespace, so that nothing is between them.
    #[serde(default)]
    pub same_namespace: bool,
    /// Uncertainty of its clock's offset from the sender's; 0 on one host.
    pub clock_uncertainty_ns: u64,
    /// What it does with a datagram.
    pub mode: Option<ServiceMode>,
    /// Work per datagram.
    pub work: Option<Law>,
    /// Its receive buffer as the kernel has it, in bytes.
    pub rcvbuf_bytes: u64,
    /// How many datagrams of this trial's size that buffer holds, as measured; `None`: unknown.
    pub buffer_datagrams: Option<u64>,
    /// The processors that it may use.
    pub cpus: Vec<u32>,
    /// Whether it may have real-time priority.
    #[serde(default)]
    pub may_be_realtime: bool,
    /// Its process.
    pub pid: u32,
    /// Its kernel.
    pub kernel: String,
}

/// Drops that a kernel counted at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropCounter {
    /// Place of the drops.
    pub place: DropPlace,
    /// Number of drops.
    pub count: u64,
    /// The counter's name, such as `/proc/net/softnet_stat` or `Udp: InCsumErrors`.
    pub source: String,
    /// Whether it counts for the whole host (or network namespace) and not for our socket alone.
    pub host_wide: bool,
    /// Whether it counts all that the whole kernel drops for some reason, in every network
    /// namespace, so that it tells again what other counters tell.
    #[serde(default)]
    pub whole_kernel: bool,
    /// Whether it is of the service's host; otherwise the sender's. (Both, where they are one.)
    pub at_service: bool,
}

names! {
    /// Where a datagram can be lost on its way, in the order in which it passes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DropPlace {
        /// The sending socket's buffer.
        SendBuffer = "send_buffer",
        /// The queueing discipline of the device it leaves by.
        Qdisc = "qdisc",
        /// The queue for a neighbour whose address is not resolved.
        NeighbourQueue = "neighbour_queue",
        /// A network device, of either host.
        Device = "device",
        /// A router on the way, as the time to live ran out.
        TimeToLive = "time_to_live",
        /// Between the hosts.
        Path = "path",
        /// The receiving host's backlog (softnet).
        Backlog = "backlog",
        /// A packet filter whose rule or policy counts what it drops, or whose drops the kernel
        /// reports.
        Firewall = "firewall",
        /// The IP layer of either host: no route, a wrong header, a reverse-path filter, or a
        /// packet filter that does not count.
        IpLayer = "ip_layer",
        /// Its fragments did not become a datagram again.
        Reassembly = "reassembly",
        /// No socket listens there.
        NoSocket = "no_socket",
        /// Its checksum was wrong.
        Checksum = "checksum",
        /// The receiving socket's buffer was full.
        ReceiveBuffer = "receive_buffer",
        /// The memory that all of UDP may have was used up.
        UdpMemory = "udp_memory",
        /// The service took it and vanished.
        Service = "service",
    }
}
