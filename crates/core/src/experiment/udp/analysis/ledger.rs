//! Where each datagram went.

use crate::trial::detail::{LedgerReport, LossEvidence};
use knee_load::experiment::udp::{DropCounter, DropPlace, UdpTrial};

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
/// checksums: see `socket_counters`. `unexplained` is what makes the sum exact whatever came in,
/// and is negative where more was received than can have been sent.
pub fn ledger(trial: &UdpTrial) -> LedgerReport {
    let sent = &trial.sent;
    let received = trial.received.as_ref().map_or(0, |r| r.received);
    let mut missing = sent.sent.saturating_sub(received);
    // Attributes this number of the missing datagrams, at most all of them. Returns how many.
    let mut attribute = |count: u64| {
        let taken = count.min(missing);
        missing -= taken;
        taken
    };
    let discarded = trial.received.iter().flat_map(|received| &received.discarded);
    let discarded = discarded.filter(|(why, _)| why.as_str() != NOT_OF_THIS_RUN);
    let mut ledger = LedgerReport {
        intended: sent.intended,
        not_attempted: sent.not_attempted,
        send_errors: sent.send_errors.values().sum(),
        received,
        discarded: attribute(discarded.map(|(_, n)| n).sum()),
        ..LedgerReport::default()
    };
    let mut counters = socket_counters(trial);
    for host_wide in [false, true] {
        let known = trial.drops.iter().filter(|d| d.host_wide == host_wide && !d.whole_kernel);
        let mut known: Vec<DropCounter> = known.cloned().collect();
        known.sort_by_key(|d| d.place);
        counters.extend(known);
    }
    counters.extend(kernel_counters(trial));
    counters.retain(|counter| counter.count > 0);
    for counter in counters.into_iter().chain(place_of_rest(trial)) {
        let DropCounter { place, count: counted, source, host_wide, .. } = counter;
        let is_rest = counted == 0;
        let attributed = attribute(if is_rest { u64::MAX } else { counted });
        let place = place.name().to_owned();
        if attributed > 0 {
            *ledger.lost.entry(place.clone()).or_default() += attributed;
        }
        if attributed > 0 || !is_rest {
            let inferred = is_rest;
            let evidence = LossEvidence { place, counted, attributed, source, host_wide, inferred };
            ledger.evidence.push(evidence);
        }
    }
    let known = i128::from(ledger.not_attempted)
        + i128::from(ledger.send_errors)
        + ledger.lost.values().map(|&n| i128::from(n)).sum::<i128>()
        + i128::from(ledger.received)
        + i128::from(ledger.discarded);
    let rest = i128::from(ledger.intended) - known;
    ledger.unexplained = rest.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    ledger
}

/// Whether the counters of the service's kernel are known. A service that reports its kernel
/// reports those that moved.
fn knows_service_counters(trial: &UdpTrial) -> bool {
    !trial.service.kernel.is_empty() || trial.drops.iter().any(|d| d.at_service)
}

/// The place where the rest must have ended, for which there is no counter, and why.
fn place_of_rest(trial: &UdpTrial) -> Option<DropCounter> {
    let service = &trial.service;
    let (place, source) = if trial.received.is_none() {
        (DropPlace::Service, trial.service_lost.as_deref().unwrap_or("it told nothing"))
    } else if !knows_service_counters(trial) {
        return None;
    } else if !service.same_host {
        (DropPlace::Path, "no counter of either host moved for them")
    } else if !service.same_namespace {
        (DropPlace::Path, "no counter of either network namespace moved for them")
    } else {
        return None;
    };
    let (count, source) = (0, source.to_owned());
    let (host_wide, whole_kernel, at_service) = (false, false, false);
    Some(DropCounter { place, count, source, host_wide, whole_kernel, at_service })
}

/// Drops of whole kernels that no other counter has.
fn kernel_counters(trial: &UdpTrial) -> Vec<DropCounter> {
    let mut counters = Vec::new();
    let sides = [false, true].into_iter();
    let places = sides.flat_map(|at_service| DropPlace::ALL.map(|place| (place, at_service)));
    for (place, at_service) in places {
        let mut known = known_at(trial, place, at_service);
        let here = |d: &&DropCounter| {
            d.whole_kernel && d.place == place && d.at_service == at_service && d.count > 0
        };
        for counter in trial.drops.iter().filter(here) {
            let repeated = known.min(counter.count);
            known -= repeated;
            let count = counter.count - repeated;
            counters.push(DropCounter { count, ..counter.clone() });
        }
    }
    counters
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
    let refused = errors.filter_map(|e| trial.sent.send_errors.get(*e));
    counted + refused.sum::<u64>()
}

/// What the service's socket counted itself, by place, but for what `drops` has already.
///
/// The socket's count is exact but has no reasons; the host's counters have reasons but may be of
/// other sockets. So the host's count of full buffers goes first, up to the socket's whole count.
/// Only what it does not cover can have been exhausted memory or wrong checksums, up to the host's
/// counts of them. The rest was a full buffer too, and the host's counter was not read.
fn socket_counters(trial: &UdpTrial) -> Vec<DropCounter> {
    let is_listed = |d: &&DropCounter| !d.host_wide && d.at_service && AT_SOCKET.contains(&d.place);
    let listed: u64 = trial.drops.iter().filter(is_listed).map(|d| d.count).sum();
    let socket = trial.received.as_ref().map_or(0, |r| r.socket_drops).saturating_sub(listed);
    let host = |place| -> u64 {
        let is_counter = |d: &&DropCounter| d.host_wide && d.at_service && d.place == place;
        trial.drops.iter().filter(is_counter).map(|d| d.count).sum()
    };
    let uncovered = socket.saturating_sub(host(DropPlace::ReceiveBuffer));
    let checksum = host(DropPlace::Checksum).min(uncovered);
    let memory = host(DropPlace::UdpMemory).min(uncovered - checksum);
    AT_SOCKET
        .into_iter()
        .zip([checksum, socket - checksum - memory, memory])
        .map(|(place, count)| DropCounter::at_socket(place, count))
        .collect()
}
