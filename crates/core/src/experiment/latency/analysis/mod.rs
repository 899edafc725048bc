//! From a scenario of flows to its report, and from scenarios to the figures of a path.

mod grid;
#[cfg(test)]
pub(crate) mod tests;

use crate::experiment::latency::report::{PathFigures, ScenarioFlow, ScenarioRow};
use crate::trial::assess::generator_report;
use crate::trial::detail::{DirectionReport, FlowReport, FlowsReport, LatencyDetail, ProbeReport};
use crate::trial::figure::TimesReport;
use crate::trial::offered::OfferedReport;
use crate::trial::report::{TrialReport, Verdict};
use crate::trial::times::{quantiles, times_report};
use crate::trial::validity::{Clause, PacingQuantiles, ValidityEvidence, broken_clauses};
use crate::words::{capital, list};
use grid::{Grid, WeightedTimes};
use knee_load::experiment::latency::settling::still_changed;
use knee_load::experiment::latency::{
    FlowMeasured, LatencyTrial, Probe, ProbeBack, ProbesMeasured, ScenarioEnd, ScenarioEnded,
};
use knee_load::measure::{Direction, Histogram, Outcome, Outcomes};
use knee_load::spec::Level;
use knee_load::time::Nanos;

/// Computes all that is reported of a scenario. Its operations are the TCP pinger's pings, those
/// of them that are known one by one; what the flows did is in `flows`.
pub fn assess(trial: &LatencyTrial) -> TrialReport {
    let grid = Grid::of(trial);
    let intervals = grid.intervals(trial);
    let outcomes = outcomes(&trial.tcp);
    let answered = outcomes.count(Outcome::Ok);
    let length_s = trial.elapsed.as_secs_f64();
    let per_s = |n: u64| {
        if length_s > 0.0 { n as f64 / length_s } else { 0.0 }
    };
    let every = trial.spec.probes.every;
    let late = |p: &Probe| (p.sent - p.intended) + p.time();
    let response = WeightedTimes::of(&trial.tcp, every, late).report();
    let service = WeightedTimes::of(&trial.tcp, every, Probe::time).report();
    let (invalid_clauses, invalid_because): (Vec<_>, Vec<_>) = broken(trial).into_iter().unzip();
    let connections = trial.flows.len() as u64 + 1;
    TrialReport {
        label: trial.spec.label.clone(),
        level: trial.spec.level,
        duration_ns: trial.elapsed.0,
        attempted: outcomes.total(),
        completed: answered,
        throughput_per_s: (answered > 0).then(|| per_s(answered)),
        throughput_ci95_per_s: None,
        throughput_is: Default::default(),
        throughput_range_per_s: None,
        goodput_per_s: (answered > 0).then(|| per_s(answered)),
        outcomes,
        response_time_ns: response,
        service_time_ns: service,
        offered: offered(trial, per_s(trial.tcp.sent)),
        // Its operations are pings: what flows cost is reported per byte.
        generator: generator_report(&trial.generator, 0.0),
        stationary: grid::is_steady(&intervals),
        verdict: if invalid_because.is_empty() { Verdict::Valid } else { Verdict::Invalid },
        invalid_because,
        invalid_clauses,
        bytes_received: received_bytes(trial),
        detail: LatencyDetail {
            connections_opened: connections,
            connections_max: connections,
            flows: flows_report(trial, grid),
        }
        .into(),
        intervals,
        kernel: trial.kernel.clone(),
    }
}

fn received_bytes(trial: &LatencyTrial) -> u64 {
    trial.flows.iter().map(|f| f.received_bytes).fold(0, u64::saturating_add)
}

fn outcomes(pings: &ProbesMeasured) -> Outcomes {
    let answered = pings.probes.iter().filter(|p| p.back.is_some()).count() as u64;
    let mut outcomes = Outcomes::default();
    outcomes.add_many(Outcome::Ok, answered);
    outcomes.add_many(Outcome::Timeout, pings.probes.len() as u64 - answered);
    outcomes
}

fn offered(trial: &LatencyTrial, achieved_per_s: f64) -> OfferedReport {
    let every_s = trial.spec.probes.every.as_secs_f64();
    OfferedReport {
        asked_per_s: (every_s > 0.0).then(|| 1.0 / every_s),
        achieved_per_s,
        arrival: "constant".to_owned(),
        pacing_error_ns: quantiles(&trial.tcp.pacing_error),
        stall_ns_max: trial.tcp.stall().0,
        ..OfferedReport::default()
    }
}

/// The pinger is the instrument: it may not stall. Its lateness only moves the samples, as each
/// round trip counts from when its ping was sent. That the flows use all of a processor is no
/// fault. How many pings fit into the time depends on the path, as a ping that cannot be written
/// waits.
fn broken(trial: &LatencyTrial) -> Vec<(Clause, String)> {
    broken_clauses(&ValidityEvidence {
        asked: None,
        window: trial.elapsed,
        open_loop: true,
        each_stall_counts: true,
        attempted: trial.tcp.sent,
        started: trial.tcp.sent,
        pacing_error_ns: PacingQuantiles { max: trial.tcp.stall().0, ..PacingQuantiles::default() },
        ..ValidityEvidence::default()
    })
}

fn flows_report(trial: &LatencyTrial, grid: Grid) -> FlowsReport {
    let longest = trial.tcp.longest;
    let (state, reason) = ended(trial);
    FlowsReport {
        up: direction(trial, Direction::Up),
        down: direction(trial, Direction::Down),
        smoothness_hz: smoothness_hz(&trial.flows),
        gap_ns_max: trial.flows.iter().map(|f| f.gap_max.0).max().unwrap_or(0),
        responsiveness_hz: match trial.tcp.sent {
            0 => 0.0,
            _ => hz(longest),
        },
        latency_ns_max: longest.0,
        state,
        reason,
        flows: trial.flows.iter().map(|f| flow(f, grid)).collect(),
        tcp: probes(&trial.tcp, trial.spec.probes.every),
        udp: trial.udp.as_ref().map(|udp| probes(udp, trial.spec.probes.every)),
        series: grid.series(trial),
        clock_uncertainty_ns: trial.service.clock_uncertainty_ns,
        cpu_s_per_gib: cpu_s_per_gib(trial),
    }
}

/// State and reason. One that the user ended has not settled, whatever it was about to do.
fn ended(trial: &LatencyTrial) -> (String, String) {
    let (state, reason) = match &trial.ended {
        ScenarioEnded::Aborted(why) => ("aborted", why.clone()),
        _ if trial.interrupted => ("aborted", "the user ended it".to_owned()),
        ScenarioEnded::Settled => ("settled", String::new()),
        ScenarioEnded::Forced => {
            let (ScenarioEnd::Settled { limit: time, .. } | ScenarioEnd::After(time)) =
                trial.spec.end;
            match still_changed(trial) {
                Some(what) => ("forced", format!("not settled within {time}: {what}")),
                None => ("settled", String::new()),
            }
        }
    };
    (state.to_owned(), reason)
}

/// 1 / the longest gap on any flow; 0 where one was lost or never moved, `None` without flows.
fn smoothness_hz(flows: &[FlowMeasured]) -> Option<f64> {
    let longest = flows.iter().map(|f| f.gap_max).max()?;
    let whole = |f: &FlowMeasured| f.lost.is_none() && f.received_bytes > 0;
    Some(if flows.iter().all(whole) { hz(longest) } else { 0.0 })
}

fn direction(trial: &LatencyTrial, direction: Direction) -> Option<DirectionReport> {
    let flows: Vec<&FlowMeasured> =
        trial.flows.iter().filter(|f| f.direction == direction).collect();
    let goodputs: Vec<f64> = flows.iter().map(|f| goodput_kib_per_s(f)).collect();
    let mut inside = Histogram::default();
    flows.iter().for_each(|f| inside.merge(&f.inside));
    (!flows.is_empty()).then(|| DirectionReport {
        flows: flows.len() as u32,
        capacity_kib_per_s: capacity(&goodputs),
        total_kib_per_s: goodputs.iter().sum(),
        jain_index: jain_index(&goodputs),
        inside_ns: times_report(&inside, None),
        retransmitted: flows.iter().map(|f| f.retransmitted).sum(),
    })
}

/// Payload received over the flow's lifetime. One that was lost scores zero, on purpose.
fn goodput_kib_per_s(flow: &FlowMeasured) -> f64 {
    let lifetime_s = (flow.ended - flow.begun).as_secs_f64();
    if flow.lost.is_none() && lifetime_s > 0.0 {
        flow.received_bytes as f64 / KIB / lifetime_s
    } else {
        0.0
    }
}

fn flow(flow: &FlowMeasured, grid: Grid) -> FlowReport {
    let mut rtt = Histogram::default();
    flow.samples.iter().for_each(|s| rtt.record(s.rtt));
    let mut windows: Vec<u64> = flow.samples.iter().map(|s| s.window_bytes).collect();
    windows.sort_unstable();
    FlowReport {
        direction: flow.direction,
        number: flow.number,
        goodput_kib_per_s: goodput_kib_per_s(flow),
        gap_ns_max: flow.gap_max.0,
        retransmitted: flow.retransmitted,
        rtt_ns: quantiles(&rtt),
        window_bytes: windows.get(windows.len() / 2).copied().unwrap_or(0),
        congestion_control: flow.congestion_control.clone(),
        ecn: flow.ecn,
        bytes: grid.sums(&flow.by_interval),
        lost_at_ns: flow.lost.as_ref().map(|lost| lost.at.0),
        lost_because: flow.lost.as_ref().map(|lost| lost.why.clone()),
    }
}

fn probes(measured: &ProbesMeasured, every: Nanos) -> ProbeReport {
    let back = || measured.probes.iter().filter_map(|p| p.back);
    let one_way = |way: fn(&ProbeBack) -> Nanos| {
        let mut histogram = Histogram::default();
        back().for_each(|b| histogram.record(way(&b)));
        quantiles(&histogram)
    };
    ProbeReport {
        sent: measured.sent,
        lost: (measured.probes.len() - back().count()) as u64,
        held_back: measured.held_back,
        round_trip_ns: TimesReport {
            // Of a ping that is still out only a lower bound is known.
            min: back().map(|b| b.round_trip.0).min(),
            ..WeightedTimes::of(measured, every, Probe::time).report()
        },
        up_ns: one_way(|b| b.up),
        down_ns: one_way(|b| b.down),
    }
}

/// `None` where nothing was received, or the service's share is not known.
fn cpu_s_per_gib(trial: &LatencyTrial) -> Option<f64> {
    let gib = received_bytes(trial) as f64 / (KIB * KIB * KIB);
    let here_s = trial.generator.cpu_user_s + trial.generator.cpu_system_s;
    let there_s = trial.service_cpu?.as_secs_f64();
    (gib > 0.0).then(|| (here_s + there_s) / gib)
}

/// A scenario in short. `idle` is the idle path's trial, `congestion_control` the one asked for.
/// `None` where the trial is none of flows, or is the idle path's.
pub fn row(
    trial: &TrialReport,
    idle: Option<&TrialReport>,
    congestion_control: Option<&str>,
) -> Option<ScenarioRow> {
    let Level::Flows { up, down } = trial.level else {
        return None;
    };
    let flows = trial.flows().filter(|_| up + down > 0)?;
    let added = |median: fn(&TrialReport) -> Option<u64>| {
        let (loaded, idle) = median(trial).zip(median(idle?))?;
        let added = i128::from(loaded) - i128::from(idle);
        Some(added.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    };
    let pinged = flows.tcp.sent > 0;
    let begun = Some(flows).filter(|flows| flows.has_begun());
    let (ups, downs) = begun.map_or((None, None), |f| (f.up.as_ref(), f.down.as_ref()));
    Some(ScenarioRow {
        up,
        down,
        up_kib_per_s: ups.map(|d| d.capacity_kib_per_s),
        down_kib_per_s: downs.map(|d| d.capacity_kib_per_s),
        smoothness_hz: begun.and_then(|flows| flows.smoothness_hz),
        responsiveness_hz: pinged.then_some(flows.responsiveness_hz),
        state: flows.state.clone(),
        reason: flows.reason.clone(),
        congestion_control: congestion_control.unwrap_or_default().to_owned(),
        duration_ns: trial.duration_ns,
        added_latency_ns: added(median_ping_ns),
        udp_added_latency_ns: added(median_probe_ns),
        distorted: trial.verdict == Verdict::Invalid,
        trial: None,
        up_jain_index: ups.map(|d| d.jain_index),
        down_jain_index: downs.map(|d| d.jain_index),
        flows: flows.flows.iter().map(scenario_flow).collect(),
    })
}

fn scenario_flow(flow: &FlowReport) -> ScenarioFlow {
    let lost = flow.lost_at_ns.map_or(String::new(), |at| {
        let why = flow.lost_because.as_deref().unwrap_or("for no known reason");
        format!("after {}: {why}", Nanos(at))
    });
    ScenarioFlow { direction: flow.direction, goodput_kib_per_s: flow.goodput_kib_per_s, lost }
}

/// The median round trip of a trial's pings; `None` where none came back.
pub fn median_ping_ns(trial: &TrialReport) -> Option<u64> {
    let tcp = &trial.flows()?.tcp;
    let some_back = tcp.round_trip_ns.count > tcp.lost;
    tcp.round_trip_ns.p50.filter(|_| some_back)
}

/// The median round trip of a trial's UDP probes; `None` where not most of them came back.
pub fn median_probe_ns(trial: &TrialReport) -> Option<u64> {
    let udp = trial.flows()?.udp.as_ref()?;
    let most_back = 2 * udp.lost < udp.round_trip_ns.count;
    udp.round_trip_ns.p50.filter(|_| most_back)
}

/// An overall figure of a path of which more is better.
#[derive(Clone, Copy, Debug)]
pub struct PathFigure {
    /// Its key in a report.
    pub key: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Whether it is the harmonic mean over the scenarios, so that a zero carries. Otherwise it is
    /// the worst of any scenario.
    pub is_capacity: bool,
    /// The figure of a scenario.
    pub of_row: fn(&ScenarioRow) -> Option<f64>,
    /// The figure of the path, rounded down.
    pub of_path: fn(&PathFigures) -> Option<u64>,
}

/// The overall figures, in the order of the text of 2011.
pub static PATH_FIGURES: [PathFigure; 4] = [
    PathFigure {
        key: "upload_capacity_kib_per_s",
        name: "upload capacity",
        unit: "KiB/s",
        is_capacity: true,
        of_row: |row| row.up_kib_per_s,
        of_path: |path| path.upload_capacity_kib_per_s,
    },
    PathFigure {
        key: "download_capacity_kib_per_s",
        name: "download capacity",
        unit: "KiB/s",
        is_capacity: true,
        of_row: |row| row.down_kib_per_s,
        of_path: |path| path.download_capacity_kib_per_s,
    },
    PathFigure {
        key: "responsiveness_hz",
        name: "link responsiveness",
        unit: "Hz",
        is_capacity: false,
        of_row: |row| row.responsiveness_hz,
        of_path: |path| path.responsiveness_hz,
    },
    PathFigure {
        key: "smoothness_hz",
        name: "flow smoothness",
        unit: "Hz",
        is_capacity: false,
        of_row: |row| row.smoothness_hz,
        of_path: |path| path.smoothness_hz,
    },
];

impl PathFigure {
    /// Its name in the text of 2011: `Upload Capacity`.
    pub fn title(&self) -> String {
        self.name.split(' ').map(capital).collect::<Vec<_>>().join(" ")
    }

    /// The overall figure of scenarios with these.
    pub fn overall(&self, figures: &[f64]) -> Option<f64> {
        if self.is_capacity {
            harmonic_mean(figures)
        } else {
            figures.iter().copied().reduce(f64::min)
        }
    }
}

/// The overall figures of these scenarios.
pub fn overall(rows: &[&ScenarioRow]) -> PathFigures {
    let [up, down, responsiveness, smoothness] = PATH_FIGURES.map(|figure| {
        let known: Vec<f64> = rows.iter().filter_map(|row| (figure.of_row)(row)).collect();
        figure.overall(&known).map(rounded_down)
    });
    PathFigures {
        upload_capacity_kib_per_s: up,
        download_capacity_kib_per_s: down,
        responsiveness_hz: responsiveness,
        smoothness_hz: smoothness,
        grade: path_grade(rows, BY_PING).to_owned(),
        added_latency_ns: added_latency_ns(rows, BY_PING),
    }
}

/// What a scenario adds to the idle path's median, by pings over TCP or by probes over UDP.
pub type Added = fn(&ScenarioRow) -> Option<i64>;

/// By pings over TCP.
pub const BY_PING: Added = |row| row.added_latency_ns;

/// By probes over UDP.
pub const BY_PROBE: Added = |row| row.udp_added_latency_ns;

/// What the worst scenario adds to the idle path's median, at least 0; `None` where that is not
/// known of any.
pub fn added_latency_ns(rows: &[&ScenarioRow], by: Added) -> Option<u64> {
    rows.iter().filter_map(|row| by(row)).max().map(|ns| ns.max(0) as u64)
}

/// The grade of these scenarios; empty where it is not known.
pub fn path_grade(rows: &[&ScenarioRow], by: Added) -> &'static str {
    added_latency_ns(rows, by).map_or("", |ns| grade(Nanos(ns)))
}

impl ScenarioRow {
    /// `1 upload and 31 downloads`.
    pub(in crate::experiment::latency) fn flows_in_words(&self) -> String {
        let flows = [(self.up, "upload"), (self.down, "download")].into_iter();
        let words = flows.filter_map(|(n, noun)| match n {
            0 => None,
            1 => Some(format!("1 {noun}")),
            n => Some(format!("{n} {noun}s")),
        });
        list(&words.collect::<Vec<String>>())
    }
}

/// Rounds down, but not a whole number that floating-point arithmetic made a little smaller.
fn rounded_down(value: f64) -> u64 {
    (value * (1.0 + 1e-12)).floor() as u64
}

/// Bytes in a KiB.
const KIB: f64 = 1_024.0;

/// The harmonic mean n / Σ(1/x); 0 where one of them is not above 0, which so carries; `None` of
/// none.
pub fn harmonic_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    if values.iter().any(|&x| x <= 0.0) {
        return Some(0.0);
    }
    let inverse: f64 = values.iter().map(|x| 1.0 / x).sum();
    Some(values.len() as f64 / inverse)
}

/// The capacity that n flows of one direction show: n times the harmonic mean of their goodputs,
/// in the unit of these. It is their sum where all are the same, less the more they differ, and 0
/// where one got nothing.
pub fn capacity(goodputs: &[f64]) -> f64 {
    goodputs.len() as f64 * harmonic_mean(goodputs).unwrap_or(0.0)
}

/// Jain's index of fairness, (Σx)² / (n·Σx²): 1 where all get the same, 1/n where one gets all
/// (Jain, Chiu, Hawe, DEC-TR-301, 1984). 1 where nobody gets anything: that is fair.
pub fn jain_index(goodputs: &[f64]) -> f64 {
    let sum: f64 = goodputs.iter().sum();
    let squares: f64 = goodputs.iter().map(|x| x * x).sum();
    if squares > 0.0 { sum * sum / (goodputs.len() as f64 * squares) } else { 1.0 }
}

/// A longest time as a frequency, in Hz: how often per second it fits.
pub fn hz(longest: Nanos) -> f64 {
    1e9 / longest.0.max(1) as f64
}

/// The grade of bufferbloat by added latency. `A+` is below 5 ms, `A` below 30 ms, `B` below 60 ms,
/// `C` below 200 ms, `D` below 400 ms, else `F`. These are the steps of the DSLReports speed test
/// (<https://www.dslreports.com/faq/17930>), which other tests took over. That test grades the mean
/// of what a download and an upload add. Here it is what the worst scenario adds to the median, as
/// a mean hides one direction behind the other.
pub fn grade(added: Nanos) -> &'static str {
    const STEPS_MS: [(u64, &str); 5] = [(5, "A+"), (30, "A"), (60, "B"), (200, "C"), (400, "D")];
    STEPS_MS.iter().find(|(ms, _)| added < Nanos::from_millis(*ms)).map_or("F", |(_, grade)| grade)
}

#[cfg(test)]
mod figures_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn capacity_is_n_times_the_harmonic_mean() {
        assert_eq!(capacity(&[]), 0.0);
        assert_eq!(capacity(&[300.0]), 300.0);
        assert_eq!(capacity(&[100.0; 4]), 400.0);
        // 2 · 2/(1/100 + 1/300)
        assert!((capacity(&[100.0, 300.0]) - 300.0).abs() < 1e-9);
        assert_eq!(capacity(&[100.0, 0.0, 300.0]), 0.0);
        assert_eq!(harmonic_mean(&[]), None);
    }

    #[test]
    fn jains_index_is_one_over_n_where_one_flow_gets_all() {
        assert_eq!(jain_index(&[5.0; 7]), 1.0);
        assert!((jain_index(&[5.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        assert!((jain_index(&[1.0, 3.0]) - 16.0 / 20.0).abs() < 1e-12);
        assert_eq!(jain_index(&[0.0, 0.0]), 1.0);
    }

    #[test]
    fn a_gap_of_334_ms_is_2_hz() {
        let smoothness = hz(Nanos::from_millis(334));
        assert!((smoothness - 2.994).abs() < 0.001, "{smoothness}");
        assert_eq!(smoothness.floor(), 2.0);
        assert!(hz(Nanos::ZERO).is_finite());
    }

    #[test]
    fn grades_begin_at_their_limits() {
        for (ms, expected) in [
            (0, "A+"),
            (4, "A+"),
            (5, "A"),
            (29, "A"),
            (30, "B"),
            (60, "C"),
            (199, "C"),
            (200, "D"),
            (399, "D"),
            (400, "F"),
            (9_000, "F"),
        ] {
            assert_eq!(grade(Nanos::from_millis(ms)), expected, "{ms} ms");
        }
    }

    proptest! {
        #[test]
        fn unfairness_only_ever_lowers_capacity(
            goodputs in prop::collection::vec(0.1_f64..1e9, 1..33),
        ) {
            let sum: f64 = goodputs.iter().sum();
            prop_assert!(capacity(&goodputs) <= sum * (1.0 + 1e-9));
            let index = jain_index(&goodputs);
            prop_assert!(index <= 1.0 + 1e-9 && index >= 1.0 / goodputs.len() as f64 - 1e-9);
        }
    }
}
