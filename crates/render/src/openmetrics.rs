//! Metrics as OpenMetrics text 1.0 (prometheus.io/docs/specs/om/open_metrics_spec), which
//! Prometheus reads too.

use crate::metrics::{
    BOUNDS, LabelValue, MetricFamily, MetricLabel, MetricSample, MetricUnit, MetricValues, Times,
};
use std::fmt::Write;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The text of all these metrics.
pub fn openmetrics(families: &[MetricFamily]) -> String {
    let mut out = String::new();
    for family in families {
        if let Some(name) = family.name.openmetrics {
            write(&mut out, name, family);
        }
    }
    out.push_str("# EOF\n");
    out
}

fn write(out: &mut String, name: &str, family: &MetricFamily) {
    match &family.values {
        MetricValues::Info(labels) => {
            head(out, name, "info", family);
            line(out, &format!("{name}_info{{{}}}", joined(labels)), 1.0);
        }
        MetricValues::Counter(samples) => {
            head(out, name, "counter", family);
            for MetricSample { labels, value, .. } in samples {
                line(out, &format!("{name}_total{}", braced(labels)), *value as f64);
            }
        }
        MetricValues::Gauge(samples) => {
            head(out, name, "gauge", family);
            for MetricSample { labels, value, .. } in samples {
                line(out, &format!("{name}{}", braced(labels)), *value);
            }
        }
        MetricValues::Times(samples) => {
            head(out, name, "histogram", family);
            for MetricSample { labels, value, .. } in samples {
                histogram(out, name, &joined(labels), value);
            }
        }
    }
}

/// The samples of a histogram.
fn histogram(out: &mut String, name: &str, labels: &str, times: &Times) {
    for (bound, n) in BOUNDS.iter().zip(&times.up_to) {
        let le = canonical(bound.as_secs_f64());
        let sample = format!("{name}_bucket{{{labels},le=\"{le}\"}}");
        line(out, &sample, *n as f64);
    }
    let count = times.count as f64;
    let sample = format!("{name}_bucket{{{labels},le=\"+Inf\"}}");
    line(out, &sample, count);
    line(out, &format!("{name}_count{{{labels}}}"), count);
    line(out, &format!("{name}_sum{{{labels}}}"), times.sum_ns / 1e9);
}

fn head(out: &mut String, name: &str, kind: &str, family: &MetricFamily) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# TYPE {name} {kind}");
    let unit = match family.unit {
        MetricUnit::Seconds => "seconds",
        MetricUnit::Bytes => "bytes",
        MetricUnit::Count(_) | MetricUnit::PerSecond(_) | MetricUnit::One => "",
    };
    if !unit.is_empty() {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
    let _ = writeln!(out, "# HELP {name} {}", family.help);
}

/// A sample: a whole number without a point, any other as short as it reads back.
fn line(out: &mut String, sample: &str, value: f64) {
    let _ = writeln!(out, "{sample} {value}");
}

/// Labels with their braces, if any.
fn braced(labels: &[MetricLabel]) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{}}}", joined(labels)) }
}

/// Labels as they stand between braces.
fn joined(labels: &[MetricLabel]) -> String {
    let labels = labels.iter().map(|MetricLabel { name, value }| match value {
        LabelValue::Text(text) => format!("{name}=\"{}\"", escaped(text)),
        LabelValue::Number(number) => format!("{name}=\"{number}\""),
        LabelValue::Level(level) => format!("{name}=\"{}\"", canonical(*level)),
    });
    labels.collect::<Vec<_>>().join(",")
}

/// A bound as a label, where equal numbers should look alike. It always has a point or an exponent,
/// the latter below 0.0001 (OpenMetrics 1.0, Canonical Numbers).
fn canonical(value: f64) -> String {
    if value > 0.0 && value < 1e-4 {
        return format!("{value:e}").replace("e-", "e-0");
    }
    let text = value.to_string();
    if text.contains('.') { text } else { format!("{text}.0") }
}

/// A label's value, as it may stand between quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests;
