//! Speed of the host, from the generator's processor time per operation.

use super::draft::{RowDraft, RowTest};
use crate::trial::report::TrialReport;
use crate::trial::statistics::Better;
use crate::words::percent;
use knee_load::stats::rounds::median;

/// Share within which speeds are equal.
const SAME_SHARE: f64 = 0.05;
/// Least use of the busiest worker. Below it the cost of sleeping and waking makes a slower target
/// look like a slower host.
const BUSY_MIN_PERCENT: f64 = 50.0;

/// Slowness of the host for B against A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HostSpeed {
    log_ratio: f64,
}

/// Ratio of the sides' processor times per operation; `None` if a side has none.
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

    /// A warning, if the speeds differ.
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

    /// The row, marked as unknown if the host's speed explains its whole difference.
    pub(super) fn explain(self, mut draft: RowDraft) -> RowDraft {
        let explained = |log_ratio: f64| match draft.subject.better {
            // A slower host serves less and takes longer.
            Better::More => log_ratio * self.log_ratio < 0.0,
            Better::Less => log_ratio * self.log_ratio > 0.0,
            Better::Neither => false,
        };
        let is_explained = draft.subject.row.unit != "percent"
            && draft.ratio.is_some_and(|d| {
                explained(d.log_ratio) && d.log_ratio.abs() - d.half <= self.log_ratio.abs()
            });
        if is_explained && self.differs() {
            draft.test = RowTest::Unknown(format!(
                "the speed of the host differs by {}, which explains the difference",
                self.size()
            ));
        }
        draft
    }
}
