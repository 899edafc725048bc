//! Whether a run is kept, and as what.

use crate::history::{Keep, parse_name};
use clap::Args;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "History")]
pub struct KeepArgs {
    /// Do not keep this run in the history ('knee history')
    #[arg(long, hide_short_help = true)]
    no_save: bool,

    /// Name under which this run becomes a baseline if it is VALID; replaces an earlier one
    #[arg(long, value_name = "NAME", value_parser = parse_name, conflicts_with = "no_save")]
    #[arg(hide_short_help = true)]
    save_baseline: Option<String>,
}

impl KeepArgs {
    /// How a run is kept, if it is; its id is printed where somebody watches.
    pub fn resolve(&self, is_watched: bool) -> Option<Keep> {
        (!self.no_save).then(|| Keep {
            baseline: self.save_baseline.clone(),
            tells_id: is_watched,
        })
    }
}
