//! Whether a report agrees with itself: no statement in it may contradict a number in it.
//!
//! Debug builds of the command line check every report that they make. The tests of experiments
//! check every conclusion that they draw. So each test of knee is a test of this as well.
//!
//! The numbers of one trial.

use crate::finding::Finding;
use crate::trial::detail::{FlowsReport, LedgerReport};
use crate::trial::figure::{Figure, FigureKind};
use crate::trial::report::{TimesReport, TrialReport, Verdict};
use knee_load::measure::{Direction, HeatReport, Stage};
use knee_load::spec::Level;

/// The statements of a report beside its conclusion.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// Whether the numbers can be trusted.
    pub verdict: Verdict,
    /// The trials in the order they were run.
    pub trials: &'a [TrialReport],
    /// The findings.
    pub findings: &'a [Finding],
}

/// The contradictions found so far.
#[derive(Debug, Default)]
pub struct Contradictions {
    place: String,
    /// A line for each.
    pub(crate) lines: Vec<String>,
}

impl Contradictions {
    /// Notes a contradiction unless `agrees`.
    pub(crate) fn unless(&mut self, agrees: bool, line: impl FnOnce() -> String) {
        if !agrees {
            let place =
                if self.place.is_empty() { String::new() } else { format!("{}: ", self.place) };
            self.lines.push(format!("{place}{}", line()));
        }
    }

    /// Checks a part of the report whose lines are to name it.
    pub fn within(&mut self, place: &str, check: impl FnOnce(&mut Contradictions)) {
        let outer = std::mem::replace(&mut self.place, place.to_owned());
        check(self);
        self.place = outer;
    }

    /// Figures that are there must not decrease from one to the next.
    pub(crate) fn ascending<T: PartialOrd + Copy + std::fmt::Debug>(
        &mut self,
        what: &str,
        figures: &[(&str, Option<T>)],
    ) {
        let mut before: Option<(&str, T)> = None;
        for &(name, figure) in figures {
            let Some(figure) = figure else { continue };
            if let Some((lower, least)) = before {
                self.unless(least <= figure, || {
                    format!("{what}: {lower} {least:?} is above {name} {figure:?}")
                });
            }
            before = Some((name, figure));
        }
    }

    /// An interval of confidence has its ends in order and its estimate inside.
    pub(crate) fn interval<T: PartialOrd + Copy + std::fmt::Debug>(
        &mut self,
        what: &str,
        estimate: Option<T>,
        ci95: Option<[T; 2]>,
    ) {
        let Some([lo, hi]) = ci95 else { return };
        self.unless(lo <= hi, || format!("{what}: its interval is {lo:?} to {hi:?}"));
        let is_inside = estimate.is_some_and(|x| lo <= x && x <= hi);
        self.unless(is_inside, || {
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

pub(crate) fn check_trial(trial: &TrialReport, found: &mut Contradictions) {
    counts(trial, found);
    times("response time", &trial.response_time_ns, found);
    times("service time", &trial.service_time_ns, found);
    intervals(trial, found);
    timing(trial, found);
    found.unless((trial.verdict == Verdict::Valid) == trial.invalid_because.is_empty(), || {
        format!("{:?}, because of {:?}", trial.verdict, trial.invalid_because)
    });
    if let Some((sums, datagrams)) = trial.ledger().zip(trial.datagrams()) {
        ledger(sums, found);
        loss(datagrams.loss_percent, sums, found);
        let (attempted, dropped) = (datagrams.attempted_per_s(), datagrams.dropped_per_s);
        let percent = datagrams.loss_percent;
        found.unless((dropped - attempted * percent / 100.0).abs() <= 1e-6 * attempted, || {
            format!("{dropped} of {attempted} dropped per second, and {percent} %")
        });
    }
    if let Some(report) = trial.flows() {
        flows(trial, report, found);
    }
}

/// Each figure of flows is that of its rows, and none is absent where there are flows.
fn flows(trial: &TrialReport, of: &FlowsReport, found: &mut Contradictions) {
    times("pings", &of.tcp.round_trip_ns, found);
    found.unless((of.state == "settled") == of.reason.is_empty(), || {
        format!("{}, because: {}", of.state, of.reason)
    });
    let longest = of.flows.iter().map(|f| f.gap_ns_max).max().unwrap_or(0);
    found.unless(of.gap_ns_max == longest, || {
        format!("the longest gap is {} ns, that of its flows {longest} ns", of.gap_ns_max)
    });
    let slots = trial.intervals.len();
    let fits = of.flows.iter().all(|f| f.bytes.len() == slots)
        && of.series.iter().all(|s| s.max_ns.len() == slots);
    found.unless(fits, || format!("a series has other than {slots} intervals"));
    for (direction, sum) in [(Direction::Up, &of.up), (Direction::Down, &of.down)] {
        let own = of.flows.iter().filter(|f| f.direction == direction);
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
        found.unless(agrees, || {
            format!("{direction:?}: {sum:?} of {} flows with {total} KiB/s", goodputs.len())
        });
    }
}

/// A loss is the share of what was attempted that was not received.
pub(crate) fn loss(percent: f64, of: &LedgerReport, found: &mut Contradictions) {
    found.unless((percent - of.loss_percent()).abs() < 1e-6, || {
        format!("{percent} % lost, and {} of {} were received", of.received, of.attempted())
    });
}

/// Stages sum to the response times that they are of, and shares to all.
fn timing(trial: &TrialReport, found: &mut Contradictions) {
    let Some(timing) = trial.timing() else {
        return;
    };
    for group in &timing.anatomy {
        let sum: u64 = group.mean_ns.values().sum();
        // Each mean is rounded.
        let is_whole = sum.abs_diff(group.response_ns) <= Stage::COUNT as u64;
        found.unless(is_whole, || {
            let (of, whole) = (group.of.words(), group.response_ns);
            format!("the stages of {of} sum to {sum} of {whole} ns")
        });
        for shares in
            [group.stage_percent.values().sum::<f64>(), group.owner_percent.values().sum::<f64>()]
        {
            let is_all = group.response_ns == 0 || (shares - 100.0).abs() < 0.01;
            found
                .unless(is_all, || format!("the shares of {} sum to {shares} %", group.of.words()));
        }
    }
    if let Some(heat) = &timing.heat_map {
        heat_map(heat, trial, found);
    }
    for slow in &timing.slowest {
        let sum: u64 = slow.stages_ns.values().sum();
        found.unless(sum == slow.response_time_ns, || {
            format!("stages of {sum} ns in a response time of {} ns", slow.response_time_ns)
        });
    }
}

/// Each operation that ended in an interval with a response, or by timeout, is in one cell.
fn heat_map(heat: &HeatReport, trial: &TrialReport, found: &mut Contradictions) {
    let rows = heat.bounds_ns.len().saturating_sub(1);
    let ascends = heat.bounds_ns.windows(2).all(|pair| pair[0] < pair[1]);
    let fits = heat.counts.iter().all(|column| column.0.len() == rows);
    found.unless(ascends && fits && heat.column_ns > 0, || {
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
    found.unless(trial.intervals.is_empty() || is_whole, || {
        format!("the heat map tells of {count} operations, the intervals of {most}")
    });
}

fn counts(trial: &TrialReport, found: &mut Contradictions) {
    let total = trial.outcomes.total();
    found.unless(total == trial.attempted, || {
        format!("{} attempted, and {total} outcomes", trial.attempted)
    });
    // Datagrams and flows complete in ways of their own.
    let responses = trial.outcomes.responses();
    if trial.http().is_some() {
        found.unless(responses == trial.completed, || {
            format!("{} completed, and {responses} responses", trial.completed)
        });
    }
    // Batches are of whole slots, which may leave out a little of the window.
    let ci95 = trial.throughput_ci95_per_s;
    let wider = ci95.map(|[lo, hi]| [lo * (1.0 - WHOLE_SLOTS), hi * (1.0 + WHOLE_SLOTS)]);
    found.interval("throughput", trial.throughput_per_s, wider);
    if let Some(sessions) = trial.sessions() {
        let ci95 = sessions.completed_ci95_per_s;
        found.interval("completed sessions", sessions.completed_per_s, ci95);
    }
    let (good, all) = (trial.goodput_per_s, trial.throughput_per_s);
    found.unless(at_most(good.unwrap_or(0.0), all.unwrap_or(0.0)), || {
        format!("goodput {good:?} exceeds throughput {all:?}")
    });
    let came = trial.intervals.iter().any(|i| i.completed > 0) || trial.completed > 0;
    found.unless(came || all.is_none_or(|per_s| per_s == 0.0), || {
        format!("throughput {all:?} without one response")
    });
}

/// The percentiles of a distribution are in order, and there is nothing of nothing.
pub(crate) fn times(what: &str, of: &TimesReport, found: &mut Contradictions) {
    let figures = TimesReport::FIGURES.iter();
    let ordered = figures.filter(|f| matches!(f.kind, FigureKind::Quantile(_) | FigureKind::Max));
    let ordered: Vec<_> = ordered.map(|f| (f.key, f.value(of))).collect();
    found.ascending(what, &ordered);
    found.ascending(what, &[("min", of.min), ("max", of.max)]);
    found.ascending(what, &[("mean", of.mean), ("max", of.max)]);
    for figure in TimesReport::FIGURES {
        let name = figure.key;
        if figure.states_interval {
            found.interval(&format!("{what} {name}"), figure.value(of), figure.ci95(of));
        }
        let FigureKind::Quantile(q) = figure.kind else {
            continue;
        };
        let is_told = of.count as f64 * (1.0 - q) >= 1.0;
        let is_absent = figure.stated(of) == Figure::Absent;
        found.unless(!(is_told && is_absent), || {
            format!("{what}: no {name} of {} observations, and no reason", of.count)
        });
    }
    for (name, range) in &of.ranges {
        let is_range = range.at_most.is_none_or(|most| range.at_least <= most);
        found.unless(is_range && !range.because.is_empty(), || {
            format!("{what}: the range of the {name} is {range:?}")
        });
    }
    let tells = [of.mean, of.min, of.p50, of.max].iter().any(Option::is_some);
    found.unless(of.count > 0 || !tells, || format!("{what}: figures without one observation"));
}

fn intervals(trial: &TrialReport, found: &mut Contradictions) {
    let mut end_ns = 0;
    for interval in &trial.intervals {
        let (start, end) = (interval.start_ns, interval.end_ns);
        found.unless(end_ns <= start && start <= end, || {
            format!("the interval {start} to {end} ns follows one that ends at {end_ns} ns")
        });
        end_ns = end;
    }
}

/// Each datagram is in one line of the ledger.
pub(crate) fn ledger(of: &LedgerReport, found: &mut Contradictions) {
    let lost: u64 = of.lost.values().sum();
    let known = of.not_attempted + of.send_errors + lost + of.received + of.discarded;
    let sum = known as i64 + of.unexplained;
    found.unless(sum == of.intended as i64, || {
        format!("the ledger of {} datagrams sums to {sum}", of.intended)
    });
    for (place, lost) in &of.lost {
        let tells = of.evidence.iter().filter(|e| e.place == *place);
        let attributed: u64 = tells.map(|e| e.attributed).sum();
        found.unless(attributed == *lost, || {
            format!("{lost} lost at {place}, and the evidence is of {attributed}")
        });
    }
}
