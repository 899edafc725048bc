//! Takes the place of `script` in a build without the feature `scripts`.

use crate::failure::Failure;
use crate::features::SCRIPTS;
use clap::Args;
use knee_core::report::Report;
use knee_load::session::SessionPlan;
use knee_scenario::Scenario;
use serde::Serialize;

/// No options.
#[derive(Args, Clone, Debug, Serialize)]
pub struct ScriptArgs {}

/// Nothing: no run has a script.
pub fn handle_summary(_: &SessionPlan, _: &Report, _: bool) {}

impl ScriptArgs {
    /// A script as a scenario.
    pub fn scenario(&self, file: &str) -> Result<Scenario, Failure> {
        Err(SCRIPTS.missing(file))
    }

    /// What a script would do.
    pub fn summary(&self, file: &str) -> Result<Vec<String>, Failure> {
        Err(SCRIPTS.missing(file))
    }
}
