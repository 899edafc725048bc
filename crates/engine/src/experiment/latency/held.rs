//! Pings that could not leave their host until the end.

use super::pinger::PROBES_MAX;
use knee_core::experiment::latency::measure::{Probe, ProbesMeasured};
use knee_core::time::Nanos;

/// So many pings in a row that could not leave are no accident.
const HELD_MIN: u64 = 4;

/// From `since` to `until`, the end, no ping could leave this host. Where that is longer than any
/// ping took, the first of them counts as one that was lost: of it is known that it waited so long
/// at the least, and the pings before it stand for none of that time.
pub(super) fn add(tcp: &mut ProbesMeasured, every: Nanos, [since, until]: [Nanos; 2]) {
    let waited = until - since;
    let is_long = waited > tcp.longest && waited.0 >= every.0.saturating_mul(HELD_MIN);
    if !is_long || tcp.probes.len() >= PROBES_MAX {
        return;
    }
    tcp.held_back -= 1;
    tcp.sent += 1;
    tcp.probes.push(Probe {
        intended: since,
        sent: since,
        back: None,
        waited,
    });
    (tcp.longest, tcp.longest_at) = (waited, since);
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_core::experiment::latency::measure::ProbeBack;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// One ping that took 1 ms, and 19 that could not leave.
    fn measured() -> ProbesMeasured {
        let round_trip = MS(1);
        let back = ProbeBack {
            round_trip,
            up: Nanos::ZERO,
            down: Nanos::ZERO,
        };
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
    fn a_path_that_takes_no_ping_to_the_end_is_not_told_by_those_before() {
        let mut tcp = measured();
        add(&mut tcp, MS(50), [MS(50), MS(1_000)]);
        assert_eq!((tcp.sent, tcp.held_back, tcp.longest), (2, 18, MS(950)));
        let last = tcp.probes[1];
        assert_eq!((last.sent, last.back, last.waited), (MS(50), None, MS(950)));
    }

    #[test]
    fn a_queue_that_pings_came_through_or_a_moment_tells_nothing_new() {
        for (longest, since) in [(MS(1_300), MS(50)), (MS(1), MS(850))] {
            let mut tcp = ProbesMeasured {
                longest,
                ..measured()
            };
            add(&mut tcp, MS(50), [since, MS(1_000)]);
            assert_eq!((tcp.sent, tcp.held_back), (1, 19));
        }
    }
}
