//! The times of operations in histograms, while they are recorded. Equal times in a row are counted
//! in one step.

use super::{Completion, Histogram, Measurement, Stage, Stages};
use crate::time::Nanos;

/// Records response time, service time and stages of each operation, most of them once. Of nearly
/// all operations two or all three of these times are equal, and each histogram costs the hot loop
/// a line of the cache. [`TimesRecorder::finish`] counts everything where it belongs.
#[derive(Debug)]
pub(super) struct TimesRecorder {
    /// Operations whose response time is their service time, all of it the wait for the first byte.
    whole: RunLengthRecorder,
    /// Operations whose service time is the wait for the first byte.
    served: RunLengthRecorder,
    response: RunLengthRecorder,
    undelayed: RunLengthRecorder,
    /// Response time and undelayed time of operations without success, once more.
    failed: [RunLengthRecorder; 2],
    service: RunLengthRecorder,
    /// Service time and the least of it, of operations that others may have held up. Not in
    /// `service`.
    held_up: [RunLengthRecorder; 2],
    stages: [RunLengthRecorder; Stage::COUNT],
    /// Operations whose stages count.
    staged: u64,
    pick_up: RunLengthRecorder,
    /// Whether the next two are recorded.
    open_loop: bool,
    pacing_error: RunLengthRecorder,
    connection_wait: RunLengthRecorder,
}

impl TimesRecorder {
    pub(super) fn new(open_loop: bool) -> TimesRecorder {
        TimesRecorder {
            whole: RunLengthRecorder::ready(),
            served: RunLengthRecorder::ready(),
            response: RunLengthRecorder::ready(),
            undelayed: RunLengthRecorder::ready(),
            failed: std::array::from_fn(|_| RunLengthRecorder::ready()),
            service: RunLengthRecorder::ready(),
            held_up: std::array::from_fn(|_| RunLengthRecorder::ready()),
            stages: std::array::from_fn(|_| RunLengthRecorder::ready()),
            staged: 0,
            pick_up: RunLengthRecorder::ready(),
            open_loop,
            pacing_error: RunLengthRecorder::ready(),
            connection_wait: RunLengthRecorder::ready(),
        }
    }

    /// Counts one operation, whose stages are these; its service time too where it was sent.
    /// `added` is what late starts of others may have added to its time at the target.
    #[inline]
    pub(super) fn count(
        &mut self,
        completion: &Completion,
        stages: &Stages,
        was_sent: bool,
        added: Nanos,
    ) {
        let (response, service) = (completion.response_time(), completion.service_time());
        let first_byte = stages[Stage::FirstByte as usize];
        let is_staged = completion.outcome.is_response();
        if self.open_loop {
            self.pacing_error.record(completion.pacing_error());
            self.connection_wait.record(completion.connection_wait());
        }
        if is_staged {
            self.staged += 1;
            self.pick_up.record(completion.pick_up());
        }
        let own = completion.pacing_error() + added;
        if !completion.outcome.is_good() {
            let [failed, undelayed] = &mut self.failed;
            failed.record(response);
            undelayed.record(response - own);
        }
        let is_held_up = added > Nanos::ZERO;
        let is_served = is_staged && was_sent && service == first_byte && !is_held_up;
        if is_served && response == service && own == Nanos::ZERO {
            // All other stages took no time, as they sum to the response time.
            return self.whole.record(response);
        }
        self.response.record(response);
        self.undelayed.record(response - own);
        if is_served {
            self.served.record(service);
        } else if was_sent && is_held_up {
            let [held_up, least] = &mut self.held_up;
            held_up.record(service);
            least.record(service - added);
        } else if was_sent {
            self.service.record(service);
        }
        if !is_staged {
            return;
        }
        for (index, (times, &stage)) in self.stages.iter_mut().zip(stages).enumerate() {
            let is_counted = is_served && index == Stage::FirstByte as usize;
            if stage > Nanos::ZERO && !is_counted {
                times.record(stage);
            }
        }
    }

    /// Hands what was recorded over.
    pub(super) fn finish(self, to: &mut Measurement) {
        let take = |mut runs: RunLengthRecorder| runs.take();
        let (whole, served) = (take(self.whole), take(self.served));
        to.response = take(self.response);
        to.undelayed = take(self.undelayed);
        [to.failed, to.failed_undelayed] = self.failed.map(take);
        to.service = take(self.service);
        [to.held_up, to.held_up_least] = self.held_up.map(take);
        to.service.merge(&to.held_up);
        to.pick_up = take(self.pick_up);
        to.pacing_error = take(self.pacing_error);
        to.connection_wait = take(self.connection_wait);
        to.stages = self.stages.map(take).into();
        to.response.merge(&whole);
        to.undelayed.merge(&whole);
        for of_both in [&mut to.service, &mut to.stages[Stage::FirstByte as usize]] {
            of_both.merge(&served);
            of_both.merge(&whole);
        }
        for times in &mut to.stages {
            // Those that took no time, which is most of most stages.
            times.record_n(Nanos::ZERO, self.staged - times.count());
        }
    }
}

/// Records times in a histogram, equal times in a row in one step. Operations whose responses came
/// in one piece have equal times.
#[derive(Debug, Default)]
pub(super) struct RunLengthRecorder {
    /// What was counted before the present run.
    counted: Histogram,
    time: Nanos,
    count: u64,
}

impl RunLengthRecorder {
    /// With its memory, so that the first time does not have to wait for that.
    pub(super) fn ready() -> RunLengthRecorder {
        RunLengthRecorder { counted: Histogram::ready(), ..RunLengthRecorder::default() }
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
            self.counted.record_n(self.time, std::mem::take(&mut self.count));
        }
    }

    /// All that was counted; nothing is afterwards. Takes no memory where nothing was counted.
    pub(super) fn take(&mut self) -> Histogram {
        self.count_run();
        let counted = std::mem::take(&mut self.counted);
        if counted.is_empty() { Histogram::default() } else { counted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Histogram, Op, Outcome};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_time_is_counted_where_it_belongs(
            operations in proptest::collection::vec(
                (0_u64..3, 0_u64..3, 0_u64..1_000, 0_u64..2, 0_usize..3, any::<bool>(), 0_u64..3),
                0..40,
            ),
            open_loop in any::<bool>(),
        ) {
            let mut recorder = TimesRecorder::new(open_loop);
            let mut expected = Measurement {
                stages: vec![Histogram::default(); Stage::COUNT],
                ..Measurement::default()
            };
            for (late, waited, first_byte, receive, outcome, was_sent, added) in operations {
                let started = Nanos(100 + late);
                let sent = started + Nanos(waited);
                let first = sent + Nanos(first_byte);
                let outcome = [Outcome::Ok, Outcome::HTTP_5XX, Outcome::Timeout][outcome];
                let op = Op { intended: Nanos(100), lane: 0 };
                let completion = Completion {
                    first_byte: first,
                    ..Completion::at_once(op, first + Nanos(receive), outcome)
                };
                let completion = completion.exchanged(started, sent);
                let stages = completion.stages();
                let (added, own) = (Nanos(added), Nanos(late + added));
                recorder.count(&completion, &stages, was_sent, added);
                if outcome != Outcome::Ok {
                    expected.failed.record(completion.response_time());
                    expected.failed_undelayed.record(completion.response_time() - own);
                }
                if was_sent && added > Nanos::ZERO {
                    expected.held_up.record(completion.service_time());
                    expected.held_up_least.record(completion.service_time() - added);
                }
                expected.response.record(completion.response_time());
                expected.undelayed.record(completion.response_time() - own);
                if was_sent {
                    expected.service.record(completion.service_time());
                }
                if open_loop {
                    expected.pacing_error.record(completion.pacing_error());
                    expected.connection_wait.record(completion.connection_wait());
                }
                if outcome.is_response() {
                    expected.pick_up.record(completion.pick_up());
                    let pairs = expected.stages.iter_mut().zip(stages);
                    pairs.for_each(|(times, stage)| times.record(stage));
                }
            }
            let mut told = Measurement::default();
            recorder.finish(&mut told);
            prop_assert_eq!(told.response, expected.response);
            prop_assert_eq!(told.undelayed, expected.undelayed);
            prop_assert_eq!(told.failed, expected.failed);
            prop_assert_eq!(told.failed_undelayed, expected.failed_undelayed);
            prop_assert_eq!(told.held_up, expected.held_up);
            prop_assert_eq!(told.held_up_least, expected.held_up_least);
            prop_assert_eq!(told.service, expected.service);
            prop_assert_eq!(told.stages, expected.stages);
            prop_assert_eq!(told.pick_up, expected.pick_up);
            prop_assert_eq!(told.pacing_error, expected.pacing_error);
            prop_assert_eq!(told.connection_wait, expected.connection_wait);
        }
    }

    proptest! {
        #[test]
        fn runs_are_counted_as_their_times(times in proptest::collection::vec(0_u64..3, 0..50)) {
            for mut runs in [RunLengthRecorder::default(), RunLengthRecorder::ready()] {
                let mut expected = Histogram::default();
                for &ns in &times {
                    runs.record(Nanos(ns));
                    expected.record(Nanos(ns));
                }
                prop_assert_eq!(runs.take(), expected);
                prop_assert!(runs.take().is_empty());
            }
        }
    }
}
