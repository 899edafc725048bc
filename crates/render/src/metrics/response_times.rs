//! Response times. Those of HTTP have another name in OTLP, by OpenTelemetry's semantic
//! conventions: `http.client.request.duration`, with an `error.type` of what failed. No other
//! convention that would fit is stable.

use super::{
    BOUNDS, LiveKind, MetricFamily, MetricLabel, MetricName, MetricSample, MetricUnit,
    MetricValues, Times, TrialMetrics,
};
use knee_load::spec::{Endpoint, Protocol, Target};

/// The methods that the conventions know.
const METHODS: [&str; 9] =
    ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

/// The server that HTTP requests of a trial go to.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpServerLabels(Vec<MetricLabel>);

impl HttpServerLabels {
    /// The server and the method of a target's requests; `None` where it does not speak HTTP. The
    /// conventions have `_OTHER` for methods that they do not know, and here for several.
    pub fn of(target: &Target) -> Option<HttpServerLabels> {
        if !matches!(target.protocol, Protocol::Http(_)) {
            return None;
        }
        let mut methods = target.requests.iter().map(|request| request.method.as_str());
        let first = methods.next().unwrap_or_default();
        let is_known = METHODS.contains(&first) && methods.all(|method| method == first);
        let method = if is_known { first } else { "_OTHER" };
        let mut labels = vec![MetricLabel::text("http.request.method", method)];
        match &target.endpoint {
            // The response times are those of all servers together.
            _ if !target.further.is_empty() => {}
            Endpoint::Tcp { host, port } => labels.extend([
                MetricLabel::text("server.address", host),
                MetricLabel::number("server.port", u64::from(*port)),
            ]),
            Endpoint::Unix { path } => labels.push(MetricLabel::text("server.address", path)),
        }
        Some(HttpServerLabels(labels))
    }
}

/// The response times of these trials, and those of HTTP by how requests ended.
pub(super) fn families(trials: &[TrialMetrics]) -> [MetricFamily; 2] {
    let is_timed = |t: &&TrialMetrics| t.kind == LiveKind::Operations && t.times.count > 0;
    let all = trials.iter().filter(is_timed);
    let all = all.map(|trial| trial.sample(Vec::new(), trial.times.clone()));
    let of_http = trials.iter().filter_map(|trial| Some(samples(trial, &trial.http.as_ref()?.0)));
    let of_http: Vec<_> = of_http.flatten().collect();
    // All trials of an experiment speak the same protocol.
    let otlp = of_http.is_empty().then_some("knee.response_time");
    [
        MetricFamily {
            name: MetricName { openmetrics: Some("knee_response_time_seconds"), otlp },
            unit: MetricUnit::Seconds,
            help: "Response times.",
            values: MetricValues::Times(all.collect()),
        },
        MetricFamily {
            name: MetricName { openmetrics: None, otlp: Some("http.client.request.duration") },
            unit: MetricUnit::Seconds,
            help: "Duration of HTTP client requests, from the intended time to the last byte.",
            values: MetricValues::Times(of_http),
        },
    ]
}

fn samples(trial: &TrialMetrics, labels: &[MetricLabel]) -> Vec<MetricSample<Times>> {
    let failed = trial.failed.iter().filter(|(_, ended)| ended.timed > 0);
    let failed = failed.map(|(outcome, ended)| (Some(outcome.name()), Times::from(ended)));
    let mut all: Vec<_> = failed.collect();
    let good = all.iter().fold(trial.times.clone(), |rest, (_, times)| without(rest, times));
    if good.count > 0 {
        all.insert(0, (None, good));
    }
    let sample = |(error, times): (Option<&str>, Times)| {
        let error = error.map(|name| MetricLabel::text("error.type", name));
        trial.sample(labels.iter().cloned().chain(error).collect(), times)
    };
    all.into_iter().map(sample).collect()
}

/// The times without a part of them. All were counted to 3 significant digits and the part exactly:
/// at a bound they may differ by what lies as close to it.
fn without(mut all: Times, part: &Times) -> Times {
    all.up_to.resize(BOUNDS.len(), 0);
    all.count = all.count.saturating_sub(part.count);
    all.sum_ns = (all.sum_ns - part.sum_ns).max(0.0);
    let mut least = 0;
    for (all_up_to, part_up_to) in all.up_to.iter_mut().zip(&part.up_to) {
        least = all_up_to.saturating_sub(*part_up_to).max(least).min(all.count);
        *all_up_to = least;
    }
    all
}
