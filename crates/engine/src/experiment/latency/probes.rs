//! Pings or UDP probes of one kind, from their sending to their account.

use knee_load::experiment::latency::{Probe, ProbesMeasured};
use knee_load::time::Nanos;

/// Probes of one kind that are kept.
const PROBES_MAX: usize = 1_000_000;

/// Probes of one kind.
#[derive(Debug, Default)]
pub(super) struct ProbeLog {
    pub(super) measured: ProbesMeasured,
    /// All before this index have come back.
    pub(super) oldest: usize,
    /// Probes that have come back, or are not kept.
    pub(super) back: u64,
    /// Time after which a probe is lost.
    pub(super) timeout: Option<Nanos>,
}

impl ProbeLog {
    /// Notes a probe that was sent. Returns its number.
    pub(super) fn sent(&mut self, intended: Nanos, sent: Nanos) -> u64 {
        let n = self.measured.sent;
        self.measured.sent += 1;
        self.measured.pacing_error.record(sent - intended);
        if self.measured.probes.len() < PROBES_MAX {
            self.measured.probes.push(Probe { intended, sent, back: None, waited: Nanos::ZERO });
        } else {
            // A probe that is not kept is not waited for.
            self.back += 1;
        }
        n
    }

    /// Time that the oldest probe still out has been under way.
    pub(super) fn waiting(&mut self, now: Nanos) -> Nanos {
        let probes = &self.measured.probes;
        while probes.get(self.oldest).is_some_and(|p| p.back.is_some()) {
            self.oldest += 1;
        }
        probes.get(self.oldest).map_or(Nanos::ZERO, |p| now - p.sent)
    }

    pub(super) fn lengthen(&mut self, wait: Nanos, sent: Nanos) {
        if wait > self.measured.longest {
            (self.measured.longest, self.measured.longest_at) = (wait, sent);
        }
    }

    pub(super) fn finish(mut self, now: Nanos) -> ProbesMeasured {
        for n in 0..self.measured.probes.len() {
            let probe = &mut self.measured.probes[n];
            if probe.back.is_none() {
                probe.waited = (now - probe.sent).min(self.timeout.unwrap_or(Nanos::MAX));
                let (waited, sent) = (probe.waited, probe.sent);
                self.lengthen(waited, sent);
            }
        }
        self.measured
    }
}

/// Pings in a row that could not leave and are no accident.
const HELD_MIN: u64 = 4;

/// Adds pings that could not leave this host from `since` to `until`, the end. Where that is longer
/// than any ping took, the first of them counts as lost after that time. It waited at least that
/// time, and the pings before it do not stand for it.
pub(super) fn add_held(tcp: &mut ProbesMeasured, every: Nanos, [since, until]: [Nanos; 2]) {
    let waited = until - since;
    let is_long = waited > tcp.longest && waited.0 >= every.0.saturating_mul(HELD_MIN);
    if !is_long || tcp.probes.len() >= PROBES_MAX {
        return;
    }
    tcp.held_back -= 1;
    tcp.sent += 1;
    tcp.probes.push(Probe { intended: since, sent: since, back: None, waited });
    (tcp.longest, tcp.longest_at) = (waited, since);
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::experiment::latency::ProbeBack;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// One ping that took 1 ms, and 19 that could not leave.
    fn measured() -> ProbesMeasured {
        let round_trip = MS(1);
        let back = ProbeBack { round_trip, up: Nanos::ZERO, down: Nanos::ZERO };
        ProbesMeasured {
            sent: 1,
            held_back: 19,
            longest: round_trip,
            probes: vec![Probe {
                intended: Nanos::ZERO,
                sent: Nanos::ZERO,
                back: Some(back),
                waited: Nanos::ZERO,
            }],
            ..ProbesMeasured::default()
        }
    }

    #[test]
    fn pings_held_back_to_the_end_count_as_a_lost_ping() {
        let mut tcp = measured();
        add_held(&mut tcp, MS(50), [MS(50), MS(1_000)]);
        assert_eq!((tcp.sent, tcp.held_back, tcp.longest), (2, 18, MS(950)));
        let last = tcp.probes[1];
        assert_eq!((last.sent, last.back, last.waited), (MS(50), None, MS(950)));
    }

    #[test]
    fn short_or_passed_waits_add_no_lost_ping() {
        for (longest, since) in [(MS(1_300), MS(50)), (MS(1), MS(850))] {
            let mut tcp = ProbesMeasured { longest, ..measured() };
            add_held(&mut tcp, MS(50), [since, MS(1_000)]);
            assert_eq!((tcp.sent, tcp.held_back), (1, 19));
        }
    }
}
