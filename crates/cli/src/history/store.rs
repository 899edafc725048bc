//! What is kept: reads it, removes runs, names baselines.

use super::schema::{change, has_result, in_words, open_to_read};
use super::write::{ProcessIdentity, TrialStart, set_baseline};
use super::{NOTHING_KEPT, RunReference};
use flate2::read::ZlibDecoder;
use knee_core::report::salvage::{PartialExperiment, RunningTrial, salvage};
use knee_core::report::{Command, Report, ReportResult, SCHEMA, check_schema};
use knee_core::trial::report::Verdict;
use knee_load::measure::Histogram;
use knee_load::secrets::Secrets;
use rusqlite::{Connection, Error, OptionalExtension, Params, Row, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Read;
use std::path::Path;

/// No report is larger, in bytes.
const REPORT_MAX: u64 = 1 << 30;

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It has ended with a report.
    Complete,
    /// It has ended with nothing measured.
    Failed,
    /// It goes on.
    Running,
    /// Its process has gone without a report.
    CutShort,
    /// It has no report; whether its process still works cannot be seen from here.
    Unfinished,
}

/// One run, as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryEntry {
    /// Its id.
    pub id: i64,
    /// `run`, `sweep`, ….
    pub command: String,
    /// RFC 3339, in UTC.
    pub started_at: String,
    /// What it was pointed at; empty where it was not.
    pub target: String,
    /// How many agents made it; `None`: one process did.
    pub agents: Option<usize>,
    /// How it stands.
    pub state: RunState,
    /// `valid` or `invalid`, once it has ended with a report.
    pub verdict: Option<String>,
    /// `passed` or `failed`, once it has ended with a report; unknown in files of first versions.
    pub result: Option<String>,
    /// Whether it has thresholds.
    #[serde(skip)]
    pub has_thresholds: bool,
    /// The user ended it early.
    pub interrupted: bool,
    /// Seeded every random choice.
    pub seed: u64,
    /// The version of knee that ran it.
    pub knee_version: String,
    /// How long it took, or how long after its beginning it was last heard of.
    pub duration_ns: u64,
    /// Its answer, what it is so far where it has not ended, or why it failed.
    pub answer: Option<String>,
    /// The baselines that it is.
    pub baselines: Vec<String>,
}

impl HistoryEntry {
    /// The same without secrets in what it was pointed at and in its answer.
    pub fn without_secrets(self, secrets: &Secrets) -> HistoryEntry {
        let hide = |text: String| secrets.hide(&text).into_owned();
        HistoryEntry { target: hide(self.target), answer: self.answer.map(hide), ..self }
    }
}

/// Which runs are listed.
#[derive(Clone, Debug, Default)]
pub struct HistoryFilter {
    /// Only runs of this command.
    pub command: Option<String>,
    /// Only runs whose target contains this text.
    pub target: Option<String>,
}

/// The history, to be read.
#[derive(Debug)]
pub struct HistoryStore {
    connection: Connection,
}

impl HistoryStore {
    /// Opens this file; `None` where there is none.
    pub fn open(path: &Path) -> Result<Option<HistoryStore>, String> {
        Ok(open_to_read(path)?.map(|connection| HistoryStore { connection }))
    }

    /// What is read of a run for the list.
    fn entry_sql(&self) -> Result<String, String> {
        let has_result = has_result(&self.connection).map_err(in_words)?;
        let result = if has_result { "result" } else { "NULL" };
        Ok(ENTRY.replace("RESULT", result))
    }

    /// The runs, the latest first.
    pub fn entries(&self, filter: &HistoryFilter) -> Result<Vec<HistoryEntry>, String> {
        let entry_of = self.entry_sql()?;
        let sql = format!(
            "{entry_of} WHERE (?1 IS NULL OR command = ?1) \
             AND (?2 IS NULL OR instr(target, ?2) > 0) ORDER BY id DESC"
        );
        self.all(&sql, params![filter.command, filter.target], entry)
    }

    /// All rows that this asks for.
    fn all<T>(
        &self,
        sql: &str,
        of: impl Params,
        read: impl FnMut(&Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, String> {
        let mut statement = self.connection.prepare(sql).map_err(in_words)?;
        let rows = statement.query_map(of, read);
        rows.and_then(Iterator::collect).map_err(in_words)
    }

    /// The first row that this asks for, if there is one.
    fn first<T>(
        &self,
        sql: &str,
        of: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, String> {
        self.connection.query_row(sql, of, read).optional().map_err(in_words)
    }

    /// The latest whole reports of this command and target with their ids, of ids up to `last`, at
    /// most `most` of them. Those that cannot be read are left out.
    pub fn latest(
        &self,
        command: &str,
        target: &str,
        last: i64,
        most: usize,
    ) -> Result<Vec<(i64, Report)>, String> {
        let sql = "SELECT id FROM runs WHERE command = ? AND target = ? AND state = 'closed' \
                   AND id <= ? ORDER BY id DESC LIMIT ?";
        let of = params![command, target, last, most as i64];
        let ids: Vec<i64> = self.all(sql, of, |row| row.get(0))?;
        Ok(ids.into_iter().filter_map(|id| Some((id, self.document(id).ok()?))).collect())
    }

    /// One run.
    pub fn entry(&self, id: i64) -> Result<HistoryEntry, String> {
        let sql = format!("{} WHERE id = ?", self.entry_sql()?);
        self.first(&sql, [id], entry)?.ok_or_else(|| no_run(id))
    }

    /// The id of the run that is meant.
    pub fn id(&self, reference: &RunReference) -> Result<i64, String> {
        let (found, missing) = match reference {
            RunReference::Id(id) => return self.entry(*id).map(|entry| entry.id),
            RunReference::Last => {
                let latest = "SELECT id FROM runs ORDER BY id DESC LIMIT 1";
                (self.first(latest, [], |row| row.get(0))?, NOTHING_KEPT)
            }
            RunReference::Baseline(name) => (
                self.first("SELECT run FROM baselines WHERE name = ?", [name], |row| row.get(0))?,
                "no baseline has this name; 'knee history baseline' lists them",
            ),
        };
        found.ok_or_else(|| missing.to_string())
    }

    /// The baselines by name, each with its run.
    pub fn baselines(&self) -> Result<Vec<(String, i64)>, String> {
        let sql = "SELECT name, run FROM baselines ORDER BY name";
        self.all(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// A run's report; where it has none yet or never will, what can be told from what was written
    /// as it went.
    pub fn report(&self, id: i64) -> Result<Report, String> {
        let entry = self.entry(id)?;
        match entry.state {
            RunState::Complete => self.document(id),
            RunState::Failed => {
                let why = entry.answer.unwrap_or_default();
                Err(format!("it has no report, as nothing was measured: {why}"))
            }
            RunState::Running | RunState::CutShort | RunState::Unfinished => {
                salvage(self.remains(&entry)?)
            }
        }
    }

    fn document(&self, id: i64) -> Result<Report, String> {
        self.kept_document(id)?.ok_or_else(|| "its report is missing".to_string())
    }

    fn kept_document(&self, id: i64) -> Result<Option<Report>, String> {
        let sql = "SELECT document FROM reports WHERE run = ?";
        let Some(packed): Option<Vec<u8>> = self.first(sql, [id], |row| row.get(0))? else {
            return Ok(None);
        };
        let mut text = String::new();
        ZlibDecoder::new(packed.as_slice())
            .take(REPORT_MAX)
            .read_to_string(&mut text)
            .map_err(|e| format!("its report is damaged: {e}"))?;
        knee_render::parse_report(&text).map(Some)
    }

    fn remains(&self, entry: &HistoryEntry) -> Result<PartialExperiment, String> {
        let sql = "SELECT report_schema, ended, running, running_trial FROM runs WHERE id = ?";
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        let found = self.first(sql, [entry.id], read)?.ok_or_else(|| no_run(entry.id))?;
        let (schema, ended, running, begun): (String, i64, Option<i64>, Option<String>) = found;
        check_schema(&schema)?;
        let running = match (running, begun) {
            (Some(number), Some(begun)) if number >= ended => {
                self.running(entry.id, number, parsed(&begun)?)?
            }
            _ => None,
        };
        let so_far = match self.kept_document(entry.id)? {
            Some(report) => report,
            None => self.opening(entry)?,
        };
        Ok(PartialExperiment {
            so_far,
            ended: usize::try_from(ended).unwrap_or(0),
            running,
            goes_on: entry.state == RunState::Running,
        })
    }

    /// A report of a run before anything was measured.
    fn opening(&self, entry: &HistoryEntry) -> Result<Report, String> {
        let sql = "SELECT spec, host FROM runs WHERE id = ?";
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let found = self.first(sql, [entry.id], read)?.ok_or_else(|| no_run(entry.id))?;
        let (spec, host): (String, String) = found;
        let command = Command::parse(&entry.command)?;
        Ok(Report {
            schema: SCHEMA.to_string(),
            conclusion: command.kind.without_conclusion(),
            command,
            knee_version: entry.knee_version.clone(),
            started_at: entry.started_at.clone(),
            seed: entry.seed,
            verdict: Verdict::Valid,
            result: ReportResult::default(),
            failed_because: Vec::new(),
            interrupted: true,
            host: parsed(&host)?,
            spec: parsed(&spec)?,
            trials: Vec::new(),
            findings: Vec::new(),
            thresholds: Vec::new(),
        })
    }

    fn running(
        &self,
        id: i64,
        number: i64,
        begun: TrialStart,
    ) -> Result<Option<RunningTrial>, String> {
        let Some(level) = begun.level else {
            return Ok(None);
        };
        let mut trial = RunningTrial {
            label: begun.label,
            level,
            planned_ns: begun.planned_ns,
            asked_per_s: begun.asked_per_s,
            intervals: Vec::new(),
            response: Histogram::default(),
        };
        let sql = "SELECT interval, response FROM intervals WHERE run = ? AND trial = ? \
                   ORDER BY number";
        let mut statement = self.connection.prepare(sql).map_err(in_words)?;
        let rows = statement.query_map([id, number], |row| Ok((row.get(0)?, row.get(1)?)));
        for row in rows.map_err(in_words)? {
            let (interval, response): (String, Option<String>) = row.map_err(in_words)?;
            trial.intervals.push(parsed(&interval)?);
            if let Some(response) = response {
                trial.response.merge(&parsed(&response)?);
            }
        }
        Ok(Some(trial))
    }

    /// Removes these runs, all or none.
    pub fn remove(&mut self, ids: &[i64]) -> Result<(), String> {
        for id in ids {
            if self.entry(*id)?.state == RunState::Running {
                return Err(format!("run {id} still goes on"));
            }
        }
        change(&mut self.connection, |transaction| delete(transaction, ids))?;
        self.shrink();
        Ok(())
    }

    /// Removes all runs but the latest `keep`, baselines, and those that still go on; the number of
    /// removed runs.
    pub fn prune(&mut self, keep: usize) -> Result<usize, String> {
        let entries = self.entries(&HistoryFilter::default())?;
        let goes =
            |entry: &&HistoryEntry| entry.baselines.is_empty() && entry.state != RunState::Running;
        let ids: Vec<i64> = entries.iter().skip(keep).filter(goes).map(|entry| entry.id).collect();
        change(&mut self.connection, |transaction| delete(transaction, &ids))?;
        self.shrink();
        Ok(ids.len())
    }

    /// A run that has ended with a report becomes the baseline of this name.
    pub fn set_baseline(&mut self, name: &str, id: i64) -> Result<(), String> {
        if self.entry(id)?.state != RunState::Complete {
            return Err(format!("run {id} has no whole report, so it can be no baseline"));
        }
        change(&mut self.connection, |transaction| set_baseline(transaction, name, id).map(drop))
    }

    /// A baseline is none any longer; its run stays.
    pub fn forget_baseline(&mut self, name: &str) -> Result<(), String> {
        let sql = "DELETE FROM baselines WHERE name = ?";
        match change(&mut self.connection, |transaction| transaction.execute(sql, [name]))? {
            0 => Err(format!("no baseline is named '{name}'")),
            _ => Ok(()),
        }
    }

    /// Gives the room of what was removed back to the disk. Where that cannot be done now, the next
    /// runs use it.
    fn shrink(&mut self) {
        let _ = self.connection.execute_batch("PRAGMA incremental_vacuum");
    }
}

/// No run has this id.
fn no_run(id: i64) -> String {
    format!("no run {id} is kept; 'knee history' lists them")
}

const ENTRY: &str = "SELECT id, command, started_at, target, state, verdict, interrupted, seed, \
    knee_version, elapsed_ns, answer, pid, pid_began, pid_within, \
    (SELECT group_concat(name, char(10)) FROM baselines WHERE run = id), RESULT, \
    json_extract(spec, '$.agents'), \
    coalesce(json_array_length(spec, '$.\"fail-if\"'), 0) FROM runs";

fn entry(row: &Row<'_>) -> Result<HistoryEntry, Error> {
    let state: String = row.get(4)?;
    let process = ProcessIdentity {
        pid: row.get(11)?,
        began: row.get::<_, i64>(12)?.max(0) as u64,
        within: row.get(13)?,
    };
    let state = match state.as_str() {
        "closed" => RunState::Complete,
        "failed" => RunState::Failed,
        _ => match process.is_there() {
            Some(true) => RunState::Running,
            Some(false) => RunState::CutShort,
            None => RunState::Unfinished,
        },
    };
    let baselines: Option<String> = row.get(14)?;
    let mut baselines: Vec<String> =
        baselines.map_or_else(Vec::new, |b| b.lines().map(str::to_string).collect());
    baselines.sort();
    let agents: Option<String> = row.get(16)?;
    Ok(HistoryEntry {
        id: row.get(0)?,
        command: row.get(1)?,
        started_at: row.get(2)?,
        target: row.get(3)?,
        agents: agents.map(|names| names.split(',').count()),
        state,
        verdict: row.get(5)?,
        result: row.get(15)?,
        has_thresholds: row.get::<_, i64>(17)? > 0,
        interrupted: row.get(6)?,
        seed: row.get::<_, String>(7)?.parse().unwrap_or(0),
        knee_version: row.get(8)?,
        duration_ns: row.get::<_, i64>(9)?.max(0) as u64,
        answer: row.get(10)?,
        baselines,
    })
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|e| format!("what was kept of it is damaged: {e}"))
}

fn delete(transaction: &Transaction<'_>, ids: &[i64]) -> Result<(), Error> {
    let mut statement = transaction.prepare("DELETE FROM runs WHERE id = ?")?;
    ids.iter().try_for_each(|id| statement.execute([id]).map(drop))
}
