//! The neutral form of metrics: what each is called, means and counts. Painters write it.

use super::BOUNDS;
use knee_load::measure::EndedCounts;

/// A metric with its values.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFamily {
    /// Its name in each form that has it.
    pub name: MetricName,
    /// The unit of its values.
    pub unit: MetricUnit,
    /// Its meaning, a sentence.
    pub help: &'static str,
    /// Its kind, and its values.
    pub values: MetricValues,
}

/// The name of a metric in each form; `None`: that form leaves it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricName {
    /// In OpenMetrics, without the suffixes of samples.
    pub openmetrics: Option<&'static str>,
    /// In OTLP.
    pub otlp: Option<&'static str>,
}

impl MetricName {
    /// A metric of both forms.
    pub(super) const fn both(openmetrics: &'static str, otlp: &'static str) -> MetricName {
        MetricName { openmetrics: Some(openmetrics), otlp: Some(otlp) }
    }
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A number of things; UCUM annotates it with the name of one.
    Count(&'static str),
    /// Things per second, with UCUM's annotation and unit.
    PerSecond(&'static str),
    /// A truth value, 0 or 1.
    One,
}

/// The kind of a metric, and its values.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricValues {
    /// Facts as labels.
    Info(Vec<MetricLabel>),
    /// Sums that only grow.
    Counter(Vec<MetricSample<u64>>),
    /// Values of the present.
    Gauge(Vec<MetricSample<f64>>),
    /// Times counted by [`BOUNDS`].
    Times(Vec<MetricSample<Times>>),
}

impl MetricValues {
    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        match self {
            MetricValues::Info(_) => false,
            MetricValues::Counter(samples) => samples.is_empty(),
            MetricValues::Gauge(samples) => samples.is_empty(),
            MetricValues::Times(samples) => samples.is_empty(),
        }
    }
}

/// A value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSample<V> {
    /// What tells it from others of the same metric.
    pub labels: Vec<MetricLabel>,
    /// The begin of what it counts, in nanoseconds since 1970-01-01 UTC.
    pub since_unix_ns: u64,
    /// The value.
    pub value: V,
}

/// A name and a value that tell samples apart. A name with a dot is one of OpenTelemetry's
/// semantic conventions; any other is of knee.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricLabel {
    /// Name.
    pub name: &'static str,
    /// Value.
    pub value: LabelValue,
}

/// The value of a label.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelValue {
    /// A text.
    Text(String),
    /// A whole number.
    Number(u64),
    /// The level of a quantile, 0 to 1.
    Level(f64),
}

impl MetricLabel {
    /// A label with a text.
    pub fn text(name: &'static str, value: impl Into<String>) -> MetricLabel {
        MetricLabel { name, value: LabelValue::Text(value.into()) }
    }

    /// A label with a number.
    pub fn number(name: &'static str, value: u64) -> MetricLabel {
        MetricLabel { name, value: LabelValue::Number(value) }
    }
}

/// Response times (or pings) counted by the [`BOUNDS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// How many are not longer than each bound.
    pub up_to: Vec<u64>,
    /// How many there are in all.
    pub count: u64,
    /// Their sum, in nanoseconds.
    pub sum_ns: f64,
}

impl Times {
    /// Adds further times.
    pub(super) fn add(&mut self, other: &Times) {
        self.up_to.resize(BOUNDS.len(), 0);
        for (mine, theirs) in self.up_to.iter_mut().zip(&other.up_to) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
    }
}

impl From<&EndedCounts> for Times {
    fn from(ended: &EndedCounts) -> Times {
        Times { up_to: ended.up_to(), count: ended.timed, sum_ns: ended.sum_ns }
    }
}
