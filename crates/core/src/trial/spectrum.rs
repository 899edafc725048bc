//! A whole distribution in few points, for plots on a scale that stretches its tail.

use crate::measure::Histogram;
use crate::trial::report::PercentilePoint;

/// Points until the distance to 100 has halved.
const PER_HALVING: u32 = 4;

/// Percentiles from 0 on, [`PER_HALVING`] of them each time the distance to 100 halves, as long as
/// at least one observation lies beyond, and the largest at 100; empty where nothing was observed.
///
/// That is the spacing of HdrHistogram's percentile output ("ticks per half distance").
pub(super) fn spectrum(histogram: &Histogram) -> Vec<PercentilePoint> {
    let mut points = Vec::new();
    if histogram.is_empty() {
        return points;
    }
    let count = histogram.count() as f64;
    let mut distance = 1.0;
    while distance * count >= 1.0 {
        for step in 0..PER_HALVING {
            let beyond = distance * (1.0 - f64::from(step) / f64::from(2 * PER_HALVING));
            if beyond * count >= 1.0 {
                points.push(PercentilePoint {
                    percentile: (1.0 - beyond) * 100.0,
                    ns: histogram.quantile(1.0 - beyond).0,
                });
            }
        }
        distance /= 2.0;
    }
    points.push(PercentilePoint {
        percentile: 100.0,
        ns: histogram.max().0,
    });
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Nanos;

    #[test]
    fn a_distribution_is_told_up_to_its_last_observation() {
        let mut histogram = Histogram::default();
        assert_eq!(spectrum(&histogram), []);
        for us in 1..=1_000 {
            histogram.record(Nanos::from_micros(us));
        }
        let points = spectrum(&histogram);
        let ascend =
            |p: &[PercentilePoint]| p[0].percentile < p[1].percentile && p[0].ns <= p[1].ns;
        assert!(points.windows(2).all(ascend));
        assert_eq!(points[0].percentile, 0.0);
        let median = points.iter().find(|p| p.percentile == 50.0).unwrap();
        assert_eq!(median.ns, histogram.quantile(0.5).0);
        let last = points.last().unwrap();
        assert_eq!((last.percentile, last.ns), (100.0, histogram.max().0));
        // The one before leaves at least one observation beyond it.
        assert!(points[points.len() - 2].percentile <= 99.9);
        assert!(points.len() < 60, "{}", points.len());
    }

    #[test]
    fn one_observation_is_two_points() {
        let mut histogram = Histogram::default();
        histogram.record(Nanos(5));
        let points: Vec<u64> = spectrum(&histogram).iter().map(|p| p.ns).collect();
        assert_eq!(points, [5, 5]);
    }
}
