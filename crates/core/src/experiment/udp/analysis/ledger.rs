//! Where each datagram went.

use crate::trial::detail::{LedgerReport, LossEvidence};
use knee_load::experiment::udp::{DropCounter, DropPlace, UdpReceived, UdpTrial};

/// The reason of discards that were no datagrams of the trial.
const NOT_OF_THIS_RUN: &str = "not_of_this_run";

/// Where a receiving socket drops, in the order of the path.
const AT_SOCKET: [DropPlace; 3] =
    [DropPlace::Checksum, DropPlace::ReceiveBuffer, DropPlace::UdpMemory];

/// Puts every datagram that was intended to one line of the ledger.
///
/// What is missing, sent − received, is put down to what is known of losses, each source for at
/// most what is still missing:
///
/// 1. discards at the service, except those not of this run: they were received, so they are not
///    lost;
/// 2. counters of our sockets alone, in the order in which a datagram passes them. They are exact;
/// 3. counters of whole hosts, in the same order. They may have counted the drops of others, which
///    is why they come after and why the evidence says so;
/// 4. what whole kernels dropped at a place for a reason, less what those counters and the errors
///    of the senders account for at that place;
/// 5. where the service vanished before it reported, the rest is put to the `service`. It may have
///    received them or not: nobody can know;
/// 6. between two hosts, or two network namespaces of one, the rest is put to the `path` if the
///    counters of the receiving one are known. Nobody counted it: it is inferred, and the evidence
///    says so;
/// 7. any other rest is `unexplained`. In one network namespace there is no path, so it should be
///    0.
///
/// A socket's own count (SO_MEMINFO) lumps together a full buffer, exhausted memory and wrong
/// checksums: see `at_socket`. `unexplained` is what makes the sum exact whatever came in, and is
/// negative where more was received than can have been sent.
pub fn ledger(trial: &UdpTrial) -> LedgerReport {
    let sent = &trial.sent;
    let send_errors = sent.send_errors.values().sum();
    let received = trial.received.as_ref().map_or(0, |r| r.received);
    let mut book = LedgerBuilder {
        missing: sent.sent.saturating_sub(received),
        ledger: LedgerReport {
            intended: sent.intended,
            not_attempted: sent.not_attempted,
            send_errors,
            received,
            ..LedgerReport::default()
        },
    };
    let discarded = trial.received.as_ref().map_or(0, of_this_run);
    book.ledger.discarded = book.take(discarded);
    for counter in at_socket(trial) {
        book.put(&counter);
    }
    for host_wide in [false, true] {
        let mut counters: Vec<&DropCounter> =
            trial.drops.iter().filter(|d| d.host_wide == host_wide && !d.whole_kernel).collect();
        counters.sort_by_key(|d| d.place);
        counters.into_iter().for_each(|counter| book.put(counter));
    }
    for counter in of_kernels(trial) {
        book.put(&counter);
    }
    if let Some((place, source)) = rest(trial) {
        book.infer(place, source);
    }
    book.close()
}

/// A service that tells its kernel tells that kernel's counters too, those that moved.
fn tells_its_counters(trial: &UdpTrial) -> bool {
    !trial.service.kernel.is_empty() || trial.drops.iter().any(|d| d.at_service)
}

struct LedgerBuilder {
    missing: u64,
    ledger: LedgerReport,
}

impl LedgerBuilder {
    /// Takes `count` off the missing, or all of them; how many were taken.
    fn take(&mut self, count: u64) -> u64 {
        let taken = count.min(self.missing);
        self.missing -= taken;
        taken
    }

    /// Puts down what a counter counted, at most what is still missing.
    fn put(&mut self, counter: &DropCounter) {
        if counter.count > 0 {
            let attributed = self.take(counter.count);
            self.lose(counter.place, counter.count, attributed, &counter.source, counter.host_wide);
        }
    }

    /// Puts all that is still missing to a place for which there is no counter.
    fn infer(&mut self, place: DropPlace, source: &str) {
        let attributed = std::mem::take(&mut self.missing);
        if attributed > 0 {
            self.lose(place, 0, attributed, source, false);
        }
    }

    /// `counted` is 0 where the place is inferred.
    fn lose(
        &mut self,
        place: DropPlace,
        counted: u64,
        attributed: u64,
        source: &str,
        host_wide: bool,
    ) {
        let place = place.name().to_owned();
        if attributed > 0 {
            *self.ledger.lost.entry(place.clone()).or_default() += attributed;
        }
        self.ledger.evidence.push(LossEvidence {
            place,
            counted,
            attributed,
            source: source.to_owned(),
            host_wide,
            inferred: counted == 0,
        });
    }

    fn close(self) -> LedgerReport {
        let mut ledger = self.ledger;
        let known = i128::from(ledger.not_attempted)
            + i128::from(ledger.send_errors)
            + ledger.lost.values().map(|&n| i128::from(n)).sum::<i128>()
            + i128::from(ledger.received)
            + i128::from(ledger.discarded);
        let rest = i128::from(ledger.intended) - known;
        ledger.unexplained = rest.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        ledger
    }
}

/// Where the rest must have ended, for which there is no counter, and why.
fn rest(trial: &UdpTrial) -> Option<(DropPlace, &str)> {
    let service = &trial.service;
    if trial.received.is_none() {
        let why = trial.service_lost.as_deref();
        Some((DropPlace::Service, why.unwrap_or("it told nothing")))
    } else if !tells_its_counters(trial) {
        None
    } else if !service.same_host {
        Some((DropPlace::Path, "no counter of either host moved for them"))
    } else if !service.same_namespace {
        let source = "no counter of either network namespace moved for them";
        Some((DropPlace::Path, source))
    } else {
        None
    }
}

fn of_this_run(received: &UdpReceived) -> u64 {
    let own = received.discarded.iter();
    own.filter(|(why, _)| why.as_str() != NOT_OF_THIS_RUN).map(|(_, n)| n).sum()
}

/// Drops of whole kernels that no other counter has.
fn of_kernels(trial: &UdpTrial) -> Vec<DropCounter> {
    let mut rest = Vec::new();
    let sides = [false, true].into_iter();
    let each = sides.flat_map(|at_service| DropPlace::ALL.map(|place| (place, at_service)));
    for (place, at_service) in each {
        let mut known = known_at(trial, place, at_service);
        let here = |d: &&DropCounter| {
            d.whole_kernel && d.place == place && d.at_service == at_service && d.count > 0
        };
        for counter in trial.drops.iter().filter(here) {
            let again = known.min(counter.count);
            known -= again;
            let count = counter.count - again;
            rest.push(DropCounter { count, ..counter.clone() });
        }
    }
    rest
}

/// Drops that are known at this place without the counters of whole kernels; those on one
/// host are those of its kernel.
fn known_at(trial: &UdpTrial, place: DropPlace, at_service: bool) -> u64 {
    let is_one = trial.service.same_host;
    let here = |d: &&DropCounter| {
        !d.whole_kernel && d.place == place && (is_one || d.at_service == at_service)
    };
    let counted: u64 = trial.drops.iter().filter(here).map(|d| d.count).sum();
    let errors: &[&str] = match place {
        DropPlace::Firewall => &["EPERM", "EACCES"],
        DropPlace::Qdisc => &["ENOBUFS"],
        _ => &[],
    };
    let errors = errors.iter().filter(|_| is_one || !at_service);
    let told = errors.filter_map(|e| trial.sent.send_errors.get(*e));
    counted + told.sum::<u64>()
}

/// What the service's socket counted itself, by place, but for what `drops` has already.
///
/// The socket's count is exact but has no reasons; the host's counters have reasons but may be of
/// other sockets. So the host's count of full buffers goes first, up to the socket's whole count.
/// Only what it does not cover can have been exhausted memory or wrong checksums, up to the host's
/// counts of them. The rest was a full buffer too, and the host's counter was not read.
fn at_socket(trial: &UdpTrial) -> Vec<DropCounter> {
    let told = |d: &&DropCounter| !d.host_wide && d.at_service && AT_SOCKET.contains(&d.place);
    let listed: u64 = trial.drops.iter().filter(told).map(|d| d.count).sum();
    let socket = trial.received.as_ref().map_or(0, |r| r.socket_drops).saturating_sub(listed);
    let host = |place| -> u64 {
        let such = |d: &&DropCounter| d.host_wide && d.at_service && d.place == place;
        trial.drops.iter().filter(such).map(|d| d.count).sum()
    };
    let uncovered = socket.saturating_sub(host(DropPlace::ReceiveBuffer));
    let checksum = host(DropPlace::Checksum).min(uncovered);
    let memory = host(DropPlace::UdpMemory).min(uncovered - checksum);
    AT_SOCKET
        .into_iter()
        .zip([checksum, socket - checksum - memory, memory])
        .map(|(place, count)| DropCounter {
            place,
            count,
            source: "SO_MEMINFO".to_owned(),
            host_wide: false,
            whole_kernel: false,
            at_service: true,
        })
        .collect()
}
