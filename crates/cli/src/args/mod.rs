//! Options that commands share. Each group resolves into values that cannot be wrong.

mod arrival;
mod engine;
mod load;
mod observe;
mod output;
mod source;
mod target;
mod threshold;
mod trace;
mod values;

pub use arrival::ArrivalArgs;
pub use engine::{EngineArgs, WAITS, meaning, random_seed, waits, word};
pub use load::{ClosedArgs, LimitArgs, OpenArgs, interval};
pub use observe::ObserveArgs;
pub use output::{Files, MeasuredOutputArgs, Notes, Output, OutputArgs, PendingFile, text};
pub use source::SourceArgs;
pub use target::TargetArgs;
pub use threshold::ThresholdArgs;
pub use trace::{Trace, read as read_trace};
pub use values::{Levels, rate_levels, vuser_levels};
pub use values::{parse_count, parse_positive, parse_whole};

/// The end of a command's `--help`: its examples, and what the exit codes mean.
pub fn with_exits(examples: &str) -> String {
    format!("{examples}\n\n{EXITS}")
}

const EXITS: &str = "\
Exit codes:
  0  measured, valid, within the thresholds
  1  a --fail-if threshold was crossed
  2  bad arguments or input
  3  measured, but INVALID: the generator, not the target, limited or distorted the result
  4  the target could not be reached, or nothing was measured
Where several apply, 4 goes before 3 and 3 before 1: numbers that are not the target's cross no
threshold. A second Ctrl-C aborts at once with 130.";
