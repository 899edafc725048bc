//! Lines for people beside the report, on standard error.

use knee_load::time::Nanos;
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

/// A length of time as people say it: `0.2 s`, `65 s`, `3.5 min`.
pub fn about(time: Nanos) -> String {
    match time.as_secs_f64() {
        s if s < 10.0 => format!("{} s", (s * 10.0).ceil() / 10.0),
        s if s < 100.0 => format!("{s:.0} s"),
        s => format!("{:.1} min", s / 60.0),
    }
}
