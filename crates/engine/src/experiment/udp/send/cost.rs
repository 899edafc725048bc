//! Processor time that a send takes, as on a slower machine.

use knee_core::time::Nanos;

/// Makes up what a client's own work for a datagram lacks of the processor time that it is to take.
///
/// What counts is the time of the sender's thread: while others have the processor nothing is
/// spent, so that as many datagrams leave a shared processor as that machine could send. The work
/// itself counts too (sending, yielding, going to sleep and waking), or a machine on which these
/// are slow would take its own time on top.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendCost {
    each_ns: u64,
    /// The thread's processor time when the last datagrams were about to leave.
    since_ns: u64,
    /// What it took to hand them over.
    handed_over_ns: u64,
}

impl SendCost {
    /// So much for each datagram; zero: whatever it takes.
    pub(super) fn new(each: Nanos) -> SendCost {
        SendCost {
            each_ns: each.0,
            since_ns: 0,
            handed_over_ns: 0,
        }
    }

    /// Whether there is any to be made up.
    #[inline]
    pub(super) fn is_none(&self) -> bool {
        self.each_ns == 0
    }

    /// The thread begins to send, having used `cpu_ns`.
    pub(super) fn begin(&mut self, cpu_ns: u64) {
        self.since_ns = cpu_ns;
    }

    /// What the thread did until now, having used `cpu_ns`, was waiting and is no part of a send,
    /// apart from handing over the last datagrams.
    pub(super) fn leave_out_waiting(&mut self, cpu_ns: u64) {
        self.since_ns = cpu_ns.saturating_sub(self.handed_over_ns);
    }

    /// Uses the processor until `count` datagrams have taken their time since the last ones;
    /// `clock` is the processor time of the thread.
    pub(super) fn spend(
        &mut self,
        count: usize,
        mut clock: impl FnMut() -> u64,
        is_stopped: impl Fn() -> bool,
    ) {
        let total_ns = self.each_ns.saturating_mul(count as u64);
        let until_ns = self.since_ns.saturating_add(total_ns);
        loop {
            let now_ns = clock();
            if now_ns >= until_ns || is_stopped() {
                self.since_ns = now_ns;
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// They were handed over, the thread having used `cpu_ns`.
    pub(super) fn handed_over(&mut self, cpu_ns: u64) {
        self.handed_over_ns = cpu_ns.saturating_sub(self.since_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Spends on `count` datagrams with a clock that goes on by 1 ns at each look; returns for how
    /// long.
    fn spent(cost: &mut SendCost, cpu_ns: &Cell<u64>, count: usize) -> u64 {
        let before = cpu_ns.get();
        let clock = || {
            cpu_ns.set(cpu_ns.get() + 1);
            cpu_ns.get()
        };
        cost.spend(count, clock, || false);
        cpu_ns.get() - before
    }

    #[test]
    fn own_work_is_part_of_the_cost() {
        let cpu_ns = Cell::new(500);
        let mut cost = SendCost::new(Nanos(75));
        cost.begin(500);
        assert_eq!(spent(&mut cost, &cpu_ns, 1), 75);
        cpu_ns.set(cpu_ns.get() + 20);
        assert_eq!(
            spent(&mut cost, &cpu_ns, 1),
            55,
            "20 were used for the last"
        );
        assert_eq!(cpu_ns.get(), 500 + 2 * 75);
        cpu_ns.set(cpu_ns.get() + 80);
        assert_eq!(spent(&mut cost, &cpu_ns, 1), 1, "it takes longer by itself");
        assert_eq!(spent(&mut cost, &cpu_ns, 3), 225, "no debt is left of that");
    }

    #[test]
    fn waiting_for_a_moment_is_no_part_of_it() {
        let cpu_ns = Cell::new(0);
        let mut cost = SendCost::new(Nanos(75));
        cost.begin(0);
        spent(&mut cost, &cpu_ns, 1);
        cpu_ns.set(cpu_ns.get() + 20);
        cost.handed_over(cpu_ns.get());
        cpu_ns.set(cpu_ns.get() + 1_000);
        cost.leave_out_waiting(cpu_ns.get());
        assert_eq!(spent(&mut cost, &cpu_ns, 1), 55);
    }

    #[test]
    fn a_sender_that_stops_spends_no_more() {
        let mut cost = SendCost::new(Nanos(75));
        cost.spend(1, || 0, || true);
    }
}
