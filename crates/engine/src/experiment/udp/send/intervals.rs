//! What all senders have sent in an interval, told once all have passed it.

/// Sums up the intervals of several senders.
pub(super) struct Intervals {
    /// The first interval that each sender has not passed yet.
    reached: Vec<u64>,
    sums: Vec<u64>,
    told: u64,
}

impl Intervals {
    /// For so many senders.
    pub(super) fn new(senders: usize) -> Intervals {
        Intervals {
            reached: vec![0; senders],
            sums: Vec::new(),
            told: 0,
        }
    }

    /// A sender has passed interval `index`, in which it sent so many; each comes in order.
    pub(super) fn passed(
        &mut self,
        sender: usize,
        index: u64,
        sent: u64,
        tell: &mut dyn FnMut(u64, u64),
    ) {
        let room = self.sums.len().max(index as usize + 1);
        self.sums.resize(room, 0);
        self.sums[index as usize] += sent;
        self.reached[sender] = index + 1;
        self.tell_passed(tell);
    }

    /// A sender has ended and passes no more.
    pub(super) fn ended(&mut self, sender: usize, tell: &mut dyn FnMut(u64, u64)) {
        self.reached[sender] = u64::MAX;
        self.tell_passed(tell);
    }

    /// All senders have ended: `by_interval` is what they sent, and what was not told yet is.
    pub(super) fn finish(self, by_interval: &[u64], tell: &mut dyn FnMut(u64, u64)) {
        for (index, &sent) in by_interval.iter().enumerate().skip(self.told as usize) {
            tell(index as u64, sent);
        }
    }

    fn tell_passed(&mut self, tell: &mut dyn FnMut(u64, u64)) {
        let all = self.reached.iter().copied().min().unwrap_or(0);
        // What senders that have ended sent in later intervals is known only at the end.
        let is_running = all < u64::MAX;
        while is_running && self.told < all {
            tell(
                self.told,
                self.sums.get(self.told as usize).copied().unwrap_or(0),
            );
            self.told += 1;
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
        let mut intervals = Intervals::new(2);
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
