//! `--otlp`: what a collector receives, read with the official types, and collectors that are away,
//! refuse or are slow.

use crate::support::{Answer, Ended, KneeServer, Station, knee};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, Metric};
use prost::Message;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A request that a collector received.
struct Push {
    /// The request line and headers, in lower case.
    head: String,
    body: Vec<u8>,
}

/// Receives requests and answers each with this head and no body. Its thread ends with the process.
struct Collector {
    address: String,
    pushes: Receiver<Push>,
}

impl Collector {
    fn start(answer: &'static str) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (told, pushes) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let told = told.clone();
                std::thread::spawn(move || converse(&stream, answer, &told));
            }
        });
        Collector { address, pushes }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn converse(mut stream: &TcpStream, answer: &str, told: &Sender<Push>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1)?.split("\r\n").next()?;
        let mut body = vec![0; length.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        told.send(Push { head, body }).ok()?;
        write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").ok()?;
    }
}

/// `knee run` of 200 requests over 4 connections with these options, and what the environment has.
fn run(url: &str, otlp: &str, environment: &[(&str, &str)], options: &[&str]) -> Ended {
    let always = ["run", url, "-n", "200", "-c", "4", "--warmup", "0s", "--json", "-"];
    let mut command = knee(&[&always, options].concat());
    command.args(["--otlp", otlp]).envs(environment.iter().copied());
    Ended::of(command.spawn().unwrap())
}

fn attribute(attributes: &[KeyValue], name: &str) -> Option<Attribute> {
    let pair = attributes.iter().find(|pair| pair.key == name)?;
    pair.value.clone()?.value
}

fn text(attributes: &[KeyValue], name: &str) -> Option<String> {
    match attribute(attributes, name)? {
        Attribute::StringValue(text) => Some(text),
        other => panic!("{name}: {other:?}"),
    }
}

/// The only number of a sum, by its attribute of this name where it has several.
fn sums(metric: &Metric, by: &str) -> BTreeMap<String, u64> {
    let Some(Data::Sum(sum)) = &metric.data else {
        panic!("{metric:?}");
    };
    assert!(sum.is_monotonic);
    assert_eq!(sum.aggregation_temporality(), AggregationTemporality::Cumulative);
    let points = sum.data_points.iter().map(|point| {
        assert!(0 < point.start_time_unix_nano);
        assert!(point.start_time_unix_nano <= point.time_unix_nano);
        let Some(Number::AsInt(count)) = point.value else {
            panic!("{point:?}");
        };
        (text(&point.attributes, by).unwrap_or_default(), u64::try_from(count).unwrap())
    });
    points.collect()
}

/// Counts of a histogram by `error.type`.
fn counts(metric: &Metric) -> BTreeMap<String, u64> {
    let Some(Data::Histogram(histogram)) = &metric.data else {
        panic!("{metric:?}");
    };
    assert_eq!(histogram.aggregation_temporality(), AggregationTemporality::Cumulative);
    let points = histogram.data_points.iter().map(|point| {
        assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
        assert_eq!(text(&point.attributes, "http.request.method").as_deref(), Some("GET"));
        assert_eq!(text(&point.attributes, "server.address").as_deref(), Some("127.0.0.1"));
        let port = attribute(&point.attributes, "server.port");
        assert!(matches!(port, Some(Attribute::IntValue(1..))), "{port:?}");
        (text(&point.attributes, "error.type").unwrap_or_default(), point.count)
    });
    points.collect()
}

/// A server that rejects each fifth request.
fn server() -> String {
    let mut count = 0;
    Station::start(4, move |_| {
        count += 1;
        if count % 5 == 0 { Answer::Reject } else { Answer::After(std::time::Duration::ZERO) }
    })
}

#[test]
fn all_figures_arrive_and_equal_the_report() {
    let collector = Collector::start("200 OK");
    let environment = [
        ("OTEL_METRIC_EXPORT_INTERVAL", "50"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test%20bed,host.name=h1"),
        ("OTEL_SERVICE_NAME", "checkout-load"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20hush-hush"),
    ];
    let ended = run(&server(), &collector.url(), &environment, &["-d", "60s"]);
    let report: Value = ended.json();
    assert!(!ended.stderr.contains("warning"), "{ended:?}");
    for shown in [&ended.stdout, &ended.stderr] {
        assert!(!shown.contains("hush"), "{ended:?}");
    }
    // A trial that is over is in one push: the last one, or one shortly before.
    let decoded = |push: &Push| {
        ExportMetricsServiceRequest::decode(push.body.as_slice()).unwrap().resource_metrics
    };
    let has_trial = |push: &Push| {
        let metrics = &decoded(push)[0].scope_metrics[0].metrics;
        metrics.iter().any(|metric| metric.name == "knee.operations.attempted")
    };
    let push = collector.pushes.try_iter().filter(has_trial).last().unwrap();
    for line in [
        "post /v1/metrics http/1.1\r\n",
        "content-type: application/x-protobuf\r\n",
        "authorization: bearer hush-hush\r\n",
    ] {
        assert!(push.head.contains(line), "{}", push.head);
    }
    let of_resource = &decoded(&push)[0];
    let resource = &of_resource.resource.as_ref().unwrap().attributes;
    for (name, value) in [
        ("service.name", "checkout-load"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("host.name", "h1"),
        ("deployment.environment.name", "test bed"),
        ("knee.command", "run"),
    ] {
        assert_eq!(text(resource, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(of_resource.schema_url, of_resource.scope_metrics[0].schema_url);
    let metrics = of_resource.scope_metrics[0].metrics.iter();
    let metrics: BTreeMap<_, _> = metrics.map(|metric| (metric.name.as_str(), metric)).collect();
    check(&metrics, &report["trials"][0]);
}

/// Every count is the report's.
fn check(metrics: &BTreeMap<&str, &Metric>, trial: &Value) {
    let intervals = trial["intervals"].as_array().unwrap();
    let sum = |key: &str| intervals.iter().map(|i| i[key].as_u64().unwrap()).sum::<u64>();
    for (name, key) in [
        ("knee.operations.attempted", "attempted"),
        ("knee.operations.completed", "completed"),
        ("knee.operations.failed", "errors"),
    ] {
        assert_eq!(metrics[name].unit, "{operation}");
        assert_eq!(sums(metrics[name], "")[""], sum(key), "{name}");
    }
    assert_eq!(sum("attempted"), 200);
    let outcomes: BTreeMap<String, u64> =
        serde_json::from_value(trial["outcomes"].clone()).unwrap();
    assert!(outcomes["http_5xx"] > 0, "{outcomes:?}");
    assert_eq!(sums(metrics["knee.operations.ended"], "knee.outcome"), outcomes);
    let duration = metrics["http.client.request.duration"];
    assert_eq!(duration.unit, "s");
    let of_outcome = |(name, count): (&String, &u64)| {
        (if name == "ok" { String::new() } else { name.clone() }, *count)
    };
    assert_eq!(counts(duration), outcomes.iter().map(of_outcome).collect());
    assert!(!metrics.contains_key("knee.response_time"));
    assert_eq!(sums(metrics["knee.trials.ended"], "")[""], 1);
    let is_valid = f64::from(u8::from(trial["verdict"] == "valid"));
    let Some(Data::Gauge(valid)) = &metrics["knee.trial.valid"].data else {
        panic!();
    };
    assert_eq!(valid.data_points[0].value, Some(Number::AsDouble(is_valid)));
}

#[test]
fn a_collector_that_refuses_costs_one_warning() {
    let server = KneeServer::start(&[]);
    let refused = |answer, told: &str| {
        let collector = Collector::start(answer);
        let ended = run(&server.url(), &collector.url(), &[], &[]);
        let warning = format!("warning: otlp: {}/v1/metrics: {told}", collector.url());
        (ended, warning)
    };
    let away = ("http://127.0.0.1:1", "connection refused");
    let cases = [
        refused("404 Not Found", "it answered 404 Not Found: expected a receiver of OTLP"),
        refused("415 Unsupported Media Type", "it answered 415 Unsupported Media Type"),
        refused("500 Internal Server Error", "it answered 500 Internal Server Error"),
        refused("429 Too Many Requests\r\nRetry-After: 60", "it answered 429 Too Many Requests"),
        (
            run(&server.url(), away.0, &[], &[]),
            format!("warning: otlp: {}/v1/metrics: {}", away.0, away.1),
        ),
    ];
    for (ended, warning) in cases {
        assert_eq!(ended.json()["trials"][0]["outcomes"]["ok"], 200, "{ended:?}");
        assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
        let warnings = ended.stderr.lines().filter(|line| line.contains("otlp: http"));
        let warnings: Vec<_> = warnings.filter(|line| !line.contains(" every ")).collect();
        assert_eq!(warnings.len(), 1, "{ended:?}");
        assert!(warnings[0].starts_with(&warning), "{ended:?}");
    }
}

#[test]
fn a_silent_collector_does_not_hold_the_run() {
    let server = KneeServer::start(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let ended = run(&server.url(), &url, &[], &[]);
    assert_eq!(ended.json()["trials"][0]["outcomes"]["ok"], 200, "{ended:?}");
    let warning = format!("warning: otlp: {url}/v1/metrics: no answer within ");
    assert_eq!(ended.stderr.matches(&warning).count(), 1, "{ended:?}");
}

#[test]
fn variables_alone_send_nothing() {
    let server = KneeServer::start(&[]);
    let collector = Collector::start("200 OK");
    let url = collector.url();
    let mut command = knee(&["run", &server.url(), "-n", "20", "--json", "-"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    let ended = Ended::of(command.spawn().unwrap());
    assert_eq!(ended.json()["trials"][0]["outcomes"]["ok"], 20, "{ended:?}");
    assert!(collector.pushes.try_recv().is_err());
    run(&server.url(), "env", &[("OTEL_EXPORTER_OTLP_ENDPOINT", &url)], &[]);
    let first = collector.pushes.try_recv().unwrap();
    assert!(first.head.starts_with("post /v1/metrics http/1.1\r\n"), "{}", first.head);
    // That of metrics is meant as it is, and goes first.
    let of_metrics = format!("{url}/own/path");
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", of_metrics.as_str()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
    ];
    run(&server.url(), "env", &environment, &[]);
    let last = collector.pushes.try_iter().last().unwrap();
    assert!(last.head.starts_with("post /own/path http/1.1\r\n"), "{}", last.head);
}

#[test]
fn what_cannot_be_is_refused_before_any_load() {
    let server = KneeServer::start(&[]);
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    for (given, environment, told) in [
        ("collector", &[][..], "error: --otlp: 'collector' is no URL of HTTP: "),
        ("ftp://host", &[], "error: --otlp: 'ftp://host' is no URL of HTTP: "),
        ("http://", &[], "error: --otlp: "),
        ("env", &[], "error: --otlp: 'env': expected a URL in OTEL_EXPORTER_OTLP_ENDPOINT"),
        ("http://u:hush@host", &[], "error: --otlp: 'http://***@host' has a password"),
        (
            "env",
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")],
            "error: OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' is no URL of HTTP: ",
        ),
        (
            "env",
            &[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
            "error: OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc': expected http/protobuf",
        ),
        (
            "http://127.0.0.1:1",
            &[("OTEL_METRIC_EXPORT_INTERVAL", "5s")],
            "error: OTEL_METRIC_EXPORT_INTERVAL: '5s': expected milliseconds",
        ),
        (
            "http://127.0.0.1:1",
            &[("OTEL_EXPORTER_OTLP_HEADERS", "hush")],
            "error: OTEL_EXPORTER_OTLP_HEADERS: expected NAME=VALUE,NAME=VALUE",
        ),
        (
            "http://127.0.0.1:1",
            &[("OTEL_EXPORTER_OTLP_HEADERS", "a=hush%0A")],
            "error: OTEL_EXPORTER_OTLP_HEADERS: invalid value of header 'a'",
        ),
    ] {
        let ended = run(&server.url(), given, environment, &[]);
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(ended.stderr.starts_with(told), "{told}: {ended:?}");
        assert!(!ended.stderr.contains("hush"), "{ended:?}");
    }
    assert_eq!(server.served()["requests"].as_u64(), Some(0));
}
