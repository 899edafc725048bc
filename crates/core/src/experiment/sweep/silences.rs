//! When the target answered nothing: the silences of all slices on the one timeline of a sweep.

use super::report::{SweepOutage, SweepPauses, SweepSlice};
use crate::trial::report::TrialReport;
use crate::trial::silence::{Silence, joined};
use crate::trial::slice::Slice;
use knee_load::spec::Level;
use knee_load::stats::rounds::median;
use knee_load::time::Nanos;

/// Longest time between two slices of one silence.
const BETWEEN_SLICES: Nanos = Nanos::from_secs(1);
/// Least number of pauses that make a period, …
const PERIODIC: usize = 4;
/// … if the times between nearly all of them are multiples of it, within this share of it. A pause
/// between two slices is not seen.
const REGULAR: f64 = 0.12;
const REGULAR_SHARE: f64 = 0.8;
/// The most pauses whose times are reported.
const TIMES_MAX: usize = 1_000;
/// Pauses from which it is asked whether they come by time or by requests, …
const COMPARED: usize = 6;
/// … and the difference of the logarithms of the likelihoods that decides for requests.
const LIKELIER: f64 = 3.0;

/// Silences of the target and of the generator, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct SweepSilences {
    /// Below a second, without failures.
    pub(super) pauses: Vec<[u64; 2]>,
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
        let of_level = |level: Level| {
            let here = past.iter().filter(move |t| t.level == level);
            let slices: Vec<&Slice> = here.filter_map(TrialReport::slice).collect();
            let judged = Slice::silences_of_level(&slices);
            // Slices of tests have no records, but silences.
            #[cfg(test)]
            let judged = tests::with_own(judged, &slices);
            judged.into_iter().flatten()
        };
        let mut all: Vec<Silence> = levels.into_iter().flat_map(of_level).collect();
        all.sort_by_key(|silence| silence.begin_ns);
        let mut found = SweepSilences::default();
        for silence in joined(all, BETWEEN_SLICES) {
            let ends = [silence.begin_ns, silence.end_ns];
            if silence.of_generator {
                found.stalls.push(ends);
            } else if silence.is_of_target() && silence.is_outage() {
                let hit = past.iter().filter(|t| t.slice().is_some_and(|s| overlaps(s, ends)));
                let mut levels: Vec<Level> = hit.map(|t| t.level).collect();
                levels.dedup();
                found.outages.push(SweepOutage {
                    begin_ns: Some(ends[0]),
                    end_ns: Some(ends[1]),
                    round: 0,
                    levels,
                    failures: silence.failures,
                });
            } else if silence.is_of_target() {
                found.pauses.push(ends);
            }
        }
        found
    }

    /// The silences that slices of a report or of a table tell. An outage without times is one for
    /// each run of slices.
    pub(super) fn of_slices(slices: &[SweepSlice]) -> SweepSilences {
        let mut found = SweepSilences::default();
        let mut last_at = None;
        for (i, slice) in slices.iter().enumerate() {
            for &pause in &slice.pauses_ns {
                if found.pauses.last() != Some(&pause) {
                    found.pauses.push(pause);
                }
            }
            if !slice.has_mark(OUTAGE) {
                continue;
            }
            let ends = slice.outage_ns;
            let known = |o: &&mut SweepOutage| match ends {
                Some([begin, _]) => o.end_ns.is_some_and(|end| begin <= end),
                None => last_at == Some(i.wrapping_sub(1)) && o.begin_ns.is_none(),
            };
            match found.outages.last_mut().filter(known) {
                Some(outage) => {
                    outage.end_ns = ends.map(|ends| ends[1]).max(outage.end_ns);
                    outage.failures = outage.failures.max(slice.errors);
                    if !outage.levels.contains(&slice.level) {
                        outage.levels.push(slice.level);
                    }
                }
                None => found.outages.push(SweepOutage {
                    begin_ns: ends.map(|ends| ends[0]),
                    end_ns: ends.map(|ends| ends[1]),
                    round: slice.round,
                    levels: vec![slice.level],
                    failures: slice.errors,
                }),
            }
            last_at = Some(i);
        }
        found.pauses.sort_unstable();
        found.pauses.dedup();
        found
    }

    /// Marks the slices that were hit, and gives outages their rounds.
    pub(super) fn mark(&mut self, slices: &mut [SweepSlice]) {
        let outages: Vec<[u64; 2]> = self.outages.iter().filter_map(ends_of).collect();
        for slice in slices.iter_mut() {
            let Some(span) = slice.load_begin_ns.zip(slice.end_ns).map(|(a, b)| [a, b]) else {
                continue;
            };
            slice.pauses_ns = hits(&self.pauses, span).collect();
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
                slices.iter().find(|s| s.outage_ns.is_some() && s.outage_ns == ends_of(outage));
            outage.round = hit.map_or(outage.round, |slice| slice.round);
        }
    }
}

fn ends_of(outage: &SweepOutage) -> Option<[u64; 2]> {
    outage.begin_ns.zip(outage.end_ns).map(|(a, b)| [a, b])
}

/// Marks of slices that were hit by an outage, a pause, or a stall of the generator.
pub(super) const OUTAGE: &str = "outage";
pub(super) const PAUSED: &str = "paused";
pub(super) const STALLED: &str = "stalled";

fn overlaps(slice: &Slice, [begin, end]: [u64; 2]) -> bool {
    begin < slice.end_ns && slice.load_begin_ns < end
}

/// Those of these times that overlap this one.
fn hits(all: &[[u64; 2]], [begin, end]: [u64; 2]) -> impl Iterator<Item = [u64; 2]> + '_ {
    all.iter().copied().filter(move |t| t[0] < end && begin < t[1])
}

/// Seconds that two times have in common.
fn common_s(a: [u64; 2], b: [u64; 2]) -> f64 {
    a[1].min(b[1]).saturating_sub(a[0].max(b[0])) as f64 / 1e9
}

/// What of a slice is between the silences of the target.
#[derive(Clone, Copy, Debug)]
pub(super) struct FreeTime {
    /// Good responses in it.
    pub(super) good: f64,
    /// Its length in s.
    pub(super) free_s: f64,
    /// Whole time of the slice, up to the load of the next one, without outages.
    span_s: f64,
    /// Time of its load, likewise.
    loaded_s: f64,
    /// Time of both that the target paused.
    paused_s: f64,
    /// Pauses that began in it.
    pauses: usize,
}

impl FreeTime {
    /// Of a slice, given the load of the next one and the usual throughput at its level.
    ///
    /// A silence lasts from one completion to the next, which is longer than what the target did not
    /// work by one gap between completions. Throughput is credited over the time that operations
    /// took. Where a silence crosses an end of the window, half of what was under way belongs to the
    /// other side.
    pub(super) fn of(
        slice: &SweepSlice,
        next_begin: Option<u64>,
        per_s: f64,
        pause_s: f64,
    ) -> FreeTime {
        let length_s = slice.duration_ns.map_or(1.0, |ns| ns as f64 / 1e9);
        let mut free =
            FreeTime { good: slice.throughput_per_s * length_s, free_s: length_s, ..NOTHING };
        let begin = slice.begin_ns.zip(slice.duration_ns);
        let span = slice.load_begin_ns.zip(slice.end_ns);
        let (Some((begin, ns)), Some((load_begin, end))) = (begin, span) else { return free };
        let window = [begin, begin + ns];
        let whole = [load_begin, next_begin.unwrap_or(end).max(end)];
        free.span_s = whole[1].saturating_sub(whole[0]) as f64 / 1e9;
        free.loaded_s = end.saturating_sub(load_begin) as f64 / 1e9;
        let gap_s = 1.0 / per_s.max(1e-9);
        let response_s = (users(slice.level) / per_s.max(1e-9) - pause_s).max(0.0);
        let pauses = slice.pauses_ns.iter().map(|&pause| (pause, true));
        let outage = slice.outage_ns.map(|outage| (outage, false));
        for (silence, is_pause) in pauses.chain(outage) {
            let seen_s = common_s(silence, silence);
            let not_worked = (1.0 - gap_s / seen_s.max(1e-9)).max(0.0);
            let (within_s, silent_s) =
                (common_s(silence, window) * not_worked, seen_s * not_worked);
            free.free_s -= within_s;
            if is_pause {
                free.paused_s += common_s(silence, whole) * not_worked;
                free.pauses += usize::from(whole[0] <= silence[0] && silence[0] < whole[1]);
            } else {
                free.span_s -= common_s(silence, whole);
                free.loaded_s -= common_s(silence, [load_begin, end]);
            }
            let is_cut = (silence[0] < window[0]) != (silence[1] > window[1]);
            if within_s > 0.0 && is_cut {
                let credit = per_s * response_s / (silent_s + response_s).max(1e-9);
                free.good -= credit * (within_s - silent_s / 2.0);
            }
        }
        if free.free_s < ENOUGH * length_s {
            (free.good, free.free_s) = (0.0, 0.0);
        }
        free.good = free.good.max(0.0);
        free
    }
}

/// Least share of a slice that is free for its throughput to count.
const ENOUGH: f64 = 0.2;

const NOTHING: FreeTime =
    FreeTime { good: 0.0, free_s: 0.0, span_s: 0.0, loaded_s: 0.0, paused_s: 0.0, pauses: 0 };

fn users(level: Level) -> f64 {
    match level {
        Level::Vusers(n) => f64::from(n),
        _ => 0.0,
    }
}

/// How pauses go with time and load.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PauseLaw {
    /// Share of the whole time.
    share: f64,
    /// Seconds for each good response, where they come by requests.
    per_request_s: Option<f64>,
}

impl PauseLaw {
    /// The law of these slices with the throughput between pauses at their levels.
    pub(super) fn of(slices: impl Iterator<Item = (FreeTime, f64)> + Clone) -> PauseLaw {
        let sum = |of: &dyn Fn(&FreeTime, f64) -> f64| -> f64 {
            slices.clone().map(|(free, per_s)| of(&free, per_s)).sum()
        };
        let requests =
            |free: &FreeTime, per_s: f64| (free.loaded_s - free.paused_s).max(0.0) * per_s;
        let paused_s = sum(&|free, _| free.paused_s);
        let [whole_s, served] = [sum(&|free, _| free.span_s), sum(&requests)];
        if whole_s <= 0.0 || paused_s <= 0.0 {
            return PauseLaw::default();
        }
        // Of pauses at a constant rate by time, or by requests (Poisson).
        let likelihood = |of: &dyn Fn(&FreeTime, f64) -> f64, all: f64| {
            sum(&|free, per_s| match free.pauses {
                0 => 0.0,
                n => n as f64 * (of(free, per_s) / all).max(1e-9).ln(),
            })
        };
        let by_time = likelihood(&|free, _| free.span_s, whole_s);
        let by_requests = likelihood(&requests, served);
        let count = sum(&|free, _| free.pauses as f64);
        let is_by_requests = count >= COMPARED as f64 && by_requests > by_time + LIKELIER;
        PauseLaw {
            share: (paused_s / whole_s).min(1.0),
            per_request_s: is_by_requests.then(|| paused_s / served),
        }
    }

    /// Whether pauses come by requests.
    pub(super) fn is_by_requests(&self) -> bool {
        self.per_request_s.is_some()
    }

    /// Share of the time that is not paused at a level with this throughput between pauses.
    pub(super) fn unpaused(&self, per_s: f64) -> f64 {
        match self.per_request_s {
            Some(seconds) => 1.0 / (1.0 + seconds * per_s),
            None => 1.0 - self.share,
        }
    }
}

/// The report of these pauses, which take this share of the time.
pub(super) fn report(pauses: &[[u64; 2]], share: f64, by_requests: bool) -> Option<SweepPauses> {
    let lengths: Vec<u64> = pauses.iter().map(|pause| pause[1] - pause[0]).collect();
    (!pauses.is_empty()).then(|| SweepPauses {
        count: pauses.len() as u64,
        length_ns: lengths.iter().sum::<u64>() / pauses.len() as u64,
        period_ns: if by_requests { None } else { period(pauses) },
        percent: 100.0 * share,
        by_requests,
        times_ns: pauses.iter().take(TIMES_MAX).copied().collect(),
    })
}

/// The period of pauses, if nearly all begin at its multiples.
fn period(pauses: &[[u64; 2]]) -> Option<u64> {
    let gaps: Vec<f64> = pauses.windows(2).map(|p| (p[1][0] - p[0][0]) as f64).collect();
    if pauses.len() < PERIODIC {
        return None;
    }
    // The shortest gaps have one period, others a multiple.
    let least = median(gaps.iter().copied());
    let (mut ns, mut periods) = (0.0, 0.0);
    for divisor in [1.0, 2.0, 3.0] {
        let tried = least / divisor;
        let is_regular = |gap: &&f64| {
            let turns = (**gap / tried).round();
            turns >= 1.0 && (**gap / tried - turns).abs() <= REGULAR * turns.sqrt()
        };
        let regular: Vec<&f64> = gaps.iter().filter(is_regular).collect();
        if regular.len() as f64 >= REGULAR_SHARE * gaps.len() as f64 {
            ns = regular.iter().copied().sum();
            periods = regular.iter().map(|gap| (**gap / tried).round()).sum();
            break;
        }
    }
    (periods > 0.0).then(|| (ns / periods) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The silences of slices that have no records.
    pub(super) fn with_own(judged: Vec<Vec<Silence>>, slices: &[&Slice]) -> Vec<Vec<Silence>> {
        let is_none = judged.iter().all(Vec::is_empty);
        if is_none { slices.iter().map(|s| s.silences.clone()).collect() } else { judged }
    }

    #[test]
    fn a_period_is_that_of_nearly_all_pauses() {
        let at = |ms: u64| [ms * 1_000_000, (ms + 200) * 1_000_000];
        // The fourth and the ninth were not seen.
        let seen = (0..12).filter(|k| ![3, 8].contains(k));
        let pauses: Vec<[u64; 2]> = seen.map(|k| at(3_000 * k + 20 * (k % 3))).collect();
        let found = report(&pauses, 0.067, false).expect("pauses");
        let period_ms = found.period_ns.expect("a period") as f64 / 1e6;
        assert!((period_ms - 3_000.0).abs() < 10.0, "{period_ms}");
        assert_eq!((found.count, found.length_ns), (10, 200_000_000));
        let mut rng = knee_load::rng::stream(1, 7);
        let falsely = (0..200).filter(|_| {
            let mut ms = 0;
            let mut next = || {
                ms += 200 + (knee_load::rng::exp1(&mut rng) * 1_400.0) as u64;
                at(ms)
            };
            let pauses: Vec<[u64; 2]> = (0..20).map(|_| next()).collect();
            period(&pauses).is_some()
        });
        let count = falsely.count();
        assert!(count <= 4, "{count} of 200");
    }
}
