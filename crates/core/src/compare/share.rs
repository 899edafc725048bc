//! Comparison of shares: failed operations, lost datagrams.

use super::difference::Difference;
use super::draft::{RowDraft, RowSubject, RowTest};

/// Failures among operations, or losses among datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FailureCount {
    /// Failed or lost.
    pub hits: u64,
    /// All that ended or were sent.
    pub all: u64,
}

impl FailureCount {
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
pub(super) fn difference(a: &ShareSample, b: &ShareSample) -> Option<(Option<Difference>, f64)> {
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
    let apart = (sum_b.share() - sum_a.share()).abs();
    let apart = (apart - grain / 2.0).max(0.0);
    let counted = (a.intervals.len() + b.intervals.len()) as f64;
    let degrees = counted.max(DEGREES_MIN);
    let p_value = Difference::new(apart, variance.sqrt(), degrees).p_value;
    let ratio = (sum_a.hits > 0 && sum_b.hits > 0).then(|| {
        let of_log = |c: FailureCount| dispersion * (1.0 - c.share()) / c.hits as f64;
        let error = (of_log(sum_a) + of_log(sum_b) + between).sqrt();
        Difference::new((sum_b.share() / sum_a.share()).ln(), error, degrees)
    });
    Some((ratio, p_value))
}

/// A row of two shares; `None` if neither side has operations. `otherwise`: why they could not be
/// tested.
pub(super) fn draft(
    subject: RowSubject,
    a: &ShareSample,
    b: &ShareSample,
    otherwise: String,
) -> Option<RowDraft> {
    let sum = |side: &ShareSample| FailureCount::sum(side.runs.iter().copied());
    if sum(a).all + sum(b).all == 0 {
        return None;
    }
    let percent = |side: &ShareSample| (sum(side).all > 0).then(|| 100.0 * sum(side).share());
    let values = [percent(a), percent(b)];
    let (ratio, test) = match difference(a, b) {
        Some((ratio, p)) => (ratio, RowTest::PValue(p)),
        None if values == [Some(0.0); 2] => (None, RowTest::Alike("none on either side")),
        None => (None, RowTest::Unknown(otherwise)),
    };
    Some(RowDraft { subject, values, ratio, test })
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

    fn side(hits: &[u64], all: u64) -> ShareSample {
        let intervals: Vec<FailureCount> =
            hits.iter().map(|&hits| FailureCount { hits, all }).collect();
        ShareSample { runs: vec![FailureCount::sum(intervals.iter().copied())], intervals }
    }

    fn p(a: &ShareSample, b: &ShareSample) -> f64 {
        difference(a, b).unwrap().1
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
        let (ratio, p_value) = difference(&tenth, &double).unwrap();
        assert!(p_value < 0.01, "{p_value}");
        assert!((ratio.unwrap().log_ratio.exp() - 2.0).abs() < 0.01);
    }

    #[test]
    fn without_hits_there_is_nothing_to_compare() {
        assert!(difference(&side(&[0; 5], 10), &side(&[0; 5], 10)).is_none());
        assert!(difference(&ShareSample::default(), &side(&[1; 5], 10)).is_none());
        let (ratio, p_value) = difference(&side(&[0; 5], 10), &side(&[9; 5], 10)).unwrap();
        assert!(ratio.is_none() && p_value < 0.001);
    }
}
