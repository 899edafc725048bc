//! Thresholds: `--fail-if 'p99>200ms'`.

mod metric;

use crate::trial::figure::{Figure, FigureKind, TimesReport};
use crate::trial::messages::TimesOf;
use crate::trial::report::{TrialReport, Verdict};
use crate::trial::sessions::CheckReport;
use crate::trial::statistics::{
    Better, STATISTICS, StatisticSource, StatisticUnit, TrialStatistic,
};
use crate::words::{exact, percent};
use knee_load::measure::{Outcome, Outcomes};
use knee_load::spec::{ParseError, parse_duration, parse_rate};
use knee_load::time::Nanos;
use std::fmt;

/// A condition under which a run fails: a metric beyond a bound, or an invalid trial.
#[derive(Clone, Debug)]
pub struct Threshold {
    /// The step of a session, or the session, whose operations it is about; `None`: all.
    of: Option<String>,
    text: String,
    condition: ThresholdCondition,
    /// It is kept where its step or metric is not there, as in k6.
    may_be_absent: bool,
}

impl Threshold {
    /// Parses `METRIC OPERATOR BOUND`, or `invalid`; `STEP METRIC OPERATOR BOUND` for a step of a
    /// session, or for a session by its name.
    ///
    /// `metric NAME FIGURE OPERATOR NUMBER` is of a metric of a script, with k6's names of figures.
    ///
    /// Metrics are the rows of [`STATISTICS`] that have thresholds. Times have a duration
    /// (`200ms`), rates a rate (`5k/s`), `errors` a share (`0.1%`) or a number. Operators: `>`,
    /// `>=`, `<`, `<=`.
    ///
    /// # Errors
    /// One line that says what is wrong and what would be right.
    pub fn parse(text: &str) -> Result<Threshold, ParseError> {
        if let Some(of_metric) = text.trim_start().strip_prefix("metric ") {
            return Threshold::of_metric(of_metric);
        }
        let error = match Threshold::unscoped(text) {
            Ok(threshold) => return Ok(threshold),
            Err(error) => error,
        };
        // A name may have blanks in it, and so may a threshold.
        let blanks = text.char_indices().filter(|(_, c)| c.is_whitespace());
        let mut scoped = blanks.rev().filter_map(|(at, _)| {
            let name = Some(text[..at].trim()).filter(|name| !name.is_empty())?;
            let threshold = Threshold::unscoped(&text[at..]).ok()?;
            Some(Threshold { of: Some(name.to_owned()), ..threshold })
        });
        scoped.next().ok_or(error)
    }

    /// A threshold on all operations.
    fn unscoped(text: &str) -> Result<Threshold, ParseError> {
        Ok(Threshold {
            of: None,
            text: text.split_whitespace().collect(),
            condition: parse_condition(text)?,
            may_be_absent: false,
        })
    }

    /// The same, kept where what it is of is not there.
    pub fn or_absent(self) -> Threshold {
        Threshold { may_be_absent: true, ..self }
    }

    /// The step, or session, that it is about, where it is not about all operations.
    pub fn of(&self) -> Option<&str> {
        self.of.as_deref()
    }

    /// The metric of a script that it is of, and the figure: `p(N)` for all percentiles.
    pub fn metric(&self) -> Option<(&str, &'static str)> {
        match &self.condition {
            ThresholdCondition::Metric { name, figure, .. } => Some((name, figure.name())),
            _ => None,
        }
    }

    /// Whether it is the word `invalid`, which needs no response times.
    pub fn is_of_verdict(&self) -> bool {
        matches!(self.condition, ThresholdCondition::Invalid)
    }

    /// Whether it bounds a number or share of all operations that ended in some way.
    pub fn is_of_counts(&self) -> bool {
        let ThresholdCondition::Bound { statistic, .. } = &self.condition else {
            return false;
        };
        let source = statistic.source;
        self.of.is_none() && matches!(source, StatisticSource::Count(_) | StatisticSource::Share(_))
    }

    /// A remark for whoever wrote what must hold, as in k6: the condition fails the run where the
    /// figure is good.
    pub fn remark_if_reversed(&self) -> Option<String> {
        let ThresholdCondition::Bound { statistic, is, .. } = &self.condition else {
            return None;
        };
        let (sign, opposite) = match (is, statistic.better) {
            (Operator::Below, Better::Less) => ("<", ">="),
            (Operator::AtMost, Better::Less) => ("<=", ">"),
            (Operator::Above, Better::More) => (">", "<="),
            (Operator::AtLeast, Better::More) => (">=", "<"),
            _ => return None,
        };
        let right = self.to_string().replacen(sign, opposite, 1);
        Some(format!("; --fail-if says what fails: to require {self}, give '{right}'"))
    }

    /// Judges a trial by it.
    ///
    /// It is undecided where too few operations ended to determine the figure, and its bounds leave
    /// both possible.
    pub fn judge(&self, trial: &TrialReport) -> ThresholdJudgement {
        if let ThresholdCondition::Metric { name, figure, is, bound } = &self.condition {
            return self.judge_metric(metric::value(name, *figure, trial), *is, *bound, trial);
        }
        let Some(name) = &self.of else {
            return self.judge_all(trial);
        };
        match part_named(name, trial) {
            Some(part) => self.judge_all(&part),
            None if self.may_be_absent => ThresholdJudgement::Kept(format!(
                "{}: {self}: nothing was measured of '{name}'",
                trial.label
            )),
            None => ThresholdJudgement::Undecided(format!(
                "{}: {self} is not decided: there is no step or session '{name}'",
                trial.label
            )),
        }
    }

    fn judge_all(&self, trial: &TrialReport) -> ThresholdJudgement {
        let (label, text) = (&trial.label, &self.text);
        let (statistic, is, bound) = match &self.condition {
            ThresholdCondition::Invalid if trial.verdict == Verdict::Invalid => {
                let why = trial.invalid_because.join("; ");
                return ThresholdJudgement::Crossed(format!(
                    "{label}: the trial is invalid: {why}"
                ));
            }
            ThresholdCondition::Invalid => {
                return ThresholdJudgement::Kept(format!("{label}: the trial is valid"));
            }
            ThresholdCondition::Metric { .. } => return self.judge(trial),
            ThresholdCondition::Bound { statistic, is, bound } => (*statistic, is, *bound),
        };
        let name = statistic.title;
        let (low, high, line) = match known(statistic, trial) {
            KnownValue::Exactly(value) => {
                let line = format!("{label}: {name} {}", shown(statistic, value));
                (value, value, line)
            }
            KnownValue::Within(low, high) => {
                let range = [low, high].map(|v| shown(statistic, v)).join(" to ");
                (low, high, format!("{label}: {name}, somewhere from {range},"))
            }
            KnownValue::Undetermined(low, high) => {
                let range = shown_range(statistic, low, high);
                let line = format!("{label}: {name} {range}");
                return match (is.holds(low, bound), is.holds(high, bound)) {
                    (false, false) => ThresholdJudgement::Kept(line),
                    (true, true) => ThresholdJudgement::Crossed(format!("{line} crosses {text}")),
                    _ => ThresholdJudgement::Undetermined(format!(
                        "{label}: {text} is not decided: {name} is {range} because of the \
                         generator's delays"
                    )),
                };
            }
            KnownValue::Not => return self.undecided(statistic, trial),
        };
        match (is.holds(low, bound), is.holds(high, bound)) {
            (false, false) => ThresholdJudgement::Kept(line.trim_end_matches(',').to_owned()),
            (true, true) => ThresholdJudgement::Crossed(format!("{line} crosses {text}")),
            _ => self.undecided(statistic, trial),
        }
    }

    fn undecided(&self, statistic: &TrialStatistic, trial: &TrialReport) -> ThresholdJudgement {
        ThresholdJudgement::Undecided(format!(
            "{}: {} is not decided: {}",
            trial.label,
            self.text,
            why_unknown(statistic, trial)
        ))
    }
}

/// The judgement of a trial by a threshold, in a line that names trial and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThresholdJudgement {
    /// Its condition does not hold.
    Kept(String),
    /// Its condition holds.
    Crossed(String),
    /// Too few operations ended to determine the value.
    Undecided(String),
    /// The generator may have changed the value, and its range leaves both possible.
    Undetermined(String),
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

#[derive(Clone, Debug)]
enum ThresholdCondition {
    Invalid,
    Bound {
        statistic: &'static TrialStatistic,
        is: Operator,
        bound: f64,
    },
    /// A figure of a metric of a script.
    Metric {
        name: String,
        figure: metric::MetricFigure,
        is: Operator,
        bound: f64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Operator {
    Above,
    AtLeast,
    Below,
    AtMost,
    Equal,
    NotEqual,
}

impl Operator {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Operator::Above => value > bound,
            Operator::AtLeast => value >= bound,
            Operator::Below => value < bound,
            Operator::AtMost => value <= bound,
            // A bound is written in decimals.
            Operator::Equal => (value - bound).abs() <= f64::EPSILON * bound.abs(),
            Operator::NotEqual => !Operator::Equal.holds(value, bound),
        }
    }
}

/// The knowledge that a trial gives of a statistic.
enum KnownValue {
    Exactly(f64),
    /// Between these two, both included, as too few operations ended.
    Within(f64, f64),
    /// Between these two, both included, as the generator may have changed it.
    Undetermined(f64, f64),
    Not,
}

fn known(statistic: &TrialStatistic, trial: &TrialReport) -> KnownValue {
    let times = statistic_times(statistic, trial);
    match (statistic.value(trial), statistic.source) {
        (_, StatisticSource::Count(_) | StatisticSource::Share(_))
            if trial.outcomes.total() == 0 =>
        {
            KnownValue::Not
        }
        (Figure::Exactly(value), _) => KnownValue::Exactly(value),
        (Figure::Within(low, high), _) => {
            KnownValue::Undetermined(low, high.unwrap_or(f64::INFINITY))
        }
        // Where all timed out, each might have taken any time.
        (Figure::Absent, StatisticSource::Time { figure, .. })
            if figure.kind == FigureKind::Min && times.is_some_and(|t| t.ranges.is_empty()) =>
        {
            KnownValue::Not
        }
        // Too few observations take the upper percentiles away, never the lower.
        (Figure::Absent, StatisticSource::Time { .. }) => {
            let bounds = times.map(|t| (t.highest_percentile(), t.figure("max").at_most()));
            match bounds {
                Some((Some(low), Some(high))) => KnownValue::Within(low as f64, high as f64),
                _ => KnownValue::Not,
            }
        }
        (Figure::Absent, StatisticSource::Duration(_)) => KnownValue::Not,
        (Figure::Absent, _) if trial.duration_ns == 0 => KnownValue::Not,
        // The rate of what did not come is below one in the time measured.
        (Figure::Absent, _) => KnownValue::Within(0.0, 1e9 / trial.duration_ns as f64),
    }
}

/// The times that a statistic is a figure of.
fn statistic_times<'a>(
    statistic: &TrialStatistic,
    trial: &'a TrialReport,
) -> Option<&'a TimesReport> {
    match statistic.source {
        StatisticSource::Time { of, .. } => of.of(&trial.response_time_ns, trial.messages()),
        _ => None,
    }
}

/// Why a statistic is not known.
fn why_unknown(statistic: &TrialStatistic, trial: &TrialReport) -> String {
    let count = statistic_times(statistic, trial).map_or(0, |times| times.count);
    match (statistic.source, count) {
        (StatisticSource::Time { of, .. }, 0) if of != TimesOf::Response => {
            "no message came".to_owned()
        }
        (StatisticSource::Duration(_), _) if statistic.key == "recovery_ns" => {
            "the service did not recover".to_owned()
        }
        (StatisticSource::Duration(_), _) => "no message came".to_owned(),
        (StatisticSource::Time { of, figure, .. }, n) if of != TimesOf::Response => {
            format!("{} times are too few for a {}", exact(n as f64), figure.title)
        }
        (StatisticSource::Time { .. }, 0) => "no response time was measured".to_owned(),
        (StatisticSource::Time { figure, .. }, _) if figure.kind == FigureKind::Min => {
            "no operation ended in its time".to_owned()
        }
        (StatisticSource::Time { figure, .. }, n) => {
            let (n, name) = (exact(n as f64), figure.title);
            format!("{n} response times are too few for a {name}")
        }
        (StatisticSource::Count(_) | StatisticSource::Share(_), _) => {
            "no operation was attempted".to_owned()
        }
        (StatisticSource::Rate { .. } | StatisticSource::Counted(_), _) => {
            "no response came within the measured time".to_owned()
        }
    }
}

fn shown_range(statistic: &TrialStatistic, low: f64, high: f64) -> String {
    let low = shown(statistic, low);
    if high.is_infinite() {
        return format!("at least {low}");
    }
    format!("{low} to {}", shown(statistic, high))
}

fn shown(statistic: &TrialStatistic, value: f64) -> String {
    match statistic.unit {
        StatisticUnit::Nanoseconds => Nanos(value as u64).to_string(),
        StatisticUnit::PerSecond => format!("{}/s", exact(value)),
        StatisticUnit::BytesPerSecond => format!("{} B/s", exact(value)),
        StatisticUnit::Count => exact(value),
        StatisticUnit::Percent => percent(value),
    }
}

/// What a trial shows of this step or group of steps, with or without its session's name before it,
/// or of this session.
fn part_named(name: &str, trial: &TrialReport) -> Option<TrialReport> {
    let http = trial.http()?;
    let per_s = |count: u64| {
        let seconds = trial.duration_ns as f64 / 1e9;
        (count > 0 && seconds > 0.0).then(|| count as f64 / seconds)
    };
    let mut part = TrialReport { label: format!("{}, {name}", trial.label), ..trial.clone() };
    let is_named = |step: &str| {
        step == name || step.strip_suffix(name).is_some_and(|before| before.ends_with(": "))
    };
    let mut set = |times: &TimesReport, outcomes: Outcomes, completed: u64| {
        part.response_time_ns = times.clone();
        part.throughput_per_s = per_s(completed);
        part.goodput_per_s = per_s(outcomes.count(Outcome::Ok));
        part.outcomes = outcomes;
    };
    // Walks through several steps have these ends.
    let ends = |completed: u64, failed: u64| {
        let mut outcomes = Outcomes::default();
        outcomes.add_many(Outcome::Ok, completed);
        outcomes.add_many(Outcome::Unexpected, failed);
        outcomes
    };
    let sessions = http.sessions.as_ref();
    let group = || sessions?.groups.iter().find(|group| is_named(&group.group));
    let kind = || sessions?.kinds.iter().find(|kind| kind.session == name);
    let script = || sessions?.script.as_ref();
    let check = |name: &str| {
        let sum = |is_counted: &dyn Fn(&CheckReport) -> bool| {
            let checks = script().into_iter().flat_map(|script| &script.checks);
            let sum = checks
                .filter(|check| is_counted(check))
                .fold((0, 0), |sum, check| (sum.0 + check.succeeded, sum.1 + check.failed));
            Some(sum).filter(|(succeeded, failed)| succeeded + failed > 0)
        };
        match name {
            "checks" => sum(&|_| true),
            name => sum(&|check| {
                let before = check.name.strip_suffix(name);
                before.is_some_and(|before| before.is_empty() || before.ends_with("::"))
            }),
        }
    };
    let metric = || script()?.metrics.iter().find(|metric| metric.metric == name);
    if let Some(step) = http.traffic.targets.iter().find(|step| is_named(&step.target)) {
        set(&step.response_time_ns, step.outcomes.clone(), step.completed);
    } else if let Some(group) = group() {
        set(&group.time_ns, ends(group.completed, 0), group.completed);
    } else if let Some(kind) = kind() {
        let ended = kind.completed + kind.failed;
        set(&kind.session_time_ns, ends(kind.completed, kind.failed), ended);
    } else if let Some((succeeded, failed)) = check(name) {
        set(&TimesReport::default(), ends(succeeded, failed), succeeded + failed);
    } else if let Some(metric) = metric() {
        let [hits, all] = metric.hits.unwrap_or([metric.value.unwrap_or(0.0) as u64; 2]);
        let times = metric.trend.clone().unwrap_or_default();
        let (good, count) = (times.count + all - hits, times.count + all);
        set(&times, ends(good, hits), count);
    } else if !http.traffic.targets.is_empty() {
        // One step alone has no figures of its own: they are those of the trial.
        return None;
    }
    Some(part)
}

/// The operator at the begin of a text, and what follows it.
fn split_operator(text: &str) -> Option<(Operator, &str)> {
    const OPERATORS: [(&str, Operator); 6] = [
        (">=", Operator::AtLeast),
        ("<=", Operator::AtMost),
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        (">", Operator::Above),
        ("<", Operator::Below),
    ];
    OPERATORS.into_iter().find_map(|(sign, is)| Some((is, text.strip_prefix(sign)?)))
}

fn parse_condition(text: &str) -> Result<ThresholdCondition, ParseError> {
    let shown = text.trim();
    if shown == "invalid" {
        return Ok(ThresholdCondition::Invalid);
    }
    let compared = shown.find(['<', '>']);
    let Some((at, (is, bound))) = compared.and_then(|at| Some((at, split_operator(&shown[at..])?)))
    else {
        return Err(ParseError(format!(
            "'{shown}' compares nothing: give a metric, < or >, and a bound, such as p99>200ms, \
             throughput<5000 or errors>0.1%, or the word invalid"
        )));
    };
    let (statistic, bound) = parse_bound(shown[..at].trim(), bound.trim())?;
    Ok(ThresholdCondition::Bound { statistic, is, bound })
}

fn parse_bound(name: &str, bound: &str) -> Result<(&'static TrialStatistic, f64), ParseError> {
    let rows = || {
        let rows = STATISTICS.iter().filter(|row| row.has_thresholds);
        rows.filter(|row| row.name == name || row.title == name)
    };
    let is_share =
        |row: &&TrialStatistic| (row.unit == StatisticUnit::Percent) == bound.ends_with('%');
    let Some(row) = rows().find(is_share).or_else(|| rows().next()) else {
        return Err(ParseError(format!(
            "'{name}' is not a metric: {} 'knee run --help' lists all under --fail-if",
            meant(name)
        )));
    };
    let value = match row.unit {
        // A bare number would be seconds elsewhere; in a threshold it is more likely a mistake.
        StatisticUnit::Nanoseconds if bound.ends_with(|c: char| c.is_ascii_digit()) => {
            return Err(ParseError(format!(
                "'{bound}' has no unit: write {name} with a duration, such as {name}>{bound}ms"
            )));
        }
        StatisticUnit::Nanoseconds => parse_duration(bound)?.0 as f64,
        StatisticUnit::PerSecond | StatisticUnit::BytesPerSecond if bound == "0" => 0.0,
        StatisticUnit::PerSecond | StatisticUnit::BytesPerSecond => parse_rate(bound)?.per_s(),
        StatisticUnit::Percent => {
            parse_number(name, bound.strip_suffix('%').unwrap_or(bound), bound, 100.0)?
        }
        StatisticUnit::Count => parse_count(name, bound)?,
    };
    Ok((row, value))
}

/// Metrics of other programs, and those that mean the same here.
const ELSEWHERE: [(&str, &str); 5] = [
    ("latency duration response_time http_req_duration response time", "p99"),
    ("average avg", "mean"),
    ("median med", "p50"),
    ("rps qps tps rate requests http_reqs req/s requests/s", "throughput"),
    ("error error_rate error% failures failed http_req_failed checks success", "errors"),
];

/// Most letters in which a name differs from the one that is meant; of a short one, half.
const LETTERS_MAX: usize = 2;

/// What may be meant by a name that is no metric.
fn meant(name: &str) -> String {
    // k6 writes p(95).
    let bare: String = name.to_lowercase().replace(['(', ')'], "");
    let names = STATISTICS.iter().filter(|row| row.has_thresholds).map(|row| row.name);
    let elsewhere = ELSEWHERE.iter().find(|(theirs, _)| theirs.split(' ').any(|word| word == bare));
    let most = LETTERS_MAX.min(bare.len() / 2);
    let nearest = names
        .min_by_key(|known| letters_apart(known, &bare))
        .filter(|known| letters_apart(known, &bare) <= most);
    match elsewhere.map(|(_, ours)| *ours).or(nearest) {
        Some(known) => format!("did you mean {known}?"),
        None => "expected one such as errors, p99 or throughput;".to_owned(),
    }
}

/// The least number of letters to change, add or leave out that makes one word of another.
fn letters_apart(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, letter_a) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, letter_b) in b.chars().enumerate() {
            let changed = diagonal + usize::from(letter_a != letter_b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

/// A whole number. A fraction may be meant as a share of 1, or as percent.
fn parse_count(name: &str, bound: &str) -> Result<f64, ParseError> {
    let count = parse_number(name, bound, bound, f64::MAX)?;
    if count.fract() == 0.0 {
        return Ok(count);
    }
    Err(ParseError(format!(
        "'{bound}' is no number of {name}: write {name}>{}% for a share of {bound}, or \
         {name}>{bound}% for {bound} percent",
        exact(count * 100.0)
    )))
}

fn parse_number(name: &str, text: &str, whole: &str, most: f64) -> Result<f64, ParseError> {
    let number = text.trim().parse::<f64>().ok();
    number.filter(|n| n.is_finite() && (0.0..=most).contains(n)).ok_or_else(|| {
        ParseError(format!(
            "'{whole}' is not a number of {name}: give a share, such as 0.1%, or a count"
        ))
    })
}

#[cfg(test)]
mod tests;
