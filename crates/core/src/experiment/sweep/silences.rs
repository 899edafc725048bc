//! When the target answered nothing: the silences of all slices on the one timeline of a sweep.

use super::report::{SweepOutage, SweepSlice};
use crate::trial::report::TrialReport;
use crate::trial::silence::{Silence, joined};
use crate::trial::slice::Slice;
use knee_load::spec::Level;
use knee_load::time::Nanos;

/// Longest time between two slices of one silence.
const BETWEEN_SLICES: Nanos = Nanos::from_secs(1);

/// Silences of the target and of the generator, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct SweepSilences {
    /// Below a second, without failures.
    pub(super) pauses: Vec<Silence>,
    pub(super) outages: Vec<SweepOutage>,
    /// Those that the generator made.
    pub(super) stalls: Vec<[u64; 2]>,
}

impl SweepSilences {
    /// The silences in these trials. Those of one level are judged together, and what begins in one
    /// slice and lasts into the next is one.
    pub(super) fn of_trials(past: &[TrialReport]) -> SweepSilences {
        let mut levels: Vec<Level> = Vec::new();
        for trial in past {
            if !levels.contains(&trial.level) {
                levels.push(trial.level);
            }
        }
        let level_slices = |level: &Level| -> Vec<&Slice> {
            past.iter().filter(|t| t.level == *level).filter_map(TrialReport::slice).collect()
        };
        let slices: Vec<Vec<&Slice>> = levels.iter().map(level_slices).collect();
        let judged = Slice::silences_of_levels(&slices);
        // Slices of tests have no records, but silences.
        #[cfg(test)]
        let judged: Vec<Vec<Vec<Silence>>> = if judged.iter().flatten().all(Vec::is_empty) {
            let recorded = |level: &Vec<&Slice>| level.iter().map(|s| s.silences.clone()).collect();
            slices.iter().map(recorded).collect()
        } else {
            judged
        };
        let mut in_order: Vec<Silence> = judged.into_iter().flatten().flatten().collect();
        in_order.sort_by_key(|silence| silence.begin_ns);
        let mut silences = SweepSilences::default();
        for silence in joined(in_order, BETWEEN_SLICES) {
            let ends = [silence.begin_ns, silence.end_ns];
            if silence.of_generator {
                silences.stalls.push(ends);
            } else if silence.is_of_target() && silence.is_outage() {
                let is_hit = |s: &Slice| ends[0] < s.end_ns && s.load_begin_ns < ends[1];
                let mut levels: Vec<Level> = Vec::new();
                for trial in past.iter().filter(|t| t.slice().is_some_and(is_hit)) {
                    if !levels.contains(&trial.level) {
                        levels.push(trial.level);
                    }
                }
                silences.outages.push(SweepOutage {
                    begin_ns: Some(ends[0]),
                    end_ns: Some(ends[1]),
                    round: 0,
                    levels,
                    failures: silence.failures,
                });
            } else if silence.is_of_target() {
                silences.pauses.push(silence);
            }
        }
        silences
    }

    /// The silences that slices of a report or of a table state. Successive slices with an outage
    /// without times are one outage.
    pub(super) fn of_slices(slices: &[SweepSlice]) -> SweepSilences {
        let mut silences = SweepSilences::default();
        let pauses = slices.iter().flat_map(|slice| &slice.pauses_ns);
        silences.pauses = pauses
            .map(|&[begin_ns, end_ns]| Silence { begin_ns, end_ns, ..Silence::default() })
            .collect();
        silences.pauses.dedup();
        for (i, slice) in slices.iter().enumerate().filter(|(_, slice)| slice.has_mark(OUTAGE)) {
            let [begin_ns, end_ns] = [0, 1].map(|end| slice.outage_ns.map(|ends| ends[end]));
            let is_next = i > 0 && slices[i - 1].has_mark(OUTAGE);
            match silences.outages.last_mut().filter(|_| is_next) {
                Some(last) => {
                    last.end_ns = end_ns.max(last.end_ns);
                    last.failures += slice.errors;
                    if !last.levels.contains(&slice.level) {
                        last.levels.push(slice.level);
                    }
                }
                None => silences.outages.push(SweepOutage {
                    begin_ns,
                    end_ns,
                    round: slice.round,
                    levels: vec![slice.level],
                    failures: slice.errors,
                }),
            }
        }
        silences
    }

    /// Marks the slices that were hit, and gives outages their rounds.
    pub(super) fn mark(&mut self, slices: &mut [SweepSlice]) {
        let outages: Vec<[u64; 2]> = self.outages.iter().filter_map(outage_span).collect();
        let pauses: Vec<[u64; 2]> = self.pauses.iter().map(|p| [p.begin_ns, p.end_ns]).collect();
        for slice in slices.iter_mut() {
            let Some(span) = slice.load_begin_ns.zip(slice.end_ns).map(|(a, b)| [a, b]) else {
                continue;
            };
            slice.pauses_ns = hits(&pauses, span).collect();
            slice.outage_ns = hits(&outages, span).max_by_key(|o| o[1] - o[0]);
            let window = slice.begin_ns.zip(slice.duration_ns).map(|(a, ns)| [a, a + ns]);
            let is_stalled = window.is_some_and(|w| hits(&self.stalls, w).next().is_some());
            for (is_hit, mark) in [
                (!slice.pauses_ns.is_empty(), PAUSED),
                (slice.outage_ns.is_some(), OUTAGE),
                (is_stalled && !slice.has_mark(STALLED), STALLED),
            ] {
                slice.marks.extend(is_hit.then(|| mark.to_owned()));
            }
        }
        for outage in &mut self.outages {
            let hit =
                slices.iter().find(|s| s.outage_ns.is_some() && s.outage_ns == outage_span(outage));
            outage.round = hit.map_or(outage.round, |slice| slice.round);
        }
    }
}

fn outage_span(outage: &SweepOutage) -> Option<[u64; 2]> {
    outage.begin_ns.zip(outage.end_ns).map(|(a, b)| [a, b])
}

/// Marks of slices that were hit by an outage, a pause, or a stall of the generator.
pub(super) const OUTAGE: &str = "outage";
pub(super) const PAUSED: &str = "paused";
pub(super) const STALLED: &str = "stalled";

/// The spans that overlap the span from `begin` to `end`.
fn hits(spans: &[[u64; 2]], [begin, end]: [u64; 2]) -> impl Iterator<Item = [u64; 2]> + '_ {
    spans.iter().copied().filter(move |t| t[0] < end && begin < t[1])
}

/// Seconds that two times have in common.
fn common_s(a: [u64; 2], b: [u64; 2]) -> f64 {
    a[1].min(b[1]).saturating_sub(a[0].max(b[0])) as f64 / 1e9
}

/// Part of a slice between the silences of the target.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FreeTime {
    /// Good responses in it.
    pub(super) good: f64,
    /// Its length in s.
    pub(super) free_s: f64,
    /// Time from its load to the load of the next one, in s, without outages.
    pub(super) span_s: f64,
    /// Time of it that the target paused, and how often.
    pub(super) paused_s: f64,
    pub(super) pauses: f64,
}

impl FreeTime {
    /// Computes it from a slice, its place on the timeline if it has one, the begin of the next
    /// slice's load and the usual throughput at its level. Where users catch up after a pause,
    /// throughput is that of the whole time.
    pub(super) fn of(
        slice: &SweepSlice,
        place: Option<&Slice>,
        next_begin: Option<u64>,
        per_s: f64,
        catches_up: bool,
    ) -> FreeTime {
        let length_s = slice.duration_ns.map_or(1.0, |ns| ns as f64 / 1e9);
        let mut free = FreeTime {
            good: slice.throughput_per_s * length_s,
            free_s: length_s,
            ..FreeTime::default()
        };
        let span = slice.load_begin_ns.zip(slice.end_ns);
        let (Some((begin, end)), Some(length_ns)) = (span, slice.duration_ns) else { return free };
        let pauses = if catches_up { &[][..] } else { &slice.pauses_ns[..] };
        let mut silences: Vec<[u64; 2]> = pauses.iter().copied().chain(slice.outage_ns).collect();
        // While a worker of the generator is stalled the target waits for it.
        let stalls = place.filter(|_| !catches_up).into_iter().flat_map(Slice::stalls);
        let stalls: Vec<[u64; 2]> = stalls.collect();
        let window = slice.begin_ns.map(|begin| [begin, begin + length_ns]);
        let mut stalled_s = 0.0;
        if let Some(window) = window {
            silences.extend(hits(&stalls, window));
            stalled_s = stalls.iter().map(|&stall| common_s(stall, window)).sum();
        }
        silences.sort_unstable();
        // Up to the next response the target worked on it.
        let paused_s = |pause: [u64; 2], time: [u64; 2]| {
            let worked = 1.0 / (per_s * common_s(pause, pause)).max(1.0);
            common_s(pause, time) * (1.0 - worked)
        };
        let between = place.and_then(|place| place.between(length_ns, &silences));
        if let Some((good, free_ns)) = between.filter(|_| !silences.is_empty()) {
            (free.good, free.free_s) = (good, free_ns / 1e9);
        } else if let Some(begin) = slice.begin_ns {
            let window = [begin, begin + length_ns];
            free.free_s -= silences.iter().map(|&silence| paused_s(silence, window)).sum::<f64>();
        }
        if free.free_s < ENOUGH * length_s || stalled_s > STALLED_MOST * length_s {
            (free.good, free.free_s) = (0.0, 0.0);
        }
        let whole = [begin, next_begin.unwrap_or(end).max(end)];
        let out_s = slice.outage_ns.map_or(0.0, |outage| common_s(outage, whole));
        free.span_s = common_s(whole, whole) - out_s;
        for &pause in &slice.pauses_ns {
            let within_s = common_s(pause, whole);
            free.paused_s += within_s;
            free.pauses += within_s / common_s(pause, pause).max(1e-9);
        }
        free
    }
}

/// Least share of a slice that is free for its throughput to count.
const ENOUGH: f64 = 0.2;
/// Largest share of a slice in which the generator was stalled: what is left of more is bursts of
/// what had waited.
const STALLED_MOST: f64 = 0.5;
