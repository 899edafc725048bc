//! Counts of senders, as a whole and by interval.

use knee_load::experiment::udp::{UdpSent, UdpTrialSpec};
use knee_load::measure::Histogram;
use knee_load::time::Nanos;
use std::collections::BTreeMap;

/// Intervals kept. The last one has the rest.
const INTERVALS_MAX: u64 = 1_000_000;

/// Counts of one sender.
pub(super) struct SendTally {
    /// The sums.
    pub(super) sent: UdpSent,
    /// Datagrams refused, by `errno`.
    refused: BTreeMap<i32, u64>,
    starts_max: usize,
    /// Time at which the kernel took the last datagram.
    last: Nanos,
    interval: Nanos,
    /// The current interval, and its end.
    current: usize,
    ends: Nanos,
    /// Intervals before this one were reported.
    reported: usize,
}

impl SendTally {
    /// No counts yet; keeps up to `starts_max` start times.
    pub(super) fn new(spec: &UdpTrialSpec, starts_max: usize) -> SendTally {
        let interval = Nanos(spec.interval.0.max(1));
        let intervals = spec.duration.0.div_ceil(interval.0).clamp(1, INTERVALS_MAX) as usize;
        let mut tally = SendTally {
            sent: UdpSent {
                by_interval: vec![0; intervals],
                refused_by_interval: vec![0; intervals],
                starts_until: Nanos::MAX,
                pacing_error: Histogram::ready(),
                round_trip: Histogram::ready(),
                ..UdpSent::default()
            },
            refused: BTreeMap::new(),
            starts_max,
            last: Nanos::ZERO,
            interval,
            current: 0,
            ends: Nanos::ZERO,
            reported: 0,
        };
        tally.enter(0);
        tally
    }

    /// The kernel took `count` datagrams at `at`, which never decreases.
    #[inline]
    pub(super) fn taken(&mut self, count: usize, at: Nanos) {
        self.advance(at);
        self.last = at;
        self.sent.sent += count as u64;
        self.sent.by_interval[self.current] += count as u64;
        let starts = &mut self.sent.starts;
        if starts.len() + count <= self.starts_max {
            starts.extend(std::iter::repeat_n(at, count));
        } else {
            self.sent.starts_until = self.sent.starts_until.min(at);
        }
    }

    /// The kernel refused `count` datagrams at `at`, which never decreases.
    pub(super) fn refused(&mut self, errno: i32, count: usize, at: Nanos) {
        self.advance(at);
        self.sent.refused_by_interval[self.current] += count as u64;
        *self.refused.entry(errno).or_default() += count as u64;
    }

    /// Datagrams that the kernel took or refused.
    pub(super) fn attempted(&self) -> u64 {
        self.sent.sent + self.refused.values().sum::<u64>()
    }

    /// Notes the lateness of the sender.
    #[inline]
    pub(super) fn stalled(&mut self, late: Nanos) {
        self.sent.stall_ns_max = self.sent.stall_ns_max.max(late.0);
    }

    /// Passes intervals that are over at `now` to `emit`, with their number.
    #[inline]
    pub(super) fn roll(&mut self, now: Nanos, emit: &mut dyn FnMut(u64, u64)) {
        self.advance(now);
        while self.reported < self.current {
            emit(self.reported as u64, self.sent.by_interval[self.reported]);
            self.reported += 1;
        }
    }

    /// Ends the counts at `now`. Sending was over at `over` or at the last send, whichever is
    /// later, however late a sender on a busy processor noticed. `intended`: datagrams that a
    /// schedule had.
    pub(super) fn finish(mut self, now: Nanos, over: Nanos, intended: Option<u64>) -> UdpSent {
        let attempted = self.attempted();
        let mut sent = std::mem::take(&mut self.sent);
        sent.intended = intended.unwrap_or(attempted);
        sent.not_attempted = sent.intended - attempted.min(sent.intended);
        let named = |(errno, count): (&i32, &u64)| (error_name(*errno), *count);
        sent.send_errors = self.refused.iter().map(named).collect();
        sent.elapsed = now.min(over).max(self.last);
        sent
    }

    #[inline]
    fn advance(&mut self, now: Nanos) {
        while now >= self.ends {
            self.enter(self.current + 1);
        }
    }

    /// The last interval has no end: what is sent a little late counts there.
    fn enter(&mut self, index: usize) {
        self.current = index;
        self.ends = if index + 1 < self.sent.by_interval.len() {
            Nanos(self.interval.0.saturating_mul(index as u64 + 1))
        } else {
            Nanos::MAX
        };
    }
}

/// Merges the counts of the senders of one trial.
pub(super) fn merge(parts: impl IntoIterator<Item = UdpSent>) -> UdpSent {
    let mut sum = UdpSent { starts_until: Nanos::MAX, ..UdpSent::default() };
    for part in parts {
        sum.intended += part.intended;
        sum.not_attempted += part.not_attempted;
        sum.sent += part.sent;
        for (name, count) in part.send_errors {
            *sum.send_errors.entry(name).or_default() += count;
        }
        sum.blocked += part.blocked;
        sum.pacing_error.merge(&part.pacing_error);
        sum.starts.extend(part.starts);
        sum.starts_until = sum.starts_until.min(part.starts_until);
        add_each(&mut sum.by_interval, part.by_interval);
        add_each(&mut sum.refused_by_interval, part.refused_by_interval);
        sum.round_trip.merge(&part.round_trip);
        sum.stray_replies += part.stray_replies;
        sum.stall_ns_max = sum.stall_ns_max.max(part.stall_ns_max);
        sum.elapsed = sum.elapsed.max(part.elapsed);
    }
    // The sort makes use of ascending runs, one per sender.
    sum.starts.sort();
    let last = sum.starts.last().map_or(Nanos::ZERO, |&t| t + Nanos(1));
    sum.starts_until = sum.starts_until.min(sum.elapsed.max(last));
    let kept = sum.starts.partition_point(|&t| t < sum.starts_until);
    sum.starts.truncate(kept);
    sum
}

fn add_each(sum: &mut Vec<u64>, part: Vec<u64>) {
    sum.resize(sum.len().max(part.len()), 0);
    sum.iter_mut().zip(part).for_each(|(to, from)| *to += from);
}

/// The symbol of an error number that sending may give (send(2), udp(7), ip(7)).
fn error_name(errno: i32) -> String {
    let name = match errno {
        libc::EAGAIN => "EAGAIN",
        libc::EACCES => "EACCES",
        libc::ECONNREFUSED => "ECONNREFUSED",
        libc::EHOSTDOWN => "EHOSTDOWN",
        libc::EHOSTUNREACH => "EHOSTUNREACH",
        libc::EINVAL => "EINVAL",
        libc::EIO => "EIO",
        libc::EMSGSIZE => "EMSGSIZE",
        libc::ENETDOWN => "ENETDOWN",
        libc::ENETUNREACH => "ENETUNREACH",
        libc::ENOBUFS => "ENOBUFS",
        libc::ENOMEM => "ENOMEM",
        libc::ENOPROTOOPT => "ENOPROTOOPT",
        libc::EPERM => "EPERM",
        libc::EPROTO => "EPROTO",
        _ => return format!("errno {errno}"),
    };
    name.to_owned()
}

/// Sums of intervals over all senders, reported once all have passed them.
pub(super) struct SentIntervals {
    /// The first interval that each sender has not passed yet.
    reached: Vec<u64>,
    sums: Vec<u64>,
    reported: u64,
}

impl SentIntervals {
    /// No counts yet of `senders` senders.
    pub(super) fn new(senders: usize) -> SentIntervals {
        SentIntervals { reached: vec![0; senders], sums: Vec::new(), reported: 0 }
    }

    /// Notes that a sender has passed interval `index`, in which it sent `sent`. Intervals of a
    /// sender come in order.
    pub(super) fn passed(
        &mut self,
        sender: usize,
        index: u64,
        sent: u64,
        report: &mut dyn FnMut(u64, u64),
    ) {
        let room = self.sums.len().max(index as usize + 1);
        self.sums.resize(room, 0);
        self.sums[index as usize] += sent;
        self.reached[sender] = index + 1;
        self.report_passed(report);
    }

    /// Notes that a sender has ended.
    pub(super) fn ended(&mut self, sender: usize, report: &mut dyn FnMut(u64, u64)) {
        self.reached[sender] = u64::MAX;
        self.report_passed(report);
    }

    /// Reports the rest, from the sums of all senders at their end.
    pub(super) fn finish(self, by_interval: &[u64], report: &mut dyn FnMut(u64, u64)) {
        for (index, &sent) in by_interval.iter().enumerate().skip(self.reported as usize) {
            report(index as u64, sent);
        }
    }

    fn report_passed(&mut self, report: &mut dyn FnMut(u64, u64)) {
        let all = self.reached.iter().copied().min().unwrap_or(0);
        // Later intervals of senders that have ended are known only at the end.
        let is_running = all < u64::MAX;
        while is_running && self.reported < all {
            report(self.reported, self.sums.get(self.reported as usize).copied().unwrap_or(0));
            self.reported += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_told_once_all_have_passed_it() {
        let mut told = Vec::new();
        let mut tell = |index, sent| told.push((index, sent));
        let mut intervals = SentIntervals::new(2);
        intervals.passed(0, 0, 5, &mut tell);
        intervals.passed(0, 1, 6, &mut tell);
        intervals.passed(1, 0, 7, &mut tell);
        intervals.ended(0, &mut tell);
        intervals.passed(1, 1, 1, &mut tell);
        intervals.ended(1, &mut tell);
        intervals.finish(&[12, 7, 3], &mut tell);
        assert_eq!(told, [(0, 12), (1, 7), (2, 3)]);
    }
}
