//! `knee report`: a stored report, rendered again.

use crate::args::ThresholdArgs;
use crate::failure::{Exit, Failure};
use crate::output::OutputArgs;
use crate::{input, stdio};
use clap::Args;
use knee_core::report::ThresholdReport;
use knee_core::trial::report::Verdict;
use knee_render::parse_report;

/// Render a stored JSON report
///
/// The exit code says whether it could be read, not what it once was. With --fail-if it is 1 where
/// the report crosses one of these thresholds, and 3 where it is INVALID.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  knee report report.json\n  \
    knee report report.json --fail-if 'p99>200ms' --fail-if 'errors>0.1%'")]
pub struct RawReport {
    /// The report that --json wrote, up to 256 MiB; '-' is standard input
    #[arg(value_name = "FILE.json")]
    file: String,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Whether the generator's delays alone are why a threshold was not kept: none was crossed.
pub(super) fn undetermined(thresholds: &[ThresholdReport]) -> bool {
    thresholds.iter().any(|t| !t.undetermined.is_empty())
        && thresholds.iter().all(|t| t.crossed.is_empty())
}

/// Renders the report.
pub fn execute(raw: &RawReport) -> Result<Exit, Failure> {
    let text = input::read_text(&raw.file)?;
    let mut report = parse_report(&text).map_err(|e| Failure::argument(&raw.file, e))?;
    let judged = raw.thresholds.judge(&report);
    for threshold in &judged {
        let asked = |t: &ThresholdReport| t.expression == threshold.expression;
        report.thresholds.retain(|t| !asked(t));
    }
    if !judged.is_empty() {
        report.thresholds.extend(judged.clone());
        report.judge();
    }
    let output = raw.output.resolve()?;
    let report = report.without_secrets(&output.secrets);
    output.deliver(&report)?;
    let asked = |t: &&ThresholdReport| judged.iter().any(|j| j.expression == t.expression);
    let failures = report.thresholds.iter().filter(asked).flat_map(ThresholdReport::failures);
    failures.for_each(|line| stdio::say(&format!("failed: {line}")));
    Ok(match report.verdict {
        _ if judged.is_empty() => Exit::Fine,
        Verdict::Invalid => Exit::Invalid,
        Verdict::Valid if judged.iter().all(ThresholdReport::is_kept) => Exit::Fine,
        Verdict::Valid if undetermined(&judged) => Exit::Invalid,
        Verdict::Valid => Exit::Failed,
    })
}
