//! `knee analyze`: conclusions from results measured elsewhere.

use crate::failure::{Exit, Failure};
use crate::output::OutputArgs;
use crate::resolved_options::ResolvedOptions;
use crate::{input, machine};
use clap::{Args, Subcommand};
use knee_core::experiment::latency::{conclude_classic, parse_classic};
use knee_core::experiment::sweep::conclude_table;
use knee_core::experiment::sweep::report::SweepSlice;
use knee_core::experiment::sweep::table::parse_csv;
use knee_core::finding::Finding;
use knee_core::report::{Command, Conclusion, Kind, Report, ReportResult, SCHEMA};
use knee_core::trial::report::Verdict;
use knee_render::parse_report;

/// Conclude from results measured elsewhere
#[derive(Args, Clone, Debug)]
#[command(arg_required_else_help = true)]
pub struct RawAnalyze {
    #[command(subcommand)]
    kind: RawAnalyzeKind,
}

#[derive(Clone, Debug, Subcommand)]
enum RawAnalyzeKind {
    Sweep(RawAnalyzeSweep),
    Latency(RawAnalyzeLatency),
}

/// Find the knee in a table of users and throughput
///
/// Columns are vusers, throughput_per_s and, optionally, mean_ms and p90_ms, in this order unless a
/// header names them (Users, Requests/sec, Mean (ms), p90 (ms)). Commas, semicolons, tabs, pipes or
/// blanks separate values. Thousands separators (88,318; in quotes between commas) and units
/// (88,318/s, 3.2 ms) are read. Titles, empty lines and what follows a # are skipped.
///
/// With rounds, the analysis separates changes over time from effects of the load, as knee sweep
/// does. A round is a part of the table with each level once, or the lines with the same number in
/// a column named round. A throughput of 0 in a round is an outage. A column begin_s has the time
/// of each line. The JSON report of a sweep is read as well.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  \
    printf 'vusers,throughput_per_s\\n1,1833\\n10,18226\\n100,86069\\n300,88375\\n' |\n  \
    knee analyze sweep -")]
struct RawAnalyzeSweep {
    /// The table, or the JSON report of a sweep, up to 256 MiB; '-' is standard input
    #[arg(value_name = "FILE")]
    file: String,

    #[command(flatten)]
    output: OutputArgs,
}

/// Recompute the overall figures of a latency test from its text
///
/// The text is what 'knee latency' prints, or the loadlatency test of 2011: lines such as
/// 'Scenario 4: 1 uploads, 1 downloads... 50998 KiB/s up, 85859 KiB/s down, 2.90 Hz smoothness'.
/// All other lines are skipped, but for those that begin with MinRTT and the block after OVERALL.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  \
    knee latency 192.0.2.7 --token 'a secret' > today.txt\n  \
    knee analyze latency today.txt")]
struct RawAnalyzeLatency {
    /// The text, up to 256 MiB; '-' is standard input
    #[arg(value_name = "FILE.txt")]
    file: String,

    #[command(flatten)]
    output: OutputArgs,
}

/// Reads what others measured and reports what follows from it.
pub fn execute(raw: RawAnalyze) -> Result<Exit, Failure> {
    match raw.kind {
        RawAnalyzeKind::Sweep(raw) => sweep(&raw),
        RawAnalyzeKind::Latency(raw) => latency(&raw),
    }
}

fn latency(raw: &RawAnalyzeLatency) -> Result<Exit, Failure> {
    let classic = parse_classic(&input::read_text(&raw.file)?);
    let classic = classic.map_err(|e| Failure::argument(&raw.file, e))?;
    let (findings, conclusion) = conclude_classic(&classic);
    let report = report(Kind::Latency, &raw.file, findings, Conclusion::Latency(conclusion));
    raw.output.resolve()?.deliver(&report)?;
    Ok(Exit::Fine)
}

fn sweep(raw: &RawAnalyzeSweep) -> Result<Exit, Failure> {
    let bytes = input::read(&raw.file)?;
    let is_report = bytes.trim_ascii_start().starts_with(b"{");
    let table = if is_report {
        let text = String::from_utf8_lossy(&bytes);
        parse_report(&text).and_then(|report| slices_of(&report.conclusion))
    } else {
        parse_csv(&bytes).map_err(|e| e.to_string())
    };
    let table = table.map_err(|e| Failure::argument(&raw.file, e))?;
    let (findings, conclusion) = conclude_table(&table);
    let report = report(Kind::Sweep, &raw.file, findings, Conclusion::Sweep(conclusion));
    raw.output.resolve()?.deliver(&report)?;
    Ok(Exit::Fine)
}

fn slices_of(conclusion: &Conclusion) -> Result<Vec<SweepSlice>, String> {
    let slices = match conclusion {
        Conclusion::Sweep(sweep) => sweep.as_table(),
        _ => None,
    };
    slices.ok_or_else(|| "expected the report of a sweep over users".to_owned())
}

/// A report of what was not measured here.
fn report(kind: Kind, file: &str, findings: Vec<Finding>, conclusion: Conclusion) -> Report {
    let mut options = ResolvedOptions::default();
    options.put("file", file);
    Report {
        schema: SCHEMA.to_string(),
        command: Command::analysis_of(kind),
        knee_version: env!("CARGO_PKG_VERSION").to_string(),
        started_at: machine::now(),
        seed: 0,
        verdict: Verdict::Valid,
        result: ReportResult::default(),
        failed_because: Vec::new(),
        interrupted: false,
        thresholds: Vec::new(),
        host: knee_engine::host(),
        spec: options.0,
        trials: Vec::new(),
        findings,
        conclusion,
    }
}
