//! What is asked of datagram senders and of the service that counts them.

use crate::law::Law;
use crate::spec::{ArrivalLaw, EngineOptions, Level, Rate};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

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
