//! Whether a run is kept, and as what.

use crate::history::{Keep, parse_name};
use clap::Args;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "History")]
pub struct KeepArgs {
    /// Do not keep this run; what is kept is listed by 'knee history'
    #[arg(long, hide_short_help = true)]
    no_save: bool,

    /// Once it is over and VALID, this run is the baseline of that name, whatever was before
    #[arg(long, value_name = "NAME", value_parser = parse_name, conflicts_with = "no_save")]
    #[arg(hide_short_help = true)]
    save_baseline: Option<String>,
}

impl KeepArgs {
    /// How a run is kept, if it is; its id is told where somebody watches.
    pub fn resolve(&self, is_watched: bool) -> Option<Keep> {
        (!self.no_save).then(|| Keep {
            baseline: self.save_baseline.clone(),
            tells_id: is_watched,
        })
    }
}
