//! A line on standard error that is rewritten: the figures of the running trial so far.

use super::{LiveKind, UpcomingTrial, Watcher};
use crate::{confined, terminal};
use knee_core::trial::report::TrialReport;
use knee_load::measure::{Histogram, Interval};
use knee_load::time::Nanos;
use knee_render::{ProgressCounts, ProgressLine, RowLine};
use std::io::{self, Write};

/// The line; it takes itself away when the trial ends, so that something else can be shown.
#[derive(Debug, Default)]
pub struct ProgressWatcher {
    trial: Option<UpcomingTrial>,
    /// Failed so far.
    errors: u64,
    /// Datagrams sent so far.
    sent: u64,
    /// The longest ping so far.
    ping_max: Nanos,
}

impl ProgressWatcher {
    fn show(&self, interval: Option<&Interval>) {
        let (Some(trial), Some(width)) = (&self.trial, progress_width()) else {
            return;
        };
        let elapsed = match interval {
            Some(interval) => trial.warmup + Nanos(interval.end_ns),
            None => Nanos::ZERO,
        };
        let so_far = match trial.kind {
            LiveKind::Operations => ProgressCounts::Operations { errors: self.errors },
            LiveKind::Flows => ProgressCounts::Flows { ping_max: self.ping_max },
            LiveKind::Datagrams => ProgressCounts::Datagrams { sent: self.sent },
            LiveKind::Row { number, of, before, all } => {
                let line = RowLine {
                    number,
                    of,
                    label: &trial.label,
                    elapsed: before,
                    total: all,
                    width,
                    unicode: terminal::is_unicode(),
                };
                return rewrite(&line.format());
            }
        };
        let line = ProgressLine {
            label: &trial.label,
            elapsed,
            total: trial.total,
            interval,
            so_far,
            width,
            unicode: terminal::is_unicode(),
        };
        rewrite(&line.format());
    }
}

impl Watcher for ProgressWatcher {
    fn trial_begins(&mut self, _: usize, upcoming: &UpcomingTrial) {
        *self = ProgressWatcher { trial: Some(upcoming.clone()), ..ProgressWatcher::default() };
        self.show(None);
    }

    fn interval(&mut self, interval: &Interval, _: Option<&Histogram>) {
        self.errors += interval.errors;
        self.sent += interval.sent.unwrap_or(0);
        self.ping_max = self.ping_max.max(Nanos(interval.max_ns));
        self.show(Some(interval));
    }

    fn trial_ends(&mut self, _: Option<&TrialReport>) {
        if self.trial.take().is_some() {
            rewrite("");
        }
    }
}

/// To the line's beginning, and erase to its end (ECMA-48, EL).
const CLEAR_LINE: &str = "\r\x1b[K";

/// Puts this in the place of the line that is shown on standard error.
fn rewrite(line: &str) {
    // Nobody to tell where standard error is closed.
    let _ = write!(io::stderr(), "{CLEAR_LINE}{line}");
}

/// The columns of such a line: one as wide as the terminal would wrap on some. `None` where nobody
/// reads it: standard error is no terminal, and `knee mcp` has not started this process.
pub fn progress_width() -> Option<usize> {
    if confined::is_confined() {
        return Some(PIPED_WIDTH);
    }
    terminal::is_stderr().then(|| terminal::stderr_width().saturating_sub(1))
}

/// The columns of a line that `knee mcp` reads: more than any line has.
const PIPED_WIDTH: usize = 200;
