//! What can be asked of the history, and the runs as a table and as JSON.

use crate::args::{SecretArgs, parse_count};
use crate::history::{HistoryEntry, RunState, parse_name};
use crate::output::OutputArgs;
use clap::{Args, Subcommand};
use knee_load::time::Nanos;
use serde_json::json;
use std::io::{self, Write};

/// List the runs that were kept, show them again, name them, remove them
///
/// Every run that measures is kept, unless --no-save: in $XDG_DATA_HOME/knee/history.db
/// (~/.local/share without it), or in the file that KNEE_HISTORY names. It is written while it goes
/// on, so that of one that was killed all but its last interval is there. A RUN is an id, the name
/// of a baseline, or 'last'.
#[derive(Args, Clone, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
        knee history                     the latest runs, the latest first\n  \
        knee history --command sweep     those of one command\n  \
        knee history show 12             one of them, as it was shown\n  \
        knee history baseline main 12    from now on it is known as 'main'\n  \
        knee history trend               where figures changed over the runs of the latest\n  \
        knee history prune --keep 100    all but baselines and the latest 100 go"
)]
pub struct RawHistory {
    #[command(subcommand)]
    pub(super) command: Option<RawHistoryCommand>,

    #[command(flatten)]
    pub(super) list: RawList,
}

/// Which runs are listed, and where to.
#[derive(Args, Clone, Debug)]
pub(super) struct RawList {
    /// Maximum number of runs [default: 30; as JSON all]
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    pub(super) limit: Option<usize>,

    /// Those of this command: run, sweep, overload, throttle, udp
    #[arg(long, value_name = "COMMAND")]
    pub(super) command: Option<String>,

    /// Those whose target has this in it
    #[arg(long, value_name = "TEXT")]
    pub(super) target: Option<String>,

    /// Write them there as JSON; '-' is standard output
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<String>,

    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Clone, Debug, Subcommand)]
pub(super) enum RawHistoryCommand {
    Show(RawShow),
    Rm(RawRm),
    Prune(RawPrune),
    Baseline(RawBaseline),
    Trend(RawTrend),
}

/// Show the report of a run again
///
/// Of one that was cut short, or still goes on, what is known so far.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  knee history show 12 --html report.html")]
pub(super) struct RawShow {
    /// Its id, the name of a baseline, or 'last'
    #[arg(value_name = "RUN", default_value = "last")]
    pub(super) run: String,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Remove runs
#[derive(Args, Clone, Debug)]
pub(super) struct RawRm {
    /// Their ids; all of them or none are removed
    #[arg(value_name = "RUN", required = true)]
    pub(super) runs: Vec<String>,
}

/// Remove old runs
#[derive(Args, Clone, Debug)]
pub(super) struct RawPrune {
    /// Number of latest runs to keep; baselines and running ones stay too
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    pub(super) keep: usize,
}

/// Name a run, to compare others with it
///
/// Without arguments the names are listed; with a name alone, the id of its run is printed.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  knee history baseline main 12")]
pub(super) struct RawBaseline {
    /// The name; a run that had it before loses it
    #[arg(value_name = "NAME", value_parser = parse_name)]
    pub(super) name: Option<String>,

    /// The run
    #[arg(value_name = "RUN")]
    pub(super) run: Option<String>,

    /// No run has this name any longer
    #[arg(long, requires = "name", conflicts_with = "run")]
    pub(super) remove: bool,
}

/// Find where figures changed over many runs
///
/// The runs are RUN and those before it of the same command, target and options. They were made on
/// the same kind of machine by the same version. INVALID ones are left out. Changes are found by
/// E-divisive (Matteson and James, 2014): one in 50 series without a change has a false one. A
/// change that the speed of the host explains has no verdict.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  \
        knee history trend --html trend.html\n  \
        knee history trend --metric p99_ns --fail-on-regression")]
pub(super) struct RawTrend {
    /// The latest run: an id, the name of a baseline, or 'last'
    #[arg(value_name = "RUN", default_value = "last")]
    pub(super) run: String,

    /// A figure to follow, such as p99_ns; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(super) metric: Vec<String>,

    /// Maximum number of runs
    #[arg(long, value_name = "N", default_value = "200", value_parser = parse_count)]
    pub(super) limit: u32,

    /// Exit with 1 if a figure became worse within the last runs
    #[arg(long)]
    pub(super) fail_on_regression: bool,

    /// With --fail-on-regression: how many runs back
    #[arg(long, value_name = "N", default_value = "10", value_parser = parse_count)]
    pub(super) recent: u32,

    /// Write the trend there as JSON; '-' is standard output
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<String>,

    /// HTML page, one file without external resources; '-' is standard output
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<String>,

    /// Markdown, for a pull request; '-' is standard output
    #[arg(long, value_name = "FILE")]
    pub(super) md: Option<String>,

    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

fn parse_limit(text: &str) -> Result<usize, knee_load::spec::ParseError> {
    match text {
        "0" => Ok(0),
        _ => parse_count(text).map(|n| n as usize),
    }
}

/// An answer is not shortened to less, in columns.
const ANSWER_MIN: usize = 40;

/// How far an answer below its run is moved in.
const INDENT: usize = 6;

/// Place of the target's column.
const TARGET: usize = 3;
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
        let mut rows: Vec<[String; 7]> = self.entries.iter().map(|e| self.row(e)).collect();
        let width = |i: usize| {
            let cells = rows.iter().chain([&head]).map(|row| row[i].chars().count());
            cells.max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..6).map(width).collect();
        // The target gives way where it is long or the columns after it have no room.
        let others = widths.iter().sum::<usize>() - widths[TARGET] + 2 * (widths.len() - 1);
        let room = self.width.saturating_sub(others).max(head[TARGET].len());
        let room = room.min(self.width / TARGET_SHARE);
        widths[TARGET] = widths[TARGET].min(room);
        for row in &mut rows {
            row[TARGET] = self.shortened(&row[TARGET], room);
        }
        let all = || std::iter::once(&head).chain(&rows);
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
            target.to_string(),
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

/// Verdict and result of a run that ended with a report, else how it stands. PASSED is said where a
/// valid run has thresholds.
fn verdict(entry: &HistoryEntry) -> String {
    let word = match entry.state {
        RunState::Failed => "failed",
        RunState::Running => "running",
        RunState::CutShort => "cut short",
        RunState::Unfinished => "unfinished",
        RunState::Complete => {
            let is_valid = entry.verdict.as_deref() == Some("valid");
            match (is_valid, entry.result.as_deref()) {
                (true, Some("failed")) => "VALID, FAILED",
                (true, Some("passed")) if entry.has_thresholds => "VALID, PASSED",
                (true, _) => "VALID",
                (false, Some("failed")) => "INVALID, FAILED",
                (false, _) => "INVALID",
            }
        }
    };
    word.to_owned()
}

/// Writes runs as one document.
pub fn json(entries: &[HistoryEntry], out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &json!({ "runs": entries }))?;
    out.write_all(b"\n")
}
