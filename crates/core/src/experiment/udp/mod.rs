//! `knee udp`: one law of sending, several compared, or the difference between two explained.
//!
//! What comes back of a trial is a [`UdpTried`]: its report, and the moments of sending, which a
//! report does not carry and which the explanation sends again.

pub mod analysis;
pub mod client_wait;
mod compare;
mod conclusion;
mod explain;
#[cfg(test)]
mod fake;
pub mod findings;
mod laws;
pub mod measure;
mod pool;
#[cfg(test)]
mod properties;
pub mod recorder;
pub mod report;
pub mod spec;
#[cfg(test)]
mod tests;

pub use compare::UdpCompare;
pub use explain::{EXPLAIN_LIMIT, ExplainAsked, ExplainSpec, UdpExplain};

use super::{Concluded, Experiment, Next};
use crate::experiment::udp::analysis::assess;
use crate::experiment::udp::findings::datagram_findings;
use crate::experiment::udp::measure::UdpTrial;
use crate::experiment::udp::report::UdpConclusion;
use crate::experiment::udp::spec::UdpTrialSpec;
use crate::time::Nanos;
use crate::trial::report::TrialReport;
use laws::{in_words, law_row, law_verdict};
use std::sync::Arc;

/// More moments than this are not kept: a replay of so many is long enough.
const STARTS_MAX: usize = 500_000;

/// A trial of datagrams that was made: all that the experiments here go by.
#[derive(Clone, Debug, PartialEq)]
pub struct UdpTried {
    /// Its statistics.
    pub report: TrialReport,
    /// When datagrams were sent, ascending, since the run began, complete up to `starts_until`. On
    /// one host these are the arrivals at the service's buffer too, lost ones included.
    pub starts: Arc<[Nanos]>,
    /// Up to when `starts` is complete.
    pub starts_until: Nanos,
}

impl UdpTried {
    /// What the experiments need to know of a trial; assesses it.
    pub fn of(trial: &UdpTrial) -> UdpTried {
        let starts = &trial.sent.starts;
        let (kept, until) = match starts.get(STARTS_MAX) {
            // Whole moments only: what is sent at the same time is kept or left out together.
            Some(&first_out) => (starts.partition_point(|&t| t < first_out), first_out),
            None => (starts.len(), trial.sent.starts_until),
        };
        UdpTried {
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
    type Trial = UdpTried;
    type Conclusion = UdpConclusion;

    fn next(&mut self, past: &[UdpTried]) -> Next<UdpTrialSpec> {
        if past.is_empty() {
            Next::Run(Box::new(self.spec.clone()))
        } else {
            Next::Converged
        }
    }

    fn conclude(&self, past: &[UdpTried]) -> Concluded<UdpConclusion> {
        let reports: Vec<&TrialReport> = past.iter().map(|t| &t.report).collect();
        let laws = vec![law_row(&self.spec, &reports)];
        let answer = match past.is_empty() {
            true => "Nothing was measured.".to_owned(),
            false => in_words(&laws[0]) + &laws::lost_where(&reports),
        };
        Concluded {
            verdict: law_verdict(std::slice::from_ref(&reports)),
            findings: datagram_findings(&reports),
            conclusion: UdpConclusion {
                laws,
                answer,
                ..UdpConclusion::default()
            },
        }
    }
}
