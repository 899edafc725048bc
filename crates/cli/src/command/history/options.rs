//! What can be asked of the history.

use crate::args::{SecretArgs, parse_count};
use crate::history::parse_name;
use crate::output::OutputArgs;
use clap::{Args, Subcommand};

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
