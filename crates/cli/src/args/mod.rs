//! Options that commands share. Each group resolves into values that cannot be wrong.
//!
//! An option is declared once: `resolved_options` serializes the field that clap fills, with its
//! default settled, for the line that repeats a run.

mod arrival;
mod curl;
mod engine;
#[cfg(feature = "fleet")]
mod fleet;
mod load;
#[cfg(not(feature = "fleet"))]
mod no_fleet;
mod observe;
mod protocol;
mod responses;
mod retry;
mod route;
mod secret;
mod target;
mod threshold;
mod values;

pub use arrival::{ArrivalArgs, RecordedArrivals, read as read_trace};
pub use curl::with_curl_line;
pub use engine::{EngineArgs, SETTLED_WAITS};
#[cfg(feature = "fleet")]
pub use fleet::{Fleet, FleetArgs, NatsArgs, PatienceArgs, parse_rate_max};
pub use load::{ClosedArgs, HttpArgs, OpenArgs, interval};
#[cfg(not(feature = "fleet"))]
pub use no_fleet::{Fleet, FleetArgs};
pub use observe::ObserveArgs;
pub use protocol::{RESUMES, VERSIONS, left_out};
pub use retry::RetryArgs;
pub use secret::{SecretArgs, TokenArgs};
pub use target::{ReplayArgs, TargetArgs};
pub use threshold::ThresholdArgs;
pub use values::{Choices, one_of, within};
pub use values::{Levels, SeedArgs, listen_address, rate_levels, vuser_levels};
pub use values::{parse_count, parse_number, parse_positive, parse_whole, service_address};

use crate::failure::Failure;

/// The end of a command's `--help`: its examples, and what the exit codes mean.
pub fn with_exits(examples: &str) -> String {
    format!("{examples}\n\n{EXITS}")
}

/// What the exit codes mean, a line each.
pub const EXITS: &str = "\
Exit codes:
  0    measured, valid, within the thresholds
  1    a --fail-if threshold was crossed, or no operation succeeded although the target was reached
  2    bad arguments or input, a limit of this machine, or an output file not written whole
  3    measured, but INVALID: the generator, not the target, limited or distorted the result
  4    the target could not be reached, or nothing was measured
  129  ended by SIGHUP, after the report of what was measured; nohup keeps it from that
  130  ended by SIGINT (Ctrl-C), likewise; 'q' in the live view is 0
  143  ended by SIGTERM, likewise
Where several apply, 2 goes first, then 4, 3, 1, then 129, 130 and 143. A threshold that cannot be \
judged, as its figure is not known, counts as crossed. Every file asked for is written, whatever \
the code, but for 2. A second Ctrl-C or SIGTERM aborts at once, without a report.";

/// The first of these options that is given.
pub fn first_given(options: &[(bool, &'static str)]) -> Option<&'static str> {
    options.iter().find(|(is_given, _)| *is_given).map(|(_, option)| *option)
}

/// Refuses the first of these options that contradicts others: whether it does, its name, and why.
pub fn refuse_first(rows: &[(bool, &str, &str)]) -> Result<(), Failure> {
    match rows.iter().find(|(is_wrong, ..)| *is_wrong) {
        Some((_, option, wrong)) => Err(Failure::argument(option, *wrong)),
        None => Ok(()),
    }
}
