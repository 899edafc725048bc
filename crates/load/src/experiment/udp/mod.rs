//! UDP arrivals against loss: what is asked of senders and service, and what each measured.

pub mod recorder;

use crate::law::Law;
use crate::measure::{GeneratorUse, Histogram};
use crate::names::names;
use crate::spec::{ArrivalLaw, EngineOptions, Level, Rate};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All that the engine needs to run one trial of datagrams, and all that is needed to repeat it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpTrialSpec {
    /// A name for people, such as `exp(200us)*128`.
    pub label: String,
    /// What this trial varies.
    pub level: Level,
    /// The service, such as `127.0.0.1:7007`: datagrams over UDP, control over TCP on that port.
    pub service: String,
    /// The secret that the service asks for; empty where it asks for none.
    pub token: String,
    /// Clients, at least 1. Each numbers its datagrams from 0.
    pub clients: u32,
    /// What a client does between two datagrams.
    pub wait: ClientWait,
    /// What carries the clients.
    pub carried_as: ClientsAs,
    /// Whether each client that sleeps begins at a random time of its own and has a clock of its
    /// own: the same waits, without wake-ups in common.
    #[serde(default)]
    pub unsynchronised: bool,
    /// Bytes of each datagram's payload, at least [`UdpTrialSpec::SIZE_MIN`].
    pub size: u32,
    /// Whether a burst goes to the kernel as one buffer that it cuts (UDP_SEGMENT, udp(7)).
    pub gso: bool,
    /// Timer slack of clients that sleep (all but scheduled ones): 50 µs is what the kernel gives
    /// every program.
    pub timer_slack: Nanos,
    /// Least processor time of a client for each datagram. What its work lacks of it is spent in a
    /// loop, as on a slower machine.
    #[serde(default)]
    pub send_cost: Nanos,
    /// Processors that the clients may use; empty: any.
    pub client_cpus: Vec<u32>,
    /// The settings of the service for this trial.
    pub setup: ServiceSetup,
    /// How long datagrams are sent. All of it is measured; there is no warm-up, as the ledger
    /// counts every datagram.
    pub duration: Nanos,
    /// Number of datagrams after which the trial ends; `None`: time alone ends it.
    pub datagrams_max: Option<u64>,
    /// Length of the intervals of the time series.
    pub interval: Nanos,
    /// Seeds every random choice.
    pub seed: u64,
    /// How the generator itself works.
    pub engine: EngineOptions,
}

impl UdpTrialSpec {
    /// The smallest payload: the header that every datagram carries.
    pub const SIZE_MIN: u32 = 40;
    /// The largest payload of UDP over IPv4: 65,535 − 20 − 8 bytes (RFC 768, RFC 791).
    pub const SIZE_MAX: u32 = 65_507;

    /// Time before the first datagram in which all senders are started: a thread takes some 50 µs,
    /// a process some milliseconds.
    pub fn lead(&self) -> Nanos {
        let (begin, each) = match self.carried_as {
            ClientsAs::Multiplexed => (Nanos::from_millis(5), Nanos::ZERO),
            ClientsAs::Threads => (Nanos::from_millis(5), Nanos::from_micros(100)),
            ClientsAs::Processes => (Nanos::from_millis(50), Nanos::from_millis(5)),
        };
        begin + Nanos(each.0 * u64::from(self.clients))
    }

    /// The most time that a trial takes beside its sending. It has the control connection, a quiet
    /// time before, and the start of the senders. Then comes the service's work on a full buffer
    /// after the last datagram, which the service limits to 5 s.
    pub fn around(&self) -> Nanos {
        let buffer = self.setup.rcvbuf.map_or(RCVBUF, |asked| 2 * u64::from(asked));
        let work_ns = self.setup.work.unwrap_or(Law::ZERO).mean_ns();
        let full_ns = work_ns * (buffer / DATAGRAM_MIN) as f64;
        Nanos::from_millis(300) + self.lead() + Nanos(full_ns as u64).min(Nanos::from_secs(5))
    }
}

/// The receive buffer that Linux gives a socket (net.core.rmem_default).
const RCVBUF: u64 = 212_992;

/// What the least datagram takes of it.
const DATAGRAM_MIN: u64 = 768;

/// What a client does between two datagrams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientWait {
    /// Nothing: as fast as the machine goes.
    None,
    /// Yields the processor and goes on: sched_yield(2).
    Yield,
    /// A nanosleep(2) of zero: on Linux that still costs the timer slack.
    SleepZero,
    /// A relative sleep of this law after each send: time spent sending and waking adds to it.
    Sleep(Law),
    /// A short sleep on an old kernel, whose timers count ticks of this length. It ends with the
    /// second tick from now, for all clients at the same times. Linux before 2.6.16 rounded a sleep
    /// up to whole ticks and added one (sys_nanosleep in kernel/timer.c). So a sleep of 1 ms took
    /// 20 ms at 100 ticks a second.
    Tick(Nanos),
    /// Absolute deadlines of a schedule that all clients share out among them; client i of N takes
    /// its [`crate::spec::Share`].
    Schedule {
        /// Mean datagrams per second of all clients together.
        rate: Rate,
        /// When they are sent.
        arrival: ArrivalLaw,
    },
}

impl ClientWait {
    /// Its name in reports, as on the command line: `yield`, `exp(200us)`, `tick(10ms)`, and of a
    /// schedule its arrival process, `poisson`.
    pub fn name(&self) -> String {
        match self {
            ClientWait::None => "none".to_owned(),
            ClientWait::Yield => "yield".to_owned(),
            ClientWait::SleepZero => "sleep(0)".to_owned(),
            ClientWait::Sleep(law) => sleep_name(law),
            ClientWait::Tick(period) => format!("tick({})", compact(*period)),
            ClientWait::Schedule { arrival, .. } => arrival.name().to_owned(),
        }
    }

    /// Whether clients sleep for a length of time, so that the timer slack counts.
    pub fn sleeps(&self) -> bool {
        use ClientWait::{Sleep, SleepZero, Tick};
        matches!(self, SleepZero | Sleep(_) | Tick(_))
    }

    /// The mean time between two wake-ups of a client that is never late, where its wait has a
    /// length.
    pub fn cycle(&self) -> Option<Nanos> {
        let cycle = match self {
            ClientWait::Sleep(law) => Nanos(law.mean_ns() as u64),
            // A client wakes with every second tick.
            ClientWait::Tick(period) => *period + *period,
            _ => Nanos::ZERO,
        };
        (cycle > Nanos::ZERO).then_some(cycle)
    }

    /// Whether the times of sending are random by the law itself.
    pub fn is_random(&self) -> bool {
        match self {
            ClientWait::Sleep(law) => !matches!(law, Law::Fixed(_)),
            ClientWait::Schedule { arrival, .. } => *arrival != ArrivalLaw::Constant,
            _ => false,
        }
    }
}

fn sleep_name(law: &Law) -> String {
    match *law {
        Law::Fixed(t) => format!("sleep({})", compact(t)),
        Law::Exp(mean) => format!("exp({})", compact(mean)),
        Law::Uniform(lo, hi) => format!("uniform({},{})", compact(lo), compact(hi)),
        Law::LogNormal(median, sigma) => format!("lognormal({},{sigma})", compact(median)),
    }
}

/// Exactly, in the largest unit that needs no fraction.
fn compact(t: Nanos) -> String {
    match t {
        Nanos::ZERO => "0".to_owned(),
        t => t.exactly(),
    }
}

/// What carries the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientsAs {
    /// One schedule, few threads: clients are numbers in datagrams.
    Multiplexed,
    /// A thread and a socket each.
    Threads,
    /// A process and a socket each, scheduler effects included.
    Processes,
}

/// What a service does with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceMode {
    /// Counts it.
    Sink,
    /// Counts it and sends it back.
    Echo,
}

/// Settings of the service for a trial; `None` leaves it as it was started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceSetup {
    /// What it does with a datagram.
    pub mode: Option<ServiceMode>,
    /// Work per datagram: the time for which the processor is kept busy.
    pub work: Option<Law>,
    /// Receive buffer asked for, SO_RCVBUF in bytes as given to setsockopt(2) (the kernel doubles
    /// it).
    pub rcvbuf: Option<u32>,
    /// The processor that the service is bound to.
    pub cpu: Option<u32>,
    /// Whether the service goes before all others on its processor (SCHED_FIFO, sched(7)).
    #[serde(default)]
    pub realtime: bool,
}

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
    /// Datagrams that the kernel refused in each interval.
    #[serde(default)]
    pub refused_by_interval: Vec<u64>,
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

impl DropCounter {
    /// Drops at the service's socket, as the socket itself counts them.
    pub fn at_socket(place: DropPlace, count: u64) -> DropCounter {
        DropCounter {
            place,
            count,
            source: "SO_MEMINFO".to_owned(),
            host_wide: false,
            whole_kernel: false,
            at_service: true,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::parse_law;

    #[test]
    fn waits_have_the_names_of_the_command_line() {
        let us = Nanos::from_micros;
        for (wait, name) in [
            (ClientWait::Yield, "yield"),
            (ClientWait::Sleep(Law::Exp(us(200))), "exp(200us)"),
            (ClientWait::Sleep(Law::Fixed(us(1_500))), "sleep(1500us)"),
            (ClientWait::Sleep(Law::ZERO), "sleep(0)"),
            (ClientWait::Sleep(Law::Uniform(Nanos(5), us(2_000))), "uniform(5ns,2ms)"),
            (ClientWait::Tick(us(10_000)), "tick(10ms)"),
        ] {
            assert_eq!(wait.name(), name);
        }
        assert_eq!(parse_law("exp(200us)"), Ok(Law::Exp(us(200))));
    }
}
