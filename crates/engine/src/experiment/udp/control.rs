//! The client's end of the control connection.

use super::wire::{
    LINE_MAX, RECORD_MAX, SERVICE, Sharing, UdpReply, UdpRequest, UdpServiceRecord, UdpSessionSpec,
};
use crate::control::{ControlClient, SILENCE_NS, ServiceClock, ServiceLogin, ServiceLost};
use crate::error::RunError;
use crate::sys::clock;
use knee_load::experiment::udp::ServiceFacts;
use std::sync::atomic::{AtomicBool, Ordering};

/// Time limit of an answer from a service that gives signs of life: more than it takes to drain its
/// queue.
const ANSWER_NS: u64 = 60_000_000_000;

/// Pings of one clock reading.
const PINGS: u32 = 12;

/// A control connection to a service that this client holds.
#[derive(Debug)]
pub(super) struct UdpControl {
    pub(super) client: ControlClient,
    /// Properties of the service.
    pub facts: ServiceFacts,
    /// What client and service share; `None`: not even the machine.
    pub sharing: Option<Sharing>,
}

impl UdpControl {
    /// Connects and says hello.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: nothing answers, no knee service, refused, or busy.
    pub(super) fn open(
        service: &str,
        token: &str,
        stop: &AtomicBool,
    ) -> Result<UdpControl, RunError> {
        let login = ServiceLogin {
            at: service,
            service: SERVICE,
            token,
            purpose: "datagrams are accounted for by the service",
            line_max: LINE_MAX,
        };
        let (client, welcome) = login.connect::<ServiceFacts>(stop)?;
        let sharing = Sharing::with(&welcome.boot, &welcome.namespace);
        Ok(UdpControl {
            client,
            facts: ServiceFacts {
                same_host: sharing.is_some(),
                same_namespace: sharing == Some(Sharing::Namespace),
                ..welcome.facts
            },
            sharing,
        })
    }

    /// Reads the service's clock, to half of the shortest round trip. On one machine both have one
    /// clock.
    ///
    /// # Errors
    /// [`ServiceLost`].
    pub(super) fn clock(&mut self) -> Result<ServiceClock, ServiceLost> {
        if self.sharing.is_some() {
            return Ok(ServiceClock::default());
        }
        let mut n = 0;
        let quickest = ServiceClock::quickest(PINGS, || {
            let ping = n;
            n += 1;
            self.client.send(&UdpRequest::Ping { n: ping })?;
            loop {
                match self.client.receive(SILENCE_NS, None)? {
                    UdpReply::Pong { n: pong, at_ns } if pong == ping => return Ok(at_ns),
                    UdpReply::Alive | UdpReply::Pong { .. } => {}
                    other => return Err(unexpected(&other)),
                }
            }
        })?;
        Ok(quickest.0)
    }

    /// Prepares a session. Returns the properties of the service in it.
    ///
    /// # Errors
    /// [`RunError`]: the service refuses, or is lost.
    pub(super) fn begin(
        &mut self,
        begin: &UdpSessionSpec,
        stop: &AtomicBool,
    ) -> Result<ServiceFacts, RunError> {
        let answer = self
            .client
            .send(&UdpRequest::Begin(begin.clone()))
            .and_then(|()| self.next_reply(Some(stop)));
        match answer {
            Ok(UdpReply::Ready { facts }) => Ok(ServiceFacts {
                same_host: self.sharing.is_some(),
                same_namespace: self.sharing == Some(Sharing::Namespace),
                ..*facts
            }),
            Ok(UdpReply::Refused { reason }) => Err(self.client.refused(&reason)),
            Ok(other) => Err(self.client.lost(unexpected(&other))),
            Err(lost) => Err(self.client.lost(lost)),
        }
    }

    /// Starts the run at a time of the service's clock.
    ///
    /// # Errors
    /// [`ServiceLost`].
    pub(super) fn start(&mut self, origin_ns: u64) -> Result<(), ServiceLost> {
        self.client.send(&UdpRequest::Start { origin_ns })?;
        match self.next_reply(None)? {
            UdpReply::Started => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Reads signs of life while datagrams are sent, until `over`. Sets `halt` where the service is
    /// lost, and where the user stops.
    ///
    /// # Errors
    /// [`ServiceLost::Because`].
    pub(super) fn watch(
        &mut self,
        over: &AtomicBool,
        stop: &AtomicBool,
        halt: &AtomicBool,
    ) -> Result<(), ServiceLost> {
        let mut heard_ns = clock::monotonic_ns();
        while !over.load(Ordering::Acquire) {
            if stop.load(Ordering::Relaxed) {
                halt.store(true, Ordering::Relaxed);
            }
            let heard = self.client.poll();
            let now_ns = clock::monotonic_ns();
            let lost = match heard {
                Ok(Some(UdpReply::Alive)) => {
                    heard_ns = now_ns;
                    continue;
                }
                Ok(None) if now_ns - heard_ns < SILENCE_NS => continue,
                Ok(None) => ServiceLost::silent(),
                Ok(Some(other)) => unexpected(&other),
                Err(lost) => lost,
            };
            halt.store(true, Ordering::Relaxed);
            return Err(lost);
        }
        Ok(())
    }

    /// Ends the session after `sent` datagrams and returns the record.
    ///
    /// # Errors
    /// [`ServiceLost::Because`].
    pub(super) fn end(&mut self, sent: u64) -> Result<UdpServiceRecord, ServiceLost> {
        self.client.set_line_max(RECORD_MAX);
        self.client.send(&UdpRequest::End { sent })?;
        let said = self.next_reply(None)?;
        self.client.set_line_max(LINE_MAX);
        match said {
            UdpReply::Record(mut record) => {
                record.unpack();
                Ok(*record)
            }
            other => Err(unexpected(&other)),
        }
    }

    /// The next message that is more than a sign of life.
    fn next_reply(&mut self, stop: Option<&AtomicBool>) -> Result<UdpReply, ServiceLost> {
        let asked_ns = clock::monotonic_ns();
        loop {
            match self.client.receive(SILENCE_NS, stop)? {
                UdpReply::Alive if clock::monotonic_ns() - asked_ns < ANSWER_NS => {}
                UdpReply::Alive => {
                    return Err(ServiceLost::Because("lives but does not answer".to_owned()));
                }
                other => return Ok(other),
            }
        }
    }
}

fn unexpected(said: &UdpReply) -> ServiceLost {
    ServiceLost::unexpected(match said {
        UdpReply::Refused { reason } => Some(reason),
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
        let mut control = UdpControl::open(&service, "", &AtomicBool::new(false)).unwrap();
        assert_eq!(control.sharing, Some(Sharing::Namespace));
        assert_eq!(control.clock(), Ok(ServiceClock::default()));
        // As though it were on another host, whose clock happens to be ours.
        control.sharing = None;
        let clock = control.clock().unwrap();
        let off_ns = (clock.ahead_ns as i64).unsigned_abs();
        assert!(clock.uncertainty_ns > 0 && off_ns <= clock.uncertainty_ns + 1, "{clock:?}");
        drop(server);
        assert!(matches!(control.clock(), Err(ServiceLost::Because(_))));
    }
}
