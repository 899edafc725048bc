//! Thresholds of the metrics of scripts: `metric waits p(95)>=300`.

use super::{Operator, Threshold, ThresholdCondition, ThresholdJudgement, split_operator};
use crate::trial::report::TrialReport;
use crate::trial::sessions::ScriptMetricReport;
use crate::words::exact;
use knee_load::measure::Outcome;
use knee_load::spec::{Level, ParseError};

/// A figure of a metric, as k6 names them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum MetricFigure {
    Count,
    Rate,
    Value,
    Mean,
    Min,
    Max,
    /// A percentile, 0 to 100.
    Percentile(f64),
}

impl MetricFigure {
    fn parse(name: &str) -> Option<MetricFigure> {
        Some(match name {
            "count" => MetricFigure::Count,
            "rate" => MetricFigure::Rate,
            "value" => MetricFigure::Value,
            "avg" => MetricFigure::Mean,
            "min" => MetricFigure::Min,
            "max" => MetricFigure::Max,
            "med" => MetricFigure::Percentile(50.0),
            other => {
                let percentile = other.strip_prefix("p(")?.strip_suffix(')')?.parse().ok()?;
                (0.0..=100.0).contains(&percentile).then_some(())?;
                MetricFigure::Percentile(percentile)
            }
        })
    }
}

impl MetricFigure {
    /// Its name, `p(N)` for all percentiles.
    pub(super) fn name(self) -> &'static str {
        match self {
            MetricFigure::Count => "count",
            MetricFigure::Rate => "rate",
            MetricFigure::Value => "value",
            MetricFigure::Mean => "avg",
            MetricFigure::Min => "min",
            MetricFigure::Max => "max",
            MetricFigure::Percentile(_) => "p(N)",
        }
    }
}

impl Threshold {
    /// Parses `NAME FIGURE OPERATOR NUMBER`.
    pub(super) fn of_metric(text: &str) -> Result<Threshold, ParseError> {
        let wrong = || {
            ParseError(format!(
                "'metric {text}': expected a name, a figure (count, rate, value, avg, min, max, \
                 med or p(N)), an operator and a number, such as metric waits p(95)>300"
            ))
        };
        // Tags of a name may have operators too.
        let end = text.rfind(['<', '>', '=', '!']).ok_or_else(wrong)?;
        let begin = text[..end].trim_end_matches(['<', '>', '=', '!']).len();
        let (is, value) = split_operator(&text[begin..]).ok_or_else(wrong)?;
        let sign = &text[begin..text.len() - value.len()];
        let (name, figure) = text[..begin].trim().rsplit_once(' ').ok_or_else(wrong)?;
        let (name, value) = (name.trim().to_owned(), value.trim());
        let bound: f64 = value.parse().map_err(|_| wrong())?;
        Ok(Threshold {
            of: None,
            text: format!("metric {name} {figure}{sign}{value}"),
            condition: ThresholdCondition::Metric {
                name,
                figure: MetricFigure::parse(figure).ok_or_else(wrong)?,
                is,
                bound,
            },
            may_be_absent: true,
        })
    }

    /// Judges the value of its figure; `None`: nothing was measured, which keeps it as in k6.
    pub(super) fn judge_metric(
        &self,
        value: Option<f64>,
        is: Operator,
        bound: f64,
        trial: &TrialReport,
    ) -> ThresholdJudgement {
        let (label, text) = (&trial.label, &self.text);
        let Some(value) = value else {
            return ThresholdJudgement::Kept(format!("{label}: {text}: nothing was measured"));
        };
        let shown = exact((value * 1e6).round() / 1e6);
        if is.holds(value, bound) {
            ThresholdJudgement::Crossed(format!("{label}: {shown} crosses {text}"))
        } else {
            ThresholdJudgement::Kept(format!("{label}: {shown} keeps {text}"))
        }
    }
}

/// The value of a figure of a metric in a trial, in the metric's unit; `None` without values.
pub(super) fn value(name: &str, figure: MetricFigure, trial: &TrialReport) -> Option<f64> {
    let script = trial.sessions()?.script.as_ref()?;
    let known = script.metrics.iter().find(|metric| metric.metric == name).cloned();
    let metric = known.or_else(|| built_in(name, trial))?;
    let seconds = trial.duration_ns as f64 / 1e9;
    match (figure, metric.hits) {
        (MetricFigure::Rate, Some([hits, all])) => (all > 0).then(|| hits as f64 / all as f64),
        (MetricFigure::Rate, None) => Some(metric.value? / seconds).filter(|rate| rate.is_finite()),
        (MetricFigure::Count | MetricFigure::Value | MetricFigure::Mean, _) => metric.value,
        (MetricFigure::Min, _) => metric.range.map(|[min, _]| min),
        (MetricFigure::Max, _) => metric.range.map(|[_, max]| max),
        (MetricFigure::Percentile(of), _) => metric.percentiles.get(&of.to_string()).copied(),
    }
}

/// A metric of k6 that the report has figures of.
fn built_in(name: &str, trial: &TrialReport) -> Option<ScriptMetricReport> {
    let sessions = trial.sessions()?;
    let sum = |value: u64| Some(value as f64);
    let value = match name {
        "http_reqs" => sum(trial.outcomes.total()),
        "iterations" => sum(sessions.kinds.iter().map(|kind| kind.completed + kind.failed).sum()),
        "dropped_iterations" => sum(trial.outcomes.count(Outcome::Shed)),
        "data_received" => sum(trial.bytes_received),
        "data_sent" => sum(trial.http()?.traffic.bytes_sent),
        "vus" | "vus_max" => match trial.level {
            Level::Vusers(users) => sum(users.into()),
            _ => None,
        },
        _ => None,
    };
    let checks = sessions.script.iter().flat_map(|script| &script.checks);
    let [succeeded, failed] = checks.fold([0, 0], |[s, f], c| [s + c.succeeded, f + c.failed]);
    let hits = (name == "checks").then_some([succeeded, succeeded + failed]);
    (value.is_some() || hits.is_some()).then(|| ScriptMetricReport {
        value,
        hits,
        ..ScriptMetricReport::default()
    })
}
