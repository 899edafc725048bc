//! Speed of the host, from the generator's processor time per operation.

use super::draft::{RowDraft, RowTest};
use super::levels::{MatchedLevel, matched};
use super::warnings::{differences, unlike_generators};
use crate::experiment::sweep::findings::host_speed_differs;
use crate::experiment::sweep::report::EarlierHostSpeed;
use crate::finding::gravest_first;
use crate::report::{Conclusion, Report};
use crate::trial::report::TrialReport;
use crate::trial::statistics::Better;
use crate::words::percent;
use knee_load::stats::rounds::median;

/// Share within which speeds are equal.
const SAME_SHARE: f64 = 0.05;
/// Least use of the busiest worker. Below it the cost of sleeping and waking makes a slower target
/// look like a slower host.
const BUSY_MIN_PERCENT: f64 = 50.0;

/// Largest difference in wake-ups per operation. A target that answers later wakes the generator
/// for fewer responses at a time, which costs processor time as a slower host does.
const WAKEUPS_DIFFER: f64 = 0.05;

/// Whether the speed of the host can be compared with that in earlier reports. That needs a sweep
/// by one machine with a busy generator.
pub fn has_host_speed(report: &Report) -> bool {
    let is_sweep = matches!(report.conclusion, Conclusion::Sweep(_));
    is_sweep && !report.spec.contains_key("agents") && Costs::of(report.trials.iter()).is_some()
}

/// States the speed of the host in a sweep against earlier reports of the same sweep on this host.
pub fn state_host_speed(report: &mut Report, earlier: &[Report]) {
    let speed = |earlier: &Report| {
        let is_alike = report.command == earlier.command
            && unlike_generators(report, earlier).is_empty()
            && differences(report, earlier).is_empty();
        let (levels, _) = matched(&[report], &[earlier]);
        let speed = host_speed(levels.iter().filter(|_| is_alike).map(MatchedLevel::trials));
        // The earlier report is B: the slower it was, the faster this one is.
        speed.map(|speed| -speed.log_ratio)
    };
    let speeds: Vec<f64> = earlier.iter().filter_map(speed).collect();
    let Conclusion::Sweep(sweep) = &mut report.conclusion else { return };
    if speeds.is_empty() {
        return;
    }
    let usual = median(speeds.iter().copied());
    let ends = [f64::min, f64::max].map(|end| speeds.iter().copied().reduce(end));
    let speed = EarlierHostSpeed {
        runs: speeds.len() as u32,
        speed: (-usual).exp(),
        earlier: ends.map(|end| (end.unwrap_or(usual) - usual).exp()),
    };
    sweep.earlier_host_speed = Some(speed);
    report.findings.extend(host_speed_differs(&speed));
    gravest_first(&mut report.findings);
}

/// Slowness of the host for B against A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HostSpeed {
    log_ratio: f64,
}

/// Ratio of the processor times per operation at the same load: the median over pairs of trials of
/// A and of B. `None` if no pair has them, or if they differ for another reason than the host.
pub(super) fn host_speed<'a, A, B>(pairs: impl Iterator<Item = (A, B)>) -> Option<HostSpeed>
where
    A: Iterator<Item = &'a TrialReport>,
    B: Iterator<Item = &'a TrialReport>,
{
    let ratio = |(a, b): (A, B)| {
        let (a, b) = (Costs::of(a)?, Costs::of(b)?);
        let wakeups = a.wakeups.zip(b.wakeups).map_or(0.0, |(a, b)| (b - a).abs());
        (wakeups <= WAKEUPS_DIFFER).then_some(b.log_us - a.log_us)
    };
    let ratios: Vec<f64> = pairs.filter_map(ratio).collect();
    (!ratios.is_empty()).then(|| HostSpeed { log_ratio: median(ratios.into_iter()) })
}

/// Cost of an operation to the generator: medians over trials.
struct Costs {
    /// Logarithm of the processor time.
    log_us: f64,
    /// Wake-ups, where known.
    wakeups: Option<f64>,
}

impl Costs {
    fn of<'a>(trials: impl Iterator<Item = &'a TrialReport>) -> Option<Costs> {
        let busy = trials.filter(|t| t.generator.busiest_worker_percent >= BUSY_MIN_PERCENT);
        let (mut logs, mut wakeups) = (Vec::new(), Vec::new());
        for trial in busy {
            logs.extend(trial.generator.cpu_us_per_op().map(f64::ln));
            let woken = trial.generator.woken_by_target_per_s;
            wakeups.extend(woken.map(|n| n / trial.responses_per_s().max(f64::MIN_POSITIVE)));
        }
        let middle = |values: Vec<f64>| (!values.is_empty()).then(|| median(values.into_iter()));
        Some(Costs { log_us: middle(logs)?, wakeups: middle(wakeups) })
    }
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
