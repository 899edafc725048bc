//! `knee report`: a stored report, rendered again.

use crate::args::OutputArgs;
use crate::failure::{Exit, Failure};
use crate::input;
use clap::Args;
use knee_render::parse_report;

/// Render a stored JSON report again
///
/// The exit code says whether it could be read, not what it once was.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  knee report report.json")]
pub struct RawReport {
    /// The report that --json wrote; '-' is standard input
    #[arg(value_name = "FILE.json")]
    file: String,

    #[command(flatten)]
    output: OutputArgs,
}

/// Renders the report.
pub fn execute(raw: &RawReport) -> Result<Exit, Failure> {
    let text = input::read_text(&raw.file)?;
    let report = parse_report(&text).map_err(|e| Failure::argument(&raw.file, e))?;
    raw.output.resolve()?.deliver(&report)?;
    Ok(Exit::Fine)
}
