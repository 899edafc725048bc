//! Takes the place of `script_client` in a build without the feature `scripts`: a trial of a script
//! is refused, so that there is none.

use super::client::Client;
use super::session_client::SessionConfig;
use super::step_client::StepClient;
use crate::error::RunError;
use knee_load::session::Users;
use knee_load::spec::{Target, TrialSpec, WorkerRange};
use std::sync::Arc;

/// A script: no value of it exists.
pub(crate) enum Script {}

impl Script {
    pub(crate) fn computing_since(&self) -> Option<u64> {
        match *self {}
    }

    pub(crate) fn take_console(&self, _: bool) -> Vec<String> {
        match *self {}
    }
}

/// The script that makes a target's requests, if any.
///
/// # Errors
/// There is one.
pub(crate) fn script_of(target: &Target, _: WorkerRange) -> Result<Option<Arc<Script>>, RunError> {
    match target.script() {
        None => Ok(None),
        Some(_) => Err(RunError::NotPermitted("this build of knee runs no scripts".to_owned())),
    }
}

/// The client of one worker.
pub(crate) fn of_worker(
    _: Box<dyn StepClient>,
    _: SessionConfig,
    _: Users,
    script: &Arc<Script>,
    _: &TrialSpec,
    _: (u32, u32),
) -> Box<dyn Client> {
    match **script {}
}
