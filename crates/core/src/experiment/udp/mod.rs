//! `knee udp`: one law of sending, several compared, or the difference between two explained.
//!
//! A trial gives an [`AssessedUdpTrial`]: its report, and the times of sending. A report does not
//! carry these; the explanation sends at them again.
//!
//! # Words
//!
//! - **Client**: a sender with a number and a sequence of its own. What it does between two
//!   datagrams is its **wait**: absolute times of a schedule, or a relative wait, to which the
//!   time for sending and waking adds. Clients are **multiplexed** where few threads send for all
//!   of them.
//! - **Ledger**: every datagram that was intended, by where it ended: not attempted, refused,
//!   lost at a place, received, discarded by the service. What stays *unexplained* is a line of
//!   its own, shown even at 0.
//! - **Place** (of a loss): where on its way a datagram was lost, as a counter tells. It is
//!   *exact* where the counter is of our socket alone, *host-wide* where others move it too, and
//!   *inferred* where no counter tells and no other place is left. A place is not a cause.
//! - **Reordered**: a datagram whose number is below the next that is expected of its client.
//!   (RFC 4737 §3)
//! - **Burst** (in results): the most arrivals within any millisecond.
//! - **Replay**: datagrams sent again by a single sender at the times at which others sent
//!   theirs.
//! - **Cell**: one combination of what an explanation varies. **Block**: one trial of each cell,
//!   in random order. Effects are differences within blocks. (Fisher, *The Design of
//!   Experiments*, 1935) **Subject**: the clients whose cells are varied, those that lose more.

pub mod analysis;
pub mod client_wait;
mod conclusion;
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
pub use explain::{EXPLAIN_LIMIT, ExplainSpec, UdpExplain};
use knee_load::experiment::udp::{UdpTrial, UdpTrialSpec};
use knee_load::rng;
use knee_load::time::Nanos;
use laws::{in_words, law_row, law_verdict, lost_where};
use std::sync::Arc;

/// Maximum times of sending that are kept: a replay of these is long enough.
const STARTS_MAX: usize = 500_000;

/// A trial of datagrams as the experiments use it.
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
    /// Assesses a trial.
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

/// Runs each law in turn, all of them `repeats` times, so that what changes on the host meets all
/// alike. With one law and no repeats it is a single trial, its ledger and its findings.
#[derive(Clone, Debug)]
pub struct UdpLaws {
    laws: Vec<UdpTrialSpec>,
    repeats: u32,
}

impl UdpLaws {
    /// `repeats` trials (at least 1) of each of these laws.
    pub fn new(laws: Vec<UdpTrialSpec>, repeats: u32) -> UdpLaws {
        UdpLaws { laws, repeats: repeats.max(1) }
    }
}

impl Experiment for UdpLaws {
    type Spec = UdpTrialSpec;
    type Trial = AssessedUdpTrial;
    type Conclusion = UdpConclusion;

    fn next(&mut self, past: &[AssessedUdpTrial]) -> NextTrial<UdpTrialSpec> {
        if past.len() >= self.laws.len() * self.repeats as usize {
            return NextTrial::Converged;
        }
        let mut spec = self.laws[past.len() % self.laws.len()].clone();
        // Neither the same waits in each repeat nor, of two laws, the same random numbers.
        if self.laws.len() > 1 {
            spec.seed = rng::of_trial(spec.seed, past.len());
        }
        NextTrial::Run(Box::new(spec))
    }

    fn conclude(&self, past: &[AssessedUdpTrial]) -> Concluded<UdpConclusion> {
        let count = self.laws.len();
        let trials_of =
            |law| past.iter().skip(law).step_by(count).map(|trial| &trial.report).collect();
        let by_law: Vec<Vec<&TrialReport>> = (0..count).map(trials_of).collect();
        let laws: Vec<LawRow> =
            self.laws.iter().zip(&by_law).map(|(spec, trials)| law_row(spec, trials)).collect();
        let reports: Vec<&TrialReport> = past.iter().map(|t| &t.report).collect();
        Concluded {
            verdict: law_verdict(&by_law),
            findings: datagram_findings(&reports, false),
            conclusion: UdpConclusion {
                answer: answer(&laws, &reports),
                laws,
                ..UdpConclusion::default()
            },
        }
    }
}

fn answer(laws: &[LawRow], reports: &[&TrialReport]) -> String {
    if reports.is_empty() {
        return "Nothing was measured.".to_owned();
    }
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
    if laws.len() > 1 && laws.iter().any(|row| row.dropped_per_s > 0.0) {
        answer += " Use --explain instead of --compare to find out why.";
    }
    answer
}
