//! Statistics of the offered load: gaps between starts, and counts.

use crate::measure::Window;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// Index of dispersion of the counts of starts per bin: 1 for Poisson, 0 for equal gaps. `None`
/// with fewer than ten complete bins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dispersion {
    /// Bins of 1 ms.
    #[serde(rename = "1ms")]
    pub ms1: Option<f64>,
    /// Bins of 10 ms.
    #[serde(rename = "10ms")]
    pub ms10: Option<f64>,
    /// Bins of 100 ms.
    #[serde(rename = "100ms")]
    pub ms100: Option<f64>,
    /// Bins of 1 s.
    #[serde(rename = "1s")]
    pub s1: Option<f64>,
}

/// Least gaps of a sample.
const GAPS_MIN: usize = 10;
/// Least bins of a sample.
const BINS_MIN: u64 = 10;
/// Most gaps in the Kolmogorov–Smirnov test, evenly chosen.
const KS_GAPS_MAX: usize = 100_000;

/// Mean and standard deviation of the gaps between starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gaps {
    /// Number of gaps.
    pub count: usize,
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation.
    pub std_dev_ns: f64,
}

impl Gaps {
    /// Gaps between ascending starts; `None` below ten.
    pub fn of(starts: &[Nanos]) -> Option<Gaps> {
        let count = starts.len().saturating_sub(1);
        if count < GAPS_MIN {
            return None;
        }
        let mean_ns = (starts[count] - starts[0]).0 as f64 / count as f64;
        let squares: f64 = gaps_ns(starts).map(|gap| (gap - mean_ns).powi(2)).sum();
        Some(Gaps { count, mean_ns, std_dev_ns: (squares / (count - 1) as f64).sqrt() })
    }

    /// Coefficient of variation: 0 for equal gaps, 1 for Poisson.
    pub fn cv(&self) -> f64 {
        if self.mean_ns > 0.0 { self.std_dev_ns / self.mean_ns } else { 0.0 }
    }
}

/// Index of dispersion (variance over mean) of the counts of ascending starts, at four time scales.
/// Only the part of the window in which starts are known counts. It does not depend on where bins
/// begin: see [`counts`].
pub fn dispersion(starts: &[Nanos], known: Window) -> Dispersion {
    let at = |ms| counts(starts, known, Nanos::from_millis(ms)).map(|c| c.dispersion);
    Dispersion { ms1: at(1), ms10: at(10), ms100: at(100), s1: at(1_000) }
}

/// Counts of starts in windows of equal length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowCounts {
    /// Number of such windows one after another.
    pub bins: u64,
    /// Mean count.
    pub mean: f64,
    /// Variance over mean.
    pub dispersion: f64,
}

/// Counts ascending starts in windows of length `bin` at every offset; `None` where fewer than ten
/// fit one after another, or nothing was started.
///
/// The window slides over all of `known`, so that the result does not depend on where bins begin.
/// Bins that begin with a burst every two bins see all or nothing; bins that cut each burst in half
/// always see the same count. The variance is over the offsets. It is divided by the share that is
/// left where the mean comes from the same data. With D = length − bin that is 1 − bin/D · (1 −
/// bin/3D) for Poisson counts.
pub fn counts(starts: &[Nanos], known: Window, bin: Nanos) -> Option<WindowCounts> {
    let length = known.length();
    let bins = length.0 / bin.0;
    if bins < BINS_MIN {
        return None;
    }
    let at = |start: &Nanos| *start - known.start;
    let starts = &starts[..starts.partition_point(|start| at(start) < length)];
    if starts.is_empty() {
        return None;
    }
    let offsets = length - bin;
    // Deviations from a value near the mean lose no digits, and are exactly 0 for equal gaps.
    let guess = (starts.len() as f64 * bin.0 as f64 / length.0 as f64).round();
    let mut entered = starts.partition_point(|start| at(start) < bin);
    let (mut left, mut offset) = (0, Nanos::ZERO);
    let (mut sum, mut squares) = (0.0, 0.0);
    while offset < offsets {
        // A start enters when the end of the window reaches it, and leaves when the begin does.
        let enters = starts.get(entered).map_or(offsets, |s| at(s) - bin);
        let leaves = starts.get(left).map_or(offsets, at);
        let next = enters.min(leaves).min(offsets);
        let deviation = (entered - left) as f64 - guess;
        let width = (next - offset).0 as f64;
        sum += deviation * width;
        squares += deviation * deviation * width;
        entered += usize::from(enters == next && entered < starts.len());
        left += usize::from(leaves == next && left < starts.len());
        offset = next;
    }
    let total = offsets.0 as f64;
    let deviation = sum / total;
    let mean = guess + deviation;
    if mean <= 0.0 {
        return None;
    }
    let share = bin.0 as f64 / total;
    let seen = 1.0 - share * (1.0 - share / 3.0);
    let variance = (squares / total - deviation * deviation).max(0.0) / seen;
    Some(WindowCounts { bins, mean, dispersion: variance / mean })
}

/// A Kolmogorov–Smirnov test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KolmogorovSmirnov {
    /// The largest distance between the two distribution functions.
    pub distance: f64,
    /// The probability of a distance at least as large if the law holds.
    pub p_value: f64,
}

/// Tests the gaps between ascending starts against the exponential law of mean `1/rate_per_s`. The
/// rate is the intended one, so that no parameter comes from the data and the asymptotic law holds.
/// `None` below ten gaps.
///
/// p is Kolmogorov's Q(λ) = 2·Σ (−1)^(k−1)·exp(−2k²λ²) with Stephens' λ = (√n + 0.12 + 0.11/√n)·D
/// (J. Royal Statistical Society B 32, 1970).
pub fn exponential_test(starts: &[Nanos], rate_per_s: f64) -> Option<KolmogorovSmirnov> {
    let total = starts.len().saturating_sub(1);
    if total < GAPS_MIN {
        return None;
    }
    let step = total.div_ceil(KS_GAPS_MAX);
    let mut gaps: Vec<f64> = gaps_ns(starts).step_by(step).collect();
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let mut distance: f64 = 0.0;
    for (i, gap) in gaps.iter().enumerate() {
        let law = 1.0 - (-gap * rate_per_s / 1e9).exp();
        let (before, after) = (i as f64 / n, (i + 1) as f64 / n);
        distance = distance.max(after - law).max(law - before);
    }
    let root = n.sqrt();
    Some(KolmogorovSmirnov {
        distance,
        p_value: kolmogorov_q((root + 0.12 + 0.11 / root) * distance),
    })
}

fn kolmogorov_q(lambda: f64) -> f64 {
    // Below it the series converges slowly, to 1 within 10^-12.
    if lambda < 0.2 {
        return 1.0;
    }
    let terms = (1..=100).map(|k| {
        let sign = if k % 2 == 1 { 1.0 } else { -1.0 };
        sign * (-2.0 * f64::from(k * k) * lambda * lambda).exp()
    });
    (2.0 * terms.sum::<f64>()).clamp(0.0, 1.0)
}

fn gaps_ns(starts: &[Nanos]) -> impl Iterator<Item = f64> + '_ {
    starts.windows(2).map(|pair| (pair[1] - pair[0]).0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;
    use proptest::prelude::*;

    fn every(gap_us: u64, count: u64) -> Vec<Nanos> {
        (0..count).map(|k| Nanos::from_micros(k * gap_us)).collect()
    }

    fn poisson(seed: u64, rate_per_s: f64, count: usize) -> Vec<Nanos> {
        let mut rng = rng::stream(seed, 8);
        let mut t = 0.0;
        let starts = (0..count).map(|_| {
            t += rng::exp1(&mut rng) / rate_per_s;
            Nanos::from_secs_f64(t)
        });
        starts.collect()
    }

    fn until(end: Nanos) -> Window {
        Window { start: Nanos::ZERO, end }
    }

    #[test]
    fn a_metronome_has_neither_variation_nor_dispersion() {
        let starts = every(1_000, 20_000);
        let gaps = Gaps::of(&starts).expect("there are gaps");
        assert_eq!((gaps.cv(), gaps.mean_ns), (0.0, 1e6));
        let index = dispersion(&starts, until(Nanos::from_secs(20)));
        assert_eq!(index.ms10, Some(0.0));
        assert_eq!(index.s1, Some(0.0));
    }

    #[test]
    fn poisson_has_one_of_each_and_passes_its_test() {
        let mut rejected = 0;
        for seed in 0..100 {
            let starts = poisson(seed, 1_000.0, 5_000);
            let gaps = Gaps::of(&starts).expect("there are gaps");
            assert!((gaps.cv() - 1.0).abs() < 0.1, "{}", gaps.cv());
            let known = until(Nanos::from_millis(4_500));
            let index = dispersion(&starts, known).ms10.expect("450 bins");
            assert!((index - 1.0).abs() < 0.35, "{index}");
            let test = exponential_test(&starts, 1_000.0).expect("there are gaps");
            rejected += i32::from(test.p_value < 0.05);
        }
        assert!((1..=12).contains(&rejected), "{rejected} of 100 at the 5 % level");
    }

    #[test]
    fn other_laws_fail_the_test_of_the_exponential() {
        let wrong_rate = exponential_test(&poisson(1, 1_200.0, 5_000), 1_000.0);
        let metronome = exponential_test(&every(1_000, 5_000), 1_000.0);
        for test in [wrong_rate, metronome] {
            let test = test.expect("there are gaps");
            assert!(test.p_value < 1e-6 && test.distance > 0.05, "{test:?}");
        }
    }

    #[test]
    fn more_gaps_than_the_test_takes_are_thinned_out() {
        let test = exponential_test(&poisson(2, 1e6, 250_000), 1e6).expect("there are gaps");
        assert!(test.p_value > 0.001, "{test:?}");
    }

    #[test]
    fn kolmogorov_agrees_with_the_tables() {
        for (lambda, q) in [(0.1, 1.0), (0.8276, 0.5), (1.3581, 0.05), (1.6276, 0.01)] {
            assert!((kolmogorov_q(lambda) - q).abs() < 1e-3, "{lambda}");
        }
    }

    /// Bursts of 128 every 20 ms, the first at this time.
    fn bursts(first: Nanos, until: Nanos) -> Vec<Nanos> {
        let moment = |k: u64| first + Nanos(k / 128 * 20_000_000 + k % 128 * 1_000);
        (0..).map(moment).take_while(|&t| t < until).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// Bins of half the period see 128 and 0 in turn, or 64 each time.
        #[test]
        fn dispersion_of_bursts_does_not_depend_on_their_phase(first_ns in 0_u64..20_000_000) {
            let end = Nanos::from_secs(2);
            let index = dispersion(&bursts(Nanos(first_ns), end), until(end));
            let half = index.ms10.expect("200 bins");
            prop_assert!((half / 64.0 - 1.0).abs() < 0.03, "{}", half);
            let whole = counts(&bursts(Nanos(first_ns), end), until(end), Nanos(20_000_000));
            prop_assert!(whole.expect("100 bins").dispersion < 1.0, "{:?}", whole);
        }

        /// The mean over seeds of what ten bins show of Poisson is 1 at any phase.
        #[test]
        fn dispersion_of_poisson_is_one_on_average(phase_ns in 0_u64..10_000_000) {
            let mut sum = 0.0;
            for seed in 0..200 {
                let starts = poisson(seed, 10_000.0, 1_300);
                let known = Window {
                    start: Nanos(phase_ns),
                    end: Nanos(phase_ns) + Nanos::from_millis(100),
                };
                let starts: Vec<Nanos> =
                    starts.into_iter().filter(|t| *t >= known.start).collect();
                sum += counts(&starts, known, Nanos::from_millis(10)).expect("ten").dispersion;
            }
            prop_assert!((sum / 200.0 - 1.0).abs() < 0.15, "{}", sum / 200.0);
        }
    }

    #[test]
    fn too_little_is_no_sample() {
        assert_eq!(Gaps::of(&every(1_000, 10)), None);
        assert!(Gaps::of(&every(1_000, 11)).is_some());
        let index = dispersion(&every(1_000, 200), until(Nanos::from_millis(99)));
        assert!(index.ms1.is_some() && index.ms10.is_none());
        assert_eq!(dispersion(&[], until(Nanos::from_secs(60))), Dispersion::default());
    }
}
