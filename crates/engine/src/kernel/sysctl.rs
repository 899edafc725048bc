//! Settings of this host's kernel that decide how many connections it can make and take.

use crate::sys::thread::OpenFilesLimit;
use knee_core::experiment::overload::PreflightFacts;
use std::fs;

/// What is set here; what cannot be read is not known.
pub fn preflight_facts() -> PreflightFacts {
    PreflightFacts
}
