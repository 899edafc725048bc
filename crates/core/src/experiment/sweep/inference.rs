//! Inference from slices in rounds: the throughput of each level, with the target's pauses at their
//! share of the whole time, and how it went with time.
//!
//! All slices of a level are pooled. A slice does not count for evidence of its own alone: an
//! outage, a disturbed generator or host, the other side of a lasting change. Intervals are by the
//! jackknife over the rounds, each of which has all levels.

use super::SweepSpec;
use super::axis::level_vusers;
use super::knee::{self, CurveShape};
use super::report::{SweepSlice, ThroughputCycle};
use super::rows;
use super::silences::{FreeTime, OUTAGE, SweepSilences};
use super::table::LevelPoint;
use crate::trial::merged_slices::merged;
use crate::trial::report::TrialReport;
use crate::trial::silence::{PausesReport, pauses_report};
use knee_load::measure::error_share;
use knee_load::stats::course::{Course, FittedCourse, TimedValue, course};
use knee_load::stats::rounds::{self, BlockCell, Estimate, jackknife, median};
use knee_load::stats::sample::{self, t_beyond};
use knee_load::time::Nanos;

/// Share of failures beyond which a trial is evidence of them.
pub(super) const FAILED_SHARE: f64 = 0.01;
/// Smallest half width of a knee: no curve is exactly that of its asymptotes.
const KNEE_MIN: f64 = 0.02;
/// Smallest half width of an interval: a window cuts operations at its ends, and the levels of a
/// plateau may differ by so little.
const HALF_MIN: f64 = 0.005;
/// Factor of an interval where a drift or a cycle was taken out: its fit takes parameters, and may
/// be that of another period.
const LEVELLED: f64 = 1.25;
/// Share of the maximum from which a level shows changes of the capacity.
const SATURATED: f64 = 0.5;
/// Smallest factor of a lasting change.
const CHANGE_MIN: f64 = 1.12;
/// Whole rounds on either side of a lasting change: the rows rest on those after it.
const SIDE_ROUNDS: usize = 3;
/// Whole rounds after what may become a lasting change, for which the sweep goes on.
const PENDING_ROUNDS: usize = 1;
/// Smallest drift and amplitude of a cycle, as logarithms.
const DRIFT_MIN: f64 = 0.05;
const CYCLE_MIN: f64 = 0.04;
/// Share of a slice between pauses from which it shows changes with time. What is left of others is
/// known less well.
const MOST: f64 = 0.95;
/// Largest ratio of throughputs at which the target pauses alike, where that depends on the load.
const ALIKE: f64 = 2.0;
/// Standard errors by which the number of pauses at such levels differs from their share of the
/// time where it depends on the load. Periodic pauses vary less.
const DEPENDS_SIGMAS: f64 = 3.0;
/// Share of the variance that the host's speed has to explain to be the cause.
const EXPLAINED: f64 = 0.25;
/// Least slices of one level for an interval without rounds.
const REPEATS_MIN: usize = 3;

/// Slices of one level that form its row.
#[derive(Clone, Debug)]
pub(super) struct LevelSlices {
    pub(super) level: u32,
    /// Numbers of the slices.
    pub(super) used: Vec<usize>,
    /// Throughput, and that between the target's pauses.
    per_s: f64,
    between_per_s: f64,
    /// Half the width of its interval, and of that against other levels, as logarithms.
    half_width: Option<f64>,
    relative_half: Option<f64>,
    /// Whether it was explored only, and not measured in rounds.
    pub(super) is_explored: bool,
}

/// A lasting change of what the target serves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LastingChange {
    /// First slice after it.
    pub(super) at: usize,
    /// Factor of the throughput after it.
    pub(super) factor: f64,
    /// Whether all slices before it are explorations.
    pub(super) is_explored: bool,
}

/// Result of the inference.
#[derive(Clone, Debug)]
pub(super) struct Inference<'a> {
    /// Trials of the slices; none for a table measured elsewhere.
    pub(super) past: &'a [TrialReport],
    pub(super) slices: Vec<SweepSlice>,
    pub(super) rows: Vec<LevelSlices>,
    pub(super) silences: SweepSilences,
    /// Standard deviation of the slices from their level and round.
    pub(super) spread: Option<f64>,
    pub(super) change: Option<LastingChange>,
    /// Change of the logarithm from begin to end.
    pub(super) drift: Option<f64>,
    pub(super) cycle: Option<ThroughputCycle>,
    /// Whether more rounds may show a lasting change.
    is_pending: bool,
    free: Vec<FreeTime>,
    /// Levels that are measured in rounds.
    levels: Vec<u32>,
    /// Rounds of which slices count.
    rounds: Vec<u32>,
    /// Throughput of all levels between the target's pauses.
    rates: Vec<(u32, f64)>,
    pause_s: Option<f64>,
}

impl<'a> Inference<'a> {
    /// Infers from trials with these rounds; round 0 is exploration.
    pub(super) fn of(spec: &SweepSpec, past: &'a [TrialReport], rounds: &[u32]) -> Inference<'a> {
        let mut slices = rows::slices(past, rounds, spec.pause_s());
        let mut silences = SweepSilences::of_trials(past);
        silences.mark(&mut slices);
        Inference::new(slices, silences, past, spec.pause_s())
    }

    /// Infers from slices of a report or of a table measured elsewhere.
    pub(super) fn of_slices(slices: Vec<SweepSlice>) -> Inference<'a> {
        let silences = SweepSilences::of_slices(&slices);
        Inference::new(slices, silences, &[], None)
    }

    fn new(
        slices: Vec<SweepSlice>,
        silences: SweepSilences,
        past: &'a [TrialReport],
        pause_s: Option<f64>,
    ) -> Inference<'a> {
        let levels_from = |least_round: u32| {
            let counted = slices.iter().filter(|s| s.round >= least_round);
            let mut levels: Vec<u32> = counted.map(|s| level_vusers(s.level)).collect();
            levels.sort_unstable();
            levels.dedup();
            levels
        };
        let (all_levels, levels) = (levels_from(0), levels_from(1));
        let mut inference = Inference {
            past,
            rows: Vec::new(),
            silences,
            spread: None,
            change: None,
            drift: None,
            cycle: None,
            is_pending: false,
            free: Vec::new(),
            levels,
            rounds: Vec::new(),
            rates: Vec::new(),
            pause_s,
            slices,
        };
        inference.compute_free_times();
        inference.set_weights();
        inference.find_changes_over_time();
        inference.set_weights();
        inference.spread = inference.residual_spread();
        let rate =
            |&level: &u32| (level, inference.between(&inference.used(level), None).unwrap_or(0.0));
        inference.rates = all_levels.iter().map(rate).collect();
        inference.rows = all_levels.iter().map(|&level| inference.row(level)).collect();
        inference
    }

    /// Number of the last round; 0 without rounds.
    pub(super) fn last_round(&self) -> u32 {
        self.slices.iter().map(|s| s.round).max().unwrap_or(0)
    }

    fn level(&self, slice: usize) -> u32 {
        level_vusers(self.slices[slice].level)
    }

    fn at_level(&self, level: u32) -> impl Iterator<Item = usize> + '_ {
        (0..self.slices.len()).filter(move |&i| self.level(i) == level)
    }

    /// Computes the time between silences in each slice.
    fn compute_free_times(&mut self) {
        let free_time = |i: usize| {
            let level_slices = || self.slices.iter().filter(|s| s.level == self.slices[i].level);
            let quiet = level_slices().filter(|s| s.pauses_ns.is_empty() && s.outage_ns.is_none());
            let mut per_s = median(quiet.map(|s| s.throughput_per_s));
            if per_s <= 0.0 {
                per_s = level_slices().map(|s| s.throughput_per_s).fold(0.0, f64::max);
            }
            let next = self.slices.get(i + 1).and_then(|next| next.load_begin_ns);
            let place = self.past.get(i).and_then(TrialReport::slice);
            FreeTime::of(&self.slices[i], place, next, per_s, self.catches_up())
        };
        self.free = (0..self.slices.len()).map(free_time).collect();
    }

    /// Whether users pause, so that they catch up after a pause of the target.
    fn catches_up(&self) -> bool {
        !self.past.is_empty() && self.pause_s != Some(0.0)
    }

    /// Sets the weights. Where most slices of a level were disturbed, that is how the host is.
    fn set_weights(&mut self) {
        let is_kept: Vec<bool> = (0..self.slices.len()).map(|i| self.is_kept(i)).collect();
        for (i, is_kept) in is_kept.into_iter().enumerate() {
            let level_slices: Vec<usize> =
                self.at_level(self.level(i)).filter(|&k| self.slices[k].round > 0).collect();
            let disturbed =
                level_slices.iter().filter(|&&k| rows::is_disturbed(&self.slices[k])).count();
            let is_rare = 2 * disturbed <= level_slices.len();
            let is_used = self.free[i].free_s > 0.0 || !self.slices[i].pauses_ns.is_empty();
            let slice = &mut self.slices[i];
            // One that the generator's stalls take up leaves nothing to count.
            let is_out =
                !is_used || slice.has_mark(OUTAGE) || (rows::is_disturbed(slice) && is_rare);
            slice.weight = if is_kept && !is_out { 1.0 } else { 0.0 };
            slice.marks.retain(|mark| mark != OTHER_REGIME);
            slice.marks.extend((!is_kept).then(|| OTHER_REGIME.to_owned()));
        }
        let counted = self.slices.iter().filter(|s| s.round > 0 && s.weight > 0.0);
        self.rounds = counted.map(|s| s.round).collect();
        self.rounds.sort_unstable();
        self.rounds.dedup();
    }

    /// Whether a slice is after the lasting change, if there is one.
    fn is_kept(&self, slice: usize) -> bool {
        self.change.is_none_or(|c| slice >= c.at)
    }

    /// Slices of a row: those that count, else those on the side that counts, else all that served
    /// anything.
    fn used(&self, level: u32) -> Vec<usize> {
        let in_rounds = |i: &usize| self.slices[*i].round > 0;
        let counts = |i: &usize| in_rounds(i) && self.slices[*i].weight > 0.0;
        let served = |i: &usize| match self.past.get(*i) {
            Some(trial) => trial.completed > 0,
            None => self.slices[*i].throughput_per_s > 0.0,
        };
        let is_free = |i: &usize| self.free[*i].free_s > 0.0;
        // Operations that outlast a slice complete in it by chance.
        let fits = |i: &usize| {
            let SweepSlice { mean_ns, duration_ns, .. } = &self.slices[*i];
            mean_ns.zip(*duration_ns).is_none_or(|(mean, length)| mean <= length)
        };
        let wanted: [&dyn Fn(&usize) -> bool; 6] = [
            &|i| counts(i) && is_free(i) && fits(i),
            &|i| counts(i) && is_free(i),
            &|i| in_rounds(i) && self.is_kept(*i) && served(i),
            &|i| in_rounds(i) && served(i),
            &|i| served(i),
            &|_| true,
        ];
        let filtered = |wanted: &&dyn Fn(&usize) -> bool| -> Vec<usize> {
            self.at_level(level).filter(*wanted).collect()
        };
        wanted.iter().map(filtered).find(|used| !used.is_empty()).unwrap_or_default()
    }

    /// Throughput of these slices between the target's pauses, but for a round.
    fn between(&self, used: &[usize], without: Option<u32>) -> Option<f64> {
        let kept = || used.iter().filter(|&&i| Some(self.slices[i].round) != without);
        let (good, free_s) = kept().fold((0.0, 0.0), |(good, free_s), &i| {
            (good + self.free[i].good, free_s + self.free[i].free_s)
        });
        if free_s > 0.0 {
            return Some(good / free_s);
        }
        let per_s: Vec<f64> = kept().map(|&i| self.slices[i].throughput_per_s).collect();
        (!per_s.is_empty()).then(|| sample::mean(&per_s))
    }

    /// Share of the time that the target pauses at a level with this throughput between pauses, but
    /// for a round. Pauses come by time, unless levels whose throughput is alike have significantly
    /// more or fewer of them: then they come by the number of requests, and these levels count.
    fn paused(&self, between: f64, without: Option<u32>) -> f64 {
        let is_alike = |i: usize| {
            let per_s = self.rates.iter().find(|(level, _)| *level == self.level(i));
            let ratio = per_s.map_or(0.0, |(_, per_s)| (per_s / between).max(between / per_s));
            ratio <= ALIKE
        };
        let sum = |counts: &dyn Fn(usize) -> bool| {
            let is_left = |&i: &usize| {
                let round = self.slices[i].round;
                counts(i) && (round == 0 || Some(round) != without)
            };
            let left = (0..self.slices.len()).filter(is_left);
            left.fold([0.0; 3], |[paused_s, span_s, pauses], i| {
                let free = &self.free[i];
                [paused_s + free.paused_s, span_s + free.span_s, pauses + free.pauses]
            })
        };
        let [whole, alike] = [sum(&|_| true), sum(&is_alike)];
        let part = alike[1] / whole[1].max(f64::MIN_POSITIVE);
        let error = (whole[2] * part * (1.0 - part)).sqrt();
        let depends = (alike[2] - whole[2] * part).abs() > DEPENDS_SIGMAS * error;
        let [paused_s, span_s, pauses] = if depends && alike[1] > 0.0 { alike } else { whole };
        // Up to the next response the target worked on it.
        let worked_s = if between > 0.0 { pauses / between } else { 0.0 };
        if span_s > 0.0 { (paused_s - worked_s).max(0.0) / span_s } else { 0.0 }
    }

    /// The sustained throughput, given that between pauses, without a round.
    fn sustained(&self, between: f64, without: Option<u32>) -> f64 {
        if self.catches_up() { between } else { between * (1.0 - self.paused(between, without)) }
    }

    /// Logarithm of the throughput of each of these levels, but for a round.
    fn logs(&self, levels: &[Vec<usize>], without: Option<u32>) -> Option<Vec<f64>> {
        let log = |used: &Vec<usize>| {
            let between = self.between(used, without).or_else(|| self.between(used, None))?;
            let per_s = self.sustained(between, without);
            (per_s > 0.0).then(|| per_s.ln())
        };
        levels.iter().map(log).collect()
    }

    /// Estimates `statistic` of the logarithms of the throughputs of these levels.
    fn estimate(&self, levels: &[u32], statistic: impl Fn(&[f64]) -> f64) -> Option<Estimate> {
        let used: Vec<Vec<usize>> = levels.iter().map(|&level| self.used(level)).collect();
        let is_in_rounds = used.iter().flatten().all(|&i| self.slices[i].round > 0);
        if !is_in_rounds {
            return None;
        }
        let estimate = jackknife(self.rounds.len(), |left_out| {
            let without = left_out.map(|i| self.rounds[i]);
            self.logs(&used, without).map(|logs| statistic(&logs))
        })?;
        let is_levelled = self.drift.is_some() || self.cycle.is_some();
        let factor = if is_levelled { LEVELLED } else { 1.0 };
        Some(Estimate { half_width: (factor * estimate.half_width).max(HALF_MIN), ..estimate })
    }

    fn row(&self, level: u32) -> LevelSlices {
        let used = self.used(level);
        let between_per_s = self.between(&used, None).unwrap_or(0.0);
        let per_s = self.sustained(between_per_s, None);
        let is_in_rounds = self.levels.contains(&level);
        let is_served = |&(other, rate): &(u32, f64)| self.levels.contains(&other) && rate > 0.0;
        let served: Vec<u32> =
            self.rates.iter().copied().filter(is_served).map(|(other, _)| other).collect();
        let place = served.iter().position(|&l| l == level);
        let own = place.and_then(|_| self.estimate(&[level], |logs| logs[0]));
        let relative = place.and_then(|place| {
            let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
            self.estimate(&served, |logs| logs[place] - mean(logs))
        });
        LevelSlices {
            level,
            used,
            per_s,
            between_per_s,
            half_width: own.map(|e| e.half_width),
            relative_half: relative.map(|e| e.half_width),
            is_explored: !self.levels.is_empty() && !is_in_rounds,
        }
    }

    /// Logarithm of the throughput of a slice between pauses, where they leave most of it.
    fn value(&self, slice: usize) -> Option<f64> {
        let FreeTime { good, free_s, .. } = self.free[slice];
        let length_s = self.slices[slice].duration_ns.map_or(1.0, |ns| ns as f64 / 1e9);
        (good > 0.0 && free_s > MOST * length_s).then(|| (good / free_s).ln())
    }

    /// Slices at saturated levels that count, in the order of their times.
    fn timeline(&self) -> Vec<usize> {
        let middle = |level: &u32| {
            let weighted = self.at_level(*level).filter(|&i| self.slices[i].weight > 0.0);
            median(weighted.filter_map(|i| self.value(i)).map(f64::exp))
        };
        let most = self.levels.iter().map(middle).fold(0.0, f64::max);
        let busy = self.levels.iter().filter(|level| middle(level) >= SATURATED * most);
        let busy: Vec<u32> = busy.copied().collect();
        let at_busy = (0..self.slices.len()).filter(|&i| busy.contains(&self.level(i)));
        let counts = |&i: &usize| self.slices[i].weight > 0.0 && !self.fails_unlike_others(i);
        at_busy.filter(counts).filter(|&i| self.value(i).is_some()).collect()
    }

    /// Whether operations failed in a slice, and not in all others of its level: it says nothing of
    /// the target's speed.
    fn fails_unlike_others(&self, slice: usize) -> bool {
        let share = |i: usize| self.past.get(i).map_or(0.0, |trial| error_share(&trial.outcomes));
        let mut others = self.at_level(self.level(slice)).filter(|&i| i != slice);
        share(slice) > FAILED_SHARE && others.any(|i| share(i) <= FAILED_SHARE)
    }

    /// When a slice was measured.
    fn time(&self, slice: usize) -> f64 {
        self.slices[slice].begin_ns.map_or(slice as f64, |ns| ns as f64)
    }

    /// Gives each slice what it would have served at the target's mean speed over the rounds, so
    /// that levels differ by their load, and not by when they were measured.
    fn level_out(&mut self, fitted: &FittedCourse) {
        // Where nothing was served, nothing is known of its speed.
        let is_known = |&i: &usize| self.slices[i].round > 0 && self.value(i).is_some();
        let mut times = (0..self.slices.len()).filter(is_known);
        let first = times.next().map_or(0.0, |i| self.time(i));
        let last = times.next_back().map_or(first, |i| self.time(i));
        let at = |part: u32| fitted.at(first + (last - first) * f64::from(part) / 200.0).exp();
        let mean = ((0..=200).map(at).sum::<f64>() / 201.0).ln();
        for i in 0..self.slices.len() {
            let below_mean = mean - fitted.at(self.time(i));
            self.free[i].good *= below_mean.exp();
        }
    }

    /// Finds a lasting change, after which only one side counts, a drift or a cycle.
    fn find_changes_over_time(&mut self) {
        let timeline = self.timeline();
        let timed = |&i: &usize| {
            let level = self.levels.binary_search(&self.level(i)).ok()?;
            Some(TimedValue { level, at: self.time(i), value: self.value(i)? })
        };
        let values: Vec<TimedValue> = timeline.iter().filter_map(timed).collect();
        let rounds_of = |part: &[usize]| {
            let mut rounds: Vec<u32> = part.iter().map(|&i| self.slices[i].round).collect();
            rounds.retain(|round| *round > 0);
            rounds.sort_unstable();
            rounds.dedup();
            rounds
        };
        // Exploration counts as a side.
        let may_be_step = |at: usize, rounds_after: usize| {
            let (before, after) = timeline.split_at(at);
            let [last, first] = [before[at - 1], after[0]].map(|i| self.slices[i].round);
            let is_split = first > 0 && last == first;
            let whole = |part: &[usize]| rounds_of(part).len() - usize::from(is_split);
            let explored = before.iter().filter(|&&i| self.slices[i].round == 0).count();
            let has_before = explored >= 2 || whole(before) >= SIDE_ROUNDS;
            has_before && whole(after) >= rounds_after
        };
        let is_change = |by: f64| by.abs() >= CHANGE_MIN.ln();
        let fitted = course(&values, |at| may_be_step(at, SIDE_ROUNDS));
        let later = course(&values, |at| may_be_step(at, PENDING_ROUNDS));
        let change = match fitted.course {
            Course::Step { at, by } if is_change(by) => Some(LastingChange {
                at: timeline[at],
                factor: by.exp(),
                is_explored: rounds_of(&timeline[..at]).is_empty(),
            }),
            _ => None,
        };
        let is_timed = self.slices.iter().all(|s| s.begin_ns.is_some());
        self.is_pending =
            change.is_none() && matches!(later.course, Course::Step { by, .. } if is_change(by));
        self.change = change;
        match fitted.course {
            Course::Drift { by } if by.abs() > DRIFT_MIN => {
                self.drift = Some(by);
                self.level_out(&fitted);
            }
            Course::Cycle { period, amplitude } if amplitude > CYCLE_MIN && is_timed => {
                self.level_out(&fitted);
                self.cycle = Some(ThroughputCycle {
                    period_ns: period as u64,
                    amplitude_percent: 100.0 * amplitude.exp_m1(),
                });
            }
            _ => {}
        }
    }

    /// Maximum before a lasting change, from the slices before it.
    pub(super) fn max_before_per_s(&self, change: &LastingChange) -> Option<f64> {
        let past = self.past.get(..change.at).unwrap_or_default();
        let slices = self.slices[..change.at].to_vec();
        let silences = SweepSilences::of_slices(&slices);
        let other = Inference::new(slices, silences, past, self.pause_s);
        Some(other.analysis(&other.table(&[]))?.x_max_per_s)
    }

    /// Standard deviation of the logarithms of slices from their level and round.
    fn residual_spread(&self) -> Option<f64> {
        let cell = |i: usize| {
            let round = self.rounds.binary_search(&self.slices[i].round).ok()?;
            let level = self.levels.binary_search(&self.level(i)).ok()?;
            let value = self.value(i).filter(|_| self.slices[i].weight > 0.0)?;
            Some(BlockCell { level, round, value })
        };
        let cells: Vec<BlockCell> = (0..self.slices.len()).filter_map(cell).collect();
        Some(rounds::fit(&cells, self.levels.len(), self.rounds.len())?.spread)
    }

    /// How much higher the maximum over these levels would be at the usual speed of the host, as a
    /// logarithm: by least squares of throughput over that speed within each level.
    pub(super) fn moved_by_host(&self, plateau: &[f64]) -> f64 {
        let slices = (0..self.slices.len()).filter(|&i| self.slices[i].weight > 0.0);
        let points = |level: f64| -> Vec<(f64, f64)> {
            let level_slices = slices.clone().filter(|&i| f64::from(self.level(i)) == level);
            level_slices
                .filter_map(|i| Some((self.slices[i].host_speed?.ln(), self.value(i)?)))
                .collect()
        };
        let (mut xx, mut xy, mut yy, mut sum, mut n) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for &level in plateau {
            let (xs, ys): (Vec<f64>, Vec<f64>) = points(level).into_iter().unzip();
            let [mean_x, mean_y] = [&xs, &ys].map(|values| sample::mean(values));
            for (x, y) in xs.iter().zip(&ys) {
                xx += (x - mean_x).powi(2);
                xy += (x - mean_x) * (y - mean_y);
                yy += (y - mean_y).powi(2);
                sum += x;
                n += 1.0;
            }
        }
        let explains = xy * xy >= EXPLAINED * xx * yy && xy > 0.0;
        if explains && n > 0.0 { -xy / xx * sum / n } else { 0.0 }
    }

    /// The target's pauses, as reported, with their share of the time at this throughput.
    pub(super) fn pauses(&self, between_per_s: f64) -> Option<PausesReport> {
        let pauses = pauses_report(&self.silences.pauses, |ns| ns as i64, Nanos(1))?;
        Some(PausesReport { percent: 100.0 * self.paused(between_per_s, None), ..pauses })
    }

    /// Weights with which pauses have the same share of the slices of a row as of the whole time.
    /// Slices are short, and meet more of them or fewer by chance. A pause delays what waits when
    /// it begins. `None` where all slices of the row met one, or none of them.
    fn pause_weights(&self, row: &LevelSlices) -> Option<Vec<f64>> {
        let share = self.paused(row.between_per_s, None);
        let worked_s = 1.0 / row.between_per_s.max(f64::MIN_POSITIVE);
        let times_s = |&i: &usize| {
            let slice = &self.slices[i];
            let window = slice.begin_ns.zip(slice.duration_ns).map(|(a, ns)| a..a + ns);
            let window = window.unwrap_or_default();
            let begun = slice.pauses_ns.iter().filter(|pause| window.contains(&pause[0]));
            let paused_s = begun.map(|pause| (pause[1] - pause[0]) as f64 / 1e9 - worked_s);
            [(window.end - window.start) as f64 / 1e9, paused_s.sum::<f64>().max(0.0)]
        };
        let times: Vec<[f64; 2]> = row.used.iter().map(times_s).collect();
        let sum = |part: &dyn Fn(&[f64; 2]) -> f64| times.iter().map(part).sum::<f64>();
        let all_s = sum(&|t| t[0]);
        let paused_s = sum(&|t| t[1]);
        let hit_s = sum(&|t| if t[1] > 0.0 { t[0] } else { 0.0 });
        if share <= 0.0 || paused_s <= share * hit_s || hit_s >= all_s {
            return None;
        }
        // With these weights pauses have their share, and the sum of all weights is unchanged.
        let hit = share * all_s / paused_s;
        let quiet = (all_s - hit * hit_s) / (all_s - hit_s);
        Some(times.iter().map(|t| if t[1] > 0.0 { hit } else { quiet }).collect())
    }

    /// Trial of each row, merged from its slices. None for a table measured elsewhere.
    pub(super) fn trials(&self) -> Vec<TrialReport> {
        let trial = |row: &LevelSlices| {
            let trials = row.used.iter().map(|&i| self.past.get(i));
            let trials: Vec<&TrialReport> = trials.collect::<Option<_>>()?;
            merged(&trials, self.pause_weights(row).as_deref())
        };
        self.rows.iter().filter_map(trial).collect()
    }

    /// Table of all levels, from the trials of its rows or, without any, from the slices, which
    /// suffices for the next step.
    pub(super) fn table(&self, trials: &[TrialReport]) -> Vec<LevelPoint> {
        let point = |(i, row): (usize, &LevelSlices)| {
            let measured = match trials.get(i) {
                Some(trial) => self.point(row, trial),
                None => self.point_of_slices(row),
            };
            let half = row.half_width.map(|h| [-h, h].map(|h| row.per_s * h.exp()));
            let is_paused = !self.silences.pauses.is_empty() && !self.catches_up();
            LevelPoint {
                throughput_per_s: row.per_s,
                between_pauses_per_s: is_paused.then_some(row.between_per_s),
                throughput_ci95: half.or(measured.throughput_ci95.filter(|_| !is_paused)),
                relative_half: row.relative_half,
                freedom: row.relative_half.map(|_| self.rounds.len() as u64 - 1),
                ..measured
            }
        };
        self.rows.iter().enumerate().map(point).collect()
    }

    fn point(&self, row: &LevelSlices, trial: &TrialReport) -> LevelPoint {
        let n = f64::from(row.level);
        // The part of the users' time that is neither response time nor pause is the generator's.
        let busy_s = trial.response_time_ns.mean.zip(self.pause_s);
        let busy_s = busy_s.map(|(ns, pause_s)| ns as f64 / 1e9 + pause_s);
        let is_whole = trial.sessions().is_none() && error_share(&trial.outcomes) <= 0.0;
        let used = busy_s.filter(|_| is_whole);
        let used = used.map_or(1.0, |s| trial.responses_per_s() * s / n);
        LevelPoint {
            generator_share: (1.0 - used).clamp(0.0, 0.5),
            trials: row.used.len(),
            valid: row.used.iter().any(|&i| !self.slices[i].has_mark(rows::INVALID)),
            ..LevelPoint::of(trial)
        }
    }

    /// Row without a trial. Its interval is by the scatter of the slices (Student's t).
    fn point_of_slices(&self, row: &LevelSlices) -> LevelPoint {
        let used = || row.used.iter().map(|&i| &self.slices[i]);
        let per_s: Vec<f64> = used().map(|s| s.throughput_per_s).collect();
        let (n, mean) = (per_s.len(), sample::mean(&per_s));
        let interval = (n >= REPEATS_MIN).then(|| {
            let error = (sample::variance(&per_s) / n as f64).sqrt();
            let half = t_beyond(0.05, n as u64 - 1) * error;
            [mean - half, mean + half]
        });
        // Each operation counts alike.
        let timed = used().filter_map(|s| Some((s.throughput_per_s, s.mean_ns? as f64)));
        let (operations_timed, time) =
            timed.fold((0.0, 0.0), |(n, time), (per_s, ns)| (n + per_s, time + per_s * ns));
        let p90s: Vec<f64> = used().filter_map(|s| s.p90_ns).map(|ns| ns as f64).collect();
        let failed: f64 = used().map(|s| s.errors as f64).sum();
        let good = used().filter_map(|s| Some(s.throughput_per_s * s.duration_ns? as f64 / 1e9));
        let operations = failed + good.sum::<f64>();
        LevelPoint {
            level: f64::from(row.level),
            throughput_per_s: mean,
            throughput_ci95: interval,
            mean_ns: (operations_timed > 0.0).then(|| time / operations_timed),
            p90_ns: (!p90s.is_empty()).then(|| median(p90s.into_iter())),
            error_share: if operations > 0.0 { failed / operations } else { 0.0 },
            valid: used().any(|s| !s.has_mark(rows::INVALID)),
            trials: n,
            ..LevelPoint::default()
        }
    }

    /// Analysis of the table, with intervals of the rounds.
    pub(super) fn analysis(&self, table: &[LevelPoint]) -> Option<knee::KneeAnalysis> {
        // An explored level counts only if there are no rounds yet.
        let explored: Vec<f64> =
            self.rows.iter().filter(|r| r.is_explored).map(|r| f64::from(r.level)).collect();
        let counted = table.iter().filter(|p| !explored.contains(&p.level));
        let counted: Vec<LevelPoint> = counted.cloned().collect();
        let mut analysis = knee::analyse(&counted)?;
        let users = |level: f64| level as u32;
        let plateau: Vec<u32> = analysis.plateau.iter().map(|&level| users(level)).collect();
        let weights = knee::weights(&analysis.plateau_rows());
        let mean = |logs: &[f64]| knee::weighted_mean(logs.iter().map(|x| x.exp()), &weights).ln();
        let most = self.estimate(&plateau, mean);
        if let Some(most) = most {
            analysis.x_max_half_width = Some(most.half_width);
        }
        if let CurveShape::Bent(knee) = &mut analysis.shape {
            let lowest = analysis.rows.first().map_or(1.0, |p| p.level);
            let both = [&plateau[..], &[users(lowest)]].concat();
            let ratio = |logs: &[f64]| {
                let (lowest, plateau) = logs.split_last().expect("the lowest level");
                mean(plateau) - lowest
            };
            let by_rounds = self.estimate(&both, ratio).map(|e| e.half_width);
            if let Some(half) = by_rounds.or(knee.half_width) {
                let half = half.hypot(KNEE_MIN);
                knee.set_half_width(half);
                if let Some([lo, hi]) = &mut knee.range {
                    // Throughput reaches its maximum among the levels that were measured.
                    let highest = analysis.rows.last().map_or(*hi, |p| p.level);
                    *lo = (*lo * (-half).exp()).max(lowest.min(*lo));
                    *hi = (*hi * half.exp()).min(highest.max(*hi));
                }
            }
        }
        Some(analysis)
    }

    /// Whether the intervals have the target width, and nothing that may be a lasting change needs
    /// more rounds.
    pub(super) fn is_precise(&self, spec: &SweepSpec) -> bool {
        let table = self.table(&[]);
        let Some(analysis) = self.analysis(&table).filter(|_| spec.budget.0 > 0) else {
            return true;
        };
        analysis.is_precise() && !self.is_pending
    }
}

/// Mark of slices on the side of a lasting change that does not count.
const OTHER_REGIME: &str = "other_regime";
