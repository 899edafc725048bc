//! How improbable a long time is, by the law of the usual ones.

/// Probabilities of the quantiles by which a tail is fitted.
pub type TailPoints = [f64; 3];

/// Standard errors by which the shape of a tail must differ from an exponential one.
const SHAPE_Z: f64 = 1.645;
/// The heaviest tail.
const SHAPE_MAX: f64 = 1.5;
/// Least scale of a tail, as a share of its beginning.
const SCALE_MIN: f64 = 0.02;

/// The cumulative hazard of a law of times: minus the logarithm of the probability of a longer one.
///
/// Up to the last of three quantiles it is that of the observed times. Beyond it is a generalised
/// Pareto law whose scale and shape come from the distances of these quantiles, so that the longest
/// times have no say. The shape is that of an exponential law unless the quantiles differ from one
/// significantly. Of few times the tail is heavier (that of a predictive distribution).
#[derive(Clone, Debug)]
pub struct Hazard {
    /// Values and how many are not larger, ascending.
    cumulated: Vec<(f64, f64)>,
    count: f64,
    /// Where the fitted tail begins, and the hazard up to there.
    last: (f64, f64),
    scale: f64,
    shape: f64,
}

impl Hazard {
    /// The hazard by times with their counts in ascending order. They were rounded down to
    /// multiples of `grain`. `None` without any.
    pub fn of(
        times: impl Iterator<Item = (f64, u64)>,
        grain: f64,
        points: TailPoints,
    ) -> Option<Hazard> {
        let mut count = 0.0;
        let mut cumulated: Vec<(f64, f64)> = Vec::new();
        for (time, n) in times {
            count += n as f64;
            match cumulated.last_mut() {
                // A quantile lies among all that share a time.
                Some(last) if last.0 == time => last.1 = count,
                _ => cumulated.push((time, count)),
            }
        }
        let quantile = |p: f64| {
            let at = cumulated.partition_point(|(_, n)| *n < p * count);
            let below = at.checked_sub(1).map_or(0.0, |before| cumulated[before].1);
            let (time, n) = *cumulated.get(at)?;
            Some(time + grain * (p * count - below) / (n - below))
        };
        let [x1, x2, x3] = [quantile(points[0])?, quantile(points[1])?, quantile(points[2])?];
        let [h1, h2, h3] = points.map(|p| -(1.0 - p).ln());
        let least = grain.max(SCALE_MIN * x3);
        let [near, far] = [(x2 - x1) / (h2 - h1), (x3 - x2) / (h3 - h2)].map(|b| b.max(least));
        let growth = if x2 < 2.0 * grain { 0.0 } else { (far / near).ln() };
        // Of an exponential law, relative to the scale.
        let error = |from: usize, to: usize, h: f64| {
            (1.0 / (1.0 - points[to]) - 1.0 / (1.0 - points[from])) / h.powi(2)
        };
        let error = ((error(0, 1, h2 - h1) + error(1, 2, h3 - h2)) / count).sqrt();
        let significant = (growth - SHAPE_Z * error).max(0.0) / ((h3 - h1) / 2.0);
        let shape = (significant + 3.0 / count).min(SHAPE_MAX);
        let scale = far * (shape * (h3 - h2) / 2.0).exp();
        Some(Hazard { count, last: (x3, h3), scale, shape, cumulated })
    }

    /// The hazard up to `time`.
    pub fn up_to(&self, time: f64) -> f64 {
        let (last, hazard) = self.last;
        if time > last {
            return hazard + (self.shape * (time - last) / self.scale).ln_1p() / self.shape;
        }
        let at = self.cumulated.partition_point(|(t, _)| *t <= time);
        let below = at.checked_sub(1).map_or(0.0, |before| self.cumulated[before].1);
        (-(1.0 - below / self.count).ln()).min(hazard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::Law;
    use crate::rng;
    use crate::time::Nanos;

    /// The longest of many times of these laws is hardly ever improbable.
    #[test]
    fn the_longest_time_of_a_law_is_not_improbable() {
        let ms = Nanos::from_millis;
        for law in [
            Law::Fixed(ms(20)),
            Law::Exp(ms(3)),
            Law::Exp(ms(200)),
            Law::Uniform(ms(5), ms(50)),
            Law::LogNormal(ms(20), 0.5),
            Law::LogNormal(ms(20), 1.0),
        ] {
            let mut named = 0;
            for seed in 0..300 {
                let mut rng = rng::stream(seed, 0);
                let n = 10 << (seed % 10);
                let mut times: Vec<f64> =
                    (0..n).map(|_| (law.sample(&mut rng).as_secs_f64() * 1e3).floor()).collect();
                times.sort_by(f64::total_cmp);
                let longest = times[n - 1];
                let times = times.into_iter().map(|t| (t, 1));
                let hazard = Hazard::of(times, 1.0, [0.5, 0.8, 0.95]).expect("there are some");
                named += u32::from(hazard.up_to(longest) > (n as f64 * 1e6).ln());
            }
            assert!(named <= 6, "{law:?}: {named} of 300");
        }
    }

    #[test]
    fn a_time_far_beyond_all_others_is_improbable() {
        let times = (0..1_000).map(|i| (f64::from(i % 10), 1));
        let mut times: Vec<_> = times.chain([(300.0, 1)]).collect();
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let hazard = Hazard::of(times.into_iter(), 1.0, [0.5, 0.8, 0.95]).expect("there are some");
        assert!(hazard.up_to(300.0) > (1e9_f64).ln());
        assert!(hazard.up_to(9.5) < 6.0);
        assert!(Hazard::of(std::iter::empty(), 1.0, [0.5, 0.8, 0.95]).is_none());
    }
}
