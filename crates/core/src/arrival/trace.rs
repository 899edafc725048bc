//! Recorded moments.

use super::{ArrivalProcess, Process, Run};
use crate::quantity::{ParseError, Rate, Share};
use crate::time::Nanos;
use std::sync::Arc;

/// Operation k is intended at the k-th recorded moment; after the last one the schedule ends.
/// Worker i of W takes the k ≡ i (mod W).
#[derive(Clone, Debug)]
pub struct Trace {
    moments: Arc<[Nanos]>,
    share: Share,
    k: usize,
}

impl Trace {
    /// One worker's share of `moments`, which ascend.
    pub fn new(moments: Arc<[Nanos]>, share: Share) -> Trace {
        Trace {
            moments,
            share,
            k: share.index as usize,
        }
    }
}

impl ArrivalProcess for Trace {
    fn next(&mut self) -> Option<Nanos> {
        let moment = self.moments.get(self.k).copied();
        self.k = self.k.saturating_add(self.share.of as usize);
        moment
    }

    fn skip(&mut self, n: u64) {
        let n = usize::try_from(n).unwrap_or(usize::MAX);
        self.k = self
            .k
            .saturating_add(n.saturating_mul(self.share.of as usize));
    }

    /// Counted over the second around `t`.
    fn rate_at(&self, t: Nanos) -> f64 {
        let before = t - Nanos::from_millis(500);
        let after = t + Nanos::from_millis(500);
        let begin = self.moments.partition_point(|&m| m < before);
        let end = self.moments.partition_point(|&m| m < after);
        (end - begin) as f64 / (after - before).as_secs_f64() / f64::from(self.share.of)
    }
}

impl Process for Trace {
    type Law = Arc<[Nanos]>;
    const NAME: &'static str = "trace";
    const SHAPE: &'static str = "trace(FILE)";
    const HELP: &'static str = "trace(FILE): one time per line since the start of the run, in \
                                seconds or with a unit; replaces --rate; up to 256 MiB.";
    const CARRIES_RATE: bool = true;
    const HAS_FILE: bool = true;
    const ASKS_ALL_THE_TIME: bool = false;

    /// What the file holds is for the caller to read; a comma may be a part of its name.
    fn parse(_text: &str, arguments: &[&str]) -> Option<Result<Arc<[Nanos]>, ParseError>> {
        (!arguments.is_empty()).then(|| Ok(Arc::from([])))
    }

    fn set(moments: &mut Arc<[Nanos]>, run: &Run) -> Result<(), &'static str> {
        *moments = run.moments.clone().ok_or("cannot be used here")?;
        Ok(())
    }

    fn text(_moments: &Arc<[Nanos]>, file: &str) -> String {
        format!("trace({file})")
    }

    fn begin(moments: &Arc<[Nanos]>, _rate: Rate, share: Share, _seed: u64) -> Trace {
        Trace::new(Arc::clone(moments), share)
    }

    fn own_rate(moments: &Arc<[Nanos]>) -> Option<Rate> {
        Rate::new(moments.len() as u64, length_of_trace(moments))
    }

    fn operations(moments: &Arc<[Nanos]>, _rate: Rate, [start, end]: [Nanos; 2]) -> f64 {
        let is_there = |t: &&Nanos| (start..end).contains(*t);
        moments.iter().filter(is_there).count() as f64
    }
}

/// From the beginning of the run to one mean gap after the last moment, so that the number of
/// moments over it is their rate.
pub fn length_of_trace(moments: &[Nanos]) -> Nanos {
    let n = moments.len() as u64;
    let last = moments.last().copied().unwrap_or_default();
    let gap = Nanos(last.0 / n.saturating_sub(1).max(1));
    (last + gap).max(Nanos::from_millis(1))
}
