//! What sentinels show of a queue: whether it falls, stays or is gone.
//!
//! In a queue that is first come, first served, the wait over the time at which it began is a
//! random walk: each second adds the work that comes and takes a second away. Its drift is the load
//! less one. So a drift of 5 % has to be told from the walk's own noise, at every look. The wait
//! has turned where it moved from its last extreme by more than a walk against a drift of 5 % does
//! but once in 10,000 times: by σ²·ln(10⁴) / (2·0.05), the bound of a sequential test (Wald 1945).

use crate::measure::{SentinelEnd, SentinelSample};
use crate::spec::SentinelSpec;
use crate::time::Nanos;

/// The least drift that is looked for, in seconds per second.
const DRIFT: f64 = 0.05;
/// How surely a drift against the one found is ruled out: the logarithm of 10,000.
const CERTAINTY: f64 = 9.2;
/// Time for which a wait that does not fall has to be seen.
const STAYS_S: f64 = 10.0;
/// Least sentinels that show a fall.
const FALL_MIN: usize = 3;
/// Times the longest wait of before that still count as no queue, …
const CALM_TIMES: u64 = 3;
/// … or how much more, where that was short.
const CALM_MORE: Nanos = Nanos::from_millis(20);
/// Smallest move that counts, as responses take 0.1 s more for many a reason.
const MOVE_MIN_S: f64 = 0.1;
/// Move that counts where the noise is not known, as a share of the longest wait; a fall by that
/// counts in any case, …
const MOVE_SHARE: f64 = 0.25;
/// … if it is at least this, which needs as much time at least.
const FALL_S: f64 = 2.0;
/// Least sentinels refused within [`STAYS_S`] that show a queue at its limit, …
const REFUSED_MIN: usize = 3;
/// … and their share of all.
const REFUSED_SHARE: f64 = 0.2;
/// Sentinels that others overtook, from which on a queue is not first come, first served.
const OVERTAKEN_MIN: usize = 2;
/// Longest waits for which waits are seen to hover, …
const HOVER_TIMES: f64 = 1.5;
/// … within this share of the longest.
const HOVER_SHARE: f64 = 0.2;
/// Least second differences that show how far a wait moves by chance.
const DIFFERENCES_MIN: usize = 6;
/// The median of the square of a standard normal.
const MEDIAN_SQUARE: f64 = 0.455;

/// What becomes of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueTrend {
    /// No sentinel was answered before the overload: there is nothing to compare with.
    Unseen,
    /// Later requests are served before earlier ones, so a wait is not the length of the queue.
    OutOfOrder,
    /// Waits are as before the overload, of those that began since this time.
    Calm {
        /// From the begin of the window.
        since: Nanos,
    },
    /// The wait falls.
    Falls(FallingQueue),
    /// It rises, is constant, or the queue is at its limit.
    Stays {
        /// The wait at least.
        wait: Nanos,
    },
    /// Too little is known.
    Unknown {
        /// The wait at least.
        wait: Nanos,
    },
}

/// A queue that drains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FallingQueue {
    /// The last wait that is known.
    pub wait: Nanos,
    /// By how much it falls, in seconds per second.
    pub falls_s_per_s: f64,
    /// Time until it is as before.
    pub back_in: Nanos,
}

/// A wait and when it began, in seconds.
type Wait = (f64, f64);

impl QueueTrend {
    /// What these samples show at `at`, from the begin of the window.
    pub fn of(samples: &[SentinelSample], spec: &SentinelSpec, at: Nanos) -> QueueTrend {
        let answered = |sample: &&SentinelSample| sample.end == SentinelEnd::Answered;
        let ends = |sample: &SentinelSample| sample.began() + sample.wait();
        let before = samples.iter().filter(|s| answered(s) && ends(s) <= spec.before);
        let Some(longest) = before.map(SentinelSample::wait).max() else {
            return QueueTrend::Unseen;
        };
        let calm = Nanos(longest.0 * CALM_TIMES).max(longest + CALM_MORE).max(spec.harmless);
        let waits = |sample: &SentinelSample| match (sample.end, sample.wait_ns) {
            (SentinelEnd::Pending, 0) => at - sample.began(),
            _ => sample.wait(),
        };
        let overtaken = (0..samples.len()).filter(|&index| {
            let end = samples[index].began() + waits(&samples[index]);
            let mut later = samples[index + 1..].iter().filter(answered);
            samples[index].end != SentinelEnd::Refused && later.any(|s| ends(s) + calm < end)
        });
        if overtaken.count() >= OVERTAKEN_MIN {
            return QueueTrend::OutOfOrder;
        }
        let since: Vec<&SentinelSample> =
            samples.iter().filter(|s| s.began() >= spec.from && s.began() <= at).collect();
        let seconds = |s: &&SentinelSample| (s.began().as_secs_f64(), waits(s).as_secs_f64());
        let of = |end| since.iter().filter(move |s| s.end == end).copied();
        let known: Vec<Wait> = of(SentinelEnd::Answered).map(|s| seconds(&s)).collect();
        let pending: Vec<Wait> = of(SentinelEnd::Pending).map(|s| seconds(&s)).collect();
        let longest_pending = of(SentinelEnd::Pending).map(waits).max().unwrap_or_default();
        let at_least = of(SentinelEnd::Answered).last().map(waits).unwrap_or_default();
        let at_least = at_least.max(longest_pending);
        let calm_s = calm.as_secs_f64();
        // A single long wait between others is chance.
        let are_long = |two: &[Wait]| two.iter().all(|wait| wait.1 > calm_s);
        let calm_from = known.windows(2).rposition(are_long).map_or(0, |index| index + 2);
        if longest_pending <= calm
            && let [first, _, ..] = known[calm_from..]
        {
            return QueueTrend::Calm { since: Nanos::from_secs_f64(first.0) };
        }
        let busy: Vec<Wait> = samples.iter().filter(answered).map(|s| seconds(&s)).collect();
        let noise = Noise::of(&busy, &known, spec.every.as_secs_f64(), calm_s);
        let walk = Walk::along(&known, &pending, &noise);
        match walk.direction {
            Direction::Down if known.len() >= FALL_MIN => {
                let (from, last) = (walk.pivot, known[known.len() - 1]);
                let falls_s_per_s = (from.1 - last.1) / (last.0 - from.0).max(f64::MIN_POSITIVE);
                let empty = last.0 + (last.1 - longest.as_secs_f64()).max(0.0) / falls_s_per_s;
                let back_in = Nanos::from_secs_f64((empty - at.as_secs_f64()).max(0.0));
                QueueTrend::Falls(FallingQueue { wait: at_least, falls_s_per_s, back_in })
            }
            Direction::Down => QueueTrend::Unknown { wait: at_least },
            // A pause of the server is over by then.
            Direction::Up if at.as_secs_f64() - walk.pivot.0 - walk.pivot.1 >= STAYS_S => {
                QueueTrend::Stays { wait: at_least }
            }
            _ if is_full(&since, at) || is_constant(&known, &noise) || hovers(&known) => {
                QueueTrend::Stays { wait: at_least }
            }
            _ => QueueTrend::Unknown { wait: at_least },
        }
    }
}

/// How far a wait moves by chance.
struct Noise {
    /// Variance per second; `None` where too little is known.
    variance: Option<f64>,
    /// A rise by this is none of chance's.
    rise_s: f64,
    /// Nor is a fall by this. Pauses of the server make single rises, and no falls.
    fall_s: f64,
}

impl Noise {
    /// From second differences, in which a drift cancels out. Where those since the overload are
    /// few, from all: their median leaves out the places where the load changed.
    fn of(busy: &[Wait], known: &[Wait], every_s: f64, calm_s: f64) -> Noise {
        let differences = |waits: &[Wait]| -> Vec<f64> {
            let bends = waits.windows(3).filter(|three| {
                three[2].0 - three[0].0 < 3.0 * every_s && three.iter().all(|w| w.1 > calm_s)
            });
            let squares = bends.map(|three| {
                let bend = three[2].1 - 2.0 * three[1].1 + three[0].1;
                bend * bend / (three[2].0 - three[0].0)
            });
            squares.collect()
        };
        let (mut all, since) = (differences(busy), differences(known));
        all.sort_unstable_by(f64::total_cmp);
        let mean = since.iter().sum::<f64>() / since.len().max(1) as f64;
        let median = all.get(all.len() / 2).map(|middle| middle / MEDIAN_SQUARE);
        // Of few differences the variance may be far from the true one.
        let uncertain = |variance: f64, count: usize| variance * (1.0 + 6.0 / count as f64);
        let variance = match since.len() {
            DIFFERENCES_MIN.. => Some(uncertain(mean, since.len())),
            _ => median.map(|median| uncertain(median.max(mean), all.len())),
        };
        let longest = known.iter().map(|w| w.1).fold(0.0, f64::max);
        let turn_s = match variance {
            Some(variance) if 2 * all.len() >= DIFFERENCES_MIN => {
                variance * CERTAINTY / (2.0 * DRIFT)
            }
            _ => MOVE_SHARE * longest,
        };
        let rise_s = turn_s.max(MOVE_MIN_S);
        Noise { variance, rise_s, fall_s: rise_s.min((MOVE_SHARE * longest).max(FALL_S)) }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Unknown,
    Up,
    Down,
}

/// Where a wait turned last.
struct Walk {
    direction: Direction,
    /// The extreme from which it goes so.
    pivot: Wait,
}

impl Walk {
    /// Along the waits that are known and then those that are known to be as long at least.
    fn along(known: &[Wait], pending: &[Wait], noise: &Noise) -> Walk {
        let Noise { rise_s, fall_s, .. } = *noise;
        let mut direction = Direction::Unknown;
        let Some(&first) = known.first().or(pending.first()) else {
            return Walk { direction, pivot: (0.0, 0.0) };
        };
        let (mut pivot, mut extreme) = (first, first);
        let (mut lowest, mut highest) = (first, first);
        let bounds = pending.iter().map(|wait| (wait, true));
        for (&wait, is_bound) in known.iter().map(|wait| (wait, false)).chain(bounds) {
            let (is_higher, is_lower) = match direction {
                Direction::Unknown => {
                    highest = if wait.1 > highest.1 { wait } else { highest };
                    lowest = if wait.1 < lowest.1 && !is_bound { wait } else { lowest };
                    (wait.1 > lowest.1 + rise_s, wait.1 < highest.1 - fall_s)
                }
                Direction::Up => (wait.1 >= extreme.1, wait.1 < extreme.1 - fall_s),
                Direction::Down => (wait.1 > extreme.1 + rise_s, wait.1 <= extreme.1),
            };
            let turn = match (is_higher, is_lower && !is_bound) {
                (true, _) => Direction::Up,
                (_, true) => Direction::Down,
                (false, false) => continue,
            };
            if direction != turn {
                pivot = match (direction, turn) {
                    (Direction::Unknown, Direction::Up) => lowest,
                    (Direction::Unknown, _) => highest,
                    _ => extreme,
                };
            }
            (direction, extreme) = (turn, wait);
        }
        Walk { direction, pivot }
    }
}

/// Whether sentinels are refused again and again.
fn is_full(since: &[&SentinelSample], at: Nanos) -> bool {
    let stays = Nanos::from_secs_f64(STAYS_S);
    let late = since.iter().filter(|s| s.began() + stays >= at);
    let (mut all, mut refused) = (0, 0);
    for sample in late {
        all += 1;
        refused += usize::from(sample.end == SentinelEnd::Refused);
    }
    let begins = since.first().map_or(at, |s| s.began());
    at - begins >= stays
        && refused >= REFUSED_MIN
        && refused as f64 >= REFUSED_SHARE * f64::from(all)
}

/// Whether the waits stay within a band for longer than a walk of such moves would: the work that
/// comes follows the wait, as retries of what timed out do.
fn hovers(known: &[Wait]) -> bool {
    let (Some(first), Some(last)) = (known.first(), known.last()) else {
        return false;
    };
    let waits = || known.iter().map(|wait| wait.1);
    let (longest, shortest) = (waits().fold(0.0, f64::max), waits().fold(f64::MAX, f64::min));
    let seen_for = last.0 - first.0;
    let third = known.len() / 3;
    let mean = |waits: &[Wait]| waits.iter().map(|w| w.1).sum::<f64>() / waits.len() as f64;
    third > 0
        && seen_for >= (HOVER_TIMES * longest).max(2.0 * STAYS_S)
        && longest - shortest <= HOVER_SHARE * longest
        && mean(&known[..third]) - mean(&known[2 * third..]) < DRIFT * seen_for / 3.0
}

/// Whether the waits rule a fall out, against none at all.
fn is_constant(known: &[Wait], noise: &Noise) -> bool {
    let (Some(first), Some(last), Some(variance)) = (known.first(), known.last(), noise.variance)
    else {
        return false;
    };
    let seen_for = last.0 - first.0;
    let moved = last.1 - first.1;
    seen_for >= STAYS_S && moved + DRIFT * seen_for / 2.0 > variance * CERTAINTY / DRIFT
}
