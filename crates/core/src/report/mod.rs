//! The one value that a whole experiment ends in. Its JSON is the public interface: keys are
//! stable, more may be added. Times are integers in nanoseconds under keys that end in `_ns`, or
//! inside an object whose key does. Rates are per second and end in `_per_s`.

mod advice;
pub mod codes;
pub(crate) mod contradictions;
mod kind;
mod result;
pub mod salvage;
mod schema;
pub mod thresholds;

pub use kind::{Command, Conclusion, Kind, Reported};
pub use knee_load::measure::Host;
pub use result::ReportResult;
pub use schema::{FIRST_SCHEMA, SCHEMA, check_schema, from_first_schema};
pub use thresholds::ThresholdReport;

use crate::finding::Finding;
use crate::trial::report::{TrialReport, Verdict};
use knee_load::secrets::Secrets;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A whole experiment: what was asked, what was measured, what it means.
///
/// Read as a whole: `conclusion` is of the kind that `command` says. Unknown keys are skipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawReport")]
pub struct Report {
    /// Always [`SCHEMA`]: a document of an earlier one is converted before it is read.
    pub schema: String,
    /// The command that made it.
    pub command: Command,
    /// The version of knee that wrote it.
    pub knee_version: String,
    /// When the experiment began, RFC 3339 in UTC.
    pub started_at: String,
    /// Seeds every random choice.
    pub seed: u64,
    /// Whether the numbers can be trusted.
    pub verdict: Verdict,
    /// Whether the target passed. This does not depend on the verdict.
    pub result: ReportResult,
    /// Why it failed, in words, one line for each reason; empty where it passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_because: Vec<String>,
    /// The user ended it early.
    pub interrupted: bool,
    /// The machine it ran on.
    pub host: Host,
    /// Everything needed to repeat it: the resolved options by name, in the words of the command
    /// line.
    pub spec: BTreeMap<String, serde_json::Value>,
    /// The trials in the order they were run.
    pub trials: Vec<TrialReport>,
    /// The findings, the gravest first.
    pub findings: Vec<Finding>,
    /// The thresholds asked for, and whether they were kept; absent where none was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<ThresholdReport>,
    /// The experiment's own answer.
    pub conclusion: Conclusion,
}

impl Report {
    /// The same report without secrets. What its options give is known wherever it is repeated.
    pub fn without_secrets(mut self, secrets: &Secrets) -> Report {
        if !secrets.hides() {
            return self;
        }
        let mut secrets = secrets.clone();
        secrets.hide_options(&mut self.spec);
        let hidden = secrets.hide_all(&self);
        hidden.unwrap_or_else(|| self.without_results())
    }

    /// The report without results, where these cannot be distinguished from secrets.
    fn without_results(self) -> Report {
        Report {
            trials: Vec::new(),
            findings: Vec::new(),
            failed_because: Vec::new(),
            thresholds: Vec::new(),
            conclusion: self.command.kind.without_conclusion(),
            ..self
        }
    }
}

/// A report as it lies in a document, before `command` has told what its conclusion is.
#[derive(Deserialize)]
struct RawReport {
    schema: String,
    command: Command,
    knee_version: String,
    started_at: String,
    seed: u64,
    verdict: Verdict,
    /// `None` in reports of before there was one.
    result: Option<ReportResult>,
    #[serde(default)]
    failed_because: Vec<String>,
    interrupted: bool,
    host: Host,
    spec: BTreeMap<String, serde_json::Value>,
    trials: Vec<TrialReport>,
    findings: Vec<Finding>,
    #[serde(default)]
    thresholds: Vec<ThresholdReport>,
    conclusion: serde_json::Value,
}

impl TryFrom<RawReport> for Report {
    type Error = String;

    fn try_from(raw: RawReport) -> Result<Report, String> {
        let conclusion = raw.command.kind.conclusion_of(raw.conclusion);
        let mut report = Report {
            conclusion: conclusion.map_err(|e| format!("conclusion: {e}"))?,
            schema: raw.schema,
            command: raw.command,
            knee_version: raw.knee_version,
            started_at: raw.started_at,
            seed: raw.seed,
            verdict: raw.verdict,
            result: raw.result.unwrap_or_default(),
            failed_because: raw.failed_because,
            interrupted: raw.interrupted,
            host: raw.host,
            spec: raw.spec,
            trials: raw.trials,
            findings: raw.findings,
            thresholds: raw.thresholds,
        };
        if raw.result.is_none() {
            report.judge();
        }
        Ok(report)
    }
}
