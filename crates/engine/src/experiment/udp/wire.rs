//! What client and service say to each other: a JSON object per line, over TCP.
//!
//! ```text
//! client                     service
//! hello{version, …}      →   welcome{…} | refused{reason} | busy
//! ping{n} …              →   pong{n, at_ns} …
//! begin{session, …}      →   ready{facts} | refused{reason}
//! start{origin_ns}       →   started          then datagrams; alive, once a second
//! end{sent}              →   record{…}        once what was on its way has come
//! ```
//!
//! After the record the client may begin again. The end of the connection ends the session.

pub use crate::control::{Greeting, Hello, Lines, Sharing, TooLong, line};
use crate::kernel::drops::fragments::Reassembly;
use knee_core::experiment::udp::measure::{DropCounter, ServiceFacts, UdpReceived};
use knee_core::experiment::udp::spec::{ServiceSetup, UdpTrialSpec};
use knee_core::law::Law;
use knee_core::time::Nanos;
use serde::{Deserialize, Serialize};

/// The command that starts the service.
pub const SERVICE: &str = "serve udp";

/// The longest line that either side reads, but for a record.
pub const LINE_MAX: usize = 8 << 10;

/// The longest record that a client reads, in bytes.
pub const RECORD_MAX: usize = 256 << 20;

/// The most clients that a session may have.
pub const CLIENTS_MAX: u32 = 1 << 20;

/// The longest time that a session may be asked for: a week.
const DURATION_MAX: Nanos = Nanos::from_secs(7 * 86_400);

/// The most intervals that a session may be cut into.
const INTERVALS_MAX: u64 = 1 << 20;

/// The longest work that may be asked for per datagram, on average.
const WORK_MAX: Nanos = Nanos::from_secs(10);

/// What a client says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// First of all.
    Hello(Hello),
    /// Asks for the service's clock.
    Ping {
        /// Comes back.
        n: u32,
    },
    /// Prepares a session.
    Begin(Begin),
    /// Datagrams come from now on.
    Start {
        /// When the run begins, in nanoseconds of the service's CLOCK_MONOTONIC.
        origin_ns: u64,
    },
    /// No more datagrams are sent.
    End {
        /// So many were.
        sent: u64,
    },
}

/// What a session is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// Every datagram of the session carries this number.
    pub session: u64,
    /// What is asked of the service for this session.
    pub setup: ServiceSetup,
    /// How many clients send.
    pub clients: u32,
    /// Length of the intervals of the time series.
    pub interval: Nanos,
    /// How long datagrams are sent.
    pub duration: Nanos,
    /// Bytes of each datagram's payload.
    pub size: u32,
    /// Whether bursts leave the sender as one buffer, which makes datagrams take another amount of
    /// the receive buffer.
    pub gso: bool,
    /// What client and service share; `None`: not even the machine.
    pub sharing: Option<Sharing>,
}

impl Begin {
    /// Whether a service can serve it.
    ///
    /// # Errors
    /// What cannot be, in one line with what would be right.
    pub fn check(&self) -> Result<(), String> {
        let (size, clients) = (self.size, self.clients);
        let sizes = UdpTrialSpec::SIZE_MIN..=UdpTrialSpec::SIZE_MAX;
        if !sizes.contains(&size) {
            let (least, most) = (sizes.start(), sizes.end());
            return Err(format!("datagrams of {size} bytes: give {least} to {most}"));
        }
        if !(1..=CLIENTS_MAX).contains(&clients) {
            return Err(format!("{clients} clients: give 1 to {CLIENTS_MAX}"));
        }
        if self.duration > DURATION_MAX {
            return Err(format!("{} is longer than a week", self.duration));
        }
        if self.duration.0.div_ceil(self.interval.0.max(1)) > INTERVALS_MAX {
            return Err(format!(
                "{} cut into intervals of {}",
                self.duration, self.interval
            ));
        }
        let work = self.setup.work.unwrap_or(Law::ZERO).mean_ns();
        if work.is_nan() || work > WORK_MAX.0 as f64 {
            return Err(format!("more than {WORK_MAX} of work per datagram"));
        }
        Ok(())
    }
}

/// What a service says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Say {
    /// It will not do what was asked; the connection ends.
    Refused {
        /// Why, in one line.
        reason: String,
    },
    /// What a ping asked for.
    Pong {
        /// The ping's.
        n: u32,
        /// The service's CLOCK_MONOTONIC, in nanoseconds.
        at_ns: u64,
    },
    /// Datagrams of the session will be taken.
    Ready {
        /// What the service is, with the session's setup.
        facts: Box<ServiceFacts>,
    },
    /// Datagrams of the session are taken.
    Started,
    /// The service is still there.
    Alive,
    /// The session has ended.
    Record(Box<Record>),
}

/// What the service saw of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// All but the arrivals.
    pub received: UdpReceived,
    /// The arrivals as gaps: the first from 0, each further one from the one before.
    pub gaps_ns: Vec<u64>,
    /// Drops at the session's socket, by their place.
    pub at_socket: Vec<DropCounter>,
    /// What the kernel of the service's machine counted in its network namespace.
    pub in_namespace: Vec<DropCounter>,
    /// What it counted for the machine as a whole.
    pub on_machine: Vec<DropCounter>,
    /// What it received in fragments.
    pub reassembly: Reassembly,
    /// What may count drops there but cannot be read, in words.
    #[serde(default)]
    pub not_read: Vec<String>,
}

impl Record {
    /// A record whose arrivals travel as gaps, a third as long in decimal.
    pub fn pack(&mut self) {
        let mut before = 0;
        let arrivals = std::mem::take(&mut self.received.arrivals);
        self.gaps_ns = arrivals
            .iter()
            .map(|at| at.0 - std::mem::replace(&mut before, at.0).min(at.0))
            .collect();
    }

    /// The arrivals back in their place.
    pub fn unpack(&mut self) {
        let mut at = Nanos::ZERO;
        let gaps = std::mem::take(&mut self.gaps_ns);
        self.received.arrivals = gaps
            .iter()
            .map(|&gap| {
                at += Nanos(gap);
                at
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn arrivals_come_back_as_they_went(mut at in prop::collection::vec(0_u64..1 << 60, 0..50)) {
            at.sort_unstable();
            let mut record = Record::default();
            record.received.arrivals = at.iter().copied().map(Nanos).collect();
            record.pack();
            prop_assert!(record.received.arrivals.is_empty());
            record.unpack();
            let back: Vec<u64> = record.received.arrivals.iter().map(|t| t.0).collect();
            prop_assert_eq!(back, at);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_in_one_line() {
        let good = Begin {
            session: 1,
            setup: ServiceSetup::default(),
            clients: 3,
            interval: Nanos::from_secs(10),
            duration: Nanos::from_secs(60),
            size: 64,
            gso: false,
            sharing: None,
        };
        assert_eq!(good.check(), Ok(()));
        let slow = ServiceSetup {
            work: Some(Law::Exp(Nanos::from_secs(20))),
            ..ServiceSetup::default()
        };
        for bad in [
            Begin {
                size: 39,
                ..good.clone()
            },
            Begin {
                size: 65_508,
                ..good.clone()
            },
            Begin {
                clients: 0,
                ..good.clone()
            },
            Begin {
                duration: Nanos::MAX,
                ..good.clone()
            },
            Begin {
                interval: Nanos(0),
                ..good.clone()
            },
            Begin {
                setup: slow,
                ..good.clone()
            },
        ] {
            let reason = bad.check().unwrap_err();
            assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
        }
    }
}
