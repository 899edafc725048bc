//! Rows of the conclusions of experiments as a whole.

use super::difference::{FailureCount, RunSpread, ShareSample, difference, paired_difference};
use super::draft::{RowDraft, RowSubject, share_draft};
use super::estimate::LogEstimate;
use crate::experiment::latency::analysis::PATH_FIGURES;
use crate::experiment::latency::report::{LatencyConclusion, ScenarioRow};
use crate::experiment::overload::report::OverloadConclusion;
use crate::experiment::recover::report::RecoverConclusion;
use crate::experiment::sweep::report::{SweepConclusion, SweepLevel};
use crate::experiment::throttle::report::{RateRow, ThrottleConclusion, WaitRow};
use crate::report::{Conclusion, Report};
use crate::trial::statistics::Better;
use knee_load::stats::sample::mean;

/// Usual spread between runs of a figure fitted to many levels, as a standard deviation of the
/// logarithm.
const SPREAD_FITTED: f64 = 0.02;
/// Usual spread of a path's capacity.
const SPREAD_CAPACITY: f64 = 0.03;
/// Usual spread of a figure that rests on the single longest gap or latency.
const SPREAD_WORST: f64 = 0.15;
/// Usual spread of the overshoot of waits.
const SPREAD_WAITS: f64 = 0.1;
/// Reason why a figure of one experiment on each side is not judged.
const NO_SPREAD: &str = "nothing tells how far it varies: several reports on each side would";

/// Rows of the conclusions, if both sides are of the same kind.
pub(super) fn drafts(a: &[&Report], b: &[&Report]) -> Vec<RowDraft> {
    match (&a[0].conclusion, &b[0].conclusion) {
        (Conclusion::Sweep(_), Conclusion::Sweep(_)) => {
            let [a, b] = [a, b].map(|side| conclusions(side, sweep_conclusion));
            sweep(&a, &b)
        }
        (Conclusion::Overload(_), Conclusion::Overload(_)) => {
            let [a, b] = [a, b].map(|side| conclusions(side, overload_conclusion));
            vec![capacity(&a, &b)]
        }
        (Conclusion::Recover(_), Conclusion::Recover(_)) => recover(a, b),
        (Conclusion::Throttle(first), Conclusion::Throttle(second)) => throttle(first, second),
        (Conclusion::Latency(first), Conclusion::Latency(second)) => latency(first, second),
        _ => Vec::new(),
    }
}

/// The conclusions of a side that are of one kind.
fn conclusions<'a, C>(
    reports: &[&'a Report],
    conclusion: fn(&'a Conclusion) -> Option<&'a C>,
) -> Vec<&'a C> {
    reports.iter().filter_map(|r| conclusion(&r.conclusion)).collect()
}

fn sweep_conclusion(conclusion: &Conclusion) -> Option<&SweepConclusion> {
    match conclusion {
        Conclusion::Sweep(sweep) => Some(sweep),
        _ => None,
    }
}

fn overload_conclusion(conclusion: &Conclusion) -> Option<&OverloadConclusion> {
    match conclusion {
        Conclusion::Overload(overload) => Some(overload),
        _ => None,
    }
}

fn recover_conclusion(conclusion: &Conclusion) -> Option<&RecoverConclusion> {
    match conclusion {
        Conclusion::Recover(recover) => Some(recover),
        _ => None,
    }
}

/// A figure of each report of both sides.
fn figures(subject: RowSubject, a: &[LogEstimate], b: &[LogEstimate], spread: f64) -> RowDraft {
    let value = |side: &[LogEstimate]| {
        let logs: Vec<f64> = side.iter().map(|e| e.log).collect();
        (!logs.is_empty()).then(|| mean(&logs).exp())
    };
    let values = [value(a), value(b)];
    RowDraft::of(subject, values, difference(a, b, RunSpread::Usual(spread)), NO_SPREAD)
}

fn sweep(a: &[&SweepConclusion], b: &[&SweepConclusion]) -> Vec<RowDraft> {
    let most = |sweep: &&SweepConclusion| {
        let levels = sweep.levels.iter().filter(|l| l.excluded_because.is_none());
        let top = levels.max_by(|x, y| x.throughput_per_s.total_cmp(&y.throughput_per_s))?;
        // With the interval of its level.
        let at_top = LogEstimate::with_ci95(top.throughput_per_s, top.throughput_ci95_per_s)?;
        Some(LogEstimate { log: LogEstimate::bare(sweep.max_throughput_per_s)?.log, ..at_top })
    };
    let knee =
        |sweep: &&SweepConclusion| LogEstimate::with_ci95(sweep.knee_vusers?, sweep.knee_ci95);
    let estimates = |side: &[&SweepConclusion],
                     estimate: fn(&&SweepConclusion) -> Option<LogEstimate>| {
        side.iter().filter_map(estimate).collect::<Vec<_>>()
    };
    let max = RowSubject::new("max_throughput_per_s", "per_s", Better::More);
    let mut drafts = vec![figures(max, &estimates(a, most), &estimates(b, most), SPREAD_FITTED)];
    let (knee_a, knee_b) = (estimates(a, knee), estimates(b, knee));
    if !knee_a.is_empty() && !knee_b.is_empty() {
        let knee = RowSubject::new("knee_vusers", "users", Better::Neither);
        drafts.push(figures(knee, &knee_a, &knee_b, SPREAD_FITTED));
    }
    drafts
}

/// Rows of two tables without intervals, compared level by level.
pub(super) fn table(a: &SweepConclusion, b: &SweepConclusion) -> Vec<RowDraft> {
    let pair = |figure: fn(&SweepLevel) -> Option<f64>| -> Vec<(f64, f64)> {
        let other = |level| b.levels.iter().find(|l| l.level == level).and_then(figure);
        a.levels.iter().filter_map(|l| figure(l).zip(other(l.level))).collect()
    };
    let throughput = RowSubject::new("throughput_per_s", "per_s", Better::More);
    let p90 = RowSubject::new("p90_ns", "ns", Better::Less);
    let pairs_p90 = pair(|l| l.p90_ns.map(|ns| ns as f64));
    let pairs_throughput = pair(|l| Some(l.throughput_per_s));
    let mut drafts = Vec::new();
    for (subject, pairs) in [(throughput, pairs_throughput), (p90, pairs_p90)] {
        drafts.extend(paired(subject, &pairs, SPREAD_FITTED));
    }
    drafts
}

/// A row of figures that exist once for each of many scenarios, with their geometric means.
fn paired(subject: RowSubject, pairs: &[(f64, f64)], spread: f64) -> Option<RowDraft> {
    let shown: Vec<&(f64, f64)> = pairs.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0).collect();
    let value = |side: fn(&(f64, f64)) -> f64| {
        let logs: Vec<f64> = shown.iter().map(|pair| side(pair).ln()).collect();
        (!logs.is_empty()).then(|| mean(&logs).exp())
    };
    let values = [value(|p| p.0), value(|p| p.1)];
    let few = "fewer than three figures to compare pair by pair";
    (!pairs.is_empty())
        .then(|| RowDraft::of(subject, values, paired_difference(pairs, spread), few))
}

fn capacity(a: &[&OverloadConclusion], b: &[&OverloadConclusion]) -> RowDraft {
    let estimate = |c: &&OverloadConclusion| {
        let widest = c
            .sclients
            .iter()
            .filter(|level| level.past_saturation)
            .filter_map(|level| {
                LogEstimate::with_ci95(level.row.served_per_s, level.row.served_ci95_per_s)
            })
            .max_by(|x, y| x.variance.unwrap_or(0.0).total_cmp(&y.variance.unwrap_or(0.0)));
        let bare = LogEstimate::bare(c.capacity_per_s)?;
        Some(widest.map_or(bare, |e| LogEstimate { log: bare.log, ..e }))
    };
    let estimates = |side: &[&OverloadConclusion]| -> Vec<LogEstimate> {
        side.iter().filter_map(estimate).collect()
    };
    let capacity = RowSubject::new("capacity_per_s", "per_s", Better::More);
    figures(capacity, &estimates(a), &estimates(b), SPREAD_FITTED)
}

/// What is not served at the end, and the time until the service was back where it was.
fn recover(a: &[&Report], b: &[&Report]) -> Vec<RowDraft> {
    let sample = |side: &[&Report]| {
        let counts_by_run: Vec<Vec<FailureCount>> = side.iter().map(|r| unserved(r)).collect();
        let runs = counts_by_run.iter().map(|counts| FailureCount::sum(counts.iter().copied()));
        ShareSample { runs: runs.collect(), intervals: counts_by_run.concat() }
    };
    let unserved = RowSubject::new("unserved_at_the_end_percent", "percent", Better::Less);
    let recovery = RowSubject::new("recovery_ns", "ns", Better::Less);
    let times = |side: &[&Report]| -> Vec<LogEstimate> {
        conclusions(side, recover_conclusion)
            .into_iter()
            .filter_map(|c| LogEstimate::bare(c.recovery_ns?.max(1) as f64))
            .collect()
    };
    let (times_a, times_b) = (times(a), times(b));
    let mut rows: Vec<RowDraft> =
        share_draft(unserved, &sample(a), &sample(b), NO_SPREAD.to_owned()).into_iter().collect();
    if !times_a.is_empty() && !times_b.is_empty() {
        rows.push(figures(recovery, &times_a, &times_b, SPREAD_WORST));
    }
    rows
}

/// Requests that were not served, in the intervals of the last quarter of the time after a trigger.
fn unserved(report: &Report) -> Vec<FailureCount> {
    let Some((c, requests)) = recover_conclusion(&report.conclusion)
        .and_then(|c| Some((c, report.trials.get(c.decisive_trial)?.requests()?)))
    else {
        return Vec::new();
    };
    let counts: Vec<FailureCount> = requests
        .intervals
        .iter()
        .filter(|i| i.start_ns >= c.after_ns)
        .map(|i| FailureCount { hits: i.offered.saturating_sub(i.good), all: i.offered })
        .collect();
    counts[counts.len() - counts.len().div_ceil(4)..].to_vec()
}

fn latency(a: &LatencyConclusion, b: &LatencyConclusion) -> Vec<RowDraft> {
    let pair = |figure: fn(&ScenarioRow) -> Option<f64>| -> Vec<(f64, f64)> {
        let same = |x: &&ScenarioRow, y: &ScenarioRow| {
            (x.up, x.down, &x.congestion_control) == (y.up, y.down, &y.congestion_control)
        };
        let other = |row| b.scenarios.iter().find(|x| same(x, row)).and_then(figure);
        a.scenarios.iter().filter_map(|row| figure(row).zip(other(row))).collect()
    };
    let figures = [
        ("upload_kib_per_s", "kib_per_s", SPREAD_CAPACITY),
        ("download_kib_per_s", "kib_per_s", SPREAD_CAPACITY),
        ("responsiveness_hz", "hz", SPREAD_WORST),
        ("smoothness_hz", "hz", SPREAD_WORST),
    ];
    let rows =
        figures.into_iter().zip(&PATH_FIGURES).filter_map(|((metric, unit, spread), figure)| {
            paired(RowSubject::new(metric, unit, Better::More), &pair(figure.of_row), spread)
        });
    rows.collect()
}

fn throttle(a: &ThrottleConclusion, b: &ThrottleConclusion) -> Vec<RowDraft> {
    let mut methods: Vec<&str> = Vec::new();
    for row in &a.table {
        if !methods.contains(&row.method.as_str()) {
            methods.push(&row.method);
        }
    }
    let waits = |method: &str| {
        let pairs: Vec<(f64, f64)> = a
            .table
            .iter()
            .filter(|row| row.method == method)
            .filter_map(|x| {
                let same =
                    |y: &&WaitRow| (&y.method, &y.op, y.delay_ns) == (&x.method, &x.op, x.delay_ns);
                let other = b.table.iter().find(same)?;
                Some((x.overshoot_p50_ns as f64, other.overshoot_p50_ns as f64))
            })
            .collect();
        let mut subject = RowSubject::new("overshoot_p50_ns", "ns", Better::Less);
        method.clone_into(&mut subject.row.label);
        paired(subject, &pairs, SPREAD_WAITS)
    };
    methods.into_iter().filter_map(waits).chain(rates(a, b)).collect()
}

/// How well each way holds a rate.
fn rates(a: &ThrottleConclusion, b: &ThrottleConclusion) -> Vec<RowDraft> {
    let row = |x: &RateRow| {
        let y = b.rates.iter().find(|y| y.method == x.method && y.asked_per_s == x.asked_per_s)?;
        let sure = |row: &RateRow| {
            Some(LogEstimate {
                variance: Some(row.gap_cv.powi(2) / row.operations.max(1) as f64),
                degrees: row.operations.max(1) as f64,
                ..LogEstimate::bare(row.achieved_per_s?)?
            })
        };
        let mut subject = RowSubject::new("achieved_per_s", "per_s", Better::More);
        x.method.clone_into(&mut subject.row.label);
        Some(figures(subject, &[sure(x)?], &[sure(y)?], SPREAD_WAITS))
    };
    a.rates.iter().filter_map(row).collect()
}
