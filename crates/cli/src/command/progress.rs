//! What is shown on standard error while an experiment runs.

use crate::args::Output;
use knee_core::measure::{Interval, Observer};
use knee_core::report::TrialReport;
use knee_core::spec::TrialSpec;
use knee_render::ProgressLine;
use std::io::{self, Write};

/// Progress of an experiment: one line rewritten while a trial runs, one kept as each ends.
#[derive(Debug)]
pub struct Progress<'a> {
    output: &'a Output,
    several: bool,
}
