//! Ways to hold a rate of operations, and what was measured of each.

use super::{Chore, by_name};
use crate::measure::Histogram;
use crate::names::names;
use crate::spec::{ArrivalLaw, Margins, ParseError, Rate};
use crate::throttle::CatchUp;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

names! {
    /// A way to hold a rate.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum HoldMethod {
        /// Operate, sleep 1/rate, again: what everybody writes first.
        NaiveSleep = "naive-sleep",
        /// Operate, sleep for what is left of 1/rate since the last operation began.
        RelativeSleep = "relative-sleep",
        /// Wake up with a clock's tick of 10 ms and make all operations that are due by then.
        Tick = "tick",
        /// Take a token that is refilled at the rate, sleep for the lack where there is none.
        TokenBucket = "token-bucket",
        /// Make an operation for each expiry of a periodic timer (timerfd with an interval).
        IntervalTimer = "interval-timer",
        /// The throttle's schedule, waited for by reading the clock.
        Spin = "spin",
        /// The throttle, with its best wait.
        Throttle = "throttle",
    }
}

impl HoldMethod {
    /// The method of this name.
    ///
    /// # Errors
    /// There is none: the line lists those there are.
    pub fn parse(text: &str) -> Result<HoldMethod, ParseError> {
        by_name(text, HoldMethod::ALL, HoldMethod::name, "way to hold a rate")
    }
}

/// One row of the table of rates: one method holding one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoldSpec {
    /// How to hold it.
    pub method: HoldMethod,
    /// Mean operations per second.
    pub rate: Rate,
    /// When they come; the methods that know no schedule take 1/rate for each gap.
    pub arrival: ArrivalLaw,
    /// What the throttle does after a stall.
    pub catch_up: CatchUp,
    /// Waits shorter than this are not made: the throttle groups operations instead.
    pub wait_min: Nanos,
    /// How long the rate is held.
    pub duration: Nanos,
    /// The operation.
    pub chore: Chore,
    /// Seeds the arrivals.
    pub seed: u64,
    /// Where the throttle's wait begins.
    pub margins: Margins,
}

/// One row of the table of rates as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoldTrial {
    /// The specification of the row.
    pub spec: HoldSpec,
    /// What came of it.
    pub holds: HoldStats,
}

/// Operations of one method that was to hold a rate. Streams: no time is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HoldStats {
    /// Operations made.
    pub operations: u64,
    /// Operations that the schedule had but the catch-up policy left out.
    pub skipped: u64,
    /// By how much the catch-up policy moved the schedule back.
    pub shifted: Nanos,
    /// Begin of an operation against the asked schedule, late ones; early ones count as 0.
    pub error: Histogram,
    /// How many began before their intended time (grouped operations do).
    pub early: u64,
    /// Time of begin (s) against number of the operation: what the rate is read off.
    pub pace: RunningLine,
    /// Lateness (s) against the intended time (s): what the drift is read off.
    pub lateness: RunningLine,
    /// Gaps between begins, in nanoseconds.
    pub gap: RunningSpread,
    /// Begin of the first operation.
    pub first: Nanos,
    /// Begin of the last operation.
    pub last: Nanos,
    /// Processor time of the thread.
    pub cpu: Nanos,
    /// Length of the run.
    pub elapsed: Nanos,
    /// Time spent in the operations themselves.
    pub operating: Nanos,
    /// The user ended it early.
    pub interrupted: bool,
}

/// A least-squares line through points that come one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunningLine {
    /// Points.
    pub count: u64,
    /// Mean abscissa.
    pub mean_x: f64,
    /// Mean ordinate.
    pub mean_y: f64,
    /// Sum of squared deviations of the abscissae.
    pub deviations_xx: f64,
    /// Sum of products of deviations.
    pub deviations_xy: f64,
    /// Sum of squared deviations of the ordinates.
    #[serde(default)]
    pub deviations_yy: f64,
}

/// Mean and variance of numbers that come one by one (Welford's method).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunningSpread {
    /// Numbers.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Sum of squared deviations from it.
    pub deviations: f64,
}

impl HoldStats {
    /// Counts an operation that the schedule wanted at `intended` and that began at `begun`.
    #[inline]
    pub fn record(&mut self, intended: Nanos, begun: Nanos) {
        if self.operations == 0 {
            self.first = begun;
        } else {
            self.gap.add((begun - self.last).0 as f64);
        }
        self.pace.add(self.operations as f64, begun.as_secs_f64());
        let late_s = begun.as_secs_f64() - intended.as_secs_f64();
        self.lateness.add(intended.as_secs_f64(), late_s);
        self.early += u64::from(begun < intended);
        self.error.record(begun - intended);
        self.operations += 1;
        self.last = begun;
    }
}

impl RunningLine {
    /// Adds a point.
    #[inline]
    pub fn add(&mut self, x: f64, y: f64) {
        self.count += 1;
        let off_x = x - self.mean_x;
        self.mean_x += off_x / self.count as f64;
        let off_y = y - self.mean_y;
        self.mean_y += off_y / self.count as f64;
        self.deviations_xx += off_x * (x - self.mean_x);
        self.deviations_xy += off_x * (y - self.mean_y);
        self.deviations_yy += off_y * (y - self.mean_y);
    }

    /// Its slope; `None` where fewer than two abscissae differ.
    pub fn slope(&self) -> Option<f64> {
        (self.deviations_xx > 0.0).then(|| self.deviations_xy / self.deviations_xx)
    }

    /// The largest error of the slope if the points are off the line by chance, in whatever order.
    /// By the inequality of Cauchy and Schwarz it is √(Σe²/Σ(x − x̄)²). It does not assume that a
    /// deviation is independent of the one before it. After a stall all of them depend on it.
    pub fn slope_error(&self) -> Option<f64> {
        let slope = self.slope()?;
        let residual = (self.deviations_yy - slope * self.deviations_xy).max(0.0);
        Some((residual / self.deviations_xx).sqrt())
    }
}

impl RunningSpread {
    /// Adds a number.
    #[inline]
    pub fn add(&mut self, x: f64) {
        self.count += 1;
        let off = x - self.mean;
        self.mean += off / self.count as f64;
        self.deviations += off * (x - self.mean);
    }

    /// Standard deviation (of a sample); `None` below two numbers.
    pub fn std_dev(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.deviations / (self.count - 1) as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_method_is_found_by_the_name_that_reports_give_it() {
        for method in HoldMethod::ALL {
            assert_eq!(HoldMethod::parse(method.name()), Ok(method));
            let json = serde_json::to_value(method).unwrap();
            assert_eq!(json, method.name());
        }
        let ParseError(line) = HoldMethod::parse("naive").unwrap_err();
        assert!(line.starts_with("'naive' is no way to hold a rate: there are naive-sleep, rel"));
    }

    #[test]
    fn policies_are_read_and_written() {
        for (text, policy, written) in [
            ("burst", CatchUp::ALL, "burst"),
            ("burst(20)", CatchUp::Burst(20), "burst(20)"),
            (" burst( 1 ) ", CatchUp::Burst(1), "burst(1)"),
            ("spread", CatchUp::Spread(2.0), "spread(2)"),
            ("spread(1.5)", CatchUp::Spread(1.5), "spread(1.5)"),
            ("skip", CatchUp::Skip, "skip"),
            ("delay", CatchUp::Delay, "delay"),
        ] {
            assert_eq!(CatchUp::parse(text), Ok(policy));
            assert_eq!(policy.to_string(), written);
        }
    }

    #[test]
    fn invalid_policy_error_says_what_is_valid() {
        for (text, what) in [
            ("", "is no policy"),
            ("bursts", "is no policy"),
            ("skip(3)", "is no policy"),
            ("delay()", "is no policy"),
            ("burst(0)", "is no burst"),
            ("burst(-1)", "is no burst"),
            ("burst()", "is no burst"),
            ("burst(2", "is no burst"),
            ("spread(1)", "never catches up"),
            ("spread(0.5)", "never catches up"),
            ("spread(NaN)", "never catches up"),
            ("spread(inf)", "never catches up"),
        ] {
            let ParseError(line) = CatchUp::parse(text).unwrap_err();
            let expected = format!("'{text}' {what}: give burst, burst(N) with N from 1, ");
            assert!(line.starts_with(&expected) && !line.contains('\n'), "{line}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn a_policy_is_read_back_as_it_was_written(n in 1u64.., times in 1.000_001f64..1e9) {
            for policy in [CatchUp::Burst(n), CatchUp::Spread(times)] {
                prop_assert_eq!(CatchUp::parse(&policy.to_string()), Ok(policy));
            }
        }
    }

    /// Slope of the least-squares line: n·Σxy − Σx·Σy over n·Σx² − (Σx)².
    fn slope(points: &[(f64, f64)]) -> f64 {
        let n = points.len() as f64;
        let sum = |f: fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>();
        let (x, y) = (sum(|p| p.0), sum(|p| p.1));
        (n * sum(|p| p.0 * p.1) - x * y) / (n * sum(|p| p.0 * p.0) - x * x)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_line_has_the_slope_of_least_squares(
            ys in prop::collection::vec(-1e3f64..1e3, 2..100), step in 0.1f64..10.0,
        ) {
            let points: Vec<(f64, f64)> = (0..).map(|i| f64::from(i) * step).zip(ys).collect();
            let mut line = RunningLine::default();
            for &(x, y) in &points {
                line.add(x, y);
            }
            let (found, expected) = (line.slope().unwrap(), slope(&points));
            prop_assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1.0));
            prop_assert_eq!(line.count, points.len() as u64);
        }

        #[test]
        fn noise_bends_a_line_by_no_more_than_its_error_bound(
            noise in prop::collection::vec(0.0f64..1.0, 3..100), slope in -1.0f64..1.0,
        ) {
            let n = noise.len() as f64;
            let mut line = RunningLine::default();
            for (x, e) in (0..).map(f64::from).zip(&noise) {
                line.add(x, slope * x + e);
            }
            let off = (line.slope().unwrap() - slope).abs();
            // All of it: what is left of the noise, and what the line took for slope.
            let mean = noise.iter().sum::<f64>() / n;
            let all = noise.iter().map(|e| (e - mean).powi(2)).sum::<f64>();
            let most = (all / line.deviations_xx).sqrt();
            let error = line.slope_error().unwrap();
            prop_assert!(off <= most + 1e-9);
            prop_assert!((error.powi(2) + off.powi(2) - most.powi(2)).abs() < 1e-6);
        }

        #[test]
        fn a_spread_has_the_deviation_of_the_whole_sample(
            xs in prop::collection::vec(0.0f64..1e6, 2..200),
        ) {
            let mut spread = RunningSpread::default();
            for &x in &xs {
                spread.add(x);
            }
            let n = xs.len() as f64;
            let mean = xs.iter().sum::<f64>() / n;
            let variance = xs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
            prop_assert!((spread.mean - mean).abs() <= 1e-9 * mean.max(1.0));
            let found = spread.std_dev().unwrap();
            prop_assert!((found - variance.sqrt()).abs() <= 1e-9 * variance.sqrt().max(1.0));
        }
    }

    #[test]
    fn what_has_no_slope_or_deviation_gives_none() {
        let (mut line, mut spread) = (RunningLine::default(), RunningSpread::default());
        assert_eq!((line.slope(), spread.std_dev()), (None, None));
        for y in [1.0, 2.0] {
            line.add(7.0, y);
        }
        spread.add(3.0);
        assert_eq!((line.slope(), spread.std_dev()), (None, None));
    }

    #[test]
    fn pace_and_drift_of_an_hour_are_exact_to_a_billionth() {
        // Asked for 1,000/s, held 0.1 ppm too slow, each operation late by a part of 20 µs.
        let mut holds = HoldStats::default();
        for k in 0..3_600_000u64 {
            let late = k / 10 + k * 7_919 % 20_000;
            holds.record(Nanos(k * 1_000_000), Nanos(k * 1_000_000 + late));
        }
        assert_eq!((holds.operations, holds.early), (3_600_000, 0));
        let (pace, drift) = (holds.pace.slope().unwrap(), holds.lateness.slope().unwrap());
        assert!((pace - 1.000_000_1e-3).abs() < 1e-12, "{pace}");
        assert!((drift - 1e-7).abs() < 1e-9, "{drift}");
        assert_eq!(holds.gap.count, 3_599_999);
        assert_eq!(holds.first, Nanos(0));
    }

    #[test]
    fn early_operations_are_counted_and_no_error_of_theirs_is() {
        let mut holds = HoldStats::default();
        for (intended, begun) in [(0, 0), (1_000, 400), (2_000, 2_300)] {
            holds.record(Nanos(intended), Nanos(begun));
        }
        assert_eq!((holds.early, holds.operations), (1, 3));
        assert_eq!((holds.first, holds.last), (Nanos(0), Nanos(2_300)));
        assert_eq!(holds.error.max(), Nanos(300));
        assert_eq!(holds.gap.mean, 1_150.0);
    }
}
