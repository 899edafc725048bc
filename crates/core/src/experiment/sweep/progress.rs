//! Next slice of a sweep over users. The sweep explores by doubling, then measures levels around
//! the bend in rounds. All of it follows from the spec and the slices so far.

use super::inference::Inference;
use super::rows;
use super::{LevelPlan, SweepSpec};
use crate::experiment::NextTrial;
use crate::trial::report::TrialReport;
use crate::trial::slice::Slice;
use crate::words::{time, users, value};
use knee_load::measure::error_share;
use knee_load::rng;
use knee_load::spec::TrialSpec;
use knee_load::time::Nanos;

/// Least number of rounds: fewer do not determine the spread between them.
pub(super) const ROUNDS_MIN: usize = 5;
/// Most rounds of an automatic plan.
const ROUNDS_MAX: usize = 40;
/// Most rounds of a list, and the shortest slice of its longer trials.
const LIST_ROUNDS_MAX: u64 = 20;
const SLICE: Nanos = Nanos::from_millis(400);
/// Slices are a multiple of this, so that they have whole bins of answers and slots of the series …
const GRAIN_NS: u64 = 40_000_000;
/// … and those of at least 3.2 s of this, as their slots are longer.
const LONG_GRAIN_NS: u64 = 8 * GRAIN_NS;
/// Operations of each user in a slice, if time permits.
const CYCLES: f64 = 30.0;
/// Least length of a slice in operations of each user: users who began together complete together,
/// and a shorter slice has all of that or nothing.
const CYCLES_MIN: f64 = 1.2;
/// The longest slice.
const SLICE_MAX_S: f64 = 4.0;
/// Share of the remaining budget for the first rounds, and of all of it for exploration: before the
/// rounds, and in all.
const BUDGET_SHARE: f64 = 0.75;
const EXPLORE_SHARE: [f64; 2] = [0.4, 0.6];
/// The shortest slice, where the budget permits no longer one, in s.
const SLICE_MIN_S: f64 = 0.12;
/// Share of the budget for a slice that explores, unless two operations take longer.
const EXPLORE_SLICE_SHARE: f64 = 0.02;
/// Time that a slice takes beside warm-up and window, for threads and connections.
const OVERHEAD_S: f64 = 0.05;
/// Warm-up of a slice in operations per user: where users queue, all of whom begin at once, and
/// otherwise. Its least length in s.
const WARMUP_CYCLES: [f64; 2] = [1.2, 3.0];
const WARMUP_MIN_S: f64 = 0.05;
/// Least and, for long operations, greatest length of a trial that explores, in s.
const EXPLORE_S: [f64; 2] = [0.4, 1.0];
/// Gain over two levels below which throughput has stopped rising.
const GAIN_MIN: f64 = 1.05;
/// Gain of a doubling below which throughput is not proportional. Levels beyond at which an
/// operation takes longer than a slice that explores would not show what the target serves.
const PROPORTIONAL: f64 = 1.5;
/// Share of the throughput so far below which a level is measured again: it was disturbed, or the
/// target failed. The number of repeats is larger if nothing answered.
const FELL: f64 = 0.5;
const AGAIN: usize = 2;
const AGAIN_SILENT: usize = 12;
/// Rounds after which the highest level is compared with those below it.
const LOOK_AFTER: usize = 2;
/// Most repeats of a slice, and of all slices for each level.
const REPEATS_MAX: usize = 3;
const REPEATS_PER_LEVEL: usize = 2;
/// Time without any response after which the target stays away.
const AWAY: Nanos = Nanos::from_secs(30);
/// Largest share of a slice's window that silences of the target take for its throughput between
/// them to be known.
const SILENT_MAX: f64 = 0.8;
/// Least ratio of two levels.
const APART: f64 = 1.2;
/// Levels in a round: the most in a short budget and in a long one.
const LEVELS: [usize; 2] = [5, 8];
/// Time for a level in a round that is worth another level, in s.
const LEVEL_S: f64 = 0.3;

/// Result of one slice at a level.
#[derive(Clone, Copy, Debug)]
struct LevelSample {
    level: u32,
    per_s: f64,
    is_silent: bool,
    keeps_bounds: bool,
}

impl LevelSample {
    fn of(spec: &SweepSpec, trial: &TrialReport) -> LevelSample {
        LevelSample {
            level: value(trial.level) as u32,
            per_s: between_silences_per_s(spec, trial),
            is_silent: trial.completed == 0,
            keeps_bounds: spec.bounds.iter().all(|b| b.holds(trial.into())),
        }
    }
}

/// Throughput of a slice between the silences of the target.
fn between_silences_per_s(spec: &SweepSpec, trial: &TrialReport) -> f64 {
    let silent_ns = trial.slice().map_or(0, |slice| {
        let window = [slice.begin_ns, slice.begin_ns + trial.duration_ns];
        let of_target = slice.silences.iter().filter(|s| s.is_of_target());
        let common = |a: u64, b: u64| b.min(window[1]).saturating_sub(a.max(window[0]));
        of_target.map(|s| common(s.begin_ns, s.end_ns)).sum()
    });
    let share = silent_ns as f64 / trial.duration_ns.max(1) as f64;
    rows::served_per_s(trial, spec.pause_s()) / (1.0 - share.min(SILENT_MAX))
}

/// Whether a slice has to be repeated: an outage hit it, or its generator or host was disturbed.
fn is_hit(trial: &TrialReport) -> bool {
    let is_out = |slice: &Slice| slice.silences.iter().any(|s| s.is_of_target() && s.is_outage());
    trial.completed == 0
        || trial.slice().is_some_and(is_out)
        || rows::disturbances(trial).next().is_some()
}

/// Why the sweep ends: the target answered, and has not for a long time.
fn stays_away(past: &[TrialReport]) -> Option<String> {
    let last = past.iter().rposition(|t| t.completed > 0)?;
    let end = |t: &TrialReport| t.slice().map(|slice| slice.end_ns);
    let (since, now) = (end(&past[last])?, end(past.last()?)?);
    (now.saturating_sub(since) >= AWAY.0).then(|| {
        format!(
            "the target has not answered for {}, since {} into the sweep",
            time((now - since) as f64),
            time(since as f64)
        )
    })
}

/// Progress of a sweep.
#[derive(Debug, Default)]
pub(super) struct SweepProgress {
    /// Round of each slice; 0 where it explored.
    pub(super) rounds: Vec<u32>,
    /// Levels of each round; empty while the sweep explores.
    pub(super) levels: Vec<u32>,
    /// The level to explore next.
    exploring: Option<u32>,
    /// Number of the first slice of these rounds.
    begin: usize,
    /// Complete rounds before it, and since then.
    rounds_before: usize,
    rounds_done: usize,
    /// What follows in this round: each level with the round that it is for.
    queue: Vec<(u32, u32)>,
    /// Slices that have to be repeated: level, round and tries.
    hit: Vec<(u32, u32, usize)>,
    repeats: usize,
    /// Whether the next slice begins a round.
    is_between: bool,
    seen: Vec<LevelSample>,
}

/// The next step after these slices.
pub(super) fn next(
    spec: &SweepSpec,
    plan: &LevelPlan<u32>,
    past: &[TrialReport],
) -> NextTrial<TrialSpec> {
    if let Some(why) = stays_away(past) {
        return NextTrial::Doomed(why);
    }
    let progress = SweepProgress::of(spec, plan, past);
    if let Some(level) = progress.exploring {
        return NextTrial::Run(Box::new(progress.explore(spec, level, past)));
    }
    if progress.levels.is_empty() {
        let share = past.first().map_or(0.0, |t| error_share(&t.outcomes));
        return NextTrial::Doomed(format!(
            "with {} already {:.0} % of the operations failed",
            users(1.0),
            100.0 * share
        ));
    }
    let Some(&(level, _)) = progress.queue.first() else {
        return NextTrial::Converged;
    };
    let is_over = *plan == LevelPlan::Auto && elapsed_s(past) > spec.budget.as_secs_f64();
    if is_over || progress.is_between && progress.is_enough(spec, plan, past) {
        return NextTrial::Converged;
    }
    let [warmup, duration] = progress.times(spec, plan, past, level);
    NextTrial::Run(Box::new(spec.slice(level, past.len(), warmup, duration)))
}

/// The levels in the random order of a round.
fn shuffled(spec: &SweepSpec, levels: &[u32], round: usize) -> Vec<u32> {
    let mut rng = rng::stream(spec.base.seed, rng::ORDER + round as u64);
    let mut order = levels.to_vec();
    rng::shuffle(&mut order, &mut rng);
    order
}

/// Time from the begin of the sweep to the end of its last slice, in s.
pub(super) fn elapsed_s(past: &[TrialReport]) -> f64 {
    let end = |t: &TrialReport| t.slice().map(|s| s.end_ns.max(s.begin_ns + t.duration_ns));
    let sum = || past.iter().map(|t| t.duration_ns).sum();
    past.last().and_then(end).unwrap_or_else(sum) as f64 / 1e9
}

impl SweepProgress {
    /// Progress after these slices.
    pub(super) fn of(
        spec: &SweepSpec,
        plan: &LevelPlan<u32>,
        past: &[TrialReport],
    ) -> SweepProgress {
        let mut progress = SweepProgress::default();
        match plan {
            LevelPlan::List(list) => {
                progress.seen = past.iter().map(|t| LevelSample::of(spec, t)).collect();
                progress.levels = list.clone();
                progress.levels.sort_unstable();
                progress.levels.dedup();
                progress.visit(spec, past, usize::MAX);
            }
            LevelPlan::Auto => progress.explore_then_visit(spec, past),
        }
        progress
    }

    /// Exploration, then rounds; both once more if throughput still rises after two rounds.
    fn explore_then_visit(&mut self, spec: &SweepSpec, past: &[TrialReport]) {
        let mut climb: Vec<LevelSample> = Vec::new();
        for is_last in [false, true] {
            let most_s = EXPLORE_SHARE[usize::from(is_last)] * spec.budget.as_secs_f64();
            while let Some(level) = next_level(&climb, spec.vusers_max) {
                if elapsed_s(&past[..self.rounds.len().min(past.len())]) > most_s {
                    break;
                }
                let Some(trial) = past.get(self.rounds.len()) else {
                    self.exploring = Some(level);
                    return;
                };
                climb.push(LevelSample::of(spec, trial));
                self.seen.push(LevelSample::of(spec, trial));
                self.rounds.push(0);
            }
            self.begin = self.rounds.len();
            let room_s = spec.budget.as_secs_f64() - elapsed_s(&past[..self.begin]);
            let most = room_s * BUDGET_SHARE / ROUNDS_MIN as f64 / LEVEL_S;
            self.levels = choose(&self.seen, spec, (most as usize).clamp(LEVELS[0], LEVELS[1]));
            let rounds = if is_last { usize::MAX } else { LOOK_AFTER };
            let is_complete = self.visit(spec, past, rounds);
            if self.levels.is_empty() || !is_complete {
                return;
            }
            let seen: Vec<LevelSample> = past[self.begin..self.rounds.len()]
                .iter()
                .map(|t| LevelSample::of(spec, t))
                .collect();
            match still_rises(&self.levels, &seen).filter(|top| top.level < spec.vusers_max) {
                None => {
                    self.visit(spec, past, usize::MAX);
                    return;
                }
                Some(top) => {
                    (self.rounds_before, self.rounds_done) = (LOOK_AFTER, 0);
                    self.hit.clear();
                    self.seen.extend(seen);
                    climb = vec![top];
                }
            }
        }
    }

    /// Assigns slices to rounds, up to this number of them. Returns whether all of them exist.
    ///
    /// After each round follow the slices that were hit in it or before, for their own rounds.
    fn visit(&mut self, spec: &SweepSpec, past: &[TrialReport], rounds: usize) -> bool {
        while self.rounds_done < rounds && !self.levels.is_empty() {
            let number = self.rounds_before + self.rounds_done;
            let order = shuffled(spec, &self.levels, number);
            self.queue = order.into_iter().map(|level| (level, number as u32 + 1)).collect();
            self.is_between = self.rounds.len() == past.len();
            if !self.follow(past) {
                return false;
            }
            let room = (REPEATS_PER_LEVEL * self.levels.len()).saturating_sub(self.repeats);
            let open = self.hit.iter().filter(|hit| hit.2 <= REPEATS_MAX);
            self.queue = open.map(|&(level, round, _)| (level, round)).take(room).collect();
            self.repeats += self.queue.len();
            self.is_between = false;
            if !self.follow(past) {
                return false;
            }
            self.rounds_done += 1;
        }
        true
    }

    /// Assigns slices to what is in the queue. Returns whether all of it exists.
    fn follow(&mut self, past: &[TrialReport]) -> bool {
        while let Some(&(level, round)) = self.queue.first() {
            let Some(trial) = past.get(self.rounds.len()) else { return false };
            self.rounds.push(round);
            self.queue.remove(0);
            let known = self.hit.iter().position(|hit| (hit.0, hit.1) == (level, round));
            let tries = known.map_or(0, |i| self.hit.remove(i).2);
            if is_hit(trial) {
                self.hit.push((level, round, tries + 1));
            }
        }
        true
    }

    /// Whether the rounds suffice, or no time is left for another.
    fn is_enough(&self, spec: &SweepSpec, plan: &LevelPlan<u32>, past: &[TrialReport]) -> bool {
        let rounds = self.rounds_before + self.rounds_done;
        if let LevelPlan::List(_) = plan {
            return rounds >= list_rounds(spec);
        }
        let before_s = elapsed_s(&past[..self.begin]);
        let now_s = elapsed_s(past);
        let slice_s = |&level: &u32| {
            let [warmup, duration] = self.times(spec, plan, past, level);
            (warmup + duration).as_secs_f64() + self.cycle_s(level)
        };
        let round_s = match self.rounds_done {
            0 => self.levels.iter().map(slice_s).sum(),
            n => (now_s - before_s) / n as f64,
        };
        now_s + round_s > spec.budget.as_secs_f64()
            || rounds >= ROUNDS_MAX
            || self.rounds_done >= ROUNDS_MIN
                && Inference::of(spec, past, &self.rounds).is_precise(spec)
    }

    fn explore(&self, spec: &SweepSpec, level: u32, past: &[TrialReport]) -> TrialSpec {
        let cycle_s = self.cycle_s(level);
        let wanted_s = (10.0 * cycle_s).clamp(EXPLORE_S[0], EXPLORE_S[1]);
        let most_s = spec.base.duration.as_secs_f64() / ROUNDS_MIN as f64;
        let share_s = EXPLORE_SLICE_SHARE * spec.budget.as_secs_f64();
        let duration = wanted_s.min(most_s.max(10.0 * cycle_s)).min(share_s.max(2.0 * cycle_s));
        let duration = rounded_to_grain(duration.max(SLICE_MIN_S));
        let warmup = if past.is_empty() { spec.base.warmup } else { self.warmup(spec, level) };
        spec.slice(level, past.len(), warmup, duration)
    }

    /// Warm-up and measured time of a slice.
    fn times(
        &self,
        spec: &SweepSpec,
        plan: &LevelPlan<u32>,
        past: &[TrialReport],
        level: u32,
    ) -> [Nanos; 2] {
        if let LevelPlan::List(_) = plan {
            let duration_s = spec.base.duration.as_secs_f64() / list_rounds(spec) as f64;
            let warmup = if past.is_empty() { spec.base.warmup } else { self.warmup(spec, level) };
            return [warmup, rounded_to_grain(duration_s.max(CYCLES_MIN * self.cycle_s(level)))];
        }
        let room_s = spec.budget.as_secs_f64() - elapsed_s(&past[..self.begin]);
        let room_s = room_s * BUDGET_SHARE / ROUNDS_MIN as f64;
        let beside = |level: u32| self.warmup(spec, level).as_secs_f64() + OVERHEAD_S;
        let levels = || self.levels.iter().copied();
        let beside_s: f64 = levels().map(beside).sum();
        let fair_s = (room_s - beside_s) / self.levels.len() as f64;
        let full_s = spec.base.duration.as_secs_f64() / ROUNDS_MIN as f64;
        let least_s =
            |level: u32| full_s.min(fair_s.max(SLICE_MIN_S)).max(CYCLES_MIN * self.cycle_s(level));
        let wanted_s =
            |level: u32| least_s(level).max((CYCLES * self.cycle_s(level)).min(SLICE_MAX_S));
        let beyond_s: f64 = levels().map(|l| wanted_s(l) - least_s(l)).sum();
        let left_s = (room_s - beside_s - levels().map(least_s).sum::<f64>()).max(0.0);
        let share = (left_s / beyond_s.max(1e-9)).min(1.0);
        let duration_s = least_s(level) + (wanted_s(level) - least_s(level)) * share;
        [self.warmup(spec, level), rounded_to_grain(duration_s)]
    }

    fn warmup(&self, spec: &SweepSpec, level: u32) -> Nanos {
        let cycle_s = self.cycle_s(level);
        let lowest = self.seen.iter().map(|s| s.level).min().unwrap_or(level);
        let queues = cycle_s > 2.0 * self.cycle_s(lowest);
        let wanted = if queues { WARMUP_CYCLES[0] } else { WARMUP_CYCLES[1] } * cycle_s;
        let wanted = Nanos::from_secs_f64(wanted.max(WARMUP_MIN_S));
        let most = if queues { spec.base.warmup.max(wanted) } else { spec.base.warmup };
        wanted.min(most)
    }

    /// Time from one operation of a user to the next, in s; 0 if unknown.
    fn cycle_s(&self, level: u32) -> f64 {
        let up_to = self.seen.iter().filter(|s| s.level <= level);
        let most = up_to.map(|s| s.per_s).fold(0.0, f64::max);
        if most > 0.0 { f64::from(level) / most } else { 0.0 }
    }
}

/// Rounds a length to whole grains.
fn rounded_to_grain(seconds: f64) -> Nanos {
    let ns = (seconds * 1e9) as u64;
    let grain_ns = if ns < 10 * LONG_GRAIN_NS { GRAIN_NS } else { LONG_GRAIN_NS };
    Nanos((ns + grain_ns / 4) / grain_ns * grain_ns).max(Nanos(GRAIN_NS))
}

/// Rounds into which the time per level of a list is divided.
fn list_rounds(spec: &SweepSpec) -> usize {
    (spec.base.duration.0 / SLICE.0).clamp(ROUNDS_MIN as u64, LIST_ROUNDS_MAX) as usize
}

/// Next level of the exploration: twice the last, or the last again if throughput fell far. `None`
/// after two levels without gain, at the most users, or if nothing is served.
fn next_level(climb: &[LevelSample], vusers_max: u32) -> Option<u32> {
    let Some(last) = climb.last() else {
        return Some(1);
    };
    let same = climb.iter().rev().take_while(|s| s.level == last.level);
    let (tries, here) = same.fold((0, 0.0), |(n, most), s| (n + 1, s.per_s.max(most)));
    let below = climb.iter().filter(|s| s.level < last.level);
    let most_below = below.map(|s| s.per_s).fold(0.0, f64::max);
    let has_fallen = here < FELL * most_below || here <= 0.0;
    let is_silent = last.is_silent && most_below > 0.0;
    let limit = if is_silent { AGAIN_SILENT } else { AGAIN };
    if has_fallen && tries < limit {
        return Some(last.level);
    }
    if most_below.max(here) <= 0.0 {
        return None;
    }
    let mut levels: Vec<(u32, f64)> = Vec::new();
    for seen in climb {
        match levels.last_mut().filter(|l| l.0 == seen.level) {
            Some(level) => level.1 = level.1.max(seen.per_s),
            None => levels.push((seen.level, seen.per_s)),
        }
    }
    if let [earlier @ .., before, last] = levels.as_slice()
        && !earlier.is_empty()
    {
        let most = earlier.iter().map(|l| l.1).fold(0.0, f64::max);
        if before.1.max(last.1) < GAIN_MIN * most {
            return None;
        }
    }
    if let [.., before, last] = levels.as_slice()
        && last.1 < PROPORTIONAL * before.1
        && f64::from(last.0) > EXPLORE_S[1] * last.1
    {
        return None;
    }
    (last.level < vusers_max).then(|| last.level.saturating_mul(2).min(vusers_max))
}

/// The highest level, if its throughput is clearly above that of those well below it.
fn still_rises(levels: &[u32], seen: &[LevelSample]) -> Option<LevelSample> {
    let middle = |level: u32| {
        let at_level = seen.iter().filter(|s| s.level == level);
        knee_load::stats::rounds::median(at_level.map(|s| s.per_s))
    };
    let top = *levels.last()?;
    let below = levels.iter().filter(|&&l| f64::from(top) >= 1.4 * f64::from(l));
    let most_below = below.map(|&l| middle(l)).fold(0.0, f64::max);
    let sample = seen.iter().find(|s| s.level == top)?;
    (middle(top) > 1.08 * most_below).then_some(LevelSample { per_s: middle(top), ..*sample })
}

/// Levels of a round: the lowest, those around the bend, the first with nearly the maximum, twice
/// that, and both sides of a bound. Empty if nothing was served.
fn choose(seen: &[LevelSample], spec: &SweepSpec, most_levels: usize) -> Vec<u32> {
    let mut levels: Vec<u32> = seen.iter().map(|s| s.level).collect();
    levels.sort_unstable();
    levels.dedup();
    let median_per_s = |level: u32| {
        let at_level = seen.iter().filter(|s| s.level == level);
        knee_load::stats::rounds::median(at_level.filter(|s| s.per_s > 0.0).map(|s| s.per_s))
    };
    let most = levels.iter().map(|&l| median_per_s(l)).fold(0.0, f64::max);
    let Some(&lowest) = levels.iter().find(|&&l| median_per_s(l) > 0.0) else {
        return Vec::new();
    };
    let bend = most * f64::from(lowest) / median_per_s(lowest);
    let full = levels.iter().copied().find(|&l| median_per_s(l) >= 0.97 * most);
    let full = f64::from(full.unwrap_or(lowest));
    let top = f64::from(levels.last().copied().unwrap_or(lowest));
    // The most informative first.
    let mut wanted = vec![f64::from(lowest), full, 2.0 * full, bend];
    if median_per_s(top as u32) < 0.9 * most {
        wanted.push(top);
    }
    if let Some(outside) = seen.iter().filter(|s| !s.keeps_bounds).map(|s| s.level).min() {
        let within = levels.iter().rfind(|&&l| l < outside);
        let within = within.map_or(1.0, |&l| f64::from(l));
        wanted.push((within * f64::from(outside)).sqrt().floor());
    }
    wanted.extend([bend / 2.0, 2.0 * bend, 4.0 * full]);
    wanted.extend([(bend * full).sqrt(), bend / 1.5, 1.5 * bend]);
    let mut chosen: Vec<u32> = Vec::new();
    for level in wanted {
        let level = (level.round() as u32).clamp(1, spec.vusers_max);
        let ratio = |other: u32| f64::from(level.max(other)) / f64::from(level.min(other));
        if chosen.len() < most_levels && chosen.iter().all(|&c| ratio(c) >= APART) {
            chosen.push(level);
        }
    }
    chosen.sort_unstable();
    chosen
}
