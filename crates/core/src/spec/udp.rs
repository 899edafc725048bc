//! What is asked of datagram senders and of the service that counts them.

use super::{ArrivalLaw, EngineOptions, Level, Rate};
use crate::law::Law;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// All that the engine needs to run one trial of datagrams, and all that is needed to repeat it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpTrialSpec {
    /// A name for people, such as `exp(200us)*128`.
    pub label: String,
    /// What this trial varies.
    pub level: Level,
    /// The service, such as `127.0.0.1:9000`: datagrams over UDP, control over TCP on that port.
    pub service: String,
    /// The secret that the service asks for; empty where it asks for none.
    pub token: String,
    /// Clients, at least 1. Each numbers its datagrams from 0.
    pub clients: u32,
    /// What a client does between two datagrams.
    pub wait: ClientWait,
    /// What carries the clients.
    pub carried_as: ClientsAs,
    /// Bytes of each datagram's payload, at least [`UdpTrialSpec::SIZE_MIN`].
    pub size: u32,
    /// Whether a burst goes to the kernel as one buffer that it cuts (UDP_SEGMENT, udp(7)).
    pub gso: bool,
    /// Timer slack of clients that sleep (all but scheduled ones): 50 µs is what the kernel gives
    /// every program.
    pub timer_slack: Nanos,
    /// Processors that the clients may use; empty: any.
    pub client_cpus: Vec<u32>,
    /// What is asked of the service for this trial.
    pub setup: ServiceSetup,
    /// How long datagrams are sent. All of it is measured; there is no warm-up, as the ledger
    /// counts every datagram.
    pub duration: Nanos,
    /// Exactly so many datagrams are intended, then the trial ends; `None`: time alone ends it.
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
}

/// What a client does between two datagrams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientWait {
    /// Nothing: as fast as the machine goes.
    None,
    /// Gives up the processor and goes on: sched_yield(2).
    Yield,
    /// A nanosleep(2) of zero: on Linux that still costs the timer slack.
    SleepZero,
    /// A relative sleep of this law after each send: time spent sending and waking adds to it.
    Sleep(Law),
    /// Sleeps until the next tick of a clock of this period, all clients at the same moments: an
    /// old kernel.
    Tick(Nanos),
    /// Absolute deadlines of a schedule that all clients share out among them; client i of N takes
    /// its [`super::Share`].
    Schedule {
        /// Mean datagrams per second of all clients together.
        rate: Rate,
        /// When they are sent.
        arrival: ArrivalLaw,
    },
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

/// What is asked of the service for a trial; `None` leaves it as it was started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceSetup {
    /// What it does with a datagram.
    pub mode: Option<ServiceMode>,
    /// Work per datagram: the processor is kept busy for so long.
    pub work: Option<Law>,
    /// Receive buffer asked for, SO_RCVBUF in bytes as given to setsockopt(2) (the kernel doubles
    /// it).
    pub rcvbuf: Option<u32>,
    /// The processor that the service is bound to.
    pub cpu: Option<u32>,
}
