//! Limits of a process that the server for agents (`python -m knee.mcp`) has started, and of all that
//! it starts.
//!
//! The environment has them. Addresses are checked where the engine looks them up, the rate where
//! workers get their limit (`engine::confine`), files where `input` opens them.

use crate::failure::Failure;
use knee_engine::confine::{Confinement, confine};
use knee_engine::permit::{Cidr, Permit, least_per_s};
use knee_load::spec::TrialSpec;
use knee_load::time::Nanos;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Holds the limits, as JSON. A value that cannot be read ends the process: nothing runs without
/// its limits.
pub const VARIABLE: &str = "KNEE_CONFINED";

/// Limits of a process.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfinedLimits {
    /// Networks beside loopback that may be loaded.
    pub targets: Vec<String>,
    /// Most operations per second; `None` for no limit.
    pub rate_max: Option<f64>,
    /// Longest time of one trial.
    pub duration_max: Nanos,
    /// The folder, without links, below which files may be read.
    pub folder: PathBuf,
}

static LIMITS: OnceLock<ConfinedLimits> = OnceLock::new();

/// Whether this process has limits.
pub fn is_confined() -> bool {
    LIMITS.get().is_some()
}

/// Takes the limits of the environment, if it has any.
///
/// # Errors
/// The limits cannot be read.
pub fn begin() -> Result<(), Failure> {
    let Some(text) = std::env::var_os(VARIABLE) else {
        return Ok(());
    };
    let wrong =
        |e: String| Failure::argument(VARIABLE, format!("{e}; 'python -m knee.mcp' sets it"));
    let text = text.to_str().ok_or_else(|| wrong("is not UTF-8".to_owned()))?;
    let limits: ConfinedLimits = serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?;
    let targets = limits.targets.iter().map(|net| Cidr::parse(net)).collect::<Result<_, _>>();
    let permit = Permit { targets: targets.map_err(wrong)?, rate_max: limits.rate_max };
    confine(Confinement { permit, folder: limits.folder.clone() });
    // Nobody else sets them.
    let _ = LIMITS.set(limits);
    Ok(())
}

/// Refuses a trial that goes beyond the limits.
///
/// # Errors
/// It does: one line with the limit.
pub fn check(trial: &TrialSpec) -> Result<(), Failure> {
    let Some(limits) = LIMITS.get() else {
        return Ok(());
    };
    if let (Some(asked), Some(max)) = (least_per_s(trial), limits.rate_max)
        && asked > max
    {
        let wrong = format!("{asked:.0}/s is more than the --rate-max of this server, {max:.0}/s");
        return Err(Failure::argument("--rate", wrong));
    }
    let length = trial.window_end();
    if trial.operations_max.is_none() && length > limits.duration_max {
        let max = limits.duration_max;
        let wrong =
            format!("{length} with the warm-up is more than this server's --duration-max, {max}");
        return Err(Failure::argument("--duration", wrong));
    }
    Ok(())
}
