//! The speed of the host as evidence: the generator's own processor time per operation, where it
//! did nothing but work.

use super::draft::{Draft, Test};
use crate::stats::rounds::median;
use crate::trial::report::TrialReport;
use crate::trial::statistics::Better;
use crate::words::percent;

/// Speeds nearer than this, as a share, are the same.
const SAME_SHARE: f64 = 0.05;
/// A generator that is less busy sleeps and wakes for operations, which costs time of its own: a
/// slower target then looks like a slower host.
const BUSY_MIN_PERCENT: f64 = 50.0;

/// By which factor the host was slower for B, as a natural logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HostSpeed {
    log_ratio: f64,
}

/// The ratio of the two sides' processor time per operation; `None` where a side does not tell.
pub(super) fn host_speed<'a>(
    a: impl Iterator<Item = &'a TrialReport>,
    b: impl Iterator<Item = &'a TrialReport>,
) -> Option<HostSpeed> {
    let log_ratio = log_cost(b)? - log_cost(a)?;
    Some(HostSpeed { log_ratio })
}

fn log_cost<'a>(trials: impl Iterator<Item = &'a TrialReport>) -> Option<f64> {
    let logs: Vec<f64> = trials
        .filter(|t| t.generator.busiest_worker_percent >= BUSY_MIN_PERCENT)
        .filter_map(|t| t.generator.cpu_us_per_op())
        .map(f64::ln)
        .collect();
    (!logs.is_empty()).then(|| median(logs.into_iter()))
}

impl HostSpeed {
    fn differs(self) -> bool {
        self.log_ratio.abs() > SAME_SHARE.ln_1p()
    }

    fn size(self) -> String {
        percent(100.0 * self.log_ratio.abs().exp_m1())
    }

    /// What may be the host's of a difference, in words, where the speeds differ.
    pub(super) fn warning(self) -> Option<String> {
        let slower = if self.log_ratio > 0.0 { "B" } else { "A" };
        self.differs().then(|| {
            format!(
                "an operation cost the generator {} more processor time for {slower}, so the host \
                 was slower then: that may account for as much of a difference in throughput and \
                 response times",
                self.size()
            )
        })
    }

    /// The row, not tested where the host's speed explains its whole difference.
    pub(super) fn explain(self, mut draft: Draft) -> Draft {
        let explained = |log_ratio: f64| match draft.subject.better {
            // A slower host serves less and takes longer.
            Better::More => log_ratio * self.log_ratio < 0.0,
            Better::Less => log_ratio * self.log_ratio > 0.0,
            Better::Neither => false,
        };
        let is_explained = draft.subject.unit != "percent"
            && draft.ratio.is_some_and(|d| {
                explained(d.log_ratio) && d.log_ratio.abs() - d.half <= self.log_ratio.abs()
            });
        if is_explained && self.differs() {
            draft.test = Test::Unknown(format!(
                "the speed of the host differs by {}, which explains the difference",
                self.size()
            ));
        }
        draft
    }
}
