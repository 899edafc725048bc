//! `knee udp --compare`: several laws side by side, in alternation.

use super::UdpTried;
use super::laws::{in_words, law_row, law_verdict, lost_where, name};
use crate::experiment::udp::findings::datagram_findings;
use crate::experiment::udp::report::{LawRow, UdpConclusion};
use crate::experiment::udp::spec::UdpTrialSpec;
use crate::experiment::{Concluded, Experiment, Next};
use crate::rng;
use crate::trial::report::TrialReport;
use crate::words::ratio;
use rand_core::RngCore;

/// Runs each law in turn, all of them `repeats` times, so that what changes on the host meets all
/// alike.
#[derive(Clone, Debug)]
pub struct UdpCompare {
    laws: Vec<UdpTrialSpec>,
    repeats: u32,
}

impl UdpCompare {
    /// A comparison of these laws (at least one), with so many trials of each (at least 1).
    pub fn new(laws: Vec<UdpTrialSpec>, repeats: u32) -> UdpCompare {
        UdpCompare {
            laws,
            repeats: repeats.max(1),
        }
    }

    fn trials_of<'a>(&self, law: usize, past: &'a [UdpTried]) -> Vec<&'a TrialReport> {
        let own = past.iter().skip(law).step_by(self.laws.len().max(1));
        own.map(|t| &t.report).collect()
    }
}

impl Experiment for UdpCompare {
    type Spec = UdpTrialSpec;
    type Trial = UdpTried;
    type Conclusion = UdpConclusion;

    fn next(&mut self, past: &[UdpTried]) -> Next<UdpTrialSpec> {
        if past.len() >= self.laws.len() * self.repeats as usize {
            return Next::Converged;
        }
        let mut spec = self.laws[past.len() % self.laws.len()].clone();
        // Neither the same waits in each repeat nor, of two laws, the same random numbers.
        spec.seed = rng::stream(spec.seed, rng::TRIALS + past.len() as u64).next_u64();
        Next::Run(Box::new(spec))
    }

    fn conclude(&self, past: &[UdpTried]) -> Concluded<UdpConclusion> {
        let by_law: Vec<Vec<&TrialReport>> = (0..self.laws.len())
            .map(|law| self.trials_of(law, past))
            .collect();
        let laws: Vec<LawRow> = self
            .laws
            .iter()
            .zip(&by_law)
            .map(|(spec, trials)| law_row(spec, trials))
            .collect();
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
    let rows: Vec<String> = laws
        .iter()
        .filter(|row| row.trials > 0)
        .map(in_words)
        .collect();
    let mut answer = rows.join(" ");
    if let [first, second] = laws
        && first.sent_per_s > 0.0
        && second.trials > 0
    {
        answer += &format!(
            " So {} sent {} times as much as {}.",
            name(second),
            ratio(second.sent_per_s / first.sent_per_s),
            name(first)
        );
    }
    answer += &lost_where(reports);
    if laws.iter().any(|row| row.dropped_per_s > 0.0) {
        answer += " Why, is what --explain in the place of --compare finds out.";
    }
    answer
}
