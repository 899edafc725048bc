//! A figure over many runs of the same: where it changed, and whether the host did.

use super::report::{ComparisonVerdict, TrendChange, TrendReport, TrendRow, TrendRun};
use super::warnings::{differences, unlike_generators};
use super::{NamedReport, compare, drafts, levels, nothing_in_common};
use crate::report::Report;
use crate::trial::report::Verdict;
use crate::trial::statistics::Better;
use knee_load::stats::change_points::{ALPHA, SEGMENT_MIN, VALUES_MAX, change_points};

/// The schema of a [`TrendReport`] as JSON.
const TREND_SCHEMA: &str = "knee.trend/1";

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
    pub fn of(reports: &[NamedReport<'a>]) -> History<'a> {
        let mut history = History { runs: Vec::new(), invalid: 0, unlike: 0 };
        let Some(last) = reports.last() else {
            return history;
        };
        for named in reports {
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
        let series = self.series(metrics)?;
        let rows = series.into_iter().map(|(better, row)| self.row(better, row, knee_version));
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

    /// The figures of all runs, metric by metric, and which way is better.
    fn series(&self, metrics: &[String]) -> Result<Vec<(Better, TrendRow)>, String> {
        let mut series: Vec<(Better, TrendRow)> = Vec::new();
        for (number, run) in self.runs.iter().enumerate() {
            // A run against the first has the figures of both.
            let (first, own) = ([self.first()], [run.report]);
            let (matched, only) = levels::matched(&first, &own);
            let mut drafts = drafts(&first, &own, &matched);
            if drafts.is_empty() {
                return Err(nothing_in_common(&self.runs[..1], &[*run], &only));
            }
            // Rows of the whole, or of the only level.
            drafts.retain(|draft| {
                let row = &draft.subject.row;
                let is_part = row.step.is_some() || row.session.is_some() || row.agent.is_some();
                !is_part && row.unit != "percent"
            });
            if number == 0 {
                let rows = drafts.iter().map(|d| (d.subject.better, TrendRow::of(&d.subject.row)));
                series = rows.collect();
            }
            for (_, row) in &mut series {
                let own = drafts.iter().find(|d| row.is_of(&d.subject.row));
                row.values.push(own.and_then(|draft| draft.values[1]));
            }
        }
        let known: Vec<String> = series.iter().map(|(_, row)| row.metric.clone()).collect();
        if let Some(unknown) = metrics.iter().find(|metric| !known.contains(metric)) {
            return Err(format!("--metric: no figure '{unknown}': expected {}", known.join(", ")));
        }
        series.retain(|(_, row)| match metrics {
            [] => FOLLOWED.contains(&row.metric.as_str()),
            metrics => metrics.contains(&row.metric),
        });
        Ok(series)
    }

    fn row(&self, better: Better, row: TrendRow, version: &str) -> TrendRow {
        // A run without the figure says nothing.
        let known: Vec<(usize, f64)> = row
            .values
            .iter()
            .enumerate()
            .filter_map(|(at, value)| Some((at, value.filter(|v| *v > 0.0)?)))
            .collect();
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
            let (verdict, because) = match explained(&row, &sides, version) {
                Some(because) => (ComparisonVerdict::Unknown, because),
                None => (ComparisonVerdict::of_change(better, after > before), String::new()),
            };
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

/// Why a change says nothing of the target: the speed of the host explains it, or the runs are too
/// few or vary too much.
fn explained(
    row: &TrendRow,
    [before, after]: &[Vec<NamedReport<'_>>; 2],
    version: &str,
) -> Option<String> {
    let compared = compare(before, after, version).ok()?;
    let unknown = compared.rows.into_iter().find(|other| {
        row.is_of(other) && other.verdict == ComparisonVerdict::Unknown && other.ratio.is_some()
    })?;
    Some(unknown.because).filter(|because| !because.is_empty())
}

#[cfg(test)]
mod tests;
