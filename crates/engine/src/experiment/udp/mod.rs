//! The UDP experiment: one `UdpTrialSpec` in, one `UdpTrial` out. There are senders, the service
//! that counts their datagrams, and the control connection between them.
//!
//! `send` keeps to a schedule, or waits exactly as a client would, and hands all that is due to the
//! kernel in one call. `service` is the other end, `wire` the messages between them.

pub mod send;
pub mod service;
pub mod wire;

use crate::control::{ControlClient, SILENCE_NS, ServiceClock, ServiceLogin, ServiceLost, random};
use crate::error::RunError;
use crate::kernel::counters::Counters;
use crate::kernel::drops::fragments::Reassembly;
use crate::kernel::drops::{DropReading, Drops};
use crate::kernel::freed::FreedPackets;
use crate::sys::clock;
use crate::threads;
use knee_load::experiment::udp::{
    DropCounter, DropPlace, ServiceFacts, UdpReceived, UdpSent, UdpTrial, UdpTrialSpec,
};
use knee_load::measure::{Histogram, Interval, IntervalWatcher};
use send::{SendPlan, Sent};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use wire::{
    LINE_MAX, RECORD_MAX, SERVICE, Sharing, UdpReply, UdpRequest, UdpServiceRecord, UdpSessionSpec,
};

/// Time before the trial in which counters are watched, to know what moves without it.
const QUIET: Duration = Duration::from_millis(80);

/// Time that the service takes to read its counters before it is ready for datagrams.
const START_NS: u64 = 20_000_000;

/// Connects to the service and returns its properties, so that one that cannot be used is found
/// before any datagram is sent.
///
/// # Errors
/// [`RunError::Unreachable`]: nothing answers, no knee service, a wrong token, or busy.
pub fn preflight(service: &str, token: &str) -> Result<ServiceFacts, RunError> {
    let control = UdpControl::open(service, token, &AtomicBool::new(false))?;
    Ok(control.facts)
}

/// Runs one trial. Setting `stop` ends it early with what was measured; the trial is then marked
/// interrupted. A service that vanishes ends it early too, and the trial says so. `program` is this
/// executable, for clients that are processes. `observer` sees what was sent in each interval, on
/// this thread; what was received is known at the end alone.
///
/// # Errors
/// See [`RunError`]: only what is known before the first datagram is one.
pub fn run(
    spec: &UdpTrialSpec,
    program: &Path,
    observer: &mut dyn IntervalWatcher,
    stop: &AtomicBool,
) -> Result<UdpTrial, RunError> {
    let mut control = UdpControl::open(&spec.service, &spec.token, stop)?;
    let sharing = control.sharing;
    let ahead = control.clock().map_err(|lost| control.client.lost(lost))?;
    let session = random();
    let begin = UdpSessionSpec {
        session,
        setup: spec.setup.clone(),
        clients: spec.clients,
        interval: spec.interval,
        duration: spec.duration,
        size: spec.size,
        gso: spec.gso,
        sharing,
    };
    let mut service = control.begin(begin, stop)?;
    // On one machine the service reports the kernel's reasons.
    let watch = || FreedPackets::watch().ok();
    let freed = sharing.is_none().then(watch).flatten();
    let freed = freed.as_ref();
    let quiet = DropReading::now(freed);
    thread::sleep(QUIET);
    let before = DropReading::now(freed);
    let counters = Counters::now();
    // Start and its answer take a round trip: twice the uncertainty of the clock.
    let lead_ns = START_NS + 4 * ahead.uncertainty_ns + spec.lead().0;
    let origin = clock::monotonic_ns() + lead_ns;
    let started = control.start(origin.wrapping_add(ahead.ahead_ns));
    started.map_err(|lost| control.client.lost(lost))?;
    let mut plan = SendPlan {
        spec: spec.clone(),
        target: control.client.address,
        session,
        origin,
        program: program.to_owned(),
    };
    // The sender has to know whether echoes come, also where the service decides that.
    plan.spec.setup.mode = service.mode;
    let (sent, watched) = send_watched(&plan, &mut control, observer, stop);
    let sent = sent?;
    let record = watched.and_then(|()| control.end(sent.sent.sent));
    let kernel = Counters::now().moved_since(&counters);
    let mut here = DropReading::now(freed).moved_since(&before, &quiet);
    // Drops of replies at the clients' sockets, and of others' datagrams, are not counted.
    here.forget(DropPlace::ReceiveBuffer);
    // What the queue of a device dropped and reported is a send error, and was not lost on the way.
    let reported = sent.sent.send_errors.get("ENOBUFS").copied();
    here.take(DropPlace::Qdisc, reported.unwrap_or(0));
    // On one machine both readings are zero.
    let second = record.is_ok().then(|| control.clock().ok());
    service.clock_uncertainty_ns = ahead.uncertainty_until(second.flatten());
    let mut not_read = Vec::new();
    let (received, mut drops, service_lost) = match record {
        Ok(mut record) => {
            not_read = std::mem::take(&mut record.not_read);
            let (received, drops) = merge(here, record, sharing);
            (Some(received), drops, None)
        }
        Err(lost) => (None, alone(here, sharing), Some(in_words(lost))),
    };
    subtract_send_errors(&mut drops, &sent.sent);
    Ok(UdpTrial {
        spec: spec.clone(),
        interrupted: stop.load(Ordering::Relaxed) && sent.interrupted,
        sent: sent.sent,
        received,
        service_lost,
        service,
        kernel,
        drops,
        not_read,
        generator: sent.generator,
    })
}

/// Subtracts send errors, which are no losses, from the drop counters. A firewall rule that drops
/// what is sent may count it too. IP counts all that it does not send, whatever the reason. A call
/// with several datagrams counts it where the call stops, and again where the next call reports why
/// (sendmmsg(2)).
fn subtract_send_errors(drops: &mut [DropCounter], sent: &UdpSent) {
    let errors = |name: &str| sent.send_errors.get(name).copied().unwrap_or(0);
    let by_rules = errors("EPERM") + errors("EACCES");
    take(drops, by_rules, |c| c.place == DropPlace::Firewall);
    let not_sent = sent.send_errors.values().sum::<u64>() + sent.blocked;
    take(drops, 2 * not_sent, |c| c.source.contains("OutDiscards"));
}

/// Subtracts up to `count` from these counters.
fn take(drops: &mut [DropCounter], count: u64, is_such: impl Fn(&DropCounter) -> bool) {
    let mut left = count;
    let such = drops.iter_mut().filter(|c| !c.whole_kernel && is_such(c));
    for counter in such {
        let taken = left.min(counter.count);
        counter.count -= taken;
        left -= taken;
    }
}

/// Sends on this thread while another listens to the service.
fn send_watched(
    plan: &SendPlan,
    control: &mut UdpControl,
    observer: &mut dyn IntervalWatcher,
    stop: &AtomicBool,
) -> (Result<Sent, RunError>, Result<(), ServiceLost>) {
    let (over, halt) = (AtomicBool::new(false), AtomicBool::new(false));
    let interval = plan.spec.interval.0;
    let duration = plan.spec.duration.0;
    let mut report = |index: u64, sent: u64| {
        let start_ns = index.saturating_mul(interval);
        let interval = Interval {
            start_ns,
            end_ns: start_ns.saturating_add(interval).min(duration),
            attempted: sent,
            sent: Some(sent),
            ..Interval::default()
        };
        observer.on_interval(&interval, &Histogram::default());
    };
    thread::scope(|scope| {
        let watch = || control.watch(&over, stop, &halt);
        let watcher = match threads::spawn(scope, "udp-control", watch) {
            Ok(watcher) => watcher,
            Err(refused) => return (Err(refused), Ok(())),
        };
        let sent = send::send(plan, &halt, &mut report);
        over.store(true, Ordering::Release);
        let watched = watcher.join().unwrap_or_else(|panic| resume_unwind(panic));
        (sent, watched)
    })
}

/// Merges the counts of both hosts, each drop once. What both see is taken from the service, as it
/// knows which of those drops were at its socket. Each counter names its host, where there are two.
fn merge(
    here: Drops,
    mut record: UdpServiceRecord,
    sharing: Option<Sharing>,
) -> (UdpReceived, Vec<DropCounter>) {
    count_fragments(&mut record, here.fragments_each());
    let [there_named, here_named] = match sharing {
        None => [" on the service's host", " on the client's host"],
        Some(Sharing::Namespace) => [""; 2],
        Some(_) => [" in the service's network namespace", " in the client's network namespace"],
    };
    let mut drops = record.at_socket;
    drops.extend(record.in_namespace);
    drops = named(drops, there_named);
    if sharing != Some(Sharing::Namespace) {
        let here = here.clone().of_sender().only_path(false).in_namespace();
        drops.extend(named(here.counters(false), here_named));
    }
    let mut machine = record.on_machine;
    let ours = here.of_machine().counters(false);
    match sharing {
        // One of them may not see all: the neighbour counters exist only in the first namespace.
        Some(_) => {
            let known: Vec<String> = machine.iter().map(|c| c.source.clone()).collect();
            machine.extend(ours.into_iter().filter(|c| !known.contains(&c.source)));
        }
        None => {
            machine = named(machine, there_named);
            machine.extend(named(ours, here_named));
        }
    }
    drops.extend(machine);
    (record.received, drops)
}

/// Replaces the kernel's count of reassembly failures, which moves only 30 s after the first
/// fragment, by the fragments that did not become datagrams. At least one fragment of each lost
/// datagram was received, so this is an upper bound. `each`: fragments of a datagram as it was
/// sent.
fn count_fragments(record: &mut UdpServiceRecord, each: u64) {
    let Reassembly { fragments, reassembled } = record.reassembly;
    if each < 2 {
        return;
    }
    let counters = &mut record.in_namespace;
    counters.retain(|counter| counter.place != DropPlace::Reassembly);
    counters.push(DropCounter {
        place: DropPlace::Reassembly,
        count: fragments.saturating_sub(each * reassembled),
        source: format!("Ip: ReasmReqds less {each} for each of ReasmOKs"),
        host_wide: true,
        whole_kernel: false,
        at_service: true,
    });
}

fn named(mut counters: Vec<DropCounter>, host: &str) -> Vec<DropCounter> {
    counters.iter_mut().for_each(|c| c.source += host);
    counters
}

/// Counts of this host, where the service reported nothing.
fn alone(here: Drops, sharing: Option<Sharing>) -> Vec<DropCounter> {
    let over_loopback = sharing == Some(Sharing::Namespace);
    let here = here.only_path(over_loopback);
    if over_loopback { here.counters(true) } else { here.of_sender().counters(false) }
}

fn in_words(lost: ServiceLost) -> String {
    match lost {
        ServiceLost::Because(why) => format!("the service {why}"),
        ServiceLost::Interrupted => "interrupted while the service was to tell".to_owned(),
    }
}

/// Time limit of an answer from a service that gives signs of life: more than it takes to drain its
/// queue.
const ANSWER_NS: u64 = 60_000_000_000;

/// Pings of one clock reading.
const PINGS: u32 = 12;

/// A control connection to a service that this client holds.
#[derive(Debug)]
struct UdpControl {
    client: ControlClient,
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
    fn open(service: &str, token: &str, stop: &AtomicBool) -> Result<UdpControl, RunError> {
        let login = ServiceLogin {
            at: service,
            service: SERVICE,
            token,
            token_option: "--token",
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
    fn clock(&mut self) -> Result<ServiceClock, ServiceLost> {
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
    fn begin(
        &mut self,
        begin: UdpSessionSpec,
        stop: &AtomicBool,
    ) -> Result<ServiceFacts, RunError> {
        let answer =
            self.client.send(&UdpRequest::Begin(begin)).and_then(|()| self.next_reply(Some(stop)));
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
    fn start(&mut self, origin_ns: u64) -> Result<(), ServiceLost> {
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
    fn watch(
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
    fn end(&mut self, sent: u64) -> Result<UdpServiceRecord, ServiceLost> {
        self.client.lines.set_max(RECORD_MAX);
        self.client.send(&UdpRequest::End { sent })?;
        let said = self.next_reply(None)?;
        self.client.lines.set_max(LINE_MAX);
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

    fn counter(place: DropPlace, source: &str) -> DropCounter {
        DropCounter {
            place,
            count: 30,
            source: source.to_owned(),
            host_wide: true,
            whole_kernel: false,
            at_service: true,
        }
    }

    #[test]
    fn unfinished_fragments_of_the_service_are_named() {
        let lost = |each| {
            let mut record = UdpServiceRecord {
                reassembly: Reassembly { fragments: 270, reassembled: 80 },
                in_namespace: vec![counter(DropPlace::Reassembly, "Ip: ReasmFails")],
                ..UdpServiceRecord::default()
            };
            count_fragments(&mut record, each);
            let (_, drops) = merge(Drops::default(), record, None);
            (drops[0].count, drops[0].source.clone())
        };
        let source = "Ip: ReasmReqds less 3 for each of ReasmOKs on the service's host";
        assert_eq!(lost(3), (30, source.to_owned()));
        // Where nothing was sent in fragments, a router made them: the kernel's failures count.
        let source = "Ip: ReasmFails on the service's host";
        assert_eq!(lost(1), (30, source.to_owned()));
    }

    #[test]
    fn what_senders_were_told_is_no_loss() {
        let rest = |errors: &[(&str, u64)], blocked| {
            let mut drops = [
                counter(DropPlace::Firewall, "nft ip t out, rule 2"),
                counter(DropPlace::IpLayer, "Ip: OutDiscards"),
                counter(DropPlace::IpLayer, "Ip: InDiscards"),
            ];
            let sent = UdpSent {
                send_errors: errors.iter().map(|&(e, n)| (e.to_owned(), n)).collect(),
                blocked,
                ..UdpSent::default()
            };
            subtract_send_errors(&mut drops, &sent);
            drops.map(|counter| counter.count)
        };
        assert_eq!(rest(&[], 0), [30, 30, 30]);
        assert_eq!(rest(&[("EPERM", 10)], 0), [20, 10, 30]);
        // A rule has no part in what came back of an earlier datagram, or found no room.
        assert_eq!(rest(&[("EHOSTUNREACH", 10)], 4), [30, 2, 30]);
        assert_eq!(rest(&[("ENOBUFS", 99)], 0), [30, 0, 30]);
    }

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
