//! Thresholds: `--fail-if 'p99>200ms'`.

mod part;
mod report;
pub use report::ThresholdReport;

use super::words::{exact, percent};
use crate::measure::Outcome;
use crate::spec::{Level, ParseError, parse_duration, parse_rate};
use crate::time::Nanos;
use crate::trial::figure::Figure as Stated;
use crate::trial::report::{TimesReport, TrialReport, Verdict};
use std::fmt;

/// A condition under which a run fails: a metric beyond a bound, or an invalid trial.
#[derive(Clone, Debug)]
pub struct Threshold {
    /// The step of a session, or the session, whose operations it is about; `None`: all.
    of: Option<String>,
    text: String,
    condition: Condition,
}

impl Threshold {
    /// Parses `METRIC OPERATOR BOUND`, or `invalid`; `STEP METRIC OPERATOR BOUND` for a step of a
    /// session, or for a session by its name.
    ///
    /// Metrics: `mean`, `min`, `p50`, `p75`, `p90`, `p95`, `p99`, `p999` (or `p99.9`), `max` of
    /// response time against a duration (`200ms`); `throughput`, `goodput` against a rate (`5k/s`);
    /// `errors` against a share of the operations (`0.1%`) or their number, connects that S-Clients
    /// give up not among them. Operators: `>`, `>=`, `<`, `<=`.
    ///
    /// # Errors
    /// One line that says what is wrong and what would be right.
    pub fn parse(text: &str) -> Result<Threshold, ParseError> {
        let wrong = match Threshold::of_all(text) {
            Ok(threshold) => return Ok(threshold),
            Err(wrong) => wrong,
        };
        // A name may have blanks in it, and so may a threshold.
        let blanks = text.char_indices().filter(|(_, c)| c.is_whitespace());
        let mut scoped = blanks.rev().filter_map(|(at, _)| {
            let of = Some(text[..at].trim()).filter(|of| !of.is_empty())?;
            let threshold = Threshold::of_all(&text[at..]).ok()?;
            Some(Threshold {
                of: Some(of.to_owned()),
                ..threshold
            })
        });
        scoped.next().ok_or(wrong)
    }

    fn of_all(text: &str) -> Result<Threshold, ParseError> {
        Ok(Threshold {
            of: None,
            text: text.split_whitespace().collect(),
            condition: parse_condition(text)?,
        })
    }

    /// The step, or session, that it is about, where it is not about all operations.
    pub fn of(&self) -> Option<&str> {
        self.of.as_deref()
    }

    /// Whether it is the word `invalid`, which needs no response times.
    pub fn is_of_verdict(&self) -> bool {
        matches!(self.condition, Condition::Invalid)
    }

    /// What a trial shows of it.
    ///
    /// It is undecided where too few operations ended to tell the figure, and what they tell of it
    /// leaves both possible.
    pub fn judge(&self, trial: &TrialReport) -> Judged {
        let Some(of) = &self.of else {
            return self.judge_all(trial);
        };
        match part::of(of, trial) {
            Some(part) => self.judge_all(&part),
            None => Judged::Undecided(format!(
                "{}: {self} is not decided: there is no step or session '{of}'",
                trial.label
            )),
        }
    }

    fn judge_all(&self, trial: &TrialReport) -> Judged {
        let (label, text) = (&trial.label, &self.text);
        let (metric, is, bound) = match &self.condition {
            Condition::Invalid if trial.verdict == Verdict::Invalid => {
                let why = trial.invalid_because.join("; ");
                return Judged::Crossed(format!("{label}: the trial is invalid: {why}"));
            }
            Condition::Invalid => return Judged::Kept(format!("{label}: the trial is valid")),
            Condition::Bound { metric, is, bound } => (metric, is, *bound),
        };
        let (low, high, line) = match metric.value(trial) {
            Known::Exactly(value) => {
                let line = format!("{label}: {metric} {}", metric.shown(value));
                (value, value, line)
            }
            Known::Within(low, high) => {
                let shown = [low, high].map(|v| metric.shown(v)).join(" to ");
                (
                    low,
                    high,
                    format!("{label}: {metric}, somewhere from {shown},"),
                )
            }
            Known::Undetermined(low, high) => {
                let line = format!("{label}: {metric} {}", metric.range(low, high));
                return match (is.holds(low, bound), is.holds(high, bound)) {
                    (false, false) => Judged::Kept(line),
                    (true, true) => Judged::Crossed(format!("{line} crosses {text}")),
                    _ => Judged::Undetermined(format!(
                        "{label}: {text} is not decided: {metric} is {} because of the \
                         generator's delays",
                        metric.range(low, high)
                    )),
                };
            }
            Known::Not => return self.undecided(*metric, trial),
        };
        match (is.holds(low, bound), is.holds(high, bound)) {
            (false, false) => Judged::Kept(line.trim_end_matches(',').to_owned()),
            (true, true) => Judged::Crossed(format!("{line} crosses {text}")),
            _ => self.undecided(*metric, trial),
        }
    }

    fn undecided(&self, metric: Metric, trial: &TrialReport) -> Judged {
        let observed = metric.observed(trial);
        Judged::Undecided(format!(
            "{}: {} is not decided: {observed}",
            trial.label, self.text
        ))
    }
}

/// What a trial shows of a threshold, in a line that names trial and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Its condition does not hold.
    Kept(String),
    /// It holds.
    Crossed(String),
    /// Too few operations tell the value.
    Undecided(String),
    /// The generator may have changed the value, and its range leaves both possible.
    Undetermined(String),
}

impl std::str::FromStr for Threshold {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Threshold, ParseError> {
        Threshold::parse(text)
    }
}

/// Two are the same if they read the same, blanks apart.
impl PartialEq for Threshold {
    fn eq(&self, other: &Threshold) -> bool {
        self.text == other.text && self.of == other.of
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(of) = &self.of {
            write!(f, "{of} ")?;
        }
        f.write_str(&self.text)
    }
}

#[derive(Clone, Copy, Debug)]
enum Condition {
    Invalid,
    Bound {
        metric: Metric,
        is: Comparison,
        bound: f64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Comparison {
    Above,
    AtLeast,
    Below,
    AtMost,
}

impl Comparison {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Comparison::Above => value > bound,
            Comparison::AtLeast => value >= bound,
            Comparison::Below => value < bound,
            Comparison::AtMost => value <= bound,
        }
    }
}

/// What is compared: times in nanoseconds, rates per second, shares in percent.
#[derive(Clone, Copy, Debug)]
enum Metric {
    Time(&'static str),
    Throughput,
    Goodput,
    ErrorCount,
    ErrorPercent,
}

/// Figures of response time: as they are written, and their names in reports.
const TIMES: [(&str, &str); 10] = [
    ("mean", "mean"),
    ("min", "min"),
    ("p50", "p50"),
    ("p75", "p75"),
    ("p90", "p90"),
    ("p95", "p95"),
    ("p99", "p99"),
    ("p999", "p999"),
    ("p99.9", "p999"),
    ("max", "max"),
];

/// What a trial tells of a figure.
enum Known {
    Exactly(f64),
    /// Between these two, both included, as too few operations tell more.
    Within(f64, f64),
    /// Between these two, both included, as the generator may have changed it.
    Undetermined(f64, f64),
    Not,
}

impl Metric {
    fn value(self, trial: &TrialReport) -> Known {
        let errors = errors(trial) as f64;
        match self {
            // Where all were given up, each might have taken any time.
            Metric::Time("min") if trial.response_time_ns.ranges.is_empty() => {
                let min = trial.response_time_ns.min;
                min.map_or(Known::Not, |ns| Known::Exactly(ns as f64))
            }
            Metric::Time(name) => time(&trial.response_time_ns, name),
            Metric::Throughput => rate(trial.throughput_per_s, trial),
            Metric::Goodput => rate(trial.goodput_per_s, trial),
            _ if trial.outcomes.total() == 0 => Known::Not,
            Metric::ErrorCount => Known::Exactly(errors),
            Metric::ErrorPercent => Known::Exactly(errors * 100.0 / trial.outcomes.total() as f64),
        }
    }

    /// Why it is not known.
    fn observed(self, trial: &TrialReport) -> String {
        match (self, trial.response_time_ns.count) {
            (Metric::Time(..), 0) => "no response time was measured".to_owned(),
            (Metric::Time("min"), _) => "no operation ended in its time".to_owned(),
            (Metric::Time(..), n) => {
                let name = self;
                format!(
                    "{} response times are too few for a {name}",
                    exact(n as f64)
                )
            }
            (Metric::ErrorCount | Metric::ErrorPercent, _) => {
                "no operation was attempted".to_owned()
            }
            (Metric::Throughput | Metric::Goodput, _) => {
                "no response came within the measured time".to_owned()
            }
        }
    }

    fn range(self, low: f64, high: f64) -> String {
        if high.is_infinite() {
            return format!("at least {}", self.shown(low));
        }
        format!("{} to {}", self.shown(low), self.shown(high))
    }

    fn shown(self, value: f64) -> String {
        match self {
            Metric::Time(..) => Nanos(value as u64).to_string(),
            Metric::Throughput | Metric::Goodput => format!("{}/s", exact(value)),
            Metric::ErrorCount => exact(value),
            Metric::ErrorPercent => percent(value),
        }
    }
}

/// A figure that is missing for want of observations lies between the highest percentile that is
/// known and the maximum: too few observations take the upper percentiles away, never the lower.
fn time(times: &TimesReport, name: &str) -> Known {
    match times.figure(name) {
        Stated::Exactly(ns) => return Known::Exactly(ns as f64),
        Stated::Within(low, high) => {
            let high = high.map_or(f64::INFINITY, |ns| ns as f64);
            return Known::Undetermined(low as f64, high);
        }
        Stated::Absent => {}
    }
    let lower = TimesReport::PERCENTILES.iter();
    let lower = lower.filter_map(|(name, _)| times.figure(name).at_least());
    match (lower.max(), times.figure("max").at_most()) {
        (Some(low), Some(high)) => Known::Within(low as f64, high as f64),
        _ => Known::Not,
    }
}

/// Of a rate at which nothing came it is known that it is below one in the time measured.
fn rate(per_s: Option<f64>, trial: &TrialReport) -> Known {
    match (per_s, trial.throughput(), trial.duration_ns) {
        (Some(per_s), ..) => Known::Exactly(per_s),
        (None, Stated::Within(low, high), _) => {
            Known::Undetermined(low, high.unwrap_or(f64::INFINITY))
        }
        (None, _, 0) => Known::Not,
        (None, _, ns) => Known::Within(0.0, 1e9 / ns as f64),
    }
}

/// Operations that failed. S-Clients are there to offer more than is served: what they give up
/// after T is the load, not a failure.
fn errors(trial: &TrialReport) -> u64 {
    let given_up = match trial.level {
        Level::Descriptors(_) => trial.outcomes.count(Outcome::ConnectTimeout),
        _ => 0,
    };
    trial.outcomes.errors() - given_up
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Metric::Time("p999") => "p99.9",
            Metric::Time(name) => name,
            Metric::Throughput => "throughput",
            Metric::Goodput => "goodput",
            Metric::ErrorCount | Metric::ErrorPercent => "errors",
        })
    }
}

fn parse_condition(text: &str) -> Result<Condition, ParseError> {
    let shown = text.trim();
    if shown == "invalid" {
        return Ok(Condition::Invalid);
    }
    let Some(at) = shown.find(['<', '>']) else {
        return Err(ParseError(format!(
            "'{shown}' compares nothing: give a metric, < or >, and a bound, such as p99>200ms, \
             throughput<5000 or errors>0.1%, or the word invalid"
        )));
    };
    let (name, rest) = (shown[..at].trim(), &shown[at..]);
    let (is, bound) = if let Some(bound) = rest.strip_prefix(">=") {
        (Comparison::AtLeast, bound)
    } else if let Some(bound) = rest.strip_prefix("<=") {
        (Comparison::AtMost, bound)
    } else if let Some(bound) = rest.strip_prefix('>') {
        (Comparison::Above, bound)
    } else {
        (Comparison::Below, &rest[1..])
    };
    let (metric, bound) = parse_bound(name, bound.trim())?;
    Ok(Condition::Bound { metric, is, bound })
}

fn parse_bound(name: &str, bound: &str) -> Result<(Metric, f64), ParseError> {
    if let Some((_, figure)) = TIMES.iter().find(|(known, _)| *known == name) {
        // A bare number would be seconds elsewhere; here it is more likely a mistake.
        if bound.ends_with(|c: char| c.is_ascii_digit()) {
            return Err(ParseError(format!(
                "'{bound}' has no unit: write {name} with a duration, such as {name}>{bound}ms"
            )));
        }
        return Ok((Metric::Time(figure), parse_duration(bound)?.0 as f64));
    }
    let rate = || match bound {
        "0" => Ok(0.0),
        _ => parse_rate(bound).map(|rate| rate.per_s()),
    };
    match name {
        "throughput" => Ok((Metric::Throughput, rate()?)),
        "goodput" => Ok((Metric::Goodput, rate()?)),
        "errors" => match bound.strip_suffix('%') {
            Some(share) => Ok((Metric::ErrorPercent, parse_number(share, bound, 100.0)?)),
            None => Ok((Metric::ErrorCount, parse_error_count(bound)?)),
        },
        _ => Err(ParseError(format!(
            "'{name}' is not a metric: give mean, min, p50, p75, p90, p95, p99, p999, max, \
             throughput, goodput or errors"
        ))),
    }
}

/// A whole number. A fraction may be meant as a share of 1, or as percent.
fn parse_error_count(bound: &str) -> Result<f64, ParseError> {
    let count = parse_number(bound, bound, f64::MAX)?;
    if count.fract() == 0.0 {
        return Ok(count);
    }
    Err(ParseError(format!(
        "'{bound}' is no number of errors: write errors>{}% for a share of {bound}, or \
         errors>{bound}% for {bound} percent",
        exact(count * 100.0)
    )))
}

fn parse_number(text: &str, whole: &str, most: f64) -> Result<f64, ParseError> {
    let number = text.trim().parse::<f64>().ok();
    number
        .filter(|n| n.is_finite() && (0.0..=most).contains(n))
        .ok_or_else(|| {
            ParseError(format!(
                "'{whole}' is not a number of errors: give a share, such as 0.1%, or a count"
            ))
        })
}

#[cfg(test)]
mod tests;
