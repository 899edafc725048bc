//! The stages of a trial's response times, and whose delay they are.

use super::times::{QuantilesReport, is_zero, quantiles};
use crate::trial::step_names::step_name;
use knee_load::measure::{
    AnatomyPart, HeatReport, Measurement, Owner, SlowOperation, SplitPart, Stage, Trial, known_keys,
};
use knee_load::spec::Load;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The clock of a trial is the kernel's where this share of the responses has its timestamp. The
/// first may come before the kernel begins to stamp.
const STAMPED_SHARE: f64 = 0.99;

/// Least number of operations seen at both ends from which owners of a group are split.
const BOTH_ENDS_MIN: f64 = 20.0;

/// The clock that timed the arrival of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// The kernel's receive timestamps.
    Kernel,
    /// The generator, when it read the bytes: response times contain the delay until then.
    Process,
}

/// The stages of response times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimingReport {
    /// The clock that timed responses; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockKind>,
    /// The mean stages of all operations, of those in the middle and of the slowest; those groups
    /// that enough operations tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anatomy: Vec<AnatomyReport>,
    /// The length of each stage that took any time, of operations with a response.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[serde(deserialize_with = "known_keys")]
    pub stages_ns: BTreeMap<Stage, QuantilesReport>,
    /// From the arrival of a response until the generator read it; not part of the response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pick_up_ns: Option<QuantilesReport>,
    /// Responses that came in one piece with others over their connection. Each counts as arrived
    /// with the last byte of the piece: later than it did, never earlier.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shared_arrivals: u64,
    /// In a closed loop, the generator's share of a user's cycle: its pacing error and the time
    /// until it read a response. Throughput is lower by up to this share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_cycle_percent: Option<f64>,
    /// How many operations took how long when; absent where none completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heat_map: Option<HeatReport>,
    /// The ten slowest operations, the slowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowOperation>,
}

/// A group of operations by their response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnatomyGroup {
    /// All operations.
    All,
    /// Operations from the 45th to the 55th percentile.
    Median,
    /// The slowest 10 %.
    #[serde(rename = "slowest_10")]
    Slowest10,
    /// The slowest 1 %.
    #[serde(rename = "slowest_1")]
    Slowest1,
    /// The slowest 0.1 %.
    #[serde(rename = "slowest_0_1")]
    Slowest01,
}

impl AnatomyGroup {
    /// All groups: from and to which share of the operations, in ascending order of response time.
    const SHARES: [(AnatomyGroup, f64, f64); 5] = [
        (AnatomyGroup::All, 0.0, 1.0),
        (AnatomyGroup::Median, 0.45, 0.55),
        (AnatomyGroup::Slowest10, 0.9, 1.0),
        (AnatomyGroup::Slowest1, 0.99, 1.0),
        (AnatomyGroup::Slowest01, 0.999, 1.0),
    ];

    /// Its name in tables and sentences.
    pub fn words(self) -> &'static str {
        match self {
            AnatomyGroup::All => "all",
            AnatomyGroup::Median => "the middle 10 %",
            AnatomyGroup::Slowest10 => "the slowest 10 %",
            AnatomyGroup::Slowest1 => "the slowest 1 %",
            AnatomyGroup::Slowest01 => "the slowest 0.1 %",
        }
    }
}

/// The stages of the response times of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnatomyReport {
    /// The operations that it describes.
    pub of: AnatomyGroup,
    /// Their share of all operations, in percent.
    pub share_percent: f64,
    /// The response time of the fastest of them.
    pub from_ns: u64,
    /// Number of these operations.
    pub count: u64,
    /// The mean response time.
    pub response_ns: u64,
    /// The mean time in each stage that took any; they sum to the mean response time.
    #[serde(deserialize_with = "known_keys")]
    pub mean_ns: BTreeMap<Stage, u64>,
    /// The share of the response times of each of these stages, in percent; they sum to 100.
    #[serde(deserialize_with = "known_keys")]
    pub stage_percent: BTreeMap<Stage, f64>,
    /// The share of the response times of each owner that has any, in percent; they sum to 100.
    #[serde(deserialize_with = "known_keys")]
    pub owner_percent: BTreeMap<Owner, f64>,
    /// How many of these operations both ends saw, which tell the server's host from the network;
    /// absent where too few did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub both_ends_count: Option<u64>,
}

impl AnatomyReport {
    /// The generator's share, in percent.
    pub fn generator_percent(&self) -> f64 {
        self.owner_percent.get(&Owner::Generator).copied().unwrap_or(0.0)
    }

    /// The share of each stage, in percent, the largest first.
    pub fn stages_by_share(&self) -> Vec<(Stage, f64)> {
        let mut shares: Vec<_> = self.stage_percent.iter().map(|(s, p)| (*s, *p)).collect();
        shares.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        shares
    }

    fn of(
        group: AnatomyGroup,
        from: f64,
        to: f64,
        from_ns: u64,
        part: &AnatomyPart,
        split: &SplitPart,
    ) -> AnatomyReport {
        let means = Stage::all().map(|stage| (stage, part.mean_ns(stage).round() as u64));
        let host_share = split.host_share().filter(|_| split.count >= BOTH_ENDS_MIN);
        let percent = |counts: &dyn Fn(Stage) -> bool| {
            let share = part.share(counts).filter(|share| *share > 0.0)?;
            Some(share * 100.0)
        };
        AnatomyReport {
            of: group,
            // Without the dust of a difference of fractions.
            share_percent: ((to - from) * 1e6).round() / 1e4,
            from_ns,
            count: part.count.round() as u64,
            response_ns: (part.total_ns() / part.count).round() as u64,
            mean_ns: means.filter(|(_, ns)| *ns > 0).collect(),
            owner_percent: owner_percent(part, host_share),
            both_ends_count: host_share.map(|_| split.count.round() as u64),
            stage_percent: Stage::all()
                .filter_map(|counted| Some((counted, percent(&|stage| stage == counted)?)))
                .collect(),
        }
    }
}

/// The share of each owner that has any, in percent. `host_share` is the part of the time from
/// request to last byte that was inside the server's host. That time is split where it is known.
fn owner_percent(part: &AnatomyPart, host_share: Option<f64>) -> BTreeMap<Owner, f64> {
    let percent = |counts: &dyn Fn(Stage) -> bool| part.share(counts).unwrap_or(0.0) * 100.0;
    let response_stages = [Stage::FirstByte, Stage::Streaming, Stage::Receive];
    let is_split = |stage| host_share.is_some() && response_stages.contains(&stage);
    let split = percent(&is_split);
    let owned = |owner| percent(&|stage| stage.owner() == owner && !is_split(stage));
    let host = split * host_share.unwrap_or(0.0);
    let shares = [
        (Owner::Generator, owned(Owner::Generator)),
        (Owner::Limit, owned(Owner::Limit)),
        (Owner::Target, owned(Owner::Target)),
        (Owner::ServerHost, host),
        (Owner::Network, split - host),
    ];
    shares.into_iter().filter(|(_, percent)| *percent > 0.0).collect()
}

/// The anatomy of a group; `None` where it has too few operations.
pub fn anatomy(measured: &Measurement, group: AnatomyGroup) -> Option<AnatomyReport> {
    let (_, from, to) = AnatomyGroup::SHARES.into_iter().find(|(other, ..)| *other == group)?;
    let part = measured.anatomy.part(from, to);
    // As a percentile: one operation has to be beyond it.
    let from_ns = match group {
        AnatomyGroup::All => measured.response.min().0,
        _ => measured.response.percentile(from)?.0,
    };
    let is_known = measured.anatomy.count() > 0 && part.count >= 1.0 - 1e-6;
    let split = measured.split.part(&measured.anatomy, from, to);
    is_known.then(|| AnatomyReport::of(group, from, to, from_ns, &part, &split))
}

/// The stages of the response times of a trial.
pub fn timing_report(trial: &Trial) -> TimingReport {
    let mut timing = of_measurement(&trial.measurement);
    timing.generator_cycle_percent = generator_cycle_percent(trial);
    if let Some(plan) = &trial.spec.target.sessions {
        for slow in &mut timing.slowest {
            slow.step = Some(step_name(plan, slow.target));
        }
    }
    timing
}

/// The report without the parts that need the spec of the trial.
pub fn of_measurement(measured: &Measurement) -> TimingReport {
    let responses = measured.pick_up.count();
    let stages = Stage::all().filter_map(|stage| {
        let times = measured.stage(stage).filter(|t| t.max().0 > 0)?;
        Some((stage, quantiles(times)))
    });
    TimingReport {
        clock: (responses > 0).then(|| {
            let stamped = measured.by_kernel as f64 / responses as f64;
            if stamped >= STAMPED_SHARE { ClockKind::Kernel } else { ClockKind::Process }
        }),
        anatomy: AnatomyGroup::SHARES
            .into_iter()
            .filter_map(|(group, ..)| anatomy(measured, group))
            .collect(),
        stages_ns: stages.collect(),
        pick_up_ns: (measured.by_kernel > 0).then(|| quantiles(&measured.pick_up)),
        shared_arrivals: measured.shared_arrivals,
        generator_cycle_percent: None,
        heat_map: measured.series.heat_report(),
        slowest: measured.slowest.operations().to_vec(),
    }
}

fn generator_cycle_percent(trial: &Trial) -> Option<f64> {
    let Load::Closed { pause, .. } = trial.spec.load else {
        return None;
    };
    let (own_ns, cycle_ns) = own_cycle_ns(&trial.measurement)?;
    let cycle_ns = cycle_ns + pause.law.mean_ns();
    let waits_for_us = trial.measurement.by_kernel > 0 && !trial.spec.target.protocol.subscribes();
    waits_for_us.then(|| own_ns / cycle_ns * 100.0)
}

/// The generator's part of a user's cycle, and the cycle: a response, and what the generator takes
/// to see it. Mean values; `None` where no response came.
pub(super) fn own_cycle_ns(measured: &Measurement) -> Option<(f64, f64)> {
    let pacing_ns = measured.stage(knee_load::measure::Stage::Pacing)?.mean_ns();
    let own_ns = pacing_ns + measured.pick_up.mean_ns();
    let cycle_ns = measured.response.mean_ns() + measured.pick_up.mean_ns();
    (cycle_ns > 0.0).then_some((own_ns, cycle_ns))
}

#[cfg(test)]
mod tests;
