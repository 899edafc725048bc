//! Latencies as an HdrHistogram.

use crate::time::Nanos;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

type Hdr = hdrhistogram::Histogram<u64>;

/// Times from 1 ns to 1 h with 3 significant digits; merges are exact. Longer ones count as 1 h.
/// Takes its 270 KB with the first time that is recorded, unless it is made [`Histogram::ready`].
///
/// Serialised as the standard HdrHistogram V2 encoding in base64.
#[derive(Clone, Debug, Default)]
pub struct Histogram(Option<Hdr>);

/// What a histogram without memory reads as.
static EMPTY: LazyLock<Hdr> = LazyLock::new(|| {
    let empty = Hdr::new_with_bounds(1, HIGHEST_NS, 3);
    empty.expect("the bounds are constants that the library accepts")
});

/// Times with their counts, without room for times that were not counted. A histogram of few
/// operations in a hundredth of its 270 KB. Times ascend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramCounts(Vec<(u64, u64)>);

impl HistogramCounts {
    /// Whether it has no observation.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The time that a share `q` (0 to 1) of them did not exceed; `None` where there are none.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        let all: u64 = self.0.iter().map(|entry| entry.1).sum();
        let rank = ((q * all as f64).ceil() as u64).max(1);
        let mut below = 0;
        let found = self.0.iter().find(|&&(_, n)| {
            below += n;
            below >= rank
        });
        found.map(|&(t, _)| Nanos(t))
    }

    /// Adds another's.
    pub fn merge(&mut self, other: &HistogramCounts) {
        self.0 = self.joined(other, |mine, theirs| mine + theirs);
    }

    /// What was counted since an earlier state of it. Where that had more of anything, it is no
    /// earlier state, and all of this is new.
    pub fn since(&self, earlier: &HistogramCounts) -> HistogramCounts {
        let mut is_later = true;
        let more = self.joined(earlier, |now, before| {
            is_later &= now >= before;
            now.saturating_sub(before)
        });
        if is_later { HistogramCounts(more) } else { self.clone() }
    }

    /// The same with times within 0.8 %: enough to look at, in a tenth of the room.
    pub fn coarse(&self) -> HistogramCounts {
        let mut coarse: Vec<(u64, u64)> = Vec::new();
        for &(t, n) in &self.0 {
            // Seven bits tell them apart; the middle stands for what these leave open.
            let open = (u64::BITS - t.leading_zeros()).saturating_sub(7);
            let t = (t >> open << open) + (1 << open >> 1);
            match coarse.last_mut() {
                Some((last, sum)) if *last == t => *sum += n,
                _ => coarse.push((t, n)),
            }
        }
        HistogramCounts(coarse)
    }

    /// Both in one pass, each time with what `of` makes of its two counts.
    fn joined(
        &self,
        other: &HistogramCounts,
        mut of: impl FnMut(u64, u64) -> u64,
    ) -> Vec<(u64, u64)> {
        let mut all = Vec::with_capacity(self.0.len().max(other.0.len()));
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        loop {
            let next = [mine.peek(), theirs.peek()].into_iter().flatten();
            let Some(t) = next.map(|entry| entry.0).min() else {
                return all;
            };
            let count = |from: &mut std::iter::Peekable<std::slice::Iter<'_, (u64, u64)>>| {
                from.next_if(|entry| entry.0 == t).map_or(0, |entry| entry.1)
            };
            let n = of(count(&mut mine), count(&mut theirs));
            if n > 0 {
                all.push((t, n));
            }
        }
    }
}

/// How many bands of [`Histogram::bands`] there are between a time and its double.
const BANDS_PER_OCTAVE: f64 = 8.0;

/// The band that a time falls in. Each is 2^(1/8), about 9 %, longer than the one below. Band 0
/// holds 1 ns, the highest is below 350.
pub fn band_of(t: Nanos) -> u16 {
    ((t.0.max(1) as f64).log2() * BANDS_PER_OCTAVE) as u16
}

/// The shortest time of a band.
pub fn band_start(band: u16) -> Nanos {
    Nanos((f64::from(band) / BANDS_PER_OCTAVE).exp2().round() as u64)
}

/// The longest time that is distinguished: 1 h.
const HIGHEST_NS: u64 = 3_600_000_000_000;

impl PartialEq for Histogram {
    fn eq(&self, other: &Histogram) -> bool {
        self.as_hdr() == other.as_hdr()
    }
}

impl Histogram {
    /// An empty one that has its memory: for those who must not wait for it at the first time.
    pub fn ready() -> Histogram {
        Histogram(Some(EMPTY.clone()))
    }

    #[inline]
    fn counting(&mut self) -> &mut Hdr {
        self.0.get_or_insert_with(|| EMPTY.clone())
    }

    /// Counts one time.
    #[inline]
    pub fn record(&mut self, t: Nanos) {
        self.counting().saturating_record(t.0);
    }

    /// Counts one time as `n`.
    #[inline]
    pub fn record_n(&mut self, t: Nanos, n: u64) {
        if n > 0 {
            self.counting().saturating_record_n(t.0, n);
        }
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Histogram) {
        match (&mut self.0, &other.0) {
            (_, None) => {}
            (Some(mine), Some(theirs)) => {
                mine.add(theirs).expect("all histograms have the same bounds");
            }
            (mine @ None, theirs) => mine.clone_from(theirs),
        }
    }

    /// The counts without the rest.
    pub fn counts(&self) -> HistogramCounts {
        HistogramCounts(self.iter_recorded().map(|(t, n)| (t.0, n)).collect())
    }

    /// The counts without those of a part of it.
    pub fn without(&self, part: &Histogram) -> Histogram {
        let mut rest = Histogram::default();
        rest.add(&self.counts().since(&part.counts()));
        rest
    }

    /// The same law with this many times the observations, rounded so that their sum is right.
    pub fn scaled(&self, factor: f64) -> Histogram {
        let mut scaled = Histogram::default();
        let (mut asked, mut given) = (0.0, 0);
        for (t, n) in self.iter_recorded() {
            asked += n as f64 * factor;
            let more = asked.round() as u64 - given;
            scaled.record_n(t, more);
            given += more;
        }
        scaled
    }

    /// Adds these.
    pub fn add(&mut self, counts: &HistogramCounts) {
        counts.0.iter().for_each(|&(t, n)| self.record_n(Nanos(t), n));
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        if let Some(counts) = &mut self.0 {
            counts.reset();
        }
    }

    /// Number of observations.
    pub fn count(&self) -> u64 {
        self.as_hdr().len()
    }

    /// Whether it has no observation.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The mean, in nanoseconds; 0 where empty.
    pub fn mean_ns(&self) -> f64 {
        self.as_hdr().mean()
    }

    /// The standard deviation, in nanoseconds.
    pub fn std_dev_ns(&self) -> f64 {
        self.as_hdr().stdev()
    }

    /// Root of the mean of the squares; 0 of none.
    pub fn root_mean_square_ns(&self) -> f64 {
        self.mean_ns().hypot(self.std_dev_ns())
    }

    /// The smallest; 0 where empty.
    pub fn min(&self) -> Nanos {
        Nanos(self.as_hdr().min())
    }

    /// The largest; 0 where empty.
    pub fn max(&self) -> Nanos {
        Nanos(self.as_hdr().max())
    }

    /// The time that a share `q` (0 to 1) of them did not exceed; 0 where empty.
    pub fn quantile(&self, q: f64) -> Nanos {
        Nanos(self.as_hdr().value_at_quantile(q))
    }

    /// The time that a share `q` of them did not exceed. A percentile needs at least 1/(1 − q)
    /// observations, so that one lies beyond it (p75: 4, p90: 10, p95: 20, p99: 100, p99.9: 1,000).
    /// The median needs one. `None` with fewer.
    pub fn percentile(&self, q: f64) -> Option<Nanos> {
        let needed = if q <= 0.5 { 1.0 } else { 1.0 / (1.0 - q) };
        // The hair is for 1/(1 − 0.9), which is not 10 but a little more.
        let told = self.count() as f64 >= needed - 1e-6 && !self.is_empty();
        told.then(|| self.quantile(q))
    }

    /// How many fall in each band (see [`band_of`]), ascending, bands without any left out.
    pub fn bands(&self) -> Vec<(u16, u64)> {
        let mut bands: Vec<(u16, u64)> = Vec::new();
        for (t, n) in self.iter_recorded() {
            let band = band_of(t);
            match bands.last_mut() {
                Some((last, sum)) if *last == band => *sum += n,
                _ => bands.push((band, n)),
            }
        }
        bands
    }

    /// How many are not longer than each of these times, which ascend; exact to the histogram's
    /// 3 significant digits.
    pub fn counts_up_to(&self, bounds: &[Nanos]) -> Vec<u64> {
        let mut counts = vec![0; bounds.len()];
        let mut recorded = self.iter_recorded().peekable();
        let mut sum = 0;
        for (count, bound) in counts.iter_mut().zip(bounds) {
            while let Some((_, n)) = recorded.next_if(|(t, _)| t <= bound) {
                sum += n;
            }
            *count = sum;
        }
        counts
    }

    /// As the library's own type, for those who write it in its formats.
    pub fn as_hdr(&self) -> &Hdr {
        self.0.as_ref().unwrap_or(&EMPTY)
    }

    /// The recorded values with their counts, ascending.
    pub fn iter_recorded(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.as_hdr().iter_recorded().map(|v| (Nanos(v.value_iterated_to()), v.count_at_value()))
    }
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(self.as_hdr(), &mut bytes)
            .map_err(serde::ser::Error::custom)?;
        s.serialize_str(&BASE64.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Histogram, D::Error> {
        let text = String::deserialize(d)?;
        let bytes = BASE64.decode(text).map_err(serde::de::Error::custom)?;
        let read = Deserializer::new().deserialize::<u64, _>(&mut bytes.as_slice());
        let read = read.map_err(serde::de::Error::custom)?;
        let bounds = |of: &Hdr| (of.low(), of.high(), of.sigfig());
        let mut histogram = Histogram::default();
        if bounds(&read) == bounds(&EMPTY) {
            histogram.0 = (!read.is_empty()).then_some(read);
        } else {
            histogram.counting().add(read).map_err(serde::de::Error::custom)?;
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(times_us: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        times_us.iter().for_each(|&us| histogram.record(Nanos::from_micros(us)));
        histogram
    }

    #[test]
    fn a_time_lies_in_the_band_that_begins_before_it() {
        for ns in [1, 2, 3, 100, 999, 1_000, 123_456, 5_000_000, HIGHEST_NS] {
            let band = band_of(Nanos(ns));
            assert!(band_start(band).0 <= ns, "{ns}");
            assert!(band < 350 && ns <= band_start(band + 1).0, "{ns}");
        }
    }

    #[test]
    fn a_percentile_needs_an_observation_beyond_it() {
        for (q, needed) in [(0.5, 1), (0.75, 4), (0.9, 10), (0.95, 20), (0.99, 100), (0.999, 1_000)]
        {
            let times: Vec<u64> = (1..=needed).collect();
            assert!(of(&times).percentile(q).is_some(), "{q} of {needed}");
            assert_eq!(of(&times[1..]).percentile(q), None, "{q}, one fewer");
        }
        assert_eq!(of(&[7]).percentile(0.5), Some(of(&[7]).max()));
    }

    proptest! {
        #[test]
        fn counts_add_and_subtract_as_their_histograms(
            earlier in proptest::collection::vec(1_u64..5_000_000_000, 0..40),
            later in proptest::collection::vec(1_u64..5_000_000_000, 0..40),
        ) {
            let dense = |times: &[u64]| {
                let mut histogram = Histogram::default();
                times.iter().for_each(|&ns| histogram.record(Nanos(ns)));
                histogram
            };
            let all = dense(&[&earlier[..], &later[..]].concat());
            let (earlier, later) = (dense(&earlier), dense(&later));
            prop_assert_eq!(all.counts().since(&earlier.counts()), later.counts());
            let mut sum = later.counts();
            sum.merge(&earlier.counts());
            prop_assert_eq!(&sum, &all.counts());
            let mut again = Histogram::default();
            again.add(&sum);
            prop_assert_eq!(&again, &all);
            let mut coarse = Histogram::default();
            coarse.add(&sum.coarse());
            prop_assert_eq!(coarse.count(), all.count());
            for q in [0.5, 0.9, 1.0] {
                let told = sum.quantile(q).unwrap_or_default();
                prop_assert_eq!(told, all.quantile(q));
                let (near, exact) = (coarse.quantile(q).0 as f64, all.quantile(q).0 as f64);
                prop_assert!((near / exact.max(1.0) - 1.0).abs() < 0.01 || all.is_empty());
            }
        }
    }

    #[test]
    fn what_is_no_earlier_state_takes_nothing_off() {
        let (one, other) = (of(&[100, 200]).counts(), of(&[300]).counts());
        assert_eq!(one.since(&other), one);
        assert!(one.since(&one).is_empty());
    }

    #[test]
    fn bands_and_bounds_lose_nothing() {
        let histogram = of(&[100, 101, 250, 900, 5_000]);
        let bands = histogram.bands();
        assert_eq!(bands.iter().map(|b| b.1).sum::<u64>(), 5);
        assert_eq!(bands[0].1, 2);
        assert!(bands.windows(2).all(|b| b[0].0 < b[1].0));
        let bounds = [50, 200, 1_000, 10_000].map(Nanos::from_micros);
        assert_eq!(histogram.counts_up_to(&bounds), [0, 2, 4, 5]);
        assert_eq!(of(&[]).counts_up_to(&bounds), [0; 4]);
    }
}
