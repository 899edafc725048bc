//! `knee udp`: one law of sending, several compared, or the difference between two explained.
//!
//! A trial gives an [`AssessedUdpTrial`]: its report, and the times of sending. A report does not
//! carry these; the explanation sends at them again.

pub mod analysis;
pub mod client_wait;
mod explain;
pub mod findings;
mod laws;
pub mod report;
#[cfg(test)]
mod tests;

use crate::experiment::NextTrial;
use crate::experiment::udp::analysis::assess;
use crate::experiment::udp::findings::datagram_findings;
use crate::experiment::udp::report::{LawRow, UdpConclusion};
use crate::experiment::{Concluded, Experiment};
use crate::trial::report::TrialReport;
use crate::words::ratio;
pub use explain::{EXPLAIN_LIMIT, ExplainRequest, ExplainSpec, UdpExplain};
use knee_load::experiment::udp::{UdpTrial, UdpTrialSpec};
use knee_load::rng;
use knee_load::time::Nanos;
use laws::{in_words, law_row, law_verdict, lost_where};
use std::sync::Arc;

/// Maximum times of sending that are kept: a replay of these is long enough.
const STARTS_MAX: usize = 500_000;

/// A trial of datagrams that was made: all that the experiments here go by.
#[derive(Clone, Debug, PartialEq)]
pub struct AssessedUdpTrial {
    /// Its statistics.
    pub report: TrialReport,
    /// When datagrams were sent, ascending, since the run began, complete up to `starts_until`. On
    /// one host these are the arrivals at the service's buffer too, lost ones included.
    pub starts: Arc<[Nanos]>,
    /// Up to when `starts` is complete.
    pub starts_until: Nanos,
}

impl AssessedUdpTrial {
    /// What the experiments need to know of a trial; assesses it.
    pub fn of(trial: &UdpTrial) -> AssessedUdpTrial {
        let starts = &trial.sent.starts;
        let (kept, until) = match starts.get(STARTS_MAX) {
            // Whole times only: what is sent at the same time is kept or left out together.
            Some(&first_out) => (starts.partition_point(|&t| t < first_out), first_out),
            None => (starts.len(), trial.sent.starts_until),
        };
        AssessedUdpTrial {
            report: assess(trial),
            starts: starts[..kept].into(),
            starts_until: until,
        }
    }
}

/// One trial, its ledger, its findings.
#[derive(Clone, Debug)]
pub struct UdpRun {
    spec: UdpTrialSpec,
}

impl UdpRun {
    /// The experiment that runs just this.
    pub fn new(spec: UdpTrialSpec) -> UdpRun {
        UdpRun { spec }
    }
}

impl Experiment for UdpRun {
    type Spec = UdpTrialSpec;
    type Trial = AssessedUdpTrial;
    type Conclusion = UdpConclusion;

    fn next(&mut self, past: &[AssessedUdpTrial]) -> NextTrial<UdpTrialSpec> {
        if past.is_empty() {
            NextTrial::Run(Box::new(self.spec.clone()))
        } else {
            NextTrial::Converged
        }
    }

    fn conclude(&self, past: &[AssessedUdpTrial]) -> Concluded<UdpConclusion> {
        let reports: Vec<&TrialReport> = past.iter().map(|t| &t.report).collect();
        let laws = vec![law_row(&self.spec, &reports)];
        let answer = if past.is_empty() {
            "Nothing was measured.".to_owned()
        } else {
            in_words(&laws[0]) + &lost_where(&reports)
        };
        Concluded {
            verdict: law_verdict(std::slice::from_ref(&reports)),
            findings: datagram_findings(&reports),
            conclusion: UdpConclusion { laws, answer, ..UdpConclusion::default() },
        }
    }
}

/// Runs each law in turn, all of them `repeats` times, so that what changes on the host meets all
/// alike.
#[derive(Clone, Debug)]
pub struct UdpCompare {
    laws: Vec<UdpTrialSpec>,
    repeats: u32,
}

impl UdpCompare {
    /// A comparison of these laws (at least one), with `repeats` trials of each (at least 1).
    pub fn new(laws: Vec<UdpTrialSpec>, repeats: u32) -> UdpCompare {
        UdpCompare { laws, repeats: repeats.max(1) }
    }

    fn trials_of<'a>(&self, law: usize, past: &'a [AssessedUdpTrial]) -> Vec<&'a TrialReport> {
        past.iter().skip(law).step_by(self.laws.len().max(1)).map(|t| &t.report).collect()
    }
}

impl Experiment for UdpCompare {
    type Spec = UdpTrialSpec;
    type Trial = AssessedUdpTrial;
    type Conclusion = UdpConclusion;

    fn next(&mut self, past: &[AssessedUdpTrial]) -> NextTrial<UdpTrialSpec> {
        if past.len() >= self.laws.len() * self.repeats as usize {
            return NextTrial::Converged;
        }
        let mut spec = self.laws[past.len() % self.laws.len()].clone();
        // Neither the same waits in each repeat nor, of two laws, the same random numbers.
        spec.seed = rng::of_trial(spec.seed, past.len());
        NextTrial::Run(Box::new(spec))
    }

    fn conclude(&self, past: &[AssessedUdpTrial]) -> Concluded<UdpConclusion> {
        let by_law: Vec<Vec<&TrialReport>> =
            (0..self.laws.len()).map(|law| self.trials_of(law, past)).collect();
        let laws: Vec<LawRow> =
            self.laws.iter().zip(&by_law).map(|(spec, trials)| law_row(spec, trials)).collect();
        let reports: Vec<&TrialReport> = past.iter().map(|t| &t.report).collect();
        Concluded {
            verdict: law_verdict(&by_law),
            findings: datagram_findings(&reports),
            conclusion: UdpConclusion {
                answer: answer(&laws, &reports),
                laws,
                ..UdpConclusion::default()
            },
        }
    }
}

fn answer(laws: &[LawRow], reports: &[&TrialReport]) -> String {
    let rows: Vec<String> = laws.iter().filter(|row| row.trials > 0).map(in_words).collect();
    let mut answer = rows.join(" ");
    if let [first, second] = laws
        && first.sent_per_s > 0.0
        && second.trials > 0
    {
        answer += &format!(
            " So {} sent {} times as much as {}.",
            second.label,
            ratio(second.sent_per_s / first.sent_per_s),
            first.label
        );
    }
    answer += &lost_where(reports);
    if laws.iter().any(|row| row.dropped_per_s > 0.0) {
        answer += " Why, is what --explain in the place of --compare finds out.";
    }
    answer
}
