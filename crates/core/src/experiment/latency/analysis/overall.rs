//! From scenarios to the figures of a path.

use super::figures::{grade, harmonic_mean};
use crate::experiment::latency::report::{ScenarioFlow, ScenarioRow};
use crate::measure::Direction;
use crate::spec::Level;
use crate::time::Nanos;
use crate::trial::flows::FlowReport;
use crate::trial::report::{TrialReport, Verdict};

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
        flows: flows.flows.iter().map(in_short).collect(),
    })
}

fn in_short(flow: &FlowReport) -> ScenarioFlow {
    let lost = flow.lost_at_ns.map_or(String::new(), |at| {
        let why = flow
            .lost_because
            .as_deref()
            .unwrap_or("for no known reason");
        format!("after {}: {why}", Nanos(at))
    });
    ScenarioFlow {
        direction: flow.direction,
        goodput_kib_per_s: flow.goodput_kib_per_s,
        lost,
    }
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

/// The figures of a path. Every one is rounded down, and bigger is better.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overall {
    /// In KiB/s; `None` where no scenario uploads.
    pub upload_capacity: Option<u64>,
    /// In KiB/s; `None` where no scenario downloads.
    pub download_capacity: Option<u64>,
    /// In Hz; `None` where it is not known of any scenario.
    pub responsiveness_hz: Option<u64>,
    /// In Hz; `None` where it is not known of any scenario.
    pub smoothness_hz: Option<u64>,
}

/// Capacities are the harmonic means of those of the scenarios that have the direction, so that a
/// zero carries; responsiveness and smoothness are the worst of any scenario.
pub fn overall(rows: &[&ScenarioRow]) -> Overall {
    let capacity = |direction: Direction| {
        let of = rows.iter().filter_map(|row| match direction {
            Direction::Up => row.up_kib_per_s,
            Direction::Down => row.down_kib_per_s,
        });
        harmonic_mean(&of.collect::<Vec<f64>>()).map(rounded_down)
    };
    let worst = |figure: fn(&ScenarioRow) -> Option<f64>| {
        let of = rows.iter().filter_map(|row| figure(row));
        of.reduce(f64::min).map(rounded_down)
    };
    Overall {
        upload_capacity: capacity(Direction::Up),
        download_capacity: capacity(Direction::Down),
        responsiveness_hz: worst(|row| row.responsiveness_hz),
        smoothness_hz: worst(|row| row.smoothness_hz),
    }
}

/// What a scenario adds to the idle path's median, by pings over TCP or by probes over UDP.
pub type Added = fn(&ScenarioRow) -> Option<i64>;

/// What the worst scenario adds to the idle path's median, at least 0; `None` where that is not
/// known of any.
pub fn added_latency_ns(rows: &[&ScenarioRow], by: Added) -> Option<u64> {
    let added = rows.iter().filter_map(|row| by(row));
    added.max().map(|ns| ns.max(0) as u64)
}

/// The grade of these scenarios; empty where it is not known.
pub fn grade_of(rows: &[&ScenarioRow], by: Added) -> &'static str {
    added_latency_ns(rows, by).map_or("", |ns| grade(Nanos(ns)))
}

impl ScenarioRow {
    /// By pings over TCP.
    pub fn by_ping(&self) -> Option<i64> {
        self.added_latency_ns
    }

    /// By probes over UDP.
    pub fn by_probe(&self) -> Option<i64> {
        self.udp_added_latency_ns
    }
}

/// What is a whole number but for the arithmetic's last digit stays it.
fn rounded_down(value: f64) -> u64 {
    (value * (1.0 + 1e-12)).floor() as u64
}
