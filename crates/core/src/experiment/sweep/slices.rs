//! The slices as reported: what each measured, what it weighs, and what was amiss in it.

use super::course::level_of;
use super::infer::Inference;
use crate::experiment::sweep::report::{SweepOutage, SweepSlice};
use crate::measure::error_share;
use crate::spec::Level;
use crate::stats::rounds::median;
use crate::trial::report::{TrialReport, Verdict};

/// A silence is an outage from this length on, …
const OUTAGE_NS: u64 = 250_000_000;
/// … where this many responses would have come meanwhile, …
const EXPECTED: f64 = 8.0;
/// … and it exceeds this many mean response times.
const RESPONSES: f64 = 5.0;
/// Failures beyond this share more than the level has otherwise are a mark.
const MORE_FAIL: f64 = 0.01;
/// Steal from this share of the host's processor time on is a mark.
const STEAL_PERCENT: f64 = 2.0;
/// A slice below this weight is an outlier.
const LOW_WEIGHT: f64 = 0.45;
/// Silences in slices are outages of one cause where no answer came between them.
const SAME_OUTAGE_GAP_NS: u64 = 1_000_000_000;

/// All slices in the order in which they were measured.
pub(super) fn slices(found: &Inference) -> Vec<SweepSlice> {
    let speeds = host_speeds(found);
    (0..found.past.len())
        .map(|i| {
            let trial = &found.past[i];
            let times = &trial.response_time_ns;
            SweepSlice {
                round: found.rounds[i],
                level: trial.level,
                begin_ns: begin_ns(trial),
                duration_ns: trial.duration_ns,
                throughput_per_s: trial.successes_per_s(),
                mean_ns: times.mean,
                p90_ns: times.p90,
                errors: trial.outcomes.errors(),
                cpu_us_per_op: trial.generator.cpu_us_per_op(),
                host_speed: speeds[i],
                weight: found.weights[i],
                marks: marks(found, i),
            }
        })
        .collect()
}

fn begin_ns(trial: &TrialReport) -> u64 {
    trial.slice().map_or(0, |slice| slice.begin_ns)
}

fn marks(found: &Inference, i: usize) -> Vec<String> {
    let trial = &found.past[i];
    let fails = error_share(&trial.outcomes) > usual_failures(found, i) + MORE_FAIL;
    let stolen = trial.generator.steal_percent.unwrap_or(0.0);
    [
        (found.rounds[i] == 0, "explored"),
        (silence(found, i).is_some(), "outage"),
        (fails, "errors"),
        (!found.is_kept(i), "other_regime"),
        (trial.verdict == Verdict::Invalid, "invalid"),
        (stolen >= STEAL_PERCENT, "stolen"),
        (found.weights[i] < LOW_WEIGHT && found.is_kept(i), "outlier"),
    ]
    .into_iter()
    .filter(|mark| mark.0)
    .map(|mark| mark.1.to_owned())
    .collect()
}

fn usual_failures(found: &Inference, i: usize) -> f64 {
    let same = found.past.iter().filter(|t| t.level == found.past[i].level);
    median(same.map(|t| error_share(&t.outcomes)))
}

/// When a slice shows an outage: begin and end, from the begin of the sweep.
fn silence(found: &Inference, i: usize) -> Option<[u64; 2]> {
    let trial = &found.past[i];
    let slice = trial.slice()?;
    let [start, end] = slice.silence_ns?;
    let same = || {
        let level = level_of(trial);
        let others = found.past.iter().filter(move |t| level_of(t) == level);
        others.filter(|t| t.completed > 0)
    };
    // Where few slices of a level tell, those with fewer users do.
    let least = found.past.iter().filter(|t| level_of(t) <= level_of(trial));
    let per_s = median(same().map(|t| t.successes_per_s()));
    let per_s = per_s.max(median(least.map(|t| t.successes_per_s())));
    let response_ns = median(
        same()
            .filter_map(|t| t.response_time_ns.p50)
            .map(|ns| ns as f64),
    );
    let length = end - start;
    let is_long = length >= OUTAGE_NS.min(trial.duration_ns * 9 / 10);
    let is_told = per_s * length as f64 / 1e9 >= EXPECTED;
    let is_outage = is_long && is_told && length as f64 >= RESPONSES * response_ns;
    is_outage.then(|| [slice.begin_ns + start, slice.begin_ns + end])
}

/// Times without a response, those of neighbouring slices as one.
pub(super) fn outages(found: &Inference) -> Vec<SweepOutage> {
    let mut all: Vec<SweepOutage> = Vec::new();
    for (i, trial) in found.past.iter().enumerate() {
        let Some([begin, end]) = silence(found, i) else {
            continue;
        };
        let failures = trial.outcomes.errors();
        let goes_on = |o: &&mut SweepOutage| {
            let gap = begin.saturating_sub(o.end_ns);
            gap <= SAME_OUTAGE_GAP_NS && begin <= begin_ns(trial) + SAME_OUTAGE_GAP_NS / 20
        };
        match all.last_mut().filter(goes_on) {
            Some(last) => {
                last.end_ns = end;
                last.failures += failures;
                if !last.levels.contains(&trial.level) {
                    last.levels.push(trial.level);
                }
            }
            None => all.push(SweepOutage {
                begin_ns: begin,
                end_ns: end,
                levels: vec![trial.level],
                failures,
            }),
        }
    }
    all
}

/// How fast the host ran in each slice, from the generator's processor time per operation against
/// the median of the level; 1 is the median.
fn host_speeds(found: &Inference) -> Vec<Option<f64>> {
    let usual = |level: Level| {
        let here = (0..found.past.len()).filter(|&i| found.rounds[i] > 0);
        let here = here.filter(|&i| found.past[i].level == level);
        median(here.filter_map(|i| found.past[i].generator.cpu_us_per_op()))
    };
    found
        .past
        .iter()
        .enumerate()
        .map(|(i, t)| {
            Some(usual(t.level) / t.generator.cpu_us_per_op()?)
                .filter(|s| found.rounds[i] > 0 && *s > 0.0)
        })
        .collect()
}

/// The host's speed by round, 1 the median.
pub(super) fn speed_by_round(slices: &[SweepSlice]) -> Vec<f64> {
    let last = slices.iter().map(|s| s.round).max().unwrap_or(0);
    let of = |round: u32| {
        let here = slices.iter().filter(|s| s.round == round);
        median(here.filter_map(|s| s.host_speed))
    };
    let speeds: Vec<f64> = (1..=last).map(of).collect();
    let is_known = !speeds.is_empty() && speeds.iter().all(|s| *s > 0.0);
    if is_known { speeds } else { Vec::new() }
}
