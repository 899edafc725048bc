//! Requests, as the official types read them.

use super::*;
use crate::live::{LiveKind, LiveTrial};
use crate::metrics::{HttpServerLabels, Metrics};
use knee_load::measure::{EndedCounts, Interval, Outcome};
use knee_load::spec::{Body, Endpoint, HttpRequest, Pick, Target, Url};
use knee_load::time::Nanos;
use opentelemetry_proto::tonic::collector::metrics::v1 as official;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue as OfficialValue, KeyValue as Pair};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, HistogramDataPoint as Point, Metric as OfficialMetric,
};

const BEGIN: u64 = 1_700_000_000_000_000_000;
const NOW: u64 = BEGIN + 5_000_000_000;

fn live(kind: LiveKind) -> LiveTrial {
    LiveTrial {
        label: "rate=100/s".to_owned(),
        kind,
        warmup: Nanos::ZERO,
        total: None,
        interval: Nanos::from_secs(1),
        asked_per_s: Some(100.0),
        names: Default::default(),
    }
}

/// A hundred requests: three timed out after 2 s, the others took 1 ms.
fn interval() -> (Interval, Times) {
    let after_2_s = |bound: &Nanos| *bound > Nanos::from_secs(2);
    let mut between = BOUNDS.map(|_| 0);
    between[BOUNDS.iter().position(after_2_s).unwrap()] = 3;
    let timed_out = EndedCounts { good: 0, failed: 3, between, timed: 3, sum_ns: 6e9 };
    let interval = Interval {
        end_ns: 1_000_000_000,
        attempted: 100,
        completed: 97,
        errors: 3,
        p50_ns: 1_000_000,
        max_ns: 2_000_000_000,
        failed: [(Outcome::Timeout, timed_out)].into(),
        ..Interval::default()
    };
    let up_to = BOUNDS.iter().map(|b| match b {
        b if *b < Nanos::from_millis(1) => 0,
        b if after_2_s(b) => 100,
        _ => 97,
    });
    (interval, Times { up_to: up_to.collect(), count: 100, sum_ns: 6.097e9 })
}

fn target(methods: &[&str]) -> Target {
    let endpoint = Endpoint::Tcp { host: "shop.example".to_owned(), port: 8080 };
    let url = Url::parse("http://shop.example:8080/").unwrap();
    let request =
        |method: &&str| HttpRequest::new(method, &url, Vec::new(), Body::default(), 1).unwrap();
    Target::new(endpoint, methods.iter().map(request).collect(), Pick::InOrder, true).unwrap()
}

fn measured(http: Option<HttpServerLabels>) -> Metrics {
    let mut metrics = Metrics::new(vec![MetricLabel::text("command", "run")], BEGIN);
    metrics.trial_begins(&live(LiveKind::Operations), http, BEGIN + 1);
    let (interval, times) = interval();
    metrics.interval(&interval, Some(&times));
    metrics
}

fn decoded(metrics: &Metrics) -> official::ExportMetricsServiceRequest {
    let resource = [("service.name".to_owned(), "knee".to_owned())];
    let request = otlp_request(&metrics.families(0), &resource, NOW);
    prost::Message::decode(request.as_slice()).unwrap()
}

fn metrics_of(request: &official::ExportMetricsServiceRequest) -> &[OfficialMetric] {
    &request.resource_metrics[0].scope_metrics[0].metrics
}

fn named<'a>(request: &'a official::ExportMetricsServiceRequest, name: &str) -> &'a OfficialMetric {
    let found = metrics_of(request).iter().find(|metric| metric.name == name);
    found.unwrap_or_else(|| panic!("no {name}"))
}

fn value(attributes: &[Pair], name: &str) -> Option<Value> {
    let pair = attributes.iter().find(|pair| pair.key == name)?;
    let OfficialValue { value } = pair.value.clone()?;
    value
}

fn text(text: &str) -> Option<Value> {
    Some(Value::StringValue(text.to_owned()))
}

fn points(metric: &OfficialMetric) -> &[Point] {
    let Some(Data::Histogram(histogram)) = &metric.data else {
        panic!("{metric:?}");
    };
    assert_eq!(histogram.aggregation_temporality(), AggregationTemporality::Cumulative);
    &histogram.data_points
}

#[test]
fn official_types_read_names_units_and_times() {
    let request = decoded(&measured(None));
    let resource = request.resource_metrics[0].resource.as_ref().unwrap();
    assert_eq!(value(&resource.attributes, "service.name"), text("knee"));
    assert_eq!(value(&resource.attributes, "knee.command"), text("run"));
    let scope = request.resource_metrics[0].scope_metrics[0].scope.as_ref().unwrap();
    assert_eq!(scope.name, "knee");
    let attempted = named(&request, "knee.operations.attempted");
    assert_eq!(attempted.unit, "{operation}");
    let Some(Data::Sum(sum)) = &attempted.data else {
        panic!("{attempted:?}");
    };
    assert!(sum.is_monotonic);
    assert_eq!(sum.aggregation_temporality(), AggregationTemporality::Cumulative);
    let point = &sum.data_points[0];
    assert_eq!(point.value, Some(Number::AsInt(100)));
    assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (BEGIN + 1, NOW));
    assert_eq!(value(&point.attributes, "knee.trial"), Some(Value::IntValue(1)));
    assert_eq!(value(&point.attributes, "knee.label"), text("rate=100/s"));
    let asked = named(&request, "knee.rate.asked");
    assert_eq!(asked.unit, "{operation}/s");
    let Some(Data::Gauge(gauge)) = &asked.data else {
        panic!("{asked:?}");
    };
    assert_eq!(gauge.data_points[0].value, Some(Number::AsDouble(100.0)));
}

#[test]
fn histogram_sums_up_to_its_count() {
    let request = decoded(&measured(None));
    let metric = named(&request, "knee.response_time");
    assert_eq!(metric.unit, "s");
    let [point] = points(metric) else {
        panic!("{metric:?}");
    };
    assert_eq!(point.count, 100);
    assert_eq!(point.bucket_counts.iter().sum::<u64>(), 100);
    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
    // The bucket (0.0005 s, 0.001 s] has what took 1 ms.
    let at = point.explicit_bounds.iter().position(|bound| *bound == 0.001).unwrap();
    assert_eq!(point.bucket_counts[at], 97);
    assert_eq!(point.sum, Some(6.097));
}

#[test]
fn http_is_named_by_convention_and_split_by_error() {
    let http = HttpServerLabels::of(&target(&["GET", "GET"]));
    let request = decoded(&measured(http));
    assert!(metrics_of(&request).iter().all(|metric| metric.name != "knee.response_time"));
    let metric = named(&request, "http.client.request.duration");
    assert_eq!(metric.unit, "s");
    let [good, timed_out] = points(metric) else {
        panic!("{metric:?}");
    };
    for point in [good, timed_out] {
        assert_eq!(value(&point.attributes, "http.request.method"), text("GET"));
        assert_eq!(value(&point.attributes, "server.address"), text("shop.example"));
        assert_eq!(value(&point.attributes, "server.port"), Some(Value::IntValue(8080)));
        assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
    }
    assert_eq!((good.count, timed_out.count), (97, 3));
    assert_eq!(value(&good.attributes, "error.type"), None);
    assert_eq!(value(&timed_out.attributes, "error.type"), text("timeout"));
    assert_eq!((good.sum.map(|s| (s * 1e3).round()), timed_out.sum), (Some(97.0), Some(6.0)));
}

#[test]
fn several_or_unknown_methods_are_other() {
    for methods in [&["GET", "POST"][..], &["BREW"]] {
        let http = HttpServerLabels::of(&target(methods));
        let request = decoded(&measured(http));
        let point = &points(named(&request, "http.client.request.duration"))[0];
        assert_eq!(value(&point.attributes, "http.request.method"), text("_OTHER"), "{methods:?}");
    }
}

#[test]
fn trials_that_were_taken_are_left_out() {
    let mut metrics = measured(None);
    assert_eq!(metrics.ended(), 0);
    metrics.trial_ends(None);
    assert_eq!(metrics.ended(), 1);
    let names = |without| {
        let families = metrics.families(without);
        families.iter().filter_map(|family| family.name.otlp).collect::<Vec<_>>()
    };
    assert!(names(0).contains(&"knee.response_time"));
    assert_eq!(names(1), ["knee.trials.ended"]);
}

#[test]
fn rejected_values_are_read_from_the_answer() {
    let answer = |rejected_data_points| official::ExportMetricsServiceResponse {
        partial_success: Some(official::ExportMetricsPartialSuccess {
            rejected_data_points,
            error_message: "out of order".to_owned(),
        }),
    };
    let read = |n| otlp_rejected(&prost::Message::encode_to_vec(&answer(n)));
    assert_eq!(read(7), Some((7, "out of order".to_owned())));
    for none in [read(0), otlp_rejected(&[]), otlp_rejected(b"{\"partialSuccess\":{}}")] {
        assert_eq!(none, None);
    }
}
