//! The runs as a table, and as JSON.

use crate::history::{HistoryEntry, RunState};
use knee_load::time::Nanos;
use serde_json::{Value, json};
use std::io::{self, Write};

/// An answer is not shortened to less, in columns.
const ANSWER_MIN: usize = 40;

/// How far an answer below its run is moved in.
const INDENT: usize = 6;

/// A target has this share of the width at the most.
const TARGET_SHARE: usize = 5;

/// A table of these runs, which are at least one.
#[derive(Debug)]
pub struct List<'a> {
    /// In this order.
    pub entries: &'a [HistoryEntry],
    /// Columns that may be used.
    pub width: usize,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
}

impl List<'_> {
    /// Writes it.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let head = ["id", "when (UTC)", "command", "target", "verdict", "took", "answer"];
        let head = head.map(str::to_string);
        let rows: Vec<[String; 7]> = self.entries.iter().map(|e| self.row(e)).collect();
        let all = || std::iter::once(&head).chain(&rows);
        let width = |i: usize| all().map(|row| row[i].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..6).map(width).collect();
        let before = widths.iter().sum::<usize>() + 2 * widths.len();
        // Where no room is left beside the rest, the answer follows below it.
        let is_below = before + ANSWER_MIN > self.width;
        let left = if is_below { self.width.saturating_sub(INDENT) } else { self.width - before };
        for (number, row) in all().enumerate() {
            let mut line = String::new();
            for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
                line += &match i {
                    // Numbers.
                    0 | 5 => format!("{cell:>width$}  "),
                    _ => format!("{cell:<width$}  "),
                };
            }
            let answer = self.shortened(&row[6], left);
            if !is_below {
                line += &answer;
            }
            writeln!(out, "{}", self.shortened(line.trim_end(), self.width))?;
            if is_below && number > 0 && !answer.is_empty() {
                writeln!(out, "{:INDENT$}{answer}", "")?;
            }
        }
        Ok(())
    }

    fn row(&self, entry: &HistoryEntry) -> [String; 7] {
        // 2026-05-04T09:30:00Z
        let when = entry.started_at.get(..16).unwrap_or(&entry.started_at);
        let target = entry.target.strip_prefix("http://");
        let target = target.unwrap_or(&entry.target);
        let took = match entry.state {
            RunState::Complete | RunState::Failed => Nanos(entry.duration_ns).to_string(),
            // It may have gone on for longer.
            _ if self.unicode => format!("≥{}", Nanos(entry.duration_ns)),
            _ => format!(">={}", Nanos(entry.duration_ns)),
        };
        [
            entry.id.to_string(),
            when.replace('T', " "),
            match entry.agents {
                None => entry.command.clone(),
                Some(agents) => format!("{} by {agents} agents", entry.command),
            },
            self.shortened(target, self.width / TARGET_SHARE),
            verdict(entry),
            took,
            self.answer(entry),
        ]
    }

    fn answer(&self, entry: &HistoryEntry) -> String {
        let names = match entry.baselines.as_slice() {
            [] => String::new(),
            names => format!("[{}] ", names.join(", ")),
        };
        let answer = entry.answer.as_deref().unwrap_or_default();
        let how = match entry.state {
            RunState::Complete if entry.interrupted => "(interrupted) ",
            RunState::Running | RunState::CutShort | RunState::Unfinished if !answer.is_empty() => {
                "(so far) "
            }
            _ => "",
        };
        // A space that does not break is as wide as any other here.
        names + how + &answer.replace(['\n', '\u{a0}'], " ")
    }

    fn shortened(&self, text: &str, width: usize) -> String {
        if text.chars().count() <= width {
            return text.to_string();
        }
        let sign = if self.unicode { "…" } else { "..." };
        let kept = width.saturating_sub(sign.chars().count());
        text.chars().take(kept).chain(sign.chars()).collect()
    }
}

/// Both answers of one that ended with a report, else how it stands.
fn verdict(entry: &HistoryEntry) -> String {
    let word = match entry.state {
        RunState::Failed => "failed",
        RunState::Running => "running",
        RunState::CutShort => "cut short",
        RunState::Unfinished => "unfinished",
        RunState::Complete => {
            let word = match entry.verdict.as_deref() {
                Some("valid") => "VALID",
                _ => "INVALID",
            };
            let result = entry.result.as_deref().map(str::to_uppercase);
            return [Some(word.to_string()), result]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(", ");
        }
    };
    word.to_string()
}

/// Writes runs as one document.
pub fn json(entries: &[HistoryEntry], out: &mut dyn Write) -> io::Result<()> {
    let runs: Vec<Value> = entries.iter().map(one).collect();
    serde_json::to_writer_pretty(&mut *out, &json!({ "runs": runs }))?;
    out.write_all(b"\n")
}

fn one(entry: &HistoryEntry) -> Value {
    json!({
        "id": entry.id,
        "command": entry.command,
        "started_at": entry.started_at,
        "target": entry.target,
        "agents": entry.agents,
        "state": entry.state.name(),
        "verdict": entry.verdict,
        "result": entry.result,
        "interrupted": entry.interrupted,
        "seed": entry.seed,
        "knee_version": entry.knee_version,
        "duration_ns": entry.duration_ns,
        "answer": entry.answer,
        "baselines": entry.baselines,
    })
}
