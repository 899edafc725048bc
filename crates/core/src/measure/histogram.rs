//! Latencies as an HdrHistogram.

use crate::time::Nanos;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

/// Times from 1 ns to 1 h with 3 significant digits; merges are exact. Longer ones count as 1 h.
///
/// Serialised as the standard HdrHistogram V2 encoding in base64.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

/// The longest time that is told apart: 1 h.
const HIGHEST_NS: u64 = 3_600_000_000_000;

impl Default for Histogram {
    fn default() -> Histogram {
        let inner = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, 3);
        Histogram(inner.expect("the bounds are constants that the library accepts"))
    }
}

impl Histogram {
    /// Counts one time.
    #[inline]
    pub fn record(&mut self, t: Nanos) {
        self.0.saturating_record(t.0);
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Histogram) {
        self.0
            .add(&other.0)
            .expect("all histograms have the same bounds");
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Whether none was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mean, in nanoseconds; 0 where empty.
    pub fn mean_ns(&self) -> f64 {
        self.0.mean()
    }

    /// The standard deviation, in nanoseconds.
    pub fn std_dev_ns(&self) -> f64 {
        self.0.stdev()
    }

    /// The smallest; 0 where empty.
    pub fn min(&self) -> Nanos {
        Nanos(self.0.min())
    }

    /// The largest; 0 where empty.
    pub fn max(&self) -> Nanos {
        Nanos(self.0.max())
    }

    /// The time that a share `q` (0 to 1) of them did not exceed; 0 where empty.
    pub fn quantile(&self, q: f64) -> Nanos {
        Nanos(self.0.value_at_quantile(q))
    }

    /// The recorded values with their counts, ascending.
    pub fn iter_recorded(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.0
            .iter_recorded()
            .map(|v| (Nanos(v.value_iterated_to()), v.count_at_value()))
    }
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&self.0, &mut bytes)
            .map_err(serde::ser::Error::custom)?;
        s.serialize_str(&BASE64.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Histogram, D::Error> {
        let text = String::deserialize(d)?;
        let bytes = BASE64.decode(text).map_err(serde::de::Error::custom)?;
        let read = Deserializer::new().deserialize::<u64, _>(&mut bytes.as_slice());
        let mut histogram = Histogram::default();
        histogram
            .0
            .add(read.map_err(serde::de::Error::custom)?)
            .map_err(serde::de::Error::custom)?;
        Ok(histogram)
    }
}
