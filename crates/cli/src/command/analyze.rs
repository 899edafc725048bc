//! `knee analyze`: conclusions from results measured elsewhere.

use super::started_at;
use crate::args::OutputArgs;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::words::Words;
use clap::{Args, Subcommand};
use knee_core::analysis::table::parse_csv;
use knee_core::experiment::sweep::conclude_table;
use knee_core::report::{Conclusion, Report, SCHEMA, Verdict};

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
}

/// Find the knee in a table of users and throughput
///
/// The table begins with a line that names its columns: vusers,throughput_per_s and, optionally,
/// mean_ms and p90_ms. Empty lines and what follows a # are skipped.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  \
    printf 'vusers,throughput_per_s\\n1,1833\\n10,18226\\n100,86069\\n300,88375\\n' |\n  \
    knee analyze sweep -")]
struct RawAnalyzeSweep {
    /// The table; '-' is standard input
    #[arg(value_name = "FILE.csv")]
    file: String,

    #[command(flatten)]
    output: OutputArgs,
}

/// Reads the table and reports what follows from it.
pub fn execute(raw: RawAnalyze) -> Result<Exit, Failure> {
    let RawAnalyzeKind::Sweep(raw) = raw.kind;
    let table = parse_csv(&input::read(&raw.file)?);
    let table = table.map_err(|e| Failure::argument(&raw.file, e))?;
    let (findings, conclusion) = conclude_table(&table);
    let mut words = Words::default();
    words.put("file", raw.file.as_str());
    let report = Report {
        schema: SCHEMA.to_string(),
        command: "analyze sweep".to_string(),
        knee_version: env!("CARGO_PKG_VERSION").to_string(),
        started_at: started_at::now(),
        seed: 0,
        verdict: Verdict::Valid,
        interrupted: false,
        host: knee_engine::host(),
        spec: words.0,
        trials: Vec::new(),
        findings,
        conclusion: Conclusion::Sweep(conclusion),
    };
    raw.output.resolve()?.deliver(&report)?;
    Ok(Exit::Fine)
}
