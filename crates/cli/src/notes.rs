//! Lines for people beside the report, on standard error.

use std::io::{self, Write};

/// Says things on standard error, unless `--quiet`.
#[derive(Clone, Copy, Debug)]
pub struct Notes {
    /// Whether they go nowhere.
    pub quiet: bool,
}

impl Notes {
    /// Says a line.
    pub fn tell(self, line: &str) {
        if !self.quiet {
            // Nobody to tell where standard error is closed.
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
}
