//! Times in which something is stalled.

use super::Stall;
use knee_load::time::Nanos;

/// Stalls in order, none touching another: begin and end of each.
#[derive(Debug)]
pub(super) struct StallSchedule(Vec<(Nanos, Nanos)>);

impl StallSchedule {
    pub(super) fn new(stalls: &[Stall]) -> StallSchedule {
        let mut spans: Vec<_> = stalls.iter().map(|s| (s.at, s.at + s.length)).collect();
        spans.sort_unstable();
        let mut joined: Vec<(Nanos, Nanos)> = Vec::new();
        for (begin, end) in spans {
            match joined.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((begin, end)),
            }
        }
        StallSchedule(joined)
    }

    /// `t`, or the end of the stall that it falls in.
    pub(super) fn after(&self, t: Nanos) -> Nanos {
        let next = self.0.partition_point(|&(_, end)| end <= t);
        match self.0.get(next) {
            Some(&(begin, end)) if begin <= t => end,
            _ => t,
        }
    }

    /// When work of this length that begins at `t` is done: stalls interrupt it.
    pub(super) fn work(&self, t: Nanos, length: Nanos) -> Nanos {
        let mut done = self.after(t) + length;
        let next = self.0.partition_point(|&(begin, _)| begin <= t);
        for &(begin, end) in &self.0[next..] {
            if done <= begin {
                break;
            }
            done += end - begin;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_interrupted_and_moments_are_put_off() {
        let stall = |at, length| Stall { at: Nanos(at), length: Nanos(length) };
        // 10 to 20 and 30 to 45; given out of order and overlapping.
        let stalls = StallSchedule::new(&[stall(30, 10), stall(10, 10), stall(35, 10)]);
        for (t, after) in [(9, 9), (10, 20), (19, 20), (20, 20), (44, 45), (50, 50)] {
            assert_eq!(stalls.after(Nanos(t)), Nanos(after), "{t}");
        }
        for (t, length, done, what) in [
            (0, 5, 5, "before any"),
            (0, 10, 10, "done just as it begins"),
            (0, 11, 21, "interrupted once"),
            (15, 5, 25, "begun in it"),
            (5, 20, 50, "interrupted twice"),
            (20, 10, 30, "between two"),
            (60, 5, 65, "after all"),
        ] {
            assert_eq!(stalls.work(Nanos(t), Nanos(length)), Nanos(done), "{what}");
        }
    }
}
