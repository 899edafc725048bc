//! Writes a run as it happens, with the process that does it.

use super::schema::{change, in_words, open_to_write};
use crate::watch::{ExperimentStart, UpcomingTrial};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use knee_core::report::{Host, Report, SCHEMA};
use knee_load::measure::Interval;
use knee_load::spec::Level;
use rusqlite::{Connection, Error, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

/// A run that is being written.
#[derive(Debug)]
pub struct RunWriter {
    connection: Connection,
    id: i64,
}

/// What is kept of a trial before it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialStart {
    /// Its name for people.
    pub label: String,
    /// What it varies; `None` of a row of a table.
    pub level: Option<Level>,
    /// How long it was to be measured, where that was known.
    pub planned_ns: Option<u64>,
    /// Operations asked for per second.
    pub asked_per_s: Option<f64>,
}

impl From<&UpcomingTrial> for TrialStart {
    fn from(upcoming: &UpcomingTrial) -> TrialStart {
        let live = &upcoming.live;
        TrialStart {
            label: live.label.clone(),
            level: upcoming.level,
            planned_ns: live.total.map(|total| (total - live.warmup).0),
            asked_per_s: live.asked_per_s,
        }
    }
}

impl RunWriter {
    /// Begins one in this file, which is made where there is none; else what is wrong with it, in a
    /// few words.
    pub fn begin(path: &Path, opening: &ExperimentStart, host: &Host) -> Result<RunWriter, String> {
        let connection = open_to_write(path)?;
        let process = ProcessIdentity::this();
        let began = i64::try_from(process.began).unwrap_or(0);
        connection
            .execute(
                "INSERT INTO runs (command, started_at, target, seed, spec, host, knee_version, \
                 report_schema, pid, pid_began, pid_within, state, elapsed_ns) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', 0)",
                params![
                    opening.command.to_string(),
                    opening.started_at,
                    target(&opening.spec),
                    opening.seed.to_string(),
                    json(&opening.spec)?,
                    json(host)?,
                    env!("CARGO_PKG_VERSION"),
                    SCHEMA,
                    process.pid,
                    began,
                    process.within,
                ],
            )
            .map_err(in_words)?;
        Ok(RunWriter { id: connection.last_insert_rowid(), connection })
    }

    /// Its id.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// Keeps a trial that begins `at_ns` after the run.
    pub fn trial_begins(
        &mut self,
        trial: usize,
        begun: &TrialStart,
        at_ns: u64,
    ) -> Result<(), String> {
        let begun = json(begun)?;
        self.together(at_ns, |connection, id| {
            let sql = "UPDATE runs SET running = ?, running_trial = ? WHERE id = ?";
            connection.execute(sql, params![trial as i64, begun, id])
        })
    }

    /// An interval of a trial has ended; `response` is a histogram as JSON.
    pub fn interval(
        &mut self,
        [trial, number]: [usize; 2],
        interval: &Interval,
        response: Option<&str>,
        at_ns: u64,
    ) -> Result<(), String> {
        let interval = json(interval)?;
        self.together(at_ns, |connection, id| {
            let row = params![id, trial as i64, number as i64, interval, response];
            connection.execute("INSERT INTO intervals VALUES (?, ?, ?, ?, ?)", row)
        })
    }

    /// Keeps the report after `ended` trials, in place of their intervals.
    pub fn so_far(&mut self, report: &Report, ended: usize, at_ns: u64) -> Result<(), String> {
        let document = packed(report)?;
        let answer = knee_render::answer(report);
        self.together(at_ns, |connection, id| {
            keep(connection, id, &document)?;
            let ended = ended as i64;
            let sql = "DELETE FROM intervals WHERE run = ? AND trial < ?";
            connection.execute(sql, params![id, ended])?;
            let sql = "UPDATE runs SET ended = ?, answer = ? WHERE id = ?";
            connection.execute(sql, params![ended, answer, id])
        })
    }

    /// Keeps the final report in place of all that was written before. With `baseline` the run
    /// becomes the baseline of that name.
    pub fn closes(
        &mut self,
        report: &Report,
        baseline: Option<&str>,
        at_ns: u64,
    ) -> Result<(), String> {
        let document = packed(report)?;
        let answer = knee_render::answer(report);
        let (verdict, result) = (name(&report.verdict)?, name(&report.result)?);
        self.together(at_ns, |connection, id| {
            connection.execute(
                "UPDATE runs SET state = 'closed', verdict = ?, result = ?, interrupted = ?, \
                 answer = ? WHERE id = ?",
                params![verdict, result, report.interrupted, answer, id],
            )?;
            keep(connection, id, &document)?;
            connection.execute("DELETE FROM intervals WHERE run = ?", [id])?;
            if let Some(name) = baseline {
                set_baseline(connection, name, id)?;
            }
            Ok(1)
        })
    }

    /// The run has ended without a report.
    pub fn fails(&mut self, reason: &str, at_ns: u64) -> Result<(), String> {
        self.together(at_ns, |connection, id| {
            let sql = "UPDATE runs SET state = 'failed', answer = ? WHERE id = ?";
            connection.execute(sql, params![reason, id])
        })
    }

    /// All of it or nothing, and when it was heard of.
    fn together(
        &mut self,
        at_ns: u64,
        write: impl FnOnce(&Connection, i64) -> Result<usize, Error>,
    ) -> Result<(), String> {
        let id = self.id;
        change(&mut self.connection, |transaction| {
            write(transaction, id)?;
            let at_ns = i64::try_from(at_ns).unwrap_or(i64::MAX);
            let sql = "UPDATE runs SET elapsed_ns = ? WHERE id = ?";
            transaction.execute(sql, params![at_ns, id]).map(drop)
        })
    }
}

fn keep(connection: &Connection, id: i64, document: &[u8]) -> Result<usize, Error> {
    let sql = "INSERT INTO reports (run, document) VALUES (?, ?) \
               ON CONFLICT (run) DO UPDATE SET document = excluded.document";
    connection.execute(sql, params![id, document])
}

/// A run becomes the baseline of this name.
pub fn set_baseline(connection: &Connection, name: &str, id: i64) -> Result<usize, Error> {
    let sql = "INSERT INTO baselines (name, run) VALUES (?, ?) \
               ON CONFLICT (name) DO UPDATE SET run = excluded.run";
    connection.execute(sql, params![name, id])
}

/// What the command was pointed at; empty where it was not.
pub(super) fn target(spec: &BTreeMap<String, Value>) -> &str {
    let of = |key| spec.get(key).and_then(Value::as_str);
    of("target").or_else(|| of("url")).unwrap_or_default()
}

/// The name of a verdict or a result in the file, which is that in JSON.
fn name(value: &impl Serialize) -> Result<String, String> {
    Ok(json(value)?.trim_matches('"').to_owned())
}

fn json(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(value).map_err(|e| e.to_string())
}

fn packed(report: &Report) -> Result<Vec<u8>, String> {
    let mut out = ZlibEncoder::new(Vec::new(), Compression::default());
    // At once: of a write of each word, the encoder's own work takes most of the time.
    let text = json(report)?;
    out.write_all(text.as_bytes()).and_then(|()| out.finish()).map_err(|e| e.to_string())
}

/// A process, by what no other one of any host shares with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// Its number, which others may get later.
    pub pid: u32,
    /// When it began, in the kernel's clock ticks; 0 where that is not known.
    pub began: u64,
    /// The boot and the namespace that both are of; empty where that is not known.
    pub within: String,
}

impl ProcessIdentity {
    /// This process.
    pub fn this() -> ProcessIdentity {
        let pid = std::process::id();
        ProcessIdentity {
            pid,
            began: began(pid).unwrap_or(0),
            within: within().unwrap_or_default(),
        }
    }

    /// Whether it is still there; `None` where it was seen from another host or container, or in
    /// another boot that may still go on there.
    pub fn is_there(&self) -> Option<bool> {
        if self.within.is_empty() || Some(&self.within) != within().as_ref() {
            return None;
        }
        Some(began(self.pid) == Some(self.began))
    }
}

/// Boot and process namespace.
fn within() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

/// When a process began, unless it has ended: the 22nd field of proc_pid_stat(5). A zombie has
/// ended.
fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, the 2nd field, may hold anything; it ends with the last parenthesis.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields.next()?;
    let began = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(began)
}

#[cfg(test)]
mod tests {
    use super::ProcessIdentity;

    #[test]
    fn this_process_is_there_and_another_of_its_number_is_not() {
        let this = ProcessIdentity::this();
        let known = (!this.within.is_empty()).then_some(true);
        assert_eq!(this.is_there(), known);
        let earlier = ProcessIdentity { began: this.began.wrapping_sub(1), ..this.clone() };
        assert_eq!(earlier.is_there(), known.map(|_| false));
        let elsewhere = ProcessIdentity { within: "another boot".to_string(), ..this };
        assert_eq!(elsewhere.is_there(), None);
    }
}
