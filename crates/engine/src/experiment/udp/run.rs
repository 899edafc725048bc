//! One `UdpTrialSpec` in, one `UdpTrial` out.

use super::control::Control;
use super::send::{self, SendPlan, Sent};
use super::wire::{Begin, Record, Sharing};
use crate::control::{Lost, ServiceClock, random};
use crate::error::RunError;
use crate::kernel::counters::Counters;
use crate::kernel::drops::Drops;
use crate::kernel::drops::fragments::Reassembly;
use crate::kernel::freed::FreedPackets;
use crate::sys::clock;
use crate::threads;
use knee_core::experiment::udp::measure::{
    DropCounter, DropPlace, ServiceFacts, UdpReceived, UdpSent, UdpTrial,
};
use knee_core::experiment::udp::spec::UdpTrialSpec;
use knee_core::measure::{Interval, IntervalWatcher};
use knee_core::time::Nanos;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Counters are watched for so long before the trial, to know what moves without us.
const QUIET: Duration = Duration::from_millis(80);

/// The service takes so long to read its counters before it says that it is ready for datagrams.
const START_NS: u64 = 20_000_000;

/// Connects to the service and asks what it is, so that one that cannot be used is told before any
/// datagram is sent.
///
/// # Errors
/// [`RunError::Unreachable`]: nobody there, nobody of ours, a wrong token, or busy.
pub fn preflight(service: &str, token: &str) -> Result<ServiceFacts, RunError> {
    let control = Control::open(service, token, &AtomicBool::new(false))?;
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
    let mut control = Control::open(&spec.service, &spec.token, stop)?;
    let sharing = control.sharing;
    let ahead = control.clock().map_err(|lost| control.lost(lost))?;
    let session = random();
    let mut service = control.begin(&begin(spec, session, sharing), stop)?;
    // On one machine the service tells the kernel's reasons.
    let freed = sharing
        .is_none()
        .then(|| FreedPackets::watch().ok())
        .flatten();
    let freed = freed.as_ref();
    let quiet = Evidence::now(freed);
    thread::sleep(QUIET);
    let before = Evidence::now(freed);
    let counters = Counters::now();
    // Start and its answer take a round trip: twice what the clock's estimate leaves open.
    let lead_ns = START_NS + 4 * ahead.uncertainty_ns + spec.lead().0;
    let origin = clock::monotonic_ns() + lead_ns;
    let started = control.start(origin.wrapping_add(ahead.ahead_ns));
    started.map_err(|lost| control.lost(lost))?;
    let mut plan = SendPlan {
        spec: spec.clone(),
        target: control.address(),
        session,
        origin,
        program: program.to_owned(),
    };
    // Where the trial leaves it to the service whether echoes come, the sender has to know.
    plan.spec.setup.mode = service.mode;
    let (sent, watched) = send_watched(&plan, &mut control, observer, stop);
    let sent = sent?;
    let record = watched.and_then(|()| control.end(sent.sent.sent));
    let kernel = Counters::now().moved_since(&counters);
    let mut here = Evidence::now(freed).moved(&before, &quiet);
    // What the queue of a device dropped and told is a send error, and was not lost on the way.
    let told = sent.sent.send_errors.get("ENOBUFS").copied();
    here.take(DropPlace::Qdisc, told.unwrap_or(0));
    service.clock_uncertainty_ns = uncertainty(&mut control, ahead, record.is_ok());
    let mut not_read = Vec::new();
    let (received, mut drops, service_lost) = match record {
        Ok(mut record) => {
            not_read = std::mem::take(&mut record.not_read);
            let (received, drops) = merge(here, record, sharing);
            (Some(received), drops, None)
        }
        Err(lost) => (None, alone(here, sharing), Some(in_words(lost))),
    };
    forget_told(&mut drops, &sent.sent);
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

/// Takes off what the senders were told, as those were no losses: a rule that drops what is sent
/// may count it too, and IP counts all that it does not send, whatever the reason; in a call with
/// several it does so where that call stops, and again where the next one tells why (sendmmsg(2)).
fn forget_told(drops: &mut [DropCounter], sent: &UdpSent) {
    let told = |name: &str| sent.send_errors.get(name).copied().unwrap_or(0);
    let by_rules = told("EPERM") + told("EACCES");
    take(drops, by_rules, |c| c.place == DropPlace::Firewall);
    let not_sent = sent.send_errors.values().sum::<u64>() + sent.blocked;
    take(drops, 2 * not_sent, |c| c.source.contains("OutDiscards"));
}

/// Takes up to `count` off these counters.
fn take(drops: &mut [DropCounter], count: u64, is_such: impl Fn(&DropCounter) -> bool) {
    let mut left = count;
    let such = drops.iter_mut().filter(|c| !c.whole_kernel && is_such(c));
    for counter in such {
        let taken = left.min(counter.count);
        counter.count -= taken;
        left -= taken;
    }
}

fn begin(spec: &UdpTrialSpec, session: u64, sharing: Option<Sharing>) -> Begin {
    Begin {
        session,
        setup: spec.setup.clone(),
        clients: spec.clients,
        interval: spec.interval,
        duration: spec.duration,
        size: spec.size,
        gso: spec.gso,
        sharing,
    }
}

/// Sends on this thread while another listens to the service.
fn send_watched(
    plan: &SendPlan,
    control: &mut Control,
    observer: &mut dyn IntervalWatcher,
    stop: &AtomicBool,
) -> (Result<Sent, RunError>, Result<(), Lost>) {
    let (over, halt) = (AtomicBool::new(false), AtomicBool::new(false));
    let interval = plan.spec.interval.0;
    let duration = plan.spec.duration.0;
    let mut tell = |index: u64, sent: u64| {
        let start_ns = index.saturating_mul(interval);
        let interval = Interval {
            start_ns,
            end_ns: start_ns.saturating_add(interval).min(duration),
            attempted: sent,
            sent: Some(sent),
            ..Interval::default()
        };
        observer.on_interval(&interval, None);
    };
    thread::scope(|scope| {
        let watch = || control.watch(&over, stop, &halt);
        let watcher = match threads::spawn(scope, "udp-control", watch) {
            Ok(watcher) => watcher,
            Err(refused) => return (Err(refused), Ok(())),
        };
        let sent = send::send(plan, &halt, &mut tell);
        over.store(true, Ordering::Release);
        match watcher.join() {
            Ok(watched) => (sent, watched),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// How far the service's clock may be off over the whole trial: what the first estimate leaves
/// open, and by how much a second one at its end differs, as two clocks drift apart.
fn uncertainty(control: &mut Control, first: ServiceClock, is_there: bool) -> u64 {
    if control.sharing.is_some() {
        return 0;
    }
    let second = if is_there { control.clock().ok() } else { None };
    let drift_ns = second.map_or(0, |second| {
        let apart = second.ahead_ns.wrapping_sub(first.ahead_ns) as i64;
        apart.unsigned_abs().saturating_sub(second.uncertainty_ns)
    });
    first.uncertainty_ns.saturating_add(drift_ns)
}

/// Counters of this host and when they were read.
struct Evidence {
    drops: Drops,
    at_ns: u64,
}

impl Evidence {
    fn now(freed: Option<&FreedPackets>) -> Evidence {
        Evidence {
            drops: Drops::now_with(freed),
            at_ns: clock::monotonic_ns(),
        }
    }

    /// What moved since `before`, less what is usual.
    fn moved(self, before: &Evidence, quiet: &Evidence) -> Drops {
        let usual = before.drops.since(&quiet.drops);
        let quiet_time = Nanos(before.at_ns - quiet.at_ns);
        let time = Nanos(self.at_ns - before.at_ns);
        let mut moved = self
            .drops
            .since(&before.drops)
            .without_quiet(&usual, quiet_time, time);
        // Of our own sockets these would be replies, and of others' they are no concern of ours.
        moved.forget(DropPlace::ReceiveBuffer);
        moved
    }
}

/// What both hosts counted, each drop once: what the two have in common the service tells, as it
/// knows which of those drops were at its socket. Each names its host, where there are two.
fn merge(
    here: Drops,
    mut record: Record,
    sharing: Option<Sharing>,
) -> (UdpReceived, Vec<DropCounter>) {
    count_fragments(&mut record, here.fragments_each());
    let [there_named, here_named] = match sharing {
        None => [" on the service's host", " on the client's host"],
        Some(Sharing::Namespace) => [""; 2],
        Some(_) => [
            " in the service's network namespace",
            " in the client's network namespace",
        ],
    };
    let mut drops = record.at_socket;
    drops.extend(record.in_namespace);
    drops = named(drops, there_named);
    if sharing != Some(Sharing::Namespace) {
        let here = here.clone().of_sender().only_path(false);
        let here = here.in_namespace();
        drops.extend(named(here.counters(false), here_named));
    }
    let mut machine = record.on_machine;
    let ours = here.of_machine().counters(false);
    match sharing {
        // One of them may not see all: the neighbours' counters are the first namespace's alone.
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

/// Puts the fragments that did not become datagrams in the place of the kernel's failures, which it
/// counts only 30 s after the first fragment came. At least one fragment of each such datagram was
/// received, so that there are at most this many. `each`: fragments of a datagram as it was sent.
fn count_fragments(record: &mut Record, each: u64) {
    let Reassembly {
        fragments,
        reassembled,
    } = record.reassembly;
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

/// What this host counted, where the service told nothing.
fn alone(here: Drops, sharing: Option<Sharing>) -> Vec<DropCounter> {
    let over_loopback = sharing == Some(Sharing::Namespace);
    let here = here.only_path(over_loopback);
    match over_loopback {
        true => here.counters(true),
        false => here.of_sender().counters(false),
    }
}

fn in_words(lost: Lost) -> String {
    match lost {
        Lost::Because(why) => format!("the service {why}"),
        Lost::Interrupted => "interrupted while the service was to tell".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let mut record = Record {
                reassembly: Reassembly {
                    fragments: 270,
                    reassembled: 80,
                },
                in_namespace: vec![counter(DropPlace::Reassembly, "Ip: ReasmFails")],
                ..Record::default()
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
            forget_told(&mut drops, &sent);
            drops.map(|counter| counter.count)
        };
        assert_eq!(rest(&[], 0), [30, 30, 30]);
        assert_eq!(rest(&[("EPERM", 10)], 0), [20, 10, 30]);
        // A rule has no part in what came back of an earlier datagram, or found no room.
        assert_eq!(rest(&[("EHOSTUNREACH", 10)], 4), [30, 2, 30]);
        assert_eq!(rest(&[("ENOBUFS", 99)], 0), [30, 0, 30]);
    }
}
