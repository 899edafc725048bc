//! Counts equal times that follow one another in one step.

use super::Histogram;
use crate::time::Nanos;

/// Records times in a histogram, equal times in a row in one step. Operations whose responses came
/// in one piece have equal times.
#[derive(Debug, Default)]
pub(super) struct RunLengthRecorder {
    /// What was counted before the present run; made when it is needed, unless it is there already.
    counted: Option<Histogram>,
    time: Nanos,
    count: u64,
}

impl RunLengthRecorder {
    /// With its memory, so that the first time does not have to wait for that.
    pub(super) fn ready() -> RunLengthRecorder {
        RunLengthRecorder { counted: Some(Histogram::default()), ..RunLengthRecorder::default() }
    }

    /// Counts one time.
    #[inline]
    pub(super) fn record(&mut self, t: Nanos) {
        if t != self.time {
            self.count_run();
            self.time = t;
        }
        self.count += 1;
    }

    #[inline]
    fn count_run(&mut self) {
        if self.count > 0 {
            let counted = self.counted.get_or_insert_default();
            counted.record_n(self.time, std::mem::take(&mut self.count));
        }
    }

    /// All that was counted; nothing is afterwards. `None`: nothing was.
    pub(super) fn take(&mut self) -> Option<Histogram> {
        self.count_run();
        self.counted.take().filter(|counted| !counted.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_counted_as_their_times(times in proptest::collection::vec(0_u64..3, 0..50)) {
            for mut runs in [RunLengthRecorder::default(), RunLengthRecorder::ready()] {
                let mut expected = Histogram::default();
                for &ns in &times {
                    runs.record(Nanos(ns));
                    expected.record(Nanos(ns));
                }
                prop_assert_eq!(runs.take(), (!times.is_empty()).then_some(expected));
                prop_assert_eq!(runs.take(), None);
            }
        }
    }
}
