//! A figure over many runs of the same: where it changed, and whether the host did.

use super::report::{
    ComparisonRow, ComparisonVerdict, TrendChange, TrendReport, TrendRow, TrendRun,
};
use super::warnings::{differences, unlike_generators};
use super::{NamedReport, compare};
use crate::report::Report;
use crate::trial::report::Verdict;
use crate::trial::statistics::Better;
use knee_load::stats::change_points::{ALPHA, SEGMENT_MIN, VALUES_MAX, change_points};

/// The schema of a [`TrendReport`] as JSON.
pub const TREND_SCHEMA: &str = "knee.trend/1";

/// Figures that are followed unless others are asked for, as far as a command has them.
const FOLLOWED: [&str; 6] =
    ["max_throughput_per_s", "knee_vusers", "throughput_per_s", "p50_ns", "p99_ns", "recovery_ns"];

/// Runs on each side of a change that are compared with each other.
const COMPARED_MAX: usize = 8;

/// The latest run, and the earlier ones that it can be compared with.
pub struct History<'a> {
    /// In their order in time, the latest last.
    runs: Vec<NamedReport<'a>>,
    /// Runs that were left out as they are INVALID, …
    invalid: usize,
    /// … and those made with other options, on another machine or by another version.
    unlike: usize,
}

impl<'a> History<'a> {
    /// The runs among these, in their order in time, that were made as the last was.
    pub fn of(all: &[NamedReport<'a>]) -> History<'a> {
        let mut history = History { runs: Vec::new(), invalid: 0, unlike: 0 };
        let Some(last) = all.last() else {
            return history;
        };
        for named in all {
            let is_alike = differences(last.report, named.report).is_empty()
                && unlike_generators(last.report, named.report).is_empty();
            if !is_alike {
                history.unlike += 1;
            } else if named.report.verdict == Verdict::Invalid {
                history.invalid += 1;
            } else {
                history.runs.push(*named);
            }
        }
        let surplus = history.runs.len().saturating_sub(VALUES_MAX);
        history.runs.drain(..surplus);
        history
    }

    /// Where figures changed: those of these metrics, or without any the usual ones.
    ///
    /// # Errors
    /// One line: there are too few runs, or they have no such figure.
    pub fn trend(&self, metrics: &[String], knee_version: &str) -> Result<TrendReport, String> {
        let count = self.runs.len();
        let least = 2 * SEGMENT_MIN;
        if count < least {
            return Err(format!(
                "{count} runs can be compared ({} INVALID, {} made otherwise): a trend needs at \
                 least {least} that are alike",
                self.invalid, self.unlike
            ));
        }
        let series = self.series(metrics, knee_version)?;
        let rows = series.into_iter().map(|row| self.row(row, knee_version));
        let runs = self.runs.iter().map(|named| TrendRun {
            name: named.name.to_owned(),
            started_at: named.report.started_at.clone(),
        });
        Ok(TrendReport {
            schema: TREND_SCHEMA.to_owned(),
            knee_version: knee_version.to_owned(),
            command: self.first().command.to_string(),
            runs: runs.collect(),
            invalid_left_out: self.invalid as u64,
            unlike_left_out: self.unlike as u64,
            rows: rows.collect(),
        })
    }

    fn first(&self) -> &'a Report {
        self.runs[0].report
    }

    /// The figures of all runs, metric by metric.
    fn series(&self, metrics: &[String], version: &str) -> Result<Vec<TrendRow>, String> {
        let mut series: Vec<TrendRow> = Vec::new();
        for (number, run) in self.runs.iter().enumerate() {
            // A run against the first has the figures of both.
            let compared = compare(&self.runs[..1], std::slice::from_ref(run), version)?;
            let rows = compared.rows.into_iter().filter(is_of_the_whole);
            if number == 0 {
                series = rows.map(TrendRow::of).collect();
                continue;
            }
            let values: Vec<_> = rows.map(|row| (row.metric, row.label, row.b)).collect();
            for row in &mut series {
                let own = values.iter().find(|(m, l, _)| (m, l) == (&row.metric, &row.label));
                row.values.push(own.and_then(|(.., value)| *value));
            }
        }
        let known: Vec<String> = series.iter().map(|row| row.metric.clone()).collect();
        if let Some(unknown) = metrics.iter().find(|metric| !known.contains(metric)) {
            return Err(format!("--metric: no figure '{unknown}': expected {}", known.join(", ")));
        }
        series.retain(|row| match metrics {
            [] => FOLLOWED.contains(&row.metric.as_str()),
            metrics => metrics.contains(&row.metric),
        });
        Ok(series)
    }

    fn row(&self, row: TrendRow, version: &str) -> TrendRow {
        // A run without the figure says nothing.
        let known = row.values.iter().enumerate();
        let known = known.filter_map(|(at, value)| Some((at, (*value)?)));
        let known: Vec<(usize, f64)> = known.filter(|(_, value)| *value > 0.0).collect();
        let logs: Vec<f64> = known.iter().map(|(_, value)| value.ln()).collect();
        let places = change_points(&logs, ALPHA);
        let ends = |number: usize| {
            let from = number.checked_sub(1).map_or(0, |before| places[before]);
            (from, places[number], places.get(number + 1).map_or(logs.len(), |after| *after))
        };
        let mean = |from: usize, to: usize| {
            (logs[from..to].iter().sum::<f64>() / (to - from) as f64).exp()
        };
        let changes = (0..places.len()).map(|number| {
            let (from, at, to) = ends(number);
            let runs = |from: usize, to: usize| {
                known[from..to].iter().map(|(run, _)| self.runs[*run]).collect::<Vec<_>>()
            };
            let sides = [
                runs(from.max(at.saturating_sub(COMPARED_MAX)), at),
                runs(at, to.min(at + COMPARED_MAX)),
            ];
            let (before, after) = (mean(from, at), mean(at, to));
            let (verdict, because) = verdict(&row, &sides, after / before, version);
            let first = known[at].0;
            TrendChange {
                first_run: self.runs[first].name.to_owned(),
                at: first as u64,
                before,
                after,
                change_percent: 100.0 * (after / before - 1.0),
                verdict,
                because,
            }
        });
        let changes = changes.collect();
        let mean = (!logs.is_empty()).then(|| mean(0, logs.len()));
        TrendRow { changes, mean, ..row }
    }
}

/// Rows of the whole, or of the only level.
fn is_of_the_whole(row: &ComparisonRow) -> bool {
    let is_part = row.step.is_some() || row.session.is_some() || row.agent.is_some();
    !is_part && row.unit != "percent"
}

/// What a change means, and why it says nothing of the target.
fn verdict(
    row: &TrendRow,
    [before, after]: &[Vec<NamedReport<'_>>; 2],
    ratio: f64,
    version: &str,
) -> (ComparisonVerdict, String) {
    let compared = compare(before, after, version).ok();
    let same = compared.iter().flat_map(|compared| &compared.rows);
    let mut same = same.filter(|other| (&other.metric, &other.label) == (&row.metric, &row.label));
    // The speed of the host explains it, or the runs do not tell enough.
    if let Some(unknown) = same.find(|other| other.verdict == ComparisonVerdict::Unknown)
        && !unknown.because.is_empty()
        && unknown.ratio.is_some()
    {
        return (ComparisonVerdict::Unknown, unknown.because.clone());
    }
    let is_more = ratio > 1.0;
    let verdict = match row.better() {
        Better::Neither => ComparisonVerdict::Different,
        Better::More if is_more => ComparisonVerdict::Better,
        Better::Less if !is_more => ComparisonVerdict::Better,
        Better::More | Better::Less => ComparisonVerdict::Worse,
    };
    (verdict, String::new())
}

#[cfg(test)]
mod tests;
