//! Messages of client and service: a JSON object per line, over TCP.
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

use crate::kernel::drops::fragments::Reassembly;
use knee_load::experiment::udp::{
    DropCounter, ServiceFacts, ServiceSetup, UdpReceived, UdpTrialSpec,
};
use knee_load::law::Law;
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};

pub use crate::control::{Hello, HelloReply, Lines, Sharing, TooLong, line};

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

/// Requests of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum UdpRequest {
    /// First message.
    Hello(Hello),
    /// Asks for the service's clock.
    Ping {
        /// Number that the pong repeats.
        n: u32,
    },
    /// Prepares a session.
    Begin(UdpSessionSpec),
    /// Datagrams come from now on.
    Start {
        /// When the run begins, in nanoseconds of the service's CLOCK_MONOTONIC.
        origin_ns: u64,
    },
    /// No more datagrams are sent.
    End {
        /// Datagrams that were sent.
        sent: u64,
    },
}

/// Parameters of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpSessionSpec {
    /// Number that every datagram of the session carries.
    pub session: u64,
    /// Setup of the service for this session.
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

impl UdpSessionSpec {
    /// Checks whether a service can serve it.
    ///
    /// # Errors
    /// What is invalid, in one line with what would be valid.
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
            return Err(format!("{} cut into intervals of {}", self.duration, self.interval));
        }
        let work = self.setup.work.unwrap_or(Law::ZERO).mean_ns();
        if work.is_nan() || work > WORK_MAX.0 as f64 {
            return Err(format!("more than {WORK_MAX} of work per datagram"));
        }
        Ok(())
    }
}

/// Messages of a service.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum UdpReply {
    /// The request is refused; the connection ends.
    Refused {
        /// Why, in one line.
        reason: String,
    },
    /// Answer to a ping.
    Pong {
        /// Number of the ping.
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
    Record(Box<UdpServiceRecord>),
}

/// What the service measured in a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UdpServiceRecord {
    /// All but the arrivals.
    pub received: UdpReceived,
    /// The arrivals as gaps: the first from 0, each further one from the one before.
    pub gaps_ns: Vec<u64>,
    /// Drops at the session's socket, by their place.
    pub at_socket: Vec<DropCounter>,
    /// Drops that the kernel counts in the service's network namespace.
    pub in_namespace: Vec<DropCounter>,
    /// Drops that the kernel counts for the machine as a whole.
    pub on_machine: Vec<DropCounter>,
    /// Fragments received, and datagrams made of them.
    pub reassembly: Reassembly,
    /// Sources of drop counts on the service's host that cannot be read.
    #[serde(default)]
    pub not_read: Vec<String>,
}

impl UdpServiceRecord {
    /// Turns arrivals into gaps, which are a third as long in decimal.
    pub fn pack(&mut self) {
        let mut before = 0;
        let arrivals = std::mem::take(&mut self.received.arrivals);
        self.gaps_ns = arrivals
            .iter()
            .map(|at| at.0 - std::mem::replace(&mut before, at.0).min(at.0))
            .collect();
    }

    /// Turns gaps back into arrivals.
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

/// Marks datagrams of knee.
const MAGIC: [u8; 4] = *b"kneU";

/// Header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramHeader {
    /// Session of the datagram.
    pub session: u64,
    /// Client that sent it, from 0.
    pub client: u32,
    /// Sequence number of its client, from 0 without gaps.
    pub number: u64,
    /// Intended time of the send, since the run's origin; [`DatagramHeader::sent`] where there is
    /// no schedule.
    pub intended: Nanos,
    /// Time at which it was handed to the kernel, since the run's origin. Datagrams of one call
    /// share the reading just before it.
    pub sent: Nanos,
}

impl DatagramHeader {
    /// Length in bytes.
    pub const BYTES: usize = 40;

    /// Writes the header to the first [`DatagramHeader::BYTES`] bytes.
    ///
    /// # Panics
    /// There are fewer bytes.
    #[inline]
    pub fn write(&self, to: &mut [u8]) {
        let to: &mut [u8; DatagramHeader::BYTES] =
            (&mut to[..DatagramHeader::BYTES]).try_into().expect("the slice has this length");
        to[..4].copy_from_slice(&MAGIC);
        to[4..8].copy_from_slice(&self.client.to_le_bytes());
        to[8..16].copy_from_slice(&self.session.to_le_bytes());
        to[16..24].copy_from_slice(&self.number.to_le_bytes());
        to[24..32].copy_from_slice(&self.intended.0.to_le_bytes());
        to[32..].copy_from_slice(&self.sent.0.to_le_bytes());
    }

    /// Reads the header of a payload; `None`: the payload is too short or not of knee.
    #[inline]
    pub fn read(from: &[u8]) -> Option<DatagramHeader> {
        let from: &[u8; DatagramHeader::BYTES] = from.first_chunk()?;
        if from[..4] != MAGIC {
            return None;
        }
        let word = |at: usize| {
            let bytes = from[at..].first_chunk().expect("within the header");
            u64::from_le_bytes(*bytes)
        };
        Some(DatagramHeader {
            client: (word(0) >> 32) as u32,
            session: word(8),
            number: word(16),
            intended: Nanos(word(24)),
            sent: Nanos(word(32)),
        })
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
            let mut record = UdpServiceRecord::default();
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
        let good = UdpSessionSpec {
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
        let slow =
            ServiceSetup { work: Some(Law::Exp(Nanos::from_secs(20))), ..ServiceSetup::default() };
        for bad in [
            UdpSessionSpec { size: 39, ..good.clone() },
            UdpSessionSpec { size: 65_508, ..good.clone() },
            UdpSessionSpec { clients: 0, ..good.clone() },
            UdpSessionSpec { duration: Nanos::MAX, ..good.clone() },
            UdpSessionSpec { interval: Nanos(0), ..good.clone() },
            UdpSessionSpec { setup: slow, ..good.clone() },
        ] {
            let reason = bad.check().unwrap_err();
            assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
        }
    }

    #[test]
    fn the_layout_is_fixed() {
        let header = DatagramHeader {
            session: 0x0807_0605_0403_0201,
            client: 0x0403_0201,
            number: 1,
            intended: Nanos(2),
            sent: Nanos(3),
        };
        let mut bytes = [0xff; 41];
        header.write(&mut bytes);
        let mut expected = b"kneU\x01\x02\x03\x04\x01\x02\x03\x04\x05\x06\x07\x08".to_vec();
        for number in [1, 2, 3] {
            expected.extend([number, 0, 0, 0, 0, 0, 0, 0]);
        }
        expected.push(0xff);
        assert_eq!(bytes[..], expected);
    }

    #[test]
    fn what_is_not_ours_is_not_read() {
        assert_eq!(DatagramHeader::read(&[]), None);
        assert_eq!(DatagramHeader::read(&MAGIC), None);
        assert_eq!(DatagramHeader::read(&[0; 64]), None);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            session: u64, client: u32, number: u64, intended: u64, sent: u64, more in 0usize..100,
        ) {
            let (intended, sent) = (Nanos(intended), Nanos(sent));
            let header = DatagramHeader { session, client, number, intended, sent };
            let mut bytes = vec![0; DatagramHeader::BYTES + more];
            header.write(&mut bytes);
            prop_assert_eq!(DatagramHeader::read(&bytes), Some(header));
            prop_assert_eq!(DatagramHeader::read(&bytes[..DatagramHeader::BYTES - 1]), None);
        }
    }
}
