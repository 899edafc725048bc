//! Operations that have ended, until they are taken.

use knee_core::measure::Completion;

/// They come out in the order in which they ended, and are looked at where they lie: copying one
/// costs more than all that most of its readers do with it.
#[derive(Debug, Default)]
pub(super) struct Completions {
    all: Vec<Completion>,
    taken: usize,
}

impl Completions {
    #[inline]
    pub(super) fn push(&mut self, completion: Completion) {
        self.all.push(completion);
    }

    /// The next one; ask until there is none.
    #[inline]
    pub(super) fn take(&mut self) -> Option<&Completion> {
        if self.taken == self.all.len() {
            self.all.clear();
            self.taken = 0;
            return None;
        }
        self.taken += 1;
        self.all.get(self.taken - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_core::measure::{Op, Outcome};
    use knee_core::time::Nanos;

    #[test]
    fn the_first_that_ended_comes_first_also_when_more_end_meanwhile() {
        let mut completions = Completions::default();
        let at = |ns| {
            let op = Op {
                intended: Nanos(ns),
                lane: 0,
            };
            Completion::at_once(op, Nanos(ns), Outcome::Ok)
        };
        let mut seen = Vec::new();
        (1..=2).for_each(|ns| completions.push(at(ns)));
        while let Some(completion) = completions.take() {
            let ns = completion.completed.0;
            seen.push(ns);
            if ns == 1 {
                completions.push(at(3));
            }
        }
        assert_eq!(seen, [1, 2, 3]);
        completions.push(at(4));
        assert_eq!(completions.take().map(|c| c.completed), Some(Nanos(4)));
        assert_eq!(completions.take(), None);
    }
}
