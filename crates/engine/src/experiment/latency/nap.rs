//! When a thread that receives had better not be woken by the very next segment.

use knee_core::time::Nanos;

/// Below so many bytes per nanosecond (16 Gbit/s) there is no nap: waking up is cheap enough, and
/// nothing that goes through a cable gains by it.
const RATE_MIN: f64 = 2.0;

/// What may come meanwhile: little beside what a fast flow's receive buffer holds.
const BYTES: f64 = 384.0 * 1024.0;

/// The longest nap.
const NAP_MAX: Nanos = Nanos::from_micros(20);

/// Naps between the passes of a thread whose flows come in at tens of gigabits per second.
///
/// A receiver that throws away what comes is faster than the sender that copies it in, so it sleeps
/// after each segment or two, and it is the sender who then has to wake it: on two cores of a
/// virtual machine that took a third of the throughput of a loopback flow and as much processor
/// time again. A thread that naps is not waiting in epoll, so that the sender need not wake it. It
/// adds up to 20 µs to the latency inside a flow of such a rate, and nothing to others.
#[derive(Debug)]
pub(super) struct Nap {
    bytes: u64,
    at_ns: u64,
}

impl Nap {
    /// Nothing has come yet.
    pub(super) fn new(now_ns: u64) -> Nap {
        Nap {
            bytes: 0,
            at_ns: now_ns,
        }
    }

    /// How long to nap, where `bytes` have come by `now_ns` in all; `None`: not at all.
    pub(super) fn after(&mut self, bytes: u64, now_ns: u64) -> Option<Nanos> {
        let more = (bytes - self.bytes) as f64;
        let time_ns = now_ns.saturating_sub(self.at_ns).max(1) as f64;
        (self.bytes, self.at_ns) = (bytes, now_ns);
        let rate = more / time_ns;
        (rate > RATE_MIN).then(|| Nanos((BYTES / rate) as u64).min(NAP_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fast_flows_have_naps_and_those_are_short() {
        let mut nap = Nap::new(1_000);
        assert_eq!(nap.after(1_000, 2_000), None);
        assert_eq!(nap.after(1_000, 2_000), None);
        assert_eq!(nap.after(4_000, 3_000), Some(NAP_MAX));
        let short = nap.after(4_000 + 40_000_000, 1_003_000).unwrap();
        assert!(short < NAP_MAX && short > Nanos::from_micros(5), "{short}");
    }
}
