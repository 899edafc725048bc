//! Inference from slices in rounds: log throughput = level + round + residual, and changes with
//! time.

use super::SweepSpec;
use super::knee::{self, CurveShape};
use super::progress::{ROUNDS_MIN, users_of};
use super::report::SweepSlice;
use super::rows;
use super::table::LevelPoint;
use crate::trial::report::TrialReport;
use crate::trial::slice::merged;
use knee_load::measure::error_share;
use knee_load::rng;
use knee_load::stats::rounds::{self, BlockCell, Estimate, LevelShift, RoundsFit, median};
use knee_load::stats::sample::{self, t_beyond};
use rand_core::RngCore;

/// Multiple of the usual deviation beyond which a slice is no part of a row.
const OUTLIER: f64 = 3.0;
/// Smallest usual deviation.
const DEVIATION_MIN: f64 = 0.004;
/// Smallest half width of a knee: no curve is exactly that of its asymptotes.
const KNEE_MIN: f64 = 0.02;
/// Share of the maximum from which a level shows changes of the capacity.
const SATURATED: f64 = 0.5;
/// Smallest factor of a lasting change.
const CHANGE_MIN: f64 = 1.25;
/// Whole rounds after a lasting change that suffice to estimate the new state.
const REGIME_ROUNDS_MIN: usize = 3;
/// Smallest drift from begin to end, as a logarithm, …
const DRIFT_MIN: f64 = 0.05;
/// … and as a multiple of its 95 % interval.
const DRIFT_CERTAIN: f64 = 1.5;
/// Weight below which a slice is an outlier.
const LOW_WEIGHT: f64 = 0.45;
/// Least slices of one level for an interval without rounds.
const REPEATS_MIN: usize = 3;
/// Bootstrap resamples of the rounds.
const RESAMPLES: usize = 300;

/// Slices of one level that form its row.
#[derive(Clone, Debug)]
pub(super) struct LevelSlices {
    pub(super) level: u32,
    /// Numbers of the slices.
    pub(super) used: Vec<usize>,
    /// Half the width of the interval against other levels, as a logarithm.
    pub(super) half_width: Option<f64>,
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
    /// Whether the rows rest on the slices after it.
    pub(super) is_after: bool,
    /// Whether all slices on one side are explorations.
    pub(super) is_explored: bool,
    /// Whole rounds after it.
    pub(super) rounds_after: usize,
}

/// Result of the inference.
#[derive(Clone, Debug)]
pub(super) struct Inference<'a> {
    /// Trials of the slices; none for a table measured elsewhere.
    pub(super) past: &'a [TrialReport],
    pub(super) slices: Vec<SweepSlice>,
    pub(super) rows: Vec<LevelSlices>,
    /// Deviation of each slice from its level in the middle round, as a logarithm.
    pub(super) deviations: Vec<Option<f64>>,
    /// Weight of each slice, 0 to 1.
    pub(super) weights: Vec<f64>,
    /// Standard deviation of the residuals.
    pub(super) spread: Option<f64>,
    pub(super) change: Option<LastingChange>,
    /// Change of the logarithm from begin to end.
    pub(super) drift: Option<Estimate>,
    fit: Option<RoundsFit>,
    levels: Vec<u32>,
    seed: u64,
    pause_s: Option<f64>,
}

impl<'a> Inference<'a> {
    /// Infers from trials with these rounds; round 0 is exploration.
    pub(super) fn of(spec: &SweepSpec, past: &'a [TrialReport], rounds: &[u32]) -> Inference<'a> {
        let slices = rows::slices(past, rounds);
        Inference::of_slices(slices, past, spec.base.seed, spec.pause_s())
    }

    /// Infers from slices of this sweep or, without trials, of a table measured elsewhere.
    pub(super) fn of_slices(
        slices: Vec<SweepSlice>,
        past: &'a [TrialReport],
        seed: u64,
        pause_s: Option<f64>,
    ) -> Inference<'a> {
        let levels_of = |least_round: u32| {
            let counted = slices.iter().filter(|s| s.round >= least_round);
            let mut levels: Vec<u32> = counted.map(|s| users_of(s.level)).collect();
            levels.sort_unstable();
            levels.dedup();
            levels
        };
        let (all, levels) = (levels_of(0), levels_of(1));
        let mut found = Inference {
            past,
            rows: Vec::new(),
            deviations: vec![None; slices.len()],
            weights: vec![1.0; slices.len()],
            spread: None,
            change: None,
            drift: None,
            fit: None,
            levels,
            seed,
            pause_s,
            slices,
        };
        found.fit = found.fitted(|_| true);
        if found.fit.is_some() {
            found.look_at_time();
        }
        found.weigh();
        found.rows = all.iter().map(|&level| found.row(level)).collect();
        found
    }

    /// Number of the last round; 0 without rounds.
    pub(super) fn last_round(&self) -> u32 {
        self.slices.iter().map(|s| s.round).max().unwrap_or(0)
    }

    /// The slices as reported, with their weights and what only their comparison shows.
    pub(super) fn reported(&self) -> Vec<SweepSlice> {
        let of = |(i, slice): (usize, &SweepSlice)| {
            let (weight, is_kept) = (self.weights[i], self.is_kept(i));
            let mut slice = SweepSlice { weight, ..slice.clone() };
            let found = [(!is_kept, "other_regime"), (weight < LOW_WEIGHT && is_kept, "outlier")];
            for (is_marked, mark) in found {
                slice.marks.retain(|m| m != mark);
                slice.marks.extend(is_marked.then(|| mark.to_owned()));
            }
            slice
        };
        self.slices.iter().enumerate().map(of).collect()
    }

    fn level(&self, slice: usize) -> u32 {
        users_of(self.slices[slice].level)
    }

    fn value(&self, slice: usize) -> Option<f64> {
        let per_s = self.slices[slice].throughput_per_s;
        (per_s > 0.0).then(|| per_s.ln())
    }

    fn place(&self, slice: usize) -> Option<usize> {
        self.levels.binary_search(&self.level(slice)).ok()
    }

    fn fitted(&self, is_kept: impl Fn(usize) -> bool) -> Option<RoundsFit> {
        let cell = |i: usize| {
            let round = (self.slices[i].round as usize).checked_sub(1);
            Some(BlockCell {
                level: self.place(i)?,
                round: round.filter(|_| is_kept(i))?,
                value: self.value(i)?,
            })
        };
        let cells: Vec<BlockCell> = (0..self.slices.len()).filter_map(cell).collect();
        rounds::fit(&cells, self.levels.len(), self.last_round() as usize)
    }

    /// Slices at saturated levels, each with its deviation from the level.
    fn timeline(&self, fit: &RoundsFit) -> Vec<(usize, f64)> {
        let most = fit.levels.iter().copied().flatten().fold(f64::MIN, f64::max);
        let of = |i: usize| {
            let level = fit.levels[self.place(i)?]?;
            let is_busy = level >= most + SATURATED.ln();
            is_busy.then_some((i, self.value(i)? - level))
        };
        (0..self.slices.len()).filter_map(of).collect()
    }

    /// Finds a lasting change, after which only one side counts, or a drift.
    fn look_at_time(&mut self) {
        let Some(fit) = self.fit.clone() else { return };
        let timeline = self.timeline(&fit);
        let values: Vec<f64> = timeline.iter().map(|t| t.1).collect();
        let time = |i: usize| self.slices[i].begin_ns.map_or(i as f64, |ns| ns as f64);
        let course: Vec<(f64, f64)> = timeline.iter().map(|t| (time(t.0), t.1)).collect();
        let is_step = |c: &LevelShift| c.deviation(&values) < rounds::line_deviation(&course);
        let lasting = |c: &LevelShift| c.size().abs() >= CHANGE_MIN.ln() && is_step(c);
        if let Some(change) = rounds::change(&values, 2).filter(lasting) {
            let at = timeline[change.at].0;
            let measured = |part: &[SweepSlice]| part.iter().filter(|s| s.round > 0).count();
            let [before, after] = [&self.slices[..at], &self.slices[at..]].map(measured);
            let rounds_after = after / self.levels.len().max(1);
            let is_after = rounds_after >= REGIME_ROUNDS_MIN || after >= before;
            let kept = |i: usize| (i >= at) == is_after;
            if let Some(fit) = self.fitted(kept) {
                self.fit = Some(fit);
                self.change = Some(LastingChange {
                    at,
                    factor: change.size().exp(),
                    is_after,
                    is_explored: before.min(after) == 0,
                    rounds_after,
                });
            }
        }
        if self.change.is_none() {
            let in_rounds = timeline.iter().filter(|t| self.slices[t.0].round > 0);
            let points: Vec<(f64, f64)> = in_rounds.map(|t| (time(t.0), t.1)).collect();
            let is_drift = |d: &Estimate| {
                d.value.abs() > DRIFT_MIN && d.value.abs() > DRIFT_CERTAIN * d.half_width
            };
            self.drift = rounds::trend(&points).filter(is_drift);
        }
    }

    /// Maximum on the other side of a lasting change, from the slices of that side.
    pub(super) fn other_max_per_s(&self, change: &LastingChange) -> Option<f64> {
        let side = if change.is_after { 0..change.at } else { change.at..self.slices.len() };
        let past = self.past.get(side.clone()).unwrap_or_default();
        let slices = self.slices[side].to_vec();
        let other = Inference::of_slices(slices, past, self.seed, self.pause_s);
        Some(other.analysis(&other.table(&[]))?.x_max_per_s)
    }

    /// Whether a slice is on the side of a lasting change that counts.
    pub(super) fn is_kept(&self, slice: usize) -> bool {
        self.change.is_none_or(|c| (slice >= c.at) == c.is_after)
    }

    fn weigh(&mut self) {
        let Some(fit) = &self.fit else { return };
        self.spread = Some(fit.spread);
        for i in 0..self.slices.len() {
            let level = self.place(i).and_then(|place| fit.levels[place]);
            self.deviations[i] = level.zip(self.value(i)).map(|(level, value)| value - level);
        }
        let counted =
            (0..self.slices.len()).filter(|&i| self.slices[i].round > 0 && self.is_kept(i));
        let all = counted.filter_map(|i| self.deviations[i]).map(f64::abs);
        let usual = (rounds::MAD * median(all)).max(fit.spread).max(DEVIATION_MIN);
        let weight = |d: Option<f64>| d.map_or(0.0, |d| rounds::huber_weight(d / usual));
        self.weights = self.deviations.iter().map(|&d| weight(d)).collect();
        for i in 0..self.slices.len() {
            if self.place(i).is_some() && !self.is_kept(i) {
                self.weights[i] = 0.0;
            }
        }
    }

    fn row(&self, level: u32) -> LevelSlices {
        let here = || (0..self.slices.len()).filter(|&i| self.level(i) == level);
        let place = self.levels.iter().position(|&l| l == level);
        let estimate = self.fit.as_ref().zip(place).and_then(|(fit, p)| fit.level(p));
        let mut row = LevelSlices {
            level,
            used: here().collect(),
            half_width: estimate.map(|e| e.half_width),
            is_explored: self.fit.is_some() && place.is_none(),
        };
        if estimate.is_none() {
            let served = |i: &usize| match self.past.get(*i) {
                Some(trial) => trial.completed > 0,
                None => self.slices[*i].throughput_per_s > 0.0,
            };
            let served: Vec<usize> = here().filter(served).collect();
            row.used = if served.is_empty() { row.used } else { served };
        } else {
            let counts = |i: &usize| {
                self.slices[*i].round > 0 && self.weights[*i] >= rounds::huber_weight(OUTLIER)
            };
            row.used = here().filter(counts).collect();
            if row.used.is_empty() {
                let far = |i: &usize| self.deviations[*i].map_or(f64::MAX, f64::abs);
                row.used = here().min_by(|a, b| far(a).total_cmp(&far(b))).into_iter().collect();
            }
        }
        // Series of slices can follow one another only if they have the same length.
        let length = |i: &usize| self.slices[*i].duration_ns;
        let usual = row.used.last().map(length);
        row.used.retain(|i| Some(length(i)) == usual);
        row
    }

    /// Trial of each row, merged from its slices. None for a table measured elsewhere.
    pub(super) fn trials(&self) -> Vec<TrialReport> {
        let of = |row: &LevelSlices| {
            let trials = row.used.iter().map(|&i| self.past.get(i));
            let trials: Vec<&TrialReport> = trials.collect::<Option<_>>()?;
            merged(&trials)
        };
        self.rows.iter().filter_map(of).collect()
    }

    /// Table of all levels, from the trials of its rows or, without any, from the slices, which
    /// suffices for the next step.
    pub(super) fn table(&self, trials: &[TrialReport]) -> Vec<LevelPoint> {
        let of = |(i, row): (usize, &LevelSlices)| {
            let point = match trials.get(i) {
                Some(trial) => self.point(row, trial),
                None => self.point_of_slices(row),
            };
            let half = row.half_width.map(|h| [-h, h].map(|h| point.throughput_per_s * h.exp()));
            LevelPoint { throughput_ci95: half.or(point.throughput_ci95), ..point }
        };
        self.rows.iter().enumerate().map(of).collect()
    }

    fn point(&self, row: &LevelSlices, trial: &TrialReport) -> LevelPoint {
        let n = f64::from(row.level);
        // The part of the users' time that is neither response time nor pause is the generator's.
        let mean = trial.response_time_ns.mean;
        let busy_s = mean.zip(self.pause_s);
        let busy_s = busy_s.map(|(ns, pause_s)| ns as f64 / 1e9 + pause_s);
        let is_whole = trial.sessions().is_none() && error_share(&trial.outcomes) <= 0.0;
        let used = busy_s.filter(|_| is_whole);
        let used = used.map_or(1.0, |s| trial.responses_per_s() * s / n);
        LevelPoint {
            generator_share: (1.0 - used).clamp(0.0, 0.5),
            trials: row.used.len(),
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
            valid: used().any(|s| s.marks.iter().all(|mark| mark != rows::INVALID)),
            trials: n,
            ..LevelPoint::default()
        }
    }

    /// Half the width of the knee's interval, as a logarithm, by bootstrap over the rounds. A round
    /// gives the difference of the plateau from the lowest level.
    fn knee_half_width(&self, plateau: &[f64], lowest: f64) -> Option<f64> {
        let of_round = |round: u32| {
            let of = |wanted: &dyn Fn(f64) -> bool| {
                let here = (0..self.slices.len())
                    .filter(|&i| self.slices[i].round == round && wanted(f64::from(self.level(i))));
                let weighted = here.filter_map(|i| Some((self.weights[i], self.deviations[i]?)));
                let (w, sum) = weighted.fold((0.0, 0.0), |(w, sum), (x, d)| (w + x, sum + x * d));
                (w > 0.3).then(|| sum / w)
            };
            Some(of(&|l| plateau.contains(&l))? - of(&|l| l == lowest)?)
        };
        let differences: Vec<f64> = (1..=self.last_round()).filter_map(of_round).collect();
        let n = differences.len();
        if n < 3 {
            return None;
        }
        let mut rng = rng::stream(self.seed, rng::ORDER - 1);
        let mut draw = || differences[(rng.next_u64() % n as u64) as usize];
        let resamples: Vec<f64> =
            (0..RESAMPLES).map(|_| (0..n).map(|_| draw()).sum::<f64>() / n as f64).collect();
        let mean = resamples.iter().sum::<f64>() / RESAMPLES as f64;
        let squares: f64 = resamples.iter().map(|r| (r - mean).powi(2)).sum();
        let small = n as f64 / (n as f64 - 1.0);
        let deviation = (squares / RESAMPLES as f64 * small).sqrt();
        Some(t_beyond(0.05, n as u64 - 1) * deviation)
    }

    /// Shift of the throughput of these levels, as a logarithm, if all slices weighed alike. Slices
    /// that weigh less may be the server's pauses and not the host's.
    fn left_out(&self, levels: &[f64]) -> f64 {
        let counts = |i: &usize| {
            self.slices[*i].round > 0
                && self.is_kept(*i)
                && levels.contains(&f64::from(self.level(*i)))
        };
        let here = (0..self.slices.len()).filter(counts);
        let here: Vec<(f64, f64)> =
            here.filter_map(|i| Some((self.weights[i], self.deviations[i]?))).collect();
        let weighted = |weight: &dyn Fn(f64) -> f64| {
            let sum: f64 = here.iter().map(|&(w, d)| weight(w) * d).sum();
            sum / here.iter().map(|&(w, _)| weight(w)).sum::<f64>().max(f64::MIN_POSITIVE)
        };
        (weighted(&|_| 1.0) - weighted(&|w| w)).abs()
    }

    /// Analysis of the table, with intervals of the rounds.
    pub(super) fn analysis(&self, table: &[LevelPoint]) -> Option<knee::KneeAnalysis> {
        // An explored level counts only if there are no rounds yet.
        let explored: Vec<f64> =
            self.rows.iter().filter(|r| r.is_explored).map(|r| f64::from(r.level)).collect();
        let counted = table.iter().filter(|p| !explored.contains(&p.level));
        let counted: Vec<LevelPoint> = counted.cloned().collect();
        let mut analysis = knee::analyse(&counted)?;
        let middle = self.fit.as_ref().map_or(0.0, RoundsFit::middle_half_width);
        analysis.x_max_half_width = analysis.x_max_half_width.map(|h| h.hypot(middle));
        if let CurveShape::Bent(knee) = &mut analysis.shape {
            let lowest = analysis.rows.first().map_or(1.0, |p| p.level);
            // The bootstrap weighs slices, the rows do not.
            let of_rounds = self.knee_half_width(&analysis.plateau, lowest);
            let half = of_rounds.unwrap_or(0.0).max(knee.half_width.unwrap_or(0.0));
            let open = self.left_out(&analysis.plateau) + self.left_out(&[lowest]);
            let half = half.hypot(KNEE_MIN) + open;
            knee.set_half_width(half);
            if let Some([lo, hi]) = &mut knee.range {
                // Throughput reaches its maximum among the levels that were measured.
                let highest = analysis.rows.last().map_or(*hi, |p| p.level);
                *lo = (*lo * (-half).exp()).max(lowest.min(*lo));
                *hi = (*hi * half.exp()).min(highest.max(*hi));
            }
        }
        let untold = self.change.filter(|c| c.rounds_after < REGIME_ROUNDS_MIN);
        if let Some(change) = untold.filter(|_| matches!(analysis.shape, CurveShape::Bent(_))) {
            analysis.shape = CurveShape::Untold { rounds: change.rounds_after };
        }
        Some(analysis)
    }

    /// Whether the intervals have the target width, and a lasting change has enough rounds after
    /// it.
    pub(super) fn is_precise(&self, spec: &SweepSpec) -> bool {
        let table = self.table(&[]);
        let Some(analysis) = self.analysis(&table).filter(|_| spec.budget.0 > 0) else {
            return true;
        };
        analysis.is_precise() && self.change.is_none_or(|c| c.rounds_after >= ROUNDS_MIN)
    }
}
