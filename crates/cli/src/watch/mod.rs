//! Watchers of a running experiment: a live view or a progress line, the history, logs and metrics.
//!
//! Each is notified when a trial begins, of each interval as it ends, and when the trial ends. All are
//! called on the thread that collects intervals, which no worker ever waits for.

mod exporter;
mod hdr;
mod live_view;
mod view_keys;

use crate::stdio::Notes;
use crate::{confined, stdio};
pub use exporter::{MetricsServer, OtlpExport, SharedMetrics};
pub use hdr::HdrFile;
use knee_core::report::{Command, Report};
use knee_core::trial::report::TrialReport;
use knee_load::measure::{Histogram, Interval, IntervalWatcher};
use knee_load::spec::Level;
use knee_load::time::Nanos;
pub use knee_render::live::{LiveKind, LiveTrial};
use knee_render::metrics::HttpServerLabels;
use knee_render::{ProgressCounts, ProgressLine};
pub use live_view::LiveView;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Instant;

/// What is known of an experiment before its first trial.
#[derive(Clone, Debug)]
pub struct ExperimentStart {
    /// `run`, `sweep`, ….
    pub command: Command,
    /// When it began, RFC 3339 in UTC.
    pub started_at: String,
    /// Seeds every random choice.
    pub seed: u64,
    /// The resolved options, as in the report.
    pub spec: BTreeMap<String, Value>,
}

/// What is known of a trial before it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct UpcomingTrial {
    /// As it is shown while it runs.
    pub live: LiveTrial,
    /// What it varies; `None` of a row of a table.
    pub level: Option<Level>,
    /// The server of its requests; `None` where they are not of HTTP.
    pub http: Option<HttpServerLabels>,
}

/// Somebody who watches. The calls come from one thread, in the order in which things happen.
pub trait Watcher {
    /// The experiment begins.
    fn opens(&mut self, _: &ExperimentStart) {}

    /// A trial begins; `number` counts from 0.
    fn trial_begins(&mut self, _number: usize, _: &UpcomingTrial) {}

    /// An interval of it has ended; see [`IntervalWatcher::on_interval`].
    fn interval(&mut self, _: &Interval, _: &Histogram) {}

    /// The trial has ended; `None` where it is no trial with a report of its own, or could not be
    /// run.
    fn trial_ends(&mut self, _: Option<&TrialReport>) {}

    /// Whether it wants to be told [`so_far`](Watcher::so_far).
    fn follows(&self) -> bool {
        false
    }

    /// A trial has ended, and those up to it lead to this: what an interruption now would report.
    fn so_far(&mut self, _: &Report) {}

    /// The experiment has ended, and this is what came of it.
    fn closes(&mut self, _: &Report) {
        self.end();
    }

    /// The experiment has ended without a report, for this reason.
    fn fails(&mut self, _reason: &str) {
        self.end();
    }

    /// The experiment has ended, with a report or without.
    fn end(&mut self) {}

    /// The number that the run has in the history, once it is kept there.
    fn kept_as(&self) -> Option<i64> {
        None
    }

    /// A line that it wants the user to see, if any; asked for between intervals and trials.
    fn remark(&mut self) -> Option<String> {
        None
    }

    /// A line for the user. Whether it was shown; otherwise it goes to standard error.
    fn note(&mut self, _line: &str) -> bool {
        false
    }
}

/// All who watch.
pub struct Watchers {
    watchers: Vec<Box<dyn Watcher>>,
    notes: Notes,
    trials: usize,
    /// When the next report of what was measured so far may be made.
    so_far_due: Option<Instant>,
}

/// Least time between two reports of what was measured so far, as a multiple of what the last one
/// took. A report of many slices takes longer than a slice.
const SO_FAR_APART: u32 = 10;

impl Watchers {
    /// These, and `notes` for lines that none of them shows.
    pub fn new(watchers: Vec<Box<dyn Watcher>>, notes: Notes) -> Watchers {
        Watchers { watchers, notes, trials: 0, so_far_due: None }
    }

    /// The experiment begins.
    pub fn opens(&mut self, start: &ExperimentStart) {
        self.each(|s| s.opens(start));
        self.pass_remarks();
    }

    /// A trial begins.
    pub fn trial_begins(&mut self, upcoming: &UpcomingTrial) {
        let number = self.trials;
        self.trials += 1;
        self.each(|s| s.trial_begins(number, upcoming));
    }

    /// The trial has ended.
    pub fn trial_ends(&mut self, trial: Option<&TrialReport>) {
        self.each(|s| s.trial_ends(trial));
        self.pass_remarks();
    }

    /// A trial has ended, and those up to it lead to this report. It is made only where somebody
    /// wants it, and takes a tenth of the time at most.
    pub fn so_far(&mut self, report: impl FnOnce() -> Report) {
        let begin = Instant::now();
        let is_due = self.so_far_due.is_none_or(|due| due <= begin);
        if is_due && self.watchers.iter().any(|s| s.follows()) {
            let report = report();
            self.each(|s| s.so_far(&report));
            self.so_far_due = Some(Instant::now() + begin.elapsed() * SO_FAR_APART);
        }
    }

    /// The experiment has ended, and this is what came of it.
    pub fn closes(&mut self, report: &Report) {
        self.each(|s| s.closes(report));
        self.pass_remarks();
    }

    /// The experiment has ended without a report.
    pub fn fails(&mut self, reason: &str) {
        self.each(|s| s.fails(reason));
        self.pass_remarks();
    }

    /// The number that the run has in the history, once it is kept there.
    pub fn kept_as(&self) -> Option<i64> {
        self.watchers.iter().find_map(|s| s.kept_as())
    }

    /// Says something to the user.
    pub fn note(&mut self, line: &str) {
        let is_shown = self.watchers.iter_mut().any(|s| s.note(line));
        if !is_shown {
            self.notes.say(line);
        }
    }

    fn pass_remarks(&mut self) {
        let remarks = self.watchers.iter_mut().filter_map(|s| s.remark());
        for remark in remarks.collect::<Vec<_>>() {
            self.note(&remark);
        }
    }

    fn each(&mut self, tell: impl FnMut(&mut Box<dyn Watcher>)) {
        self.watchers.iter_mut().for_each(tell);
    }
}

/// Nobody follows a trial.
pub struct Unwatched;

impl IntervalWatcher for Unwatched {
    fn on_interval(&mut self, _: &Interval, _: &Histogram) {}
}

impl IntervalWatcher for Watchers {
    fn on_note(&mut self, line: &str) {
        self.note(line);
    }

    fn on_interval(&mut self, interval: &Interval, response: &Histogram) {
        self.each(|s| s.interval(interval, response));
        self.pass_remarks();
    }
}

/// The line; it takes itself away when the trial ends, so that something else can be shown.
#[derive(Debug, Default)]
pub struct ProgressWatcher {
    trial: Option<LiveTrial>,
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
        let (elapsed, total) = match (trial.kind, interval) {
            (LiveKind::Row { before, all, .. }, _) => (before, Some(all)),
            (_, Some(interval)) => (trial.warmup + Nanos(interval.end_ns), trial.total),
            (_, None) => (Nanos::ZERO, trial.total),
        };
        let so_far = match trial.kind {
            LiveKind::Operations => ProgressCounts::Operations { errors: self.errors },
            LiveKind::Flows => ProgressCounts::Flows { ping_max: self.ping_max },
            LiveKind::Datagrams => ProgressCounts::Datagrams { sent: self.sent },
            LiveKind::Row { number, of, .. } => ProgressCounts::Row { number, of },
        };
        let line = ProgressLine {
            label: &trial.label,
            elapsed,
            total,
            interval,
            so_far,
            width,
            unicode: stdio::is_unicode(),
        };
        rewrite(&line.format());
    }
}

impl Watcher for ProgressWatcher {
    fn trial_begins(&mut self, _: usize, upcoming: &UpcomingTrial) {
        *self =
            ProgressWatcher { trial: Some(upcoming.live.clone()), ..ProgressWatcher::default() };
        self.show(None);
    }

    fn interval(&mut self, interval: &Interval, _: &Histogram) {
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
/// reads it: standard error is no terminal, and no server for agents has started this process.
pub fn progress_width() -> Option<usize> {
    if confined::is_confined() {
        return Some(PIPED_WIDTH);
    }
    stdio::is_stderr().then(|| stdio::stderr_width().saturating_sub(1))
}

/// The columns of a line that a server for agents reads: more than any line has.
const PIPED_WIDTH: usize = 200;
