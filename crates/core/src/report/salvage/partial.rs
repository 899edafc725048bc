//! A trial that did not end, as its intervals tell of it.

use crate::measure::Outcomes;
use crate::measure::{Histogram, Interval};
use crate::spec::Level;
use crate::trial::assess::times_report;
use crate::trial::detail::Detail;
use crate::trial::report::{GeneratorReport, OfferedReport, TimesReport, TrialReport, Verdict};
use std::collections::BTreeMap;

/// A trial that was running.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningTrial {
    /// Its name for people.
    pub label: String,
    /// What it varied.
    pub level: Level,
    /// How long it was to be measured, where that was known.
    pub planned_ns: Option<u64>,
    /// Operations asked for per second.
    pub asked_per_s: Option<f64>,
    /// Its intervals that had ended, in order.
    pub intervals: Vec<Interval>,
    /// Response times of all of them together.
    pub response: Histogram,
}

impl RunningTrial {
    /// How much of its measured window the intervals cover.
    pub fn kept_ns(&self) -> u64 {
        self.intervals.last().map_or(0, |i| i.end_ns)
    }

    /// All that its intervals tell. Sums and rates are over all of them, transient included, since
    /// what is cut off is judged by what comes later. How each operation ended is not known, so the
    /// outcomes are empty.
    pub(super) fn report(self) -> TrialReport {
        let kept_ns = self.kept_ns();
        let sum = |of: fn(&Interval) -> u64| self.intervals.iter().map(of).sum::<u64>();
        let sent = sum(|i| i.sent.unwrap_or(0));
        let attempted = sum(|i| i.attempted).max(sent);
        let completed = sum(|i| i.completed);
        let per_s = |n: u64| match kept_ns {
            0 => 0.0,
            ns => n as f64 * 1e9 / ns as f64,
        };
        TrialReport {
            label: self.label,
            level: self.level,
            duration_ns: kept_ns,
            attempted,
            completed,
            throughput_per_s: (completed > 0).then(|| per_s(completed)),
            throughput_ci95_per_s: None,
            throughput_range_per_s: None,
            goodput_per_s: (completed > 0).then(|| per_s(completed)),
            outcomes: Outcomes::default(),
            // Confidence would need the correlation of operations, which intervals do not tell.
            response_time_ns: times_report(&self.response, None),
            service_time_ns: TimesReport::default(),
            offered: OfferedReport {
                asked_per_s: self.asked_per_s,
                achieved_per_s: per_s(attempted),
                ..OfferedReport::default()
            },
            generator: GeneratorReport::default(),
            stationary: false,
            verdict: Verdict::Invalid,
            invalid_because: vec![NOT_JUDGED.to_owned()],
            invalid_clauses: Vec::new(),
            bytes_received: 0,
            detail: Detail::CutShort,
            intervals: self.intervals,
            kernel: BTreeMap::new(),
        }
    }
}

const NOT_JUDGED: &str = "cut short: whether the generator kept the load is not known";
