//! Metrics as a request of OTLP, the OpenTelemetry protocol (opentelemetry.io/docs/specs/otlp), in
//! protobuf. Sums and histograms are cumulative: a request that is lost loses nothing but time.
//!
//! Messages are those that metrics need of opentelemetry/proto/metrics/v1/metrics.proto and
//! common/v1/common.proto. Fields that knee leaves out are not declared. The crate of all messages
//! brings the whole SDK along, so tests alone use it.

use crate::metrics::{
    BOUNDS, LabelValue, MetricFamily, MetricLabel, MetricSample, MetricUnit, MetricValues, Times,
};
use prost::{Message, Oneof};

/// The media type of a request.
pub const OTLP_CONTENT_TYPE: &str = "application/x-protobuf";

/// The release of OpenTelemetry's semantic conventions that names are of.
const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.37.0";

/// A request with all these metrics at `now_unix_ns`, nanoseconds since 1970-01-01 UTC. `resource`:
/// names and values of attributes of what is measured with.
pub fn otlp_request(
    families: &[MetricFamily],
    resource: &[(String, String)],
    now_unix_ns: u64,
) -> Vec<u8> {
    let facts = families.iter().filter_map(|family| match &family.values {
        MetricValues::Info(labels) => Some(attributes(labels)),
        _ => None,
    });
    let given =
        resource.iter().map(|(name, text)| attribute(name, AttributeValue::Text(text.clone())));
    let resource = Resource { attributes: given.chain(facts.flatten()).collect() };
    let scope = InstrumentationScope {
        name: "knee".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let metrics = families.iter().filter_map(|family| metric(family, now_unix_ns)).collect();
    let scope_metrics =
        ScopeMetrics { scope: Some(scope), metrics, schema_url: SCHEMA_URL.to_owned() };
    let resource_metrics = ResourceMetrics {
        resource: Some(resource),
        scope_metrics: vec![scope_metrics],
        schema_url: SCHEMA_URL.to_owned(),
    };
    ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] }.encode_to_vec()
}

/// How many values a collector rejected, by its answer, and why.
pub fn otlp_rejected(answer: &[u8]) -> Option<(u64, String)> {
    let answer = ExportMetricsServiceResponse::decode(answer).ok()?;
    let partial = answer.partial_success?;
    let rejected = u64::try_from(partial.rejected_data_points).ok().filter(|n| *n > 0)?;
    Some((rejected, partial.error_message))
}

fn metric(family: &MetricFamily, now_unix_ns: u64) -> Option<Metric> {
    let name = family.name.otlp?.to_owned();
    let data = match &family.values {
        MetricValues::Info(_) => return None,
        MetricValues::Counter(samples) => MetricData::Sum(Sum {
            data_points: numbers(samples, now_unix_ns, |n| NumberValue::AsInt(signed(*n))),
            aggregation_temporality: CUMULATIVE,
            is_monotonic: true,
        }),
        MetricValues::Gauge(samples) => MetricData::Gauge(Gauge {
            data_points: numbers(samples, now_unix_ns, |value| NumberValue::AsDouble(*value)),
        }),
        MetricValues::Times(samples) => MetricData::Times(TimesHistogram {
            data_points: samples.iter().map(|sample| histogram(sample, now_unix_ns)).collect(),
            aggregation_temporality: CUMULATIVE,
        }),
    };
    let unit = match family.unit {
        MetricUnit::Seconds => "s",
        MetricUnit::Bytes => "By",
        MetricUnit::Count(unit) | MetricUnit::PerSecond(unit) => unit,
        MetricUnit::One => "1",
    };
    let description = family.help.to_owned();
    Some(Metric { name, description, unit: unit.to_owned(), data: Some(data) })
}

fn numbers<V>(
    samples: &[MetricSample<V>],
    now_unix_ns: u64,
    number: fn(&V) -> NumberValue,
) -> Vec<NumberDataPoint> {
    let points = samples.iter().map(|sample| NumberDataPoint {
        attributes: attributes(&sample.labels).collect(),
        start_time_unix_nano: sample.since_unix_ns,
        time_unix_nano: now_unix_ns,
        value: Some(number(&sample.value)),
    });
    points.collect()
}

fn histogram(sample: &MetricSample<Times>, now_unix_ns: u64) -> HistogramDataPoint {
    let times = &sample.value;
    let upper = times.up_to.iter().copied().chain([times.count]);
    let lower = [0].into_iter().chain(times.up_to.iter().copied());
    HistogramDataPoint {
        attributes: attributes(&sample.labels).collect(),
        start_time_unix_nano: sample.since_unix_ns,
        time_unix_nano: now_unix_ns,
        count: times.count,
        sum: Some(times.sum_ns / 1e9),
        bucket_counts: upper.zip(lower).map(|(upper, lower)| upper - lower).collect(),
        explicit_bounds: BOUNDS.iter().map(|bound| bound.as_secs_f64()).collect(),
    }
}

/// Labels as attributes: names without a dot are of knee.
fn attributes(labels: &[MetricLabel]) -> impl Iterator<Item = KeyValue> + '_ {
    labels.iter().map(|MetricLabel { name, value }| {
        let value = match value {
            LabelValue::Text(text) => AttributeValue::Text(text.clone()),
            LabelValue::Number(number) => AttributeValue::Int(signed(*number)),
            LabelValue::Level(level) => AttributeValue::Double(*level),
        };
        if name.contains('.') {
            attribute(name, value)
        } else {
            attribute(&format!("knee.{name}"), value)
        }
    })
}

fn attribute(name: &str, value: AttributeValue) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

/// The protocol's whole numbers are signed.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportMetricsServiceRequest {
    #[prost(message, repeated, tag = "1")]
    pub resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_metrics: Vec<ScopeMetrics>,
    #[prost(string, tag = "3")]
    pub schema_url: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<Metric>,
    #[prost(string, tag = "3")]
    pub schema_url: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct InstrumentationScope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Metric {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub description: String,
    #[prost(string, tag = "3")]
    pub unit: String,
    #[prost(oneof = "MetricData", tags = "5, 7, 9")]
    pub data: Option<MetricData>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum MetricData {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
    #[prost(message, tag = "9")]
    Times(TimesHistogram),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Gauge {
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Sum {
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    pub is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TimesHistogram {
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<HistogramDataPoint>,
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
}

/// AGGREGATION_TEMPORALITY_CUMULATIVE: a value counts from the start time on.
const CUMULATIVE: i32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(super) struct NumberDataPoint {
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    #[prost(oneof = "NumberValue", tags = "4, 6")]
    pub value: Option<NumberValue>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum NumberValue {
    #[prost(double, tag = "4")]
    AsDouble(f64),
    #[prost(sfixed64, tag = "6")]
    AsInt(i64),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HistogramDataPoint {
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    #[prost(fixed64, tag = "4")]
    pub count: u64,
    #[prost(double, optional, tag = "5")]
    pub sum: Option<f64>,
    #[prost(fixed64, repeated, tag = "6")]
    pub bucket_counts: Vec<u64>,
    #[prost(double, repeated, tag = "7")]
    pub explicit_bounds: Vec<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "AttributeValue", tags = "1, 3, 4")]
    pub value: Option<AttributeValue>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum AttributeValue {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
}

/// The answer of a collector that takes a request, of collector/metrics/v1/metrics_service.proto.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportMetricsServiceResponse {
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<ExportMetricsPartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportMetricsPartialSuccess {
    #[prost(int64, tag = "1")]
    pub rejected_data_points: i64,
    #[prost(string, tag = "2")]
    pub error_message: String,
}

#[cfg(test)]
mod tests;
