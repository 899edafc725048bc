//! The client's end of the control connection.

use super::wire::{Ask, Begin, LINE_MAX, RECORD_MAX, Record, SERVICE, Say, Sharing};
use crate::control::{Door, Lost, SILENCE_NS, ServiceClock, Talk};
use crate::error::RunError;
use crate::sys::clock;
use knee_core::experiment::udp::measure::ServiceFacts;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a service that gives signs of life may take to answer: more than it takes to drain what
/// is queued.
const ANSWER_NS: u64 = 60_000_000_000;

/// Pings of one estimate of the clock.
const PINGS: u32 = 12;

/// A connection to a service that has let us in.
#[derive(Debug)]
pub(super) struct Control {
    talk: Talk,
    /// What it is.
    pub facts: ServiceFacts,
    /// What we share with it; `None`: not even the machine.
    pub sharing: Option<Sharing>,
}

impl Control {
    /// Connects and says hello.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: nobody there, nobody of ours, refused, or busy.
    pub(super) fn open(service: &str, token: &str, stop: &AtomicBool) -> Result<Control, RunError> {
        let door = Door {
            at: service,
            service: SERVICE,
            token,
            purpose: "datagrams are accounted for by the service",
            line_max: LINE_MAX,
        };
        let (talk, welcome) = door.enter::<ServiceFacts>(stop)?;
        let sharing = Sharing::with(&welcome.boot, &welcome.namespace);
        Ok(Control {
            talk,
            facts: ServiceFacts {
                same_host: sharing.is_some(),
                same_namespace: sharing == Some(Sharing::Namespace),
                ..welcome.facts
            },
            sharing,
        })
    }

    /// Where datagrams go.
    pub(super) fn address(&self) -> SocketAddr {
        self.talk.address
    }

    /// Estimates the service's clock: the ping with the shortest round trip tells it best, to half
    /// of that. One clock needs no estimate.
    ///
    /// # Errors
    /// [`Lost`].
    pub(super) fn clock(&mut self) -> Result<ServiceClock, Lost> {
        if self.sharing.is_some() {
            return Ok(ServiceClock::default());
        }
        let mut n = 0;
        let quickest = ServiceClock::quickest(PINGS, || {
            let ping = n;
            n += 1;
            self.talk.tell(&Ask::Ping { n: ping })?;
            loop {
                match self.talk.hear(SILENCE_NS, None)? {
                    Say::Pong { n: pong, at_ns } if pong == ping => return Ok(at_ns),
                    Say::Alive | Say::Pong { .. } => {}
                    other => return Err(unexpected(&other)),
                }
            }
        })?;
        Ok(quickest.0)
    }

    /// Prepares a session; what the service then is.
    ///
    /// # Errors
    /// [`RunError`]: it refuses, or is lost.
    pub(super) fn begin(
        &mut self,
        begin: &Begin,
        stop: &AtomicBool,
    ) -> Result<ServiceFacts, RunError> {
        let answer = self
            .talk
            .tell(&Ask::Begin(begin.clone()))
            .and_then(|()| self.hear_more(Some(stop)));
        match answer {
            Ok(Say::Ready { facts }) => Ok(ServiceFacts {
                same_host: self.sharing.is_some(),
                same_namespace: self.sharing == Some(Sharing::Namespace),
                ..*facts
            }),
            Ok(Say::Refused { reason }) => Err(RunError::NotPermitted(format!(
                "the service {} refuses: {reason}",
                self.talk.service
            ))),
            Ok(other) => Err(self.lost(unexpected(&other))),
            Err(lost) => Err(self.lost(lost)),
        }
    }

    /// Says when the run begins, on the service's clock.
    ///
    /// # Errors
    /// [`Lost`].
    pub(super) fn start(&mut self, origin_ns: u64) -> Result<(), Lost> {
        self.talk.tell(&Ask::Start { origin_ns })?;
        match self.hear_more(None)? {
            Say::Started => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Listens while datagrams are sent, until `over`. Raises `halt` where the service is lost, and
    /// where the user stops.
    ///
    /// # Errors
    /// [`Lost::Because`].
    pub(super) fn watch(
        &mut self,
        over: &AtomicBool,
        stop: &AtomicBool,
        halt: &AtomicBool,
    ) -> Result<(), Lost> {
        let mut heard_ns = clock::monotonic_ns();
        while !over.load(Ordering::Acquire) {
            if stop.load(Ordering::Relaxed) {
                halt.store(true, Ordering::Relaxed);
            }
            let heard = self.talk.glance();
            let now_ns = clock::monotonic_ns();
            let lost = match heard {
                Ok(Some(Say::Alive)) => {
                    heard_ns = now_ns;
                    continue;
                }
                Ok(None) if now_ns - heard_ns < SILENCE_NS => continue,
                Ok(None) => Lost::silent(),
                Ok(Some(other)) => unexpected(&other),
                Err(lost) => lost,
            };
            halt.store(true, Ordering::Relaxed);
            return Err(lost);
        }
        Ok(())
    }

    /// Says that `sent` datagrams were sent and takes the record.
    ///
    /// # Errors
    /// [`Lost::Because`].
    pub(super) fn end(&mut self, sent: u64) -> Result<Record, Lost> {
        self.talk.set_line_max(RECORD_MAX);
        self.talk.tell(&Ask::End { sent })?;
        let said = self.hear_more(None)?;
        self.talk.set_line_max(LINE_MAX);
        match said {
            Say::Record(mut record) => {
                record.unpack();
                Ok(*record)
            }
            other => Err(unexpected(&other)),
        }
    }

    /// That the service was lost before anything was sent.
    pub(super) fn lost(&self, lost: Lost) -> RunError {
        self.talk.lost(lost)
    }

    /// The next thing that is more than a sign of life.
    fn hear_more(&mut self, stop: Option<&AtomicBool>) -> Result<Say, Lost> {
        let asked_ns = clock::monotonic_ns();
        loop {
            match self.talk.hear(SILENCE_NS, stop)? {
                Say::Alive if clock::monotonic_ns() - asked_ns < ANSWER_NS => {}
                Say::Alive => return Err(Lost::Because("lives but does not answer".to_owned())),
                other => return Ok(other),
            }
        }
    }
}

fn unexpected(said: &Say) -> Lost {
    Lost::unexpected(match said {
        Say::Refused { reason } => Some(reason),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::udp::service::{UdpServer, UdpServerSpec};

    #[test]
    fn the_clock_of_another_host_is_known_to_half_a_round_trip() {
        let server = UdpServer::start(UdpServerSpec {
            listen: "127.0.0.1:0".parse().unwrap(),
            ..UdpServerSpec::default()
        })
        .unwrap();
        let service = server.address().to_string();
        let mut control = Control::open(&service, "", &AtomicBool::new(false)).unwrap();
        assert_eq!(control.sharing, Some(Sharing::Namespace));
        assert_eq!(control.clock(), Ok(ServiceClock::default()));
        // As though it were on another host, whose clock happens to be ours.
        control.sharing = None;
        let clock = control.clock().unwrap();
        let off_ns = (clock.ahead_ns as i64).unsigned_abs();
        assert!(
            clock.uncertainty_ns > 0 && off_ns <= clock.uncertainty_ns + 1,
            "{clock:?}"
        );
        drop(server);
        assert!(matches!(control.clock(), Err(Lost::Because(_))));
    }
}
