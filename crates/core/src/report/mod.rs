//! The one value that a whole experiment ends in. Its JSON is the public interface: keys are
//! stable, more may be added. Times are integers in nanoseconds under keys that end in `_ns`, or
//! inside an object whose key does. Rates are per second and end in `_per_s`.
//!
//! An earlier schema is read as well.

mod advice;
pub mod codes;
pub(crate) mod contradictions;
mod kind;
mod result;
pub mod salvage;

use crate::finding::Finding;
use crate::trial::report::{TrialReport, Verdict};
pub use kind::{Command, Conclusion, Kind, Reported};
pub use knee_load::measure::Host;
use knee_load::secrets::Secrets;
pub use result::{ReportResult, ThresholdReport, judge_thresholds};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
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

/// A report as it lies in a document, before `command` decides of which type its conclusion is.
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
        let conclusion = raw.command.kind.read_conclusion(raw.conclusion);
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

/// The schema that this version writes.
pub const SCHEMA: &str = "knee.report/2";

/// The schema of the first versions. A trial had the keys of all kinds, null or 0 where they did
/// not apply, and no key for its kind.
pub const FIRST_SCHEMA: &str = "knee.report/1";

/// Whether this version reads reports of a schema.
///
/// # Errors
/// It does not: one line that says which it reads.
pub fn check_schema(schema: &str) -> Result<(), String> {
    match schema {
        SCHEMA | FIRST_SCHEMA => Ok(()),
        other => Err(format!(
            "schema {} is not understood; this version of knee reads {SCHEMA} and {FIRST_SCHEMA}",
            other.escape_debug()
        )),
    }
}

/// A document of [`FIRST_SCHEMA`] as one of [`SCHEMA`]. Keys that a trial's kind does not have are
/// left, as readers skip them. What is damaged stays as it is: reading it returns an error.
pub fn from_first_schema(mut document: Value) -> Value {
    let command = document["command"].as_str();
    let command = command.and_then(|name| Some(Command::parse(name).ok()?.kind));
    if let Some(trials) = document.get_mut("trials").and_then(Value::as_array_mut) {
        for trial in trials.iter_mut().filter_map(Value::as_object_mut) {
            convert(trial, command);
        }
    }
    if let Some(schema) = document.get_mut("schema") {
        *schema = SCHEMA.into();
    }
    document
}

fn convert(trial: &mut Map<String, Value>, command: Option<Kind>) {
    let kind = trial_kind(trial, command);
    trial.insert("kind".to_owned(), kind.into());
    let offered = trial.get_mut("offered").and_then(Value::as_object_mut);
    if let Some(offered) = offered.filter(|_| kind != "http") {
        offered.remove("connection_wait_ns");
    }
}

/// The kind by name. Of a trial that did not end it is not known how its operations ended.
fn trial_kind(trial: &Map<String, Value>, command: Option<Kind>) -> &'static str {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let attempted = trial.get("attempted").map_or(0, number);
    let outcomes = trial.get("outcomes").and_then(Value::as_object);
    let ended: u64 = outcomes.map_or(0, |all| all.values().map(number).sum());
    match command {
        _ if trial.contains_key("flows") => "latency",
        _ if trial.contains_key("ledger") => "udp",
        _ if attempted > 0 && ended == 0 => "cut_short",
        Some(Kind::Udp | Kind::Latency | Kind::Throttle) => "cut_short",
        _ => "http",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The kind that a trial of this command and these keys becomes.
    fn kind(command: &str, trial: Value) -> Value {
        let document = json!({"schema": FIRST_SCHEMA, "command": command, "trials": [trial]});
        let converted = from_first_schema(document);
        assert_eq!(converted["schema"], SCHEMA);
        converted["trials"][0]["kind"].clone()
    }

    #[test]
    fn the_kind_follows_from_the_command_and_the_keys() {
        let whole = || json!({"attempted": 5, "outcomes": {"ok": 4, "lost": 1}});
        let rest = || json!({"attempted": 5, "outcomes": {}});
        let with = |key: &str, mut trial: Value| {
            trial[key] = json!({});
            trial
        };
        for command in ["run", "sweep", "overload"] {
            assert_eq!(kind(command, whole()), "http");
            assert_eq!(kind(command, rest()), "cut_short");
            assert_eq!(kind(command, json!({"attempted": 0})), "http");
        }
        assert_eq!(kind("udp", with("ledger", whole())), "udp");
        assert_eq!(kind("udp", rest()), "cut_short");
        assert_eq!(kind("latency", with("flows", whole())), "latency");
        assert_eq!(kind("latency", rest()), "cut_short");
        // Nothing received in any way: the ledger has how each datagram ended.
        assert_eq!(kind("udp", with("ledger", rest())), "udp");
    }

    #[test]
    fn only_http_waits_for_connections() {
        let trial = || {
            json!({"attempted": 1, "outcomes": {"ok": 1}, "ledger": {},
                              "offered": {"connection_wait_ns": {"p50": null}}})
        };
        let document = json!({"command": "udp", "trials": [trial()]});
        assert_eq!(from_first_schema(document)["trials"][0]["offered"], json!({}));
    }

    #[test]
    fn what_is_damaged_is_left_to_the_reader() {
        for damaged in [
            json!(null),
            json!([1]),
            json!({"trials": 7}),
            json!({"command": 1, "trials": [3, null]}),
        ] {
            assert_eq!(from_first_schema(damaged.clone()), damaged);
        }
    }

    #[test]
    fn other_schemas_are_refused() {
        assert_eq!(check_schema(SCHEMA), Ok(()));
        assert_eq!(check_schema(FIRST_SCHEMA), Ok(()));
        for other in ["knee.report/3", "knee.report/", "", "knee.comparison/1"] {
            let refused = check_schema(other).unwrap_err();
            assert!(refused.starts_with(&format!("schema {other} is not understood")));
        }
    }
}
