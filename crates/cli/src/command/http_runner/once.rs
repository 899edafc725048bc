//! Sessions that are walked through once, before or after the load.

use crate::watch::Unwatched;
use knee_core::trial::sessions::failure_of;
use knee_engine::error::RunError;
use knee_load::spec::{Level, Load, Pause, TrialSpec};
use knee_load::time::Nanos;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The longest that these steps may take together.
const LASTS_AT_MOST: Nanos = Nanos::from_secs(600);

/// Has one user do the steps of this kind of session of the target, as `base` would. Returns the
/// values of its variables.
///
/// # Errors
/// A step failed, or all of them took more than ten minutes.
pub(super) fn walk_once(
    base: &TrialSpec,
    kind: u16,
    stop: &AtomicBool,
) -> Result<Vec<Vec<u8>>, RunError> {
    let mut spec = TrialSpec {
        level: Level::Vusers(1),
        load: Load::Closed { vusers: 1, pause: Pause::NONE, stages: Vec::new() },
        warmup: Nanos::ZERO,
        duration: LASTS_AT_MOST,
        operations_max: Some(1),
        retry: None,
        ..base.clone()
    };
    let mut name = String::new();
    if let Some(plan) = &mut spec.target.sessions {
        let plan = Arc::make_mut(plan);
        *plan = std::mem::take(plan).only(kind);
        name = plan.kinds.get(usize::from(kind)).map_or(name, |kind| kind.name.clone());
    }
    let trial = knee_engine::run(&spec, &mut Unwatched, stop)?;
    let kept = trial.measurement.sessions.as_ref().and_then(|sessions| sessions.kept.clone());
    kept.ok_or_else(|| {
        let why = match failure_of(&trial) {
            Some(why) => why,
            None if trial.interrupted => "was interrupted".to_owned(),
            None => "took more than 10 minutes".to_owned(),
        };
        RunError::NotStarted(format!("{name}: {why}"))
    })
}
