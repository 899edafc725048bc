//! Whether a report agrees with itself: no statement in it may contradict a number in it.
//!
//! Debug builds of the command line check every report that they make. The tests of experiments
//! check every conclusion that they draw. So each test of knee is a test of this as well.
//!
//! The numbers of one trial.

use crate::finding::Finding;
use crate::trial::detail::{FlowsReport, LedgerReport};
use crate::trial::figure::{Figure, FigureKind, TimesReport};
use crate::trial::report::{TrialReport, Verdict};
use knee_load::measure::{Direction, HeatReport, Stage};
use knee_load::spec::Level;

/// A report that is checked, without its conclusion.
#[derive(Clone, Copy, Debug)]
pub struct CheckedReport<'a> {
    /// Whether the numbers can be trusted.
    pub verdict: Verdict,
    /// The trials in the order they were run.
    pub trials: &'a [TrialReport],
    /// The findings.
    pub findings: &'a [Finding],
}

/// Collects the contradictions in a report.
#[derive(Debug, Default)]
pub struct ConsistencyCheck {
    place: String,
    /// A line for each.
    pub(crate) lines: Vec<String>,
}

impl ConsistencyCheck {
    /// Records a contradiction, described by `line`, if `holds` is false.
    pub(crate) fn require(&mut self, holds: bool, line: impl FnOnce() -> String) {
        if !holds {
            let place =
                if self.place.is_empty() { String::new() } else { format!("{}: ", self.place) };
            self.lines.push(format!("{place}{}", line()));
        }
    }

    /// Runs `check_part`; the contradictions that it records name `place`.
    pub fn within(&mut self, place: &str, check_part: impl FnOnce(&mut ConsistencyCheck)) {
        let outer = std::mem::replace(&mut self.place, place.to_owned());
        check_part(self);
        self.place = outer;
    }

    /// Requires that the figures that are known do not decrease.
    pub(crate) fn ascending<T: PartialOrd + Copy + std::fmt::Debug>(
        &mut self,
        what: &str,
        figures: &[(&str, Option<T>)],
    ) {
        let mut before: Option<(&str, T)> = None;
        for &(name, figure) in figures {
            let Some(figure) = figure else { continue };
            if let Some((lower, least)) = before {
                self.require(least <= figure, || {
                    format!("{what}: {lower} {least:?} is above {name} {figure:?}")
                });
            }
            before = Some((name, figure));
        }
    }

    /// Requires that a confidence interval has its ends in order and contains its estimate.
    pub(crate) fn interval<T: PartialOrd + Copy + std::fmt::Debug>(
        &mut self,
        what: &str,
        estimate: Option<T>,
        ci95: Option<[T; 2]>,
    ) {
        let Some([lo, hi]) = ci95 else { return };
        self.require(lo <= hi, || format!("{what}: its interval is {lo:?} to {hi:?}"));
        let is_inside = estimate.is_some_and(|x| lo <= x && x <= hi);
        self.require(is_inside, || {
            format!("{what}: {estimate:?} is outside of its interval {lo:?} to {hi:?}")
        });
    }
}

/// Rounding accounts for less.
const ROUNDING: f64 = 1e-6;

/// `a` is not above `b`, rounding apart.
pub(crate) fn at_most(a: f64, b: f64) -> bool {
    a <= b + ROUNDING * b.abs().max(1.0)
}

/// The share of a window that whole slots may leave out.
const WHOLE_SLOTS: f64 = 0.001;

pub(crate) fn check_trial(trial: &TrialReport, check: &mut ConsistencyCheck) {
    counts(trial, check);
    times("response time", &trial.response_time_ns, check);
    times("service time", &trial.service_time_ns, check);
    intervals(trial, check);
    timing(trial, check);
    check.require((trial.verdict == Verdict::Valid) == trial.invalid_because.is_empty(), || {
        format!("{:?}, because of {:?}", trial.verdict, trial.invalid_because)
    });
    if let Some((sums, datagrams)) = trial.ledger().zip(trial.datagrams()) {
        ledger(sums, check);
        loss(datagrams.loss_percent, sums, check);
        let (attempted, dropped) = (datagrams.attempted_per_s(), datagrams.dropped_per_s);
        let percent = datagrams.loss_percent;
        check.require((dropped - attempted * percent / 100.0).abs() <= 1e-6 * attempted, || {
            format!("{dropped} of {attempted} dropped per second, and {percent} %")
        });
    }
    if let Some(report) = trial.flows() {
        flows(trial, report, check);
    }
}

/// Each figure of flows is that of its rows, and none is absent where there are flows.
fn flows(trial: &TrialReport, report: &FlowsReport, check: &mut ConsistencyCheck) {
    times("pings", &report.tcp.round_trip_ns, check);
    check.require((report.state == "settled") == report.reason.is_empty(), || {
        format!("{}, because: {}", report.state, report.reason)
    });
    let longest = report.flows.iter().map(|f| f.gap_ns_max).max().unwrap_or(0);
    check.require(report.gap_ns_max == longest, || {
        format!("the longest gap is {} ns, that of its flows {longest} ns", report.gap_ns_max)
    });
    let slots = trial.intervals.len();
    let fits = report.flows.iter().all(|f| f.bytes.len() == slots)
        && report.series.iter().all(|s| s.max_ns.len() == slots);
    check.require(fits, || format!("a series has other than {slots} intervals"));
    for (direction, sum) in [(Direction::Up, &report.up), (Direction::Down, &report.down)] {
        let own = report.flows.iter().filter(|f| f.direction == direction);
        let goodputs: Vec<f64> = own.map(|f| f.goodput_kib_per_s).collect();
        let total: f64 = goodputs.iter().sum();
        let agrees = match sum {
            None => goodputs.is_empty(),
            Some(sum) => {
                sum.flows as usize == goodputs.len()
                    && (sum.total_kib_per_s - total).abs() <= 1e-6 * total
                    && at_most(sum.capacity_kib_per_s, total)
            }
        };
        check.require(agrees, || {
            format!("{direction:?}: {sum:?} of {} flows with {total} KiB/s", goodputs.len())
        });
    }
}

/// A loss is the share of what was attempted that was not received.
pub(crate) fn loss(percent: f64, ledger: &LedgerReport, check: &mut ConsistencyCheck) {
    check.require((percent - ledger.loss_percent()).abs() < 1e-6, || {
        format!("{percent} % lost, and {} of {} were received", ledger.received, ledger.attempted())
    });
}

/// Stages sum to the response times that they are of, and shares to all.
fn timing(trial: &TrialReport, check: &mut ConsistencyCheck) {
    let Some(timing) = trial.timing() else {
        return;
    };
    for group in &timing.anatomy {
        let sum: u64 = group.mean_ns.values().sum();
        // Each mean is rounded.
        let is_whole = sum.abs_diff(group.response_ns) <= Stage::COUNT as u64;
        check.require(is_whole, || {
            let (of, whole) = (group.of.words(), group.response_ns);
            format!("the stages of {of} sum to {sum} of {whole} ns")
        });
        for shares in
            [group.stage_percent.values().sum::<f64>(), group.owner_percent.values().sum::<f64>()]
        {
            let is_all = group.response_ns == 0 || (shares - 100.0).abs() < 0.01;
            check.require(is_all, || {
                format!("the shares of {} sum to {shares} %", group.of.words())
            });
        }
    }
    if let Some(heat) = &timing.heat_map {
        heat_map(heat, trial, check);
    }
    for slow in &timing.slowest {
        let sum: u64 = slow.stages_ns.values().sum();
        check.require(sum == slow.response_time_ns, || {
            format!("stages of {sum} ns in a response time of {} ns", slow.response_time_ns)
        });
    }
}

/// Each operation that ended in an interval with a response, or by timeout, is in one cell.
fn heat_map(heat: &HeatReport, trial: &TrialReport, check: &mut ConsistencyCheck) {
    let rows = heat.bounds_ns.len().saturating_sub(1);
    let ascends = heat.bounds_ns.windows(2).all(|pair| pair[0] < pair[1]);
    let fits = heat.counts.iter().all(|column| column.0.len() == rows);
    check.require(ascends && fits && heat.column_ns > 0, || {
        "the rows of the heat map do not fit its counts".to_owned()
    });
    let intervals = trial.intervals.iter();
    let (least, most) = intervals
        .fold((0, 0), |(least, most), i| (least + i.completed, most + i.completed + i.errors));
    // What ends at the edge of the window may be in one of them alone. What came before the edge
    // but was read after it is in no interval.
    let slices = trial.http().map_or(1, |http| http.slices.max(1));
    let edge = f64::from(slices) + WHOLE_SLOTS * most as f64;
    let read_late = match trial.level {
        Level::Vusers(users) => f64::from(users) * f64::from(slices),
        _ => f64::INFINITY,
    };
    let count = heat.count() as f64;
    let is_whole = (least as f64 - edge..=most as f64 + edge + read_late).contains(&count);
    check.require(trial.intervals.is_empty() || is_whole, || {
        format!("the heat map tells of {count} operations, the intervals of {most}")
    });
}

fn counts(trial: &TrialReport, check: &mut ConsistencyCheck) {
    let total = trial.outcomes.total();
    check.require(total == trial.attempted, || {
        format!("{} attempted, and {total} outcomes", trial.attempted)
    });
    // Datagrams and flows complete in ways of their own.
    let responses = trial.outcomes.responses();
    if trial.http().is_some() {
        check.require(responses == trial.completed, || {
            format!("{} completed, and {responses} responses", trial.completed)
        });
    }
    // Batches are of whole slots, which may leave out a little of the window.
    let ci95 = trial.throughput_ci95_per_s;
    let wider = ci95.map(|[lo, hi]| [lo * (1.0 - WHOLE_SLOTS), hi * (1.0 + WHOLE_SLOTS)]);
    check.interval("throughput", trial.throughput_per_s, wider);
    if let Some(sessions) = trial.sessions() {
        let ci95 = sessions.completed_ci95_per_s;
        check.interval("completed sessions", sessions.completed_per_s, ci95);
    }
    let (good, all) = (trial.goodput_per_s, trial.throughput_per_s);
    check.require(at_most(good.unwrap_or(0.0), all.unwrap_or(0.0)), || {
        format!("goodput {good:?} exceeds throughput {all:?}")
    });
    let came = trial.intervals.iter().any(|i| i.completed > 0) || trial.completed > 0;
    check.require(came || all.is_none_or(|per_s| per_s == 0.0), || {
        format!("throughput {all:?} without one response")
    });
}

/// The percentiles of a distribution are in order, and there is nothing of nothing.
pub(crate) fn times(what: &str, times: &TimesReport, check: &mut ConsistencyCheck) {
    let figures = TimesReport::FIGURES.iter();
    let ordered = figures.filter(|f| matches!(f.kind, FigureKind::Quantile(_) | FigureKind::Max));
    let ordered: Vec<_> = ordered.map(|f| (f.key, f.value(times))).collect();
    check.ascending(what, &ordered);
    check.ascending(what, &[("min", times.min), ("max", times.max)]);
    check.ascending(what, &[("mean", times.mean), ("max", times.max)]);
    for figure in TimesReport::FIGURES {
        let name = figure.key;
        if figure.states_interval {
            check.interval(&format!("{what} {name}"), figure.value(times), figure.ci95(times));
        }
        let FigureKind::Quantile(q) = figure.kind else {
            continue;
        };
        let is_told = times.count as f64 * (1.0 - q) >= 1.0;
        let is_absent = figure.stated(times) == Figure::Absent;
        check.require(!(is_told && is_absent), || {
            format!("{what}: no {name} of {} observations, and no reason", times.count)
        });
    }
    for (name, range) in &times.ranges {
        let is_range = range.at_most.is_none_or(|most| range.at_least <= most);
        check.require(is_range && !range.because.is_empty(), || {
            format!("{what}: the range of the {name} is {range:?}")
        });
    }
    let tells = [times.mean, times.min, times.p50, times.max].iter().any(Option::is_some);
    check.require(times.count > 0 || !tells, || format!("{what}: figures without one observation"));
}

fn intervals(trial: &TrialReport, check: &mut ConsistencyCheck) {
    let mut end_ns = 0;
    for interval in &trial.intervals {
        let (start, end) = (interval.start_ns, interval.end_ns);
        check.require(end_ns <= start && start <= end, || {
            format!("the interval {start} to {end} ns follows one that ends at {end_ns} ns")
        });
        end_ns = end;
    }
}

/// Each datagram is in one line of the ledger.
pub(crate) fn ledger(ledger: &LedgerReport, check: &mut ConsistencyCheck) {
    let lost: u64 = ledger.lost.values().sum();
    let known =
        ledger.not_attempted + ledger.send_errors + lost + ledger.received + ledger.discarded;
    let sum = known as i64 + ledger.unexplained;
    check.require(sum == ledger.intended as i64, || {
        format!("the ledger of {} datagrams sums to {sum}", ledger.intended)
    });
    for (place, lost) in &ledger.lost {
        let tells = ledger.evidence.iter().filter(|e| e.place == *place);
        let attributed: u64 = tells.map(|e| e.attributed).sum();
        check.require(attributed == *lost, || {
            format!("{lost} lost at {place}, and the evidence is of {attributed}")
        });
    }
}
