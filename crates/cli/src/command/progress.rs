//! What is shown on standard error while an experiment runs.

use crate::args::Output;
use crate::terminal;
use knee_core::measure::{Interval, Observer};
use knee_core::report::TrialReport;
use knee_core::spec::{TrialSpec, UdpTrialSpec};
use knee_core::time::Nanos;
use knee_render::{ProgressLine, RowLine, SendLine};
use std::io::{self, Write};

/// Shows how one trial fares, in a line that is rewritten; nothing where it may not be shown.
#[derive(Debug)]
pub struct Progress<'a> {
    spec: &'a TrialSpec,
    errors: u64,
    is_shown: bool,
}

impl Progress<'_> {
    /// Begins the line of a trial.
    pub fn begin<'a>(spec: &'a TrialSpec, output: &Output) -> Progress<'a> {
        let progress = Progress {
            spec,
            errors: 0,
            is_shown: output.shows_progress(),
        };
        progress.show(Nanos::ZERO, None);
        progress
    }

    /// Takes the line away, so that something else can be shown.
    pub fn end(self) {
        if self.is_shown {
            rewrite("");
        }
    }

    fn show(&self, elapsed: Nanos, interval: Option<&Interval>) {
        if !self.is_shown {
            return;
        }
        let is_timed = self.spec.operations_max.is_none();
        let line = ProgressLine {
            label: &self.spec.label,
            elapsed,
            total: is_timed.then(|| self.spec.window_end()),
            interval,
            errors: self.errors,
            width: width(),
            unicode: terminal::is_unicode(),
        };
        rewrite(&line.format());
    }
}

impl Observer for Progress<'_> {
    fn on_interval(&mut self, interval: &Interval) {
        self.errors += interval.errors;
        self.show(self.spec.warmup + Nanos(interval.end_ns), Some(interval));
    }
}

/// Shows how one trial of datagrams fares, in a line that is rewritten.
#[derive(Debug)]
pub struct SendProgress<'a> {
    spec: &'a UdpTrialSpec,
    label: String,
    sent: u64,
    is_shown: bool,
}

impl SendProgress<'_> {
    /// Begins the line of a trial.
    pub fn begin<'a>(spec: &'a UdpTrialSpec, label: String, output: &Output) -> SendProgress<'a> {
        let progress = SendProgress {
            spec,
            label,
            sent: 0,
            is_shown: output.shows_progress(),
        };
        progress.show(Nanos::ZERO, None);
        progress
    }

    /// Takes the line away.
    pub fn end(self) {
        if self.is_shown {
            rewrite("");
        }
    }

    fn show(&self, elapsed: Nanos, interval: Option<&Interval>) {
        if !self.is_shown {
            return;
        }
        let is_timed = self.spec.datagrams_max.is_none();
        let line = SendLine {
            label: &self.label,
            elapsed,
            total: is_timed.then_some(self.spec.duration),
            interval,
            sent: self.sent,
            width: width(),
            unicode: terminal::is_unicode(),
        };
        rewrite(&line.format());
    }
}

impl Observer for SendProgress<'_> {
    fn on_interval(&mut self, interval: &Interval) {
        self.sent += interval.sent.unwrap_or(0);
        self.show(Nanos(interval.end_ns), Some(interval));
    }
}

/// Shows which row of a table is measured, in a line that is rewritten with each row: no more
/// often, so that nothing disturbs what is measured.
#[derive(Debug)]
pub struct RowProgress {
    /// Rows that are measured or were.
    begun: usize,
    of: usize,
    elapsed: Nanos,
    total: Nanos,
}

impl RowProgress {
    /// The progress of rows that take this long each.
    pub fn of(rows: &[Nanos]) -> RowProgress {
        RowProgress {
            begun: 0,
            of: rows.len(),
            elapsed: Nanos::ZERO,
            total: rows.iter().fold(Nanos::ZERO, |sum, t| sum + *t),
        }
    }

    /// How long all rows take.
    pub fn total(&self) -> Nanos {
        self.total
    }

    /// Begins the next row.
    pub fn begin(&mut self, label: &str, output: &Output) {
        self.begun += 1;
        if !output.shows_progress() {
            return;
        }
        let line = RowLine {
            number: self.begun,
            of: self.of,
            label,
            elapsed: self.elapsed,
            total: self.total,
            width: width(),
            unicode: terminal::is_unicode(),
        };
        rewrite(&line.format());
    }

    /// Ends it after the time that it was to take, and takes the line away.
    pub fn end(&mut self, took: Nanos, output: &Output) {
        self.elapsed += took;
        if output.shows_progress() {
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

/// The columns of such a line: one as wide as the terminal would wrap on some.
fn width() -> usize {
    terminal::stderr_width().saturating_sub(1)
}

/// What an ended level of a sweep showed, in one line.
pub fn level_line(number: usize, trial: &TrialReport) -> String {
    let rate = trial.throughput_per_s;
    let digits = usize::from(rate < 100.0);
    let times = &trial.response_time_ns;
    let [mean, p90, p99] = [times.mean, times.p90, times.p99].map(|ns| Nanos(ns).to_string());
    let errors = trial.outcomes.errors();
    format!(
        "{:>3}  {:<14} {rate:>10.digits$}/s  mean {mean:>7}  p90 {p90:>7}  p99 {p99:>7}  \
         errors {errors}",
        number + 1,
        trial.label,
    )
}
