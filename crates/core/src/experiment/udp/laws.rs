//! What clients of one law did and got: their trials pooled, and the figures of all.

use crate::experiment::udp::report::LawRow;
use crate::experiment::verdict;
use crate::trial::detail::{DatagramReport, DispersionAt, LedgerReport, LossEvidence};
use crate::trial::report::{TrialReport, Verdict};
use crate::words::{drop_place, exact, list, number, share};
use knee_load::experiment::udp::{DropPlace, UdpTrialSpec};
use knee_load::measure::Interval;
use knee_load::stats::sample::mean_and_ci95;
use std::collections::BTreeMap;

/// The row of the clients of `spec`. Rates are means over the trials; the loss is that of all their
/// datagrams together.
pub(super) fn law_row(spec: &UdpTrialSpec, trials: &[&TrialReport]) -> LawRow {
    let reports: Vec<&DatagramReport> = trials.iter().filter_map(|t| t.datagrams()).collect();
    let each = |figure: fn(&DatagramReport) -> f64| {
        reports.iter().map(|d| figure(d)).collect::<Vec<f64>>()
    };
    let mean = |figure| mean_and_ci95(&each(figure)).0;
    let (sent_per_s, sent_ci95) = mean_and_ci95(&each(|d| d.sent_per_s));
    let (_, loss_ci95) = mean_and_ci95(&each(|d| d.loss_percent));
    let dispersion: Vec<f64> = reports.iter().filter_map(|d| d.arrival_dispersion.ms10).collect();
    LawRow {
        label: spec.label.clone(),
        wait: spec.wait.name(),
        clients: spec.clients,
        trials: trials.len() as u32,
        sent_per_s,
        sent_ci95_per_s: sent_ci95.map(|[lo, hi]| [lo.max(0.0), hi]),
        received_per_s: mean(|d| d.received_per_s),
        dropped_per_s: mean(|d| d.dropped_per_s),
        loss_percent: loss_percent(trials),
        loss_ci95_percent: loss_ci95.map(|[lo, hi]| [lo.max(0.0), hi.min(100.0)]),
        dispersion: (!dispersion.is_empty()).then(|| mean_and_ci95(&dispersion).0),
        burst_max: reports.iter().map(|d| d.burst_max).max().unwrap_or(0),
        ledger: ledger(trials),
        intervals: intervals(trials),
        arrivals_per_ms: arrivals_per_ms(trials),
        dispersion_by_scale: dispersion_by_scale(trials),
    }
}

/// The loss of all datagrams of these trials together, in percent.
pub(super) fn loss_percent(trials: &[&TrialReport]) -> f64 {
    ledger(trials).loss_percent()
}

/// Missing datagrams that have no place on the way.
const REFUSED: &str = "refused";
const DISCARDED: &str = "discarded";
const UNEXPLAINED: &str = "unexplained";

/// Datagrams lost in these trials by the place's name, refused, discarded and unexplained ones
/// among them, the most first.
pub(super) fn lost_by_place(trials: &[&TrialReport]) -> Vec<(String, u64)> {
    let mut places: BTreeMap<&str, u64> = BTreeMap::new();
    for ledger in trials.iter().filter_map(|t| t.ledger()) {
        for (place, count) in &ledger.lost {
            *places.entry(place).or_default() += count;
        }
        *places.entry(REFUSED).or_default() += ledger.send_errors;
        *places.entry(DISCARDED).or_default() += ledger.discarded;
        *places.entry(UNEXPLAINED).or_default() += ledger.unexplained.max(0) as u64;
    }
    let mut places: Vec<(String, u64)> = places
        .into_iter()
        .filter(|(_, n)| *n > 0)
        .map(|(place, n)| (place.to_owned(), n))
        .collect();
    places.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    places
}

/// ` Of what is missing: 12,345 in the receive buffer.`, or nothing where nothing was.
pub(super) fn lost_where(trials: &[&TrialReport]) -> String {
    let places: Vec<String> = lost_by_place(trials)
        .into_iter()
        .map(|(place, n)| match place.as_str() {
            REFUSED => format!("{} {}", exact(n as f64), refused_where(trials)),
            DISCARDED | UNEXPLAINED => format!("{} {place}", exact(n as f64)),
            _ => format!("{} {}", exact(n as f64), drop_place(&place)),
        })
        .collect();
    if places.is_empty() {
        String::new()
    } else {
        format!(" Of what is missing: {}.", list(&places))
    }
}

/// `refused by the sender's kernel (ENOBUFS: this host's queues are full)`
fn refused_where(trials: &[&TrialReport]) -> String {
    let errors = sum_by_name(trials.iter().filter_map(|t| t.datagrams()).map(|d| &d.send_errors));
    let errors: Vec<String> = errors
        .into_iter()
        .filter(|(_, n)| *n > 0)
        .map(|(name, _)| format!("{name}: {}", refusal(&name).0))
        .collect();
    format!("refused by the sender's kernel ({})", list(&errors))
}

/// Why the kernel refuses a datagram with this error, and what to do about it.
pub(super) fn refusal(error: &str) -> (&'static str, &'static str) {
    match error {
        "ECONNREFUSED" => (
            "nobody listens at that port",
            "correct the address, or start the service there: knee serve udp",
        ),
        "EMSGSIZE" => (
            "the datagram is larger than the path carries in one piece",
            "use a smaller --size (1,472 over Ethernet with IPv4)",
        ),
        "ENETUNREACH" | "EHOSTUNREACH" | "EHOSTDOWN" | "ENETDOWN" => (
            "no route leads to that host",
            "check the address and the routes: ip route get ADDRESS",
        ),
        "EPERM" | "EACCES" => ("this host forbids it", "look at its firewall: nft list ruleset"),
        "ENOBUFS" | "EAGAIN" | "ENOMEM" => (
            "this host's queues are full",
            "offer less with a lower --rate, or look at them: tc -s qdisc",
        ),
        _ => ("an error of the system", "look up that error in udp(7) and send(2)"),
    }
}

/// `exp(200us)*128 sent 98,400/s and lost 1.2 % of it.`
pub(super) fn in_words(row: &LawRow) -> String {
    if row.ledger.received == 0 && row.ledger.lost.contains_key(DropPlace::Service.name()) {
        return format!(
            "{} sent {}/s until the service vanished: what it received is not known.",
            row.label,
            number(row.sent_per_s)
        );
    }
    let lost = if row.dropped_per_s > 0.0 {
        format!("lost {} of it", share(row.loss_percent))
    } else {
        "lost nothing".to_owned()
    };
    let (tried, per_s) = match row.ledger.send_errors {
        0 => ("sent", row.sent_per_s),
        _ => ("tried to send", row.received_per_s + row.dropped_per_s),
    };
    format!("{} {tried} {}/s and {lost}.", row.label, number(per_s))
}

/// Invalid where the trials of any one law are: then it is not that law that was measured.
pub(super) fn law_verdict(by_law: &[Vec<&TrialReport>]) -> Verdict {
    let is_invalid =
        |trials: &Vec<&TrialReport>| verdict(trials.iter().copied()) == Verdict::Invalid;
    if by_law.iter().any(is_invalid) { Verdict::Invalid } else { Verdict::Valid }
}

/// The sum of their ledgers. It balances, as each of them does.
pub(crate) fn ledger(trials: &[&TrialReport]) -> LedgerReport {
    let mut sum = LedgerReport::default();
    for ledger in trials.iter().filter_map(|t| t.ledger()) {
        sum.intended += ledger.intended;
        sum.not_attempted += ledger.not_attempted;
        sum.send_errors += ledger.send_errors;
        sum.received += ledger.received;
        sum.discarded += ledger.discarded;
        sum.unexplained += ledger.unexplained;
        for (place, count) in &ledger.lost {
            *sum.lost.entry(place.clone()).or_default() += count;
        }
        for evidence in &ledger.evidence {
            add_evidence(&mut sum.evidence, evidence);
        }
    }
    sum
}

fn add_evidence(evidence: &mut Vec<LossEvidence>, one: &LossEvidence) {
    let same = |e: &&mut LossEvidence| {
        e.place == one.place
            && e.source == one.source
            && (e.host_wide, e.inferred) == (one.host_wide, one.inferred)
    };
    match evidence.iter_mut().find(same) {
        Some(known) => {
            known.counted += one.counted;
            known.attributed += one.attributed;
        }
        None => evidence.push(one.clone()),
    }
}

/// The report of these trials together: counts add, rates are means, and a maximum is that of all
/// trials. What describes the service is that of the first. `None` where there are none.
pub(crate) fn datagrams(trials: &[&TrialReport]) -> Option<DatagramReport> {
    let reports: Vec<&DatagramReport> = trials.iter().filter_map(|t| t.datagrams()).collect();
    let mut pooled = (*reports.first()?).clone();
    let sum = |figure: fn(&DatagramReport) -> u64| reports.iter().map(|d| figure(d)).sum::<u64>();
    let mean = |figure: fn(&DatagramReport) -> f64| {
        reports.iter().map(|d| figure(d)).sum::<f64>() / reports.len() as f64
    };
    pooled.sent_per_s = mean(|d| d.sent_per_s);
    pooled.received_per_s = mean(|d| d.received_per_s);
    pooled.dropped_per_s = mean(|d| d.dropped_per_s);
    pooled.duplicates = sum(|d| d.duplicates);
    pooled.reordered = sum(|d| d.reordered);
    pooled.blocked = sum(|d| d.blocked);
    pooled.service_preempted = sum(|d| d.service_preempted);
    pooled.service_scheduled = sum(|d| d.service_scheduled);
    let longest = reports.iter().map(|d| d.service_pause_ns_max).max();
    pooled.service_pause_ns_max = longest.unwrap_or(0);
    pooled.send_errors = sum_by_name(reports.iter().map(|d| &d.send_errors));
    pooled.discarded = sum_by_name(reports.iter().map(|d| &d.discarded));
    pooled.service_lost = reports.iter().find_map(|d| d.service_lost.clone());
    pooled.not_read = reports.iter().flat_map(|d| d.not_read.clone()).collect();
    pooled.not_read.sort();
    pooled.not_read.dedup();
    Some(pooled)
}

fn sum_by_name<'a>(
    counts: impl Iterator<Item = &'a BTreeMap<String, u64>>,
) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for (name, count) in counts.flatten() {
        *sum.entry(name.clone()).or_default() += count;
    }
    sum
}

/// The sum of what they sent and received in each interval. One that a trial ended in, or never
/// came to, lacks what that trial would have sent in the rest of it.
pub(super) fn intervals(trials: &[&TrialReport]) -> Vec<Interval> {
    let mut sum: Vec<Interval> = Vec::new();
    for trial in trials {
        for (index, one) in trial.intervals.iter().enumerate() {
            let Some(known) = sum.get_mut(index) else {
                sum.push(one.clone());
                continue;
            };
            known.end_ns = known.end_ns.max(one.end_ns);
            known.attempted += one.attempted;
            known.completed += one.completed;
            known.errors += one.errors;
            known.sent = add(known.sent, one.sent);
            known.received = add(known.received, one.received);
            known.dropped = add(known.dropped, one.dropped);
        }
    }
    sum
}

/// The sum; unknown if either is.
fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a? + b?)
}

/// Number of milliseconds by their number of arrivals (the index), over all trials.
pub(super) fn arrivals_per_ms(trials: &[&TrialReport]) -> Vec<u64> {
    let mut sum: Vec<u64> = Vec::new();
    for datagrams in trials.iter().filter_map(|t| t.datagrams()) {
        let one = &datagrams.arrivals_per_ms;
        sum.resize(sum.len().max(one.len()), 0);
        sum.iter_mut().zip(one).for_each(|(sum, n)| *sum += n);
    }
    sum
}

/// The mean of their indices of dispersion at each time scale that any of them has.
pub(super) fn dispersion_by_scale(trials: &[&TrialReport]) -> Vec<DispersionAt> {
    let mut by_scale: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for datagrams in trials.iter().filter_map(|t| t.datagrams()) {
        for at in &datagrams.dispersion_by_scale {
            let (sum, count) = by_scale.entry(at.scale_ns).or_default();
            *sum += at.index;
            *count += 1.0;
        }
    }
    let mean =
        |(scale_ns, (sum, count)): (u64, (f64, f64))| DispersionAt { scale_ns, index: sum / count };
    by_scale.into_iter().map(mean).collect()
}

#[cfg(test)]
mod pool_tests {
    use super::*;
    use crate::experiment::udp::analysis::assess;
    use crate::experiment::udp::analysis::tests::{moments, schedule, served, spec};
    use crate::experiment::udp::laws::ledger;
    use knee_load::spec::ArrivalLaw;
    use knee_load::time::Nanos;

    /// 6,000/s to a service of 200 µs behind a buffer for 9 datagrams.
    fn lossy() -> TrialReport {
        let duration = Nanos::from_secs(3);
        let spec = spec(1, schedule(6_000, ArrivalLaw::Poisson), duration);
        let starts = moments(6_000, &ArrivalLaw::Poisson, duration);
        assess(&served(spec, starts, Nanos::from_micros(200), 9))
    }

    #[test]
    fn counts_of_several_trials_add_and_still_balance() {
        let one = lossy();
        let both = [&one, &one];
        let (sum, single) = (ledger(&both), one.ledger().unwrap());
        assert_eq!(sum.intended, 2 * single.intended);
        assert!(sum.lost["receive_buffer"] > 0);
        let lost: u64 = sum.lost.values().sum();
        let rest = sum.not_attempted + sum.send_errors + sum.discarded;
        let parts = (rest + lost + sum.received) as i64 + sum.unexplained;
        assert_eq!(parts, sum.intended as i64);
        assert_eq!(sum.evidence.len(), single.evidence.len());
        assert_eq!(sum.evidence[0].counted, 2 * single.evidence[0].counted);

        let datagrams = one.datagrams().unwrap();
        let doubled: Vec<u64> = datagrams.arrivals_per_ms.iter().map(|n| 2 * n).collect();
        assert_eq!(arrivals_per_ms(&both), doubled);
        assert_eq!(dispersion_by_scale(&both), datagrams.dispersion_by_scale);
    }

    #[test]
    fn a_trial_that_ended_early_adds_what_it_has() {
        let one = lossy();
        let mut other = one.clone();
        other.intervals.truncate(1);
        other.intervals[0].dropped = None;
        let sum = intervals(&[&other, &one]);
        assert_eq!(sum.len(), one.intervals.len());
        assert_eq!(sum[0].sent, one.intervals[0].sent.map(|n| 2 * n));
        assert_eq!(sum[0].dropped, None);
        assert_eq!(sum[1..], one.intervals[1..]);
        assert_eq!(intervals(&[]), Vec::new());
    }
}
