//! Thresholds: k6 says what has to hold, `--fail-if` when a run fails.

use crate::metric::{MetricKind, MetricName};
use serde_json::Value;

/// The condition under which a run fails, as `--fail-if` has it.
///
/// # Errors
/// knee has no such threshold, and why.
pub(crate) fn fail_if(
    metric: &str,
    expression: &str,
    own: &[MetricName],
) -> Result<String, String> {
    if let Some(text) = of_report(metric, expression) {
        return Ok(text);
    }
    let (of, tags) = parts(metric);
    if !tags.is_empty() && OF_REPORT.contains(&of) && !RECORDED.contains(&of) {
        return Err("knee has this metric without tags alone".to_owned());
    }
    let Comparison { figure, sign, value } = Comparison::parse(expression)?;
    let found = own.iter().find(|known| known.name == metric).map(|known| known.kind);
    let Some(kind) = found.or_else(|| kind_of(metric)) else {
        return Err("knee has no such metric: leave it out, or give --fail-if".to_owned());
    };
    let percentile = figure.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
    let percentile = percentile.and_then(|of| of.parse::<f64>().ok());
    let is_percentile = percentile.is_some_and(|of| (0.0..=100.0).contains(&of));
    let figures = figures_of(kind);
    if !figures.contains(&if is_percentile { "p(N)" } else { &*figure }) {
        return Err(format!("this metric has {}", figures.join(", ")));
    }
    Ok(format!("metric {metric} {figure}{}{value}", inverse(sign)))
}

/// The figures that metrics of a kind have.
fn figures_of(kind: MetricKind) -> &'static [&'static str] {
    match kind {
        MetricKind::Counter => &["count", "rate"],
        MetricKind::Gauge => &["value"],
        MetricKind::Rate => &["rate"],
        MetricKind::Trend => &["avg", "min", "max", "med", "p(N)"],
    }
}

/// The metrics that reports of a script have figures of, and these: its own and k6's.
pub fn metrics_in_reports(own: &[MetricName]) -> Vec<(String, &'static [&'static str])> {
    let own = own.iter().map(|metric| (metric.name.clone(), figures_of(metric.kind)));
    let of_k6 =
        OF_REPORT.iter().filter_map(|&name| Some((name.to_owned(), figures_of(kind_of(name)?))));
    own.chain(of_k6).collect()
}

/// Each threshold of a script's options, which are JSON: its metric, its expression, and what
/// `--fail-if` has in its place.
pub fn threshold_texts(options: &str, own: &[MetricName]) -> Vec<(String, String, String)> {
    let options: Value = serde_json::from_str(options).unwrap_or_default();
    let metrics = options["thresholds"].as_object().into_iter().flatten();
    let each = metrics.flat_map(|(metric, value)| {
        let expressions = expressions(value).flatten();
        expressions.filter_map(move |expression| {
            let text = fail_if(metric, expression, own).ok()?;
            Some((metric.clone(), expression.to_owned(), text))
        })
    });
    each.collect()
}

/// What a threshold compares.
struct Comparison {
    figure: String,
    sign: &'static str,
    value: f64,
}

impl Comparison {
    fn parse(expression: &str) -> Result<Comparison, String> {
        let expression: String = expression.chars().filter(|c| !c.is_whitespace()).collect();
        let signs = ["<=", ">=", "===", "==", "!=", "<", ">"];
        let found = signs.iter().filter_map(|sign| Some((expression.find(sign)?, *sign)));
        let Some((at, sign)) = found.min_by_key(|(at, sign)| (*at, 3 - sign.len().min(3))) else {
            return Err("it compares nothing".to_owned());
        };
        let (figure, value) = (expression[..at].to_owned(), &expression[at + sign.len()..]);
        let value = value.parse().map_err(|_| "its value is no number".to_owned())?;
        Ok(Comparison { figure, sign, value })
    }
}

/// The sign of the opposite.
fn inverse(sign: &str) -> &'static str {
    match sign {
        "<" => ">=",
        "<=" => ">",
        ">" => "<=",
        ">=" => "<",
        "!=" => "==",
        _ => "!=",
    }
}

/// The condition, where figures of the report have what a threshold is of: all requests, or those of
/// a name.
fn of_report(metric: &str, expression: &str) -> Option<String> {
    let (metric, tags) = parts(metric);
    // A row has method and path, where k6 has the URL.
    let of = match &tags[..] {
        [] => String::new(),
        [(tag, name)] if tag == "name" && !name.contains("://") => format!("{name} "),
        _ => return None,
    };
    let Comparison { figure, sign, value } = Comparison::parse(expression).ok()?;
    let (sign, is_range) = (inverse(sign), !["==", "===", "!="].contains(&sign));
    let percent = (value * 1e8).round() / 1e6;
    let text = match (metric, &*figure) {
        ("http_req_duration", figure) if is_range => {
            let statistic = match figure {
                "avg" => "mean",
                "min" => "min",
                "max" => "max",
                "med" | "p(50)" => "p50",
                "p(75)" => "p75",
                "p(90)" => "p90",
                "p(95)" => "p95",
                "p(99)" => "p99",
                "p(99.9)" => "p999",
                _ => return None,
            };
            format!("{statistic}{sign}{value}ms")
        }
        ("http_req_failed", "rate") if is_range => format!("errors{sign}{percent}%"),
        ("http_req_failed", "rate") if sign == "!=" && value == 0.0 => "errors>0%".to_owned(),
        ("http_reqs", "rate") if is_range => format!("throughput{sign}{value}/s"),
        _ => return None,
    };
    Some(of + &text)
}

/// The kind of a metric of k6 that knee has figures of: those that users record for thresholds, and
/// those of the report.
pub(crate) fn kind_of(metric: &str) -> Option<MetricKind> {
    Some(match metric {
        "http_req_failed" | "checks" => MetricKind::Rate,
        "http_reqs" | "iterations" | "dropped_iterations" | "data_sent" | "data_received" => {
            MetricKind::Counter
        }
        "vus" | "vus_max" => MetricKind::Gauge,
        "http_req_duration" | "group_duration" | "iteration_duration" => MetricKind::Trend,
        metric if PARTS.contains(&metric) => MetricKind::Trend,
        _ => return None,
    })
}

/// Parts of `http_req_duration`, and what comes before it.
pub(crate) const PARTS: [&str; 6] = [
    "http_req_blocked",
    "http_req_connecting",
    "http_req_tls_handshaking",
    "http_req_sending",
    "http_req_waiting",
    "http_req_receiving",
];

/// Metrics that the report has without tags.
const OF_REPORT: [&str; 8] = [
    "checks",
    "http_reqs",
    "iterations",
    "dropped_iterations",
    "data_sent",
    "data_received",
    "vus",
    "vus_max",
];

/// Those among them that users record, where they have tags.
const RECORDED: [&str; 3] = ["checks", "http_reqs", "iterations"];

/// The metric that a threshold is of, and the tags that it asks for: `metric{name:value,…}`.
pub(crate) fn parts(text: &str) -> (&str, Vec<(String, String)>) {
    let Some((metric, tags)) = text.split_once('{') else { return (text.trim(), Vec::new()) };
    let tags = tags.trim_end().trim_end_matches('}').split(',').filter_map(|tag| {
        let (name, value) = tag.split_once(':')?;
        let is_mark = |c: char| c == '"' || c == '\'' || c == ' ';
        Some((name.trim().to_owned(), value.trim_matches(is_mark).to_owned()))
    });
    (metric.trim(), tags.collect())
}

/// Whether users record what thresholds are of, as no figure of the report has it.
pub(crate) fn is_recorded(name: &str, expressions: &Value) -> bool {
    let (metric, tags) = parts(name);
    let is_of_report = |text: &str| of_report(name, text).is_some();
    let all_are = self::expressions(expressions).all(|text| text.is_some_and(is_of_report));
    let is_here = tags.is_empty() && (OF_REPORT.contains(&metric) || kind_of(metric).is_none());
    !all_are && !is_here
}

/// The expressions of a metric: a text, an object with one, or a list of these.
pub(crate) fn expressions(of: &Value) -> impl Iterator<Item = Option<&str>> {
    let all = of.as_array().map_or(std::slice::from_ref(of), Vec::as_slice);
    all.iter().map(|one| one.as_str().or_else(|| one.get("threshold")?.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_conditions_of_failure() {
        let metric = |name: &str, kind| MetricName { name: name.to_owned(), kind, is_time: true };
        let own = [
            metric("waits", MetricKind::Trend),
            metric("bad", MetricKind::Rate),
            metric("orders", MetricKind::Counter),
            metric("level", MetricKind::Gauge),
            metric("http_req_duration{expected_response:true}", MetricKind::Trend),
            metric("http_req_failed{kind:css}", MetricKind::Rate),
            metric("checks{check:is 200}", MetricKind::Rate),
        ];
        for (metric, expression, want) in [
            ("http_req_duration", "p(95)<500", "p95>=500ms"),
            ("http_req_duration", "p(97)<500", "metric http_req_duration p(97)>=500"),
            ("http_req_duration{name:login}", "avg <= 10.5", "login mean>10.5ms"),
            ("http_req_failed", "rate<0.01", "errors>=1%"),
            ("http_req_failed", "rate==0", "errors>0%"),
            ("http_reqs", "rate>100", "throughput<=100/s"),
            ("http_reqs", "count>0", "metric http_reqs count<=0"),
            (
                "http_req_duration{expected_response:true}",
                "max<9",
                "metric http_req_duration{expected_response:true} max>=9",
            ),
            ("http_req_failed{kind:css}", "rate<0.1", "metric http_req_failed{kind:css} rate>=0.1"),
            ("http_req_waiting", "p(95)<5", "metric http_req_waiting p(95)>=5"),
            ("checks", "rate>0.9", "metric checks rate<=0.9"),
            ("checks{check:is 200}", "rate==1", "metric checks{check:is 200} rate!=1"),
            ("group_duration", "med<1000", "metric group_duration med>=1000"),
            ("waits", "p(99)<3", "metric waits p(99)>=3"),
            ("waits", "avg==3", "metric waits avg!=3"),
            ("bad", "rate!=0.1", "metric bad rate==0.1"),
            ("orders", "count<100", "metric orders count>=100"),
            ("orders", "rate>1", "metric orders rate<=1"),
            ("level", "value<100", "metric level value>=100"),
            ("iterations", "count===10", "metric iterations count!=10"),
        ] {
            assert_eq!(fail_if(metric, expression, &own).as_deref(), Ok(want), "{metric}");
        }
        for (metric, expression) in [
            ("nothing", "p(95)<5"),
            ("waits", "rate<5"),
            ("orders", "p(95)<5"),
            ("orders", "count"),
            ("waits", "p(101)<5"),
            ("orders", "count<x"),
            ("data_sent{name:a}", "count<1"),
        ] {
            assert!(fail_if(metric, expression, &own).is_err(), "{metric} {expression}");
        }
    }

    #[test]
    fn users_record_what_the_report_has_not() {
        for (name, expressions, want) in [
            ("http_req_duration", r#"["p(95)<1", {"threshold": "max<2"}]"#, false),
            ("http_req_duration", r#"["p(95)<1", "p(97)<2"]"#, true),
            ("http_req_duration{name:a}", r#""p(95)<1""#, false),
            ("http_req_duration{kind:a}", r#""p(95)<1""#, true),
            ("http_reqs", r#"["count>1"]"#, false),
            ("http_reqs{status:200}", r#"["count>1"]"#, true),
            ("group_duration", r#"["avg<1"]"#, true),
            ("orders", r#"["count>1"]"#, false),
            ("orders{kind:a}", r#"["count>1"]"#, true),
        ] {
            let of = serde_json::from_str(expressions).unwrap();
            assert_eq!(is_recorded(name, &of), want, "{name} {expressions}");
        }
    }
}
