//! `knee compare`: whether two runs differ by more than chance.

use super::compare_live::{ReadRun, compare_targets};
use super::laboratory;
use crate::args::{SecretArgs, parse_positive, with_exits};
use crate::failure::{Exit, Failure};
use crate::output::{Files, text};
use crate::{history, input, stdio};
use clap::Args;
use knee_core::compare::report::{Comparison, ComparisonVerdict};
use knee_core::compare::{NamedReport, compare};
use knee_core::report::Report;
use knee_load::time::Nanos;
use knee_render::{Html, Json, Markdown, Renderer, parse_report};
use std::path::Path;

const EXAMPLES: &str = "Examples:
  knee compare before.json after.json             is the second slower?
  knee compare a1.json a2.json -- b1.json b2.json several runs of each
  knee compare --baseline main after.json --fail-on-regression
  knee compare --live http://a/ http://b/ -c 20   two servers in turns, under the same load";

/// Compare two runs: which metrics differ significantly, and by how much
///
/// A report is a file written by --json, '-' for standard input, or a run of the history: its id, a
/// baseline's name or 'last'. The first is A, the second is B, which is compared with A.
///
/// Two runs of the same server differ, and by more than either of them shows. With one run on each
/// side the spread between runs is assumed to be that of a quiet machine. That is 2 % in throughput
/// and median, 4 % in the 99th percentile. What each run shows of its own comes on top. With
/// several runs it is measured: give A's, then --, then B's, and run them in alternation, so that
/// what drifts meets both. Of 20 comparisons of equals fewer than one finds any difference, however
/// many metrics and levels they have (Benjamini and Hochberg).
#[derive(Args, Clone, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = EXAMPLES,
    after_long_help = with_exits_of_compare(),
)]
pub struct RawCompare {
    /// A and B, files of up to 256 MiB; before -- all belong to A, with --baseline all to B
    #[arg(value_name = "REPORT")]
    reports: Vec<String>,

    /// Reports of B, after --
    #[arg(last = true, value_name = "REPORT OF B")]
    reports_of_b: Vec<String>,

    /// Baseline of the history to use as A
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,

    /// Measure two URLs in turns, A and B, under the same load: the options of 'knee run'
    ///
    /// Each round has a slice of A and one of B in random order, so that what changes on the host
    /// meets both. -d T is the length of a slice, at least and by default 500ms. Rounds go on, at
    /// least 8, until the difference is known to ±2 % or the budget is spent.
    #[arg(long, conflicts_with = "baseline")]
    live: bool,

    /// With --live: the most time that all rounds may take
    #[arg(long, value_name = "T", default_value = "60s", value_parser = parse_positive)]
    #[arg(requires = "live")]
    budget: Nanos,

    /// A word of the load's options
    #[arg(long = "load-word", hide = true, allow_hyphen_values = true)]
    load_words: Vec<String>,

    /// Exit with 1 if B is significantly worse in throughput, response times or errors
    #[arg(long)]
    fail_on_regression: bool,

    /// Write the comparison there as JSON too; '-' is standard output, and nothing else goes there
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<String>,

    /// HTML report, one file without external resources; '-' is standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<String>,

    /// Markdown comparison, for a pull request; '-' is standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    md: Option<String>,

    /// Do not say on standard error why it ends with another code than 0
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    quiet: bool,

    /// Disable colour; otherwise it is used on a terminal unless NO_COLOR is set
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    no_color: bool,

    #[command(flatten)]
    secrets: SecretArgs,
}

fn with_exits_of_compare() -> String {
    let own = "With --fail-on-regression 1 says that B is worse, and 3 that nothing could be \
               judged as a side is INVALID; without it what could be compared ends with 0.";
    format!("{}\n{own}", with_exits(EXAMPLES))
}

/// Compares, and says what came of it.
pub fn execute(raw: &RawCompare, read_run: ReadRun) -> Result<Exit, Failure> {
    let files: [(_, _, Box<dyn Renderer<Comparison>>); 3] = [
        ("--json", &raw.json, Box::new(Json)),
        ("--html", &raw.html, Box::new(Html)),
        ("--md", &raw.md, Box::new(Markdown)),
    ];
    let files = Files::of(files)?;
    let comparison = if raw.live {
        compare_targets(raw.targets()?, &raw.load_words, raw.budget, read_run)?
    } else {
        compare_reports(raw)?
    };
    files.deliver(&comparison, &text(raw.no_color))?;
    Ok(laboratory::ended_by_signal().unwrap_or_else(|| raw.exit(&comparison)))
}

fn compare_reports(raw: &RawCompare) -> Result<Comparison, Failure> {
    let (names_a, names_b) = raw.sides()?;
    let secrets = raw.secrets.secrets();
    let hidden = |reports: Vec<Report>| -> Vec<Report> {
        let hide = |report: Report| report.without_secrets(&secrets);
        reports.into_iter().map(hide).collect()
    };
    let a = hidden(load_all(&names_a, raw.baseline.is_some())?);
    let b = hidden(load_all(&names_b, false)?);
    let version = env!("CARGO_PKG_VERSION");
    compare(&named(&names_a, &a), &named(&names_b, &b), version).map_err(Failure::input)
}

fn named<'a>(names: &'a [String], reports: &'a [Report]) -> Vec<NamedReport<'a>> {
    names.iter().zip(reports).map(|(name, report)| NamedReport { name, report }).collect()
}

fn load_all(names: &[String], is_baseline: bool) -> Result<Vec<Report>, Failure> {
    names.iter().map(|name| load(name, is_baseline)).collect()
}

/// A file where there is one, else a run of the history.
fn load(name: &str, is_baseline: bool) -> Result<Report, Failure> {
    let is_path = name == "-" || name.contains(['/', '.']) || Path::new(name).exists();
    if is_baseline || !is_path {
        return history::load(name).map(|(_, report)| report);
    }
    let text = input::read_text(name)?;
    parse_report(&text).map_err(|e| Failure::argument(name, e))
}

impl RawCompare {
    /// The two URLs of a live comparison.
    fn targets(&self) -> Result<[&str; 2], Failure> {
        match (&self.reports[..], &self.reports_of_b[..]) {
            ([a, b], []) => Ok([a, b]),
            _ => Err(Failure::argument("--live", "expected two URLs, A and B")),
        }
    }

    /// Which reports are A's and which B's, by the names that they were given by.
    fn sides(&self) -> Result<(Vec<String>, Vec<String>), Failure> {
        let refuse = |argument: &str, wrong: &str| Err(Failure::argument(argument, wrong));
        let all = || self.reports.iter().chain(&self.reports_of_b);
        if all().filter(|name| *name == "-").count() > 1 {
            return refuse("-", "standard input can be read only once: name files");
        }
        Ok(match (&self.baseline, &self.reports[..], &self.reports_of_b[..]) {
            (Some(_), [], []) => {
                return refuse("--baseline", "what is to be compared with it? Name a report");
            }
            (Some(name), given, []) => (vec![name.clone()], given.to_vec()),
            (Some(_), [], _) => {
                return refuse("--", "with --baseline all reports are B's: leave the -- out");
            }
            (Some(_), ..) => {
                return refuse("--baseline", "it is A: leave it or the reports before -- out");
            }
            (None, [], _) => return refuse("REPORT", "A is missing: name its reports before --"),
            (None, [_], []) => {
                return refuse("REPORT", "B is missing: name two reports, A and B");
            }
            (None, [a, b], []) => (vec![a.clone()], vec![b.clone()]),
            (None, _, []) => {
                return refuse("REPORT", "which are A's? Put -- between A's reports and B's");
            }
            (None, a, b) => (a.to_vec(), b.to_vec()),
        })
    }

    fn exit(&self, comparison: &Comparison) -> Exit {
        if !self.fail_on_regression {
            return Exit::Fine;
        }
        let is_worse = |row: &&knee_core::compare::report::ComparisonRow| {
            row.matters && row.verdict == ComparisonVerdict::Worse
        };
        let worse = comparison.rows.iter().filter(is_worse).count();
        let mut rows = comparison.rows.iter();
        let is_unknown = rows.all(|row| row.verdict == ComparisonVerdict::Unknown);
        let (exit, reason) = match worse {
            0 if is_unknown && comparison.has_invalid => (
                Exit::Invalid,
                "--fail-on-regression: a side is INVALID, nothing was judged".into(),
            ),
            0 => return Exit::Fine,
            n => (
                Exit::Failed,
                format!("--fail-on-regression: B is worse in {n} of {}", comparison.rows.len()),
            ),
        };
        if !self.quiet {
            stdio::say(&reason);
        }
        exit
    }
}
