//! What the conclusions of experiments say as a whole.

use super::difference::{Between, difference, of_pairs};
use super::draft::{Draft, Of, Subject};
use super::estimate::Estimate;
use crate::experiment::latency::report::{LatencyConclusion, ScenarioRow};
use crate::experiment::overload::report::OverloadConclusion;
use crate::experiment::sweep::report::SweepConclusion;
use crate::experiment::throttle::report::ThrottleConclusion;
use crate::report::{Conclusion, Report};
use crate::stats::sample::mean;
use crate::trial::statistics::Better;

/// The usual spread between runs of what is found by fitting many levels.
const SPREAD_FITTED: f64 = 0.02;
/// That of a path's capacity.
const SPREAD_CAPACITY: f64 = 0.03;
/// That of what rests on the single longest gap or latency.
const SPREAD_WORST: f64 = 0.15;
/// That of how late waits end.
const SPREAD_WAITS: f64 = 0.1;
/// Why a figure of one experiment a side cannot be judged.
const NO_SPREAD: &str = "nothing tells how far it varies: several reports on each side would";

/// The rows of the conclusions, where both sides are of the same kind.
pub(super) fn drafts(a: &[&Report], b: &[&Report]) -> Vec<Draft> {
    match (&a[0].conclusion, &b[0].conclusion) {
        (Conclusion::Sweep(_), Conclusion::Sweep(_)) => sweep(&of(a, sweep_of), &of(b, sweep_of)),
        (Conclusion::Overload(_), Conclusion::Overload(_)) => {
            let [a, b] = [of(a, overload_of), of(b, overload_of)];
            vec![capacity(&a, &b)]
        }
        (Conclusion::Throttle(first), Conclusion::Throttle(second)) => throttle(first, second),
        (Conclusion::Latency(first), Conclusion::Latency(second)) => latency(first, second),
        _ => Vec::new(),
    }
}

fn of<'a, C>(
    reports: &[&'a Report],
    conclusion: fn(&'a Conclusion) -> Option<&'a C>,
) -> Vec<&'a C> {
    let conclusions = reports.iter().map(|r| conclusion(&r.conclusion));
    conclusions.flatten().collect()
}

fn sweep_of(conclusion: &Conclusion) -> Option<&SweepConclusion> {
    match conclusion {
        Conclusion::Sweep(sweep) => Some(sweep),
        _ => None,
    }
}

fn overload_of(conclusion: &Conclusion) -> Option<&OverloadConclusion> {
    match conclusion {
        Conclusion::Overload(overload) => Some(overload),
        _ => None,
    }
}

fn subject(metric: &'static str, unit: &'static str, better: Better) -> Subject {
    Subject {
        metric,
        unit,
        better,
        matters: better != Better::Neither,
        label: String::new(),
        level: None,
        of: Of::All,
    }
}

/// A figure of each report of both sides.
fn figures(subject: Subject, a: &[Estimate], b: &[Estimate], spread: f64) -> Draft {
    let value = |side: &[Estimate]| {
        let logs: Vec<f64> = side.iter().map(|e| e.log).collect();
        (!logs.is_empty()).then(|| mean(&logs).exp())
    };
    let values = [value(a), value(b)];
    Draft::of(
        subject,
        values,
        difference(a, b, Between::Usual(spread)),
        NO_SPREAD,
    )
}

fn sweep(a: &[&SweepConclusion], b: &[&SweepConclusion]) -> Vec<Draft> {
    let most = |sweep: &&SweepConclusion| {
        let levels = sweep.levels.iter().filter(|l| l.excluded_because.is_none());
        let top = levels.max_by(|x, y| x.throughput_per_s.total_cmp(&y.throughput_per_s))?;
        // As sure as the level that it rests on.
        let at_top = Estimate::with_ci95(top.throughput_per_s, top.throughput_ci95_per_s)?;
        Some(Estimate {
            log: Estimate::bare(sweep.max_throughput_per_s)?.log,
            ..at_top
        })
    };
    let knee = |sweep: &&SweepConclusion| Estimate::with_ci95(sweep.knee_vusers?, sweep.knee_ci95);
    let all = |side: &[&SweepConclusion], of: fn(&&SweepConclusion) -> Option<Estimate>| {
        side.iter().filter_map(of).collect::<Vec<_>>()
    };
    let max = subject("max_throughput_per_s", "per_s", Better::More);
    let mut drafts = vec![figures(max, &all(a, most), &all(b, most), SPREAD_FITTED)];
    let (knee_a, knee_b) = (all(a, knee), all(b, knee));
    if !knee_a.is_empty() && !knee_b.is_empty() {
        let knee = subject("knee_vusers", "users", Better::Neither);
        drafts.push(figures(knee, &knee_a, &knee_b, SPREAD_FITTED));
    }
    drafts
}

/// Levels of tables, of which nothing tells how sure they are: paired, they tell together.
pub(super) fn table(a: &SweepConclusion, b: &SweepConclusion) -> Vec<Draft> {
    let pair =
        |of: fn(&crate::experiment::sweep::report::SweepLevel) -> Option<f64>| -> Vec<(f64, f64)> {
            let other = |level| b.levels.iter().find(|l| l.level == level).and_then(of);
            let levels = a.levels.iter();
            let pairs = levels.filter_map(|l| of(l).zip(other(l.level)));
            pairs.collect()
        };
    let throughput = subject("throughput_per_s", "per_s", Better::More);
    let p90 = subject("p90_ns", "ns", Better::Less);
    let pairs_p90 = pair(|l| l.p90_ns.map(|ns| ns as f64));
    let pairs_throughput = pair(|l| Some(l.throughput_per_s));
    let mut drafts = Vec::new();
    for (subject, pairs) in [(throughput, pairs_throughput), (p90, pairs_p90)] {
        drafts.extend(paired(subject, &pairs, SPREAD_FITTED));
    }
    drafts
}

/// Figures that are there once for each of many scenarios; their geometric means are shown.
fn paired(subject: Subject, pairs: &[(f64, f64)], spread: f64) -> Option<Draft> {
    let shown: Vec<&(f64, f64)> = pairs.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0).collect();
    let value = |of: fn(&(f64, f64)) -> f64| {
        let logs: Vec<f64> = shown.iter().map(|pair| of(pair).ln()).collect();
        (!logs.is_empty()).then(|| mean(&logs).exp())
    };
    let values = [value(|p| p.0), value(|p| p.1)];
    let few = "fewer than three figures to compare pair by pair";
    (!pairs.is_empty()).then(|| Draft::of(subject, values, of_pairs(pairs, spread), few))
}

fn capacity(a: &[&OverloadConclusion], b: &[&OverloadConclusion]) -> Draft {
    let estimate = |c: &&OverloadConclusion| {
        let served = c.sclients.iter().filter(|level| level.past_saturation);
        let served = served.map(|level| &level.row);
        let widest = served
            .filter_map(|row| Estimate::with_ci95(row.served_per_s, row.served_ci95_per_s))
            .max_by(|x, y| {
                x.variance
                    .unwrap_or(0.0)
                    .total_cmp(&y.variance.unwrap_or(0.0))
            });
        let bare = Estimate::bare(c.capacity_per_s)?;
        Some(widest.map_or(bare, |e| Estimate { log: bare.log, ..e }))
    };
    let all = |side: &[&OverloadConclusion]| -> Vec<Estimate> {
        side.iter().filter_map(estimate).collect()
    };
    let capacity = subject("capacity_per_s", "per_s", Better::More);
    figures(capacity, &all(a), &all(b), SPREAD_FITTED)
}

fn latency(a: &LatencyConclusion, b: &LatencyConclusion) -> Vec<Draft> {
    let pair = |of: fn(&ScenarioRow) -> Option<f64>| -> Vec<(f64, f64)> {
        let same = |x: &&ScenarioRow, y: &ScenarioRow| {
            (x.up, x.down, &x.congestion_control) == (y.up, y.down, &y.congestion_control)
        };
        let other = |row| b.scenarios.iter().find(|x| same(x, row)).and_then(of);
        let pairs = a.scenarios.iter().filter_map(|row| of(row).zip(other(row)));
        pairs.collect()
    };
    let rows = [
        (
            "upload_kib_per_s",
            "kib_per_s",
            SPREAD_CAPACITY,
            pair(|r| r.up_kib_per_s),
        ),
        (
            "download_kib_per_s",
            "kib_per_s",
            SPREAD_CAPACITY,
            pair(|r| r.down_kib_per_s),
        ),
        (
            "responsiveness_hz",
            "hz",
            SPREAD_WORST,
            pair(|r| r.responsiveness_hz),
        ),
        (
            "smoothness_hz",
            "hz",
            SPREAD_WORST,
            pair(|r| r.smoothness_hz),
        ),
    ];
    rows.into_iter()
        .filter_map(|(name, unit, spread, pairs)| {
            paired(subject(name, unit, Better::More), &pairs, spread)
        })
        .collect()
}

fn throttle(a: &ThrottleConclusion, b: &ThrottleConclusion) -> Vec<Draft> {
    let mut methods: Vec<&str> = Vec::new();
    for row in &a.table {
        if !methods.contains(&row.method.as_str()) {
            methods.push(&row.method);
        }
    }
    let of_method = |method: &str| {
        let rows = a.table.iter().filter(|row| row.method == method);
        let pairs: Vec<(f64, f64)> = rows
            .filter_map(|x| {
                let same = |y: &&crate::experiment::throttle::report::WaitRow| {
                    (&y.method, &y.op, y.delay_ns) == (&x.method, &x.op, x.delay_ns)
                };
                let other = b.table.iter().find(same)?;
                Some((x.overshoot_p50_ns as f64, other.overshoot_p50_ns as f64))
            })
            .collect();
        let mut subject = subject("overshoot_p50_ns", "ns", Better::Less);
        method.clone_into(&mut subject.label);
        paired(subject, &pairs, SPREAD_WAITS)
    };
    let waits = methods.into_iter().filter_map(of_method);
    waits.chain(rates(a, b)).collect()
}

/// How well each way holds a rate.
fn rates(a: &ThrottleConclusion, b: &ThrottleConclusion) -> Vec<Draft> {
    let row = |x: &crate::experiment::throttle::report::RateRow| {
        let y = b
            .rates
            .iter()
            .find(|y| y.method == x.method && y.asked_per_s == x.asked_per_s)?;
        let sure = |row: &crate::experiment::throttle::report::RateRow| {
            Some(Estimate {
                variance: Some(row.gap_cv.powi(2) / row.operations.max(1) as f64),
                degrees: row.operations.max(1) as f64,
                ..Estimate::bare(row.achieved_per_s)?
            })
        };
        let mut subject = subject("achieved_per_s", "per_s", Better::More);
        x.method.clone_into(&mut subject.label);
        Some(figures(subject, &[sure(x)?], &[sure(y)?], SPREAD_WAITS))
    };
    a.rates.iter().filter_map(row).collect()
}
