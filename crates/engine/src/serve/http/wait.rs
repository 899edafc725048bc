//! How early to wake up so as not to be late.

use knee_core::time::Nanos;

/// How long before a deadline a sleep should end, learnt from how late sleeps ended so far. The
/// rest is polled through.
///
/// A decaying maximum: it jumps to the longest overshoot seen and forgets half of it over some 140
/// sleeps, so about one sleep in a hundred is later than the margin.
#[derive(Debug)]
pub(super) struct Margin {
    margin_ns: f64,
}

impl Margin {
    /// Polling longer than this would cost more processor time than punctuality is worth; a sleep
    /// that overshoots it by far was preempted, which no margin helps against.
    const LONGEST_NS: f64 = 100_000.0;
    const SHORTEST_NS: f64 = 5_000.0;
    const DECAY: f64 = 0.995;

    pub(super) fn new() -> Margin {
        Margin {
            margin_ns: 50_000.0,
        }
    }

    /// A sleep ended `late` after it should have.
    pub(super) fn learn(&mut self, late: Nanos) {
        let kept = (self.margin_ns * Margin::DECAY).max(late.0 as f64);
        self.margin_ns = kept.clamp(Margin::SHORTEST_NS, Margin::LONGEST_NS);
    }

    /// How long to sleep where the deadline is `remaining` away; zero: poll.
    pub(super) fn sleep(&self, remaining: Nanos) -> Nanos {
        remaining - Nanos(self.margin_ns as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_follows_how_late_sleeps_end() {
        let mut margin = Margin::new();
        let remaining = Nanos::from_millis(1);
        let margin_us = |m: &Margin| (remaining - m.sleep(remaining)).0 / 1000;
        for _ in 0..2_000 {
            margin.learn(Nanos::from_micros(8));
        }
        assert_eq!(margin_us(&margin), 8);
        margin.learn(Nanos::from_micros(60));
        assert_eq!(margin_us(&margin), 60);
        margin.learn(Nanos::from_millis(30));
        assert_eq!(margin_us(&margin), 100);
        for _ in 0..5_000 {
            margin.learn(Nanos::ZERO);
        }
        assert_eq!(margin_us(&margin), 5);
        assert_eq!(margin.sleep(Nanos(10)), Nanos::ZERO);
    }
}
