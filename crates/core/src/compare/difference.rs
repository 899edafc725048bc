//! Test whether two sides differ by more than runs of the same server do.
//!
//! Two runs of the same server differ by more than their own intervals show. The machine drifts
//! between them, and memory and threads are placed anew. So each figure has two parts of variance:
//! that within the run, which the run itself shows, and that *between* runs. With one run on a side
//! the latter is assumed. With several it is measured, and the assumption counts for less with each
//! run. This is the moderated t of Smyth (*Linear models and empirical Bayes methods*, 2004).
//!
//! Comparison of shares: failed operations, lost datagrams.
//!
//! The **spread between runs** is a standard deviation of the logarithm. The **false discovery
//! rate** is the share of what is called different that is expected to be equal. It is kept below 5
//! % over all rows of a comparison, so that equal servers are called different in fewer than 1 of
//! 20. (Benjamini and Hochberg, 1995)

use super::estimate::LogEstimate;
use knee_load::measure::{Outcome, Outcomes};
use knee_load::stats::sample::{mean, t_beyond, within};

/// Degrees of freedom of the assumed spread between runs: its weight against measured runs beyond
/// the first of each side. The tails of Student's t allow for a spread one and a half times as
/// large.
const ASSUMED_DEGREES: f64 = 6.0;
/// Degrees of freedom at which Student's law is the normal one.
const DEGREES_MAX: f64 = 1_000.0;

/// The spread between runs, as a standard deviation of the logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RunSpread {
    /// The usual spread.
    Usual(f64),
    /// An unknown spread that may be this large, unless several runs measure it.
    Unknown(f64),
}

/// The difference of two sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    /// Natural logarithm of B / A.
    pub log_ratio: f64,
    /// Half of its 95 % confidence interval.
    pub half: f64,
    /// The probability of one as large between equals.
    pub p_value: f64,
    /// Its standard error.
    error: f64,
    /// Degrees of freedom of the standard error.
    degrees: u64,
}

impl Difference {
    /// From a difference, its standard error and the degrees of freedom of that.
    pub(super) fn new(log_ratio: f64, error: f64, degrees: f64) -> Difference {
        let degrees = degrees.clamp(1.0, DEGREES_MAX) as u64;
        let t = if error > 0.0 { (log_ratio / error).abs() } else { 0.0 };
        Difference {
            log_ratio,
            half: t_beyond(0.05, degrees) * error,
            p_value: (1.0 - within(t, degrees)).clamp(0.0, 1.0),
            error,
            degrees,
        }
    }

    /// The smallest difference that counts among this number of rows, if it is the only one.
    pub(super) fn smallest_seen(&self, alpha: f64, rows: usize) -> f64 {
        t_beyond(alpha / rows.max(1) as f64, self.degrees) * self.error
    }
}

/// Difference of B from A from a figure of each run. `None` with one run on each side and no
/// variance, or without any run.
pub(super) fn difference(
    a: &[LogEstimate],
    b: &[LogEstimate],
    between: RunSpread,
) -> Option<Difference> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let logs = |side: &[LogEstimate]| side.iter().map(|e| e.log).collect::<Vec<f64>>();
    let (logs_a, logs_b) = (logs(a), logs(b));
    let measured = MeasuredSpread::of(&logs_a, &logs_b);
    let within_runs: Option<Vec<f64>> = a.iter().chain(b).map(|e| e.variance).collect();
    if within_runs.is_none() && measured.degrees < 2.0 {
        return None;
    }
    let within_run = within_runs.map_or(0.0, |v| mean(&v));
    let degrees_within: f64 = a.iter().chain(b).map(|e| e.degrees).sum();
    let (variance, degrees) = match between {
        RunSpread::Unknown(_) if measured.degrees >= 2.0 => {
            (measured.variance.max(within_run), measured.degrees)
        }
        RunSpread::Usual(spread) | RunSpread::Unknown(spread) => {
            let assumed = spread * spread;
            let whole = assumed + within_run;
            // Welch and Satterthwaite: the degrees of freedom of a sum of variances.
            let doubt =
                assumed.powi(2) / ASSUMED_DEGREES + within_run.powi(2) / degrees_within.max(1.0);
            let degrees = whole.powi(2) / doubt;
            let total_degrees = degrees + measured.degrees;
            let weighed = degrees * whole + measured.degrees * measured.variance;
            (weighed / total_degrees, total_degrees)
        }
    };
    let error = (variance * (1.0 / a.len() as f64 + 1.0 / b.len() as f64)).sqrt();
    let log_ratio = mean(&logs_b) - mean(&logs_a);
    Some(Difference::new(log_ratio, error, degrees))
}

/// Spread between the runs of each side.
struct MeasuredSpread {
    variance: f64,
    degrees: f64,
}

impl MeasuredSpread {
    fn of(a: &[f64], b: &[f64]) -> MeasuredSpread {
        let squares = |x: &[f64]| x.iter().map(|v| (v - mean(x)).powi(2)).sum::<f64>();
        let degrees = (a.len() + b.len() - 2) as f64;
        MeasuredSpread { variance: (squares(a) + squares(b)) / degrees.max(1.0), degrees }
    }
}

/// Mean logarithmic ratio of pairs measured under the same conditions, such as scenarios, by
/// Student's t for pairs. `None` below three pairs of positive figures.
pub(super) fn paired_difference(pairs: &[(f64, f64)], spread: f64) -> Option<Difference> {
    let logs: Vec<f64> =
        pairs.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0).map(|(a, b)| (b / a).ln()).collect();
    let n = logs.len() as f64;
    if logs.len() < 3 {
        return None;
    }
    let within_pair = knee_load::stats::sample::variance(&logs) / n;
    let assumed = 2.0 * spread * spread;
    let whole = within_pair + assumed;
    let doubt = within_pair.powi(2) / (n - 1.0) + assumed.powi(2) / ASSUMED_DEGREES;
    Some(Difference::new(mean(&logs), whole.sqrt(), whole.powi(2) / doubt))
}

/// Which of these p-values are differences, by the procedure of Benjamini and Hochberg (J. R. Stat.
/// Soc. B 57, 1995). A share `alpha` of its findings is expected to be false at most. Without any
/// difference it finds one with a probability of at most `alpha`. That also holds for correlated
/// metrics of one run (Benjamini and Yekutieli, Ann. Stat. 29, 2001).
pub(super) fn discoveries(p_values: &[f64], alpha: f64) -> Vec<bool> {
    let mut sorted = p_values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let limit = (1..)
        .zip(&sorted)
        .filter(|&(rank, &p)| p <= alpha * f64::from(rank) / n)
        .map(|(_, &p)| p)
        .fold(f64::NEG_INFINITY, f64::max);
    p_values.iter().map(|&p| p <= limit).collect()
}

/// Failures among operations, or losses among datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FailureCount {
    /// Failed or lost.
    pub hits: u64,
    /// All that ended or were sent.
    pub all: u64,
}

impl FailureCount {
    /// The operations that ended, and those of them that failed.
    pub(super) fn of(outcomes: &Outcomes) -> FailureCount {
        let all = outcomes.total() - outcomes.count(Outcome::InFlight);
        FailureCount { hits: outcomes.errors(), all }
    }

    /// The sum of several.
    pub(super) fn sum(counts: impl IntoIterator<Item = FailureCount>) -> FailureCount {
        counts.into_iter().fold(FailureCount::default(), |sum, c| FailureCount {
            hits: sum.hits + c.hits,
            all: sum.all + c.all,
        })
    }

    /// Share of the hits, 0 to 1; 0 if there are none at all.
    pub(super) fn share(self) -> f64 {
        self.hits as f64 / self.all.max(1) as f64
    }
}

/// Counts of one side.
#[derive(Clone, Debug, Default)]
pub(super) struct ShareSample {
    /// One count for each run.
    pub runs: Vec<FailureCount>,
    /// Counts of the intervals of all runs, where they count the same failures.
    pub intervals: Vec<FailureCount>,
}

/// Standard deviation of a share between runs, relative to the share.
const SPREAD: f64 = 0.15;
/// Degrees of freedom of that assumption.
const DEGREES_MIN: f64 = 6.0;

/// Difference of two shares and its p-value, by the normal approximation with a correction for
/// continuity. The variance is multiplied by the dispersion: errors come in bursts, and a burst is
/// one event. The difference as a ratio needs hits on both sides. `None` if a side has no
/// operations, or neither has a hit.
pub(super) fn share_difference(
    a: &ShareSample,
    b: &ShareSample,
) -> Option<(Option<Difference>, f64)> {
    let (sum_a, sum_b) =
        (FailureCount::sum(a.runs.iter().copied()), FailureCount::sum(b.runs.iter().copied()));
    let pooled = FailureCount::sum([sum_a, sum_b]);
    if sum_a.all == 0 || sum_b.all == 0 || pooled.hits == 0 {
        return None;
    }
    let dispersion = [&a.intervals, &b.intervals, &a.runs, &b.runs]
        .iter()
        .map(|counts| dispersion(counts))
        .fold(1.0, f64::max);
    let runs = |n: usize| SPREAD * SPREAD / n as f64;
    let between = runs(a.runs.len()) + runs(b.runs.len());
    let p = pooled.share();
    let grain = 1.0 / sum_a.all as f64 + 1.0 / sum_b.all as f64;
    let variance = p * (1.0 - p) * grain * dispersion + p * p * between;
    let apart = ((sum_b.share() - sum_a.share()).abs() - grain / 2.0).max(0.0);
    let counted = (a.intervals.len() + b.intervals.len()) as f64;
    let degrees = counted.max(DEGREES_MIN);
    let p_value = Difference::new(apart, variance.sqrt(), degrees).p_value;
    let ratio = (sum_a.hits > 0 && sum_b.hits > 0).then(|| {
        let log_variance = |c: FailureCount| dispersion * (1.0 - c.share()) / c.hits as f64;
        let error = (log_variance(sum_a) + log_variance(sum_b) + between).sqrt();
        Difference::new((sum_b.share() / sum_a.share()).ln(), error, degrees)
    });
    Some((ratio, p_value))
}

/// Ratio of the variance of counts to that of independent hits; 0 without hits.
fn dispersion(counts: &[FailureCount]) -> f64 {
    let p = FailureCount::sum(counts.iter().copied()).share();
    let counted: Vec<&FailureCount> = counts.iter().filter(|c| c.all > 0).collect();
    if p <= 0.0 || p >= 1.0 || counted.len() < 2 {
        return 0.0;
    }
    let squares: f64 = counted
        .iter()
        .map(|c| {
            let expected = c.all as f64 * p;
            (c.hits as f64 - expected).powi(2) / (expected * (1.0 - p))
        })
        .sum();
    squares / (counted.len() - 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(value: f64, spread: f64) -> LogEstimate {
        LogEstimate { log: value.ln(), variance: Some(spread * spread), degrees: 9.0 }
    }

    const USUAL: RunSpread = RunSpread::Usual(0.02);

    #[test]
    fn one_run_each_rests_on_what_is_usual() {
        let apart = |ratio: f64| {
            difference(&[run(100.0, 0.001)], &[run(100.0 * ratio, 0.001)], USUAL).unwrap()
        };
        // 2.447 times the square root of two, times 2 %.
        assert!((apart(1.15).half - 0.0692).abs() < 5e-4, "{:?}", apart(1.15));
        assert!(apart(1.15).p_value < 0.005);
        assert!(apart(1.05).p_value > 0.1);
        assert!((apart(1.0).p_value - 1.0).abs() < 1e-12);
    }

    #[test]
    fn more_runs_tell_of_their_own_spread() {
        let close = [100.0, 100.2, 99.9, 100.1, 99.8].map(|v| run(v, 0.001));
        let above = [103.0, 103.2, 102.9, 103.1, 102.8].map(|v| run(v, 0.001));
        let wide = [90.0, 112.0, 99.0, 107.0, 93.0].map(|v| run(v, 0.001));
        let high = [103.0, 118.0, 95.0, 110.0, 99.0].map(|v| run(v, 0.001));
        let p = |a: &[LogEstimate], b: &[LogEstimate]| difference(a, b, USUAL).unwrap().p_value;
        assert!(p(&close, &above) < 0.02, "{}", p(&close, &above));
        assert!(p(&close[..1], &above[..1]) > 0.1);
        assert!(p(&wide, &high) > 0.1, "{}", p(&wide, &high));
    }

    #[test]
    fn what_nobody_knows_is_not_told_by_one_run_each() {
        let unknown = RunSpread::Unknown(0.3);
        let one = difference(&[run(100.0, 0.001)], &[run(150.0, 0.001)], unknown).unwrap();
        assert!(one.p_value > 0.2, "{one:?}");
        let a = [100.0, 103.0, 98.0].map(|v| run(v, 0.001));
        let b = [150.0, 155.0, 148.0].map(|v| run(v, 0.001));
        assert!(difference(&a, &b, unknown).unwrap().p_value < 0.001);
    }

    #[test]
    fn without_any_spread_nothing_is_told() {
        let bare = |v| LogEstimate::bare(v).unwrap();
        assert_eq!(difference(&[bare(1.0)], &[bare(2.0)], USUAL), None);
        assert_eq!(difference(&[], &[bare(2.0)], USUAL), None);
        let two = |v: f64| [bare(v), bare(v * 1.01)];
        assert!(difference(&two(1.0), &two(2.0), USUAL).unwrap().p_value < 0.001);
    }

    #[test]
    fn pairs_are_compared_pair_by_pair() {
        let slower: Vec<(f64, f64)> = (1..=9)
            .map(|i| (f64::from(i), f64::from(i) * (1.2 + 0.01 * f64::from(i % 3))))
            .collect();
        let d = paired_difference(&slower, 0.02).unwrap();
        assert!(d.p_value < 0.01 && (d.log_ratio.exp() - 1.21).abs() < 0.01, "{d:?}");
        let mixed: Vec<(f64, f64)> =
            (1..=9).map(|i| (1.0, if i % 2 == 0 { 1.3 } else { 0.8 })).collect();
        assert!(paired_difference(&mixed, 0.02).unwrap().p_value > 0.3);
        assert_eq!(paired_difference(&[(1.0, 2.0), (1.0, 2.0), (0.0, 1.0)], 0.02), None);
    }

    #[test]
    fn of_many_p_values_the_small_ones_are_found() {
        assert_eq!(discoveries(&[], 0.05), [] as [bool; 0]);
        assert_eq!(discoveries(&[0.03, 0.5, 0.9], 0.05), [false; 3]);
        assert_eq!(discoveries(&[0.03, 0.04, 0.045], 0.05), [true; 3]);
        assert_eq!(discoveries(&[0.5, 0.001, 0.04], 0.05), [false, true, false]);
    }

    fn side(hits: &[u64], all: u64) -> ShareSample {
        let intervals: Vec<FailureCount> =
            hits.iter().map(|&hits| FailureCount { hits, all }).collect();
        ShareSample { runs: vec![FailureCount::sum(intervals.iter().copied())], intervals }
    }

    fn p(a: &ShareSample, b: &ShareSample) -> f64 {
        share_difference(a, b).unwrap().1
    }

    #[test]
    fn a_burst_of_errors_is_one_event_and_a_steady_share_is_not() {
        let none = side(&[0; 10], 1_000);
        assert!(p(&none, &side(&[0, 0, 12, 0, 0, 0, 0, 0, 0, 0], 1_000)) > 0.05);
        assert!(p(&none, &side(&[2, 0, 1, 2, 1, 1, 2, 1, 1, 1], 1_000)) < 0.01);
        assert!(p(&none, &side(&[0, 1, 0, 0, 1, 0, 0, 0, 1, 0], 1_000)) > 0.1);
    }

    #[test]
    fn shares_that_are_alike_are_not_told_apart() {
        let tenth = side(&[100, 95, 104, 99, 103, 98, 101, 102, 97, 100], 1_000);
        let more = side(&[108, 99, 110, 102, 105, 101, 109, 107, 98, 104], 1_000);
        let double = side(&[200, 195, 204, 199, 203, 198, 201, 202, 197, 200], 1_000);
        assert!(p(&tenth, &more) > 0.3);
        let (ratio, p_value) = share_difference(&tenth, &double).unwrap();
        assert!(p_value < 0.01, "{p_value}");
        assert!((ratio.unwrap().log_ratio.exp() - 2.0).abs() < 0.01);
    }

    #[test]
    fn without_hits_there_is_nothing_to_compare() {
        assert!(share_difference(&side(&[0; 5], 10), &side(&[0; 5], 10)).is_none());
        assert!(share_difference(&ShareSample::default(), &side(&[1; 5], 10)).is_none());
        let (ratio, p_value) = share_difference(&side(&[0; 5], 10), &side(&[9; 5], 10)).unwrap();
        assert!(ratio.is_none() && p_value < 0.001);
    }
}
