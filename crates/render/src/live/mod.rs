//! The live view: what is known of a running experiment, and how it looks on a terminal. Nothing
//! here reads a clock, knows a terminal, or waits: events come in, a screen full of cells goes out.
//!
//! As everywhere, each number shown is a field of an interval or a report, or their sum.

mod agents;
mod charts;
mod columns;
mod header;
mod latency;
mod log;
mod look;
mod screen;
#[cfg(test)]
mod tests;

pub use look::Look;
pub use screen::{Pane, Screen};

use knee_core::finding::Severity;
use knee_core::measure::{AgentInterval, Interval};
use knee_core::time::Nanos;
use knee_core::trial::findings::trial_findings;
use knee_core::trial::live::RemarkDetector;
use knee_core::trial::report::{TrialReport, Verdict};
use knee_core::trial::sessions::SessionNames;
use std::collections::VecDeque;

/// So many intervals are kept for the charts: more than any terminal has columns.
const MOMENTS_MAX: usize = 512;
/// So many remarks and notes are kept.
const ENTRIES_MAX: usize = 200;

/// A trial before it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveTrial {
    /// Its name for people, such as `vusers=10`.
    pub label: String,
    /// What it is made of.
    pub kind: LiveKind,
    /// Time that is run before the measured window.
    pub warmup: Nanos,
    /// How long it takes in all, warm-up included, where known.
    pub total: Option<Nanos>,
    /// Length of its intervals; zero where it has none.
    pub interval: Nanos,
    /// Operations or datagrams asked for per second, where a schedule starts them.
    pub asked_per_s: Option<f64>,
    /// What its steps and sessions are called; empty where operations are no steps.
    pub names: SessionNames,
}

/// What a trial is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveKind {
    /// Requests or connections.
    Operations,
    /// Datagrams, of which only the sending is known while it runs.
    Datagrams,
    /// Flows with pings beside them.
    Flows,
    /// A row of a table, of which nothing is told while it is measured.
    Row {
        /// Which one, from 1 on.
        number: usize,
        /// How many there are.
        of: usize,
        /// The time that those before it took.
        before: Nanos,
        /// The time that all take, roughly.
        all: Nanos,
    },
}

/// All that is known of an experiment while it runs.
#[derive(Clone, Debug, Default)]
pub struct Live {
    command: String,
    target: String,
    trial: Option<LiveTrial>,
    /// Trials begun, the running one included.
    begun: usize,
    /// Whether a trial is running, rather than the last one over.
    is_running: bool,
    sums: Sums,
    moments: VecDeque<Moment>,
    watch: RemarkDetector,
    ended: Vec<Ended>,
    entries: VecDeque<Entry>,
    /// What each agent contributed to the last interval.
    agents: Vec<AgentInterval>,
    /// Whether the table of ended trials says what a note on the last one would.
    is_tabled: bool,
}

/// An interval, and how the response times in it were distributed.
#[derive(Clone, Debug)]
struct Moment {
    interval: Interval,
    /// See [`knee_core::measure::Histogram`]'s bands; empty where they are not known one by one.
    bands: Vec<(u16, u64)>,
    /// Whether it is the first of its trial.
    begins: bool,
}

/// What happened in the running trial so far.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    errors: u64,
    sent: u64,
}

/// A trial that is over.
#[derive(Clone, Debug)]
struct Ended {
    label: String,
    throughput_per_s: Option<f64>,
    /// Mean, 90th and 99th percentile of response time.
    times_ns: [Option<u64>; 3],
    errors: u64,
    is_valid: bool,
}

/// Something said.
#[derive(Clone, Debug)]
struct Entry {
    severity: Severity,
    /// The trial that it is about, where there are several, and when in it.
    label: String,
    at: Option<Nanos>,
    text: String,
    /// The finding that it is, and further trials that it holds for.
    code: String,
    also: Vec<String>,
}

impl Live {
    /// Nothing is known yet but the command, such as `run`, and what it is pointed at.
    pub fn new(command: &str, target: &str) -> Live {
        Live {
            command: command.to_string(),
            target: target.to_string(),
            ..Live::default()
        }
    }

    /// A trial begins.
    pub fn trial_begins(&mut self, trial: LiveTrial) {
        self.begun += 1;
        self.is_running = true;
        self.is_tabled = false;
        self.sums = Sums::default();
        self.watch = RemarkDetector::default();
        self.agents.clear();
        self.trial = Some(trial);
    }

    /// An interval of it has ended, with its response times by band, where they are known.
    pub fn interval(&mut self, mut interval: Interval, bands: Vec<(u16, u64)>) {
        let Some(trial) = &self.trial else {
            return;
        };
        self.sums.errors += interval.errors;
        self.sums.sent += interval.sent.unwrap_or(0);
        self.agents = std::mem::take(&mut interval.agents);
        if trial.kind == LiveKind::Operations {
            for remark in self.watch.on_interval(&interval) {
                let at = Some(Nanos(remark.at_ns) + self.warmup());
                self.say(remark.severity, at, remark.text);
            }
        }
        if self.moments.len() == MOMENTS_MAX {
            self.moments.pop_front();
        }
        self.moments.push_back(Moment {
            begins: interval.start_ns == 0,
            interval,
            bands,
        });
    }

    /// The trial has ended.
    pub fn trial_ends(&mut self, report: Option<&TrialReport>) {
        self.is_running = false;
        let Some(report) = report else {
            return;
        };
        let times = &report.response_time_ns;
        if report.http().is_some() && times.count > 0 {
            self.is_tabled = true;
            self.ended.push(Ended {
                label: report.label.clone(),
                throughput_per_s: report.throughput_per_s,
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
                    self.say(finding.severity, None, finding.text);
                    if let Some(entry) = self.entries.back_mut() {
                        entry.code = finding.code;
                    }
                }
            }
        }
    }

    /// A line for the user.
    pub fn note(&mut self, line: &str) {
        if !self.is_tabled {
            self.add(Entry {
                severity: Severity::Info,
                label: String::new(),
                at: None,
                text: line.to_string(),
                code: String::new(),
                also: Vec::new(),
            });
        }
    }

    fn say(&mut self, severity: Severity, at: Option<Nanos>, text: String) {
        let label = match &self.trial {
            // Of a single trial all is said.
            Some(trial) if self.begun > 1 => trial.label.clone(),
            _ => String::new(),
        };
        self.add(Entry {
            severity,
            label,
            at,
            text,
            code: String::new(),
            also: Vec::new(),
        });
    }

    fn add(&mut self, entry: Entry) {
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

    /// The interval of the running trial that ended last.
    fn last(&self) -> Option<&Interval> {
        let is_of_this = self.is_running || self.begun > 0;
        self.moments
            .back()
            .filter(|_| is_of_this)
            .map(|m| &m.interval)
    }
}
