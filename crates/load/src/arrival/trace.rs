//! Recorded times.

use super::process::{ArrivalProcess, Process, ProcessKind, RunContext};
use crate::quantity::{ParseError, Rate, Share};
use crate::time::Nanos;
use std::sync::Arc;

/// Operation k is intended at the k-th recorded time; after the last one the schedule ends.
/// Worker i of W takes the k ≡ i (mod W).
#[derive(Clone, Debug)]
pub struct Trace {
    times: Arc<[Nanos]>,
    share: Share,
    k: usize,
}

impl Trace {
    /// One worker's share of ascending `times`.
    pub fn new(times: Arc<[Nanos]>, share: Share) -> Trace {
        Trace { times, share, k: share.index as usize }
    }
}

impl ArrivalProcess for Trace {
    fn next(&mut self) -> Option<Nanos> {
        let intended = self.times.get(self.k).copied();
        self.k = self.k.saturating_add(self.share.of as usize);
        intended
    }

    fn skip(&mut self, n: u64) {
        let n = usize::try_from(n).unwrap_or(usize::MAX);
        self.k = self.k.saturating_add(n.saturating_mul(self.share.of as usize));
    }

    /// Counted over the second around `t`.
    fn rate_at(&self, t: Nanos) -> f64 {
        let before = t - Nanos::from_millis(500);
        let after = t + Nanos::from_millis(500);
        let begin = self.times.partition_point(|&m| m < before);
        let end = self.times.partition_point(|&m| m < after);
        (end - begin) as f64 / (after - before).as_secs_f64() / f64::from(self.share.of)
    }
}

impl Process for Trace {
    type Law = Arc<[Nanos]>;
    const KIND: ProcessKind = ProcessKind {
        shape: "trace(FILE)",
        meaning: "trace(FILE)",
        carries_rate: true,
        has_file: true,
        asks_all_the_time: false,
        is_even: false,
        ..ProcessKind::plain(
            "trace",
            "trace(FILE): one time per line since the start of the run, in seconds or with a unit; \
             replaces --rate; up to 256 MiB.",
        )
    };

    /// The caller reads the file. A comma may be a part of its name.
    fn parse(_text: &str, arguments: &[&str]) -> Option<Result<Arc<[Nanos]>, ParseError>> {
        (!arguments.is_empty()).then(|| Ok(Arc::from([])))
    }

    fn set(times: &mut Arc<[Nanos]>, run: &RunContext) -> Result<(), &'static str> {
        *times = run.recorded.clone().ok_or("cannot be used here")?;
        Ok(())
    }

    fn text(_moments: &Arc<[Nanos]>, file: &str) -> String {
        format!("trace({file})")
    }

    fn begin(times: &Arc<[Nanos]>, _rate: Rate, share: Share, _seed: u64) -> Trace {
        Trace::new(Arc::clone(times), share)
    }

    fn own_rate(times: &Arc<[Nanos]>) -> Option<Rate> {
        Rate::new(times.len() as u64, length_of_trace(times))
    }

    fn operations(times: &Arc<[Nanos]>, _rate: Rate, [start, end]: [Nanos; 2]) -> f64 {
        let is_there = |t: &&Nanos| (start..end).contains(*t);
        times.iter().filter(is_there).count() as f64
    }
}

/// Length from the beginning of the run to one mean gap after the last time. The number of times
/// over this length is their rate.
pub fn length_of_trace(times: &[Nanos]) -> Nanos {
    let n = times.len() as u64;
    let last = times.last().copied().unwrap_or_default();
    let gap = Nanos(last.0 / n.saturating_sub(1).max(1));
    (last + gap).max(Nanos::from_millis(1))
}
