//! Result of a comparison.

use crate::trial::report::Verdict;
use crate::trial::statistics::Better;
use crate::trial::timing::AnatomyGroup;
use knee_load::measure::{Stage, known_keys};
use knee_load::spec::Level;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema of a [`Comparison`] as JSON.
pub const COMPARISON_SCHEMA: &str = "knee.comparison/1";

/// B against A, each of them one report or several of the same experiment.
///
/// Its JSON is public as that of a report: keys are stable, more may be added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Always [`COMPARISON_SCHEMA`].
    pub schema: String,
    /// The version of knee that compared.
    pub knee_version: String,
    /// The conclusion in one or two sentences for a person.
    pub answer: String,
    /// Verdict of the rows that matter.
    pub verdict: ComparisonVerdict,
    /// Whether any of the reports, or a trial of theirs that was left out, is INVALID.
    pub has_invalid: bool,
    /// The reference.
    pub a: ComparedSide,
    /// The compared side.
    pub b: ComparedSide,
    /// Reasons why a difference may not be the target's; empty without any.
    pub warnings: Vec<String>,
    /// One row per metric and level.
    pub rows: Vec<ComparisonRow>,
    /// Stages of the differences in response time; empty if none differs, or if a side has no
    /// stages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stage_changes: Vec<StageChanges>,
    /// Share of comparisons of equal systems, in percent, in which at least one row is called
    /// different: Benjamini and Hochberg's correction over all tested rows.
    pub false_alarms_percent: f64,
}

/// Stages of a difference in response time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageChanges {
    /// The percentile that differs: `p50_ns` or `p99_ns`.
    pub metric: String,
    /// The level, as in [`ComparisonRow::label`].
    pub label: String,
    /// The operations about or beyond that percentile.
    pub of: AnatomyGroup,
    /// Their mean response time of A.
    pub a_ns: u64,
    /// Their mean response time of B.
    pub b_ns: u64,
    /// Increase of the mean of each stage in B; negative for a decrease.
    #[serde(deserialize_with = "known_keys")]
    pub change_ns: BTreeMap<Stage, i64>,
    /// The same in words.
    pub text: String,
}

/// The reports of one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparedSide {
    /// In the order given; at least one.
    pub runs: Vec<ComparedRun>,
}

/// One report of a side, in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparedRun {
    /// Name given by the user: a file, an id or name of the history.
    pub name: String,
    /// `run`, `sweep`, ….
    pub command: String,
    /// Its target; empty without one.
    pub target: String,
    /// Start, RFC 3339.
    pub started_at: String,
    /// Whether its numbers are the target's.
    pub verdict: Verdict,
}

/// Verdict on B in one metric, or in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// B is better, beyond chance.
    Better,
    /// B is worse, beyond chance.
    Worse,
    /// Better in some and worse in others, or of a metric where neither more nor less is better.
    Different,
    /// No difference beyond chance. The interval of the ratio bounds the size of a difference.
    Same,
    /// Unknown, for the reason given. Of a whole comparison also where only large changes would
    /// have shown.
    #[default]
    Unknown,
}

impl ComparisonVerdict {
    /// The verdict of a change beyond chance; `grew`: the value became larger.
    pub(super) fn of_change(better: Better, grew: bool) -> ComparisonVerdict {
        match (better, grew) {
            (Better::Neither, _) => ComparisonVerdict::Different,
            (Better::More, true) | (Better::Less, false) => ComparisonVerdict::Better,
            (Better::More, false) | (Better::Less, true) => ComparisonVerdict::Worse,
        }
    }
}

/// One metric at one level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRow {
    /// `throughput_per_s`, `p50_ns`, `p90_ns`, `p99_ns`, `error_percent`, ….
    pub metric: String,
    /// `per_s`, `ns`, `percent`, `kib_per_s`, `hz`, `users`.
    pub unit: String,
    /// Level, law or method, where several are compared; or the step, kind of session or agent.
    /// Empty for the whole.
    pub label: String,
    /// That level, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// The step of sessions that it is of; absent where it is of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The kind of session that it is of; absent where it is of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The agent that it is of; absent where it is of all of them together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The value of A, the geometric mean over its runs (of shares: all operations together).
    pub a: Option<f64>,
    /// The value of B.
    pub b: Option<f64>,
    /// B / A; `None` where A is 0 or either is unknown.
    pub ratio: Option<f64>,
    /// 95 % confidence interval of it, what differs between runs of the same included; for this row
    /// alone, not corrected for the number of rows.
    pub ratio_ci95: Option<[f64; 2]>,
    /// The smallest change, in percent, that would have counted as a difference, were it the only
    /// one among all rows. `None` where nothing was tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_seen_percent: Option<f64>,
    /// A change for the worse by more than this, in percent, is excluded with 95 % confidence.
    /// `None` where no direction is worse, or nothing was tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regression_excluded_percent: Option<f64>,
    /// The probability of a difference as large between two equal sides.
    pub p_value: Option<f64>,
    /// Whether it counts as a difference, after correction for the number of rows.
    pub significant: bool,
    /// Whether it decides on the whole: throughput, response times, shares of errors do.
    pub matters: bool,
    /// What became of B here.
    pub verdict: ComparisonVerdict,
    /// Why, in words.
    pub because: String,
}

/// Figures of many runs of the same, and where they changed.
///
/// Its JSON is public as that of a report: keys are stable, more may be added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrendReport {
    /// Always `knee.trend/1`.
    pub schema: String,
    /// The version of knee that looked for changes.
    pub knee_version: String,
    /// `run`, `sweep`, ….
    pub command: String,
    /// The runs, in their order in time.
    pub runs: Vec<TrendRun>,
    /// Runs left out as they are INVALID.
    pub invalid_left_out: u64,
    /// Runs left out that were made with other options, on another machine or by another version.
    pub unlike_left_out: u64,
    /// One row per figure.
    pub rows: Vec<TrendRow>,
}

/// A run of a trend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrendRun {
    /// Its id in the history.
    pub name: String,
    /// Start, RFC 3339.
    pub started_at: String,
}

/// A figure over the runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrendRow {
    /// As in [`ComparisonRow::metric`].
    pub metric: String,
    /// As in [`ComparisonRow::unit`].
    pub unit: String,
    /// As in [`ComparisonRow::label`].
    pub label: String,
    /// Its value in each run; `None` where a run has none.
    pub values: Vec<Option<f64>>,
    /// The geometric mean of all runs; `None` where none has it.
    pub mean: Option<f64>,
    /// Where it changed, in their order in time.
    pub changes: Vec<TrendChange>,
}

impl TrendRow {
    /// The figure of this row of a comparison, still without values.
    pub(super) fn of(row: &ComparisonRow) -> TrendRow {
        let ComparisonRow { metric, unit, label, .. } = row.clone();
        TrendRow { metric, unit, label, ..TrendRow::default() }
    }

    /// Whether that row is of this figure.
    pub(super) fn is_of(&self, row: &ComparisonRow) -> bool {
        (&self.metric, &self.label) == (&row.metric, &row.label)
    }
}

/// A change of a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrendChange {
    /// The first run after it.
    pub first_run: String,
    /// The number of that run among those of the trend, from 0.
    pub at: u64,
    /// The geometric mean between the change before and this one.
    pub before: f64,
    /// The same between this change and the next.
    pub after: f64,
    /// From the one to the other, in percent.
    pub change_percent: f64,
    /// What it means; unknown where the host explains it.
    pub verdict: ComparisonVerdict,
    /// Why it is unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
}
