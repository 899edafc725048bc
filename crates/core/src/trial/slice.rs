//! Short trials of one load that become one trial: the slices of a level of a sweep.

use crate::trial::silence::{Silence, SilenceRecord, silences};
use knee_load::measure::Trial;
use knee_load::time::Nanos;
use std::sync::Arc;

/// A trial as a slice of an experiment in rounds. All times are of the experiment, in nanoseconds,
/// by the clock at which they happened: its load begins, its window begins after a warm-up, and its
/// end is that of the last operation, after the window.
///
/// `silences` are over all of that, judged by this slice alone. A slice is short, and its gaps are
/// few: [`Slice::silences_of_levels`] judges those of a level together. A silence that begins in
/// one slice and lasts into the next is two: [`crate::trial::silence::joined`] makes one of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slice {
    /// Begin of the load.
    pub load_begin_ns: u64,
    /// Begin of the measured window.
    pub begin_ns: u64,
    /// End of the last operation.
    pub end_ns: u64,
    /// Times in which work waited and nothing completed, in order.
    pub silences: Vec<Silence>,
    /// The input for finding silences.
    record: Arc<SilenceRecord>,
    /// The trial itself, as JSON: a histogram needs 270 KB, and this a hundredth of it.
    raw: Option<Arc<[u8]>>,
}

impl Slice {
    /// The slice of a trial that began at this time of the experiment.
    pub fn of(trial: &Trial, began: Nanos) -> Slice {
        let measured = &trial.measurement;
        let slice = Slice {
            load_begin_ns: began.0,
            begin_ns: (began + measured.window.start).0,
            end_ns: (began + measured.window.end.max(measured.timeline.end)).0,
            silences: Vec::new(),
            record: Arc::new(SilenceRecord::of(trial)),
            raw: serde_json::to_vec(trial).ok().map(Arc::from),
        };
        let silences = Slice::silences_of_levels(&[vec![&slice]]);
        Slice { silences: silences.into_iter().flatten().flatten().collect(), ..slice }
    }

    /// The silences of slices of several levels, by level and slice. Those of one level are judged
    /// by the gaps and response times of all of them.
    pub fn silences_of_levels(levels: &[Vec<&Slice>]) -> Vec<Vec<Vec<Silence>>> {
        let records: Vec<Vec<&SilenceRecord>> =
            levels.iter().map(|level| level.iter().map(|slice| &*slice.record).collect()).collect();
        let mut by_level = silences(&records);
        for (slice, silences) in levels.iter().flatten().zip(by_level.iter_mut().flatten()) {
            for silence in silences {
                silence.begin_ns += slice.load_begin_ns;
                silence.end_ns += slice.load_begin_ns;
            }
        }
        by_level
    }

    /// Delays of the generator's workers.
    pub(crate) fn stalls(&self) -> impl Iterator<Item = [u64; 2]> + '_ {
        self.record.stalls().map(|stall| stall.map(|at| at.0 + self.load_begin_ns))
    }

    /// Good responses in the window of this length outside of these silences, and the length of
    /// that in nanoseconds. The response that ends a silence waited in it, so that the silence is
    /// counted with the bin of its end. `None` without a timeline.
    pub(crate) fn between(&self, length_ns: u64, silences: &[[u64; 2]]) -> Option<(f64, f64)> {
        let bin_ns = self.record.bin().0;
        let mut from = self.begin_ns - self.load_begin_ns;
        let end = from + length_ns;
        let (mut good, mut free_ns) = (0, 0);
        let mut add = |until: u64, next: u64| {
            let until = until.clamp(from, end);
            good += self.record.good_between([from, until]);
            free_ns += until - from;
            from = next.clamp(until, end);
        };
        for silence in silences {
            let [begin, end] = silence.map(|ns| ns.saturating_sub(self.load_begin_ns));
            add(begin, end + bin_ns);
        }
        add(end, end);
        (bin_ns > 0).then_some((good as f64, free_ns as f64))
    }

    /// A slice without a warm-up that began at this time, in s, with this silence within it.
    #[cfg(test)]
    pub fn at(begin_s: f64, silence_s: Option<[f64; 2]>) -> Slice {
        let ns = |s: f64| (s * 1e9) as u64;
        let begin_ns = ns(begin_s);
        let silence = silence_s.map(|s| s.map(|s| begin_ns + ns(s))).map(|[begin_ns, end_ns]| {
            Silence { begin_ns, end_ns, shows: true, ..Silence::default() }
        });
        Slice {
            load_begin_ns: begin_ns,
            begin_ns,
            silences: silence.into_iter().collect(),
            ..Slice::default()
        }
    }

    /// The trial itself; `None` in tests.
    pub(super) fn trial(&self) -> Option<Trial> {
        serde_json::from_slice(self.raw.as_deref()?).ok()
    }
}
