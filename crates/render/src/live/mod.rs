//! The live view: the state of a running experiment, and its picture on a terminal. Events come in,
//! a screen of cells goes out; no code in this module reads a clock, knows a terminal, or waits.
//!
//! Each number shown is a field of an interval or a report, or their sum.

mod charts;
mod panels;
mod screen;
mod terminal_style;
#[cfg(test)]
mod tests;

pub use screen::{LatencyView, LiveScreen};
pub use terminal_style::TerminalStyle;

use knee_core::finding::Severity;
use knee_core::trial::figure::Figure;
use knee_core::trial::findings::trial_findings;
use knee_core::trial::live::RemarkDetector;
use knee_core::trial::report::{TrialReport, Verdict};
use knee_core::trial::step_names::SessionNames;
use knee_load::measure::{AgentInterval, Interval};
use knee_load::time::Nanos;
use std::collections::VecDeque;

/// Intervals kept for the charts: more than any terminal has columns.
const INTERVALS_MAX: usize = 512;
/// Entries of the log that are kept.
const ENTRIES_MAX: usize = 200;

/// A trial before it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveTrial {
    /// Its name for people, such as `vusers=10`.
    pub label: String,
    /// The kind of its load.
    pub kind: LiveKind,
    /// Warm-up time, before the measured window.
    pub warmup: Nanos,
    /// Duration including warm-up, if known.
    pub total: Option<Nanos>,
    /// Length of its intervals, or zero.
    pub interval: Nanos,
    /// Operations or datagrams asked for per second, if a schedule starts them.
    pub asked_per_s: Option<f64>,
    /// Names of steps and sessions; empty without sessions.
    pub names: SessionNames,
}

/// The kind of load of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveKind {
    /// Requests or connections.
    Operations,
    /// Datagrams. Only their sending is known during the trial.
    Datagrams,
    /// Flows with pings beside them.
    Flows,
    /// A row of a table, without intervals.
    Row {
        /// Its number, from 1.
        number: usize,
        /// The number of rows.
        of: usize,
        /// Duration of the rows before it.
        before: Nanos,
        /// Estimated duration of all rows.
        all: Nanos,
    },
}

/// The state of a running experiment.
#[derive(Clone, Debug, Default)]
pub struct LiveState {
    command: String,
    target: String,
    trial: Option<LiveTrial>,
    /// Trials begun, the running one included.
    begun: usize,
    /// Whether a trial is running, rather than the last one over.
    is_running: bool,
    sums: LiveTotals,
    intervals: VecDeque<LiveInterval>,
    watch: RemarkDetector,
    ended: Vec<EndedTrial>,
    entries: VecDeque<LogEntry>,
    /// The contribution of each agent to the last interval.
    agents: Vec<AgentInterval>,
    /// Whether the table of ended trials has the content of a note on the last trial.
    is_tabled: bool,
}

/// An interval with the distribution of its response times.
#[derive(Clone, Debug)]
struct LiveInterval {
    interval: Interval,
    /// Response times by band of [`knee_load::measure::Histogram`]; empty if unknown.
    bands: Vec<(u16, u64)>,
    /// Whether it is the first of its trial.
    begins: bool,
}

/// Counts of the running trial so far.
#[derive(Clone, Copy, Debug, Default)]
struct LiveTotals {
    intervals: usize,
    errors: u64,
    sent: u64,
}

/// A trial that is over.
#[derive(Clone, Debug)]
struct EndedTrial {
    label: String,
    throughput: Figure<f64>,
    /// Mean, 90th and 99th percentile of response time.
    times_ns: [Option<u64>; 3],
    errors: u64,
    is_valid: bool,
}

/// A remark, a finding or a note.
#[derive(Clone, Debug)]
struct LogEntry {
    severity: Severity,
    /// Its trial, among several, and its time in the trial.
    label: String,
    at: Option<Nanos>,
    text: String,
    /// The code of a finding, and further trials with it.
    code: String,
    also: Vec<String>,
}

impl LogEntry {
    fn new(severity: Severity, label: String, text: String) -> LogEntry {
        LogEntry { severity, label, at: None, text, code: String::new(), also: Vec::new() }
    }
}

impl LiveState {
    /// The state before any trial of a command, such as `run`, and its target.
    pub fn new(command: &str, target: &str) -> LiveState {
        LiveState {
            command: command.to_string(),
            target: target.to_string(),
            ..LiveState::default()
        }
    }

    /// Begins a trial.
    pub fn trial_begins(&mut self, trial: LiveTrial) {
        self.begun += 1;
        self.is_running = true;
        self.is_tabled = false;
        self.sums = LiveTotals::default();
        self.watch = RemarkDetector::default();
        self.agents.clear();
        self.trial = Some(trial);
    }

    /// Adds an interval of the running trial with its response times by band, if known.
    pub fn interval(&mut self, mut interval: Interval, bands: Vec<(u16, u64)>) {
        let Some(trial) = &self.trial else {
            return;
        };
        self.sums.intervals += 1;
        self.sums.errors += interval.errors;
        self.sums.sent += interval.sent.unwrap_or(0);
        self.agents = std::mem::take(&mut interval.agents);
        if trial.kind == LiveKind::Operations {
            for remark in self.watch.on_interval(&interval) {
                let at = Some(Nanos(remark.at_ns) + self.warmup());
                let entry = LogEntry::new(remark.severity, self.label(), remark.text);
                self.add(LogEntry { at, ..entry });
            }
        }
        if self.intervals.len() == INTERVALS_MAX {
            self.intervals.pop_front();
        }
        self.intervals.push_back(LiveInterval { begins: interval.start_ns == 0, interval, bands });
    }

    /// Ends the running trial.
    pub fn trial_ends(&mut self, report: Option<&TrialReport>) {
        self.is_running = false;
        let Some(report) = report else {
            return;
        };
        let times = &report.response_time_ns;
        if report.http().is_some() && times.count > 0 {
            self.is_tabled = true;
            self.ended.push(EndedTrial {
                label: report.label.clone(),
                throughput: report.throughput(),
                times_ns: [times.mean, times.p90, times.p99],
                errors: report.outcomes.errors(),
                is_valid: report.verdict == Verdict::Valid,
            });
        }
        for finding in trial_findings(report) {
            let known = self.entries.iter_mut().find(|e| e.code == finding.code);
            match known {
                Some(entry) => entry.also.push(report.label.clone()),
                None => {
                    let entry = LogEntry::new(finding.severity, self.label(), finding.text);
                    self.add(LogEntry { code: finding.code, ..entry });
                }
            }
        }
    }

    /// Adds a line for the user.
    pub fn note(&mut self, line: &str) {
        if !self.is_tabled {
            self.add(LogEntry::new(Severity::Info, String::new(), line.to_string()));
        }
    }

    /// The name of the trial; empty for a single one, which needs none.
    fn label(&self) -> String {
        match &self.trial {
            Some(trial) if self.begun > 1 => trial.label.clone(),
            _ => String::new(),
        }
    }

    fn add(&mut self, entry: LogEntry) {
        if self.entries.len() == ENTRIES_MAX {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    fn warmup(&self) -> Nanos {
        self.trial.as_ref().map_or(Nanos::ZERO, |t| t.warmup)
    }

    fn kind(&self) -> Option<LiveKind> {
        self.trial.as_ref().map(|t| t.kind)
    }

    /// The interval of the trial that ended last; during its warm-up there is none.
    fn last(&self) -> Option<&Interval> {
        let last = self.intervals.back().filter(|_| self.sums.intervals > 0);
        last.map(|m| &m.interval)
    }
}
