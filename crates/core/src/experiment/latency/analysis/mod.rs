//! From a scenario of flows to its report, and from scenarios to the figures of a path.

mod grid;
mod overall;
#[cfg(test)]
pub(crate) mod tests;

pub use overall::{
    Added, PathFigures, added_latency_ns, capacity, grade, grade_of, harmonic_mean, hz, jain_index,
    median_ping_ns, median_probe_ns, overall, row,
};

use crate::trial::assess::{generator_report, times_report};
use crate::trial::detail::LatencyDetail;
use crate::trial::flows::{DirectionReport, FlowReport, FlowsReport, ProbeReport};
use crate::trial::offered::quantiles;
use crate::trial::report::{OfferedReport, TimesReport, TrialReport, Verdict};
use crate::trial::validity::{Clause, PacingQuantiles, ValidityEvidence, broken_clauses};
use grid::{Grid, WeightedTimes};
use knee_load::experiment::latency::settling::still_changed;
use knee_load::experiment::latency::{
    FlowMeasured, LatencyTrial, Probe, ProbeBack, ProbesMeasured, ScenarioEnd, ScenarioEnded,
};
use knee_load::measure::{Direction, Histogram, Outcome, Outcomes};
use knee_load::time::Nanos;
use overall::KIB;

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
        stall_ns_max: trial.tcp.pacing_error.max().0,
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
        attempted: trial.tcp.sent,
        started: trial.tcp.sent,
        pacing_error_ns: PacingQuantiles {
            max: trial.tcp.pacing_error.max().0,
            ..PacingQuantiles::default()
        },
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
