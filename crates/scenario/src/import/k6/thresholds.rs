//! Thresholds: k6 says what has to hold, `fail_if` when a run fails.

use super::super::collect::Collector;
use super::interpreter::K6Interpreter;
use super::value::{JsValue, number_text};

/// A threshold of the options.
pub(super) struct K6Threshold {
    metric: String,
    expression: String,
}

impl<'a> K6Interpreter<'a, '_> {
    /// The thresholds of the options, each alone.
    pub(super) fn thresholds(&mut self, options: &JsValue<'a>) -> Vec<K6Threshold> {
        let thresholds = self.entry(options, "thresholds");
        let Some(entries) = self.heap.entries(&thresholds).map(<[_]>::to_vec) else {
            if !matches!(thresholds, JsValue::Undefined) {
                self.leave_out("option thresholds: they are not known");
            }
            return Vec::new();
        };
        let mut all = Vec::new();
        for (metric, value) in entries {
            let list = self.heap.items(&value).map(<[_]>::to_vec);
            for item in list.unwrap_or_else(|| vec![value]) {
                let inner = self.heap.entry(&item, "threshold").cloned();
                if self.heap.entry(&item, "abortOnFail").and_then(JsValue::truth) == Some(true) {
                    self.leave_out(format!("threshold of {metric}: abortOnFail"));
                }
                match inner.unwrap_or(item).literal() {
                    Some(text) => all.push(K6Threshold {
                        metric: metric.to_string(),
                        expression: text.to_owned(),
                    }),
                    None => self.leave_out(format!("threshold of {metric}: it is not known")),
                }
            }
        }
        all
    }
}

/// Takes the thresholds that a scenario has words for; the others are named.
pub(super) fn put(thresholds: &[K6Threshold], scenarios: &[String], all: &mut Collector) {
    for threshold in thresholds {
        let K6Threshold { metric, expression } = threshold;
        match fail_if(metric, expression, scenarios) {
            Ok((text, said)) => {
                all.fail_if(&text);
                if let Some(said) = said {
                    all.leave_out(format!("threshold {metric}: {expression}: {said}"));
                }
            }
            Err(why) => all.leave_out(format!("threshold {metric}: {expression}: {why}")),
        }
    }
}

/// The condition under which a run fails, and what is left out of the threshold.
fn fail_if(
    metric: &str,
    expression: &str,
    scenarios: &[String],
) -> Result<(String, Option<&'static str>), String> {
    let (metric, tags) = match metric.split_once('{') {
        Some((metric, tags)) => (metric.trim(), tags.trim_end().trim_end_matches('}').trim()),
        None => (metric.trim(), ""),
    };
    let (of, said) = scope(metric, tags, scenarios)?;
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
        _ => Err("a scenario compares with < and > only".to_owned()),
    };
    let text = match metric {
        "http_req_duration" => {
            let statistic = statistic(of_what)?;
            format!("{statistic}{}{}ms", inverse(sign)?, number_text(value))
        }
        "http_req_failed" if of_what == "rate" => {
            let percent = number_text((value * 1e8).round() / 1e6);
            match sign {
                "==" | "===" if value == 0.0 => "errors>0%".to_owned(),
                sign => format!("errors{}{percent}%", inverse(sign)?),
            }
        }
        "checks" if of_what == "rate" => {
            let percent = number_text(((1.0 - value) * 1e8).round() / 1e6);
            let sign = match sign {
                ">" => ">=",
                ">=" => ">",
                "==" | "===" if value == 1.0 => ">",
                _ => return Err("a scenario fails by too many errors only".to_owned()),
            };
            let text = format!("errors{sign}{percent}%");
            let said = "a share of requests here, and not of checks";
            return Ok((scoped(of, &text), Some(said)));
        }
        "group_duration" if of.is_some() => {
            format!("{}{}{}ms", statistic(of_what)?, inverse(sign)?, number_text(value))
        }
        "http_reqs" if of_what == "rate" => {
            format!("throughput{}{}/s", inverse(sign)?, number_text(value))
        }
        _ => return Err("a scenario has no such threshold".to_owned()),
    };
    Ok((scoped(of, &text), said))
}

fn scoped(of: Option<String>, text: &str) -> String {
    match of {
        Some(of) => format!("{of} {text}"),
        None => text.to_owned(),
    }
}

/// The step or session that tags name.
fn scope(
    metric: &str,
    tags: &str,
    scenarios: &[String],
) -> Result<(Option<String>, Option<&'static str>), String> {
    let (mut of, mut said) = (None, None);
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
            "expected_response" => {
                said = Some("of all requests here, and not of those without an error");
            }
            other => return Err(format!("the tag '{other}'")),
        }
    }
    Ok((of, said))
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
            return Err(
                "a scenario has min, mean, p50, p75, p90, p95, p99, p999 and max".to_owned()
            );
        }
    })
}
