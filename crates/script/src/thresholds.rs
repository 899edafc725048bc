//! Thresholds: k6 says what has to hold, `--fail-if` when a run fails.

use crate::script::{MetricKind, MetricName};

/// The condition under which a run fails, as `--fail-if` has it.
///
/// # Errors
/// knee has no such threshold, and why.
pub(crate) fn fail_if(
    metric: &str,
    expression: &str,
    scenarios: &[String],
    own: &[MetricName],
) -> Result<String, String> {
    let full = metric;
    let (metric, tags) = parts(metric);
    // A metric of its own stands for what has tags that no figure of the report has.
    let mut of = if is_tagged(full) { None } else { scope(metric, &tags, scenarios)? };
    let metric = if is_tagged(full) { full } else { metric };
    let expression: String = expression.chars().filter(|c| !c.is_whitespace()).collect();
    let signs = ["<=", ">=", "===", "==", "!=", "<", ">"];
    let found = signs.iter().filter_map(|sign| Some((expression.find(sign)?, *sign)));
    let Some((at, sign)) = found.min_by_key(|(at, sign)| (*at, 3 - sign.len().min(3))) else {
        return Err("it compares nothing".to_owned());
    };
    let (of_what, value) = (&expression[..at], &expression[at + sign.len()..]);
    let value: f64 = value.parse().map_err(|_| "its value is no number".to_owned())?;
    let inverse = |sign: &str| match sign {
        "<" => Ok(">="),
        "<=" => Ok(">"),
        ">" => Ok("<="),
        ">=" => Ok("<"),
        _ => Err("--fail-if compares with < and > only".to_owned()),
    };
    let text = match metric {
        "http_req_duration" => {
            let statistic = statistic(of_what)?;
            format!("{statistic}{}{}ms", inverse(sign)?, value)
        }
        "http_req_failed" if of_what == "rate" => {
            let percent = percent(value);
            match sign {
                "==" | "===" if value == 0.0 => "errors>0%".to_owned(),
                sign => format!("errors{}{percent}%", inverse(sign)?),
            }
        }
        "checks" if of_what == "rate" => {
            let percent = percent(1.0 - value);
            let sign = match sign {
                ">" => ">=",
                ">=" => ">",
                "==" | "===" if value == 1.0 => ">",
                _ => return Err("checks have a least rate: rate>0.9".to_owned()),
            };
            format!("{} errors{sign}{percent}%", of.take().unwrap_or_else(|| "checks".to_owned()))
        }
        "group_duration" if of.is_some() => {
            format!("{}{}{}ms", statistic(of_what)?, inverse(sign)?, value)
        }
        "http_reqs" if of_what == "rate" => {
            format!("throughput{}{}/s", inverse(sign)?, value)
        }
        name => match own.iter().find(|metric| metric.name == name).map(|metric| metric.kind) {
            Some(MetricKind::Trend) => {
                format!("{name} {}{}{value}ms", statistic(of_what)?, inverse(sign)?)
            }
            Some(MetricKind::Rate) if of_what == "rate" => {
                format!("{name} errors{}{}%", inverse(sign)?, percent(value))
            }
            Some(MetricKind::Counter) if of_what == "count" => {
                format!("{name} errors{}{value}", inverse(sign)?)
            }
            _ => return Err("knee has no such threshold: leave it out, or give --fail-if".into()),
        },
    };
    Ok(scoped(of, &text))
}

fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

fn scoped(of: Option<String>, text: &str) -> String {
    match of {
        Some(of) => format!("{of} {text}"),
        None => text.to_owned(),
    }
}

/// The kind of a metric of k6 that knee fills for thresholds with tags.
pub(crate) fn kind_of(metric: &str) -> Option<MetricKind> {
    Some(match metric {
        "http_req_failed" | "checks" => MetricKind::Rate,
        "http_reqs" => MetricKind::Counter,
        "http_req_duration" => MetricKind::Trend,
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

/// Whether a threshold is of what no figure of the report has, and a metric of its own stands for.
pub(crate) fn is_tagged(text: &str) -> bool {
    let (metric, tags) = parts(text);
    let is_row = |(name, value): &(String, String)| match &**name {
        // A row has method and path, where k6 has the URL.
        "name" => !value.contains("://"),
        "scenario" => true,
        "group" => metric == "group_duration",
        "check" => metric == "checks",
        _ => false,
    };
    PARTS.contains(&metric) || !tags.iter().all(is_row)
}

/// The step or session that tags name.
fn scope(
    metric: &str,
    tags: &[(String, String)],
    scenarios: &[String],
) -> Result<Option<String>, String> {
    let mut of = None;
    for (name, value) in tags {
        match &**name {
            // `group:::items`
            "group" if of.is_none() && metric == "group_duration" => {
                of = value.rsplit("::").next().map(str::to_owned);
            }
            "name" if of.is_none() => of = Some(value.clone()),
            "scenario" if of.is_none() => {
                // Without any there is one kind of session alone.
                if scenarios.len() > 1 {
                    of = Some(value.clone());
                }
            }
            "check" if of.is_none() && metric == "checks" => of = Some(value.clone()),
            other => {
                return Err(format!(
                    "knee has no figures by the tag '{other}': expected name, group, scenario or \
                     check"
                ));
            }
        }
    }
    Ok(of)
}

fn statistic(of_what: &str) -> Result<&'static str, String> {
    Ok(match of_what {
        "avg" => "mean",
        "min" => "min",
        "max" => "max",
        "med" | "p(50)" => "p50",
        "p(75)" => "p75",
        "p(90)" => "p90",
        "p(95)" => "p95",
        "p(99)" => "p99",
        "p(99.9)" => "p999",
        _ => {
            return Err("--fail-if has min, mean, p50, p75, p90, p95, p99, p999 and max".to_owned());
        }
    })
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
            metric("http_req_duration{expected_response:true}", MetricKind::Trend),
            metric("http_req_failed{kind:css}", MetricKind::Rate),
            metric("http_req_waiting", MetricKind::Trend),
        ];
        for (metric, expression, want) in [
            ("http_req_duration", "p(95)<500", "p95>=500ms"),
            ("http_req_duration{name:login}", "avg <= 10.5", "login mean>10.5ms"),
            ("http_req_failed", "rate<0.01", "errors>=1%"),
            ("http_reqs", "rate>100", "throughput<=100/s"),
            (
                "http_req_duration{expected_response:true}",
                "max<9",
                "http_req_duration{expected_response:true} max>=9ms",
            ),
            ("http_req_failed{kind:css}", "rate<0.1", "http_req_failed{kind:css} errors>=10%"),
            ("http_req_waiting", "p(95)<5", "http_req_waiting p95>=5ms"),
            ("checks", "rate>0.9", "checks errors>=10%"),
            ("checks{check:is 200}", "rate==1", "is 200 errors>0%"),
            ("group_duration{group:::cart}", "med<1000", "cart p50>=1000ms"),
            ("waits", "p(99)<3", "waits p99>=3ms"),
            ("bad", "rate<0.1", "bad errors>=10%"),
            ("orders", "count<100", "orders errors>=100"),
        ] {
            assert_eq!(fail_if(metric, expression, &[], &own).as_deref(), Ok(want), "{metric}");
        }
        for (metric, expression) in
            [("http_req_duration{a:b}", "p(95)<5"), ("vus", "value>1"), ("http_reqs", "count>1")]
        {
            assert!(fail_if(metric, expression, &[], &own).is_err(), "{metric}");
        }
    }
}
