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
    let (metric, tags) = match metric.split_once('{') {
        Some((metric, tags)) => (metric.trim(), tags.trim_end().trim_end_matches('}').trim()),
        None => (metric.trim(), ""),
    };
    let mut of = scope(metric, tags, scenarios)?;
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

/// The step or session that tags name.
fn scope(metric: &str, tags: &str, scenarios: &[String]) -> Result<Option<String>, String> {
    let mut of = None;
    for tag in tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
        let (name, value) = tag.split_once(':').ok_or("a tag without a value")?;
        let value = value.trim_matches(|c: char| c == '"' || c == '\'' || c == ' ');
        match name.trim() {
            // `group:::items`
            "group" if of.is_none() && metric == "group_duration" => {
                of = value.rsplit("::").next().map(str::to_owned);
            }
            "name" if of.is_none() => of = Some(value.to_owned()),
            "scenario" if of.is_none() => {
                // Without any there is one kind of session alone.
                if scenarios.len() > 1 {
                    of = Some(value.to_owned());
                }
            }
            // Of all requests: those that fail have times too.
            "expected_response" => {}
            "check" if of.is_none() && metric == "checks" => of = Some(value.to_owned()),
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
        ];
        for (metric, expression, want) in [
            ("http_req_duration", "p(95)<500", "p95>=500ms"),
            ("http_req_duration{name:login}", "avg <= 10.5", "login mean>10.5ms"),
            ("http_req_failed", "rate<0.01", "errors>=1%"),
            ("http_reqs", "rate>100", "throughput<=100/s"),
            ("http_req_duration{expected_response:true}", "max<9", "max>=9ms"),
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
